// SPDX-License-Identifier: Apache-2.0
// Families of opcodes that viewers color alike.
#ifndef HLOKIT_PASSES_VIEW_OPCODE_FAMILY_H_
#define HLOKIT_PASSES_VIEW_OPCODE_FAMILY_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/graph/module.h"

namespace hlokit {

enum class OpcodeFamily : uint8_t {
  kParameter,
  kConstant,
  kMatmul,  // dot, convolution
  kElementwise,
  kReduction,
  kMovement,  // of data: reshape, slice, gather, ...
  kCollective,
  kFusion,
  kControl,  // calls, tuples
  kHost,
  kOther,
};
inline constexpr size_t kOpcodeFamilies = 11;

OpcodeFamily FamilyOf(Instruction i);
// The name that the page uses: "matmul".
std::string_view ToString(OpcodeFamily family);
// Returns a background for black text, "#rrggbb".
std::string_view LightColorOf(OpcodeFamily family);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_VIEW_OPCODE_FAMILY_H_
