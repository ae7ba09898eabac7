// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/windows/window_run.h"

#include <algorithm>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/programs/pieces.h"
#include "interp/exact/machine/run_context.h"

namespace hlokit::interp::compiled {
namespace {

// Lines of a piece that shares lines of the operand, at least.
constexpr int64_t kMinSharedLines = 8;
constexpr int64_t kBetweenChecks = 16;  // lines between two looks at the clock

// Hands out parts of the scratch memory of a thread.
class Memory {
 public:
  explicit Memory(std::byte* begin) : next_(begin) {}
  template <typename T>
  T* Take(int64_t n) {
    T* const taken = reinterpret_cast<T*>(next_);
    next_ += AlignedBytes(n * static_cast<int64_t>(sizeof(T)));
    return taken;
  }

 private:
  std::byte* next_;
};

// The lines of a window, or the windows of a line: a few, without memory of the heap.
template <typename T>
using LinesOf = absl::InlinedVector<T, 16>;

// Elements of a position: of a line with fewer elements than a vector has, those of a vector.
int64_t Features(const WindowLayout& g) { return g.features_minor ? g.features : std::max<int64_t>(g.positions(), 16); }

// Finds the lines of the operand that a line of windows reads, or the lines of windows that cover one of the operand.
class OuterLines {
 public:
  OuterLines(const WindowLayout& g, bool of_windows)
      : g_(g), of_windows_(of_windows), table_(of_windows ? g.window_table : g.operand_table) {}

  const LinesOf<OuterLine>& At(int64_t line) {
    if (!table_) return AtAny(line);
    const int64_t size = static_cast<int64_t>(table_->begin.size()) - 1;
    const WindowDimension& last = g_.outer.back().window;
    const int64_t index = line % size, first = line / size * (of_windows_ ? last.output : last.input);
    const int64_t begin = table_->begin[static_cast<size_t>(index)];
    const int64_t end = table_->begin[static_cast<size_t>(index) + 1];
    found_.resize(static_cast<size_t>(end - begin));
    for (int64_t i = begin; i < end; ++i) {
      const OuterLine& at = table_->lines[static_cast<size_t>(i)];
      found_[static_cast<size_t>(i - begin)] = {first + at.line, at.slot, at.number};
    }
    return found_;
  }

 private:
  const LinesOf<OuterLine>& AtAny(int64_t line) {
    index_.resize(g_.outer.size());
    for (size_t d = g_.outer.size(); d-- > 0;) {
      const WindowDimension& axis = g_.outer[d].window;
      const int64_t size = of_windows_ ? axis.input : axis.output;
      index_[d] = line % size;
      line /= size;
    }
    found_.assign(1, OuterLine());
    for (size_t d = 0; d < g_.outer.size(); ++d) {
      const WindowAxis& axis = g_.outer[d];
      const int64_t size = of_windows_ ? axis.window.output : axis.window.input;
      const int64_t slots = of_windows_ ? axis.windows : axis.elements;
      next_.clear();
      for (const OuterLine& f : found_) {
        const auto add = [&](int64_t at, int64_t k) {
          next_.push_back({f.line * size + at, f.slot * slots + at % slots,
                           static_cast<int32_t>(f.number * axis.window_elements + k)});
        };
        if (of_windows_) {
          axis.ForEachWindow(index_[d], add);
        } else {
          axis.ForEachElement(index_[d], add);
        }
      }
      found_.swap(next_);
    }
    for (OuterLine& f : found_) f.number *= static_cast<int32_t>(g_.line.window_elements);
    return found_;
  }

  const WindowLayout& g_;
  const bool of_windows_;
  const std::optional<OuterTable>& table_;
  LinesOf<OuterLine> found_, next_;
  LinesOf<int64_t> index_;
};

// Lines of the operand as rows of f32: in the operand itself, or converted, scaled and deinterleaved in scratch memory.
class OperandRows {
 public:
  OperandRows(const WindowParams& params, const std::byte* in, WindowScale scale, float padding, Memory& memory)
      : params_(params), g_(params.layout), in_(in), scale_(scale), lines_(g_, false) {
    if (IsDirect(params)) return;
    keys_ = memory.Take<int64_t>(g_.operand_slots);
    std::fill_n(keys_, g_.operand_slots, -1);
    slots_ = memory.Take<float>(g_.operand_slots * SlotElements(params));
    line_ = memory.Take<float>(g_.operand_line());
    if (!g_.features_minor) std::fill_n(slots_, g_.operand_slots * SlotElements(params), padding);
  }

