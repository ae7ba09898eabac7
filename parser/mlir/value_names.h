// SPDX-License-Identifier: Apache-2.0
// The names of values in printed text, as MLIR chooses them: a region is numbered as a whole before the regions in it,
// which go on with its numbers, each from the same one. Arguments are %arg0, ...; results %0, ..., or what the
// operation suggests (%cst, %iterArg), with _N if it is taken.
#ifndef HLOKIT_PARSER_MLIR_VALUE_NAMES_H_
#define HLOKIT_PARSER_MLIR_VALUE_NAMES_H_

#include <string>
#include <vector>

#include "parser/mlir/module.h"

namespace hlokit::mlir {

class ValueNames {
 public:
  explicit ValueNames(const Module& module);

  // The name with `%`, for uses: also %0#1.
  std::string Use(ValueId value) const;
  // The names in front of an operation, `%0:2 = `; empty if it has no results.
  std::string Results(const Operation& op) const;
  std::string Block(BlockId block) const;

 private:
  const Module& m_;
  std::vector<std::string> names_;       // by ValueId, without `%`; of a group those of its first value
  std::vector<uint32_t> group_;          // by ValueId: index in the group
  std::vector<uint32_t> group_size_;     // by ValueId of the first one
  std::vector<uint32_t> block_numbers_;  // by BlockId
};

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_VALUE_NAMES_H_
