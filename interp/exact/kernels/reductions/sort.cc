// SPDX-License-Identifier: Apache-2.0
// Sort and top-k.
//
// A comparator of one key computed from each element (the most frequent kind) becomes keys for a radix sort. Any other
// comparator is called by a merge sort. Both are stable. An inconsistent comparator gives the permutation of XLA's
// evaluator.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/emit.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/builder/scalar_function.h"
#include "interp/exact/kernels/reductions/sort_keys.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/element_width.h"
#include "interp/exact/program/loop_nest.h"

namespace hlokit::interp {
namespace {

struct SortParams : ThunkParams {
  LoopNest lines;      // operands: result (all have one shape), then each input; without the sorted dimension
  int64_t length = 0;  // of a line
  int64_t out_stride = 0;
  size_t count = 0;
  std::vector<int64_t> strides;  // of each input along a line
  std::vector<int64_t> bytes;
  const ScalarFunction* function = nullptr;
  bool by_key = false;
  KeyOrder order;
};

constexpr int64_t kBetweenChecks = int64_t{1} << 18;  // elements between checks whether the run is to stop

// The elements of one line of every operand, contiguous.
class Line {
 public:
  explicit Line(const SortParams& p) : p_(p), data_(p.count) {
    for (size_t k = 0; k < p.count; ++k) {
      data_[k] = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(p.length * p.bytes[k]));
    }
  }
  const std::byte* data(size_t k) const { return data_[k].get(); }
  // Incomplete if the run is to stop.
  void Load(size_t k, const std::byte* from, RunContext& context) {
    const int64_t bytes = p_.bytes[k];
    for (int64_t begin = 0; begin < p_.length; begin += kBetweenChecks) {
      const int64_t end = std::min(begin + kBetweenChecks, p_.length);
      if (p_.strides[k] == 1) {
        std::memcpy(data_[k].get() + begin * bytes, from + begin * bytes, static_cast<size_t>((end - begin) * bytes));
      } else {
        for (int64_t i = begin; i < end; ++i) {
          std::memcpy(data_[k].get() + i * bytes, from + i * p_.strides[k] * bytes, static_cast<size_t>(bytes));
        }
      }
      if (p_.length > kBetweenChecks && context.ShouldStop()) return;
    }
  }
  // Stores elements [begin, end) of the sorted line.
  void Store(size_t k, absl::Span<const uint32_t> order, int64_t begin, int64_t end, std::byte* to) const {
    VisitWidth(p_.bytes[k], [&]<typename T>(T) {
      const T* from = reinterpret_cast<const T*>(data_[k].get());
      T* t = reinterpret_cast<T*>(to);
      for (int64_t i = begin; i < end; ++i) t[i * p_.out_stride] = from[order[i]];
    });
  }

 private:
  const SortParams& p_;
  std::vector<std::unique_ptr<std::byte[]>> data_;
};

// Sorts positions with a comparator: merges halves, and sorts short ranges by binary insertion. It makes each
// comparison once and stays in bounds for any results, so the comparator may be inconsistent or use random numbers.
class ComparisonSorter {
 public:
  ComparisonSorter(const SortParams& p, RunContext& context)
      : p_(p), context_(context), scratch_(*p.function, 1), parameters_(2 * p.count), strides_(2 * p.count, 1) {}

  absl::Span<const uint32_t> Sort(const Line& line) {
    order_.resize(static_cast<size_t>(p_.length));
    other_.resize(order_.size());
    std::iota(order_.begin(), order_.end(), 0);
    // Ranges to be sorted; a range whose halves are sorted is revisited.
    std::vector<Piece> pending = {{0, order_.size(), false}};
    while (!pending.empty() && !context_.failed()) {
      const Piece piece = pending.back();
      pending.pop_back();
      const size_t middle = piece.begin + (piece.end - piece.begin) / 2;
      if (piece.halves_sorted) {
        Merge(line, piece.begin, middle, piece.end);
      } else if (piece.end - piece.begin <= kShort) {
        Insert(line, piece.begin, piece.end);
      } else {
        pending.push_back({piece.begin, piece.end, true});
        pending.push_back({middle, piece.end, false});
        pending.push_back({piece.begin, middle, false});
      }
    }
    return order_;
  }

 private:
  static constexpr size_t kShort = 8;
  static constexpr size_t kComparedBetweenChecks = 1 << 15;

  struct Piece {
    size_t begin, end;
    bool halves_sorted;
  };

  void Insert(const Line& line, size_t begin, size_t end) {
    for (size_t i = begin + 1; i < end; ++i) {
      const uint32_t moved = order_[i];
      const auto at =
          std::upper_bound(order_.begin() + static_cast<int64_t>(begin), order_.begin() + static_cast<int64_t>(i),
                           moved, [&](uint32_t x, uint32_t y) { return Before(line, x, y); });
      std::move_backward(at, order_.begin() + static_cast<int64_t>(i), order_.begin() + static_cast<int64_t>(i) + 1);
      *at = moved;
    }
  }

