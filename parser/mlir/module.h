// SPDX-License-Identifier: Apache-2.0
// A program at the level of MLIR: operations with regions of blocks of operations, in flat arrays. What the text said
// is kept: nothing is converted or inferred.
#ifndef HLOKIT_PARSER_MLIR_MODULE_H_
#define HLOKIT_PARSER_MLIR_MODULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "parser/mlir/definition.h"
#include "parser/mlir/node.h"

namespace hlokit::mlir {

using ValueId = Id<struct ValueTag>;
using OperationId = Id<struct OperationTag>;
using BlockId = Id<struct BlockTag>;
using RegionId = Id<struct RegionTag>;

struct Attribute {
  StringId name;
  NodeId value;
  bool inherent;  // a property of the operation, not a discardable attribute
};

struct Value {
  NodeId type;
  NodeId location;  // of block arguments
  OperationId definition;
  BlockId block;       // of block arguments
  uint32_t index = 0;  // among the results or arguments
};

struct Operation {
  StringId name;
  const OpDefinition* definition = nullptr;  // null: not in the table
  BlockId block;
  OperationId next;
  uint32_t operand_begin = 0, operand_count = 0;
  uint32_t result_begin = 0, result_count = 0;
  uint32_t attribute_begin = 0, attribute_count = 0;
  uint32_t region_begin = 0, region_count = 0;
  uint32_t successor_begin = 0, successor_count = 0;
  OperationId same_as;  // an earlier operation with equal attributes and types, and the same list of attributes
  NodeId location;      // invalid: none in the text
  uint32_t offset = 0;  // of the name in the source
  uint32_t name_size = 0;

  OpKind kind() const { return definition == nullptr ? OpKind::kUnregistered : definition->kind; }
};

struct Block {
  RegionId region;
  BlockId next;
  OperationId first, last;
  uint32_t argument_begin = 0, argument_count = 0;
  StringId label;  // invalid: none
};

struct Region {
  OperationId parent;
  BlockId first, last;
  // The values and operations in it, those of regions in it too.
  uint32_t value_begin = 0, value_end = 0;
  uint32_t operation_begin = 0, operation_end = 0;
};

class Module {
 public:
  NodeTable nodes;
  std::vector<Operation> operations;
  std::vector<Block> blocks;
  std::vector<Region> regions;
  std::vector<Value> values;
  std::vector<ValueId> operands;
  std::vector<Attribute> attributes;
  std::vector<RegionId> region_lists;
  std::vector<BlockId> successors;
  RegionId top;  // of the operations of the file
  // The resource section: keys and bytes, with the four bytes of the alignment in front.
  absl::flat_hash_map<std::string, std::string> resources;
  std::shared_ptr<const SourceBuffer> source;

  const Operation& op(OperationId id) const { return operations[id.value]; }
  std::string_view name(OperationId id) const { return nodes.str(operations[id.value].name); }
  OpKind kind(OperationId id) const { return operations[id.value].kind(); }
  absl::Span<const ValueId> operands_of(const Operation& op) const {
    return {operands.data() + op.operand_begin, op.operand_count};
  }
  ValueId result(const Operation& op, size_t i = 0) const {
    return ValueId(op.result_begin + static_cast<uint32_t>(i));
  }
  NodeId type(ValueId id) const { return values[id.value].type; }
  absl::Span<const Attribute> attributes_of(const Operation& op) const {
    return {attributes.data() + op.attribute_begin, op.attribute_count};
  }
  absl::Span<const RegionId> regions_of(const Operation& op) const {
    return {region_lists.data() + op.region_begin, op.region_count};
  }
  // The value of an attribute; invalid if there is none.
  NodeId attribute(const Operation& op, std::string_view name) const {
    for (const Attribute& a : attributes_of(op)) {
      if (nodes.str(a.name) == name) return a.value;
    }
    return {};
  }
  // The only or first block of a region; invalid if it is empty.
  BlockId block(RegionId id) const { return regions[id.value].first; }
  ValueId argument(const Block& block, size_t i) const {
    return ValueId(block.argument_begin + static_cast<uint32_t>(i));
  }
  SourceRange range(const Operation& op) const { return {op.offset, op.name_size}; }
};

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_MODULE_H_
