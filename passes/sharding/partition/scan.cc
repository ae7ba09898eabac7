// SPDX-License-Identifier: Apache-2.0
// Scans. A computation that works element by element can be given parts of the other dimensions. Along the scanned
// dimension an associative one combines the totals of the parts before: each device scans its part, all get the totals
// of all, and combine once more (Blelloch, "Prefix Sums and Their Applications", 1990).
#include <algorithm>
#include <utility>

#include "ir/graph/instruction_queries.h"
#include "ir/graph/traversal.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

constexpr int64_t kMaxTotals = 64;  // that each device combines

int64_t ScanDimension(Instruction i) { return i.list_attr(Attr::kDimensions)[0]; }

// Returns true if the computation works element by element on arrays of these sizes.
bool IsElementwise(Computation body, absl::Span<const int64_t> sizes) {
  for (Instruction i : body.instructions()) {
    if (i.shape().IsTuple()) {
      if (i.opcode() != Opcode::kTuple || !i.is_root()) return false;
      continue;
    }
    if (!i.shape().IsArray() || i.shape().has_dynamic_dims() || !i.called_computations().empty()) return false;
    const absl::Span<const int64_t> dims = i.shape().dims();
    if (i.opcode() == Opcode::kConstant && i.shape().IsScalar()) continue;
    if (!std::equal(dims.begin(), dims.end(), sizes.begin(), sizes.end())) return false;
    const bool spreads = IsBroadcastOfScalar(i);
    if (i.opcode() != Opcode::kParameter && !spreads && !HasTrait(i.opcode(), kElementwise)) return false;
  }
  return true;
}

}  // namespace

bool ComputationPartitioner::DivideScan(Instruction i, DividedOp* op) {
  const int64_t dim = ScanDimension(i), carries = i.int_attr(Attr::kNumCarries);
  const Shape input = i.operand(0).shape();
  const Computation body = i.computation_attr(Attr::kToApply);
  std::vector<int64_t> slice = ToVector(input.dims());
  slice.erase(slice.begin() + dim);
  if (!IsElementwise(body, slice)) {
    op->divisible.assign(op->divisible.size(), false);
    return true;
  }
  // Along the scanned dimension if the outputs are the carries.
  const Instruction root = body.root();
  bool prefix = i.bool_attr(Attr::kIsAssociative) && !i.bool_attr(Attr::kIsReverse) && carries > 0 &&
                i.operand_count() == 2 * carries && root.shape().IsTuple() && root.operand_count() == 2 * carries &&
                input.dim(dim) > 0 && state_.partitions <= kMaxTotals;
  for (int64_t k = 0; prefix && k < carries; ++k) prefix = root.operand(k) == root.operand(carries + k);
  if (!prefix) return true;
  const size_t f = ToSize(op->rule->operands[0][ToSize(dim)][0]);
  op->divisible[f] = op->exact[f] = true;
  return true;
}

ComputationId ComputationPartitioner::MakeScanBody(Computation body, absl::Span<const int64_t> sizes) {
  const ComputationId id = module_.AddComputation(module_.UniqueComputationName(body.name()));
  Builder b(&module_, id);
  std::vector<InstructionId> parameters;
  for (int64_t p = 0; p < body.parameter_count(); ++p) {
    const Shape shape = b.shapes().Array(body.parameter(p).shape().element_type(), sizes);
    parameters.push_back(b.Make(Opcode::kParameter, shape, {}, {}, static_cast<uint32_t>(p)));
  }
  const std::vector<InstructionId> results = InlineBody(&b, body, parameters, sizes);
  b.SetRoot(body.root().shape().IsTuple() ? b.MakeTuple(results) : results[0]);
  return id;
}

Value ComputationPartitioner::EmitScan(const LocalOp& op) {
  const Instruction i = op.whole;
  const int64_t dim = ScanDimension(i);
  const Computation body = i.computation_attr(Attr::kToApply);
  const AxisList& axes = op.choice->axes[ToSize(op.rule->operands[0][ToSize(dim)][0])];
  std::vector<int64_t> part = ToVector(builder().shape_of(op.operands[0]).dims()), slice = part;
  slice.erase(slice.begin() + dim);
  if (axes.empty()) {
    const bool divided =
        std::any_of(op.choice->axes.begin(), op.choice->axes.end(), [](const AxisList& a) { return !a.empty(); });
    const InstructionId id = Clone(i, op.operands, LocalShapeOf(i.shape(), op.results));
    if (divided) module_.SetAttr(id, Attr::kToApply, MakeScanBody(body, slice).value);
    return Unpack(id, i.shape(), op.results);
  }
  const InstructionId tile = emitter_.TileNumber(op.choice->frame, axes);
  const InstructionId is_first = builder().MakeCompare(ComparisonDirection::kEq, tile, emitter_.Constant(0));
  const DividedScan scan = {op,   body,    dim, i.int_attr(Attr::kNumCarries), axes, std::move(part), std::move(slice),
                            tile, is_first};
  const ScannedPart own = ScanPart(scan);
  const CombinedTotals totals = CombineTotals(scan, own.totals);
  const std::vector<InstructionId> results = CombineWithEach(scan, own.outputs, totals.before);
  Value leaves;
  const std::vector<Shape> shapes = Leaves(i.shape());
  for (int64_t k = 0; k < scan.carries; ++k) {
    const InstructionId output = own.outputs[ToSize(k)];
    const InstructionId id =
        emitter_.Select(emitter_.Splat(builder().shape_of(output), is_first), output, results[ToSize(k)]);
    leaves.push_back({id, shapes[ToSize(k)], op.results[ToSize(k)]});
  }
  for (int64_t k = 0; k < scan.carries; ++k) {
    leaves.push_back({totals.all[ToSize(k)], shapes[ToSize(scan.carries + k)], op.results[ToSize(scan.carries + k)]});
  }
  return leaves;
}

