// SPDX-License-Identifier: Apache-2.0
// The types in which operations are computed: conversions before and after operations whose type a target lacks, and
// conversions that only round.
#include <optional>
#include <string_view>
#include <vector>

#include "passes/simplify/algebraic/compute_type.h"
#include "passes/simplify/algebraic/rule_passes.h"

namespace hlokit {
namespace {

// All floats of 8 bits.
const ComputeType& Fp8() {
  static const ComputeType* const kType = [] {
    auto* type = new ComputeType{{}, ElementType::kF32};
    for (size_t k = 0; k < kElementTypeCount; ++k) {
      const auto element = static_cast<ElementType>(k);
      if (IsFloat(element) && BitsOf(element) == 8) type->narrow.push_back(element);
    }
    return type;
  }();
  return *kType;
}

const ComputeType& Bf16() {
  static const auto* const kType = new ComputeType{{ElementType::kBF16}, ElementType::kF32};
  return *kType;
}

// Rewrites bf16 arithmetic as f32 arithmetic between conversions. Elementwise operations are equal, since results are
// rounded once.
bool Bf16ThroughF32(PatternRewriter& rewriter, Instruction i) {
  return !KeepsElements(i.opcode()) && ComputeIn(rewriter, i, Bf16());
}

bool Fp8ThroughF32(PatternRewriter& rewriter, Instruction i) {
  return !KeepsElements(i.opcode()) && ComputeIn(rewriter, i, Fp8());
}

bool MoveBf16AsF32(PatternRewriter& rewriter, Instruction i) {
  return rewriter.options().Bool("data-movement") && ComputeIn(rewriter, i, Bf16());
}

bool MoveFp8AsF32(PatternRewriter& rewriter, Instruction i) {
  return rewriter.options().Bool("data-movement") && ComputeIn(rewriter, i, Fp8());
}

// Removes roundings to floats of 16 or more bits between two conversions of floats.
bool ConvertThroughFloat(PatternRewriter& rewriter, Instruction convert) {
  const Instruction inner = convert.operand(0);
  if (inner.opcode() != Opcode::kConvert) return false;
  const Instruction source = inner.operand(0);
  for (Instruction value : {convert, inner, source}) {
    const ElementType type = value.shape().element_type();
    if (!IsFloat(type) || BitsOf(type) < 16) return false;
  }
  if (source.shape() == convert.shape()) return rewriter.Replace(convert, source.id(), {inner});
  return rewriter.ReplaceWithNew(convert, Opcode::kConvert, {source.id()}, {}, {inner});
}

// The types of the options `from` and `to`; nullopt if they are equal.
struct TypePair {
  ElementType from, to;
};
std::optional<TypePair> OptionTypes(const PatternRewriter& rewriter) {
  const std::optional<ElementType> from = ElementTypeFromText(rewriter.options().String("from")),
                                   to = ElementTypeFromText(rewriter.options().String("to"));
  if (!from || !to || *from == *to) return std::nullopt;
  return TypePair{*from, *to};
}

bool ConvertElementType(PatternRewriter& rewriter, Instruction i) {
  const std::optional<TypePair> types = OptionTypes(rewriter);
  const bool is_conversion = i.opcode() == Opcode::kConvert || i.opcode() == Opcode::kBitcastConvert ||
                             i.opcode() == Opcode::kStochasticConvert;
  return types && !is_conversion && ComputeIn(rewriter, i, {{types->from}, types->to});
}

// As ConvertElementType, for one opcode, if all operands and the result have the type.
bool ChangeDataType(PatternRewriter& rewriter, Instruction i) {
  const std::optional<TypePair> types = OptionTypes(rewriter);
  if (!types || ToString(i.opcode()) != rewriter.options().String("opcode") || !i.shape().IsArray()) return false;
  bool all = i.shape().element_type() == types->from;
  for (Instruction operand : i.operands()) all &= operand.shape().element_type() == types->from;
  return all && ComputeIn(rewriter, i, {{types->from}, types->to});
}

// Returns the wider type of the operands of a dot or convolution, if result and operands are all floats, or all
// integers of the same signedness, and not packed.
std::optional<ElementType> OperandType(Instruction i) {
  if (i.operand_count() != 2 || !i.shape().IsArray()) return std::nullopt;
  for (int64_t precision : i.list_attr(Attr::kOperandPrecision)) {
    // Two elements in one.
    if (precision == static_cast<int64_t>(Precision::kPackedNibble)) return std::nullopt;
  }
  const ElementType result = i.shape().element_type();
  const auto fits = [&](ElementType type) {
    return (IsFloat(type) && IsFloat(result)) || (IsSigned(type) && IsSigned(result)) ||
           (IsUnsigned(type) && IsUnsigned(result));
  };
  const ElementType a = i.operand(0).shape().element_type(), b = i.operand(1).shape().element_type();
  if (!fits(a) || !fits(b)) return std::nullopt;
  return BitsOf(a) < BitsOf(b) ? b : a;
}

bool UpcastOperands(PatternRewriter& rewriter, Instruction i) {
  const std::optional<ElementType> type = OperandType(i);
  const ElementType result = i.shape().IsArray() ? i.shape().element_type() : ElementType::kPred;
  if (!type || BitsOf(*type) >= BitsOf(result) || !rewriter.IsReplaceable(i)) return false;
  const InstructionId operands[] = {rewriter.MakeConvert(i.operand(0).id(), result),
                                    rewriter.MakeConvert(i.operand(1).id(), result)};
  return rewriter.ReplaceWithNew(i, i.opcode(), operands, OwnAttrs(i));
}

bool CastResult(PatternRewriter& rewriter, Instruction i) {
  const std::optional<ElementType> type = OperandType(i);
  if (!type || BitsOf(*type) <= BitsOf(i.shape().element_type()) || !rewriter.IsReplaceable(i)) return false;
  const Shape wide = rewriter.shapes().WithElementType(i.shape(), *type);
  const InstructionId operands[] = {i.operand(0).id(), i.operand(1).id()};
  return rewriter.ReplaceWithNew(i, Opcode::kConvert, {rewriter.Make(i.opcode(), wide, operands, OwnAttrs(i))});
}

std::vector<Opcode> OpcodesWith(bool (*property)(Opcode)) {
  std::vector<Opcode> opcodes;
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    if (property(static_cast<Opcode>(i))) opcodes.push_back(static_cast<Opcode>(i));
  }
  return opcodes;
}

std::vector<Opcode> ElementwiseOpcodes() {
  return OpcodesWith([](Opcode opcode) { return HasTrait(opcode, kElementwise); });
}

// Operations that move elements, and select.
bool Moves(Opcode opcode) {
  switch (InfoOf(opcode).elements) {
    case ElementSource::kMoved:
    case ElementSource::kUpdated:
    case ElementSource::kConcatenated:
    case ElementSource::kSelected:
    case ElementSource::kCommunicated:
      return true;
    case ElementSource::kComputed:
      return opcode == Opcode::kIota || opcode == Opcode::kRaggedAllToAll;
    case ElementSource::kClamped:
    case ElementSource::kConverted:
      return false;
  }
  return false;
}

std::vector<Opcode> MovingOpcodes() { return OpcodesWith(Moves); }
std::vector<Opcode> CombiningOpcodes() {
  return OpcodesWith([](Opcode opcode) { return HasTrait(opcode, kCombines); });
}

}  // namespace