  static bool IsDirect(const WindowParams& params) {
    return params.layout.features_minor && params.type == WindowType::kF32 && params.before == WindowScale::Op::kNone;
  }
  static int64_t SlotElements(const WindowParams& params) {
    const WindowLayout& g = params.layout;
    const int64_t n = g.features_minor ? g.operand_line() : g.operand.arrays * g.operand.pitch;
    return AlignedBytes(n * 4) / 4;
  }
  static int64_t Bytes(const WindowParams& params) {
    if (IsDirect(params)) return 0;
    return AlignedBytes(params.layout.operand_slots * 8) +
           AlignedBytes(params.layout.operand_slots * SlotElements(params) * 4) +
           AlignedBytes(params.layout.operand_line() * 4);
  }

  // Returns the lines in the windows of a line, in the order of the window. They are valid until the next call.
  const LinesOf<PoolRow>& At(int64_t line) {
    found_ = &lines_.At(line);
    rows_.resize(found_->size());
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = {Row((*found_)[i]), (*found_)[i].number};
    return rows_;
  }
  // Returns the lines of the last call.
  const LinesOf<OuterLine>& found() const { return *found_; }
  // Returns the lines of the operand after the last one of the last call, by which the window advances.
  WindowPrefetch NextLines() const {
    if (keys_ != nullptr || found_->empty() || g_.outer.empty()) return {};
    return After(found_->back(), g_.outer.back().window.window.stride);
  }
  WindowPrefetch After(const OuterLine& f, int64_t lines) const {
    if (keys_ != nullptr) return {};
    const int64_t bytes = g_.operand_line() * params_.element_bytes();
    return {in_ + (f.line + 1) * bytes, std::min(lines, g_.operand_lines - f.line - 1) * bytes};
  }

 private:
  const float* Row(const OuterLine& f) {
    const std::byte* const from = in_ + f.line * g_.operand_line() * params_.element_bytes();
    if (keys_ == nullptr) return reinterpret_cast<const float*>(from);
    float* const slot = slots_ + f.slot * SlotElements(params_);
    int64_t& key = keys_[f.slot];
    if (key == f.line) return slot;
    key = f.line;
    if (g_.features_minor) {
      params_.kernels->load(params_.type, from, g_.operand_line(), scale_, slot);
    } else {
      Deinterleave(from, slot);
    }
    return slot;
  }

  void Deinterleave(const std::byte* from, float* slot) {
    const DeinterleavedLine& to = g_.operand;
    const int64_t skipped = std::max<int64_t>(-to.left, 0), left = std::max<int64_t>(to.left, 0);
    const int64_t n = std::min(g_.operand_line() - skipped, to.arrays * to.pitch - left);
    if (n <= 0) return;
    from += skipped * params_.element_bytes();
    const bool whole = to.arrays == 1;
    const float* line = reinterpret_cast<const float*>(from);
    if (whole || params_.type != WindowType::kF32 || scale_.op != WindowScale::Op::kNone) {
      params_.kernels->load(params_.type, from, n, scale_, whole ? slot + left : line_);
      line = line_;
    }
    if (whole) return;
    if (to.arrays == 2) {
      float* const first = slot + left % 2 * to.pitch + left / 2;
      float* const second = slot + (left + 1) % 2 * to.pitch + (left + 1) / 2;
      return params_.kernels->deinterleave(line, n, first, second);
    }
    for (int64_t a = 0; a < to.arrays; ++a) {
      // The first element of array a.
      const int64_t begin = (a - left % to.arrays + to.arrays) % to.arrays;
      float* const array = slot + a * to.pitch + (left + begin) / to.arrays;
      for (int64_t e = begin, i = 0; e < n; e += to.arrays, ++i) array[i] = line[e];
    }
  }

