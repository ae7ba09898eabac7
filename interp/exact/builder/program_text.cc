// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/builder/program_text.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

std::string_view KindText(ThunkKind kind) {
  switch (kind) {
    case ThunkKind::kKernel:
      return "kernel";
    case ThunkKind::kCall:
      return "call";
    case ThunkKind::kWhile:
      return "while";
    case ThunkKind::kConditional:
      return "conditional";
    case ThunkKind::kCollective:
      return "collective";
    case ThunkKind::kObserve:
      return "observe";
  }
  return "";
}

void AppendSlots(const CompiledComputation& compiled, std::string_view verb, const std::vector<uint32_t>& slots,
                 std::string* text) {
  if (slots.empty()) return;
  StrAppend(text, "  ", verb);
  for (const uint32_t slot : slots) StrAppend(text, " ", slot);
  StrAppend(text, " (");
  for (size_t i = 0; i < slots.size(); ++i) StrAppend(text, i == 0 ? "" : " ", compiled.slots[slots[i]].bytes);
  StrAppend(text, " bytes)");
}

void AppendThunk(const PreparedProgram& program, const CompiledComputation& compiled, size_t number,
                 const StepDescriber& describe, std::string* text) {
  const Thunk& thunk = compiled.thunks[number];
  StrAppend(text, "  ", number, "  ");
  if (thunk.instruction.valid()) {
    const Instruction instruction = program.module->instruction(thunk.instruction);
    StrAppend(text, instruction.name(), "  ", instruction.opcode_text(), "  ");
  }
  const std::string what =
      thunk.kind == ThunkKind::kKernel && thunk.instruction.valid() ? describe(thunk.instruction) : "";
  StrAppend(text, what.empty() ? KindText(thunk.kind) : std::string_view(what));
  if (number < compiled.first_variant_thunk) StrAppend(text, "  once");
  std::vector<uint32_t> read, written;
  for (uint32_t i = 0; i < thunk.operand_count; ++i) read.push_back(compiled.operands[thunk.operand_begin + i].slot);
  for (uint32_t i = 0; i < thunk.result_count; ++i) written.push_back(thunk.result_begin + i);
  AppendSlots(compiled, "reads", read, text);
  AppendSlots(compiled, "writes", written, text);
  for (uint32_t i = 0; i < thunk.reuse_count; ++i) {
    const InPlaceReuse& reuse = compiled.reuses[thunk.reuse_begin + i];
    const uint32_t slot = read[reuse.operand];
    StrAppend(text, ", ", thunk.result_begin + reuse.result, " in place of ", slot);
    const auto& parameters = compiled.parameters;
    const bool is_argument =
        &compiled == program.entry && std::find(parameters.begin(), parameters.end(), slot) != parameters.end();
    if (is_argument) StrAppend(text, " if that is donated");
  }
  if (thunk.release_count > 0) StrAppend(text, "  then frees");
  for (uint32_t i = 0; i < thunk.release_count; ++i) StrAppend(text, " ", compiled.releases[thunk.release_begin + i]);
  StrAppend(text, "\n");
}

}  // namespace

std::string ProgramText(const PreparedProgram& program, const StepDescriber& describe) {
  std::string text;
  for (const std::unique_ptr<CompiledComputation>& compiled : program.computations) {
    int64_t bytes = 0;
    for (const SlotInfo& slot : compiled->slots) {
      if (slot.constant == nullptr) bytes = SaturatingAdd(bytes, slot.bytes);
    }
    StrAppend(&text, compiled.get() == program.entry ? "entry " : "", compiled->computation.name(), ", ",
              compiled->thunks.size(), " steps, ", compiled->slots.size(), " slots, ", bytes,
              " bytes in all if none shared memory\n");
    for (size_t i = 0; i < compiled->thunks.size(); ++i) AppendThunk(program, *compiled, i, describe, &text);
  }
  return text;
}

}  // namespace hlokit::interp
