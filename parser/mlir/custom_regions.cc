// SPDX-License-Identifier: Apache-2.0
// Custom forms with regions: reductions, loops, scans, computations of the sdy dialect.
#include "parser/mlir/operation_parser.h"

namespace hlokit::mlir {

// (%a init: %b), (%c init: %d)
bool OperationParser::ReduceOperands(int64_t* pairs) {
  std::vector<OperandUse> inits;
  *pairs = 0;
  do {
    if (!in_.Expect('(', "before an input") || !ParseOperand()) return false;
    if (!in_.TryConsumeWord("init")) return in_.ErrorHere("expected 'init'");
    if (!in_.Expect(':') || !ParseOperand() || !in_.Expect(')', "after an initial value")) return false;
    inits.push_back(operands_.back());
    operands_.pop_back();
    ++*pairs;
  } while (in_.TryConsume(','));
  operands_.insert(operands_.end(), inits.begin(), inits.end());
  return true;
}

// The region of `applies stablehlo.add`.
bool OperationParser::MakeReducer(OpKind applied) {
  NodeTable& nodes = m_.nodes;
  const NodeId input = operand_types_.size() > op().operand_types ? operand_types_[op().operand_types] : NodeId();
  if (!input.valid() || nodes.kind(input) != NodeKind::kTensorType) return ErrorAtOp("expected a tensor to reduce");
  const NodeId scalar = nodes.Tensor({}, nodes.child(input, 0));
  for (int i = 0; i < 2; ++i) arguments_.push_back({"", 0, scalar, NodeId()});
  OpenRegionHere();
  const Block& block = m_.blocks[regions_.back().block.value];
  const uint32_t offset = op().offset, size = op().name_size;
  for (OpKind kind : {applied, OpKind::kStablehloReturn}) {
    ops_.push_back({});
    OpenOperation& inner = op();
    inner.definition = &DefinitionOf(kind);
    inner.name = nodes.strings().Intern(inner.definition->name);
    inner.offset = offset;
    inner.name_size = size;
    inner.results = results_.size();
    inner.operands = operands_.size();
    inner.attributes = attributes_.size();
    inner.regions = region_list_.size();
    inner.operand_types = operand_types_.size();
    inner.result_types = result_types_.size();
    if (kind == applied) {
      operands_.push_back({ValueId(block.argument_begin), offset, size});
      operands_.push_back({ValueId(block.argument_begin + 1), offset, size});
      result_types_.push_back(scalar);
    } else {
      operands_.push_back({ValueId(static_cast<uint32_t>(m_.values.size() - 1)), offset, size});
    }
    if (!FinishOperation(/*with_location=*/false)) return false;
  }
  const BlockId made = regions_.back().block;
  CloseRegion();
  op().reducer = made;
  return true;
}

OperationParser::Flow OperationParser::CustomReduce() {
  if (op().state == 2) return Flow::kDone;
  if (!ReduceOperands(&op().number)) return Flow::kError;
  const OpDefinition* applied = nullptr;
  if (in_.TryConsumeWord("applies")) {
    applied = FindDefinition(in_.Word());
    if (applied == nullptr || !IsCommutativeReducer(applied->kind)) {
      in_.ErrorHere(
          "expected the inner-op to be a commutative binary-op from the stablehlo dialect, with zero region, producing "
          "single result");
      return Flow::kError;
    }
  }
  if (!in_.TryConsumeWord("across") || !in_.TryConsumeWord("dimensions")) {
    in_.ErrorHere("expected 'across dimensions'");
    return Flow::kError;
  }
  std::vector<int64_t> dimensions;
  if (!in_.Expect('=') || !IntegerList(&dimensions)) return Flow::kError;
  if (!AddAttribute("dimensions", m_.nodes.DenseArray(dimensions, 64), true)) return Flow::kError;
  if (in_.Peek() == '{' && !ParseAttributeDictionary()) return Flow::kError;
  if (!in_.Expect(':', "and a function type") || !ParseFunctionType()) return Flow::kError;
  if (applied != nullptr) return MakeReducer(applied->kind) ? Flow::kDone : Flow::kError;
  if (!in_.TryConsumeWord("reducer")) {
    in_.ErrorHere("expected 'reducer'");
    return Flow::kError;
  }
  std::vector<PendingArgument> accumulators;
  for (int64_t i = 0; i < op().number; ++i) {
    PendingArgument pair[2] = {};
    if (!in_.Expect('(', "before the arguments of a reducer")) return Flow::kError;
    for (int k = 0; k < 2; ++k) {
      if (k == 1 && !in_.Expect(',')) return Flow::kError;
      if (!ParseArgument(&pair[k])) return Flow::kError;
      if (in_.PeekWord() == "loc" && !ParseLocation(&pair[k].location)) return Flow::kError;
    }
    if (!in_.Expect(')', "after the arguments of a reducer")) return Flow::kError;
    arguments_.push_back(pair[0]);
    accumulators.push_back(pair[1]);
  }
  arguments_.insert(arguments_.end(), accumulators.begin(), accumulators.end());
  if (!in_.Expect('{', "before the body of a reducer")) return Flow::kError;
  op().state = 2;
  has_arguments_ = true;
  return OpenedRegion();
}

// Parses `%name = operand`.
bool OperationParser::ParseAssignedArgument(PendingArgument* argument) {
  *argument = {};
  argument->offset = in_.Offset();
  if (!in_.Expect('%', "before the name of an argument")) return false;
  argument->name = in_.SuffixName();
  return in_.Expect('=', "after the name of an argument") && ParseOperand();
}

OperationParser::Flow OperationParser::CustomWhile() {
  if (op().state == 2) return Flow::kDone;
  std::vector<PendingArgument>& names = op().names;
  if (op().state == 0) {
    if (!in_.Expect('(', "before operands")) return Flow::kError;
    if (!in_.TryConsume(')')) {
      do {
        if (!ParseAssignedArgument(&names.emplace_back())) return Flow::kError;
      } while (in_.TryConsume(','));
      if (!in_.Expect(')', "after operands")) return Flow::kError;
    }
    if (!names.empty()) {
      if (!in_.Expect(':', "and types") || !ParseTypeList(&operand_types_)) return Flow::kError;
    }
    op().has_types = true;
    const size_t types = operand_types_.size() - op().operand_types;
    if (types != names.size()) {
      ErrorCustom(StrCat("expected as many input types as operands (expected ", names.size(), " got ", types, ")"));
      return Flow::kError;
    }
    for (size_t i = 0; i < types; ++i) {
      names[i].type = operand_types_[op().operand_types + i];
      result_types_.push_back(names[i].type);
    }
    if (in_.PeekWord() == "attributes") {
      in_.Word();
      if (!ParseAttributeDictionary()) return Flow::kError;
    }
    if (!in_.TryConsumeWord("cond")) {
      in_.ErrorHere("expected 'cond'");
      return Flow::kError;
    }
  } else {
    if (!in_.TryConsumeWord("do")) {
      in_.ErrorHere("expected 'do'");
      return Flow::kError;
    }
  }
  ++op().state;
  arguments_ = names;
  has_arguments_ = true;
  if (!in_.Expect('{', "to begin a region")) return Flow::kError;
  return OpenedRegion();
}

OperationParser::Flow OperationParser::CustomScan() {
  NodeTable& nodes = m_.nodes;
  const NodeId i32 = nodes.IntegerType(32);
  if (op().state == 0) {
    if (!in_.Expect('(', "before inputs") || !ParseOperands(false) || !in_.Expect(')', "after inputs")) {
      return Flow::kError;
    }
    op().number = static_cast<int64_t>(operand_count());
    if (!in_.TryConsumeWord("inits") || !in_.Expect('(') || !ParseOperands(false) || !in_.Expect(')')) {
      in_.ErrorHere("expected inits(...)");
      return Flow::kError;
    }
    int64_t dimension = 0;
    if (!in_.TryConsumeWord("dimension") || !in_.Expect('=') || !in_.Integer(&dimension)) {
      in_.ErrorHere("expected dimension=");
      return Flow::kError;
    }
    if (!AddAttribute("dimension", nodes.Integer(dimension, nodes.IntegerType(64)), true)) return Flow::kError;
    if (in_.TryConsumeWord("attributes") && !ParseAttributeDictionary()) return Flow::kError;
    if (!in_.Expect('{', "to begin a region")) return Flow::kError;
    op().state = 1;
    return OpenedRegion();
  }
  if (!in_.Expect(':', "and a function type") || !ParseFunctionType()) return Flow::kError;
  const auto inits = static_cast<int64_t>(operand_count()) - op().number;
  const auto results = static_cast<int64_t>(result_types_.size() - op().result_types);
  const int64_t operand_sizes[] = {op().number, inits};
  const int64_t result_sizes[] = {results - inits, inits};
  const bool good =
      AddAttribute("operandSegmentSizes", nodes.Make(NodeKind::kDenseArray, "", operand_sizes, {&i32, 1}), true) &&
      AddAttribute("resultSegmentSizes", nodes.Make(NodeKind::kDenseArray, "", result_sizes, {&i32, 1}), true);
  return good ? Flow::kDone : Flow::kError;
}

OperationParser::Flow OperationParser::CustomFor() {
  if (op().state == 1) return in_.Peek() != '{' || ParseAttributeDictionary() ? Flow::kDone : Flow::kError;
  PendingArgument index{};
  index.offset = in_.Offset();
  if (!in_.Expect('%', "before the name of an induction variable")) return Flow::kError;
  index.name = in_.SuffixName();
  if (!in_.Expect('=', "after the name of an induction variable") || !ParseOperand()) return Flow::kError;
  for (std::string_view word : {"to", "step"}) {
    if (!in_.TryConsumeWord(word)) return in_.ErrorHere(StrCat("expected '", word, "'")), Flow::kError;
    if (!ParseOperand()) return Flow::kError;
  }
  index.type = operand_type(0);
  arguments_.push_back(index);
  if (in_.TryConsumeWord("iter_args")) {
    std::vector<PendingArgument> carried;
    if (!in_.Expect('(', "before operands")) return Flow::kError;
    do {
      if (!ParseAssignedArgument(&carried.emplace_back())) return Flow::kError;
    } while (in_.TryConsume(','));
    if (!in_.Expect(')', "after operands") || !in_.Expect("->", "before the types of results")) return Flow::kError;
    const bool parenthesized = in_.TryConsume('(');
    if (!ParseTypeList(&result_types_) || (parenthesized && !in_.Expect(')', "after the types of results"))) {
      return Flow::kError;
    }
    if (result_types_.size() - op().result_types != carried.size()) {
      ErrorCustom(StrCat("expected ", carried.size(), " results"));
      return Flow::kError;
    }
    for (size_t i = 0; i < carried.size(); ++i) {
      carried[i].type = result_types_[op().result_types + i];
      arguments_.push_back(carried[i]);
    }
  }
  if (in_.TryConsume(':')) {
    arguments_[0].type = nodes_.ParseType();
    if (!arguments_[0].type.valid()) return Flow::kError;
  }
  if (!arguments_[0].type.valid()) return ErrorCustom("has a bound without a type"), Flow::kError;
  if (!in_.Expect('{', "to begin a region")) return Flow::kError;
  op().state = 1;
  has_arguments_ = true;
  return OpenedRegion();
}

// (%a) in_shardings=[...] out_shardings=[...] manual_axes={...} (%b: T) { ... } : types
OperationParser::Flow OperationParser::CustomManual(bool named) {
  if (op().state == 0) {
    if (named) {
      std::string name;
      if (!in_.Expect('<') || !in_.String(&name) || !in_.Expect('>')) return Flow::kError;
      if (!AddAttribute("name", m_.nodes.String(name), true)) return Flow::kError;
    }
    if (!in_.Expect('(', "before operands") || !ParseOperands(false) || !in_.Expect(')', "after operands")) {
      return Flow::kError;
    }
    for (std::string_view name : {"in_shardings", "out_shardings", "manual_axes"}) {
      if (!in_.TryConsumeWord(name)) {
        if (named) continue;
        ErrorCustom(StrCat("expected '", name, "='"));
        return Flow::kError;
      }
      if (!in_.Expect('=') || !AddAttribute(name, ParseVerbatimAxes(name), true)) return Flow::kError;
    }
    if (!in_.Expect('(', "before the arguments of a region")) return Flow::kError;
    if (!in_.TryConsume(')')) {
      do {
        PendingArgument argument{};
        if (!ParseArgument(&argument)) return Flow::kError;
        if (in_.PeekWord() == "loc" && !ParseLocation(&argument.location)) return Flow::kError;
        arguments_.push_back(argument);
      } while (in_.TryConsume(','));
      if (!in_.Expect(')', "after the arguments of a region")) return Flow::kError;
    }
    if (!in_.Expect('{', "to begin a region")) return Flow::kError;
    op().state = 1;
    has_arguments_ = true;
    return OpenedRegion();
  }
  if (in_.Peek() == '{' && !ParseAttributeDictionary()) return Flow::kError;
  return in_.Expect(':', "and a function type") && ParseFunctionType() ? Flow::kDone : Flow::kError;
}

OperationParser::Flow OperationParser::CustomRegions() {
  if (op().state == 0) {
    if (!in_.TryConsume('(')) return Flow::kDone;
  } else if (!in_.TryConsume(',')) {
    return in_.Expect(')', "after regions") ? Flow::kDone : Flow::kError;
  }
  op().state = 1;
  return in_.Expect('{', "to begin a region") ? OpenedRegion() : Flow::kError;
}

}  // namespace hlokit::mlir
