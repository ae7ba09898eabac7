// SPDX-License-Identifier: Apache-2.0
#include "passes/query/resize_dimension.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/types/fold_shape.h"
#include "ir/types/literal.h"

namespace hlokit::query {
namespace {

// Returns a literal of another shape. Of a smaller one the elements from the first of each dimension on; those that the
// old one lacks are as its first.
Literal Resized(const Literal& from, Shape shape) {
  Literal to = Literal::Zeros(shape);
  const int64_t rank = shape.rank();
  const auto width = static_cast<size_t>(BytesOf(shape.element_type()));
  std::vector<int64_t> index(static_cast<size_t>(rank), 0);
  for (int64_t at = 0; at < to.element_count(); ++at) {
    int64_t source = 0;
    bool inside = true;
    for (int64_t d = 0; d < rank; ++d) {
      inside = inside && index[static_cast<size_t>(d)] < from.shape().dim(d);
      source = source * from.shape().dim(d) + index[static_cast<size_t>(d)];
    }
    if (from.element_count() > 0) {
      std::memcpy(to.data() + static_cast<size_t>(at) * width,
                  from.data() + static_cast<size_t>(inside ? source : 0) * width, width);
    }
    for (int64_t d = rank; d-- > 0 && ++index[static_cast<size_t>(d)] == shape.dim(d);) {
      index[static_cast<size_t>(d)] = 0;
    }
  }
  return to;
}

bool Has(uint64_t mask, int64_t dimension) {
  return dimension < DimensionFlow::kMaxRank && (mask >> static_cast<uint64_t>(dimension) & 1) != 0;
}

class Resizer {
 public:
  Resizer(Module* module, const DimensionFlow& flow, const SizeChange& change)
      : module_(*module), flow_(flow), change_(change) {}

  absl::StatusOr<int64_t> Apply() {
    for (const Computation c : module_.computations()) {
      std::vector<InstructionId> ids;
      for (const Instruction i : c.instructions()) ids.push_back(i.id());
      for (InstructionId id : ids) {
        const Instruction i = module_.instruction(id);
        if (absl::Status s = SetAttributes(i); !s.ok()) return s;
        if (!flow_.IsMarked(i)) continue;
        const Shape shape = NewShape(i);
        if (!shape.valid()) return CannotFollow(i, "the new size is too large");
        if (i.opcode() == Opcode::kConstant && shape.IsArray()) SetConstant(i, shape);
        module_.SetShape(id, shape);
        ++changed_;
      }
    }
    if (module_.header().entry_layout) {
      EntryLayout& layout = *module_.header().entry_layout;
      const Computation entry = module_.entry();
      for (size_t k = 0; k < layout.parameters.size(); ++k) {
        const Instruction p = entry.parameter(static_cast<int64_t>(k));
        if (flow_.IsMarked(p)) layout.parameters[k] = p.shape();
      }
      if (flow_.IsMarked(entry.root())) layout.result = entry.root().shape();
    }
    return changed_;
  }

 private:
  ShapeTable& shapes() { return module_.context().shapes; }

  // Returns an invalid shape if a size overflows.
  Shape NewArray(Shape array, uint64_t mask) {
    std::vector<int64_t> dims(array.dims().begin(), array.dims().end());
    std::vector<uint8_t> dynamic;
    for (int64_t d = 0; d < array.rank(); ++d) {
      dynamic.push_back(array.is_dynamic(d));
      if (!Has(mask, d)) continue;
      int64_t& size = dims[static_cast<size_t>(d)];
      size = change_.New(size);
      if (size < 0) return Shape();
    }
    const Shape made = shapes().Array(array.element_type(), dims, dynamic, array.layout());
    return made.element_count() < 0 ? Shape() : made;
  }

  // Returns an invalid shape if a leaf cannot have its new size.
  Shape NewShape(Instruction i) {
    int64_t leaf = 0;
    bool valid = true;
    const Shape made = FoldShape(
        i.shape(),
        [&](Shape shape) {
          const uint64_t mask = flow_.MaskOf(i.id(), leaf++);
          const Shape resized = mask == 0 ? shape : NewArray(shape, mask);
          valid &= resized.valid();
          return resized.valid() ? resized : shape;
        },
        [&](const std::vector<Shape>& elements) { return shapes().Tuple(elements); });
    return valid ? made : Shape();
  }

  void SetConstant(Instruction i, Shape shape) {
    LiteralPool& literals = module_.context().literals;
    const LiteralId old = i.literal_id();
    module_.SetPayload(i.id(), (literals[old].elided ? literals.AddElided(shape)
                                                     : literals.Add(Resized(literals.ToLiteral(old), shape)))
                                   .value);
  }