void AddBf16NormalizationRules(RewritePatternSet* rules) {
  for (Opcode opcode : ElementwiseOpcodes()) {
    rules->Add({opcode}, "operations in bf16 done in f32", Bf16ThroughF32);
  }
  for (Opcode opcode : CombiningOpcodes()) {
    rules->Add({opcode}, "reductions and products of bf16 done in f32", Bf16ThroughF32);
  }
  for (Opcode opcode : MovingOpcodes()) rules->Add({opcode}, "movements of bf16 done in f32", MoveBf16AsF32);
}

void AddFloatNormalizationRules(RewritePatternSet* rules) {
  for (Opcode opcode : ElementwiseOpcodes()) {
    rules->Add({opcode}, "operations in 8-bit floats done in f32", Fp8ThroughF32);
  }
  for (Opcode opcode : CombiningOpcodes()) {
    rules->Add({opcode}, "reductions and products of 8-bit floats done in f32", Fp8ThroughF32);
  }
  for (Opcode opcode : MovingOpcodes()) rules->Add({opcode}, "movements of 8-bit floats done in f32", MoveFp8AsF32);
}

std::vector<Opcode> ChangeableOpcodes() {
  std::vector<Opcode> opcodes = ElementwiseOpcodes();
  opcodes.insert(opcodes.end(), {Opcode::kDot, Opcode::kConvolution});
  return opcodes;
}

void AddSimplifyFpConversionsRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kConvert}, "roundings between conversions removed", ConvertThroughFloat);
}

void AddElementTypeConverterRules(RewritePatternSet* rules) {
  for (Opcode opcode : ElementwiseOpcodes()) {
    rules->Add({opcode}, "operations done in another type", ConvertElementType);
  }
  // Of operations that apply computations, these are converted instead.
  rules->Add({Opcode::kBroadcast, Opcode::kConcatenate, Opcode::kConvolution, Opcode::kDot, Opcode::kDynamicSlice,
              Opcode::kDynamicUpdateSlice, Opcode::kGather, Opcode::kIota, Opcode::kPad, Opcode::kReshape,
              Opcode::kReverse, Opcode::kSlice, Opcode::kTranspose},
             "operations done in another type", ConvertElementType);
  rules->Add({Opcode::kAllGather, Opcode::kAllToAll, Opcode::kBatchNormGrad, Opcode::kBatchNormInference,
              Opcode::kBatchNormTraining, Opcode::kCholesky, Opcode::kCollectiveBroadcast, Opcode::kCollectivePermute,
              Opcode::kRaggedAllToAll, Opcode::kRng, Opcode::kTriangularSolve},
             "normalizations, collectives and random numbers done in another type", ConvertElementType);
}

std::vector<std::string_view> ChangeableOpcodeNames() {
  std::vector<std::string_view> names;
  for (Opcode opcode : ChangeableOpcodes()) names.push_back(ToString(opcode));
  return names;
}

void AddChangeOpDataTypeRules(RewritePatternSet* rules) {
  for (Opcode opcode : ChangeableOpcodes()) rules->Add({opcode}, "types of operations changed", ChangeDataType);
}

void AddOperandUpcasterRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDot, Opcode::kConvolution}, "operands converted to the type of the result", UpcastOperands);
}

void AddResultCasterRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDot, Opcode::kConvolution}, "results converted after the operation", CastResult);
}

}  // namespace hlokit
