#include "passes/simplify/dynamic_padder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ir/attribute_views.h"
#include "ir/str_cat.h"
#include "ir/traversal.h"
#include "passes/annotations/annotations.h"

namespace hlokit {
namespace {

bool IsDynamic(Instruction i) { return i.shape().has_dynamic_dims(); }

int64_t DimensionOf(Instruction i) {
  const absl::Span<const int64_t> dimensions = i.list_attr(Attr::kDimensions);
  return dimensions.empty() ? 0 : dimensions[0];
}

// The sizes that results of a computation have in the end are set there: at its root, or at the elements of a tuple
// there. Those instructions are dynamic before and after.
std::vector<InstructionId> ResultsOf(Computation c) {
  std::vector<InstructionId> results;
  const auto add = [&](Instruction i) {
    while (i.opcode() == Opcode::kSetDimensionSize && IsDynamic(i)) {
      results.push_back(i.id());
      i = i.operand(0);
    }
  };
  const Instruction root = c.root();
  add(root);
  if (root.opcode() != Opcode::kTuple) return results;
  results.push_back(root.id());
  for (Instruction element : root.operands()) add(element);
  return results;
}

bool HasWork(Computation c) {
  const std::vector<InstructionId> results = ResultsOf(c);
  const auto is_result = [&](InstructionId id) {
    return std::find(results.begin(), results.end(), id) != results.end();
  };
  for (Instruction i : c.instructions()) {
    if (is_result(i.id())) {
      // Others may see the size that is set at the end.
      for (const auto use : i.uses()) {
        if (!is_result(use.user.id())) return true;
      }
      continue;
    }
    if (IsDynamic(i)) return true;
  }
  return false;
}

class Padder {
 public:
  Padder(Module* module, Computation c) : module_(*module), computation_(c.id()) {}

  absl::Status Run();
  int64_t settings() const { return static_cast<int64_t>(settings_.size()); }
  int64_t masks() const { return masks_; }

 private:
  // By dimension: a scalar s32, or none where the dimension is static.
  using Sizes = std::vector<InstructionId>;

  Instruction at(InstructionId id) const { return module_.instruction(id); }
  ShapeTable& shapes() const { return module_.context().shapes; }
  Shape StaticOf(Shape array) const { return shapes().Array(array.element_type(), array.dims(), {}, array.layout()); }
  absl::Status CannotPad(Instruction i, std::string_view why) const {
    return absl::UnimplementedError(StrCat(i.opcode_text(), " %", i.name(), ": ", why));
  }

  // Of an instruction that has been visited; empty if all its dimensions are static.
  const Sizes& SizesOf(InstructionId id) const {
    static const Sizes* const kNone = new Sizes();
    const auto found = sizes_.find(id.value);
    return found == sizes_.end() ? *kNone : found->second;
  }
  InstructionId SizeOf(InstructionId id, int64_t dim) const {
    const Sizes& sizes = SizesOf(id);
    return sizes.empty() ? InstructionId() : sizes[static_cast<size_t>(dim)];
  }
  bool HasSizes(Instruction i) const { return !SizesOf(i.id()).empty(); }
  void SetSizes(InstructionId id, Sizes sizes) {
    const bool any = std::any_of(sizes.begin(), sizes.end(), [](InstructionId s) { return s.valid(); });
    if (any) sizes_[id.value] = std::move(sizes);
  }

  absl::Status Visit(Instruction i);
  void SetSize(Instruction i);
  void GetSize(Instruction i);
  // The sizes of the result, as they follow from those of the operands; masks what the instruction combines.
  absl::StatusOr<Sizes> Follow(Instruction i);
  absl::StatusOr<Sizes> FollowReshape(Instruction i);
  absl::StatusOr<Sizes> FollowReduce(Instruction i);
  absl::StatusOr<Sizes> FollowDot(Instruction i);
  // `result` with the dynamic dimensions of `shape`, which `sizes` are of.
  absl::StatusOr<InstructionId> Restored(InstructionId result, Shape shape);
  absl::Status RestoreResults();

  // New instructions stand before `user` and for it.
  InstructionId Make(InstructionId user, Opcode opcode, Shape shape, absl::Span<const InstructionId> operands,
                     absl::Span<const AttrValue> attrs = {}, uint32_t payload = 0);
  // Puts `value` into operand `index` of `user` behind the first `size` places of dimension `dim`.
  void Mask(InstructionId user, int64_t index, int64_t dim, InstructionId size, InstructionId value);
  InstructionId Zero(InstructionId user, ElementType type);

