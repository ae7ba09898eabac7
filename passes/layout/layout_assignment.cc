// SPDX-License-Identifier: Apache-2.0
#include "passes/layout/layout_assignment.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/saturating.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "ir/types/fold_shape.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/core/pass_row.h"
#include "passes/layout/layout_remarks.h"
#include "passes/layout/tpu_layout_preferences.h"
#include "passes/target/tpu_target.h"

namespace hlokit {
namespace {

bool IsDefaultSpace(Shape array) { return tpu::MemorySpaceOf(array) == tpu::kDefaultMemorySpace; }

class LayoutAssigner {
 public:
  LayoutAssigner(Module* module, const std::optional<tpu::VectorTile>& tile)
      : module_(*module), shapes_(module->context().shapes), tile_(tile), calls_(*module) {}

  absl::StatusOr<LayoutCounts> Run();

 private:
  Shape Tiled(Shape array) const;
  // Returns the shape of an instruction with the target's layout in every array.
  Shape Chosen(Instruction i) const;
  // Returns the shape of a parameter or result of the entry.
  Shape AtBorder(Shape given, Shape own) const;
  // Returns `shape` with tiles and unchanged dimension orders.
  Shape TiledAsItIs(Shape shape) const;
  absl::Status AdaptEntry();
  void MakeBitcasts(Computation c);
  bool IsBorder(Instruction i) const;
  template <typename OfArray>
  Shape Map(Shape shape, const OfArray& of_array) const {
    return FoldShape(
        shape, [&](Shape leaf) { return leaf.IsArray() ? of_array(leaf) : leaf; },
        [&](const std::vector<Shape>& elements) { return shapes_.Tuple(elements); });
  }

