// SPDX-License-Identifier: Apache-2.0
// Collectives that move elements among the devices of a group, and device numbers.
#include "interp/exact/builder/collective.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/devices/collective_groups.h"
#include "interp/exact/kernels/index_operand.h"
#include "interp/exact/machine/run_context.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

// An array as rows of `outer` blocks: the dimensions before a given dimension, and the bytes from it on.
struct Blocks {
  int64_t outer = 1;
  int64_t bytes = 0;
};
Blocks BlocksOf(Shape shape, int64_t dim) {
  Blocks blocks;
  blocks.bytes = BytesOf(shape.element_type());
  for (int64_t d = 0; d < shape.rank(); ++d) (d < dim ? blocks.outer : blocks.bytes) *= shape.dim(d);
  return blocks;
}

// Copies block `from_index` of each row of `from` (from_blocks blocks a row) to block `to_index` of `to`.
void CopyBlocks(int64_t rows, int64_t bytes, const std::byte* from, int64_t from_index, int64_t from_blocks,
                std::byte* to, int64_t to_index, int64_t to_blocks) {
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(to + (row * to_blocks + to_index) * bytes, from + (row * from_blocks + from_index) * bytes,
                static_cast<size_t>(bytes));
  }
}

// Calls `piece` for each row of CopyBlocks.
void ForEachBlock(int64_t rows, int64_t bytes, CollectivePiece piece, int64_t from_index, int64_t from_blocks,
                  int64_t to_index, int64_t to_blocks, absl::FunctionRef<void(const CollectivePiece&)> call) {
  piece.bytes = bytes;
  for (int64_t row = 0; row < rows; ++row) {
    piece.from = (row * from_blocks + from_index) * bytes;
    piece.to = (row * to_blocks + to_index) * bytes;
    call(piece);
  }
}

struct AllGatherParams : CollectiveParams {
  std::vector<Blocks> parts;  // each operand, in one device

  // All results are equal: rows are gathered once.
  void Run(absl::Span<const CollectiveMember> members, RunContext&) const override {
    const int64_t n = static_cast<int64_t>(members.size());
    for (size_t k = 0; k < parts.size(); ++k) {
      for (int64_t i = 0; i < n; ++i) {
        CopyBlocks(parts[k].outer, parts[k].bytes, members[i].operands[k], 0, 1, members[0].results[k], i, n);
      }
      for (int64_t i = 1; i < n; ++i) {
        std::memcpy(members[i].results[k], members[0].results[k],
                    static_cast<size_t>(parts[k].outer * parts[k].bytes * n));
      }
    }
  }

  void ForEachPiece(absl::Span<const CollectiveMember> members, int64_t from, int64_t,
                    absl::FunctionRef<void(const CollectivePiece&)> piece) const override {
    for (size_t k = 0; k < parts.size(); ++k) {
      ForEachBlock(parts[k].outer, parts[k].bytes, {k, 0, k, 0, 0}, 0, 1, from, static_cast<int64_t>(members.size()),
                   piece);
    }
  }
};

struct AllToAllParams : CollectiveParams {
  bool tuple = false;
  Blocks block;  // a chunk of each operand (array), or an operand (tuple)

  void ForEachPiece(absl::Span<const CollectiveMember> members, int64_t from, int64_t to,
                    absl::FunctionRef<void(const CollectivePiece&)> piece) const override {
    const int64_t n = static_cast<int64_t>(members.size());
    if (tuple) {
      ForEachBlock(block.outer, block.bytes, {static_cast<size_t>(to), 0, static_cast<size_t>(from), 0, 0}, 0, 1, 0, 1,
                   piece);
    } else {
      ForEachBlock(block.outer, block.bytes, {}, to, n, from, n, piece);
    }
  }
};

struct BroadcastParams : CollectiveParams {
  std::vector<int64_t> bytes;  // of each operand
  std::vector<bool> absent;    // by device: in none of the groups, gets zeros
  bool dynamic_root = false;   // the last operand: a position in the group for each of the others

