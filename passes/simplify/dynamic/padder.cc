// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/dynamic/padder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_table.h"
#include "passes/annotations/annotations.h"
#include "passes/rewrite/splat.h"

namespace hlokit {
namespace {

int64_t DimensionOf(Instruction i) {
  const absl::Span<const int64_t> dimensions = i.list_attr(Attr::kDimensions);
  return dimensions.empty() ? 0 : dimensions[0];
}

size_t TotalRank(Shape shape) {
  if (shape.IsArray()) return static_cast<size_t>(shape.rank());
  size_t rank = 0;
  for (Shape leaf : Leaves(shape)) rank += static_cast<size_t>(leaf.rank());
  return rank;
}

}  // namespace

bool IsSizeBoundary(Instruction i) {
  if (i.opcode() != Opcode::kCustomCall) return false;
  const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
  return target == "SliceToDynamic" || target == "PadToStatic";
}

bool UnsetsDimension(Instruction i) {
  if (i.opcode() != Opcode::kSetDimensionSize) return false;
  const int64_t dim = DimensionOf(i);
  const auto size = IntegerConstant(i.operand(1));
  return i.operand(0).shape().is_dynamic(dim) && !i.shape().is_dynamic(dim) && size && *size == i.shape().dim(dim);
}

Padder::Padder(Module* module, const Module* original, const StaticShapes* static_shapes, ComputationId computation,
               Shape result)
    : module_(*module),
      original_(*original),
      static_shapes_(*static_shapes),
      computation_(computation),
      is_entry_(original->computation(computation).is_entry()),
      root_shape_(result),
      builder_(module, computation) {
  builder_.RecordIn(&made_);
}

absl::Status Padder::CannotPad(Instruction i, std::string_view why) const {
  absl::Status status = absl::UnimplementedError(StrCat(i.opcode_text(), " %", i.name(), ": ", why));
  status.SetPayload(kPaddedInstruction, absl::Cord(StrCat(i.id().value)));
  return status;
}

// ---- sizes ----

const Padder::Sizes& Padder::SizesOf(InstructionId id) const {
  static const Sizes* const kNone = new Sizes();
  const auto found = sizes_.find(id.value);
  return found == sizes_.end() ? *kNone : found->second;
}

InstructionId Padder::SizeOf(InstructionId id, int64_t dim) const {
  const Sizes& sizes = SizesOf(id);
  return sizes.empty() ? InstructionId() : sizes[static_cast<size_t>(dim)];
}

void Padder::SetSizes(InstructionId id, Sizes sizes) {
  const bool any = std::any_of(sizes.begin(), sizes.end(), [](InstructionId s) { return s.valid(); });
  if (any) sizes_[id.value] = std::move(sizes);
}

Padder::Sizes Padder::ElementSizes(Instruction element) const {
  const Shape tuple = element.operand(0).shape();
  const Sizes& all = SizesOf(element.operand(0).id());
  const int64_t index = element.int_attr(Attr::kIndex);
  std::ptrdiff_t begin = 0;
  for (int64_t k = 0; k < index; ++k) begin += static_cast<std::ptrdiff_t>(TotalRank(tuple.element(k)));
  const auto size = static_cast<std::ptrdiff_t>(TotalRank(tuple.element(index)));
  return Sizes(all.begin() + begin, all.begin() + begin + size);
}

Padder::Sizes Padder::TupleSizes(Instruction tuple) const {
  Sizes sizes;
  for (Instruction operand : tuple.operands()) {
    const Sizes& own = SizesOf(operand.id());
    sizes.insert(sizes.end(), own.begin(), own.end());
    if (own.empty()) sizes.resize(sizes.size() + TotalRank(operand.shape()));
  }
  return sizes;
}

absl::Status Padder::CheckComplete(Instruction i, Shape shape, const Sizes& sizes) const {
  size_t at = 0;
  for (Shape leaf : Leaves(shape)) {
    for (int64_t d = 0; d < leaf.rank(); ++d, ++at) {
      const bool known = !sizes.empty() && sizes[at].valid();
      if (leaf.is_dynamic(d) && !known) return CannotPad(i, StrCat("the size of dimension ", d, " is not known"));
    }
  }
  return absl::OkStatus();
}

// ---- new instructions ----

InstructionId Padder::Number(ElementType type, int64_t value) {
  Literal literal = Literal::Zeros(shapes().Scalar(type));
  // Little-endian two's complement: narrower types are its low bytes.
  if (IsInteger(type)) std::memcpy(literal.data(), &value, std::min(literal.size_bytes(), sizeof(value)));
  return builder_.MakeConstant(literal);
}

InstructionId Padder::Zero(ElementType type) { return builder_.MakeConstant(Literal::Zeros(shapes().Scalar(type))); }

InstructionId Padder::Binary(Opcode opcode, InstructionId a, InstructionId b) {
  return builder_.MakeLike(opcode, {a, b});
}

InstructionId Padder::WithinBound(Instruction size, int64_t bound) {
  if (const auto value = IntegerConstant(size); value && *value >= 0 && *value <= bound) return size.id();
  // What the pass made has been within its bound before.
  if (size.opcode() == Opcode::kClamp && IntegerConstant(size.operand(0)) == 0 &&
      IntegerConstant(size.operand(2)) == bound) {
    return size.id();
  }
  return builder_.Make(Opcode::kClamp, size.shape(), {Number(0), size.id(), Number(bound)});
}

InstructionId Padder::ValidMask(Shape shape, int64_t dim, InstructionId size) {
  const Shape places = shapes().WithElementType(shape, ElementType::kS32);
  const InstructionId iota = builder_.Make(Opcode::kIota, places, {}, {builder_.Int(Attr::kIotaDimension, dim)});
  const InstructionId end = builder_.MakeSplat(places, size);
  return builder_.MakeCompare(ComparisonDirection::kLt, iota, end);
}

void Padder::Mask(Instruction user, int64_t index, int64_t dim, InstructionId size, InstructionId value) {
  const InstructionId operand = user.operand(index).id();
  const Shape shape = at(operand).shape();
  const InstructionId inside = ValidMask(shape, dim, size);
  const InstructionId outside = builder_.MakeSplat(shape, value);
  module_.ReplaceOperand(user.id(), index, builder_.Make(Opcode::kSelect, shape, {inside, operand, outside}));
  ++masks_;
}

InstructionId Padder::LimitOf(InstructionId limit, ElementType type) {
  const int value_bits = BitsOf(type) - (IsSigned(type) ? 1 : 0);
  // A narrow type has no index beyond a larger limit.
  if (value_bits < 31) limit = Binary(Opcode::kMinimum, limit, Number((int64_t{1} << value_bits) - 1));
  return builder_.MakeConvert(limit, type);
}

void Padder::ClampStart(Instruction user, int64_t index, InstructionId size, int64_t length) {
  const Instruction start = user.operand(index);
  const InstructionId last = LimitOf(Plus(size, -length), start.shape().element_type());
  module_.ReplaceOperand(user.id(), index, Binary(Opcode::kMinimum, start.id(), last));
}

// ---- traversal ----

absl::Status Padder::SetSize(Instruction i) {
  const Shape shape = i.shape();
  Sizes sizes = SizesOf(i.operand(0).id());
  if (sizes.empty()) sizes.resize(static_cast<size_t>(shape.rank()));
  const int64_t dim = DimensionOf(i);
  sizes[static_cast<size_t>(dim)] = shape.is_dynamic(dim) ? WithinBound(i.operand(1), shape.dim(dim)) : InstructionId();
  module_.SetShape(i.id(), StaticOf(shape));
  SetSizes(i.id(), std::move(sizes));
  set_dimension_sizes_.push_back(i.id());
  return absl::OkStatus();
}

absl::Status Padder::SizeConstant(Instruction i) {
  const Shape shape = i.shape();
  const LiteralRecord& value = module_.context().literals[i.literal_id()];
  if (!shape.IsArray() || value.elided) return CannotPad(i, "its sizes are not known");
  Literal literal = Literal::Zeros(StaticOf(shape));
  if (value.size_bytes != 0) std::memcpy(literal.data(), value.data, value.size_bytes);
  const InstructionId constant = builder_.MakeConstant(literal);
  Sizes sizes;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    sizes.push_back(shape.is_dynamic(d) ? Number(shape.dim(d)) : InstructionId());
  }
  SetSizes(constant, std::move(sizes));
  Replace(module_, i.id(), constant);
  return absl::OkStatus();
}

