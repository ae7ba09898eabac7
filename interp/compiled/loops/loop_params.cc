// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/loops/loop_params.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/programs/pieces.h"
#include "interp/exact/kernels/index_operand.h"
#include "interp/exact/machine/run_context.h"

namespace hlokit::interp::compiled {
namespace {

constexpr int64_t kMaxSharedColumns = 1024;  // of a loop by columns
constexpr int64_t kTile = 64 * 1024;         // elements of rows that are computed together, if they are divided
constexpr int64_t kLongRow = 32 * 1024;
constexpr int64_t kChunk = 16 * 1024;
constexpr int64_t kFillChunk = 2048;
constexpr int64_t kMaxBoxes = 64;

// Runs the rows of a box that a thread takes.
class BoxRun {
 public:
  BoxRun(const LoopParams& params, const LoopParams::Box& box, const std::byte* const* in, std::byte* const* out,
         const std::byte* fills)
      : p_(params),
        box_(box),
        in_(in),
        out_(out),
        fills_(fills),
        from_(params.inputs),
        to_(params.outputs),
        at_(params.arrays()),
        start_(params.inputs, 0) {
    arguments_.in = from_.data();
    arguments_.out = to_.data();
    arguments_.call = CallElementOp;
    arguments_.functions = params.function_pointers.data();
    arguments_.scratch_pitch = params.columns * kMaxElementBytes;
  }
  void set_scratch(std::byte* scratch) { arguments_.scratch = scratch; }

  // Fetches the beginning of what a row reads at computed positions.
  void Prefetch(int64_t line) {
    SetLine(line);
    constexpr int64_t kBytes = 2048, kLine = 64;
    const LoopParams::Piece& piece = box_.pieces[0];
    for (const LoopParams::Index& index : p_.indices) {
      const size_t operand = static_cast<size_t>(piece.from[index.input - p_.plain]);
      const std::byte* const from = in_[operand] + At(operand, piece) + start_[index.input];
      const int64_t bytes = std::min(kBytes, piece.columns * p_.bytes[operand]);
      for (int64_t k = 0; k < bytes; k += kLine) __builtin_prefetch(from + k);
    }
  }

  // Computes `rows` rows from row `line` on of the pieces [first, last).
  void Run(int64_t line, int64_t rows, size_t first, size_t last) {
    SetLine(line);
    arguments_.rows = rows;
    const LoopFunction function = p_.code->function();
    for (size_t n = first; n < last; ++n) {
      const LoopParams::Piece& piece = box_.pieces[n];
      for (size_t i = 0; i < p_.plain; ++i) from_[i] = in_[i] + At(i, piece);
      for (size_t i = p_.plain; i < p_.inputs; ++i) {
        const int64_t operand = piece.from[i - p_.plain];
        from_[i] = operand < 0 ? fills_ + (-1 - operand) * p_.fill_columns * kMaxElementBytes
                               : in_[operand] + At(static_cast<size_t>(operand), piece) + start_[i];
      }
      for (size_t o = 0; o < p_.outputs; ++o) to_[o] = out_[o] + At(p_.operands + o, piece);
      arguments_.in_strides = piece.row_strides.data();
      arguments_.out_strides = piece.row_strides.data() + p_.inputs;
      arguments_.columns = piece.columns;
      function(&arguments_);
    }
  }

 private:
  // Finds where a row begins in each array.
  void SetLine(int64_t line) {
    std::copy(p_.origin.begin(), p_.origin.end(), at_.begin());
    for (size_t d = box_.sizes.size(); d-- > 0;) {
      const int64_t index = box_.begin[d] + line % box_.sizes[d];
      line /= box_.sizes[d];
      for (size_t a = 0; a < at_.size(); ++a) at_[a] += index * p_.strides[d * at_.size() + a];
    }
    if (p_.indices.empty()) return;
    std::fill(start_.begin(), start_.end(), 0);
    for (const LoopParams::Index& index : p_.indices) {
      const int64_t value = LoadIndex(index.type, in_[index.operand] + at_[index.operand] * p_.bytes[index.operand]);
      start_[index.input] += std::clamp<int64_t>(value, 0, index.limit) * index.stride;
    }
  }
  int64_t At(size_t array, const LoopParams::Piece& piece) const {
    return (at_[array] + piece.begin * p_.inner_stride[array]) * p_.bytes[array];
  }

