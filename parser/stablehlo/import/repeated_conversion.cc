// SPDX-License-Identifier: Apache-2.0
// Operations that are as an earlier one but for their operands: their instructions are clones of that one's.
#include <algorithm>

#include "parser/stablehlo/import/converter.h"

namespace hlokit::stablehlo {
namespace {

// Converters that look at attributes, types and shapes of operands only, and add instructions to the computation.
constexpr bool IsLocal(std::string_view converter) {
  constexpr std::string_view kLocal[] = {
      "Constant", "Elementwise", "Explicit",    "Convert",        "MinMax",  "Compare",    "Select",
      "Clamp",    "Iota",        "Broadcast",   "BroadcastInDim", "Reshape", "Transpose",  "Slice",
      "Pad",      "Concatenate", "Reverse",     "DynamicSlice",   "Gather",  "DotGeneral", "Dot",
      "Square",   "IsInf",       "Convolution", "ReducePrecision"};
  return std::find(std::begin(kLocal), std::end(kLocal), converter) != std::end(kLocal);
}

}  // namespace

bool Converter::IsRepeatable(const Op& op) {
  static constexpr bool kLocal[] = {
#define OP(kind, name, operands, attributes, regions, results, format, converter, opcode) IsLocal(#converter),
#include "parser/mlir/operations.def"
  };
  return op.definition != nullptr && kLocal[static_cast<size_t>(op.kind())] && op.result_count == 1 &&
         op.region_count == 0;
}

void Converter::RecordConversion(const Op& op, mlir::OperationId key, InstructionId first) {
  const size_t operand_begin = conversion_operands_.size(), source_begin = conversion_sources_.size(),
               attr_begin = conversion_attrs_.size();
  const auto drop = [&] {
    conversion_operands_.resize(operand_begin);
    conversion_sources_.resize(source_begin);
    conversion_attrs_.resize(attr_begin);
  };
  for (uint32_t i = 0; i < op.operand_count; ++i) conversion_operands_.push_back(operand(op, i));
  const auto begin = conversion_operands_.begin() + static_cast<ptrdiff_t>(operand_begin);
  // Which of two equal operands an instruction has is not known.
  for (auto i = begin; i != conversion_operands_.end(); ++i) {
    if (!i->valid() || std::find(begin, i, *i) != i) return drop();
  }
  const auto last = static_cast<uint32_t>(module_->instruction_id_bound());
  const auto source = [&](InstructionId id, int32_t* result) {
    if (id.value >= first.value) {
      *result = -1 - static_cast<int32_t>(id.value - first.value);
      return true;
    }
    const auto found = std::find(begin, conversion_operands_.end(), id);
    *result = static_cast<int32_t>(found - begin);
    return found != conversion_operands_.end();
  };
  Conversion made;
  made.first = first;
  made.count = last - first.value;
  made.operand_begin = static_cast<uint32_t>(operand_begin);
  made.operand_count = op.operand_count;
  made.source_begin = static_cast<uint32_t>(source_begin);
  made.attr_begin = static_cast<uint32_t>(attr_begin);
  for (uint32_t id = first.value; id < last; ++id) {
    const Instruction instruction = module_->instruction(InstructionId(id));
    const InstructionRecord& record = instruction.record();
    if (record.parent != frame().computation || record.opcode == Opcode::kParameter) return drop();
    for (const AttrValue& value : instruction.attrs()) {
      if (NamesComputations(value.attr) || value.attr == Attr::kControlPredecessors) return drop();
    }
    conversion_attrs_.push_back({record.attr_begin, record.attr_count});
    for (Instruction used : instruction.operands()) {
      int32_t at = 0;
      if (!source(used.id(), &at)) return drop();
      conversion_sources_.push_back(at);
    }
  }
  const InstructionId result = values_[program_.result(op).value];
  if (!result.valid() || !source(result, &made.result)) return drop();
  conversions_.push_back(made);
  conversion_of_[key.value] = static_cast<uint32_t>(conversions_.size());
}

bool Converter::RepeatConversion(const Op& op, const Conversion& recorded) {
  for (uint32_t i = 0; i < recorded.operand_count; ++i) {
    const InstructionId other = conversion_operands_[recorded.operand_begin + i];
    if (module_->record(operand(op, i)).shape != module_->record(other).shape) return false;
  }
  for (uint32_t k = 0; k < recorded.count; ++k) {
    const InstructionRecord& record = module_->record(InstructionId(recorded.first.value + k));
    const auto [attr_begin, attr_count] = conversion_attrs_[recorded.attr_begin + k];
    if (record.attr_begin != attr_begin || record.attr_count != attr_count) return false;  // changed since
  }
  const auto first = static_cast<uint32_t>(module_->instruction_id_bound());
  const auto at = [&](int32_t source) {
    return source < 0 ? InstructionId(first + static_cast<uint32_t>(-1 - source))
                      : operand(op, static_cast<size_t>(source));
  };
  uint32_t next_source = recorded.source_begin;
  for (uint32_t k = 0; k < recorded.count; ++k) {
    const InstructionId source(recorded.first.value + k);
    const uint32_t count = module_->record(source).operand_count;
    repeated_operands_.clear();
    for (uint32_t i = 0; i < count; ++i) repeated_operands_.push_back(at(conversion_sources_[next_source++]));
    const InstructionId made =
        module_->CloneInstruction(frame().computation, source, module_->record(source).name, repeated_operands_);
    module_->SetMetadata(made, metadata_);
  }
  Bind(program_.result(op), at(recorded.result));
  return true;
}

}  // namespace hlokit::stablehlo
