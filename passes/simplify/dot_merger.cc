// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/dot_merger.h"

#include <map>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "ir/graph/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {
namespace {

// Dependences followed before a pair is given up.
constexpr size_t kMaxSteps = 2000;

// Returns the only free dimension of one side of a dot, or nullopt if there is not exactly one.
std::optional<int64_t> FreeDim(Instruction dot, int64_t side) {
  const absl::Span<const int64_t> batch = dot.list_attr(side == 0 ? Attr::kLhsBatchDims : Attr::kRhsBatchDims);
  const absl::Span<const int64_t> contracting =
      dot.list_attr(side == 0 ? Attr::kLhsContractingDims : Attr::kRhsContractingDims);
  std::optional<int64_t> free;
  for (int64_t d = 0; d < dot.operand(side).shape().rank(); ++d) {
    const bool taken = absl::c_linear_search(batch, d) || absl::c_linear_search(contracting, d);
    if (taken) continue;
    if (free) return std::nullopt;
    free = d;
  }
  return free;
}

// Returns false if `from` is known not to depend on `on`.
bool MayDependOn(Instruction from, InstructionId on) {
  absl::flat_hash_set<uint32_t> seen;
  std::vector<InstructionId> open = {from.id()};
  while (!open.empty()) {
    const InstructionId at = open.back();
    open.pop_back();
    if (at == on || seen.size() > kMaxSteps) return true;
    if (!seen.insert(at.value).second) continue;
    for (Instruction operand : from.module().instruction(at).operands()) open.push_back(operand.id());
    for (Instruction p : from.module().instruction(at).control_predecessors()) open.push_back(p.id());
  }
  return false;
}

// Properties in which two dots that share operand `side` must agree.
using Likeness = std::vector<uint32_t>;
Likeness LikenessOf(Instruction dot, int64_t side) {
  Likeness key = {dot.operand(side).id().value, static_cast<uint32_t>(side),
                  static_cast<uint32_t>(dot.shape().element_type()),
                  static_cast<uint32_t>(dot.operand(1 - side).shape().element_type())};
  for (const AttrValue& value : dot.attrs()) {
    if (InfoOf(value.attr).category == AttrCategory::kAnnotation) continue;
    key.push_back(static_cast<uint32_t>(value.attr));
    key.push_back(value.payload);
  }
  return key;
}

}  // namespace

bool DotMerger::MergePair(Module& module, InstructionId first, InstructionId second, int64_t shared) {
  const Instruction a = module.instruction(first), b = module.instruction(second);
  const int64_t other = 1 - shared;
  const auto free = FreeDim(a, other);
  if (!free || FreeDim(b, other) != free) return false;
  const Shape p = a.operand(other).shape(), q = b.operand(other).shape();
  if (p.rank() != q.rank() || MayDependOn(b.operand(other), first) || MayDependOn(a.operand(other), second)) {
    return false;
  }
  ShapeTable& shapes = module.context().shapes;
  std::vector<int64_t> sizes(p.dims().begin(), p.dims().end());
  for (int64_t d = 0; d < p.rank(); ++d) {
    if (d != *free && p.dim(d) != q.dim(d)) return false;
  }
  sizes[static_cast<size_t>(*free)] += q.dim(*free);
  Builder builder(&module, second);
  const AnnotationScope scope(&builder, {first, second});
  const InstructionId both =
      builder.Make(Opcode::kConcatenate, shapes.Array(p.element_type(), sizes),
                   {a.operand(other).id(), b.operand(other).id()}, {builder.List(Attr::kDimensions, {*free})});
  // The free dimension of the left side follows the batch dimensions, that of the right side is last.
  const int64_t along =
      other == 1 ? a.shape().rank() - 1 : static_cast<int64_t>(a.list_attr(Attr::kLhsBatchDims).size());
  std::vector<int64_t> result(a.shape().dims().begin(), a.shape().dims().end());
  result[static_cast<size_t>(along)] += b.shape().dim(along);
  std::vector<InstructionId> operands = {a.operand(0).id(), a.operand(1).id()};
  operands[static_cast<size_t>(other)] = both;
  std::vector<AttrValue> attrs;
  for (const AttrValue& value : a.attrs()) {
    if (!IsCommon(value.attr)) attrs.push_back(value);
  }
  const InstructionId merged =
      builder.Make(Opcode::kDot, shapes.Array(a.shape().element_type(), result), operands, attrs);
  int64_t begin = 0;
  for (InstructionId id : {first, second}) {
    const Shape shape = module.instruction(id).shape();
    std::vector<int64_t> ranges;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      const int64_t start = d == along ? begin : 0;
      ranges.insert(ranges.end(), {start, start + shape.dim(d), 1});
    }
    begin += shape.dim(along);
    const InstructionId slice = builder.Make(Opcode::kSlice, shape, {merged}, {builder.List(Attr::kSlice, ranges)});
    SetMetadataFrom(module, slice, {id});
    Replace(module, id, slice);
  }
  return true;
}

