// SPDX-License-Identifier: Apache-2.0
// Sets of opcodes: families that one rule or pass needs. A family that several libraries need is a trait (opcodes.def).
//
//   constexpr OpcodeSet kProducts = {Opcode::kDot, Opcode::kConvolution, Opcode::kRaggedDot};
//   const bool is_product = kProducts.Contains(opcode);
#ifndef HLOKIT_IR_OPS_OPCODE_SET_H_
#define HLOKIT_IR_OPS_OPCODE_SET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "ir/ops/opcode.h"

namespace hlokit {

class OpcodeSet {
 public:
  consteval OpcodeSet(std::initializer_list<Opcode> opcodes) {
    for (Opcode opcode : opcodes) words_[Index(opcode) / 64] |= uint64_t{1} << (Index(opcode) % 64);
  }
  constexpr bool Contains(Opcode opcode) const { return (words_[Index(opcode) / 64] >> (Index(opcode) % 64) & 1) != 0; }

 private:
  static constexpr size_t Index(Opcode opcode) { return static_cast<size_t>(opcode); }

  std::array<uint64_t, kOpcodeCount / 64 + 1> words_ = {};  // kUnknown too
};

}  // namespace hlokit

#endif  // HLOKIT_IR_OPS_OPCODE_SET_H_
