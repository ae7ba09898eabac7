// SPDX-License-Identifier: Apache-2.0
#include "parser/bytecode/byte_cursor.h"

#include <bit>

#include "ir/core/str_cat.h"

namespace hlokit::bytecode {

absl::Status ErrorAt(size_t offset, std::string_view message) {
  return absl::InvalidArgumentError(StrCat("at byte ", offset, ": ", message));
}

void ByteCursor::FailAt(size_t offset, std::string_view message) { FailWith(ErrorAt(offset, message)); }

void ByteCursor::FailWith(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  at_ = bytes_.size();
}

uint8_t ByteCursor::Byte() {
  if (AtEnd()) {
    Fail("the data end too early: they are cut off or damaged");
    return 0;
  }
  return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t ByteCursor::VarInt() {
  const unsigned first = Byte();
  if ((first & 1) != 0) return first >> 1;
  const int following = first == 0 ? 8 : std::countr_zero(first);
  if (!ok() || remaining() < static_cast<size_t>(following)) {
    Fail("the data end within a number");
    return 0;
  }
  uint64_t value = 0;
  for (int i = 0; i < following; ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes_[at_ + static_cast<size_t>(i)])} << (8 * i);
  }
  at_ += static_cast<size_t>(following);
  if (first == 0) return value;
  return value << (8 - (following + 1)) | first >> (following + 1);
}

int64_t ByteCursor::SignedVarInt() {
  const uint64_t value = VarInt();
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

size_t ByteCursor::Count() {
  const size_t start = offset();
  const uint64_t count = VarInt();
  if (ok() && count > remaining()) {
    FailAt(start, StrCat("a list of ", count, " elements, for which the data are too short"));
  }
  return ok() ? static_cast<size_t>(count) : 0;
}

uint64_t ByteCursor::VarIntWithFlag(bool* flag) {
  const uint64_t value = VarInt();
  *flag = (value & 1) != 0;
  return value >> 1;
}

ByteSpan ByteCursor::Bytes(uint64_t size) {
  if (size > remaining()) {
    Fail(StrCat("expected ", size, " bytes, but ", remaining(), " are left: the data are cut off or damaged"));
    return {{}, offset()};
  }
  const ByteSpan span = {bytes_.substr(at_, static_cast<size_t>(size)), offset()};
  at_ += static_cast<size_t>(size);
  return span;
}

std::string_view ByteCursor::ZeroTerminated() {
  const size_t end = bytes_.find('\0', at_);
  if (end == std::string_view::npos) {
    Fail("expected a string that ends with a zero, but the data end: they are cut off or damaged");
    return {};
  }
  const std::string_view text = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return text;
}

void ByteCursor::Align(uint64_t alignment) {
  if (!std::has_single_bit(alignment)) return Fail("the alignment is not a power of two");
  constexpr uint8_t kPadding = 0xcb;
  while (ok() && offset() % alignment != 0) {
    if (Byte() != kPadding) Fail("expected padding");
  }
}

}  // namespace hlokit::bytecode
