// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/loops/reduce_thunk.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "interp/compiled/loops/loop_params.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/programs/loop_layout.h"
#include "interp/compiled/programs/pieces.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/reductions/reduction_kernels.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/loop_nest.h"

namespace hlokit::interp::compiled {
namespace {

constexpr int64_t kAccumulatorBytes = 8;
constexpr int64_t kMaxColumns = 4096;   // of a call for columns
constexpr int64_t kMaxRow = 16 * 1024;  // elements of a call along the row
constexpr int64_t kPieceElements = 64 * 1024;
constexpr int64_t kMaxPieces = 64;
constexpr int64_t kTileElements = 16 * 1024;  // of a call for columns
constexpr int64_t kFinishBlock = 512;

ScalarFunction::RecognizedOp Recognized(LoopOp combiner) {
  using Op = ScalarFunction::RecognizedOp;
  if (combiner == LoopOp::kAdd) return Op::kAdd;
  if (combiner == LoopOp::kMultiply) return Op::kMultiply;
  if (combiner == LoopOp::kMaximum) return Op::kMaximum;
  if (combiner == LoopOp::kMinimum) return Op::kMinimum;
  if (combiner == LoopOp::kAnd) return Op::kAnd;
  if (combiner == LoopOp::kOr) return Op::kOr;
  return Op::kNone;
}

// Combines the totals with the initial values and rounds.
class ReducesFinish : public ReduceFinish {
 public:
  ReducesFinish(const std::vector<LoopOp>& combiners, const std::vector<ElementType>& types) {
    for (size_t k = 0; k < combiners.size(); ++k) {
      One one;
      one.fold = ReductionKernelsOf(Recognized(combiners[k]), types[k]);
      one.load = LoadFn(types[k]);
      one.store = StoreFn(types[k]);
      one.bytes = BytesOf(types[k]);
      reductions_.push_back(one);
    }
  }

  void Run(const std::byte* const* totals, int64_t first, int64_t n, const std::byte* const* in,
           std::byte* const* out) const override {
    alignas(64) std::byte sums[kFinishBlock * kAccumulatorBytes];
    alignas(64) std::byte rounded[kFinishBlock * kAccumulatorBytes];
    for (size_t k = 0; k < reductions_.size(); ++k) {
      const One& r = reductions_[k];
      alignas(16) std::byte initial[16];
      if (r.load != nullptr) {
        r.load(initial, in[k], 1);
      } else {
        std::memcpy(initial, in[k], static_cast<size_t>(r.bytes));
      }
      for (int64_t i = 0; i < n; i += kFinishBlock) {
        const int64_t count = std::min(kFinishBlock, n - i);
        r.fold.init(sums, initial, count);
        r.fold.combine(sums, totals[k] + i * r.fold.accumulator_bytes, count);
        std::byte* const to = out[k] + (first + i) * r.bytes;
        if (r.store == nullptr) {
          r.fold.finalize(to, sums, count);
        } else {
          r.fold.finalize(rounded, sums, count);
          r.store(to, rounded, count);
        }
      }
    }
  }

 private:
  struct One {
    ReductionKernels fold;
    ConvertFn load = nullptr;
    ConvertFn store = nullptr;
    int64_t bytes = 0;
  };
  std::vector<One> reductions_;
};

}  // namespace

std::unique_ptr<ReduceFinish> FinishOfReduces(const std::vector<LoopOp>& combiners,
                                              const std::vector<ElementType>& types) {
  return std::make_unique<ReducesFinish>(combiners, types);
}

bool IsReductionForLoop(Shape shape, const std::vector<int64_t>& reduced) {
  constexpr int64_t kMinRow = 16;
  if (shape.element_count() == 0) return false;
  int64_t elements = 1;
  bool first = true, minor_is_reduced = false;
  size_t at = reduced.size();
  for (int64_t d = shape.rank(); d-- > 0;) {
    const bool is_reduced = at > 0 && reduced[at - 1] == d;
    if (is_reduced) --at;
    if (shape.dim(d) == 1) continue;
    if (first) minor_is_reduced = is_reduced;
    first = false;
    if (is_reduced != minor_is_reduced) break;
    elements *= shape.dim(d);
  }
  return elements >= kMinRow;
}

struct ReduceThunkBuilder::Params : ThunkParams {
  struct Dimension {
    int64_t size = 1;
    std::vector<int64_t> strides;  // of each array, in elements
    int64_t kept_stride = 0;       // in the results; 0: reduced
  };
  std::shared_ptr<const LoadedCode> code;
  std::vector<ElementOp> functions;
  std::vector<const void*> function_pointers;
  std::unique_ptr<ReduceFinish> finish;
  size_t inputs = 0;
  size_t element_results = 0;
  std::vector<int64_t> bytes;            // of an element of each array: inputs, elementwise results
  std::vector<int64_t> inner_stride;     // of each array: 0 or 1
  std::vector<Dimension> kept, reduced;  // without the minor dimension, outermost first
  bool along_rows = false;
  int64_t inner = 1;  // elements of the minor dimension
  int64_t chunk = 1;  // of them, of a call
  int64_t kept_count = 1;
  int64_t pieces = 1;  // of the reduced dimensions, for columns
  std::vector<ReductionKernels> folds;
  std::vector<ElementType> types;  // of the accumulators
  double cost = 1;

