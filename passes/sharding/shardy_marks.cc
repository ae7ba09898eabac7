// SPDX-License-Identifier: Apache-2.0
// What Shardy's export says of values: constraints, results of the entry, groups, barriers, shardings of instructions.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/instruction_queries.h"
#include "ir/ops/opcode_set.h"
#include "ir/sharding/sharding.h"
#include "ir/sharding/tiling.h"
#include "ir/text/frontend_attributes.h"
#include "passes/annotations/annotations.h"
#include "passes/sharding/manual_region.h"
#include "passes/sharding/shardy_importer.h"

namespace hlokit::sharding {
namespace {

// Returns the number in a text such as "2 : i32"; -1 without one.
int64_t NumberOf(std::string_view text) {
  int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

absl::Status ShardyImporter::CheckPassesOperand(Instruction i) const {
  const Shape operand = i.operand(0).shape();
  if (Compatible(i.shape(), operand)) return absl::OkStatus();
  return Error(i, StrCat("the custom-call ", std::string(CustomCallTargetOf(i)), " returns its operand: the shape is ",
                         ToString(operand, false), ", not ", ToString(i.shape(), false)));
}

// A constraint within code for one device says nothing.
absl::Status ShardyImporter::ReadConstraint(Instruction i, const ManualRegion& region) {
  if (absl::Status status = CheckPassesOperand(i); !status.ok()) return status;
  if (region.IsAll()) {
    module_.RemoveAttr(i.id(), Attr::kSharding);
    Replace(module_, i.id(), i.operand(0).id());
    ++count_;
    return absl::OkStatus();
  }
  const std::vector<Shape> shapes = Leaves(i.shape());
  OpenShardings given = FromSdy(i, kSdySharding, shapes);
  if (given.ok() && !*given) given = FromAttribute(i);
  if (!given.ok()) return given.status();
  DropSdy(i, kSdySharding);
  if (!*given) return absl::OkStatus();
  std::vector<Tiling> leaves;
  for (size_t k = 0; k < shapes.size(); ++k) {
    leaves.push_back(InRegion((**given)[k].tiling, shapes[k].rank(), region));
  }
  SetSharding(i.id(), leaves);
  if ((*given)->size() != 1) return absl::OkStatus();
  open_[i.id().value] = (**given)[0].open;
  if (!i.has(Attr::kBackendConfig)) SetOpen(i.id(), (**given)[0].open);
  return absl::OkStatus();
}

absl::Status ShardyImporter::ReadSharding(Instruction i, const ManualRegion& region) {
  const std::vector<Shape> shapes = Leaves(i.shape());
  OpenShardings given = FromSdy(i, kSdySharding, shapes);
  if (!given.ok()) return given.status();
  const bool passes = OpcodeSet{Opcode::kCall, Opcode::kGetTupleElement}.Contains(i.opcode());
  const bool is_read = given->has_value();
  if (!is_read && (!region.empty() || passes)) given = FromAttribute(i);
  if (!given.ok()) return given.status();
  DropSdy(i, kSdySharding);
  // One that leaves all dimensions open says nothing that the conversions of a manual computation do not.
  if (passes && *given && std::all_of((*given)->begin(), (*given)->end(), [](const OpenSharding& leaf) {
        return !leaf.open.empty() && leaf.tiling.tiles() == 1;
      })) {
    module_.RemoveAttr(i.id(), Attr::kSharding);
    return absl::OkStatus();
  }
  std::vector<Tiling> leaves;
  if (*given && (is_read || !region.empty())) {
    for (size_t k = 0; k < (*given)->size(); ++k) {
      leaves.push_back(InRegion((**given)[k].tiling, shapes[k].rank(), region));
    }
  } else if (region.IsAll() || (!region.empty() && i.operand_count() == 0 &&
                                !OpcodeSet{Opcode::kParameter, Opcode::kCall}.Contains(i.opcode()))) {
    for (const Shape shape : shapes) leaves.push_back(InRegion(Tiling(), shape.rank(), region));
  }
  if (!leaves.empty()) SetSharding(i.id(), leaves);
  return absl::OkStatus();
}

// The sharding of a result of the entry goes to the root, if that has none.
absl::Status ShardyImporter::ReadResult(Instruction i, const ManualRegion& region) {
  if (absl::Status status = CheckPassesOperand(i); !status.ok()) return status;
  OpenShardings given = FromSdy(i, kSdySharding, Leaves(i.shape()));
  if (given.ok() && !*given) given = FromAttribute(i);
  if (!given.ok()) return given.status();
  ++count_;
  const InstructionId operand = i.operand(0).id();
  if (*given && (*given)->size() == 1) {
    Builder b(&module_, i.id());
    const AnnotationScope scope(&b, {i.id()});
    const Tiling tiling = InRegion((**given)[0].tiling, i.shape().rank(), region);
    const InstructionId constraint = AddCall(&b, "Sharding", operand, i.shape(), tiling, {});
    if (i.parent().is_entry()) result_of_[constraint.value] = tiling;
    module_.RemoveAttr(i.id(), Attr::kSharding);
    Replace(module_, i.id(), constraint);
    return absl::OkStatus();
  }
  Replace(module_, i.id(), operand);
  return absl::OkStatus();
}

void ShardyImporter::ReadGroup(Instruction i) {
  ++count_;
  const InstructionId id = i.id();
  const StringId text = FindFrontendAttribute(i, "xla.sdy.sharding_group_id");
  const int64_t group = text.valid() ? NumberOf(module_.context().str(text)) : -1;
  if (i.operand_count() == 1 && i.operand(0).shape().IsArray() && group >= 0) {
    const Instruction member = i.operand(0);
    Tiling tiling = Tiling::Of(ShardingKind::kUnknown);
    if (const std::optional<uint32_t> own = member.payload(Attr::kSharding)) {
      const Sharding sharding = DecodeSharding(module_.context(), ListId(*own));
      tiling = TilingOf(sharding.leaf(), member.shape().rank()).value_or(Tiling());
    }
    tiling.group = ShardGroup::kAs;
    tiling.group_id = group;
    SetSharding(member.id(), {tiling});
  }
  if (!module_.instruction(id).has_users() && !module_.instruction(id).is_root()) module_.Erase(id);
}

absl::Status ShardyImporter::ReadBarrier(Instruction i) {
  if (absl::Status status = CheckPassesOperand(i); !status.ok()) return status;
  ++count_;
  const StringId text = FindFrontendAttribute(i, "xla.sdy.allowed_direction");
  // 1: forward only, 2: backward only, 3: both.
  const int64_t allowed = text.valid() ? NumberOf(module_.context().str(text)) : 0;
  Builder b(&module_, i.id());
  const AnnotationScope scope(&b, {i.id()});
  InstructionId value = i.operand(0).id();
  const auto add = [&](std::string_view target) {
    value = b.WithName("custom-call")
                .Make(Opcode::kCustomCall, i.shape(), {value}, {b.String(Attr::kCustomCallTarget, target)});
  };
  if (allowed == 0 || allowed == 2) add("ShardBarrierFrom");
  if (allowed == 0 || allowed == 1) add("ShardBarrierTo");
  Replace(module_, i.id(), value);
  return absl::OkStatus();
}

// Reducers, comparators and others that run on elements: constraints there mean nothing.
absl::Status ShardyImporter::RemoveMarksOf(Computation c) {
  std::vector<InstructionId> all;
  for (Instruction i : c.instructions()) all.push_back(i.id());
  for (const InstructionId id : all) {
    const Instruction i = module_.instruction(id);
    const std::string_view target = CustomCallTargetOf(i);
    DropSdy(i, kSdySharding);
    if (target != "Sharding" || i.operand_count() != 1) continue;
    if (absl::Status status = CheckPassesOperand(i); !status.ok()) return status;
    module_.RemoveAttr(id, Attr::kSharding);
    Replace(module_, id, i.operand(0).id());
    ++count_;
  }
  return absl::OkStatus();
}

void ShardyImporter::SetRootSharding() {
  const Instruction root = module_.entry().root();
  if (root.has(Attr::kSharding) || result_of_.empty()) return;
  // Each leaf by the way it takes through tuples.
  const auto element = [](Instruction i, std::vector<int64_t> path) {
    for (;; i = i.operand(0)) {
      for (; i.opcode() == Opcode::kTuple && !path.empty(); path.pop_back()) i = i.operand(path.back());
      if (i.opcode() != Opcode::kGetTupleElement) return i;
      path.push_back(i.int_attr(Attr::kIndex));
    }
  };
  std::vector<Tiling> leaves;
  bool known = false;
  const auto add = [&](Instruction value) {
    const auto found = result_of_.find(value.id().value);
    known = known || found != result_of_.end();
    leaves.push_back(found != result_of_.end() ? found->second : Tiling());
  };
  const bool tuple = root.shape().IsTuple();
  for (int64_t k = 0; k < (tuple ? root.shape().tuple_size() : 1); ++k) {
    if (tuple && root.shape().element(k).IsTuple()) return;  // results are a flat tuple
    add(element(root, tuple ? std::vector<int64_t>{k} : std::vector<int64_t>()));
  }
  if (known) SetSharding(root.id(), leaves);
}

}  // namespace hlokit::sharding
