// SPDX-License-Identifier: Apache-2.0
// Reducers that shrink arrays: sizes of dimensions, element types.
#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/reduce/reducer.h"
#include "passes/rewrite/type_conversion.h"

namespace hlokit::reduce {
namespace {

// Calls `visit(Shape)` for the arrays in the shapes of all instructions.
template <typename Visit>
void ForEachArray(const Module& module, Visit visit) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      for (Shape leaf : Leaves(i.shape())) {
        if (leaf.IsArray()) visit(leaf);
      }
    }
  }
}

// Returns the elements of an array that a smaller one has too, from the first of each dimension on.
Literal CornerOf(const Literal& from, Shape shape) {
  Literal to = Literal::Zeros(shape);
  const int64_t rank = shape.rank();
  const int64_t size = BytesOf(shape.element_type());
  std::vector<int64_t> index(static_cast<size_t>(rank), 0);
  for (int64_t at = 0; at < to.element_count(); ++at) {
    int64_t source = 0;
    for (int64_t d = 0; d < rank; ++d) source = source * from.shape().dim(d) + index[d];
    std::memcpy(to.data() + at * size, from.data() + source * size, static_cast<size_t>(size));
    for (int64_t d = rank; d-- > 0 && ++index[d] == shape.dim(d);) index[d] = 0;
  }
  return to;
}

// All dimensions of one size become smaller.
class ShrinkSizes : public Reducer {
 public:
  std::string_view name() const override { return "sizes"; }
  Search search() const override { return Search::kAlternatives; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<int64_t> sizes;
    ForEachArray(module, [&](Shape array) {
      for (int64_t size : array.dims()) {
        if (size > 1 && size <= UINT32_MAX) sizes.push_back(size);
      }
    });
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    std::vector<Target> targets;
    for (int64_t size : sizes) {
      uint32_t last = 0;
      for (int64_t to : {int64_t{1}, int64_t{2}, int64_t{3}, size / 8, size / 2, size - 1}) {
        if (to <= last || to >= size) continue;
        last = static_cast<uint32_t>(to);
        targets.push_back({static_cast<uint32_t>(size), last});
      }
    }
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    std::vector<std::pair<InstructionId, LiteralId>> constants;
    for (Computation c : module.computations()) {
      for (Instruction i : c.instructions()) {
        if (i.opcode() == Opcode::kConstant && i.shape().IsArray()) constants.emplace_back(i.id(), i.literal_id());
      }
    }
    ReplaceDimensionSizes(&module, target.id, target.detail);
    // Constants of another shape have lost their values.
    LiteralPool& literals = module.context().literals;
    for (const auto& [id, before] : constants) {
      const Instruction i = module.instruction(id);
      if (!i.literal().elided || literals[before].elided) continue;
      module.SetPayload(id, literals.Add(CornerOf(literals.ToLiteral(before), i.shape())).value);
    }
    return true;
  }
};

// All arrays of a wide type get a narrower one.
class NarrowTypes : public Reducer {
 public:
  std::string_view name() const override { return "element types"; }
  Search search() const override { return Search::kAlternatives; }
  std::vector<Target> Targets(const Module& module) const override {
    bool found = false;
    ForEachArray(module, [&](Shape array) { found |= array.element_type() == ElementType::kF64; });
    return found ? std::vector<Target>{{}} : std::vector<Target>();
  }
  bool Apply(Module& module, Target) const override {
    ConvertFloatTypes(&module, {ElementType::kF64}, ElementType::kF32);
    return true;
  }
};

}  // namespace

void AddSizeReducers(Reducers* reducers) {
  reducers->push_back(std::make_unique<ShrinkSizes>());
  reducers->push_back(std::make_unique<NarrowTypes>());
}

}  // namespace hlokit::reduce