  Module& module_;
  ComputationId computation_;
  absl::flat_hash_map<uint32_t, Sizes> sizes_;
  Shape root_shape_;                     // as it was
  std::vector<InstructionId> settings_;  // of sizes, which go in the end
  int64_t masks_ = 0;
};

InstructionId Padder::Make(InstructionId user, Opcode opcode, Shape shape, absl::Span<const InstructionId> operands,
                           absl::Span<const AttrValue> attrs, uint32_t payload) {
  const MetadataId metadata = module_.record(user).metadata;
  const InstructionId made = module_.AddInstruction(
      computation_, opcode, shape, module_.UniqueInstructionName(TextOf(opcode)), operands, attrs, payload);
  module_.Move(made, user);
  module_.SetMetadata(made, metadata);
  return made;
}

InstructionId Padder::Zero(InstructionId user, ElementType type) {
  const Literal zero = Literal::Zeros(shapes().Scalar(type));
  return Make(user, Opcode::kConstant, zero.shape(), {}, {}, module_.context().literals.Add(zero).value);
}

void Padder::Mask(InstructionId user, int64_t index, int64_t dim, InstructionId size, InstructionId value) {
  const InstructionId operand = at(user).operand(index).id();
  const Shape shape = at(operand).shape();
  const Shape places = shapes().WithElementType(shape, ElementType::kS32);
  const Shape chosen = shapes().WithElementType(shape, ElementType::kPred);
  const AttrValue along[] = {{Attr::kIotaDimension, module_.Int64Payload(dim)}};
  const InstructionId iota = Make(user, Opcode::kIota, places, {}, along);
  const AttrValue none[] = {{Attr::kDimensions, module_.ListPayload({})}};
  const InstructionId end = Make(user, Opcode::kBroadcast, places, {size}, none);
  const AttrValue less[] = {{Attr::kDirection, static_cast<uint32_t>(ComparisonDirection::kLt)}};
  const InstructionId inside = Make(user, Opcode::kCompare, chosen, {iota, end}, less);
  const InstructionId outside = Make(user, Opcode::kBroadcast, shape, {value}, none);
  const InstructionId masked = Make(user, Opcode::kSelect, shape, {inside, operand, outside});
  module_.ReplaceOperand(user, index, masked);
  ++masks_;
}

void Padder::SetSize(Instruction i) {
  const Shape shape = i.shape();
  Sizes sizes = SizesOf(i.operand(0).id());
  if (sizes.empty()) sizes.resize(static_cast<size_t>(shape.rank()));
  const int64_t dim = DimensionOf(i);
  sizes[static_cast<size_t>(dim)] = shape.is_dynamic(dim) ? i.operand(1).id() : InstructionId();
  module_.SetShape(i.id(), StaticOf(shape));
  SetSizes(i.id(), std::move(sizes));
  settings_.push_back(i.id());
}

void Padder::GetSize(Instruction i) {
  // A static one is left to dynamic-dimension-simplifier.
  const InstructionId size = SizeOf(i.operand(0).id(), DimensionOf(i));
  if (size.valid()) Replace(module_, i.id(), size);
}

absl::StatusOr<Padder::Sizes> Padder::FollowReshape(Instruction i) {
  const Shape from = i.operand(0).shape(), to = i.shape();
  const Sizes& sizes = SizesOf(i.operand(0).id());
  Sizes result(static_cast<size_t>(to.rank()));
  int64_t before = 1;  // elements of the dimensions before `d`
  for (int64_t d = 0; d < from.rank(); before *= from.dim(d), ++d) {
    if (!sizes[static_cast<size_t>(d)].valid()) continue;
    int64_t to_before = 1, t = 0;
    while (t < to.rank() && (to_before < before || to.dim(t) == 1)) to_before *= to.dim(t++);
    if (t == to.rank() || to_before != before || to.dim(t) != from.dim(d)) {
      return CannotPad(i, StrCat("dimension ", d, " is joined with others or split"));
    }
    result[static_cast<size_t>(t)] = sizes[static_cast<size_t>(d)];
  }
  return result;
}

absl::StatusOr<Padder::Sizes> Padder::FollowReduce(Instruction i) {
  if (!i.shape().IsArray()) return CannotPad(i, "several arrays are reduced at once");
  const Instruction array = i.operand(0);
  const absl::Span<const int64_t> reduced = i.list_attr(Attr::kDimensions);
  const Sizes sizes = SizesOf(array.id());
  Sizes result;
  for (int64_t d = 0; d < array.shape().rank(); ++d) {
    const InstructionId size = sizes[static_cast<size_t>(d)];
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) {
      result.push_back(size);
    } else if (size.valid()) {
      Mask(i.id(), 0, d, size, i.operand(1).id());
    }
  }
  return result;
}

absl::StatusOr<Padder::Sizes> Padder::FollowDot(Instruction i) {
  if (i.operand_count() != 2) return CannotPad(i, "the operands are sparse");
  const DotDims dims = DotDims::Of(i);
  const absl::Span<const int64_t> batch[2] = {dims.lhs_batch, dims.rhs_batch};
  const absl::Span<const int64_t> contracting[2] = {dims.lhs_contracting, dims.rhs_contracting};
  const Instruction operands[2] = {i.operand(0), i.operand(1)};
  Sizes result;
  for (size_t k = 0; k < batch[0].size(); ++k) {
    const InstructionId size = SizeOf(operands[0].id(), batch[0][k]);
    result.push_back(size.valid() ? size : SizeOf(operands[1].id(), batch[1][k]));
  }
  for (size_t side = 0; side < 2; ++side) {
    for (int64_t d = 0; d < operands[side].shape().rank(); ++d) {
      const auto is_in = [d](absl::Span<const int64_t> list) {
        return std::find(list.begin(), list.end(), d) != list.end();
      };
      if (!is_in(batch[side]) && !is_in(contracting[side])) result.push_back(SizeOf(operands[side].id(), d));
    }
  }
  // Both sides: zero times what stands behind the size need not be zero. One size holds for both.
  for (size_t k = 0; k < contracting[0].size(); ++k) {
    InstructionId size = SizeOf(operands[0].id(), contracting[0][k]);
    if (!size.valid()) size = SizeOf(operands[1].id(), contracting[1][k]);
    if (!size.valid()) continue;
    for (size_t side = 0; side < 2; ++side) {
      const InstructionId zero = Zero(i.id(), operands[side].shape().element_type());
      Mask(i.id(), static_cast<int64_t>(side), contracting[side][k], size, zero);
    }
  }
  return result;
}

absl::StatusOr<Padder::Sizes> Padder::Follow(Instruction i) {
  const Opcode opcode = i.opcode();
  if (HasTrait(opcode, kElementwise) || opcode == Opcode::kCopy || opcode == Opcode::kConvert) {
    Sizes result(static_cast<size_t>(i.shape().rank()));
    for (Instruction operand : i.operands()) {
      if (operand.shape().rank() != i.shape().rank()) continue;  // a scalar beside arrays
      for (int64_t d = 0; d < i.shape().rank(); ++d) {
        InstructionId& size = result[static_cast<size_t>(d)];
        if (!size.valid()) size = SizeOf(operand.id(), d);
      }
    }
    return result;
  }
  if (opcode == Opcode::kReduce) return FollowReduce(i);
  if (opcode == Opcode::kDot) return FollowDot(i);
  if (opcode == Opcode::kReshape) return FollowReshape(i);
  const Instruction array = i.operand(0);
  const Sizes& sizes = SizesOf(array.id());
  for (int64_t k = 1; k < i.operand_count(); ++k) {
    if (opcode != Opcode::kConcatenate && HasSizes(i.operand(k))) {
      return CannotPad(i, StrCat("operand ", k, " has a dynamic dimension"));
    }
  }
  const absl::Span<const int64_t> dimensions = i.list_attr(Attr::kDimensions);
  Sizes result(static_cast<size_t>(i.shape().rank()));
  if (opcode == Opcode::kTranspose) {
    for (size_t d = 0; d < dimensions.size(); ++d) result[d] = sizes[static_cast<size_t>(dimensions[d])];
    return result;
  }
  if (opcode == Opcode::kBroadcast) {
    for (size_t d = 0; d < dimensions.size(); ++d) result[static_cast<size_t>(dimensions[d])] = sizes[d];
    return result;
  }
  if (opcode == Opcode::kConcatenate) {
    for (Instruction operand : i.operands()) {
      for (int64_t d = 0; d < i.shape().rank(); ++d) {
        const InstructionId size = SizeOf(operand.id(), d);
        if (size.valid() && d == dimensions[0]) return CannotPad(i, "the arrays are joined in a dynamic dimension");
        if (!result[static_cast<size_t>(d)].valid()) result[static_cast<size_t>(d)] = size;
      }
    }
    return result;
  }
  if (opcode != Opcode::kSlice && opcode != Opcode::kPad && opcode != Opcode::kReverse) {
    return CannotPad(i, "it is not known what a dynamic dimension means to it");
  }
  // Other dimensions alone are cut, padded or reversed.
  const SliceView slice = SliceView::Of(i);
  const PaddingView padding = PaddingView::Of(i);
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    if (!sizes[static_cast<size_t>(d)].valid()) continue;
    bool whole = false;
    if (opcode == Opcode::kSlice) {
      whole = slice.start(d) == 0 && slice.stride(d) == 1 && slice.limit(d) == array.shape().dim(d);
    } else if (opcode == Opcode::kPad) {
      whole = padding.low(d) == 0 && padding.high(d) == 0 && padding.interior(d) == 0;
    } else {
      whole = std::find(dimensions.begin(), dimensions.end(), d) == dimensions.end();
    }
    if (!whole) return CannotPad(i, StrCat("dimension ", d, " is dynamic"));
    result[static_cast<size_t>(d)] = sizes[static_cast<size_t>(d)];
  }
  return result;
}

