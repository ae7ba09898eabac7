// SPDX-License-Identifier: Apache-2.0
// The types in which operations are computed: conversions before and after operations whose type a target lacks, and
// conversions that only round.
#include <optional>
#include <string_view>
#include <vector>

#include "ir/ops/opcode_set.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/rule_pass.h"
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
  static constexpr OpcodeSet kConversions = {Opcode::kConvert, Opcode::kBitcastConvert, Opcode::kStochasticConvert};
  const bool is_conversion = kConversions.Contains(i.opcode());
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
      return OpcodeSet{Opcode::kIota, Opcode::kRaggedAllToAll}.Contains(opcode);
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

namespace {

OptionInfo DataMovementOption() {
  return {.name = "data-movement",
          .type = OptionInfo::Type::kBool,
          .default_text = "false",
          .doc =
              "widen also operations that only move elements, within a device and between "
              "devices, as XLA does for targets that name none they can do"};
}

OptionInfo FloatOption(std::string_view name, std::string_view default_type, std::string_view doc) {
  return {.name = name,
          .type = OptionInfo::Type::kString,
          .default_text = default_type,
          .doc = doc,
          .choices = {"f8e4m3fn", "f8e5m2", "bf16", "f16", "f32", "f64"}};
}

OptionInfo FromOption(std::string_view default_type) {
  return FloatOption("from", default_type, "the type to replace");
}

OptionInfo ToOption() { return FloatOption("to", "f32", "the type to compute in"); }

}  // namespace

HLOKIT_PASS(Bf16Normalization) {
  return {.name = "bf16-normalization",
          .category = "simplify",
          .summary = "compute bf16 operations in f32",
          .doc =
              "For targets without bf16 arithmetic: operands are widened and results rounded, also those of "
              "the computations that reductions and the like apply, which is the definition of the "
              "operation; but as in XLA, all-reduce and reduce-scatter round their sums once. Not in "
              "fusions.",
          .example = R"(ENTRY e {
  p = bf16[4] parameter(0)
  q = bf16[4] parameter(1)
  ROOT r = bf16[4] multiply(p, q), metadata={op_name="f/mul"}
})",
          .options = {DataMovementOption()},
          .tolerance = 1e-1,
          .create = MakePass<RulesOf<AddBf16NormalizationRules, RewriteScope::kSequential>>};
}

HLOKIT_PASS(SimplifyFpConversions) {
  return {.name = "simplify-fp-conversions",
          .category = "simplify",
          .summary = "remove roundings between conversions of floats",
          .doc =
              "A conversion of a conversion becomes one, or none if the types are equal, though the first one "
              "rounds. As XLA's, except that roundings to 8 bits and fewer stay.",
          .example = R"(ENTRY e {
  p = f32[4] parameter(0)
  a = bf16[4] convert(p), metadata={op_name="f/narrow"}
  b = f32[4] convert(a), metadata={op_name="f/wide"}
  x = f32[4] exponential(b), metadata={op_name="f/exp"}
  c = f16[4] convert(x), metadata={op_name="f/half"}
  d = f64[4] convert(c), metadata={op_name="f/double"}
  ROOT t = (f32[4], f64[4]) tuple(x, d)
})",
          .tolerance = 1e-2,
          .create = MakePass<RulesOf<AddSimplifyFpConversionsRules>>};
}

HLOKIT_PASS(FloatNormalization) {
  return {.name = "float-normalization",
          .category = "simplify",
          .summary = "compute operations in 8-bit floats in f32",
          .doc =
              "For targets without arithmetic in 8-bit floats, for all these types at once; XLA has a pass for "
              "each. Operands are widened and results rounded, also those of the computations that reductions "
              "and the like apply, which is the definition of the operation; but as in XLA, all-reduce and "
              "reduce-scatter round their sums once. Not in fusions. For bf16 see bf16-normalization.",
          .example = R"(ENTRY e {
  p = f8e4m3fn[4] parameter(0)
  q = f8e4m3fn[4] parameter(1)
  r = f8e5m2[4] parameter(2)
  s = f8e4m3fn[4] multiply(p, q), metadata={op_name="f/mul"}
  n = f8e5m2[4] negate(r), metadata={op_name="f/neg"}
  c = pred[4] compare(p, q), direction=LT, metadata={op_name="f/lt"}
  ROOT t = (f8e4m3fn[4], f8e5m2[4], pred[4]) tuple(s, n, c)
})",
          .options = {DataMovementOption()},
          .tolerance = 0.25,
          .create = MakePass<RulesOf<AddFloatNormalizationRules, RewriteScope::kSequential>>};
}