  size_t arrays() const { return inputs + element_results; }
  int64_t ElementBytes() const { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }
  static int64_t Count(const std::vector<Dimension>& dimensions) {
    int64_t n = 1;
    for (const Dimension& d : dimensions) n *= d.size;
    return n;
  }
  // Adds the offsets of element `index` of the dimensions, in elements; returns its offset in the results.
  int64_t AddOffsets(const std::vector<Dimension>& dimensions, int64_t index, int64_t* offsets) const {
    int64_t kept_offset = 0;
    for (size_t d = dimensions.size(); d-- > 0;) {
      const int64_t at = index % dimensions[d].size;
      index /= dimensions[d].size;
      for (size_t a = 0; a < arrays(); ++a) offsets[a] += at * dimensions[d].strides[a];
      kept_offset += at * dimensions[d].kept_stride;
    }
    return kept_offset;
  }
  void RunColumns(const std::byte* const* in, std::byte* const* out, RunContext& context) const;
  void RunRows(const std::byte* const* in, std::byte* const* out, RunContext& context) const;
};

ReduceThunkBuilder::ReduceThunkBuilder(CompiledComputationBuilder& builder, const Dims& dims,
                                       const std::vector<bool>& reduced, std::vector<View> views,
                                       size_t element_results)
    : b_(builder), views_(std::move(views)), params_(std::make_unique<Params>()) {
  Params& p = *params_;
  p.inputs = views_.size();
  p.element_results = element_results;
  // One array more: the results, which tells kept dimensions from reduced ones.
  Dims kept_dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!reduced[d]) kept_dims.push_back(dims[d]);
  }
  const Dims dense = DenseStrides(kept_dims);
  Dims kept_strides;
  for (size_t d = 0, k = 0; d < dims.size(); ++d) kept_strides.push_back(reduced[d] ? 0 : dense[k++]);
  const auto nest_of = [&] {
    std::vector<Dims> strides;
    for (const View& view : views_) strides.push_back(StridesOf(view));
    for (size_t o = 0; o < element_results; ++o) strides.push_back(DenseStrides(dims));
    strides.push_back(kept_strides);
    return LoopNest(dims, strides);
  };
  LoopNest nest = nest_of();
  for (size_t i = 0; i < views_.size(); ++i) {
    const int64_t stride = nest.inner_strides()[i];
    if (nest.inner_size() > 1 && stride != 0 && stride != 1) views_[i] = Compact(b_, views_[i]);
  }
  nest = nest_of();
  const int arrays = static_cast<int>(p.arrays());
  for (int a = 0; a < arrays; ++a) {
    p.inner_stride.push_back(nest.inner_size() > 1 ? nest.inner_strides()[a] : 1);
  }
  p.inner = nest.inner_size();
  p.along_rows = nest.inner_strides()[arrays] == 0;
  p.kept_count = ElementCount(kept_dims);
  for (int d = 0; d + 1 < nest.rank(); ++d) {
    Params::Dimension dimension;
    dimension.size = nest.size(d);
    dimension.strides.assign(nest.strides(d), nest.strides(d) + arrays);
    dimension.kept_stride = nest.stride(d, arrays);
    (dimension.kept_stride == 0 ? p.reduced : p.kept).push_back(std::move(dimension));
  }
  for (const View& view : views_) p.bytes.push_back(BytesOf(view.type()));
  p.chunk = std::min(p.inner, p.along_rows ? kMaxRow : kMaxColumns);
  if (p.along_rows) return;
  const int64_t elements = Params::Count(p.reduced) * p.chunk;
  const int64_t others = Params::Count(p.kept) * ((p.inner + p.chunk - 1) / p.chunk);
  if (others < kMaxPieces) p.pieces = std::clamp<int64_t>(elements / kPieceElements, 1, kMaxPieces / others);
  p.pieces = std::min(p.pieces, Params::Count(p.reduced));
}

