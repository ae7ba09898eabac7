// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/cost_counter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ir/core/saturating.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/cost_rules.h"

namespace hlokit {
namespace {

int64_t Elements(Shape shape) { return shape.IsArray() ? std::max<int64_t>(0, shape.element_count()) : 0; }

// Returns the elements of the result of an instruction that may have several of one size.
int64_t ElementsOfFirst(Shape shape) {
  return Elements(shape.IsTuple() && shape.tuple_size() > 0 ? shape.element(0) : shape);
}

int64_t ElementsOfLeaves(Shape shape) {
  if (!shape.IsTuple()) return Elements(shape);
  int64_t elements = 0;
  for (Shape leaf : Leaves(shape)) elements = SaturatingAdd(elements, Elements(leaf));
  return elements;
}

// Rows of a square matrix, or of each of a batch.
int64_t MatrixSize(Shape shape) { return shape.rank() > 0 ? std::max<int64_t>(0, shape.dim(shape.rank() - 1)) : 1; }

int64_t Half(int64_t bytes) { return bytes / 2; }

// Computes XLA's ceiling of log2.
int64_t CeilLog2(int64_t n) { return n <= 1 ? 0 : 64 - std::countl_zero(static_cast<uint64_t>(n - 1)); }
int64_t FloorLog2(int64_t n) { return n <= 0 ? 0 : 63 - std::countl_zero(static_cast<uint64_t>(n)); }

// Returns true if the transpose moves no data: the order of dimensions in memory does not change.
bool IsBitcast(Instruction transpose) {
  const Shape from = transpose.operand(0).shape(), to = transpose.shape();
  if (!from.IsArray() || !to.IsArray() || from.element_type() != to.element_type()) return false;
  if (!from.has_layout() || !to.has_layout()) return false;
  const absl::Span<const int64_t> permutation = transpose.list_attr(Attr::kDimensions);
  const absl::Span<const int64_t> in = from.layout()->minor_to_major, out = to.layout()->minor_to_major;
  if (in.size() != out.size() || permutation.size() != out.size()) return false;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] < 0 || out[i] >= static_cast<int64_t>(permutation.size()) || permutation[out[i]] != in[i]) return false;
  }
  return true;
}

int64_t WindowElements(const WindowView& window) {
  int64_t n = 1;
  for (int64_t d = 0; d < window.rank(); ++d) n = SaturatingMultiply(n, window[d].size);
  return n;
}

// Returns the number of applications of a reduce-window's function. A window that covers a whole dimension at every
// position counts as the equivalent reduction and broadcast.
int64_t WindowReductions(Instruction i) {
  const WindowView window = WindowView::Of(i);
  const int64_t outputs = ElementsOfFirst(i.shape());
  int64_t reduced = 0, padded = 0, spanned = -1;
  for (int64_t d = 0; d < window.rank(); ++d) {
    const WindowDim w = window[d];
    reduced += w.size != 1;
    padded += w.padding_low != 0 || w.padding_high != 0;
    if (spanned < 0 && w.size != 1 && w.padding_low != 0 && w.padding_low == w.padding_high &&
        w.size - 1 == SaturatingMultiply(2, w.padding_low)) {
      spanned = d;
    }
  }
  if (reduced == 1 && padded == 1 && i.shape().IsArray() && spanned >= 0 && spanned < i.shape().rank() &&
      window[spanned].padding_low == i.shape().dim(spanned) - 1) {
    const int64_t span = std::max<int64_t>(1, i.shape().dim(spanned));
    return outputs / span + (span - 1);
  }
  return SaturatingMultiply(WindowElements(window) - 1, outputs);
}

}  // namespace

const CostCounter::Sizes& CostCounter::ComputeSizes(ShapeId id) {
  const Shape shape = module_.context().shape(id);
  Sizes& sizes = sizes_[id.value];
  sizes.buffer = BufferBytes(shape);
  sizes.elements = Elements(shape);
  if (!shape.IsTuple()) {
    sizes.leaves = sizes.buffer;
    sizes.leaf_sum = static_cast<float>(sizes.leaves);
    return sizes;
  }
  for (Shape leaf : Leaves(shape)) {
    sizes.leaves = SaturatingAdd(sizes.leaves, BufferBytes(leaf));
    sizes.leaf_sum += static_cast<float>(BufferBytes(leaf));
  }
  return sizes;
}

void CostCounter::Bytes(int64_t read, int64_t written) {
  cost_.bytes_read = read;
  cost_.bytes_written = written;
  sums_.bytes = static_cast<float>(SaturatingAdd(read, written));
}

