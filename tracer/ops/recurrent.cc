// SPDX-License-Identifier: Apache-2.0
// Recurrent cells and layers. A layer is its steps, one after another: the graph grows with the length of the
// sequence, as in PyTorch/XLA.
#include <optional>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

enum class CellKind { kTanh, kRelu, kLstm, kGru };

int64_t GatesOf(CellKind kind) { return kind == CellKind::kLstm ? 4 : kind == CellKind::kGru ? 3 : 1; }

struct CellWeights {
  Tensor w_ih, w_hh, b_ih, b_hh;
  Tensor w_hr;  // projection of an LSTM's hidden state; undefined if none
};

struct CellState {
  Tensor h, c;  // c: of an LSTM
};

// Gate i of [.., gates * hidden].
Tensor Gate(const Tensor& gates, int64_t i, int64_t hidden) {
  return lazy::Slice(gates, -1, i * hidden, (i + 1) * hidden);
}

// One step from the input's share of the gates, w_ih x + b_ih.
CellState Advance(CellKind kind, const Tensor& input_gates, const CellState& s, const CellWeights& w) {
  const Tensor hidden_gates = lazy::Linear(s.h, w.w_hh, w.b_hh);
  const int64_t hidden = w.w_hh.size(0) / GatesOf(kind);
  CellState next;
  switch (kind) {
    case CellKind::kTanh:
      next.h = lazy::Tanh(input_gates + hidden_gates);
      break;
    case CellKind::kRelu:
      next.h = lazy::Relu(input_gates + hidden_gates);
      break;
    case CellKind::kLstm: {
      const Tensor gates = input_gates + hidden_gates;
      const Tensor kept = lazy::Sigmoid(Gate(gates, 1, hidden)) * s.c;
      next.c = kept + lazy::Sigmoid(Gate(gates, 0, hidden)) * lazy::Tanh(Gate(gates, 2, hidden));
      next.h = lazy::Sigmoid(Gate(gates, 3, hidden)) * lazy::Tanh(next.c);
      if (w.w_hr.defined()) next.h = lazy::Matmul(next.h, lazy::T(w.w_hr));
      break;
    }
    case CellKind::kGru: {
      const Tensor reset = lazy::Sigmoid(Gate(input_gates, 0, hidden) + Gate(hidden_gates, 0, hidden));
      const Tensor update = lazy::Sigmoid(Gate(input_gates, 1, hidden) + Gate(hidden_gates, 1, hidden));
      const Tensor candidate = lazy::Tanh(Gate(input_gates, 2, hidden) + reset * Gate(hidden_gates, 2, hidden));
      next.h = candidate + update * (s.h - candidate);
      break;
    }
  }
  return next;
}

// Checks weights of one cell for inputs of `input_size` and hidden states of `state_size` elements.
bool CheckCell(OpKernelContext& c, CellKind kind, const CellWeights& w, int64_t input_size, int64_t state_size) {
  if (w.w_ih.dim() != 2 || w.w_hh.dim() != 2) {
    c.Fail("weights must have 2 dimensions");
    return false;
  }
  if (w.w_ih.size(1) != input_size) {
    c.Fail(StrCat("input has inconsistent input_size: got ", input_size, " expected ", w.w_ih.size(1)));
    return false;
  }
  if (w.w_hh.size(1) != state_size) {
    c.Fail(StrCat("hidden0 has inconsistent hidden_size: got ", state_size, ", expected ", w.w_hh.size(1)));
    return false;
  }
  const int64_t rows = w.w_hh.size(0);
  if (rows % GatesOf(kind) != 0 || w.w_ih.size(0) != rows ||
      (!w.w_hr.defined() && rows / GatesOf(kind) != state_size)) {
    c.Fail(StrCat("weights must have ", GatesOf(kind),
                  " rows for each element of the hidden state, but their sizes are ", ListToString(w.w_ih.sizes()),
                  " and ", ListToString(w.w_hh.sizes())));
    return false;
  }
  if (w.w_hr.defined() &&
      (w.w_hr.dim() != 2 || w.w_hr.size(0) != state_size || w.w_hr.size(1) != rows / GatesOf(kind))) {
    c.Fail(StrCat("w_hr must have size ", ListToString(IntList{state_size, rows / GatesOf(kind)}), ", but has ",
                  ListToString(w.w_hr.sizes())));
    return false;
  }
  for (const Tensor& bias : {w.b_ih, w.b_hh}) {
    if (!bias.defined() || (bias.dim() == 1 && bias.size(0) == rows)) continue;
    c.Fail(StrCat("biases must have ", rows, " elements, but one has size ", ListToString(bias.sizes())));
    return false;
  }
  return true;
}

