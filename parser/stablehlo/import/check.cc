// SPDX-License-Identifier: Apache-2.0
// Verification by HLO's shape inference: converts each operation, and keeps the errors of inference alone.
#include <algorithm>

#include "parser/stablehlo/import/converter.h"

namespace hlokit::stablehlo {

void CheckByInference(const mlir::Module& program, DiagnosticSink* sink) {
  Converter(program, {}, sink, nullptr).Check();
}

// For each value and operation the number of those before it that cannot be checked.
void Converter::CountUnchecked() {
  const auto is_static = [&](mlir::NodeId type) { return IsStatic(type); };
  dynamic_values_.push_back(0);
  array_values_.push_back(0);
  for (const mlir::Value& value : program_.values) {
    const bool array = nodes().kind(value.type) == mlir::NodeKind::kTensorType && !nodes().ints(value.type).empty();
    dynamic_values_.push_back(dynamic_values_.back() + (is_static(value.type) ? 0 : 1));
    array_values_.push_back(array_values_.back() + (array ? 1 : 0));
  }
  dynamic_operations_.push_back(0);
  for (const Op& op : program_.operations) {
    const absl::Span<const mlir::ValueId> operands = program_.operands_of(op);
    const bool all = std::all_of(operands.begin(), operands.end(),
                                 [&](mlir::ValueId value) { return value.valid() && is_static(program_.type(value)); });
    dynamic_operations_.push_back(dynamic_operations_.back() + (all ? 0 : 1));
  }
}

bool Converter::IsStatic(mlir::NodeId type) {
  if (type.value >= static_types_.size()) static_types_.resize(type.value + 1, 2);
  uint8_t& known = static_types_[type.value];
  if (known == 2) {
    const absl::StatusOr<Shape> shape = ShapeOfType(type);
    known = shape.ok() && !shape->has_dynamic_dims() ? 1 : 0;
  }
  return known == 1;
}

void Converter::Check() {
  warned_of_attributes_ = true;  // which the conversion does
  CountUnchecked();
  for (uint32_t i = 0; i < program_.operations.size(); ++i) {
    if (program_.kind(mlir::OperationId(i)) != OpKind::kFuncFunc || sink_->limit_reached()) continue;
    OpenForCheck(mlir::OperationId(i));
    while (!frames_.empty()) CheckStep();
  }
}

void Converter::OpenForCheck(mlir::OperationId id) {
  const Op& function = program_.op(id);
  const mlir::BlockId block =
      function.region_count == 0 ? mlir::BlockId() : program_.block(program_.regions_of(function)[0]);
  if (!block.valid()) return;
  const mlir::Block& entry = program_.blocks[block.value];
  frames_.push_back({FrameKind::kFunction,
                     module_->AddComputation(module_->UniqueComputationName("check")),
                     entry.first,
                     id,
                     {},
                     {},
                     {},
                     {},
                     true});
  int64_t number = 0;
  for (uint32_t i = 0; i < entry.argument_count; ++i) {
    const mlir::ValueId argument = program_.argument(entry, i);
    const absl::StatusOr<Shape> shape = ShapeOfType(program_.type(argument));
    if (!shape.ok()) continue;
    const Result made = b().Parameter(number++, *shape, "p");
    if (made.ok()) Bind(argument, *made);
  }
}

void Converter::MakeUnknown(const Op& op) {
  const bool returns = op.result_count == 0 && op.region_count == 0 && !op.next.valid();
  if (returns && frame().kind != FrameKind::kFunction) {
    // Of a value from outside, or one that stands for an element, only the type is known here.
    std::vector<InstructionId> results;
    for (mlir::ValueId value : program_.operands_of(op)) {
      const absl::StatusOr<Shape> shape = value.valid() ? ShapeOfType(program_.type(value)) : Invalid("no value");
      if (!shape.ok()) return;
      results.push_back(b().Make(Opcode::kCustomCall, *shape, {}, {String(Attr::kCustomCallTarget, "unknown")}));
    }
    if (frame().kind == FrameKind::kLoop && frame().is_body) {
      results.insert(results.end(), frame().extra_results.begin(), frame().extra_results.end());
    }
    module_->SetRoot(frame().computation, results.size() == 1 ? results[0] : b().MakeTuple(results));
    return;
  }
  for (size_t i = 0; i < op.result_count; ++i) {
    const absl::StatusOr<Shape> shape = ResultShape(op, i);
    if (!shape.ok()) continue;
    Bind(program_.result(op, i),
         b().Make(Opcode::kCustomCall, *shape, {}, {String(Attr::kCustomCallTarget, "unknown")}));
  }
}

// Returns true if all types are static ones of HLO, and the values of the operands are known.
bool Converter::CanCheck(const Op& op) {
  if (op.definition == nullptr || (op.definition->dialect != "stablehlo" && op.definition->dialect != "chlo"))
    return false;
  if (OpcodeOf(op) == Opcode::kCall) return false;
  // Forms that HLO has not, or not with these types.
  static constexpr OpKind kUnchecked[] = {OpKind::kChloRaggedDot, OpKind::kStablehloEinsum,
                                          OpKind::kStablehloCustomCall, OpKind::kStablehloSetDimensionSize};
  // StableHLO's reducers may take arrays.
  static constexpr OpKind kReductions[] = {OpKind::kStablehloReduce, OpKind::kStablehloReduceWindow,
                                           OpKind::kStablehloAllReduce, OpKind::kStablehloReduceScatter,
                                           OpKind::kStablehloCollectiveReduce};
  const OpKind kind = op.kind();
  const auto is_one_of = [kind](absl::Span<const OpKind> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  if (is_one_of(kUnchecked)) return false;
  if (op.operand_count > 1 && (kind == OpKind::kStablehloAllGather || kind == OpKind::kStablehloAllToAll)) return false;
  for (mlir::ValueId value : program_.operands_of(op)) {
    if (!value.valid() || !IsStatic(program_.type(value)) || (!values_[value.value].valid() && !IsConstant(value))) {
      return false;
    }
  }
  for (size_t i = 0; i < op.result_count; ++i) {
    if (!IsStatic(program_.type(program_.result(op, i)))) return false;
  }
  for (mlir::RegionId id : program_.regions_of(op)) {
    const mlir::Region& region = program_.regions[id.value];
    if (dynamic_values_[region.value_begin] != dynamic_values_[region.value_end] ||
        dynamic_operations_[region.operation_begin] != dynamic_operations_[region.operation_end]) {
      return false;
    }
    if (is_one_of(kReductions) && array_values_[region.value_begin] != array_values_[region.value_end]) return false;
  }
  return true;
}

void Converter::CheckStep() {
  if (!frame().op.valid()) {
    const bool function = frame().kind == FrameKind::kFunction;
    if (!module_->record(frame().computation).root.valid()) {
      module_->SetRoot(frame().computation, b().MakeTuple({}));
    }
    const bool good = CloseFrame().ok();
    if (!good && !function && !frames_.empty()) frame().computations.push_back(ComputationId());
    return;
  }
  const Op& op = program_.op(frame().op);
  const bool returns = op.definition != nullptr && op.result_count == 0 && op.region_count == 0;
  if (!CanCheck(op) && !(returns && op.kind() == OpKind::kFuncReturn)) {
    MakeUnknown(op);
    frame().op = op.next;
    frame().computations.clear();
    return;
  }
  if (frame().computations.size() < op.region_count && op.kind() != OpKind::kStablehloComposite) {
    constexpr size_t kMaxDepth = 1 << 12;
    if (frames_.size() < kMaxDepth && OpenRegion(op, frame().computations.size()).ok()) return;
    MakeUnknown(op);
    frame().op = op.next;
    frame().computations.clear();
    return;
  }
  absl::Status status = PrepareOperands(op);
  if (status.ok()) {
    status = Dispatch(op);
    const std::string message(status.message().data(), status.message().size());
    if (!status.ok() && message.find(kInferenceError) != std::string::npos) {
      sink_->Error(DiagnosticKind::kInference, program_.range(op), message);
    }
  }
  if (!status.ok()) MakeUnknown(op);
  frame().op = op.next;
  frame().computations.clear();
}

}  // namespace hlokit::stablehlo