void CostCounter::Flops(int64_t flops) {
  cost_.flops = flops;
  sums_.flops = static_cast<float>(flops);
}

void CostCounter::Transcendentals(int64_t transcendentals) {
  cost_.transcendentals = transcendentals;
  sums_.transcendentals = static_cast<float>(transcendentals);
}

void CostCounter::Apply(Computation callee, int64_t times) {
  if (!callee.valid()) return;
  const Cost& cost = result_.Of(callee);
  cost_.flops = SaturatingAdd(cost_.flops, SaturatingMultiply(cost.flops, times));
  cost_.transcendentals = SaturatingAdd(cost_.transcendentals, SaturatingMultiply(cost.transcendentals, times));
  const CostSums& sums = result_.SumsOf(callee);
  sums_.flops += sums.flops * static_cast<float>(times);
  sums_.transcendentals += sums.transcendentals * static_cast<float>(times);
}

void CostCounter::Become(Computation callee) {
  cost_ = Cost();
  sums_ = CostSums();
  if (!callee.valid()) return;
  cost_ = result_.Of(callee);
  sums_ = result_.SumsOf(callee);
}

void CostCounter::CountPlain(Instruction i) {
  const InstructionRecord& r = i.record();
  const Sizes& written = SizesOf(r.shape);
  float sum = written.leaf_sum;
  int64_t read = 0;
  for (uint32_t k = 0; k < r.operand_count; ++k) {
    const InstructionId operand = module_.use(UseId(r.operand_begin + k)).def;
    const int64_t bytes = SizesOf(module_.record(operand).shape).buffer;
    read = SaturatingAdd(read, bytes);
    sum += static_cast<float>(bytes);
  }
  cost_.bytes_written = written.leaves;
  cost_.bytes_read = read;
  sums_.bytes = sum;
}

void CostCounter::CountSelectAndScatter(Instruction i) {
  const int64_t sources = Elements(i.operand(1).shape());
  const int64_t window = WindowElements(WindowView::Of(i));
  Apply(i.computation_attr(Attr::kSelect), SaturatingMultiply(sources, window - 1));
  Apply(i.computation_attr(Attr::kScatter), sources);
}

void CostCounter::CountConditional(Instruction i) {
  bool first = true;
  i.ForEachCallee([&](Computation branch) {
    if (first) {
      Become(branch);
      first = false;
      return;
    }
    cost_.TakeMaximum(result_.Of(branch));
    const CostSums& sums = result_.SumsOf(branch);
    sums_.flops = std::max(sums_.flops, sums.flops);
    sums_.transcendentals = std::max(sums_.transcendentals, sums.transcendentals);
    sums_.bytes = std::max(sums_.bytes, sums.bytes);
  });
}

void CostCounter::CountFusion(Instruction i) {
  const Computation body = i.computation_attr(Attr::kCalls);
  if (!body.valid() || !body.root().valid()) return;
  if (i.enum_attr(Attr::kFusionKind, FusionKind::kLoop) == FusionKind::kCustom) {
    for (Instruction inner : body.instructions()) {
      if (!OpcodeSet{Opcode::kGather, Opcode::kScatter}.Contains(inner.opcode())) continue;
      const Cost cost = result_.Of(inner);
      CountPlain(i);
      Flops(cost.flops);
      Transcendentals(cost.transcendentals);
      Bytes(cost.bytes_read, cost.bytes_written);
      return;
    }
  }
  Become(body);
  cost_.bytes_read = cost_.bytes_written = 0;
  sums_.bytes = 0;
  const auto write = [&](int64_t bytes) {
    cost_.bytes_written = SaturatingAdd(cost_.bytes_written, bytes);
    sums_.bytes += static_cast<float>(bytes);
  };
  const auto read = [&](int64_t bytes) {
    cost_.bytes_read = SaturatingAdd(cost_.bytes_read, bytes);
    sums_.bytes += static_cast<float>(bytes);
  };
  // An update in place writes the updated part.
  const auto write_result_of = [&](Instruction producer, Shape shape) {
    if (producer.opcode() == Opcode::kDynamicUpdateSlice) {
      for (int64_t n = shape.IsTuple() ? shape.leaf_count() : 1; n > 0; --n) {
        write(BufferBytes(producer.operand(1).shape()));
      }
    } else if (shape.IsTuple()) {
      for (Shape leaf : Leaves(shape)) write(leaf.IsArray() ? BufferBytes(leaf) : 0);
    } else if (shape.IsArray()) {
      write(BufferBytes(shape));
    }
  };
  const Instruction root = body.root();
  if (root.opcode() == Opcode::kTuple) {
    for (Instruction output : root.operands()) {
      if (output.shape().IsArray()) {
        write_result_of(output, output.shape());
      } else {
        for (Shape leaf : Leaves(output.shape())) write(leaf.IsArray() ? BufferBytes(leaf) : 0);
      }
    }
  } else {
    write_result_of(root, i.shape());
  }
  for (Instruction inner : body.instructions()) {
    if (inner.opcode() == Opcode::kConstant && Elements(inner.shape()) > 1) read(BufferBytes(inner.shape()));
  }
  for (int64_t bytes : result_.parameter_reads_[body.id().value]) read(bytes);
}