  int64_t Root(absl::Span<const CollectiveMember> members, size_t k) const {
    return dynamic_root ? reinterpret_cast<const int32_t*>(members[0].operands[bytes.size()])[k] : 0;
  }
  bool Check(absl::Span<const CollectiveMember> members, RunContext& context) const override {
    if (absent[static_cast<size_t>(members[0].device)]) return true;
    for (size_t k = 0; k < bytes.size(); ++k) {
      const int64_t root = Root(members, k);
      if (root >= 0 && root < static_cast<int64_t>(members.size())) continue;
      context.Fail(StrCat("the root of operand ", k, " is ", root, "; the group has ", members.size(), " devices"));
      return false;
    }
    return true;
  }
  void FillResults(const CollectiveMember& m) const override {
    for (size_t k = 0; k < bytes.size() && absent[static_cast<size_t>(m.device)]; ++k) {
      std::memset(m.results[k], 0, static_cast<size_t>(bytes[k]));
    }
  }
  void ForEachPiece(absl::Span<const CollectiveMember> members, int64_t from, int64_t to,
                    absl::FunctionRef<void(const CollectivePiece&)> piece) const override {
    if (absent[static_cast<size_t>(members[static_cast<size_t>(to)].device)]) return;
    for (size_t k = 0; k < bytes.size(); ++k) {
      if (Root(members, k) == from) piece({k, 0, k, 0, bytes[k]});
    }
  }
};

// ragged-all-to-all(input, output, input offsets, send sizes, output offsets, receive sizes): rows are slices of
// dimension 0; each device has `per_peer` offsets and sizes for each member of the group.
struct RaggedAllToAllParams : CollectiveParams {
  int64_t row_bytes = 0;
  int64_t input_rows = 0;
  int64_t output_rows = 0;
  int64_t offsets = 0;
  ElementType offset_type = ElementType::kS32;

  int64_t At(const CollectiveMember& m, int64_t operand, int64_t i) const {
    return LoadIndex(offset_type, m.operands[operand] + i * BytesOf(offset_type));
  }

  bool Check(absl::Span<const CollectiveMember> members, RunContext& context) const override {
    const int64_t n = static_cast<int64_t>(members.size());
    const int64_t per_peer = offsets / n;
    for (int64_t s = 0; s < n; ++s) {
      for (int64_t t = 0; t < n; ++t) {
        for (int64_t u = 0; u < per_peer; ++u) {
          const int64_t at = t * per_peer + u;
          const int64_t from = At(members[s], 2, at);
          const int64_t size = At(members[s], 3, at);
          const int64_t to = At(members[s], 4, at);
          const int64_t expected = At(members[t], 5, s * per_peer + u);
          const auto name = [&](int64_t member) { return DeviceName(members[member].device, context); };
          if (size != expected) {
            context.Fail(StrCat(name(s), " sends ", size, " rows to ", name(t), ", which expects ", expected));
            return false;
          }
          if (size < 0 || from < 0 || from > input_rows - size || to < 0 || to > output_rows - size) {
            context.Fail(StrCat(name(s), " sends ", size, " rows from ", from, " to ", to, " of ", name(t),
                                "; the input has ", input_rows, ", the output ", output_rows));
            return false;
          }
        }
      }
    }
    return true;
  }
  void FillResults(const CollectiveMember& m) const override {
    std::memcpy(m.results[0], m.operands[1], static_cast<size_t>(output_rows * row_bytes));
  }
  void ForEachPiece(absl::Span<const CollectiveMember> members, int64_t from, int64_t to,
                    absl::FunctionRef<void(const CollectivePiece&)> piece) const override {
    const int64_t per_peer = offsets / static_cast<int64_t>(members.size());
    for (int64_t at = to * per_peer; at < (to + 1) * per_peer; ++at) {
      const CollectiveMember& sender = members[static_cast<size_t>(from)];
      piece({0, At(sender, 2, at) * row_bytes, 0, At(sender, 4, at) * row_bytes, At(sender, 3, at) * row_bytes});
    }
  }
};