ReduceThunkBuilder::~ReduceThunkBuilder() = default;

LoopBuilder::Repeats ReduceThunkBuilder::RepeatsOf(size_t input) const {
  // A call goes along the last of the reduced dimensions.
  const bool column_value =
      !params_->along_rows && (params_->reduced.empty() || params_->reduced.back().strides[input] == 0);
  return {params_->inner_stride[input] == 0, column_value};
}
bool ReduceThunkBuilder::along_rows() const { return params_->along_rows; }

void ReduceThunkBuilder::AddReduction(LoopBuilder& loop, LoopOp combiner, uint16_t element) {
  const uint16_t node = loop.AddReduction(combiner, element, params_->along_rows);
  const ElementType type = loop.program().nodes[node].type;
  params_->types.push_back(type);
  params_->folds.push_back(ReductionKernelsOf(Recognized(combiner), type));
  if (params_->along_rows) loop.program().outputs.push_back(node);
}

absl::StatusOr<ViewList> ReduceThunkBuilder::Emit(LoopBuilder& loop, const std::vector<View>& more,
                                                  std::vector<Shape> results, std::unique_ptr<ReduceFinish> finish,
                                                  ProgramCode* code, LoopProgram* compiled) {
  Params& p = *params_;
  LoopProgram& program = loop.program();
  program.form = p.along_rows ? LoopForm::kRows : LoopForm::kColumns;
  for (size_t o = 0; o < p.element_results; ++o) p.bytes.push_back(BytesOf(results[o].element_type()));
  const int64_t accumulators = static_cast<int64_t>(p.types.size()) * kAccumulatorBytes;
  const int64_t partial = p.along_rows ? Params::Count(p.reduced) * ((p.inner + p.chunk - 1) / p.chunk) * p.kept_count
                                       : p.pieces * p.kept_count;
  if (accumulators * p.chunk > MaxThreadScratch(b_) ||
      partial > b_.program().options().limits.max_bytes / accumulators / 4) {
    return absl::ResourceExhaustedError("memory");
  }
  const auto receive = [params = params_.get()](std::shared_ptr<const LoadedCode> loaded) {
    params->code = std::move(loaded);
    return params->code->saved_values() == 0 ? absl::OkStatus()
                                             : absl::UnimplementedError("a reduction in several passes");
  };
  if (absl::Status status = code->Request(program, p.chunk, receive); !status.ok()) return status;
  *compiled = program;
  p.finish = std::move(finish);
  p.functions = std::move(loop.functions());
  p.cost = 0.05 * static_cast<double>(program.nodes.size());
  for (const ElementOp& function : p.functions) {
    p.function_pointers.push_back(&function);
    p.cost += function.cost();
  }
  std::vector<View> operands = views_;
  operands.insert(operands.end(), more.begin(), more.end());
  return b_.EmitTo(Run, std::move(params_), operands, results);
}

void ReduceThunkBuilder::Run(const ThunkParams* params, const std::byte* const* in, std::byte* const* out,
                             RunContext& context) {
  const auto& p = *static_cast<const Params*>(params);
  if (p.along_rows) {
    p.RunRows(in, out, context);
  } else {
    p.RunColumns(in, out, context);
  }
}

