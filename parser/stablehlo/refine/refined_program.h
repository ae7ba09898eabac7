// SPDX-License-Identifier: Apache-2.0
// A program while it is refined: a tree of operations, whose values have numbers. Internal to this directory.
#ifndef HLOKIT_PARSER_STABLEHLO_REFINE_REFINED_PROGRAM_H_
#define HLOKIT_PARSER_STABLEHLO_REFINE_REFINED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "parser/mlir/module.h"

namespace hlokit::stablehlo {

struct RefinedRegion;

struct RefinedOp {
  const mlir::OpDefinition* definition = nullptr;  // null: not in the table
  StringId name;
  std::vector<uint32_t> operands;  // numbers of values
  std::vector<uint32_t> results;
  std::vector<mlir::Attribute> attributes;
  std::vector<std::unique_ptr<RefinedRegion>> regions;
  mlir::NodeId location;
  SourceRange range;

  mlir::OpKind kind() const { return definition == nullptr ? mlir::OpKind::kUnregistered : definition->kind; }
};

// A region of one block.
struct RefinedRegion {
  std::vector<uint32_t> arguments;
  std::vector<RefinedOp> operations;
  StringId label;
  bool has_block = true;
};

struct RefinedValue {
  mlir::NodeId type;
  mlir::NodeId location;  // of arguments
  // The elements of a small array of integers, if they are known.
  std::optional<std::vector<int64_t>> constant;
  bool late = false;  // the constant depends on a size that the program leaves open
  // Of a sum, the values that are added; both 0: it is none.
  uint32_t addends[2] = {0, 0};
};

// Puts the operations of a file in the place of those of `program`.
void SetOperations(const RefinedRegion& top, const std::vector<RefinedValue>& values, mlir::Module* program);

// Removes constants, and operations whose results are known integers, where nothing uses them.
void RemoveUnusedSizes(RefinedRegion* region, const std::vector<RefinedValue>& values);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_REFINE_REFINED_PROGRAM_H_
