// SPDX-License-Identifier: Apache-2.0
#include "passes/core/pass_error.h"

#include <cstring>
#include <string>

#include "absl/strings/cord.h"
#include "absl/types/optional.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

constexpr const char* kPlace = "hlokit/source-range";

}  // namespace

absl::Status ErrorAt(Instruction instruction, std::string_view message) {
  absl::Status status = absl::InvalidArgumentError(StrCat(instruction.name(), ": ", message));
  const auto has_place = [](Instruction i) { return i.record().source_offset != InstructionRecord::kNoSourceOffset; };
  Instruction at = instruction;
  for (int64_t k = 0; !has_place(at) && k < instruction.operand_count(); ++k) at = instruction.operand(k);
  if (!has_place(at)) return status;
  const SourceRange range = {at.record().source_offset, static_cast<uint32_t>(at.name().size())};
  char bytes[sizeof(range.offset) + sizeof(range.size)];
  std::memcpy(bytes, &range.offset, sizeof(range.offset));
  std::memcpy(bytes + sizeof(range.offset), &range.size, sizeof(range.size));
  status.SetPayload(kPlace, absl::Cord(absl::string_view(bytes, sizeof(bytes))));
  return status;
}

std::optional<SourceRange> PlaceOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPlace);
  SourceRange range;
  if (!payload || payload->size() != sizeof(range.offset) + sizeof(range.size)) return std::nullopt;
  const std::string bytes(*payload);
  std::memcpy(&range.offset, bytes.data(), sizeof(range.offset));
  std::memcpy(&range.size, bytes.data() + sizeof(range.offset), sizeof(range.size));
  return range;
}

absl::Status WithMessage(const absl::Status& status, std::string_view message) {
  absl::Status renamed(status.code(), absl::string_view(message.data(), message.size()));
  if (const absl::optional<absl::Cord> payload = status.GetPayload(kPlace)) renamed.SetPayload(kPlace, *payload);
  return renamed;
}

}  // namespace hlokit