ComputationPartitioner::ScannedPart ComputationPartitioner::ScanPart(const DividedScan& scan) {
  const LocalOp& op = scan.op;
  const auto along = [&](InstructionId array, int64_t begin, int64_t end) {
    std::vector<int64_t> limits = ToVector(builder().shape_of(array).dims()), starts(limits.size(), 0);
    starts[ToSize(scan.dim)] = begin;
    limits[ToSize(scan.dim)] = end;
    return emitter_.Slice(array, starts, limits);
  };
  // The first slice of the first part begins with the initial carry; other parts begin with their first slice.
  std::vector<InstructionId> arguments;
  for (int64_t k = 0; k < scan.carries; ++k) {
    arguments.push_back(emitter_.Reshape(along(op.operands[ToSize(k)], 0, 1), scan.slice));
  }
  std::vector<InstructionId> begin = arguments;
  arguments.insert(arguments.end(), op.operands.begin() + scan.carries, op.operands.end());
  const std::vector<InstructionId> combined = InlineBody(&builder(), scan.body, arguments, scan.slice);
  for (int64_t k = 0; k < scan.carries; ++k) {
    InstructionId& first = begin[ToSize(k)];
    first = emitter_.Select(emitter_.Splat(builder().shape_of(first), scan.is_first), combined[ToSize(k)], first);
  }
  ScannedPart result;
  result.totals = begin;
  std::vector<int64_t> one = scan.part;
  one[ToSize(scan.dim)] = 1;
  for (const InstructionId first : begin) result.outputs.push_back(emitter_.Reshape(first, one));
  const int64_t length = scan.part[ToSize(scan.dim)];
  if (length <= 1) return result;
  // The slices after the first.
  std::vector<InstructionId> operands;
  std::vector<Shape> shapes;
  for (int64_t k = 0; k < scan.carries; ++k) {
    operands.push_back(along(op.operands[ToSize(k)], 1, length));
    shapes.push_back(builder().shape_of(operands.back()));
  }
  for (const InstructionId first : begin) {
    operands.push_back(first);
    shapes.push_back(builder().shape_of(first));
  }
  const InstructionId id = Clone(op.whole, operands, builder().shapes().Tuple(shapes));
  module_.SetAttr(id, Attr::kToApply, MakeScanBody(scan.body, scan.slice).value);
  for (int64_t k = 0; k < scan.carries; ++k) {
    InstructionId& output = result.outputs[ToSize(k)];
    output = emitter_.Concatenate({output, builder().MakeElement(id, k)}, scan.dim);
    result.totals[ToSize(k)] = builder().MakeElement(id, scan.carries + k);
  }
  return result;
}

ComputationPartitioner::CombinedTotals ComputationPartitioner::CombineTotals(const DividedScan& scan,
                                                                             absl::Span<const InstructionId> totals) {
  std::vector<InstructionId> gathered;
  for (const InstructionId total : totals) {
    std::vector<int64_t> row = scan.slice;
    row.insert(row.begin(), 1);
    gathered.push_back(emitter_.AllGather(emitter_.Reshape(total, row), scan.op.choice->frame, scan.axes, 0));
  }
  const auto total_of = [&](int64_t k, int64_t tile) {
    std::vector<int64_t> limits = ToVector(builder().shape_of(gathered[ToSize(k)]).dims()), starts(limits.size(), 0);
    starts[0] = tile;
    limits[0] = tile + 1;
    return emitter_.Reshape(emitter_.Slice(gathered[ToSize(k)], starts, limits), scan.slice);
  };
  CombinedTotals sums;
  for (int64_t k = 0; k < scan.carries; ++k) sums.all.push_back(total_of(k, 0));
  sums.before = sums.all;
  const int64_t tiles = SizeOf(scan.axes);
  for (int64_t tile = 1; tile < tiles; ++tile) {
    if (tile > 1) {
      const InstructionId later = builder().MakeCompare(ComparisonDirection::kGe, scan.tile, emitter_.Constant(tile));
      for (size_t k = 0; k < sums.all.size(); ++k) {
        const InstructionId condition = emitter_.Splat(builder().shape_of(sums.all[k]), later);
        sums.before[k] = emitter_.Select(condition, sums.all[k], sums.before[k]);
      }
    }
    std::vector<InstructionId> next;
    for (int64_t k = 0; k < scan.carries; ++k) next.push_back(total_of(k, tile));
    next.insert(next.end(), sums.all.begin(), sums.all.end());
    sums.all = InlineBody(&builder(), scan.body, next, scan.slice);
    sums.all.resize(ToSize(scan.carries));
  }
  return sums;
}

std::vector<InstructionId> ComputationPartitioner::CombineWithEach(const DividedScan& scan,
                                                                   absl::Span<const InstructionId> outputs,
                                                                   absl::Span<const InstructionId> before) {
  std::vector<int64_t> others;
  for (int64_t d = 0; d < static_cast<int64_t>(scan.part.size()); ++d) {
    if (d != scan.dim) others.push_back(d);
  }
  std::vector<InstructionId> arguments(outputs.begin(), outputs.end());
  for (const InstructionId value : before) {
    const Shape shape = builder().shapes().Array(builder().shape_of(value).element_type(), scan.part);
    arguments.push_back(
        builder().Make(Opcode::kBroadcast, shape, {value}, {builder().List(Attr::kDimensions, others)}));
  }
  return InlineBody(&builder(), scan.body, arguments, scan.part);
}

}  // namespace hlokit::spmd