absl::Status Padder::VisitParameter(Instruction i) {
  if (!is_entry_) return Unpack(i);
  return i.shape().IsTuple() ? absl::OkStatus() : ReceiveSizes(i);
}

absl::Status Padder::GetSize(Instruction i) {
  // dynamic-dimension-simplifier handles static dimensions.
  const InstructionId size = SizeOf(i.operand(0).id(), DimensionOf(i));
  if (size.valid()) Replace(module_, i.id(), size);
  return absl::OkStatus();
}

absl::Status Padder::Visit(Instruction i) {
  const Opcode opcode = i.opcode();
  const Shape shape = i.shape();
  if (is_entry_ && i.is_root() && opcode == Opcode::kTuple) return absl::OkStatus();  // for RestoreResults
  bool follows = false;
  for (Instruction operand : i.operands()) follows |= HasSizes(operand);
  if (!follows && !shape.has_dynamic_dims() && !IsSizeBoundary(i)) return absl::OkStatus();
  if (shape.has_unbounded_dims()) return CannotPad(i, "a dimension has no bound");
  SetInsertionPoint(i.id(), i.metadata_id());
  using Rule = absl::Status (Padder::*)(Instruction);
  static constexpr OpcodeRow<Rule> kRows[] = {
      {Opcode::kGetDimensionSize, &Padder::GetSize},
      {Opcode::kSetDimensionSize, &Padder::SetSize},
      {Opcode::kParameter, &Padder::VisitParameter},
      {Opcode::kConstant, &Padder::SizeConstant},
  };
  static constexpr auto kRules = MakeOpcodeHandlers<Rule>(kRows);
  if (const Rule rule = kRules[static_cast<size_t>(opcode)]; rule != nullptr) return (this->*rule)(i);
  if (CallsSequentialCode(opcode)) return VisitCall(i);
  if (opcode == Opcode::kGetTupleElement && !follows && is_entry_ && i.operand(0).opcode() == Opcode::kParameter &&
      shape.IsArray()) {
    return ReceiveSizes(i);
  }
  const bool has_sizes = opcode == Opcode::kDynamicReshape || IsSizeBoundary(i);  // among the operands
  if (!follows && !has_sizes) return CannotPad(i, "its dynamic size is not set by set-dimension-size");
  if (HasTrait(opcode, kControlFlow)) return CannotPad(i, "it calls a computation with them: pad before fusing");
  absl::StatusOr<InferredSizes> followed = InferSizes(i);
  if (!followed.ok()) return followed.status();
  const absl::Status complete = CheckComplete(i, shape, followed->sizes);
  if (!complete.ok()) return complete;
  module_.SetShape(i.id(), StaticOf(shape));
  const InstructionId value = followed->value.valid() ? followed->value : i.id();
  SetSizes(value, std::move(followed->sizes));
  Replace(module_, i.id(), value);
  return absl::OkStatus();
}

absl::Status Padder::Run() {
  for (InstructionId id : PostOrder(module_.computation(computation_))) {
    const absl::Status status = Visit(at(id));
    if (!status.ok()) return status;
  }
  if (root_shape_.has_dynamic_dims()) {
    SetInsertionPoint(InstructionId(), module_.computation(computation_).root().metadata_id());
    const absl::Status status = is_entry_ ? RestoreResults() : PackResult();
    if (!status.ok()) return status;
  }
  for (InstructionId id : set_dimension_sizes_) Replace(module_, id, at(id).operand(0).id());
  // Erase unused sizes.
  for (size_t k = made_.size(); k-- > 0;) {
    const Instruction made = at(made_[k]);
    if (made.record().parent.valid() && !made.has_users() && !made.is_root()) module_.Erase(made_[k]);
  }
  return absl::OkStatus();
}

}  // namespace hlokit