  const WindowParams& params_;
  const WindowLayout& g_;
  const std::byte* const in_;
  const WindowScale scale_;
  float* slots_ = nullptr;
  float* line_ = nullptr;
  int64_t* keys_ = nullptr;  // line in each slot; null if lines are read where they are
  OuterLines lines_;
  const LinesOf<OuterLine>* found_ = nullptr;
  LinesOf<PoolRow> rows_;
};

// Maxima or minima of windows of one line, which several windows share.
class BestRows {
 public:
  BestRows(const WindowParams& params, float initial, Memory& memory) : params_(params), initial_(initial) {
    if (!IsUsed(params)) return;
    const int64_t count = params.layout.operand_slots;
    keys_ = memory.Take<int64_t>(count);
    std::fill_n(keys_, count, -1);
    all_numbers_ = memory.Take<uint8_t>(count);
    std::fill_n(all_numbers_, count, uint8_t{0});
    slots_ = memory.Take<float>(count * SlotElements(params));
  }
  static bool IsUsed(const WindowParams& params) { return params.op != PoolOp::kSum && !params.layout.dilated(); }
  static int64_t SlotElements(const WindowParams& params) {
    return AlignedBytes((params.layout.features_minor ? params.layout.result_line() : Features(params.layout)) * 4) / 4;
  }
  static int64_t Bytes(const WindowParams& params) {
    if (!IsUsed(params)) return 0;
    const int64_t count = params.layout.operand_slots;
    return AlignedBytes(count * 8) + AlignedBytes(count) + AlignedBytes(count * SlotElements(params) * 4);
  }

  // Computes the result of a line. Returns false if the window has a NaN.
  bool Run(const OperandRows& operands, const LinesOf<PoolRow>& rows, const WindowLine& columns, float* out) {
    best_.clear();
    bool all_numbers = true;
    for (size_t r = 0; r < rows.size(); ++r) {
      const OuterLine& f = operands.found()[r];
      // What several windows share is kept in a slot. The result of a window of one line is not, nor what is known of
      // it.
      const bool is_kept = rows.size() > 1;
      float* const row = is_kept ? slots_ + f.slot * SlotElements(params_) : out;
      bool row_numbers = is_kept && all_numbers_[f.slot] != 0;
      if (!is_kept || keys_[f.slot] != f.line) {
        row_numbers = params_.kernels->best(params_.op, rows[r].data, columns, initial_, operands.After(f, 1), row);
      }
      if (is_kept) {
        keys_[f.slot] = f.line;
        all_numbers_[f.slot] = row_numbers;
      }
      all_numbers = all_numbers && row_numbers;
      best_.push_back(row);
    }
    if (!all_numbers || rows.empty()) return false;
    const int64_t n = columns.positions * columns.features;
    if (rows.size() > 1) params_.kernels->combine(params_.op, best_.data(), static_cast<int64_t>(rows.size()), n, out);
    return true;
  }

 private:
  const WindowParams& params_;
  const float initial_;
  float* slots_ = nullptr;
  int64_t* keys_ = nullptr;  // line in each slot
  uint8_t* all_numbers_ = nullptr;
  LinesOf<const float*> best_;
};

// A line of results, which kernels compute in arrays of f32.
class ResultLine {
 public:
  // `n`: elements; `deinterleaved`: arrays, or null for one with `features` elements.
  ResultLine(const WindowParams& params, const DeinterleavedResults* deinterleaved, int64_t n, int64_t features,
             Memory& memory)
      : params_(params), deinterleaved_(deinterleaved), n_(n) {
    arrays_ = deinterleaved_ == nullptr ? 1 : static_cast<int64_t>(deinterleaved_->tables.size());
    pitch_ = deinterleaved_ == nullptr ? features : deinterleaved_->features;
    direct_ =
        params.type == WindowType::kF32 && deinterleaved_ == nullptr && (params.layout.features_minor || features == n);
    if (direct_) return;
    memory_ = memory.Take<float>(arrays_ * pitch_);
    line_ = memory.Take<float>(n);
  }
  static int64_t Bytes(const DeinterleavedResults* deinterleaved, int64_t n, int64_t features) {
    const int64_t arrays = deinterleaved == nullptr ? 1 : static_cast<int64_t>(deinterleaved->tables.size());
    return AlignedBytes(arrays * (deinterleaved == nullptr ? features : deinterleaved->features) * 4) +
           AlignedBytes(n * 4);
  }

