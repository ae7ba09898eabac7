// SPDX-License-Identifier: Apache-2.0
// Expands operations on the representation of elements: parts of real numbers, bitcasts between widths; and inlines
// functions of elements.
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/expanders/expanders.h"

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
                         (i.opcode() == Opcode::kParameter || HasTrait(i.opcode(), kElementwise) ||
                          (i.opcode() == Opcode::kConstant && !i.literal().elided));
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

}  // namespace hlokit