  void Merge(const Line& line, size_t begin, size_t middle, size_t end) {
    size_t a = begin;
    size_t b = middle;
    for (size_t to = begin; to < end; ++to) {
      if ((to - begin) % kComparedBetweenChecks == kComparedBetweenChecks - 1 && context_.ShouldStop()) return;
      // Takes the right element only if it is strictly smaller: equal elements keep their order.
      const bool right = a == middle || (b < end && Before(line, order_[b], order_[a]));
      other_[to] = right ? order_[b++] : order_[a++];
    }
    std::copy(other_.begin() + static_cast<int64_t>(begin), other_.begin() + static_cast<int64_t>(end),
              order_.begin() + static_cast<int64_t>(begin));
  }

  bool Before(const Line& line, uint32_t x, uint32_t y) {
    for (size_t k = 0; k < p_.count; ++k) {
      parameters_[2 * k] = line.data(k) + x * p_.bytes[k];
      parameters_[2 * k + 1] = line.data(k) + y * p_.bytes[k];
    }
    std::byte result{};
    std::byte* results[] = {&result};
    p_.function->Run(parameters_.data(), strides_.data(), results, 1, scratch_, context_);
    return result != std::byte{0};
  }

  const SortParams& p_;
  RunContext& context_;
  ScalarFunction::BlockScratch scratch_;
  std::vector<const std::byte*> parameters_;
  std::vector<int64_t> strides_;
  std::vector<uint32_t> order_, other_;
};

void MakeKeys(const SortParams& p, const Line& line, RunContext& context, std::vector<std::byte>* computed,
              absl::Span<uint64_t> keys) {
  const ScalarFunction::KeyComparison& comparison = *p.function->comparison();
  const bool computes = comparison.operand < 0;
  const int64_t bytes = BytesOf(p.order.type), piece = std::min(p.length, kBetweenChecks);
  std::optional<ScalarFunction::BlockScratch> scratch;
  if (computes) {
    computed->resize(static_cast<size_t>(piece * bytes));
    scratch.emplace(*comparison.key, piece);
  }
  std::vector<const std::byte*> parameters;
  const std::vector<int64_t> strides(2 * p.count, 1);
  for (int64_t begin = 0; begin < p.length; begin += kBetweenChecks) {
    const int64_t n = std::min(kBetweenChecks, p.length - begin);
    uint64_t* const to = keys.data() + begin;
    if (computes) {
      parameters.clear();
      for (size_t k = 0; k < p.count; ++k) parameters.insert(parameters.end(), 2, line.data(k) + begin * p.bytes[k]);
      std::byte* results[] = {computed->data()};
      comparison.key->Run(parameters.data(), strides.data(), results, n, *scratch, context);
      p.order.MakeKeys(computed->data(), n, to);
    } else {
      p.order.MakeKeys(line.data(static_cast<size_t>(comparison.operand)) + begin * bytes, n, to);
    }
    if (p.length > kBetweenChecks && context.ShouldStop()) return;
  }
}

void RunSort(const SortParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  if (p.length == 0) return;
  const int64_t inner = p.lines.inner_size();
  const int64_t items = p.lines.outer_count() * inner;
  // With fewer long lines than threads, the threads sort each line together.
  constexpr int64_t kLong = int64_t{1} << 16;
  const bool together = p.by_key && items < context.threads() && p.length >= kLong && p.function->parallel();
  const auto run = [&](int64_t begin, int64_t end) {
    Line line(p);
    KeySorter by_key;
    ComparisonSorter by_comparison(p, context);
    std::vector<std::byte> computed;
    for (int64_t item = begin; item < end && !context.failed(); ++item) {
      p.lines.ForEachRun(item / inner, item / inner + 1, [&](const int64_t* at) {
        const int64_t column = item % inner;
        for (size_t k = 0; k < p.count; ++k) {
          line.Load(k, in[k] + (at[1 + k] + column * p.lines.inner_strides()[1 + k]) * p.bytes[k], context);
        }
        if (context.failed()) return;
        if (p.by_key) MakeKeys(p, line, context, &computed, by_key.Keys(static_cast<size_t>(p.length)));
        if (context.failed()) return;
        const absl::Span<const uint32_t> order = p.by_key ? by_key.Sort(context, together) : by_comparison.Sort(line);
        if (context.failed()) return;
        for (size_t k = 0; k < p.count; ++k) {
          std::byte* to = out[k] + (at[0] + column * p.lines.inner_strides()[0]) * p.bytes[k];
          const auto store = [&](int64_t first, int64_t last) { line.Store(k, order, first, last, to); };
          if (together) {
            context.ParallelFor(p.length, 3, store);
          } else {
            for (int64_t first = 0; first < p.length; first += kBetweenChecks) {
              store(first, std::min(first + kBetweenChecks, p.length));
              if (p.length > kBetweenChecks && context.ShouldStop()) return;
            }
          }
        }
      });
    }
  };
  if (together || !p.function->parallel()) {
    run(0, items);
    return;
  }
  context.ParallelFor(items, static_cast<double>(p.length) * (p.by_key ? 30 : 20 * (20 + p.function->cost())), run);
}

struct TopKParams : ThunkParams {
  int64_t lines = 0;
  int64_t length = 0;
  int64_t k = 0;
  KeyOrder order;
  int64_t bytes = 0;
  ElementType index_type = ElementType::kS32;
};

// Finds the k first elements of a line by keys and then positions: candidates are kept until they are many, and then
// cut to the first k of them, whose last key is the bound that elements must be below. Most elements are above, and
// whole blocks of them are passed over.
template <typename Key>
class FirstOfLine {
 public:
  struct Candidate {
    Key key;
    uint32_t position;
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.key != b.key ? a.key < b.key : a.position < b.position;
    }
  };

