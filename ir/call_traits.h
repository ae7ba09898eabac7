// Which opcodes have attributes that name computations: a look at the table before a look at attributes.
#ifndef HLOKIT_IR_CALL_TRAITS_H_
#define HLOKIT_IR_CALL_TRAITS_H_

#include <array>

#include "ir/module.h"
#include "ir/opcode.h"

namespace hlokit {

inline bool MayCall(Opcode opcode) {
  static const std::array<bool, kOpcodeCount + 1> kTable = [] {
    std::array<bool, kOpcodeCount + 1> table{};
    for (size_t i = 0; i < kOpcodeCount; ++i) {
      for (const AttrSpec& spec : InfoOf(static_cast<Opcode>(i)).attributes) {
        const AttrType type = InfoOf(spec.attr).type;
        table[i] |= type == AttrType::kComputation || type == AttrType::kComputationList;
      }
    }
    // What this version does not know might.
    table[kOpcodeCount] = true;
    return table;
  }();
  return kTable[static_cast<size_t>(opcode)];
}

}  // namespace hlokit

#endif  // HLOKIT_IR_CALL_TRAITS_H_