  // Calls compute(line, result) for each array, and writes the results to `to`. `columns`: of all, if not
  // deinterleaved.
  template <typename Compute>
  void Write(const LineTable& columns, int64_t features, std::byte* to, const Compute& compute) {
    if (direct_) return compute(columns.Line(features), reinterpret_cast<float*>(to));
    for (int64_t a = 0; a < arrays_; ++a) {
      const LineTable& table = deinterleaved_ == nullptr ? columns : deinterleaved_->tables[static_cast<size_t>(a)];
      compute(table.Line(deinterleaved_ == nullptr ? features : deinterleaved_->features), memory_ + a * pitch_);
    }
    const float* from = memory_;
    const bool converts = params_.type != WindowType::kF32;
    if (arrays_ > 1) {
      float* const merged = converts ? line_ : reinterpret_cast<float*>(to);
      if (arrays_ == 2) {
        params_.kernels->interleave(memory_, memory_ + pitch_, n_, merged);
      } else {
        for (int64_t i = 0; i < n_; ++i) merged[i] = memory_[i % arrays_ * pitch_ + i / arrays_];
      }
      if (!converts) return;
      from = line_;
    }
    params_.kernels->store(params_.type, from, n_, {}, to);
  }

 private:
  const WindowParams& params_;
  const DeinterleavedResults* const deinterleaved_;
  const int64_t n_;
  int64_t arrays_, pitch_;
  bool direct_;
  float* memory_ = nullptr;
  float* line_ = nullptr;
};

// Choices of lines of windows, and their gradients.
class ChosenRows {
 public:
  ChosenRows(const WindowParams& params, const std::byte* in, const std::byte* source, Memory& memory)
      : params_(params), g_(params.layout), source_(source), operand_(params, in, {}, 0, memory), lines_(g_, true) {
    const int64_t n = g_.window_slots * SlotElements(params);
    keys_ = memory.Take<int64_t>(g_.window_slots);
    std::fill_n(keys_, g_.window_slots, -1);
    chosen_ = memory.Take<uint8_t>(n);
    std::fill_n(chosen_, n, kNoneChosen);
    if (IsDirect(params)) return;
    gradients_ = memory.Take<float>(n);
    std::fill_n(gradients_, n, 0.0f);
  }

  static bool IsDirect(const WindowParams& params) {
    return params.layout.features_minor && params.type == WindowType::kF32;
  }
  static int64_t SlotElements(const WindowParams& params) {
    const WindowLayout& g = params.layout;
    return AlignedBytes(g.features_minor ? g.result_line() : g.choices.pitch);
  }
  static int64_t Bytes(const WindowParams& params) {
    const int64_t n = params.layout.window_slots * SlotElements(params);
    return OperandRows::Bytes(params) + AlignedBytes(params.layout.window_slots * 8) + AlignedBytes(n) +
           (IsDirect(params) ? 0 : AlignedBytes(4 * n));
  }

  // Returns the gradients after those of the last call.
  WindowPrefetch NextLines() const {
    if (!IsDirect(params_) || last_ + 1 >= g_.result_lines) return {};
    return {reinterpret_cast<const std::byte*>(Gradients(last_ + 1)), 4 * g_.result_line()};
  }
  // Returns the lines of windows that cover a line of the operand, in their order.
  const LinesOf<ScatterRow>& At(int64_t line) {
    const LinesOf<OuterLine>& found = lines_.At(line);
    rows_.resize(found.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      const OuterLine& f = found[i];
      int64_t& key = keys_[f.slot];
      if (key != f.line) {
        key = last_ = f.line;
        Choose(f);
      }
      const float* const gradients =
          IsDirect(params_) ? Gradients(f.line) : gradients_ + f.slot * SlotElements(params_);
      rows_[i] = {chosen_ + f.slot * SlotElements(params_), gradients, f.number};
    }
    return rows_;
  }