void RunReplicaId(const ThunkParams*, const std::byte* const*, std::byte* const* out, RunContext& context) {
  *reinterpret_cast<uint32_t*>(out[0]) = static_cast<uint32_t>(context.device.replica);
}
void RunPartitionId(const ThunkParams*, const std::byte* const*, std::byte* const* out, RunContext& context) {
  *reinterpret_cast<uint32_t*>(out[0]) = static_cast<uint32_t>(context.device.partition);
}

// Returns all leaves of the operands [0, count), dense.
std::vector<View> DenseOperands(CompiledComputationBuilder& b) {
  std::vector<View> views;
  for (Instruction operand : b.instruction().operands()) {
    const std::vector<View> leaves(b.leaves(operand).begin(), b.leaves(operand).end());
    for (const View& v : leaves) views.push_back(b.MakeDense(v));
  }
  return views;
}

// Sets the value of a start: operands, results, then backend-specific elements.
void SetStartResults(CompiledComputationBuilder& b, absl::Span<const View> operands, absl::Span<const View> results) {
  std::vector<Shape> all;
  AppendLeaves(b.shape(), &all);
  std::vector<View> views(operands.begin(), operands.end());
  views.insert(views.end(), results.begin(), results.end());
  for (size_t i = views.size(); i < all.size(); ++i) views.push_back(b.Zeros(all[i]));
  if (views.size() != all.size()) {
    b.FailMismatch("a result of operands and results");
    return;
  }
  b.SetResults(views);
}

// Waits for the operation that the device's start began, among processes.
struct CollectiveDoneParams : CollectiveParams {
  bool Ready(int64_t device, const RunContext& context) const override { return !context.IsPending(device, start); }
  std::string WaitsFor() const override { return "the end of a collective"; }

  InstructionId start;
};

}  // namespace

std::string DeviceName(int64_t device, const RunContext& context) {
  return StrCat("replica ", device / context.num_partitions, ", partition ", device % context.num_partitions);
}

bool InitGroups(CompiledComputationBuilder& b, CollectiveParams* params, std::vector<bool>* absent) {
  const PrepareOptions& options = b.program().options();
  const int64_t devices = options.num_replicas * options.num_partitions;
  absl::StatusOr<std::vector<std::vector<int64_t>>> groups =
      GetParticipatingDevicesGroups(b.instruction(), options.num_replicas, options.num_partitions);
  if (!groups.ok()) {
    b.EmitTrap(std::string(groups.status().message()));
    return false;
  }
  params->groups = std::move(*groups);
  params->group_of.assign(static_cast<size_t>(devices), -1);
  for (size_t g = 0; g < params->groups.size(); ++g) {
    for (int64_t d : params->groups[g]) {
      if (params->group_of[static_cast<size_t>(d)] >= 0) {
        b.Fail("duplicate device in replica_groups");
        return false;
      }
      params->group_of[static_cast<size_t>(d)] = static_cast<int64_t>(g);
    }
  }
  if (absent != nullptr) absent->assign(static_cast<size_t>(devices), false);
  for (int64_t d = 0; d < devices; ++d) {
    if (params->group_of[static_cast<size_t>(d)] >= 0) continue;
    if (absent == nullptr) {
      b.EmitTrap(StrCat("replica ", d / options.num_partitions, ", partition ", d % options.num_partitions,
                        " is in none of the replica groups; the run has ", options.num_replicas, " x ",
                        options.num_partitions, " devices"));
      return false;
    }
    (*absent)[static_cast<size_t>(d)] = true;
    params->group_of[static_cast<size_t>(d)] = static_cast<int64_t>(params->groups.size());
    params->groups.push_back({d});
  }
  return true;
}

bool GroupsHaveSize(CompiledComputationBuilder& b, const CollectiveParams& params, int64_t size) {
  for (const std::vector<int64_t>& group : params.groups) {
    if (static_cast<int64_t>(group.size()) == size) continue;
    b.EmitTrap(StrCat("the shapes are those of groups of ", size, " devices; in this run, of ",
                      b.program().options().num_replicas, " x ", b.program().options().num_partitions,
                      " devices (replicas x partitions), a group has ", group.size()));
    return false;
  }
  return true;
}

