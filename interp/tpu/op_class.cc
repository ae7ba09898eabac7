#include "interp/tpu/op_class.h"

#include <cstddef>
#include <iterator>

namespace hlokit::tpu {

namespace {

struct Row {
  Opcode opcode;
  OpWork work;
};
constexpr Row kRows[] = {
#define CLASS(name, op_class, vector, transcendental) {Opcode::k##name, {OpClass::op_class, vector, transcendental}},
#include "interp/tpu/op_class.def"
    {Opcode::kUnknown, {OpClass::kAlone, 0, 0}},
};

constexpr bool RowsAreInOrder() {
  if (std::size(kRows) != kOpcodeCount + 1) return false;
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].opcode != static_cast<Opcode>(i)) return false;
  }
  return true;
}
static_assert(RowsAreInOrder(), "op_class.def has a row for each opcode, in the order of opcodes.def");

}  // namespace

OpWork WorkOf(Opcode opcode) { return kRows[static_cast<size_t>(opcode)].work; }

}  // namespace hlokit::tpu
