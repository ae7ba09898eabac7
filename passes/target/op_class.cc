// SPDX-License-Identifier: Apache-2.0
#include "passes/target/op_class.h"

#include <cstddef>

#include "ir/ops/opcode_table.h"

namespace hlokit::tpu {
namespace {

constexpr OpcodeRow<OpWork> kRows[] = {
#define OPCODE_WORK(name, op_class, vector, transcendental) \
  {Opcode::k##name, OpWork{OpClass::k##op_class, vector, transcendental}},
#include "passes/target/opcode_work.def"
};
constexpr auto kWork = MakeOpcodeTable<OpWork>(kRows, {.elementwise = OpWork{OpClass::kElementwise, 1, 0},
                                                       .other = std::nullopt,
                                                       .unknown = (OpWork{OpClass::kStandalone, 0, 0})});

}  // namespace

OpWork OpWorkOf(Opcode opcode) { return kWork[static_cast<size_t>(opcode)]; }

}  // namespace hlokit::tpu
