// SPDX-License-Identifier: Apache-2.0
// Expands operations on the representation of elements: parts of real numbers, bitcasts between widths; and inlines
// functions of elements.
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

// The real part of a real number is the number, the imaginary part zero.
bool PartOfReal(PatternRewriter& rewriter, Instruction i) {
  const Instruction x = i.operand(0);
  if (!IsFloat(x.shape().element_type()) || x.shape() != i.shape() || !rewriter.IsReplaceable(i)) return false;
  if (i.opcode() == Opcode::kReal) return rewriter.Replace(i, x.id());
  rewriter.DropMetadataOfOperands(i);
  const InstructionId zero = rewriter.MakeScalarConstant(i.shape().element_type(), 0);
  return rewriter.Replace(i, rewriter.MakeSplat(i.shape(), zero));
}

// Returns the unsigned integer of this width; nullopt if there is none of whole bytes.
std::optional<ElementType> UnsignedOfWidth(int bits) {
  if (bits == 8) return ElementType::kU8;
  if (bits == 16) return ElementType::kU16;
  if (bits == 32) return ElementType::kU32;
  if (bits == 64) return ElementType::kU64;
  return std::nullopt;
}

// Expands a bitcast-convert that changes the width: shifts of the wide integer, one for each narrow element.
bool BitcastByShifts(PatternRewriter& rewriter, Instruction i) {
  const Instruction x = i.operand(0);
  const ElementType from = x.shape().element_type(), to = i.shape().element_type();
  const int from_bits = BitsOf(from), to_bits = BitsOf(to);
  const std::optional<ElementType> narrow = UnsignedOfWidth(std::min(from_bits, to_bits)),
                                   wide = UnsignedOfWidth(std::max(from_bits, to_bits));
  if (!narrow || !wide || from_bits == to_bits || IsComplex(from) || IsComplex(to) || !rewriter.IsReplaceable(i) ||
      i.shape().has_dynamic_dims()) {
    return false;
  }
  ShapeTable& shapes = rewriter.shapes();
  const auto bitcast = [&](InstructionId value, ElementType type) {
    const Shape shape = shapes.WithElementType(rewriter.shape_of(value), type);
    return shape == rewriter.shape_of(value) ? value : rewriter.Make(Opcode::kBitcastConvert, shape, {value});
  };
  const bool widens = from_bits < to_bits;
  const Shape parts = shapes.Array(*wide, widens ? x.shape().dims() : i.shape().dims());
  const AttrValue last[] = {rewriter.Int(Attr::kIotaDimension, parts.rank() - 1)};
  const InstructionId part = rewriter.Make(Opcode::kIota, parts, {}, last);
  const InstructionId bits =
      rewriter.MakeSplat(parts, rewriter.MakeScalarConstant(*wide, std::min(from_bits, to_bits)));
  const InstructionId shift = rewriter.MakeLike(Opcode::kMultiply, {part, bits});
  if (widens) {
    const InstructionId pieces = rewriter.MakeConvert(bitcast(x.id(), *narrow), *wide);
    const InstructionId shifted = rewriter.MakeLike(Opcode::kShiftLeft, {pieces, shift});
    const ComputationId reducer = rewriter.MakeReducer(Opcode::kOr, *wide);
    const InstructionId none = rewriter.MakeScalarConstant(*wide, 0);
    const InstructionId joined = rewriter.MakeReduce(shifted, none, {parts.rank() - 1}, reducer);
    return rewriter.Replace(i, bitcast(joined, to));
  }
  std::vector<int64_t> dims;
  for (int64_t d = 0; d + 1 < parts.rank(); ++d) dims.push_back(d);
  const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, dims)};
  const InstructionId whole = rewriter.Make(Opcode::kBroadcast, parts, {bitcast(x.id(), *wide)}, attrs);
  const InstructionId pieces = rewriter.MakeLike(Opcode::kShiftRightLogical, {whole, shift});
  return rewriter.Replace(i, bitcast(rewriter.MakeConvert(pieces, *narrow), to));
}

// Replaces a map by the operations of its function, on arrays.
// Functions of maps of functions, each of which is used twice, would grow exponentially.
constexpr int64_t kMaxInlinedInstructions = 10'000;

