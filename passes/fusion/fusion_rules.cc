// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion/fusion_rules.h"

#include <cstddef>

namespace hlokit {
namespace {

constexpr FusionClass kClasses[] = {
#define OPCODE(name, text, min, max, rule, traits, elements, cost, fusion, ...) FusionClass::k##fusion,
#include "ir/ops/opcodes.def"
    FusionClass::kOpaque,  // an opcode that is not known
};

}  // namespace

FusionClass FusionClassOf(Opcode opcode) { return kClasses[static_cast<size_t>(opcode)]; }

}  // namespace hlokit