  const LoopParams& p_;
  const LoopParams::Box& box_;
  const std::byte* const* const in_;
  std::byte* const* const out_;
  const std::byte* const fills_;
  LoopArguments arguments_ = {};
  absl::InlinedVector<const std::byte*, 16> from_;
  absl::InlinedVector<std::byte*, 8> to_;
  absl::InlinedVector<int64_t, 24> at_;     // elements, by array
  absl::InlinedVector<int64_t, 16> start_;  // computed positions in bytes, by input
};

void WriteFills(const LoopParams& p, const std::byte* const* in, std::byte* lines) {
  for (const LoopParams::Fill& fill : p.fills) {
    for (int64_t i = 0; i < p.fill_columns; ++i) {
      std::memcpy(lines + i * fill.bytes, in[fill.operand], static_cast<size_t>(fill.bytes));
    }
    lines += p.fill_columns * kMaxElementBytes;
  }
}

void RunBox(const LoopParams& p, const LoopParams::Box& box, const std::byte* const* in, std::byte* const* out,
            RunContext& context) {
  const int64_t pieces = static_cast<int64_t>(box.pieces.size());
  // Items: rows, or the pieces of each row.
  const int64_t items = box.whole_rows ? box.lines : box.lines * pieces;
  const double columns = static_cast<double>(box.whole_rows ? p.columns : std::min(p.columns, kChunk));
  double bytes = 0;
  for (int64_t of_element : p.bytes) bytes += columns * static_cast<double>(of_element);
  const double cost = CostInPieces(columns * p.cost, static_cast<int64_t>(bytes));
  context.ParallelFor(items, cost, [&](int64_t begin, int64_t end) {
    const int64_t fill_bytes = box.has_fills ? p.fill_bytes() : 0;
    std::byte* const memory = p.scratch + fill_bytes > 0 ? ThreadScratch(p.scratch + fill_bytes) : nullptr;
    if (p.scratch + fill_bytes > 0 && memory == nullptr) {
      context.Fail("out of memory: no scratch memory for a loop", DiagnosticKind::kTooLarge);
      return;
    }
    BoxRun run(p, box, in, out, memory + p.scratch);
    run.set_scratch(memory);
    if (fill_bytes > 0) WriteFills(p, in, memory + p.scratch);
    const bool moves_by_row = p.MovesByRow();
    if (!box.whole_rows) {
      for (int64_t item = begin; item < end; ++item) {
        const size_t piece = static_cast<size_t>(item % pieces);
        run.Run(item / pieces, 1, piece, piece + 1);
      }
      return;
    }
    for (int64_t line = begin; line < end;) {
      // Up to the end of their dimension.
      int64_t rows = std::min(end - line, box.rows - line % box.rows);
      if (p.by_columns || pieces > 1) rows = std::min(rows, std::max<int64_t>(kTile / p.columns, 1));
      if (moves_by_row && line + 1 < end) run.Prefetch(line + 1);
      run.Run(line, rows, 0, box.pieces.size());
      line += rows;
    }
  });
}

// Bounds of the boxes in one dimension of the nest, ascending.
using Cuts = std::vector<int64_t>;

// Returns the elements of all dimensions after `d`.
int64_t ElementsAfter(absl::Span<const int64_t> dims, size_t d) { return ElementCount(dims.subspan(d + 1)); }

// The dimensions in which in-place inputs consist of several parts.
std::vector<size_t> CutDimensions(absl::Span<const int64_t> dims, absl::Span<const InplaceInput> inplace) {
  std::vector<size_t> cut;
  for (size_t d = 0; d < dims.size(); ++d) {
    for (const InplaceInput& input : inplace) {
      const bool divided = std::any_of(input.parts.begin(), input.parts.end(),
                                       [&](const InplaceInput::Part& part) { return part.sizes[d] != dims[d]; });
      if (!divided) continue;
      cut.push_back(d);
      break;
    }
  }
  return cut;
}

// Positions of the parts of in-place inputs in the dimensions of the nest.
struct InplacePart {
  int64_t operand = 0;  // or -1 - number of a fill line
  std::vector<int64_t> begin, end;
};

class ElementsLayout {
 public:
  ElementsLayout(CompiledComputationBuilder& builder, absl::Span<const int64_t> dims,
                 absl::Span<const InplaceInput> inplace, size_t results, std::vector<View>* views, LoopParams* params)
      : b_(builder), dims_(dims), inplace_(inplace), results_(results), views_(*views), p_(*params) {}

