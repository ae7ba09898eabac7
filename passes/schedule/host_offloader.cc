// SPDX-License-Identifier: Apache-2.0
// Keeps arrays in the memory of the host between the calls MoveToHost and MoveToDevice.
//
// HostBuffers decides which arrays these are. All that hold one get the memory space of the host in their shapes, the
// calls become copies between the memories, and so do places where arrays of the device enter: before the loop whose
// state is on the host, or under a dynamic-update-slice.
#include <limits>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/dead_operands.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/schedule/host_buffers.h"
#include "passes/schedule/host_memory.h"

namespace hlokit {
namespace {

class HostOffloader {
 public:
  HostOffloader(Module* module, const HostBuffers* buffers, int64_t host_memory_space)
      : module_(*module), buffers_(*buffers), host_memory_space_(host_memory_space) {}

  HostOffloadCounts Run() {
    const std::vector<Instruction> stores = Stores();
    PlaceOnHost();
    CopyEntrances();
    for (Instruction move : stores) Store(move);
    for (Instruction move : Loads()) Load(move);
    return counts_;
  }

 private:
  bool IsInHost(Shape shape) const {
    return shape.IsArray() && shape.has_layout() && shape.layout()->memory_space() == host_memory_space_;
  }
  Shape InHost(Shape array) {
    ShapeTable& shapes = module_.context().shapes;
    LayoutExtras extras;
    if (array.layout()->extras != nullptr) extras = *array.layout()->extras;
    extras.memory_space = host_memory_space_;
    return shapes.WithLayout(array, shapes.Layout(array.layout()->minor_to_major, extras));
  }

  // Returns the shape of `i` with its arrays of the host there.
  Shape Placed(Instruction i) {
    struct Level {
      Shape shape;
      std::vector<Shape> elements;
    };
    int64_t leaf = 0;
    std::vector<Level> levels = {{i.shape(), {}}};
    while (true) {
      Level& level = levels.back();
      Shape done;
      if (!level.shape.IsTuple()) {
        done = buffers_.IsOnHost(i, leaf) ? InHost(level.shape) : level.shape;
        ++leaf;
      } else if (static_cast<int64_t>(level.elements.size()) < level.shape.tuple_size()) {
        const Shape element = level.shape.element(static_cast<int64_t>(level.elements.size()));
        levels.push_back({element, {}});
        continue;
      } else {
        done = module_.context().shapes.Tuple(level.elements);
      }
      levels.pop_back();
      if (levels.empty()) return done;
      levels.back().elements.push_back(done);
    }
  }

  // Returns the calls of MoveToHost to replace, operands before users.
  std::vector<Instruction> Stores() const {
    std::vector<Instruction> stores;
    for (Computation c : buffers_.computations()) {
      for (InstructionId id : PostOrder(c)) {
        const Instruction i = module_.instruction(id);
        if (IsMoveToHost(i) && buffers_.IsOnHost(i, 0)) stores.push_back(i);
      }
    }
    return stores;
  }

  void PlaceOnHost() {
    for (Computation c : buffers_.computations()) {
      for (Instruction i : c.instructions()) {
        // Stores are replaced.
        if (IsMoveToHost(i)) continue;
        bool placed = false;
        for (int64_t leaf = 0; leaf < i.shape().leaf_count() && !placed; ++leaf) placed = buffers_.IsOnHost(i, leaf);
        if (!placed) continue;
        const Shape shape = Placed(i);
        if (shape == i.shape()) continue;
        module_.SetShape(i.id(), shape);
        if (i.opcode() == Opcode::kParameter && i.parent().is_entry()) ++counts_.parameters;
      }
    }
  }

  void CopyEntrances() {
    for (const HostBuffers::Entrance& entrance : buffers_.entrances()) {
      const Instruction operand = module_.instruction(entrance.user).operand(entrance.operand_index);
      if (IsInHost(operand.shape())) continue;
      const InstructionId copy = Copy(Builder(&module_, entrance.user), operand, InHost(operand.shape()));
      module_.ReplaceOperand(entrance.user, entrance.operand_index, copy);
    }
    for (Computation c : buffers_.roots_to_copy()) {
      if (IsInHost(c.root().shape())) continue;
      module_.SetRoot(c.id(), Copy(Builder(&module_, c.id()), c.root(), InHost(c.root().shape())));
    }
  }

  InstructionId Copy(Builder builder, Instruction array, Shape shape) {
    builder.SetMetadata(array.metadata_id());
    return builder.Make(Opcode::kCopy, shape, {array.id()});
  }

  // Replaces a MoveToHost by a copy. Updates write from the memory of the device where they can.
  void Store(Instruction move) {
    const Instruction source = move.operand(0);
    InstructionId update;
    for (Instruction user : move.users()) {
      if (user.opcode() != Opcode::kDynamicUpdateSlice || user.operand(1) != move) continue;
      update = user.id();
      module_.ReplaceOperand(update, 1, source.id());
      MergeMetadata(module_, move.id(), update);
    }
    if (update.valid() && !move.has_users() && !move.is_root()) {
      EraseDead(module_, move.id(), update);
      ++counts_.arrays;
      return;
    }
    if (IsInHost(source.shape())) {
      Replace(module_, move.id(), source.id());
      ++counts_.redundant_stores;
      return;
    }
    Builder builder(&module_, move.id());
    builder.SetMetadata(move.metadata_id());
    Replace(module_, move.id(), builder.Make(Opcode::kCopy, InHost(move.shape()), {source.id()}));
    ++counts_.arrays;
  }

