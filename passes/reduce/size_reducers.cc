// SPDX-License-Identifier: Apache-2.0
// Reducers that shrink arrays: sizes of dimensions, element types.
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/query/dimension_flow.h"
#include "passes/query/resize_dimension.h"
#include "passes/reduce/module_edits.h"
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

constexpr size_t kMaxInTurn = 64;  // dimensions that are tried one after the other
// Dimensions that are tried at once, times the instructions of the module: each edit copies it.
constexpr size_t kMaxCopied = size_t{1} << 20;

// A dimension as a target; `choice` is of the reducer. Returns false if it does not fit into one.
bool ToTarget(const query::ValueDimension& at, uint32_t choice, Target* target) {
  if (at.leaf > UINT16_MAX) return false;
  *target = {at.instruction.id().value,
             static_cast<uint32_t>(at.leaf) << 16 | static_cast<uint32_t>(at.dimension) << 8 | choice};
  return true;
}
uint32_t ChoiceOf(Target target) { return target.detail & 0xff; }

// Returns the size of the dimension of a target; 0 if it is gone.
int64_t CurrentSize(const Module& module, Target target, query::ValueDimension* at) {
  const InstructionId id(target.id);
  if (!IsAlive(module, id)) return 0;
  *at = {module.instruction(id), target.detail >> 16, target.detail >> 8 & 0xff};
  const std::vector<Shape> leaves = Leaves(at->instruction.shape());
  if (at->leaf >= static_cast<int64_t>(leaves.size())) return 0;
  const Shape array = leaves[static_cast<size_t>(at->leaf)];
  return at->dimension < array.rank() ? array.dim(at->dimension) : 0;
}

// Returns dimensions that can change by themselves, with their sizes, the largest ones first.
std::vector<std::pair<int64_t, query::ValueDimension>> LargestDimensions(const Module& module, size_t most) {
  std::vector<std::pair<int64_t, query::ValueDimension>> sized;
  for (const query::ValueDimension& at : query::IndependentDimensions(module)) {
    sized.emplace_back(Leaves(at.instruction.shape())[static_cast<size_t>(at.leaf)].dim(at.dimension), at);
  }
  std::stable_sort(sized.begin(), sized.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (sized.size() > most) sized.resize(most);
  return sized;
}

// Gives a dimension a smaller size, and those that follow from it. Returns false if it cannot have it.
bool Shrink(Module& module, const query::ValueDimension& at, int64_t from, int64_t to) {
  const query::SizeChange change = {from, to, /*rounds=*/true};
  query::DimensionFlow flow(module, query::DimensionFlow::Obstacle::kEnd);
  flow.Mark(at.instruction, at.leaf, at.dimension);
  Module changed = module.Clone();
  if (!flow.Follow(change).ok() || !query::ResizeDimensions(flow, change, &changed).ok()) return false;
  module = std::move(changed);
  return true;
}

// Dimensions become as small as can be, many at once.
class UnitDimensions : public Reducer {
 public:
  std::string_view name() const override { return "dimensions"; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> targets;
    const size_t most = std::max(kMaxInTurn, kMaxCopied / std::max<size_t>(1, module.instruction_id_bound()));
    for (const auto& [size, at] : LargestDimensions(module, most)) {
      Target target;
      if (ToTarget(at, 0, &target)) targets.push_back(target);
    }
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    query::ValueDimension at;
    const int64_t size = CurrentSize(module, target, &at);
    return size > 1 && Shrink(module, at, size, 1);
  }
};

// Dimensions become smaller, one after the other.
class ShrinkDimensions : public Reducer {
 public:
  std::string_view name() const override { return "sizes"; }
  Search search() const override { return Search::kAlternatives; }
  std::vector<Target> Targets(const Module& module) const override {
    std::vector<Target> targets;
    for (const auto& [size, at] : LargestDimensions(module, kMaxInTurn)) {
      int64_t last = 1;
      for (uint32_t choice = 0; choice < kChoices; ++choice) {
        const int64_t to = NewSize(size, choice);
        Target target;
        if (to <= last || to >= size || !ToTarget(at, choice, &target)) continue;
        last = to;
        targets.push_back(target);
      }
    }
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    query::ValueDimension at;
    const int64_t size = CurrentSize(module, target, &at);
    const int64_t to = NewSize(size, ChoiceOf(target));
    return to > 0 && to < size && Shrink(module, at, size, to);
  }

 private:
  static constexpr uint32_t kChoices = 5;
  static int64_t NewSize(int64_t size, uint32_t choice) {
    const int64_t sizes[kChoices] = {2, 3, size / 8, size / 2, size - 1};
    return sizes[choice];
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
  reducers->push_back(std::make_unique<UnitDimensions>());
  reducers->push_back(std::make_unique<ShrinkDimensions>());
  reducers->push_back(std::make_unique<NarrowTypes>());
}

}  // namespace hlokit::reduce