void ReduceThunkBuilder::Params::RunColumns(const std::byte* const* in, std::byte* const* out,
                                            RunContext& context) const {
  const int64_t chunks = (inner + chunk - 1) / chunk;
  const int64_t blocks = Count(kept) * chunks;
  const int64_t count = Count(reduced);
  const Dimension one_row = {1, std::vector<int64_t>(arrays(), 0), 0};
  const Dimension& row = reduced.empty() ? one_row : reduced.back();
  const int64_t tile = std::max<int64_t>(kTileElements / chunk, 16);
  const int64_t pitch = chunk * kAccumulatorBytes;
  const int64_t block_bytes = pitch * static_cast<int64_t>(types.size());
  std::byte* partial = nullptr;
  std::unique_ptr<Scratch> memory;
  if (pieces > 1) {
    memory = std::make_unique<Scratch>(context, blocks * pieces * block_bytes);
    partial = memory->data();
    if (partial == nullptr) return;
  }
  const auto finish_block = [&](int64_t block, const std::byte* sums) {
    absl::InlinedVector<const std::byte*, 4> totals;
    for (size_t k = 0; k < types.size(); ++k) totals.push_back(sums + static_cast<int64_t>(k) * pitch);
    absl::InlinedVector<int64_t, 16> unused(arrays(), 0);
    const int64_t first = AddOffsets(kept, block / chunks, unused.data()) + block % chunks * chunk;
    finish->Run(totals.data(), first, std::min(chunk, inner - block % chunks * chunk), in + inputs,
                out + element_results);
  };
  const int64_t piece_elements = count / pieces * chunk;
  const double piece_cost = CostInPieces(static_cast<double>(piece_elements) * cost, piece_elements * ElementBytes());
  context.ParallelFor(blocks * pieces, piece_cost, [&](int64_t begin, int64_t end) {
    absl::InlinedVector<const std::byte*, 16> from(inputs);
    absl::InlinedVector<std::byte*, 8> to(element_results);
    absl::InlinedVector<int64_t, 16> offsets(arrays());
    LoopArguments arguments = {};
    arguments.in = from.data();
    arguments.out = to.data();
    arguments.in_strides = row.strides.data();
    arguments.out_strides = row.strides.data() + inputs;
    arguments.call = CallElementOp;
    arguments.functions = function_pointers.data();
    arguments.scratch_pitch = pitch;
    std::byte* const own = pieces == 1 ? ThreadScratch(block_bytes) : nullptr;
    if (pieces == 1 && own == nullptr)
      return context.Fail("out of memory: no scratch memory for a loop", DiagnosticKind::kTooLarge);
    for (int64_t item = begin; item < end; ++item) {
      if (context.ShouldStop()) return;
      const int64_t block = item / pieces, piece = item % pieces;
      const int64_t first_column = block % chunks * chunk;
      arguments.columns = std::min(chunk, inner - first_column);
      arguments.scratch = pieces == 1 ? own : partial + item * block_bytes;
      arguments.resume = 0;
      const int64_t last = (piece + 1) * count / pieces;
      for (int64_t at = piece * count / pieces; at < last;) {
        arguments.rows = std::min({row.size - at % row.size, last - at, tile});
        std::fill(offsets.begin(), offsets.end(), 0);
        AddOffsets(kept, block / chunks, offsets.data());
        if (!reduced.empty()) AddOffsets(reduced, at, offsets.data());
        for (size_t a = 0; a < arrays(); ++a) {
          const int64_t offset = (offsets[a] + first_column * inner_stride[a]) * bytes[a];
          if (a < inputs) {
            from[a] = in[a] + offset;
          } else {
            to[a - inputs] = out[a - inputs] + offset;
          }
        }
        code->function()(&arguments);
        arguments.resume = 1;
        at += arguments.rows;
      }
      if (pieces == 1) finish_block(block, own);
    }
  });
  if (pieces == 1 || context.failed()) return;
  context.ParallelFor(blocks, static_cast<double>(pieces * chunk * static_cast<int64_t>(types.size())),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t block = begin; block < end; ++block) {
                          std::byte* const sums = partial + block * pieces * block_bytes;
                          for (int64_t piece = 1; piece < pieces; ++piece) {
                            for (size_t k = 0; k < types.size(); ++k) {
                              const int64_t at = static_cast<int64_t>(k) * pitch;
                              folds[k].combine(sums + at, sums + piece * block_bytes + at,
                                               std::min(chunk, inner - block % chunks * chunk));
                            }
                          }
                          finish_block(block, sums);
                        }
                      });
}