bool HoldsRoots(CompiledComputationBuilder& b, const View& view, size_t count) {
  if (view.type() == ElementType::kS32 && view.count() == static_cast<int64_t>(count)) return true;
  b.FailMismatch("a root of type s32 for each other operand");
  return false;
}

// Emits the wait of a done, which keeps the results of the start alive. One process has results at the start.
void EmitCollectiveDone(CompiledComputationBuilder& b) {
  const PrepareOptions& options = b.program().options();
  if (!options.among_processes()) return;
  auto params = std::make_unique<CollectiveDoneParams>();
  params->start = b.instruction().operand(0).id();
  SetGroupsOfOne(options.num_replicas * options.num_partitions, params.get());
  std::vector<View> started;
  for (const View& v : b.leaves(b.instruction().operand(0))) {
    if (v.shape.IsArray()) started.push_back(v);
  }
  b.EmitCollective(std::move(params), started, {});
}

void SetGroupsOfOne(int64_t devices, CollectiveParams* params) {
  for (int64_t d = 0; d < devices; ++d) {
    params->groups.push_back({d});
    params->group_of.push_back(d);
  }
}

void PrepareReplicaId(CompiledComputationBuilder& b) { b.Emit(RunReplicaId, nullptr, {}); }
void PreparePartitionId(CompiledComputationBuilder& b) { b.Emit(RunPartitionId, nullptr, {}); }

void PrepareAllGather(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const bool starts = HasTrait(instruction.opcode(), kStartsAsync);
  auto params = std::make_unique<AllGatherParams>();
  if (!InitGroups(b, params.get(), nullptr)) return;
  const std::vector<View> views = DenseOperands(b);
  std::vector<Shape> results;
  AppendLeaves(b.shape(), &results);
  if (starts)
    results.erase(results.begin(), results.begin() + static_cast<int64_t>(std::min(views.size(), results.size())));
  const absl::Span<const int64_t> dims = instruction.list_attr(Attr::kDimensions);
  if (dims.size() != 1 || results.size() != views.size()) {
    b.FailMismatch("one dimension in range of the operands and the results");
    return;
  }
  for (size_t k = 0; k < views.size(); ++k) {
    const Shape part = views[k].shape;
    if (dims[0] < 0 || dims[0] >= part.rank() || dims[0] >= results[k].rank()) {
      b.FailMismatch("one dimension in range of the operands and the results");
      return;
    }
    const int64_t size = part.dim(dims[0]) == 0 ? 1 : results[k].dim(dims[0]) / part.dim(dims[0]);
    if (part.dim(dims[0]) != 0 && !GroupsHaveSize(b, *params, size)) return;
    params->parts.push_back(BlocksOf(part, dims[0]));
  }
  params->starts = starts && b.program().options().among_processes();
  params->same_for_all = true;
  const ViewList gathered = b.EmitCollective(std::move(params), views, results);
  if (starts) {
    SetStartResults(b, views, gathered);
  } else {
    b.SetResults(gathered);
  }
}

void PrepareAllToAll(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  auto params = std::make_unique<AllToAllParams>();
  if (!InitGroups(b, params.get(), nullptr)) return;
  const std::vector<View> views = DenseOperands(b);
  std::vector<Shape> results;
  AppendLeaves(b.shape(), &results);
  params->tuple = !instruction.has(Attr::kDimensions);
  if (views.empty() || results.size() != views.size()) {
    b.FailMismatch("a result for each operand");
    return;
  }
  if (params->tuple) {
    if (!GroupsHaveSize(b, *params, static_cast<int64_t>(views.size()))) return;
    params->block = BlocksOf(views[0].shape, 0);
  } else {
    const absl::Span<const int64_t> dims = instruction.list_attr(Attr::kDimensions);
    const int64_t size = static_cast<int64_t>(params->groups[0].size());
    if (dims.size() != 1 || dims[0] < 0 || dims[0] >= views[0].shape.rank() ||
        views[0].shape.dim(dims[0]) % size != 0 || !GroupsHaveSize(b, *params, size)) {
      b.EmitTrap(StrCat("groups of ", size, " devices do not divide the dimension"));
      return;
    }
    params->block = BlocksOf(views[0].shape, dims[0]);
    params->block.bytes /= size;
  }
  b.SetResults(b.EmitCollective(std::move(params), views, results));
}