bool InlineMap(PatternRewriter& rewriter, Instruction map) {
  const Computation function = map.computation_attr(Attr::kToApply);
  if (function.valid() && static_cast<int64_t>(function.instruction_count()) > kMaxInlinedInstructions) return false;
  if (!function.valid() || !rewriter.IsReplaceable(map) || map.shape().has_dynamic_dims()) return false;
  for (Instruction i : function.instructions()) {
    const bool inlines = i.shape().IsScalar() && !i.has_control_edges() &&
                         (i.opcode() == Opcode::kParameter || HasTrait(i.opcode(), kElementwise) || (HasKnownValue(i)));
    if (!inlines) return false;
  }
  absl::flat_hash_map<uint32_t, InstructionId> arrays;
  for (InstructionId id : PostOrder(function)) {
    const Instruction i = rewriter.at(id);
    const Shape shape = rewriter.shapes().WithElementType(map.shape(), i.shape().element_type());
    if (i.opcode() == Opcode::kParameter) {
      arrays[id.value] = map.operand(i.parameter_number()).id();
      continue;
    }
    std::vector<InstructionId> operands;
    for (Instruction operand : i.operands()) operands.push_back(arrays.at(operand.id().value));
    InstructionId array = rewriter.MakeClone(id, operands);
    if (rewriter.at(array).opcode() == Opcode::kConstant) {
      array = rewriter.MakeSplat(shape, array);
    } else {
      rewriter.module().SetShape(array, shape);
    }
    arrays[id.value] = array;
  }
  return rewriter.Replace(map, arrays.at(function.root().id().value));
}

}  // namespace

void AddRealImagExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kReal, Opcode::kImag}, "parts of real numbers expanded", PartOfReal);
}

void AddBitcastDtypesExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kBitcastConvert}, "bitcasts between widths expanded", BitcastByShifts);
}

void AddMapInlinerRules(RewritePatternSet* rules) { rules->Add({Opcode::kMap}, "maps inlined", InlineMap); }

HLOKIT_PASS(MapInliner) {
  return {.name = "map-inliner",
          .category = "expand",
          .summary = "replace maps by the operations of their functions",
          .doc =
              "If these are elementwise, or constants, up to 10,000 of them. XLA's inlines functions of one "
              "operation.",
          .example = R"(each {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  two = f32[] constant(2)
  c = pred[] compare(x, two), direction=LT, metadata={op_name="f/lt"}
  m = f32[] subtract(x, y), metadata={op_name="f/sub"}
  ROOT r = f32[] select(c, m, two), metadata={op_name="f/select"}
}
ENTRY e {
  p = f32[2,3] parameter(0)
  q = f32[2,3] parameter(1)
  ROOT r = f32[2,3] map(p, q), dimensions={0,1}, to_apply=each, metadata={op_name="f/map"}
})",
          .create = MakePass<RulesOf<AddMapInlinerRules>>};
}

HLOKIT_PASS(RealImagExpander) {
  return {.name = "real-imag-expander",
          .category = "expand",
          .summary = "remove real and imaginary parts of real numbers",
          .doc = "As XLA's: the number itself, and zero.",
          .example = R"(ENTRY e {
  p = f32[3] parameter(0)
  x = f32[3] exponential(p), metadata={op_name="f/exp"}
  r = f32[3] real(x), metadata={op_name="f/real"}
  i = f32[3] imag(p), metadata={op_name="f/imag"}
  ROOT t = (f32[3], f32[3]) tuple(r, i)
})",
          .create = MakePass<RulesOf<AddRealImagExpanderRules>>};
}

HLOKIT_PASS(BitcastDtypesExpander) {
  return {.name = "bitcast-dtypes-expander",
          .category = "expand",
          .summary = "expand bitcast-converts that change the width",
          .doc =
              "As shifts of unsigned integers, and a reduction by or over the elements that are joined, for "
              "widths of 8 to 64 bits. XLA's joins slices one by one.",
          .example = R"(ENTRY e {
  p = f32[3] parameter(0)
  q = s16[3,2] constant({{1,-2},{300,4},{-5,6}})
  a = s8[3,4] bitcast-convert(p), metadata={op_name="f/narrow"}
  b = s32[3] bitcast-convert(q), metadata={op_name="f/wide"}
  ROOT t = (s8[3,4], s32[3]) tuple(a, b)
})",
          .create = MakePass<RulesOf<AddBitcastDtypesExpanderRules, RewriteScope::kSequential>>};
}

}  // namespace hlokit