void CostCounter::CountRaggedDot(Instruction i) {
  CountPlain(i);
  // As XLA counts: one group for as many leading dimensions of the result as the right side has group dimensions.
  const Shape shape = i.shape();
  int64_t flops = DotFlops(i);
  const int64_t groups = std::min<int64_t>(i.list_attr(Attr::kRhsGroupDims).size(), shape.rank());
  for (int64_t d = 0; d < groups; ++d) flops /= std::max<int64_t>(1, shape.dim(d));
  Flops(flops);
}

void CostCounter::CountFft(Instruction i) {
  CountPlain(i);
  int64_t factors = 1;
  for (int64_t length : i.list_attr(Attr::kFftLength)) factors = SaturatingMultiply(factors, FloorLog2(length));
  Flops(SaturatingMultiply(SaturatingMultiply(8, factors), Elements(i.operand(0).shape())));
}

void CostCounter::CountTriangularSolve(Instruction i) {
  Bytes(SaturatingAdd(Half(OperandBytes(i, 0)), OperandBytes(i, 1)), SizesOf(i).buffer);
  const int64_t n = MatrixSize(i.operand(0).shape());
  Flops(SaturatingMultiply(2, SaturatingMultiply(n, Elements(i.operand(1).shape()))));
}

void CostCounter::CountCholesky(Instruction i) {
  Bytes(Half(OperandBytes(i, 0)), Half(OperandBytes(i, 0)));
  const Shape a = i.operand(0).shape();
  Flops(SaturatingMultiply(MatrixSize(a), Elements(a)) / 3);
}

void CostCounter::CountOutfeed(Instruction i) {
  int64_t read = 0;
  for (Instruction operand : i.operands()) read = SaturatingAdd(read, SizesOf(operand).leaves);
  Bytes(read, 0);
}

void CostCounter::CountAllReduce(Instruction i) {
  int64_t read = 0;
  for (Instruction operand : i.operands()) read = SaturatingAdd(read, SizesOf(operand).buffer);
  Bytes(read, SizesOf(i).leaves);
  Flops(ElementsOfLeaves(i.shape()));
}

void CostCounter::CountSort(Instruction i) {
  CountPlain(i);
  const int64_t elements = Elements(i.operand(0).shape());
  Flops(SaturatingMultiply(elements, CeilLog2(elements)));
}

void CostCounter::CountScatter(Instruction i) {
  const int64_t n = (i.operand_count() - 1) / 2;
  int64_t updates = 0;
  for (int64_t k = n + 1; k < i.operand_count(); ++k) updates = SaturatingAdd(updates, OperandBytes(i, k));
  Bytes(SaturatingAdd(SaturatingMultiply(2, updates), OperandBytes(i, n)), updates);
  Apply(i.computation_attr(Attr::kToApply), n + 1 < i.operand_count() ? Elements(i.operand(n + 1).shape()) : 0);
}

void CostCounter::CountWhile(Instruction i) {
  Become(i.computation_attr(Attr::kBody));
  const Computation condition = i.computation_attr(Attr::kCondition);
  if (!condition.valid()) return;
  cost_.Add(result_.Of(condition));
  const CostSums& sums = result_.SumsOf(condition);
  sums_ = {sums_.flops + sums.flops, sums_.transcendentals + sums.transcendentals, sums_.bytes + sums.bytes};
}

