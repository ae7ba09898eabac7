// SPDX-License-Identifier: Apache-2.0
// Thunks that show values to the observer of a run.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/machine/strided_copy.h"

namespace hlokit::interp {
namespace {

// Returns true if the elements of a view fill a range of memory, whatever their order.
bool FillsMemory(const View& view) {
  if (view.dense()) return true;
  struct Dimension {
    int64_t stride, size;
  };
  absl::InlinedVector<Dimension, 6> dimensions;
  for (int64_t i = 0; i < view.shape.rank(); ++i) dimensions.push_back({view.strides[i], view.shape.dims()[i]});
  std::sort(dimensions.begin(), dimensions.end(), [](Dimension a, Dimension b) { return a.stride < b.stride; });
  int64_t stride = 1;
  for (const Dimension& d : dimensions) {
    if (d.size == 1) continue;
    if (d.stride != stride) return false;
    stride *= d.size;
  }
  return true;
}

}  // namespace

bool CompiledComputationBuilder::IsObserved(Instruction instruction) const {
  return program_.options().observation.Shows(instruction.id());
}

ObserveParams& CompiledComputationBuilder::EmitObservation(absl::Span<const View> values,
                                                           absl::Span<const View> operands) {
  std::vector<View> shown;
  for (const View& v : values) shown.push_back(FillsMemory(v) ? v : MakeDense(v));
  shown.insert(shown.end(), operands.begin(), operands.end());
  auto params = std::make_unique<ObserveParams>();
  params->value_count = values.size();
  for (uint32_t i = 0; i < shown.size(); ++i) {
    if (shown[i].dense()) continue;
    const int64_t bytes = BytesOfLeaf(shown[i].shape);
    params->copies.push_back({i, RunStridedCopy, StridedCopyParams(shown[i]), bytes});
  }
  Thunk& thunk = AddThunk(shown);
  thunk.kind = ThunkKind::kObserve;
  thunk.params = params.get();
  ObserveParams& added = *params;
  compiled_->thunk_params.push_back(std::move(params));
  return added;
}

void CompiledComputationBuilder::EmitObservation(uint32_t first_slot) {
  const ObservationRequest& observation = program_.options().observation;
  const std::vector<View> values(leaves(current_).begin(), leaves(current_).end());
  if (observation.computed_only &&
      std::none_of(values.begin(), values.end(), [&](const View& v) { return v.slot >= first_slot; })) {
    return;
  }
  std::vector<View> operands;
  if (observation.operands) {
    for (Instruction operand : current_.operands()) {
      const absl::Span<const View> parts = leaves(operand);
      operands.insert(operands.end(), parts.begin(), parts.end());
    }
  }
  EmitObservation(values, operands);
}

void CompiledComputationBuilder::ObserveGroup(const InstructionGroup& group) {
  const std::vector<bool>& shown = program_.options().observation.grouped;
  const auto is_shown = [&](Instruction i) { return ObservationRequest::IsSet(shown, i.id()); };
  if (std::none_of(group.members.begin(), group.members.end(), is_shown)) return;
  ObservedGroup observed;
  observed.members = group.members;
  absl::flat_hash_set<uint32_t> seen;
  for (Instruction member : group.members) seen.insert(member.id().value);
  std::vector<View> values, operands;
  const auto append = [&](Instruction i, std::vector<View>* views) {
    const absl::Span<const View> parts = leaves(i);
    views->insert(views->end(), parts.begin(), parts.end());
  };
  for (Instruction member : group.members) {
    if (HasViews(member)) {
      observed.results.push_back(member);
      append(member, &values);
    }
    for (Instruction operand : member.operands()) {
      if (!seen.insert(operand.id().value).second) continue;
      observed.operands.push_back(operand);
      append(operand, &operands);
    }
  }
  current_ = group.members.back();
  EmitObservation(values, operands).group = std::move(observed);
}

}  // namespace hlokit::interp