// input, hx, w_ih, w_hh, b_ih?, b_hh? with hx a tensor or, of an LSTM, two
void RunCell(OpKernelContext& c, CellKind kind, const CellState& state) {
  const Tensor& x = c.tensor(0);
  const CellWeights w = {c.tensor(2), c.tensor(3), c.tensor(4), c.tensor(5), Tensor()};
  if (!RequireRank(c, 0, 1, 2)) return;
  if (state.h.dim() != x.dim() || (kind == CellKind::kLstm && state.c.sizes() != state.h.sizes())) {
    return c.Fail("the hidden state must have as many dimensions as the input");
  }
  if (x.dim() == 2 && x.size(0) != state.h.size(0)) {
    return c.Fail(StrCat("Input batch size ", x.size(0), " doesn't match hidden0 batch size ", state.h.size(0)));
  }
  if (!CheckCell(c, kind, w, x.size(-1), state.h.size(-1))) return;
  const CellState next = Advance(kind, lazy::Linear(x, w.w_ih, w.b_ih), state, w);
  if (kind == CellKind::kLstm) return c.Return(next.h, next.c);
  c.Return(next.h);
}

constexpr int64_t kMaxSteps = 1 << 16;

struct LayerOptions {
  int64_t layers, directions;
  double dropout;
  bool biases;
  bool batch_first;
};

// Splits the flat list of parameters: for each layer and direction w_ih, w_hh, then biases and w_hr if there are any.
bool SplitWeights(OpKernelContext& c, const Tensors& params, int64_t cells, bool biases, bool projected,
                  std::vector<CellWeights>* out) {
  const int64_t each = 2 + (biases ? 2 : 0) + (projected ? 1 : 0);
  if (static_cast<int64_t>(params.size()) % each != 0 || static_cast<int64_t>(params.size()) / each != cells) {
    c.Fail("got an incorrect number of RNN parameters");
    return false;
  }
  for (size_t at = 0; at < params.size(); at += static_cast<size_t>(each)) {
    CellWeights w{params[at], params[at + 1], Tensor(), Tensor(), Tensor()};
    if (biases) {
      w.b_ih = params[at + 2];
      w.b_hh = params[at + 3];
    }
    if (projected) w.w_hr = params[at + static_cast<size_t>(each) - 1];
    out->push_back(std::move(w));
  }
  return true;
}

// Runs one direction over [steps, batch, features]; returns the hidden states of all steps and sets the last state.
Tensor RunDirection(CellKind kind, const Tensor& x, bool reverse, const CellWeights& w, CellState* state) {
  const Tensor input_gates = lazy::Linear(x, w.w_ih, w.b_ih);
  const int64_t steps = x.size(0);
  Tensors hidden(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = reverse ? steps - 1 - i : i;
    *state = Advance(kind, lazy::Select(input_gates, 0, t), *state, w);
    if (!state->h.defined()) return Tensor();
    hidden[static_cast<size_t>(t)] = state->h;
  }
  return InvokeOp(Op::stack, std::move(hidden), int64_t{0});
}

// Applies `function` to both tensors of a state.
template <typename Function>
CellState MapState(const CellState& s, Function function) {
  return {function(s.h), s.c.defined() ? function(s.c) : Tensor()};
}
CellState JoinStates(const CellState& a, const CellState& b) {
  return {lazy::Cat({a.h, b.h}, 0), a.c.defined() ? lazy::Cat({a.c, b.c}, 0) : Tensor()};
}

