#include "interp/reference/kernels.h"

#include <cstddef>
#include <iterator>

namespace hlokit::interp {
namespace {

struct Row {
  Opcode opcode;
  PrepareFn prepare;
};
constexpr Row kRows[] = {
#define KERNEL(opcode, function) {Opcode::k##opcode, function},
#include "interp/reference/kernels.def"
};

constexpr bool RowsAreInOrder() {
  if (std::size(kRows) != kOpcodeCount) return false;
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    if (kRows[i].opcode != static_cast<Opcode>(i)) return false;
  }
  return true;
}
static_assert(RowsAreInOrder(), "kernels.def has a row for each opcode, in the order of opcodes.def");

}  // namespace

PrepareFn PrepareFnOf(Opcode opcode) {
  return opcode == Opcode::kUnknown ? nullptr : kRows[static_cast<size_t>(opcode)].prepare;
}

}  // namespace hlokit::interp
