// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/refine/refined_program.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace hlokit::stablehlo {
namespace {

using mlir::BlockId;
using mlir::OperationId;
using mlir::OpKind;
using mlir::RegionId;
using mlir::ValueId;

// Lays out the tree in the arrays of a module: a region before those in it, and what is in it together. The depth of
// the calls is that of the tree, which kMaxDepth of refiner.h limits.
class Layout {
 public:
  Layout(const std::vector<RefinedValue>& values, mlir::Module* program) : values_(values), m_(*program) {
    numbers_.resize(values.size());
  }

  void AddRegion(const RefinedRegion& region, RegionId id) {
    m_.regions[id.value].value_begin = static_cast<uint32_t>(m_.values.size());
    m_.regions[id.value].operation_begin = static_cast<uint32_t>(m_.operations.size());
    if (region.has_block) AddBlock(region, id);
    m_.regions[id.value].value_end = static_cast<uint32_t>(m_.values.size());
    m_.regions[id.value].operation_end = static_cast<uint32_t>(m_.operations.size());
  }

 private:
  void AddBlock(const RefinedRegion& region, RegionId id) {
    const BlockId block(static_cast<uint32_t>(m_.blocks.size()));
    m_.regions[id.value].first = m_.regions[id.value].last = block;
    mlir::Block made;
    made.region = id;
    made.label = region.label;
    made.argument_begin = static_cast<uint32_t>(m_.values.size());
    made.argument_count = static_cast<uint32_t>(region.arguments.size());
    m_.blocks.push_back(made);
    for (size_t i = 0; i < region.arguments.size(); ++i) AddValue(region.arguments[i], OperationId(), block, i);
    for (const RefinedOp& op : region.operations) AddOperation(op, block);
  }

  void AddValue(uint32_t value, OperationId definition, BlockId block, size_t index) {
    numbers_[value] = ValueId(static_cast<uint32_t>(m_.values.size()));
    m_.values.push_back(
        {values_[value].type, values_[value].location, definition, block, static_cast<uint32_t>(index)});
  }

  void AddOperation(const RefinedOp& op, BlockId block_id) {
    const OperationId id(static_cast<uint32_t>(m_.operations.size()));
    mlir::Operation made;
    made.name = op.name;
    made.definition = op.definition;
    made.block = block_id;
    made.location = op.location;
    made.offset = op.range.offset;
    made.name_size = op.range.size;
    made.operand_begin = static_cast<uint32_t>(m_.operands.size());
    made.operand_count = static_cast<uint32_t>(op.operands.size());
    for (uint32_t operand : op.operands) m_.operands.push_back(numbers_[operand]);
    made.attribute_begin = static_cast<uint32_t>(m_.attributes.size());
    made.attribute_count = static_cast<uint32_t>(op.attributes.size());
    m_.attributes.insert(m_.attributes.end(), op.attributes.begin(), op.attributes.end());
    made.region_begin = static_cast<uint32_t>(m_.region_lists.size());
    made.region_count = static_cast<uint32_t>(op.regions.size());
    const size_t first_region = m_.regions.size();
    for (size_t i = 0; i < op.regions.size(); ++i) {
      m_.region_lists.push_back(RegionId(static_cast<uint32_t>(first_region + i)));
      m_.regions.push_back({});
      m_.regions.back().parent = id;
    }
    made.result_begin = static_cast<uint32_t>(m_.values.size());
    made.result_count = static_cast<uint32_t>(op.results.size());
    for (size_t i = 0; i < op.results.size(); ++i) AddValue(op.results[i], id, BlockId(), i);
    mlir::Block& block = m_.blocks[block_id.value];
    if (block.last.valid()) {
      m_.operations[block.last.value].next = id;
    } else {
      block.first = id;
    }
    block.last = id;
    m_.operations.push_back(made);
    for (size_t i = 0; i < op.regions.size(); ++i) {
      AddRegion(*op.regions[i], RegionId(static_cast<uint32_t>(first_region + i)));
    }
  }

  const std::vector<RefinedValue>& values_;
  mlir::Module& m_;
  std::vector<ValueId> numbers_;
};

// How often a region uses values.
using Uses = absl::flat_hash_map<uint32_t, uint32_t>;

void CountUses(const RefinedRegion& region, Uses* uses) {
  for (const RefinedOp& op : region.operations) {
    for (uint32_t operand : op.operands) ++(*uses)[operand];
    for (const auto& inner : op.regions) CountUses(*inner, uses);
  }
}

bool IsConstantOp(const RefinedOp& op) {
  return op.kind() == OpKind::kStablehloConstant || op.kind() == OpKind::kArithConstant;
}

bool ComputesSize(const RefinedOp& op, const std::vector<RefinedValue>& values) {
  if (op.results.empty() || !op.regions.empty() || op.definition == nullptr) return false;
  if (IsConstantOp(op)) return true;
  if (op.kind() == OpKind::kStablehloCustomCall || op.kind() == OpKind::kFuncCall) return false;
  return std::all_of(op.results.begin(), op.results.end(),
                     [&](uint32_t value) { return values[value].constant.has_value(); });
}

void RemoveUnused(RefinedRegion* region, const std::vector<RefinedValue>& values, Uses* uses) {
  std::vector<RefinedOp> kept;
  for (size_t i = region->operations.size(); i-- > 0;) {
    RefinedOp& op = region->operations[i];
    const bool used = std::any_of(op.results.begin(), op.results.end(), [&](uint32_t value) {
      const auto found = uses->find(value);
      return found != uses->end() && found->second != 0;
    });
    if (!used && ComputesSize(op, values)) {
      for (uint32_t operand : op.operands) --(*uses)[operand];
      continue;
    }
    for (const auto& inner : op.regions) RemoveUnused(inner.get(), values, uses);
    kept.push_back(std::move(op));
  }
  std::reverse(kept.begin(), kept.end());
  region->operations = std::move(kept);
}

}  // namespace

void SetOperations(const RefinedRegion& top, const std::vector<RefinedValue>& values, mlir::Module* program) {
  program->operations.clear();
  program->blocks.clear();
  program->regions.clear();
  program->values.clear();
  program->operands.clear();
  program->attributes.clear();
  program->region_lists.clear();
  program->successors.clear();
  program->top = RegionId(0);
  program->regions.push_back({});
  Layout(values, program).AddRegion(top, program->top);
}

void RemoveUnusedSizes(RefinedRegion* region, const std::vector<RefinedValue>& values) {
  Uses uses;
  CountUses(*region, &uses);
  RemoveUnused(region, values, &uses);
}

}  // namespace hlokit::stablehlo