void CostCounter::CountInstruction(Instruction i) {
  cost_ = Cost();
  sums_ = CostSums();
  const Shape shape = i.shape();
  const auto apply = [&](int64_t times) { Apply(i.computation_attr(Attr::kToApply), times); };
  switch (CostRuleOf(i.opcode())) {
    case CostRule::kFree:
      return;
    case CostRule::kPlain:
      return CountPlain(i);
    case CostRule::kArithmetic:
      CountPlain(i);
      return Flops(SizesOf(i).elements);
    case CostRule::kTranscendental:
      CountPlain(i);
      return Transcendentals(SizesOf(i).elements);
    case CostRule::kSlice:
      return Bytes(SizesOf(i).buffer, SizesOf(i).buffer);
    case CostRule::kDynamicSlice:
    case CostRule::kGather:
      return Bytes(SaturatingAdd(SizesOf(i).buffer, OperandBytes(i, 1)), SizesOf(i).buffer);
    case CostRule::kDynamicUpdateSlice:
      return Bytes(SaturatingAdd(OperandBytes(i, 1), OperandBytes(i, 2)), OperandBytes(i, 1));
    case CostRule::kTuple:
      return Bytes(0, SizesOf(i).buffer);
    case CostRule::kDot:
      CountPlain(i);
      return Flops(DotFlops(i));
    case CostRule::kRaggedDot:
      return CountRaggedDot(i);
    case CostRule::kConvolution:
      CountPlain(i);
      return Flops(ConvolutionFlops(i));
    case CostRule::kMap:
      CountPlain(i);
      return apply(Elements(shape));
    case CostRule::kReduce:
      CountPlain(i);
      return apply((i.operand_count() > 0 ? Elements(i.operand(0).shape()) : 0) - ElementsOfFirst(shape));
    case CostRule::kReduceWindow:
      CountPlain(i);
      return apply(WindowReductions(i));
    case CostRule::kSelectAndScatter:
      CountPlain(i);
      return CountSelectAndScatter(i);
    case CostRule::kScan:
      CountPlain(i);
      return apply(i.operand_count() > 1 ? Elements(i.operand(1).shape()) : 0);
    case CostRule::kTranspose:
      if (!IsBitcast(i)) CountPlain(i);
      return;
    case CostRule::kFft:
      return CountFft(i);
    case CostRule::kTriangularSolve:
      return CountTriangularSolve(i);
    case CostRule::kCholesky:
      return CountCholesky(i);
    case CostRule::kInfeed:
      return Bytes(0, SizesOf(i).leaves);
    case CostRule::kOutfeed:
      return CountOutfeed(i);
    case CostRule::kAllReduce:
      return CountAllReduce(i);
    case CostRule::kRandom:
      CountPlain(i);
      return Transcendentals(ElementsOfLeaves(shape));
    case CostRule::kSort:
      return CountSort(i);
    case CostRule::kScatter:
      return CountScatter(i);
    case CostRule::kFusion:
      return CountFusion(i);
    case CostRule::kCall:
      i.ForEachCallee([&](Computation callee) { Become(callee); });
      return;
    case CostRule::kWhile:
      return CountWhile(i);
    case CostRule::kConditional:
      return CountConditional(i);
    case CostRule::kCustomCall:
      sums_.flops = sums_.bytes = -1;
      return;
  }
}

// Returns the bytes that a fusion reads of `source`, a parameter of its body or a part of one: the results of slices,
// otherwise all of it, once for all users plus once for each broadcast and reshape.
int64_t CostCounter::ReadOf(Instruction source) const {
  const int64_t whole = BufferBytes(source.shape());
  int64_t bytes = 0;
  bool read_whole = false;
  const auto read_once = [&] {
    if (!std::exchange(read_whole, true)) bytes = SaturatingAdd(bytes, whole);
  };
  for (Instruction user : source.users()) {
    const CostRule cost = CostRuleOf(user.opcode());
    if (cost == CostRule::kSlice) {
      bytes = SaturatingAdd(bytes, BufferBytes(user.shape()));
    } else if (cost == CostRule::kDynamicSlice) {
      user.operand(0) == source ? void(bytes = SaturatingAdd(bytes, BufferBytes(user.shape()))) : read_once();
    } else if (cost == CostRule::kDynamicUpdateSlice) {
      if (user.operand(0) != source) read_once();
    } else if (cost == CostRule::kFusion) {
      const Computation body = user.computation_attr(Attr::kCalls);
      if (!body.valid() || !body.root().valid()) continue;
      for (int64_t k = 0; k < user.operand_count(); ++k) {
        if (user.operand(k) != source || k >= body.parameter_count()) continue;
        const Instruction root = body.root();
        const bool simple = root.operand_count() == 0 || body.parameter(k) == root.operand(0);
        bool read_nested = false;
        for (Instruction after : user.users()) {
          const CostRule rule = simple ? CostRuleOf(after.opcode()) : CostRule::kPlain;
          if (rule == CostRule::kSlice || (rule == CostRule::kDynamicSlice && after.operand(0) == user)) {
            bytes = SaturatingAdd(bytes, BufferBytes(after.shape()));
          } else if (rule == CostRule::kDynamicUpdateSlice && after.operand(0) == user) {
            continue;
          } else if (!std::exchange(read_nested, true)) {
            const bool indexes = rule == CostRule::kDynamicSlice || rule == CostRule::kDynamicUpdateSlice;
            bytes = SaturatingAdd(bytes, indexes ? BufferBytes(user.shape()) : result_.ParameterBytesRead(body, k));
          }
        }
      }
    } else {
      if (OpcodeSet{Opcode::kBroadcast, Opcode::kReshape}.Contains(user.opcode())) {
        bytes = SaturatingAdd(bytes, whole);
      } else {
        read_once();
      }
    }
  }
  return bytes;
}

