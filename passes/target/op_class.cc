// SPDX-License-Identifier: Apache-2.0
#include "passes/target/op_class.h"

#include <cstddef>

namespace hlokit::tpu {
namespace {

constexpr OpWork kWork[] = {
#define OPCODE(name, text, min, max, rule, traits, elements, cost, fusion, device, vector, transcendental, ...) \
  {OpClass::k##device, vector, transcendental},
#include "ir/ops/opcodes.def"
    {OpClass::kStandalone, 0, 0},  // an opcode that is not known
};

}  // namespace

OpWork OpWorkOf(Opcode opcode) { return kWork[static_cast<size_t>(opcode)]; }

}  // namespace hlokit::tpu