  explicit FirstOfLine(const TopKParams& p) : p_(p), enough_(static_cast<size_t>(std::max<int64_t>(2 * p.k, 256))) {
    candidates_.reserve(enough_ + kBlock);
  }

  // Returns the first k in order, or nothing if the run is to stop.
  absl::Span<const Candidate> Find(const std::byte* line, RunContext& context) {
    candidates_.clear();
    bounded_ = false;
    alignas(64) Key keys[kBlock];
    for (int64_t begin = 0; begin < p_.length; begin += kBlock) {
      if (begin % kBetweenChecks == kBetweenChecks - kBlock && context.ShouldStop()) return {};
      const int64_t n = std::min(kBlock, p_.length - begin);
      p_.order.MakeKeys(line + begin * p_.bytes, n, keys);
      for (int64_t i = 0; i < n; i += kGroup) {
        if (i + kGroup <= n && bounded_ && !AnyBelow(keys + i)) continue;
        for (int64_t e = i; e < std::min(i + kGroup, n); ++e) {
          if (!bounded_ || keys[e] < bound_) candidates_.push_back({keys[e], static_cast<uint32_t>(begin + e)});
        }
      }
      if (candidates_.size() >= enough_) Cut();
    }
    Cut();
    std::sort(candidates_.begin(), candidates_.end());
    return candidates_;
  }

 private:
  static constexpr int64_t kBlock = 1024, kGroup = 64;

  bool AnyBelow(const Key* keys) const {
    const Key bound = bound_;
    Key below = 0;
    for (int64_t i = 0; i < kGroup; ++i) below |= static_cast<Key>(keys[i] < bound);
    return below != 0;
  }

  void Cut() {
    const auto last = candidates_.begin() + (p_.k - 1);
    std::nth_element(candidates_.begin(), last, candidates_.end());
    bound_ = last->key;
    bounded_ = true;
    candidates_.resize(static_cast<size_t>(p_.k));
  }

  const TopKParams& p_;
  const size_t enough_;
  std::vector<Candidate> candidates_;
  Key bound_ = 0;
  bool bounded_ = false;
};

template <typename Key>
void RunTopKWithKeys(const TopKParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const size_t bytes = static_cast<size_t>(p.bytes);
  const size_t index_bytes = static_cast<size_t>(BytesOf(p.index_type));
  // Of many first ones a sort is faster.
  const bool sorts = p.k > p.length / 4 && p.length >= 256;
  context.ParallelFor(p.lines, static_cast<double>(p.length) * (sorts ? 20 : 2), [&](int64_t begin, int64_t end) {
    FirstOfLine<Key> first(p);
    KeySorter sorter;
    for (int64_t line = begin; line < end; ++line) {
      const std::byte* from = in[0] + line * p.length * p.bytes;
      size_t to = static_cast<size_t>(line * p.k);
      const auto put = [&](uint32_t position) {
        std::memcpy(out[0] + to * bytes, from + position * bytes, bytes);
        const int64_t index = position;
        std::memcpy(out[1] + to * index_bytes, &index, index_bytes);  // little endian
        ++to;
      };
      if (sorts) {
        p.order.MakeKeys(from, p.length, sorter.Keys(static_cast<size_t>(p.length)).data());
        const absl::Span<const uint32_t> order = sorter.Sort(context, /*together=*/false);
        if (context.failed()) return;
        for (uint32_t position : order.first(static_cast<size_t>(p.k))) put(position);
      } else {
        for (const auto& found : first.Find(from, context)) put(found.position);
      }
    }
  });
}