void CostCounter::CountParameterReads(Computation fused) {
  std::vector<int64_t>& reads = result_.parameter_reads_[fused.id().value];
  for (int64_t n = 0; n < fused.parameter_count(); ++n) {
    const Instruction parameter = fused.parameter(n);
    if (!parameter.valid()) {
      reads.push_back(0);
      continue;
    }
    if (!parameter.shape().IsTuple()) {
      reads.push_back(ReadOf(parameter));
      continue;
    }
    // By element; an element without get-tuple-element counts as read with the tuple.
    int64_t bytes = 0;
    const int64_t of_tuple = ReadOf(parameter);
    std::vector<InstructionId> element(static_cast<size_t>(parameter.shape().tuple_size()));
    for (Instruction user : parameter.users()) {
      if (user.opcode() != Opcode::kGetTupleElement) continue;
      const int64_t index = user.int_attr(Attr::kIndex, -1);
      if (index >= 0 && index < static_cast<int64_t>(element.size()) && !element[index].valid()) {
        element[index] = user.id();
      }
    }
    for (InstructionId id : element) {
      bytes = SaturatingAdd(bytes, id.valid() ? ReadOf(module_.instruction(id)) : of_tuple);
    }
    reads.push_back(bytes);
  }
}

// Counts in XLA's traversal order: from each instruction without users, the root last, operands first to last, then
// control predecessors.
void CostCounter::Count(Computation computation, bool fused) {
  if (fused) CountParameterReads(computation);
  Cost total;
  CostSums sums;
  uint32_t counted = 0;
  const bool control_edges = module_.may_have_control_edges();
  const auto push = [&](InstructionId id) {
    if (state_[id.value] == kNew) stack_.push_back(id);
  };
  const auto traverse = [&](InstructionId from) {
    push(from);
    while (!stack_.empty()) {
      const InstructionId id = stack_.back();
      if (state_[id.value] == kNew) {
        state_[id.value] = kOpen;
        const size_t waiting = stack_.size();
        if (control_edges) {
          const absl::Span<const int64_t> before = module_.instruction(id).list_attr(Attr::kControlPredecessors);
          for (size_t k = before.size(); k-- > 0;) {
            const InstructionId predecessor(static_cast<uint32_t>(before[k]));
            if (module_.record(predecessor).parent == computation.id()) push(predecessor);
          }
        }
        const InstructionRecord& r = module_.record(id);
        for (uint32_t k = r.operand_count; k-- > 0;) push(module_.use(UseId(r.operand_begin + k)).def);
        if (stack_.size() != waiting) continue;
      }
      stack_.pop_back();
      if (state_[id.value] == kDone) continue;
      state_[id.value] = kDone;
      ++counted;
      CountInstruction(module_.instruction(id));
      result_.instructions_[id.value] = cost_;
      total.Add(cost_);
      sums = {sums.flops + sums_.flops, sums.transcendentals + sums_.transcendentals, sums.bytes + sums_.bytes};
    }
  };
  for (Instruction i : computation.instructions()) {
    if (!i.has_users() && !i.is_root() && (!control_edges || i.control_successors().empty())) traverse(i.id());
  }
  if (computation.root().valid()) traverse(computation.root().id());
  if (counted < computation.instruction_count()) {  // only reachable through cycles
    for (Instruction i : computation.instructions()) traverse(i.id());
  }
  result_.computations_[computation.id().value] = total;
  result_.sums_[computation.id().value] = sums;
}

}  // namespace hlokit