  std::vector<View> Run() {
    cut_ = CutDimensions(dims_, inplace_);
    p_.plain = views_.size();
    p_.inputs = p_.plain + inplace_.size();
    p_.outputs = results_;
    AddOperands();
    LoopNest nest = Nest();
    std::vector<bool> copy;
    for (size_t i = 0; i < p_.plain; ++i) {
      const int64_t stride = nest.inner_strides()[i];
      copy.push_back(nest.inner_size() > 1 && stride != 0 && stride != 1);
    }
    for (size_t i = 0; i < p_.plain; ++i) {
      if (copy[i]) views_[i] = Compact(b_, views_[i]);
    }
    nest = Nest();
    for (const View& view : views_) p_.bytes.push_back(BytesOf(view.type()));
    for (const View& view : more_) p_.bytes.push_back(BytesOf(view.type()));
    for (size_t a = 0; a < p_.arrays(); ++a) {
      p_.inner_stride.push_back(nest.inner_size() > 1 ? nest.inner_strides()[a] : 1);
    }
    for (const LoopParams::Fill& fill : p_.fills) p_.inner_stride[fill.operand] = 0;
    p_.columns = nest.inner_size();
    p_.origin.assign(p_.arrays(), 0);
    SetStrides(nest);
    LocateParts(nest);
    MakeBoxes(nest);
    std::vector<View> operands = views_;
    operands.insert(operands.end(), more_.begin(), more_.end());
    return operands;
  }

 private:
  // Numbers the arrays of in-place inputs.
  void AddOperands() {
    const auto add = [&](const View& view, const Dims& strides) {
      more_.push_back(view);
      more_strides_.push_back(strides);
      return static_cast<int64_t>(p_.plain + more_.size()) - 1;
    };
    const auto add_fill = [&](const View& view) {
      const int64_t operand = add(view, Dims(dims_.size(), 0));
      p_.fills.push_back({static_cast<size_t>(operand), BytesOf(view.type())});
      return -static_cast<int64_t>(p_.fills.size());
    };
    for (size_t i = 0; i < inplace_.size(); ++i) {
      const InplaceInput& input = inplace_[i];
      parts_.emplace_back();
      for (const InplaceInput::Part& part : input.parts) {
        parts_.back().push_back({part.one_value ? add_fill(part.view) : add(part.view, part.strides), {}, {}});
      }
      for (const InplaceInput::Index& index : input.indices) {
        LoopParams::Index at;
        at.input = p_.plain + i;
        at.operand = static_cast<size_t>(add(index.view, index.strides));
        at.type = index.view.type();
        at.limit = index.limit;
        at.stride = index.stride * BytesOf(input.type);
        p_.indices.push_back(at);
      }
      fill_of_.push_back(input.fill ? std::optional<int64_t>(add_fill(*input.fill)) : std::nullopt);
    }
    p_.operands = p_.plain + more_.size();
  }

  // Of all arrays, and one more for each dimension of CutDimensions, which keeps it apart from the dimensions before
  // it: the number of the element in it and those after it.
  LoopNest Nest() const {
    std::vector<Dims> strides;
    for (const View& view : views_) strides.push_back(StridesOf(view));
    strides.insert(strides.end(), more_strides_.begin(), more_strides_.end());
    for (size_t o = 0; o < results_; ++o) strides.push_back(DenseStrides(dims_));
    for (size_t d : cut_) {
      Dims number = DenseStrides(dims_);
      std::fill(number.begin(), number.begin() + static_cast<int64_t>(d), 0);
      strides.push_back(std::move(number));
    }
    return LoopNest(dims_, strides);
  }

  void SetStrides(const LoopNest& nest) {
    for (int d = 0; d + 1 < nest.rank(); ++d) {
      for (size_t a = 0; a < p_.arrays(); ++a) p_.strides.push_back(nest.stride(d, static_cast<int>(a)));
    }
  }