// The same over packed sequences, [sum of sizes, features]: step t has the first sizes[t] examples, whose number does
// not increase.
Tensor RunPackedDirection(CellKind kind, const Tensor& x, const IntList& sizes, bool reverse, const CellWeights& w,
                          CellState* state) {
  const Tensor input_gates = lazy::Linear(x, w.w_ih, w.b_ih);
  const CellState initial = *state;
  const auto rows = [](int64_t begin, int64_t end) {
    return [=](const Tensor& t) { return lazy::Slice(t, 0, begin, end); };
  };
  const int64_t steps = static_cast<int64_t>(sizes.size());
  Tensors hidden(sizes.size());
  std::vector<CellState> finished;  // those of the shortest sequences first
  int64_t running = reverse ? sizes.back() : sizes.front(), offset = reverse ? x.size(0) : 0;
  CellState now = MapState(initial, rows(0, running));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = reverse ? steps - 1 - i : i, size = sizes[static_cast<size_t>(t)];
    if (size < running) {
      finished.push_back(MapState(now, rows(size, running)));
      now = MapState(now, rows(0, size));
    } else if (size > running) {
      now = JoinStates(now, MapState(initial, rows(running, size)));
    }
    running = size;
    if (reverse) offset -= size;
    now = Advance(kind, lazy::Slice(input_gates, 0, offset, offset + size), now, w);
    if (!now.h.defined()) return Tensor();
    if (!reverse) offset += size;
    hidden[static_cast<size_t>(t)] = now.h;
  }
  for (size_t k = finished.size(); k-- > 0;) now = JoinStates(now, finished[k]);
  *state = now;
  return lazy::Cat(std::move(hidden), 0);
}

// Layers over `x`, [steps, batch, features] or, with sizes of packed steps, [rows, features].
void RunStack(OpKernelContext& c, CellKind kind, Tensor x, const IntList& sizes, int64_t batch,
              const CellState& state_0, const Tensors& params, const LayerOptions& o) {
  const bool lstm = kind == CellKind::kLstm;
  const Tensor &h0 = state_0.h, &c0 = state_0.c;
  if (o.layers < 1) return c.Fail("num_layers must be positive");
  if (h0.dim() != 3 || (lstm && c0.dim() != 3)) return c.Fail("hidden states must have 3 dimensions");
  const bool projected = lstm && h0.size(2) != c0.size(2);
  std::vector<CellWeights> weights;
  if (o.layers > static_cast<int64_t>(params.size())) return c.Fail("got an incorrect number of RNN parameters");
  if (!SplitWeights(c, params, o.layers * o.directions, o.biases, projected, &weights)) return;
  const int64_t cells = static_cast<int64_t>(weights.size());
  for (const Tensor& state : {h0, c0}) {
    if (!state.defined() || (state.size(0) == cells && state.size(1) == batch)) continue;
    return c.Fail(StrCat("Expected hidden size (", cells, ", ", batch, ", ", state.size(2), "), got ",
                         ListToString(state.sizes())));
  }
  Tensors last_h, last_c;
  for (int64_t layer = 0; layer < o.layers; ++layer) {
    Tensors outputs;
    for (int64_t d = 0; d < o.directions; ++d) {
      const int64_t i = layer * o.directions + d;
      const CellWeights& w = weights[static_cast<size_t>(i)];
      if (!CheckCell(c, kind, w, x.size(-1), h0.size(2))) return;
      CellState state = MapState(state_0, [&](const Tensor& t) { return lazy::Select(t, 0, i); });
      if (lstm && state.c.size(1) != w.w_hh.size(0) / 4) return c.Fail("the cell state has an inconsistent size");
      outputs.push_back(sizes.empty() ? RunDirection(kind, x, d == 1, w, &state)
                                      : RunPackedDirection(kind, x, sizes, d == 1, w, &state));
      if (!outputs.back().defined()) return c.Return(Tensor());
      last_h.push_back(state.h);
      last_c.push_back(state.c);
    }
    x = outputs.size() == 1 ? outputs[0] : lazy::Cat(outputs, -1);
    if (o.dropout > 0 && layer + 1 < o.layers) x = InvokeOp(Op::dropout, x, o.dropout, true);
  }
  c.Return(o.batch_first ? lazy::Transpose(x, 0, 1) : x);
  c.Return(InvokeOp(Op::stack, std::move(last_h), int64_t{0}));
  if (lstm) c.Return(InvokeOp(Op::stack, std::move(last_c), int64_t{0}));
}