absl::Status Padder::Visit(Instruction i) {
  const bool is_root_tuple = i.is_root() && i.opcode() == Opcode::kTuple;
  if (is_root_tuple) return absl::OkStatus();  // for RestoreResults
  bool follows = false;
  for (Instruction operand : i.operands()) follows |= HasSizes(operand);
  if (!follows && !IsDynamic(i)) return absl::OkStatus();
  if (i.opcode() == Opcode::kGetDimensionSize) {
    GetSize(i);
    return absl::OkStatus();
  }
  if (i.opcode() == Opcode::kSetDimensionSize) {
    SetSize(i);
    return absl::OkStatus();
  }
  if (!follows) return CannotPad(i, "its dynamic size is not set by set-dimension-size");
  if (HasTrait(i.opcode(), kControlFlow)) return CannotPad(i, "it calls a computation with them: inline it first");
  if (!i.shape().IsArray() && i.opcode() != Opcode::kReduce) {
    return CannotPad(i, "it passes dynamic dimensions on in a tuple, which only results of a computation may");
  }
  absl::StatusOr<Sizes> sizes = Follow(i);
  if (!sizes.ok()) return sizes.status();
  const Shape shape = i.shape();
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.is_dynamic(d) && !(*sizes)[static_cast<size_t>(d)].valid()) {
      return CannotPad(i, StrCat("the size of dimension ", d, " is not known"));
    }
  }
  module_.SetShape(i.id(), StaticOf(shape));
  SetSizes(i.id(), *std::move(sizes));
  return absl::OkStatus();
}