bool DotMerger::MergeIn(Module& module, Computation c) {
  const int64_t max_bytes = options().Int("max-bytes");
  // By key, the last dot, to be merged with the next.
  std::map<Likeness, InstructionId> last;
  std::vector<InstructionId> dots;
  for (Instruction i : c.instructions()) {
    const bool small = i.opcode() == Opcode::kDot && i.operand_count() == 2 && !i.has_control_edges() &&
                       !i.has(Attr::kSharding) && !i.shape().has_dynamic_dims() && !i.shape().has_unbounded_dims() &&
                       i.shape().has_layout() && i.shape().layout()->is_default && ByteSize(i.shape()) <= max_bytes &&
                       ByteSize(i.operand(0).shape()) <= max_bytes && ByteSize(i.operand(1).shape()) <= max_bytes;
    if (small) dots.push_back(i.id());
  }
  bool merged = false;
  for (InstructionId dot : dots) {
    for (int64_t side = 0; side < 2; ++side) {
      if (!module.record(dot).parent.valid()) break;
      const auto [at, inserted] = last.try_emplace(LikenessOf(module.instruction(dot), side), dot);
      if (inserted || at->second == dot) continue;
      const InstructionId first = at->second;
      at->second = dot;
      if (!module.record(first).parent.valid() || !MergePair(module, first, dot, side)) continue;
      Count("pairs of dots merged");
      merged = true;
    }
  }
  if (!merged) return false;
  // A merged dot may come after users of the first dot's slice.
  for (InstructionId id : PostOrder(c)) module.MoveBefore(id, InstructionId());
  return true;
}

absl::StatusOr<bool> DotMerger::Run(Module& module) {
  // A schedule fixes when each dot runs.
  if (module.header().is_scheduled) return false;
  const ComputationRoles roles = RolesOf(module);
  bool changed = false;
  for (Computation c : module.computations()) {
    if (roles.fusion[c.id().value] || roles.async[c.id().value]) continue;
    // Merged dots may merge again: each round leaves fewer dots.
    while (MergeIn(module, c)) changed = true;
  }
  return changed;
}

HLOKIT_PASS(DotMerger) {
  return {.name = "dot-merger",
          .category = "simplify",
          .summary = "merge dots that share an operand",
          .doc =
              "Two independent dots that share an operand and agree in dimensions, types and precision "
              "become one dot of it and the concatenation of the others, and slices of the result: larger "
              "matmuls with exactly the same sums. Scheduled modules do not change.",
          .example = R"(ENTRY e {
  a = f32[2,3] parameter(0)
  b = f32[3,4] parameter(1)
  c = f32[3,5] parameter(2)
  d = f32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[2,5] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[2,4], f32[2,5]) tuple(d, e)
})",
          .options = {{"max-bytes", OptionInfo::Type::kInt, "33554432",
                       "dots with an operand or result larger than this stay"}},
          .create = MakePass<DotMerger>};
}

}  // namespace hlokit