  void LocateParts(const LoopNest& nest) {
    const size_t rank = static_cast<size_t>(nest.rank());
    for (size_t i = 0; i < inplace_.size(); ++i) {
      for (size_t k = 0; k < parts_[i].size(); ++k) {
        InplacePart& part = parts_[i][k];
        part.begin.assign(rank, 0);
        for (size_t n = 0; n < rank; ++n) part.end.push_back(nest.size(static_cast<int>(n)));
        for (size_t c = 0; c < cut_.size(); ++c) {
          const int number = static_cast<int>(p_.arrays() + c);
          size_t n = 0;
          while (n + 1 < rank && nest.stride(static_cast<int>(n), number) == 0) ++n;
          // Elements of the nest's dimension for one of the loop's.
          const int64_t scale = ElementsAfter(dims_, cut_[c]) / nest.stride(static_cast<int>(n), number);
          const InplaceInput::Part& given = inplace_[i].parts[k];
          part.begin[n] = given.begin[cut_[c]] * scale;
          part.end[n] = part.begin[n] + given.sizes[cut_[c]] * scale;
        }
        if (part.operand < 0) continue;
        const size_t operand = static_cast<size_t>(part.operand);
        for (size_t n = 0; n < rank; ++n) {
          p_.origin[operand] -= part.begin[n] * nest.stride(static_cast<int>(n), static_cast<int>(operand));
        }
      }
    }
  }

  void MakeBoxes(const LoopNest& nest) {
    const size_t rank = static_cast<size_t>(nest.rank());
    std::vector<Cuts> cuts(rank);
    for (size_t n = 0; n < rank; ++n) {
      cuts[n] = {0, nest.size(static_cast<int>(n))};
      for (const auto& input : parts_) {
        for (const InplacePart& part : input) {
          cuts[n].push_back(part.begin[n]);
          cuts[n].push_back(part.end[n]);
        }
      }
      std::sort(cuts[n].begin(), cuts[n].end());
      cuts[n].erase(std::unique(cuts[n].begin(), cuts[n].end()), cuts[n].end());
    }
    int64_t boxes = 1;
    for (size_t n = 0; n + 1 < rank; ++n) boxes *= static_cast<int64_t>(cuts[n].size()) - 1;
    for (int64_t number = 0; number < boxes; ++number) {
      std::vector<int64_t> begin(rank, 0), end(rank, 0);
      int64_t rest = number;
      for (size_t n = rank - 1; n-- > 0;) {
        const int64_t intervals = static_cast<int64_t>(cuts[n].size()) - 1;
        begin[n] = cuts[n][static_cast<size_t>(rest % intervals)];
        end[n] = cuts[n][static_cast<size_t>(rest % intervals) + 1];
        rest /= intervals;
      }
      p_.boxes.push_back(MakeBox(cuts.back(), &begin, &end));
    }
    // Values that all rows share, as of features, are read once for many rows.
    for (const LoopParams::Box& box : p_.boxes) {
      for (size_t i = 0; i < p_.plain; ++i) {
        p_.by_columns = p_.by_columns || (box.rows > 1 && p_.columns > 1 && p_.columns <= kMaxSharedColumns &&
                                          p_.inner_stride[i] == 1 && p_.RowStride(i) == 0);
      }
    }
  }

  LoopParams::Box MakeBox(const Cuts& columns, std::vector<int64_t>* begin, std::vector<int64_t>* end) {
    LoopParams::Box box;
    const size_t minor = begin->size() - 1;
    for (size_t n = 0; n < minor; ++n) {
      box.begin.push_back((*begin)[n]);
      box.sizes.push_back((*end)[n] - (*begin)[n]);
      box.lines *= box.sizes.back();
    }
    if (!box.sizes.empty() && !p_.MovesByRow()) box.rows = box.sizes.back();
    box.whole_rows = p_.columns <= kLongRow;
    for (size_t c = 0; c + 1 < columns.size(); ++c) {
      (*begin)[minor] = columns[c];
      (*end)[minor] = columns[c + 1];
      LoopParams::Piece piece;
      bool is_filled = false;
      for (size_t i = 0; i < inplace_.size(); ++i) {
        piece.from.push_back(SourceOf(i, *begin, *end));
        is_filled = is_filled || piece.from.back() < 0;
      }
      for (size_t i = 0; i < p_.plain; ++i) piece.row_strides.push_back(p_.RowStride(i));
      for (int64_t from : piece.from) {
        piece.row_strides.push_back(from < 0 ? 0 : p_.RowStride(static_cast<size_t>(from)));
      }
      for (size_t o = 0; o < p_.outputs; ++o) piece.row_strides.push_back(p_.RowStride(p_.operands + o));
      box.has_fills = box.has_fills || is_filled;
      const int64_t chunk = is_filled ? kFillChunk : box.whole_rows ? kLongRow : kChunk;
      for (piece.begin = columns[c]; piece.begin < columns[c + 1]; piece.begin += chunk) {
        piece.columns = std::min(chunk, columns[c + 1] - piece.begin);
        if (is_filled) p_.fill_columns = std::max(p_.fill_columns, piece.columns);
        box.pieces.push_back(piece);
      }
    }
    return box;
  }