void PrepareCollectiveBroadcast(CompiledComputationBuilder& b) {
  auto params = std::make_unique<BroadcastParams>();
  if (!InitGroups(b, params.get(), &params->absent)) return;
  const std::vector<View> views = DenseOperands(b);
  std::vector<Shape> results;
  AppendLeaves(b.shape(), &results);
  params->dynamic_root = b.instruction().bool_attr(Attr::kHasDynamicRoot);
  if (views.size() != results.size() + (params->dynamic_root ? 1 : 0)) {
    b.FailMismatch("a result for each operand");
    return;
  }
  if (params->dynamic_root && !HoldsRoots(b, views.back(), results.size())) return;
  for (Shape s : results) params->bytes.push_back(s.element_count() * BytesOf(s.element_type()));
  if (params->dynamic_root) {
    params->shared_operands = {{results.size(), static_cast<int64_t>(results.size() * sizeof(int32_t))}};
  }
  params->same_for_all = true;
  b.SetResults(b.EmitCollective(std::move(params), views, results));
}

void PrepareRaggedAllToAll(CompiledComputationBuilder& b) {
  auto params = std::make_unique<RaggedAllToAllParams>();
  if (!InitGroups(b, params.get(), nullptr)) return;
  const std::vector<View> views = DenseOperands(b);
  if (views.size() != 6 || views[0].shape.rank() < 1 || views[1].shape.rank() != views[0].shape.rank() ||
      !IsInteger(views[2].type())) {
    b.FailMismatch("input and output of one rank and type, and offsets and sizes of one integer type and length");
    return;
  }
  params->input_rows = views[0].shape.dim(0);
  params->output_rows = views[1].shape.dim(0);
  params->row_bytes = BytesOf(views[0].type());
  bool fits = views[1].type() == views[0].type();
  for (int64_t d = 1; d < views[0].shape.rank(); ++d) {
    params->row_bytes *= views[0].shape.dim(d);
    fits = fits && views[0].shape.dim(d) == views[1].shape.dim(d);
  }
  params->offsets = views[2].count();
  params->offset_type = views[2].type();
  for (size_t k = 3; k < 6; ++k)
    fits = fits && views[k].count() == params->offsets && views[k].type() == params->offset_type;
  const int64_t size = static_cast<int64_t>(params->groups[0].size());
  if (!fits) {
    b.FailMismatch("input and output of one rank and type, and offsets and sizes of one integer type and length");
    return;
  }
  if (params->offsets % size != 0) {
    b.EmitTrap(StrCat(params->offsets, " offsets cannot be divided among the ", size, " devices of a group"));
    return;
  }
  if (!GroupsHaveSize(b, *params, size)) return;
  for (size_t k = 2; k < 6; ++k) params->shared_operands.push_back({k, params->offsets * BytesOf(params->offset_type)});
  const Shape result = views[1].shape;
  b.SetResults(b.EmitCollective(std::move(params), views, {&result, 1}));
}

// Sets the result part of a start's value.
void PrepareCollectiveDone(CompiledComputationBuilder& b) {
  const Instruction start = b.instruction().operand(0);
  if (!start.shape().IsTuple() || start.shape().tuple_size() < 2) {
    b.Fail("expected a collective start operand");
    return;
  }
  EmitCollectiveDone(b);
  b.AliasResult(start, 1);
}

void PrepareAllReduceDone(CompiledComputationBuilder& b) {
  EmitCollectiveDone(b);
  PrepareFirstOperand(b);
}

void SetPermuteResults(CompiledComputationBuilder& b, absl::Span<const View> operands, absl::Span<const View> results) {
  if (HasTrait(b.instruction().opcode(), kStartsAsync)) {
    SetStartResults(b, operands, results);
  } else {
    b.SetResults(results);
  }
}

}  // namespace hlokit::interp