void RunTopK(const TopKParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  if (p.k == 0) return;
  if (p.order.Narrow()) {
    RunTopKWithKeys<uint32_t>(p, in, out, context);
  } else {
    RunTopKWithKeys<uint64_t>(p, in, out, context);
  }
}

}  // namespace

void PrepareSort(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const size_t count = static_cast<size_t>(instruction.operand_count());
  const absl::Span<const int64_t> dimensions = instruction.list_attr(Attr::kDimensions);
  auto params = std::make_unique<SortParams>();
  params->count = count;
  std::vector<View> views;
  std::vector<ElementType> types;  // two elements of each operand
  for (size_t k = 0; k < count; ++k) {
    views.push_back(b.operand(static_cast<int64_t>(k)));
    types.insert(types.end(), 2, views[k].type());
  }
  params->function =
      b.program().FunctionOf(instruction.computation_attr(Attr::kToApply), types, {{ElementType::kPred}});
  const absl::Span<const int64_t> dims = views[0].dims();
  bool fits = params->function != nullptr && dimensions.size() == 1 && dimensions[0] >= 0 &&
              dimensions[0] < static_cast<int64_t>(dims.size());
  for (size_t k = 0; fits && k < count; ++k) fits = views[k].dims() == dims;
  if (!fits) {
    b.FailMismatch("operands of one shape, a dimension in range and a comparison of two elements of each operand");
    return;
  }
  if (ElementCount(dims) == 0) {
    b.Emit(RunNothing, nullptr, views);
    return;
  }
  const int64_t dim = dimensions[0];
  params->length = dims[dim];
  if (params->length > int64_t{0xffffffff}) {
    b.Fail("the sorted dimension is too long");
    return;
  }
  const Dims out_strides = DenseStrides(dims);
  params->out_stride = out_strides[dim];
  Dims sizes;
  std::vector<Dims> strides(1 + count);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (static_cast<int64_t>(d) == dim) continue;
    sizes.push_back(dims[d]);
    strides[0].push_back(out_strides[d]);
    for (size_t k = 0; k < count; ++k) strides[1 + k].push_back(StridesOf(views[k])[d]);
  }
  for (size_t k = 0; k < count; ++k) {
    params->strides.push_back(StridesOf(views[k])[dim]);
    params->bytes.push_back(BytesOf(views[k].type()));
  }
  params->lines = LoopNest(sizes, strides);
  if (const ScalarFunction::KeyComparison* comparison = params->function->comparison()) {
    const ComparisonDirection direction = comparison->direction;
    params->order.type = comparison->key->result_type(0);
    params->order.descending = direction == ComparisonDirection::kGt || direction == ComparisonDirection::kGe;
    params->order.total_order = comparison->total_order;
    params->by_key =
        params->order.Supported() && (direction == ComparisonDirection::kLt || direction == ComparisonDirection::kGt);
  }
  b.Emit(kKernel<RunSort>, std::move(params), views);
}

void PrepareTopK(CompiledComputationBuilder& b) {
  EmitTopK(b, b.instruction().int_attr(Attr::kK), b.instruction().bool_attr(Attr::kLargest, true));
}

void EmitTopK(CompiledComputationBuilder& b, int64_t k, bool largest) {
  const View view = b.MakeDense(b.operand(0));
  auto params = std::make_unique<TopKParams>();
  std::vector<Shape> results;
  AppendLeaves(b.shape(), &results);
  const int64_t rank = view.shape.rank();
  params->k = k;
  params->order.type = view.type();
  params->order.descending = largest;
  params->order.total_order = true;
  // The shape of a custom-call is only declared.
  const auto has_k = [&](Shape result) {
    if (!result.IsArray() || result.rank() != rank || result.dim(rank - 1) != k) return false;
    for (int64_t d = 0; d + 1 < rank; ++d) {
      if (result.dim(d) != view.shape.dim(d)) return false;
    }
    return true;
  };
  if (rank < 1 || results.size() != 2 || params->k < 0 || params->k > view.shape.dim(rank - 1) || !has_k(results[0]) ||
      !has_k(results[1]) || results[0].element_type() != view.type() || !params->order.Supported() ||
      !IsInteger(results[1].element_type()) || view.shape.dim(rank - 1) > int64_t{0xffffffff}) {
    b.FailMismatch(
        "k of at most the last dimension of the operand, and results (values, integer indices) of its shape but for "
        "that");
    return;
  }
  params->length = view.shape.dim(rank - 1);
  params->lines = params->length == 0 ? 0 : view.count() / params->length;
  params->bytes = BytesOf(view.type());
  params->index_type = results[1].element_type();
  b.Emit(kKernel<RunTopK>, std::move(params), {&view, 1});
}

}  // namespace hlokit::interp
