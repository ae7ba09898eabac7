// SPDX-License-Identifier: Apache-2.0
// Modules of one instruction with dimension numbers or other lists of attributes: gather, scatter, products, windows,
// slices, sorts, transforms, collectives. Most attributes fit; some overlap, repeat, are out of order, empty or
// extreme, and types are mixed. So the verifier accepts many modules that nobody would write, and all engines must
// agree on them.
#ifndef HLOKIT_TESTS_RANDOM_DIMENSION_NUMBERS_H_
#define HLOKIT_TESTS_RANDOM_DIMENSION_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/ops/opcode.h"
#include "ir/types/element_type.h"

namespace hlokit::random_test {

struct DimensionNumbersCase {
  struct Operand {
    std::string shape;
    std::string value;  // as a literal
  };
  Opcode opcode = Opcode::kGather;
  std::string computations;
  std::vector<Operand> operands;
  std::string moved;  // an instruction `m` on operand 0, in place of which it is the operand; empty: none
  std::string shape;  // of the result; empty: the parser infers it
  std::string attributes;
  std::optional<ElementType> result_type;  // in place of that of the shape, which rules may leave open
  bool has_overlaps = false;  // groups of a ragged dot overlap, for which passes give other values than engines
  int64_t replicas = 1, partitions = 1;

  // Returns the module as HLO text, with operands as constants or as parameters.
  std::string Text(bool constants) const;
};

// Opcodes of which there are modules.
const std::vector<Opcode>& OpcodesWithDimensionNumbers();

// Returns a module with this opcode that depends on the seed alone.
DimensionNumbersCase MakeDimensionNumbersCase(Opcode opcode, uint64_t seed);

}  // namespace hlokit::random_test

#endif  // HLOKIT_TESTS_RANDOM_DIMENSION_NUMBERS_H_
