// SPDX-License-Identifier: Apache-2.0
// How the unnamed forms of shardings say by which operation the shards of an unreduced leaf combine: in metadata, whose
// op_type is the note and whose op_name names the operation.
#ifndef HLOKIT_IR_SHARDING_REDUCTION_NOTE_H_
#define HLOKIT_IR_SHARDING_REDUCTION_NOTE_H_

#include <string_view>

namespace hlokit {

inline constexpr std::string_view kReductionNote = "sdy::reduction_op";
inline constexpr std::string_view kReductionNames[] = {"SUM", "MAX", "MIN"};  // by ReductionOp

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_REDUCTION_NOTE_H_
