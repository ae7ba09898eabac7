// SPDX-License-Identifier: Apache-2.0
// What the kernels of collectives share: who takes part.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_COLLECTIVE_GROUPS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_COLLECTIVE_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "interp/exact/collective.h"
#include "interp/exact/compiled_computation_builder.h"
#include "ir/sharding/collective_groups.h"

namespace hlokit::interp {

// Fills plan->groups and group_of from the instruction's replica groups. A device in none of them is an error when the
// run gets there, or, if `absent` is given, marked there and alone in a group. False after an error.
bool InitGroups(CompiledComputationBuilder& builder, CollectivePlan* plan, std::vector<bool>* absent);

// Whether all groups are of this size, which the shapes ask for; an error when the run gets there if not.
bool GroupsHaveSize(CompiledComputationBuilder& builder, const CollectivePlan& plan, int64_t size);

// "replica 0, partition 1"
std::string DeviceName(int64_t device, const RunContext& context);

// The value of a collective-permute, or of its start.
void SetPermuteResults(CompiledComputationBuilder& builder, absl::Span<const View> operands,
                       absl::Span<const View> results);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_COLLECTIVE_GROUPS_H_