  Module& module_;
  ShapeTable& shapes_;
  const std::optional<tpu::VectorTile> tile_;  // nullopt: layouts without tiles
  const CallGraph calls_;
  std::optional<TpuLayoutPreferences> orders_;
  LayoutCounts counts_;
};

Shape LayoutAssigner::Tiled(Shape array) const { return tile_ ? WithTiles(*tile_, shapes_, array) : array; }

// All positions of a value have one order.
Shape LayoutAssigner::Chosen(Instruction i) const {
  const bool chosen = orders_.has_value() && orders_->ok();
  std::vector<int64_t> arrays;  // leaves that are arrays
  if (chosen && !i.shape().IsArray()) {
    const std::vector<Shape> leaves = LeavesInOrder(i.shape());
    for (size_t k = 0; k < leaves.size(); ++k) {
      if (leaves[k].IsArray()) arrays.push_back(static_cast<int64_t>(k));
    }
  }
  size_t next = 0;
  return Map(i.shape(), [&](Shape array) {
    const int64_t leaf = arrays.empty() ? 0 : arrays[next++];
    if (!IsDefaultSpace(array)) return array;
    if (!chosen) return Tiled(shapes_.WithLayout(array, shapes_.DefaultLayout(array.rank())));
    LayoutExtras extras;
    if (array.has_layout() && array.layout()->extras != nullptr) extras = *array.layout()->extras;
    return Tiled(shapes_.WithLayout(array, shapes_.Layout(orders_->MinorToMajorOf(i, leaf), extras)));
  });
}

// `own` is the layout inside the program, with the same leaves.
Shape LayoutAssigner::AtBorder(Shape given, Shape own) const {
  const std::vector<Shape> chosen = Leaves(own);
  std::vector<Shape> arrays;
  for (Shape leaf : chosen) {
    if (leaf.IsArray()) arrays.push_back(leaf);
  }
  size_t next = 0;
  return Map(given, [&](Shape array) {
    const size_t k = next++;
    if (!IsDefaultSpace(array)) return array;
    const bool free = tile_ && !TpuLayoutPreferences::HasFixedLayout(*tile_, array) && k < arrays.size();
    return free ? arrays[k] : Tiled(array);
  });
}

Shape LayoutAssigner::TiledAsItIs(Shape shape) const {
  return Map(shape, [this](Shape array) { return IsDefaultSpace(array) ? Tiled(array) : array; });
}

// Makes transposes that only contractions read bitcasts: the result gets the memory order of the operand.
void LayoutAssigner::MakeBitcasts(Computation c) {
  for (Instruction i : c.instructions()) {
    if (i.opcode() != Opcode::kTranspose || i.is_root() || !i.has_users()) continue;
    bool only_products = true;
    for (Instruction user : i.users()) {
      only_products &= OpcodeSet{Opcode::kDot, Opcode::kConvolution}.Contains(user.opcode());
    }
    const Shape from = i.operand(0).shape(), to = i.shape();
    if (!only_products || !from.has_layout() || !IsDefaultSpace(to)) continue;
    const absl::Span<const int64_t> permutation = i.list_attr(Attr::kDimensions);
    const absl::Span<const int64_t> in = from.layout()->minor_to_major;
    if (permutation.size() != in.size()) continue;
    // Dimension permutation[d] of the operand is d of the result.
    std::vector<int64_t> of(permutation.size()), out;
    for (size_t d = 0; d < permutation.size(); ++d) of[static_cast<size_t>(permutation[d])] = static_cast<int64_t>(d);
    for (int64_t d : in) out.push_back(of[static_cast<size_t>(d)]);
    const Shape made = Tiled(shapes_.WithLayout(to, shapes_.Layout(out)));
    if (made != to) module_.SetShape(i.id(), made);
    ++counts_.bitcasts;
  }
}

absl::Status LayoutAssigner::AdaptEntry() {
  const Computation entry = module_.entry();
  std::optional<EntryLayout>& layout = module_.header().entry_layout;
  if (!layout) return absl::OkStatus();
  Builder builder(&module_, entry.id());
  for (int64_t p = 0; p < entry.parameter_count() && p < static_cast<int64_t>(layout->parameters.size()); ++p) {
    const InstructionId id = entry.parameter(p).id();
    const Shape wanted = module_.instruction(id).shape();
    const Shape given = layout->parameters[p] = AtBorder(layout->parameters[p], wanted);
    module_.SetShape(id, given);
    if (given == wanted || !given.IsArray()) continue;
    bool is_copied = module_.instruction(id).has_users() && !module_.instruction(id).is_root();
    for (Instruction user : module_.instruction(id).users()) {
      is_copied &= user.opcode() == Opcode::kCopy && user.shape() == wanted;
    }
    if (is_copied) continue;
    const MetadataScope scope(&builder, module_.record(id).metadata);
    const Builder::Result copy = builder.Unary(Opcode::kCopy, id);
    if (!copy.ok()) return copy.status();
    module_.SetShape(*copy, wanted);
    module_.ReplaceAllUses(id, *copy);
    module_.ReplaceOperand(*copy, 0, id);
    ++counts_.copies;
  }
  const InstructionId root = entry.root().id();
  const Shape result = layout->result = AtBorder(layout->result, module_.instruction(root).shape());
  if (module_.instruction(root).opcode() == Opcode::kTuple) {
    std::vector<Shape> elements;
    for (Instruction operand : module_.instruction(root).operands()) elements.push_back(operand.shape());
    module_.SetShape(root, shapes_.Tuple(elements));
  }
  if (module_.instruction(root).shape() == result) return absl::OkStatus();
  const MetadataScope scope(&builder, module_.record(root).metadata);
  const auto adapted = [&](InstructionId id, Shape wanted) -> Builder::Result {
    if (module_.instruction(id).shape() == wanted || !wanted.IsArray()) return id;
    const Builder::Result copy = builder.Unary(Opcode::kCopy, id);
    if (copy.ok()) {
      module_.SetShape(*copy, wanted);
      ++counts_.copies;
    }
    return copy;
  };
  if (result.IsArray()) {
    const Builder::Result copy = adapted(root, result);
    if (!copy.ok()) return copy.status();
    module_.SetRoot(entry.id(), *copy);
    return absl::OkStatus();
  }
  if (!result.IsTuple() || !IsFlat(result)) return absl::OkStatus();
  std::vector<InstructionId> parts;
  for (int64_t k = 0; k < result.tuple_size(); ++k) {
    InstructionId part;
    if (module_.record(root).opcode == Opcode::kTuple) {
      part = module_.instruction(root).operand(k).id();
    } else {
      const Builder::Result taken = builder.GetTupleElement(root, k);
      if (!taken.ok()) return taken.status();
      part = *taken;
    }
    const Builder::Result copy = adapted(part, result.element(k));
    if (!copy.ok()) return copy.status();
    parts.push_back(*copy);
  }
  const Builder::Result tuple = builder.Tuple(parts);
  if (!tuple.ok()) return tuple.status();
  module_.SetRoot(entry.id(), *tuple);
  return absl::OkStatus();
}

// Returns true for a copy that converts a result of the entry to the caller's order.
bool LayoutAssigner::IsBorder(Instruction i) const {
  if (!i.parent().is_entry() || i.opcode() != Opcode::kCopy) return false;
  if (i.is_root()) return true;
  for (Instruction user : i.users()) {
    if (user.is_root() && user.opcode() == Opcode::kTuple) return true;
  }
  return false;
}

absl::StatusOr<LayoutCounts> LayoutAssigner::Run() {
  if (tile_) orders_.emplace(module_, *tile_);
  std::vector<ShapeId> before(module_.instruction_id_bound());
  for (Computation c : module_.computations()) {
    for (Instruction i : c.instructions()) {
      before[i.id().value] = i.record().shape;
      const bool constrained = i.has(Attr::kOperandLayoutConstraints) || i.bool_attr(Attr::kConstrainLayout);
      const Shape wanted = constrained || IsBorder(i) ? TiledAsItIs(i.shape()) : Chosen(i);
      if (wanted != i.shape()) module_.SetShape(i.id(), wanted);
    }
  }
  if (absl::Status status = AdaptEntry(); !status.ok()) return status;
  for (Computation c : module_.computations()) {
    if (!tile_ && calls_.IsSequential(c)) MakeBitcasts(c);
    for (Instruction i : c.instructions()) {
      counts_.shapes += i.id().value < before.size() && before[i.id().value] != i.record().shape;
    }
  }
  return counts_;
}

// Returns true if all arrays for which there are tiles have tiles.
bool IsTiled(const Module& module) {
  bool any = false;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      const Shape array = i.shape();
      if (!array.IsArray() || array.rank() == 0 || BitsOf(array.element_type()) > 32) continue;
      if (!IsDefaultSpace(array)) continue;
      if (!array.has_layout() || array.layout()->extras == nullptr || array.layout()->extras->tiles.empty())
        return false;
      any = true;
    }
  }
  return any;
}

}  // namespace