  // Returns the calls of MoveToDevice to replace, operands before users.
  std::vector<Instruction> Loads() const {
    std::vector<Instruction> loads;
    for (Computation c : buffers_.computations()) {
      for (InstructionId id : PostOrder(c)) {
        const Instruction i = module_.instruction(id);
        if (IsMoveToDevice(i) && !i.has_control_edges()) loads.push_back(i);
      }
    }
    return loads;
  }

  // Replaces the MoveToDevice of an array of the host, or of a slice of one, and of an array that is on the device.
  void Load(Instruction move) {
    const Instruction source = move.operand(0);
    if (IsInHost(source.shape())) {
      Builder builder(&module_, move.id());
      builder.SetMetadata(move.metadata_id());
      Replace(module_, move.id(), builder.Make(Opcode::kCopy, move.shape(), {source.id()}));
      return;
    }
    if (IsSlice(source) && IsInHost(source.operand(0).shape())) {
      Replace(module_, move.id(), source.opcode() == Opcode::kSlice ? MakeDynamic(source) : source.id());
    } else if (!IsSlice(source) && !IsMoveToHost(source) && buffers_.IsDefinedOnDevice(source)) {
      Replace(module_, move.id(), source.id());
      ++counts_.redundant_loads;
    }
  }

  // Returns a dynamic-slice instead of a slice of an array of the host: transfers are of that kind.
  InstructionId MakeDynamic(Instruction slice) {
    Builder builder(&module_, slice.id());
    builder.SetMetadata(slice.metadata_id());
    std::vector<InstructionId> operands = {slice.operand(0).id()};
    const SliceView view = SliceView::Of(slice);
    bool fits = true;
    for (int64_t d = 0; d < slice.shape().rank(); ++d) {
      fits = fits && view.start(d) <= std::numeric_limits<int32_t>::max();
    }
    const ElementType type = fits ? ElementType::kS32 : ElementType::kS64;
    for (int64_t d = 0; d < slice.shape().rank(); ++d) {
      operands.push_back(builder.MakeScalarConstant(type, static_cast<double>(view.start(d))));
    }
    const AttrValue sizes = {Attr::kDynamicSliceSizes, module_.ListPayload(slice.shape().dims())};
    const InstructionId dynamic = builder.Make(Opcode::kDynamicSlice, slice.shape(), operands, {sizes});
    Replace(module_, slice.id(), dynamic);
    return dynamic;
  }

  Module& module_;
  const HostBuffers& buffers_;
  const int64_t host_memory_space_;
  HostOffloadCounts counts_;
};

// Returns true if an instruction moves an array, or the entry has parameters on the host. Most modules have neither.
bool UsesHostMemory(const Module& module, int64_t host_memory_space) {
  if (module.header().entry_layout) {
    for (Shape parameter : module.header().entry_layout->parameters) {
      for (Shape leaf : Leaves(parameter)) {
        if (leaf.has_layout() && leaf.layout()->memory_space() == host_memory_space) return true;
      }
    }
  }
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (IsMoveToHost(i) || IsMoveToDevice(i)) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<HostOffloadCounts> OffloadToHost(Module& module, int64_t host_memory_space) {
  if (module.header().is_scheduled || !module.entry().valid()) return HostOffloadCounts();
  if (!UsesHostMemory(module, host_memory_space)) return HostOffloadCounts();
  const absl::StatusOr<HostBuffers> buffers = HostBuffers::Create(module, host_memory_space);
  if (!buffers.ok()) return buffers.status();
  return HostOffloader(&module, &*buffers, host_memory_space).Run();
}

namespace {

class HostOffload : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<HostOffloadCounts> counts = OffloadToHost(module, options().Int("host-memory-space"));
    if (!counts.ok()) return counts.status();
    if (counts->arrays > 0) Count("arrays offloaded", counts->arrays);
    if (counts->parameters > 0) Count("parameters placed on the host", counts->parameters);
    const int64_t redundant = counts->redundant_stores + counts->redundant_loads;
    if (redundant > 0) Count("redundant moves removed", redundant);
    return counts->arrays + counts->parameters + redundant > 0;
  }
};

}  // namespace

HLOKIT_PASS(HostOffloader) {
  return {.name = "host-offloader",
          .category = "schedule",
          .summary = "keep arrays in the memory of the host between MoveToHost and MoveToDevice",
          .doc =
              "MoveToHost becomes a copy to the host's memory space or a dynamic-update-slice of an array in "
              "it, MoveToDevice a copy from it or a dynamic-slice. Arrays are followed through tuples, loops, "
              "calls and branches, from parameters and to results that the layout of the entry places on the "
              "host. As in XLA, but an array that an operation of the device reads is left alone, where XLA "
              "marks the operation to run on the host; the buffer of updates is a copy, where XLA allocates one "
              "without values; and results of computations that run on the host are not followed. "
              "host-offload-legalize moves changes of layout out of the way.",
          .example = R"(ENTRY e {
  x = f32[8] parameter(0)
  activation = f32[8] exponential(x)
  there = f32[8] custom-call(activation), custom_call_target="MoveToHost"
  back = f32[8] custom-call(there), custom_call_target="MoveToDevice"
  ROOT y = f32[8] add(x, back)
})",
          .options = {HostMemorySpaceOption()},
          .preconditions = kNoSchedule,
          .create = MakePass<HostOffload>};
}

}  // namespace hlokit