void ReduceThunkBuilder::Params::RunRows(const std::byte* const* in, std::byte* const* out, RunContext& context) const {
  const int64_t chunks = (inner + chunk - 1) / chunk;
  const int64_t lines = Count(reduced);
  const int64_t parts = lines * chunks;  // of each result
  const int64_t pitch = parts * kept_count * kAccumulatorBytes;
  const Scratch memory(context, pitch * static_cast<int64_t>(types.size()));
  if (memory.data() == nullptr) return;
  // A call takes rows along the dimension with the most of them.
  const bool kept_rows = !kept.empty() && (reduced.empty() || kept.back().size >= reduced.back().size);
  const Dimension one_row = {1, std::vector<int64_t>(arrays(), 0), 0};
  const Dimension& row = kept_rows ? kept.back() : reduced.empty() ? one_row : reduced.back();
  std::vector<int64_t> strides = row.strides;
  // Of results: partial ones of one line are next to each other.
  for (size_t k = 0; k < types.size(); ++k) strides.push_back(kept_rows ? row.kept_stride : kept_count * chunks);
  const int64_t rows = chunks > 1 ? 1 : std::clamp<int64_t>(kTileElements / inner, 1, row.size);  // of a call
  const int64_t row_calls = (row.size + rows - 1) / rows;
  const int64_t kept_calls = kept_rows ? Count(kept) / row.size : Count(kept);
  const int64_t line_calls = kept_rows ? lines : lines / row.size;
  context.ParallelFor(
      kept_calls * line_calls * row_calls * chunks,
      CostInPieces(static_cast<double>(rows * chunk) * cost, rows * chunk * ElementBytes()),
      [&](int64_t begin, int64_t end) {
        absl::InlinedVector<const std::byte*, 16> from(inputs);
        absl::InlinedVector<std::byte*, 8> to(element_results + types.size());
        absl::InlinedVector<int64_t, 16> offsets(arrays());
        LoopArguments arguments = {};
        arguments.in = from.data();
        arguments.out = to.data();
        arguments.in_strides = strides.data();
        arguments.out_strides = strides.data() + inputs;
        arguments.call = CallElementOp;
        arguments.functions = function_pointers.data();
        for (int64_t item = begin; item < end; ++item) {
          if (context.ShouldStop()) return;
          const int64_t part = item % chunks;
          const int64_t first_row = item / chunks % row_calls * rows;
          const int64_t call = item / chunks / row_calls;
          const int64_t first_kept = call / line_calls * (kept_rows ? row.size : 1) + (kept_rows ? first_row : 0);
          const int64_t first_line = call % line_calls * (kept_rows ? 1 : row.size) + (kept_rows ? 0 : first_row);
          arguments.rows = std::min(rows, row.size - first_row);
          std::fill(offsets.begin(), offsets.end(), 0);
          const int64_t kept_at = AddOffsets(kept, first_kept, offsets.data());
          AddOffsets(reduced, first_line, offsets.data());
          for (size_t a = 0; a < arrays(); ++a) {
            const int64_t offset = (offsets[a] + part * chunk * inner_stride[a]) * bytes[a];
            if (a < inputs) {
              from[a] = in[a] + offset;
            } else {
              to[a - inputs] = out[a - inputs] + offset;
            }
          }
          for (size_t k = 0; k < types.size(); ++k) {
            to[element_results + k] = memory.data() + static_cast<int64_t>(k) * pitch +
                                      ((first_line * chunks + part) * kept_count + kept_at) * BytesOf(types[k]);
          }
          arguments.columns = std::min(chunk, inner - part * chunk);
          code->function()(&arguments);
        }
      });
  if (context.failed()) return;
  const int64_t blocks = (kept_count + kFinishBlock - 1) / kFinishBlock;
  context.ParallelFor(blocks, static_cast<double>(parts * kFinishBlock), [&](int64_t begin, int64_t end) {
    absl::InlinedVector<const std::byte*, 4> totals(types.size());
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kFinishBlock;
      const int64_t n = std::min(kFinishBlock, kept_count - first);
      for (size_t k = 0; k < types.size(); ++k) {
        const int64_t step = kept_count * BytesOf(types[k]);
        std::byte* const sums = memory.data() + static_cast<int64_t>(k) * pitch + first * BytesOf(types[k]);
        for (int64_t part = 1; part < parts; ++part) folds[k].combine(sums, sums + part * step, n);
        totals[k] = sums;
      }
      finish->Run(totals.data(), first, n, in + inputs, out + element_results);
    }
  });
}

}  // namespace hlokit::interp::compiled