HLOKIT_PASS(ElementTypeConverter) {
  return {.name = "element-type-converter",
          .category = "simplify",
          .summary = "compute operations in another float type",
          .doc =
              "Operations with an operand or result of the one type are computed in the other, between "
              "conversions. Of those that apply a computation, such as reductions and all-reduces, and of "
              "calls and control flow, the operations in the computation are converted instead. As XLA's, "
              "except for copies that are asynchronous and bitcasts, which stay.",
          .example = R"(ENTRY e {
  a = bf16[2,3] parameter(0)
  b = bf16[3,2] parameter(1)
  d = bf16[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/dot"}
  s = bf16[2,2] add(d, d), metadata={op_name="f/add"}
  ROOT t = bf16[2,2] transpose(s), dimensions={1,0}, metadata={op_name="f/transpose"}
})",
          .options = {FromOption("bf16"), ToOption()},
          .tolerance = 1e-1,
          .redefines = {Opcode::kRng},
          .create = MakePass<RulesOf<AddElementTypeConverterRules>>};
}

HLOKIT_PASS(ChangeOpDataType) {
  return {.name = "change-op-data-type",
          .category = "simplify",
          .summary = "compute one kind of operation in another float type",
          .doc =
              "Only if all operands and the result have the type. XLA's takes any set of operations and pairs "
              "of types; this one takes one of each. Nothing changes if both types are the same.",
          .example = R"(ENTRY e {
  a = f16[2,3] parameter(0)
  b = f16[3,2] parameter(1)
  d = f16[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}, metadata={op_name="f/dot"}
  ROOT s = f16[2,2] add(d, d), metadata={op_name="f/add"}
})",
          .options = {FromOption("f16"),
                      ToOption(),
                      {.name = "opcode",
                       .type = OptionInfo::Type::kString,
                       .default_text = "dot",
                       .doc = "of the operations",
                       .choices = ChangeableOpcodeNames(),
                       .choices_text = "an elementwise opcode, dot or convolution"}},
          .tolerance = 2e-2,
          .create = MakePass<RulesOf<AddChangeOpDataTypeRules, RewriteScope::kSequential>>};
}

HLOKIT_PASS(OperandUpcaster) {
  return {.name = "operand-upcaster",
          .category = "simplify",
          .summary = "convert operands of dots to a wider type of the result",
          .doc =
              "For dots and convolutions whose result is wider than their operands. As XLA's, without its "
              "packed 4-bit operands, which stay.",
          .example = R"(ENTRY e {
  a = s8[2,3] parameter(0)
  b = s8[3,2] parameter(1)
  c = bf16[2,3] parameter(2)
  f = f32[3,2] parameter(3)
  g = f16[3,2] parameter(4)
  d = s32[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/int"}
  h = f32[2,2] dot(c, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/float"}
  m = f32[3,3] dot(f, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/mixed"}
  ROOT t = (s32[2,2], f32[2,2], f32[3,3]) tuple(d, h, m)
})",
          .tolerance = 1e-5,
          .create = MakePass<RulesOf<AddOperandUpcasterRules>>};
}

HLOKIT_PASS(ResultCaster) {
  return {.name = "result-caster",
          .category = "simplify",
          .summary = "convert results of dots to a narrower type after the operation",
          .doc =
              "For dots and convolutions whose result is narrower than their operands: computed in the type of "
              "the operands, then rounded. As XLA's, for floats, or integers of one signedness.",
          .example = R"(ENTRY e {
  a = f32[2,3] parameter(0)
  b = f32[3,2] parameter(1)
  ROOT d = bf16[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/dot"}
})",
          .tolerance = 2e-2,
          .create = MakePass<RulesOf<AddResultCasterRules>>};
}

}  // namespace hlokit
