// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/host_memory.h"

#include <string_view>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "ir/text/frontend_attributes.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/collective/async_pair.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {
namespace {

constexpr std::string_view kPlacementCall = "annotate_device_placement";
constexpr std::string_view kPlacementKey = "_xla_buffer_placement";

// XLA does not distinguish pinned from other memory of the host.
constexpr std::pair<std::string_view, std::string_view> kPlacements[] = {
    {"pinned_host", "MoveToHost"},      {"unpinned_host", "MoveToHost"},  {"device", "MoveToDevice"},
    {"device_sram", "PinToDeviceSram"}, {"pinned_device", "PinToDevice"},
};

// Returns the target of the call that does what `placement` asks for, or "".
std::string_view TargetOfPlacement(std::string_view placement) {
  for (const auto& [name, target] : kPlacements) {
    if (name == placement) return target;
  }
  return "";
}

bool ConvertPlacement(Module& module, Instruction call) {
  Context& context = module.context();
  if (call.opcode() != Opcode::kCustomCall || call.string_attr(Attr::kCustomCallTarget) != kPlacementCall) return false;
  const StringId placement = FindFrontendAttribute(call, kPlacementKey);
  if (!placement.valid() || call.operand_count() != 1 || call.operand(0).shape() != call.shape()) return false;
  const std::string_view target = TargetOfPlacement(context.str(placement));
  if (target.empty()) return false;
  const ListId others =
      WithoutFrontendAttribute(&context, ListId(*call.payload(Attr::kFrontendAttributes)), kPlacementKey);
  std::vector<AttrValue> attrs = {{Attr::kCustomCallTarget, context.strings.Intern(target).value}};
  for (AttrValue attr : call.attrs()) {
    if (IsCommon(attr.attr) && attr.attr != Attr::kFrontendAttributes) attrs.push_back(attr);
  }
  if (others.valid() && !context.list(others).empty()) attrs.push_back({Attr::kFrontendAttributes, others.value});
  module.SetAttrs(call.id(), attrs);
  return true;
}

bool IsIn(Shape shape, int64_t memory_space) {
  return shape.IsArray() && shape.has_layout() && shape.layout()->memory_space() == memory_space;
}

// Splits a copy into copy-start and copy-done.
void MakeCopyAsync(Module& module, Instruction copy) {
  ShapeTable& shapes = module.context().shapes;
  const Shape result = copy.shape();
  const Shape parts[] = {result, copy.operand(0).shape(), shapes.Scalar(ElementType::kU32)};
  Builder builder(&module, copy.id());
  const MetadataScope scope(&builder, copy.metadata_id());
  builder.WithName(StrCat(copy.name(), "-start"));
  const InstructionId start = builder.Make(Opcode::kCopyStart, shapes.Tuple(parts), {copy.operand(0).id()});
  builder.WithName(StrCat(copy.name(), "-done"));
  Replace(module, copy.id(), builder.Make(Opcode::kCopyDone, result, {start}));
}

// Returns true if `i` moves data between the memories of host and device.
bool IsTransfer(Instruction i, int64_t host) {
  constexpr int64_t kDeviceMemory = 0;
  if (i.opcode() == Opcode::kDynamicSlice) {
    return IsIn(i.operand(0).shape(), host) && IsIn(i.shape(), kDeviceMemory);
  }
  if (i.opcode() == Opcode::kDynamicUpdateSlice) {
    return IsIn(i.operand(0).shape(), host) && IsIn(i.shape(), host) && IsIn(i.operand(1).shape(), kDeviceMemory);
  }
  if (i.opcode() != Opcode::kCopy) return false;
  const Shape from = i.operand(0).shape(), to = i.shape();
  // A copy-start keeps the element type, which a copy may change.
  if (from.element_type() != to.element_type()) return false;
  return (IsIn(from, host) && IsIn(to, kDeviceMemory)) || (IsIn(from, kDeviceMemory) && IsIn(to, host));
}

}  // namespace

absl::StatusOr<int64_t> ConvertMemoryPlacements(Module& module) {
  const ComputationRoles roles = RolesOf(module);
  int64_t converted = 0;
  for (Computation c : module.computations()) {
    if (roles.fusion[c.id().value] != 0) continue;
    for (Instruction i : c.instructions()) converted += ConvertPlacement(module, i) ? 1 : 0;
  }
  return converted;
}

absl::StatusOr<int64_t> MakeHostTransfersAsync(Module& module, int64_t host_memory_space) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  const CallGraph calls(module);
  const ComputationRoles roles = RolesOf(module);
  int64_t made = 0;
  for (Computation c : module.computations()) {
    if (!calls.IsSequential(c) || roles.async[c.id().value] != 0) continue;
    std::vector<InstructionId> transfers;
    for (Instruction i : c.instructions()) {
      const bool plain = !i.has_control_edges() && !i.has(Attr::kSharding);
      if (plain && IsTransfer(i, host_memory_space)) transfers.push_back(i.id());
    }
    for (InstructionId id : transfers) {
      const Instruction i = module.instruction(id);
      if (i.opcode() == Opcode::kCopy) {
        MakeCopyAsync(module, i);
      } else if (const absl::Status status = WrapInAsyncPair(module, id); !status.ok()) {
        return status;
      }
      ++made;
    }
  }
  return made;
}

OptionInfo HostMemorySpaceOption() {
  return {.name = "host-memory-space",
          .type = OptionInfo::Type::kInt,
          .default_text = "5",
          .doc = "number of the memory space of the host, S(5) in layouts",
          .min = 1};
}

namespace {

class MemoryPlacementConverter : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = ConvertMemoryPlacements(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("placements converted", *count);
    return *count > 0;
  }
};

class HostTransferAsyncifier : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = MakeHostTransfersAsync(module, options().Int("host-memory-space"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("transfers made asynchronous", *count);
    return *count > 0;
  }
};

}  // namespace

HLOKIT_PASS(ConvertMemoryPlacementToInternalAnnotations) {
  return {.name = "convert-memory-placement-to-internal-annotations",
          .category = "schedule",
          .summary = "convert placements in memories to calls that name the memory",
          .doc =
              "Calls of annotate_device_placement, as JAX makes them, become calls of MoveToHost, MoveToDevice, "
              "PinToDevice or PinToDeviceSram. As in XLA, but other frontend attributes stay.",
          .example = R"(ENTRY e {
  x = f32[8] parameter(0)
  there = f32[8] custom-call(x), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true, frontend_attributes={_xla_buffer_placement="pinned_host"}
  ROOT y = f32[8] negate(there)
})",
          .create = MakePass<MemoryPlacementConverter>};
}

HLOKIT_PASS(HostMemoryTransferAsyncifier) {
  return {.name = "host-memory-transfer-asyncifier",
          .category = "schedule",
          .summary = "make transfers between host and device asynchronous",
          .doc =
              "Dynamic-slices from arrays in the host's memory, dynamic-update-slices of them and copies become "
              "start and done, between which `schedule` puts other work. As in XLA.",
          .example = R"(ENTRY e {
  weights = f32[4,8]{1,0:S(5)} parameter(0)
  layer = s32[] parameter(1)
  zero = s32[] constant(0)
  w = f32[1,8]{1,0} dynamic-slice(weights, layer, zero), dynamic_slice_sizes={1,8}
  ROOT y = f32[1,8]{1,0} negate(w)
})",
          .options = {HostMemorySpaceOption()},
          .preconditions = kNoSchedule,
          .create = MakePass<HostTransferAsyncifier>};
}

}  // namespace hlokit
