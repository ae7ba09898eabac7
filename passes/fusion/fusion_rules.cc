// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion/fusion_rules.h"

#include <cstddef>

#include "ir/ops/opcode_table.h"

namespace hlokit {
namespace {

constexpr OpcodeRow<FusionClass> kRows[] = {
#define FUSION_CLASS(name, fusion_class) {Opcode::k##name, FusionClass::k##fusion_class},
#include "passes/fusion/fusion_classes.def"
};
constexpr auto kClasses = MakeOpcodeTable<FusionClass>(
    kRows, {.elementwise = FusionClass::kCheap, .other = FusionClass::kOpaque, .unknown = FusionClass::kOpaque});

}  // namespace

FusionClass FusionClassOf(Opcode opcode) { return kClasses[static_cast<size_t>(opcode)]; }

}  // namespace hlokit