 private:
  const float* Gradients(int64_t line) const {
    return reinterpret_cast<const float*>(source_) + line * g_.result_line();
  }

  void Choose(const OuterLine& f) {
    const LinesOf<PoolRow>& rows = operand_.At(f.line);
    const int64_t count = static_cast<int64_t>(rows.size()), positions = g_.positions();
    uint8_t* const chosen = chosen_ + f.slot * SlotElements(params_);
    const std::byte* const source = source_ + f.line * g_.result_line() * params_.element_bytes();
    float* const gradients = gradients_ + f.slot * SlotElements(params_);
    if (g_.features_minor) {
      params_.kernels->choose(params_.greater, params_.equal, rows.data(), count, g_.columns.Line(g_.features),
                              operand_.NextLines(), chosen);
      if (!IsDirect(params_)) params_.kernels->load(params_.type, source, g_.result_line(), {}, gradients);
      return;
    }
    uint8_t* const to = chosen + g_.choices.left;
    const int64_t whole = (positions + 15) / 16 * 16;
    params_.kernels->choose(params_.greater, params_.equal, rows.data(), count, g_.columns.Line(whole), {}, to);
    std::fill(to + positions, to + whole, kNoneChosen);
    for (int64_t p : g_.edges) to[p] = ChooseAtEdge(rows, p);
    params_.kernels->load(params_.type, source, positions, {}, gradients + g_.choices.left);
  }

  // The window at position p is not all in the line.
  uint8_t ChooseAtEdge(const LinesOf<PoolRow>& rows, int64_t p) const {
    float best = 0;
    uint8_t chosen = kNoneChosen;
    for (const PoolRow& row : rows) {
      for (const WindowColumn& column : g_.columns.columns) {
        if (g_.line.window.ElementAt(p, column.number) < 0) continue;
        const float x = row.data[column.offset + p];
        const bool stays =
            params_.greater ? (params_.equal ? best >= x : best > x) : (params_.equal ? best <= x : best < x);
        if (chosen != kNoneChosen && stays) continue;
        best = x;
        chosen = static_cast<uint8_t>(row.number + column.number);
      }
    }
    return chosen;
  }