absl::StatusOr<InstructionId> Padder::Restored(InstructionId result, Shape shape) {
  if (!shape.IsArray()) return CannotPad(at(result), "a tuple in a tuple is dynamic");
  const Sizes sizes = SizesOf(result);
  const MetadataId metadata = at(result).metadata_id();
  std::vector<uint8_t> dynamic(static_cast<size_t>(shape.rank()), 0);
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!shape.is_dynamic(d)) continue;
    if (sizes.empty() || !sizes[static_cast<size_t>(d)].valid()) {
      return CannotPad(at(result), StrCat("the size of dimension ", d, " is not known"));
    }
    dynamic[static_cast<size_t>(d)] = 1;
    const AttrValue dimension[] = {{Attr::kDimensions, module_.ListPayload({d})}};
    result = module_.AddInstruction(computation_, Opcode::kSetDimensionSize,
                                    shapes().Array(shape.element_type(), shape.dims(), dynamic, shape.layout()),
                                    module_.UniqueInstructionName(TextOf(Opcode::kSetDimensionSize)),
                                    {result, sizes[static_cast<size_t>(d)]}, dimension);
    module_.SetMetadata(result, metadata);
  }
  return result;
}

absl::Status Padder::RestoreResults() {
  const Instruction root = module_.computation(computation_).root();
  if (root.opcode() != Opcode::kTuple) {
    const absl::StatusOr<InstructionId> result = Restored(root.id(), root_shape_);
    if (result.ok()) module_.SetRoot(computation_, *result);
    return result.status();
  }
  for (int64_t k = 0; k < root.operand_count(); ++k) {
    if (!root_shape_.element(k).has_dynamic_dims()) continue;
    const absl::StatusOr<InstructionId> result = Restored(root.operand(k).id(), root_shape_.element(k));
    if (!result.ok()) return result.status();
    module_.ReplaceOperand(root.id(), k, *result);
    module_.Move(*result, root.id());
  }
  return absl::OkStatus();
}

absl::Status Padder::Run() {
  root_shape_ = module_.computation(computation_).root().shape();
  for (InstructionId id : PostOrder(module_.computation(computation_))) {
    const absl::Status status = Visit(at(id));
    if (!status.ok()) return status;
  }
  if (root_shape_.has_dynamic_dims()) {
    const absl::Status status = RestoreResults();
    if (!status.ok()) return status;
  }
  for (InstructionId id : settings_) Replace(module_, id, at(id).operand(0).id());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> DynamicPadder::Run(Module& module) {
  std::vector<ComputationId> open;
  for (Computation c : module.computations()) {
    if (HasWork(c)) open.push_back(c.id());
  }
  if (open.empty()) return false;
  Module padded = module.Clone();  // what fails half way is thrown away
  int64_t settings = 0, masks = 0;
  for (ComputationId id : open) {
    Padder padder(&padded, padded.computation(id));
    const absl::Status status = padder.Run();
    if (!status.ok()) return status;
    settings += padder.settings();
    masks += padder.masks();
  }
  module = std::move(padded);
  Count("dynamic sizes made scalars", settings);
  Count("arrays masked", masks);
  return true;
}

}  // namespace hlokit
