// SPDX-License-Identifier: Apache-2.0
// Participants of collectives, shared by their kernels.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_DEVICES_COLLECTIVE_GROUPS_H_
#define HLOKIT_INTERP_EXACT_KERNELS_DEVICES_COLLECTIVE_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "interp/exact/builder/collective.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "ir/sharding/collective_groups.h"

namespace hlokit::interp {

// Fills params->groups and group_of from the instruction's replica groups. A device outside of all groups is an error
// at run time or, if `absent` is given, is marked there and forms a group of its own. Returns false after an error.
bool InitGroups(CompiledComputationBuilder& builder, CollectiveParams* params, std::vector<bool>* absent);

// Returns true if all groups have this size, which the shapes require; otherwise emits a trap.
bool GroupsHaveSize(CompiledComputationBuilder& builder, const CollectiveParams& params, int64_t size);

// Returns true if the last operand, which a dynamic root adds to those of which each has a result, holds the roots of
// `count` operands; otherwise fails.
bool HoldsRoots(CompiledComputationBuilder& builder, const View& view, size_t count);

// Makes each device a group.
void SetGroupsOfOne(int64_t devices, CollectiveParams* params);

// Returns "replica 0, partition 1".
std::string DeviceName(int64_t device, const RunContext& context);

// Sets the value of a collective-permute, or of its start.
void SetPermuteResults(CompiledComputationBuilder& builder, absl::Span<const View> operands,
                       absl::Span<const View> results);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_DEVICES_COLLECTIVE_GROUPS_H_