  const WindowParams& params_;
  const WindowLayout& g_;
  const std::byte* const source_;
  OperandRows operand_;
  uint8_t* chosen_ = nullptr;
  float* gradients_ = nullptr;
  int64_t* keys_ = nullptr;  // line in each slot
  int64_t last_ = 0;
  OuterLines lines_;
  LinesOf<ScatterRow> rows_;
};

const DeinterleavedResults* DeinterleavedResultsOf(const WindowParams& params) {
  return !params.layout.features_minor && params.layout.dilated() ? &params.layout.results : nullptr;
}
float FloatOf(const WindowParams& params, const std::byte* in) {
  float value;
  params.kernels->load(params.type, in, 1, {}, &value);
  return value;
}

// Calls body(first, end) for pieces of the lines. `bytes`: of a line, read and written.
void InPieces(RunContext& context, int64_t lines, int64_t bytes, double cost, bool shares,
              absl::FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t items = std::min(lines, std::max(ItemsOfPiece(bytes, lines), shares ? kMinSharedLines : 1));
  context.ParallelFor(Pieces(lines, items).count, cost * static_cast<double>(items),
                      [&](int64_t begin, int64_t end) { body(begin * items, std::min(end * items, lines)); });
}

}  // namespace

int64_t WindowParams::PoolScratch() const {
  const int64_t features = layout.features_minor ? layout.result_line() : Features(layout);
  return OperandRows::Bytes(*this) + BestRows::Bytes(*this) +
         ResultLine::Bytes(DeinterleavedResultsOf(*this), layout.result_line(), features);
}

int64_t WindowParams::GradientScratch() const {
  const DeinterleavedResults* const deinterleaved = layout.features_minor ? nullptr : &layout.gradients;
  return ChosenRows::Bytes(*this) + ResultLine::Bytes(deinterleaved, layout.operand_line(), layout.operand_line());
}

void RunPool(const WindowParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const WindowLayout& g = p.layout;
  const float initial = FloatOf(p, in[1]);
  WindowScale before = {p.before, 1}, after = {p.after, 1};
  size_t operand = 2;
  if (before.op != WindowScale::Op::kNone) before.by = FloatOf(p, in[operand++]);
  if (after.op != WindowScale::Op::kNone) after.by = FloatOf(p, in[operand]);
  // What changes no result in place of elements that are not there.
  const float padding = p.op == PoolOp::kSum ? -0.0f : initial;
  const int64_t bytes = (g.result_line() + g.operand_lines * g.operand_line() / g.result_lines) * p.element_bytes();
  const double cost = 0.02 * static_cast<double>(g.window * g.result_line());
  const bool shares = !OperandRows::IsDirect(p) || p.op != PoolOp::kSum;
  const auto run = [&](int64_t begin, int64_t end) {
    std::byte* const scratch = ThreadScratch(p.PoolScratch());
    if (scratch == nullptr)
      return context.Fail("out of memory: no scratch memory for a window", DiagnosticKind::kTooLarge);
    Memory memory(scratch);
    OperandRows operands(p, in[0], before, padding, memory);
    ResultLine result(p, DeinterleavedResultsOf(p), g.result_line(), g.features_minor ? g.result_line() : Features(g),
                      memory);
    BestRows best(p, initial, memory);
    for (int64_t line = begin; line < end; ++line) {
      if ((line - begin) % kBetweenChecks == 0 && context.ShouldStop()) return;
      const LinesOf<PoolRow>& rows = operands.At(line);
      const int64_t row_count = static_cast<int64_t>(rows.size());
      std::byte* const to = out[0] + line * g.result_line() * p.element_bytes();
      result.Write(g.columns, Features(g), to, [&](const WindowLine& columns, float* values) {
        if (BestRows::IsUsed(p) && best.Run(operands, rows, columns, values)) return;
        p.kernels->pool(p.op, p.type, rows.data(), row_count, columns, initial, after, operands.NextLines(), values);
      });
    }
  };
  InPieces(context, g.result_lines, bytes, cost, shares, run);
}

void RunPoolGradient(const WindowParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const WindowLayout& g = p.layout;
  const float initial = FloatOf(p, in[2]);
  const int64_t bytes = 2 * g.operand_line() * p.element_bytes();
  const double cost = 0.05 * static_cast<double>(g.window * g.operand_line());
  const auto run = [&](int64_t begin, int64_t end) {
    std::byte* const scratch = ThreadScratch(p.GradientScratch());
    if (scratch == nullptr)
      return context.Fail("out of memory: no scratch memory for a window", DiagnosticKind::kTooLarge);
    Memory memory(scratch);
    ChosenRows chosen(p, in[0], in[1], memory);
    ResultLine result(p, g.features_minor ? nullptr : &g.gradients, g.operand_line(), g.operand_line(), memory);
    for (int64_t line = begin; line < end; ++line) {
      if ((line - begin) % kBetweenChecks == 0 && context.ShouldStop()) return;
      const LinesOf<ScatterRow>& rows = chosen.At(line);
      const int64_t row_count = static_cast<int64_t>(rows.size());
      std::byte* const to = out[0] + line * g.operand_line() * p.element_bytes();
      result.Write(g.window_columns, g.features, to, [&](const WindowLine& columns, float* values) {
        p.kernels->scatter(p.type, rows.data(), row_count, columns, initial, chosen.NextLines(), values);
      });
    }
  };
  InPieces(context, g.operand_lines, bytes, cost, true, run);
}

}  // namespace hlokit::interp::compiled