// input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
void RunLayers(OpKernelContext& c, CellKind kind, const CellState& state) {
  const LayerOptions o = {c.int_arg(4), c.bool_arg(7) ? 2 : 1, c.bool_arg(6) ? c.float_arg(5) : 0, c.bool_arg(3),
                          c.bool_arg(8)};
  if (!RequireRank(c, 0, 3, 3)) return;
  const Tensor x = o.batch_first ? lazy::Transpose(c.tensor(0), 0, 1) : c.tensor(0);
  if (x.size(0) < 1) return c.Fail("Expected sequence length to be larger than 0 in RNN");
  if (x.size(0) > kMaxSteps) return c.Fail(StrCat("sequences of more than ", kMaxSteps, " steps are not supported"));
  RunStack(c, kind, x, {}, x.size(1), state, c.list(2), o);
}

// data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional. Shapes depend on the sizes of
// the steps, which are read on the host.
void RunPackedLayers(OpKernelContext& c, CellKind kind, const CellState& state) {
  const LayerOptions o = {c.int_arg(5), c.bool_arg(8) ? 2 : 1, c.bool_arg(7) ? c.float_arg(6) : 0, c.bool_arg(4),
                          false};
  const Tensor& x = c.tensor(0);
  if (!RequireRank(c, 0, 2, 2) || !RequireRank(c, 1, 1, 1)) return;
  if (!IsInteger(c.tensor(1).dtype())) return c.Fail("batch_sizes must be a tensor of integers");
  if (c.tensor(1).numel() < 1) return c.Fail("Expected sequence length to be larger than 0 in RNN");
  if (c.tensor(1).numel() > kMaxSteps) {
    return c.Fail(StrCat("sequences of more than ", kMaxSteps, " steps are not supported"));
  }
  const std::optional<std::vector<int64_t>> sizes = FetchIntegers(c, 1);
  if (!sizes) return;
  int64_t rows = 0;
  for (size_t t = 0; t < sizes->size(); ++t) {
    const int64_t size = (*sizes)[t];
    if (size < 1 || (t > 0 && size > (*sizes)[t - 1])) return c.Fail("batch_sizes must be positive and not increase");
    if (size > x.size(0) - rows) return c.Fail("batch_sizes have more rows than the data");
    rows += size;
  }
  if (rows != x.size(0)) return c.Fail("batch_sizes have fewer rows than the data");
  RunStack(c, kind, x, IntList(sizes->begin(), sizes->end()), sizes->front(), state, c.list(3), o);
}

}  // namespace

void LstmCell(OpKernelContext& c) {
  if (c.list(1).size() != 2) return c.Fail("lstm_cell expects two hidden states");
  RunCell(c, CellKind::kLstm, {c.list(1)[0], c.list(1)[1]});
}
void GruCell(OpKernelContext& c) { RunCell(c, CellKind::kGru, {c.tensor(1), Tensor()}); }
void RnnTanhCell(OpKernelContext& c) { RunCell(c, CellKind::kTanh, {c.tensor(1), Tensor()}); }
void RnnReluCell(OpKernelContext& c) { RunCell(c, CellKind::kRelu, {c.tensor(1), Tensor()}); }

void LstmLayers(OpKernelContext& c) {
  if (c.list(1).size() != 2) return c.Fail("lstm expects two hidden states");
  RunLayers(c, CellKind::kLstm, {c.list(1)[0], c.list(1)[1]});
}
void GruLayers(OpKernelContext& c) { RunLayers(c, CellKind::kGru, {c.tensor(1), Tensor()}); }
void RnnTanhLayers(OpKernelContext& c) { RunLayers(c, CellKind::kTanh, {c.tensor(1), Tensor()}); }
void RnnReluLayers(OpKernelContext& c) { RunLayers(c, CellKind::kRelu, {c.tensor(1), Tensor()}); }

void LstmPackedLayers(OpKernelContext& c) {
  if (c.list(2).size() != 2) return c.Fail("lstm expects two hidden states");
  RunPackedLayers(c, CellKind::kLstm, {c.list(2)[0], c.list(2)[1]});
}
void GruPackedLayers(OpKernelContext& c) { RunPackedLayers(c, CellKind::kGru, {c.tensor(2), Tensor()}); }
void RnnTanhPackedLayers(OpKernelContext& c) { RunPackedLayers(c, CellKind::kTanh, {c.tensor(2), Tensor()}); }
void RnnReluPackedLayers(OpKernelContext& c) { RunPackedLayers(c, CellKind::kRelu, {c.tensor(2), Tensor()}); }

}  // namespace hlokit::lazy::kernel