  // Returns where an in-place input lies in a box: an operand, or -1 - number of a fill line.
  int64_t SourceOf(size_t input, const std::vector<int64_t>& begin, const std::vector<int64_t>& end) const {
    for (const InplacePart& part : parts_[input]) {
      bool inside = true;
      for (size_t n = 0; n < begin.size(); ++n) {
        inside = inside && part.begin[n] <= begin[n] && end[n] <= part.end[n];
      }
      if (inside) return part.operand;
    }
    // Parts cover all of an input that is not filled.
    return fill_of_[input].value_or(parts_[input][0].operand);
  }

  CompiledComputationBuilder& b_;
  const absl::Span<const int64_t> dims_;
  const absl::Span<const InplaceInput> inplace_;
  const size_t results_;
  std::vector<View>& views_;
  LoopParams& p_;
  std::vector<size_t> cut_;
  std::vector<View> more_;  // operands of in-place inputs
  std::vector<Dims> more_strides_;
  std::vector<std::vector<InplacePart>> parts_;  // by in-place input
  std::vector<std::optional<int64_t>> fill_of_;  // by in-place input
};

}  // namespace

LoopBuilder::Repeats LoopParams::RepeatsOf(size_t input) const {
  if (input >= plain) return {};
  return {inner_stride[input] == 0, by_columns && RowStride(input) == 0};
}

bool LoopParams::MovesByRow() const {
  return std::any_of(indices.begin(), indices.end(), [&](const Index& index) { return RowStride(index.operand) != 0; });
}

void LoopParams::SetRows(const LoopNest& nest, std::vector<int64_t> inplace) {
  Box box;
  for (int d = 0; d < nest.rank(); ++d) {
    box.begin.push_back(0);
    box.sizes.push_back(nest.size(d));
    box.lines *= nest.size(d);
    for (size_t a = 0; a < arrays(); ++a) strides.push_back(nest.stride(d, static_cast<int>(a)));
  }
  box.rows = MovesByRow() ? 1 : box.sizes.back();
  Piece piece;
  piece.columns = columns;
  piece.from = std::move(inplace);
  for (size_t i = 0; i < plain; ++i) piece.row_strides.push_back(RowStride(i));
  for (int64_t from : piece.from) piece.row_strides.push_back(RowStride(static_cast<size_t>(from)));
  for (size_t o = 0; o < outputs; ++o) piece.row_strides.push_back(RowStride(operands + o));
  box.pieces.push_back(std::move(piece));
  boxes.push_back(std::move(box));
  origin.assign(arrays(), 0);
}

std::vector<View> LayOutElements(CompiledComputationBuilder& builder, absl::Span<const int64_t> dims,
                                 absl::Span<const InplaceInput> inplace, size_t results, std::vector<View>* views,
                                 LoopParams* params) {
  return ElementsLayout(builder, dims, inplace, results, views, params).Run();
}

bool HasFewBoxes(absl::Span<const int64_t> dims, absl::Span<const InplaceInput> inplace) {
  int64_t boxes = 1;
  for (size_t d : CutDimensions(dims, inplace)) {
    Cuts cuts = {0, dims[d]};
    for (const InplaceInput& input : inplace) {
      for (const InplaceInput::Part& part : input.parts) {
        cuts.push_back(part.begin[d]);
        cuts.push_back(part.begin[d] + part.sizes[d]);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    boxes *= std::unique(cuts.begin(), cuts.end()) - cuts.begin() - 1;
    if (boxes > kMaxBoxes) return false;
  }
  return true;
}

void CallElementOp(const void* function, void* result, const void* a, const void* b, const void* c, int64_t n) {
  constexpr int64_t kDense[ElementOp::kMaxOperands] = {1, 1, 1};
  const std::byte* const in[] = {static_cast<const std::byte*>(a), static_cast<const std::byte*>(b),
                                 static_cast<const std::byte*>(c)};
  static_cast<const ElementOp*>(function)->Run(static_cast<std::byte*>(result), in, kDense, n);
}

void RunLoop(const LoopParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  for (const LoopParams::Box& box : p.boxes) RunBox(p, box, in, out, context);
}

}  // namespace hlokit::interp::compiled