  // Sizes in attributes. Requires: the shapes of operands before in the computation are new, that of `i` is not.
  absl::Status SetAttributes(Instruction i) {
    if (i.opcode() == Opcode::kSlice) return SetRanges(i, flow_.MaskOf(i.id(), 0));
    if (i.opcode() == Opcode::kDynamicSlice) return SetSizes(i, Attr::kDynamicSliceSizes, flow_.MaskOf(i.id(), 0));
    if (i.opcode() == Opcode::kGather) return SetSizes(i, Attr::kSliceSizes, flow_.MaskOf(i.operand(0).id(), 0));
    if (i.opcode() == Opcode::kPad && change_.rounds) SetPadding(i, flow_.MaskOf(i.id(), 0));
    return absl::OkStatus();
  }

  // The size of a dimension of the result.
  int64_t NewSize(Instruction i, uint64_t mask, int64_t d) const {
    return Has(mask, d) ? change_.New(i.shape().dim(d)) : i.shape().dim(d);
  }

  // Changes the limits of a slice in these dimensions, which must be whole ones.
  absl::Status SetRanges(Instruction i, uint64_t mask) {
    if (mask == 0 && !(change_.rounds && flow_.IsMarked(i.operand(0)))) return absl::OkStatus();
    std::vector<int64_t> ranges(i.list_attr(Attr::kSlice).begin(), i.list_attr(Attr::kSlice).end());
    for (int64_t d = 0; d < i.shape().rank(); ++d) {
      int64_t* const range = &ranges[static_cast<size_t>(3 * d)];
      const int64_t operand = i.operand(0).shape().dim(d);
      if (change_.rounds) {
        // From as near the old start as there is room for.
        const int64_t size = NewSize(i, mask, d);
        if (size > 0 && (size - 1) * range[2] + 1 > operand) range[2] = 1;
        const int64_t reach = size > 0 ? (size - 1) * range[2] + 1 : 0;
        range[0] = std::clamp<int64_t>(operand - reach, 0, range[0]);
        range[1] = range[0] + reach;
        continue;
      }
      if (!Has(mask, d)) continue;
      if (range[0] != 0 || range[2] != 1 || change_.New(range[1]) != operand) {
        return CannotFollow(i, StrCat("it reads a part of dimension ", d));
      }
      range[1] = change_.New(range[1]);
    }
    module_.SetAttr(i.id(), Attr::kSlice, module_.ListPayload(ranges));
    return absl::OkStatus();
  }

  // Changes the sizes of slices of operand 0 in these dimensions, which must be whole ones.
  absl::Status SetSizes(Instruction i, Attr attr, uint64_t mask) {
    if (mask == 0) return absl::OkStatus();
    std::vector<int64_t> sizes(i.list_attr(attr).begin(), i.list_attr(attr).end());
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (!Has(mask, static_cast<int64_t>(d))) continue;
      const int64_t operand = i.operand(0).shape().dim(static_cast<int64_t>(d));
      const int64_t size = change_.New(sizes[d]);
      if (!change_.rounds && size != operand) return CannotFollow(i, StrCat("it reads a part of dimension ", d));
      sizes[d] = std::min(size, operand);
    }
    module_.SetAttr(i.id(), attr, module_.ListPayload(sizes));
    return absl::OkStatus();
  }

  // The high padding makes up for what is missing.
  void SetPadding(Instruction i, uint64_t mask) {
    if (mask == 0 && !flow_.IsMarked(i.operand(0))) return;
    std::vector<int64_t> padding(i.list_attr(Attr::kPadding).begin(), i.list_attr(Attr::kPadding).end());
    for (int64_t d = 0; d < i.shape().rank(); ++d) {
      int64_t* const at = &padding[static_cast<size_t>(3 * d)];
      const int64_t operand = i.operand(0).shape().dim(d);
      at[1] = NewSize(i, mask, d) - at[0] - operand - std::max<int64_t>(0, operand - 1) * at[2];
    }
    module_.SetAttr(i.id(), Attr::kPadding, module_.ListPayload(padding));
  }

  Module& module_;
  const DimensionFlow& flow_;
  const SizeChange change_;
  int64_t changed_ = 0;
};

}  // namespace

absl::StatusOr<int64_t> ResizeDimensions(const DimensionFlow& flow, const SizeChange& change, Module* module) {
  return Resizer(module, flow, change).Apply();
}

}  // namespace hlokit::query
