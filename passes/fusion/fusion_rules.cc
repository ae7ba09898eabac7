#include "passes/fusion/fusion_rules.h"

#include <cstddef>
#include <iterator>

namespace hlokit {
namespace {

struct Row {
  Opcode opcode;
  FusionClass fusion_class;
};
constexpr Row kRows[] = {
#define FUSE(opcode, fusion_class) {Opcode::k##opcode, FusionClass::fusion_class},
#include "passes/fusion/fusion_rules.def"
};

constexpr bool RowsAreInOrder() {
  if (std::size(kRows) != kOpcodeCount) return false;
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    if (kRows[i].opcode != static_cast<Opcode>(i)) return false;
  }
  return true;
}
static_assert(RowsAreInOrder(), "fusion_rules.def has a row for each opcode, in the order of opcodes.def");

}  // namespace

FusionClass FusionClassOf(Opcode opcode) {
  return opcode == Opcode::kUnknown ? FusionClass::kOpaque : kRows[static_cast<size_t>(opcode)].fusion_class;
}

}  // namespace hlokit