absl::StatusOr<LayoutCounts> AssignLayouts(Module& module, const std::optional<tpu::VectorTile>& tile) {
  if (module.header().is_scheduled || !module.entry().valid()) return LayoutCounts();
  // The value of a bitcast depends on the layouts around it: a module with one has its layouts already.
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() == Opcode::kBitcast) return LayoutCounts();
    }
  }
  if (tile && IsTiled(module)) return LayoutCounts();
  return LayoutAssigner(&module, tile).Run();
}

namespace {

class LayoutAssignment : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    std::optional<tpu::VectorTile> tile;
    if (options().String("target") == "tpu") {
      tile = tpu::TileOf(tpu::TargetOf(*this, module).machine);
    }
    const absl::StatusOr<LayoutCounts> counts = AssignLayouts(module, tile);
    if (!counts.ok()) return counts.status();
    if (RemarkCollector* remarks = RemarksFor(context().remarks, RemarkCategory::kLayout)) {
      AddLayoutRemarks(module, tile, remarks);
    }
    const int64_t changes = counts->shapes + counts->copies;
    if (changes > 0) Count("layouts changed", counts->shapes);
    if (counts->copies > 0) Count("copies added", counts->copies);
    if (counts->bitcasts > 0) Count("transposes that move nothing", counts->bitcasts);
    return changes > 0;
  }
};

}  // namespace

HLOKIT_PASS(LayoutAssignment) {
  return {.name = "layout-assignment",
          .category = "layout",
          .summary = "assign a layout to every array",
          .doc =
              "The last dimension is minor, except for parameters and results of the entry, which keep the caller's "
              "order and are copied if it differs, and for transposes that only dots and convolutions read, which "
              "become bitcasts. Target `tpu` adds the tiles of a TPU's memory and chooses the minor dimensions that "
              "they pad: connected arrays (through elementwise operations, slices, transposes, loops and calls) share "
              "the order that moves the fewest bytes, including padding, copies at the entry's boundary, reshapes and "
              "preferences: convolutions prefer batch and features minor, dots no batch dimension minor.",
          .example = R"(HloModule product

ENTRY main {
  x = bf16[256,512]{1,0} parameter(0)
  w = bf16[256,128]{1,0} parameter(1)
  t = bf16[512,256]{1,0} transpose(x), dimensions={1,0}
  ROOT d = bf16[512,128]{1,0} dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)",
          .options = {{.name = "target",
                       .type = OptionInfo::Type::kString,
                       .default_text = "plain",
                       .doc = "`plain`, or `tpu` for tiled layouts",
                       .choices = {"plain", "tpu"}},
                      tpu::DeviceOption()},
          .preconditions = kNoSchedule,
          .create = MakePass<LayoutAssignment>};
}

}  // namespace hlokit
