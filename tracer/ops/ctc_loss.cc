// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification (Graves et al. 2006): the negative logarithm of the probability of all
// alignments of a target to the frames. The forward recursion, one frame after another; its derivative is that of its
// ops.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

// The logarithm of probability 0. Finite, so that differences of two are not NaN.
constexpr double kLogZero = -1e30;
constexpr int64_t kMaxFrames = 1 << 16;

struct CtcProblem {
  Tensor log_probs;                      // [frames, batch, classes]
  Tensor targets;                        // [batch, length], padded
  Tensor input_lengths, target_lengths;  // [batch]
  int64_t blank = 0;
};

// Returns [batch, 1 + 2 length]: blanks with the target's classes between them.
Tensor WithBlanks(const CtcProblem& p) {
  const int64_t batch = p.targets.size(0), length = p.targets.size(1);
  const Tensor blanks = lazy::FullLike(p.targets, p.blank);
  const Tensor pairs = InvokeOp(Op::stack, Tensors{blanks, p.targets}, int64_t{2});
  const Tensor last = lazy::InvokeOp(Op::full, IntList{batch, 1}, p.blank, ElementType::kS64);
  return lazy::Cat({lazy::Reshape(pairs, {batch, 2 * length}), last}, 1);
}

// Shifts rows to the right by n, filling with probability 0.
Tensor ShiftedRight(const Tensor& rows, int64_t n) {
  return InvokeOp(Op::constant_pad_nd, lazy::Slice(rows, 1, 0, rows.size(1) - n), IntList{n, 0}, kLogZero);
}

// Returns the logarithm of the sum of the ways into each state: from itself, from the one before, and from the second
// before where `may_skip`, if defined, holds.
Tensor SumOfWays(const Tensor& alpha, const Tensor& may_skip) {
  Tensors ways(may_skip.defined() ? 3 : 2);
  ways[0] = alpha;
  ways[1] = ShiftedRight(alpha, 1);
  if (may_skip.defined()) ways[2] = lazy::Where(may_skip, ShiftedRight(alpha, 2), kLogZero);
  return InvokeOp(Op::logsumexp, InvokeOp(Op::stack, std::move(ways), int64_t{0}), IntList{0}, false);
}

// Returns the loss of each example of the batch; about -kLogZero where no alignment exists.
Tensor CtcForward(OpKernelContext& c, const CtcProblem& p) {
  const int64_t frames = p.log_probs.size(0), batch = p.log_probs.size(1), length = p.targets.size(1);
  const int64_t states = 2 * length + 1;
  const Tensor labels = WithBlanks(p);
  const Tensor index = lazy::Expand(lazy::Unsqueeze(labels, 0), {frames, batch, states});
  // [frames, batch, states], at least kLogZero
  const Tensor emitted = InvokeOp(Op::clamp, lazy::Gather(p.log_probs, 2, index), kLogZero);
  // A blank may be skipped between two different classes: odd states from 3 on.
  Tensor may_skip;
  if (length > 1) {
    const Tensor differs = lazy::To(
        lazy::Eq(lazy::Slice(labels, 1, 2, states) - lazy::Slice(labels, 1, 0, states - 2), 0), ElementType::kS64);
    const Tensor same = InvokeOp(Op::constant_pad_nd, differs, IntList{2, 0}, 1);
    may_skip = lazy::Eq(same, 0);
  }
  const Tensor place = IotaAlong(c, states, 1, 2);
  // The first frame emits the first blank or the first class.
  Tensor alpha = lazy::Where(lazy::Lt(place, 2), lazy::Select(emitted, 0, 0), kLogZero);
  for (int64_t t = 1; t < frames; ++t) {
    const Tensor sum = length == 0 ? alpha : SumOfWays(alpha, may_skip);
    const Tensor next = sum + lazy::Select(emitted, 0, t);
    if (!next.defined()) return next;
    alpha = lazy::Where(lazy::Unsqueeze(lazy::Gt(p.input_lengths, t), 1), next, alpha);
  }
  // The last class or the blank after it. An empty target ends in the first blank.
  const Tensor end = lazy::Unsqueeze(p.target_lengths * Scalar(2), 1);
  const Tensor is_end = lazy::Or(lazy::Eq(place, end), lazy::Eq(place, lazy::Sub(end, 1)));
  return -InvokeOp(Op::logsumexp, lazy::Where(is_end, alpha, kLogZero), IntList{1}, false);
}

// Zeros whose derivative is that of the sum of the probabilities of each example's frames. torch's gradient has this
// term: log_softmax, which computes log_probs, makes it vanish.
Tensor ProbabilityTerm(OpKernelContext& c, const CtcProblem& p) {
  const Tensor probability = lazy::Exp(p.log_probs);
  const Tensor frame = IotaAlong(c, p.log_probs.size(0), 0, 2);
  const Tensor used = lazy::Unsqueeze(lazy::Lt(frame, lazy::Unsqueeze(p.input_lengths, 0)), 2);
  return lazy::Sum(lazy::Where(used, probability - probability.Detach(), 0), {0, 2});
}

Tensor LengthsTensor(OpKernelContext& c, const IntList& values) {
  std::vector<double> numbers(values.begin(), values.end());
  return ConstantTensor(c, {static_cast<int64_t>(values.size())}, std::move(numbers), ElementType::kS64);
}

bool CheckLengths(OpKernelContext& c, std::string_view name, Dims lengths, int64_t batch, int64_t most) {
  if (static_cast<int64_t>(lengths.size()) != batch) {
    c.Fail(StrCat(name, " must be of size batch_size"));
    return false;
  }
  for (int64_t length : lengths) {
    if (length >= 0 && length <= most) continue;
    c.Fail(StrCat("Expected ", name, " to have value ", length < 0 ? StrCat("at least ", 0) : StrCat("at most ", most),
                  ", but got value ", length, " (while checking arguments for ctc_loss)"));
    return false;
  }
  return true;
}

// Returns targets given one after another, as rows that are padded to the longest.
Tensor PaddedTargets(OpKernelContext& c, const Tensor& joined, Dims lengths) {
  int64_t total = 0, longest = 0;
  for (int64_t length : lengths) {
    total += length;
    longest = std::max(longest, length);
  }
  if (joined.numel() != total) {
    c.Fail(StrCat("Expected tensor to have size ", total, " at dimension 0, but got size ", joined.numel(),
                  " for argument #2 'targets' (while checking arguments for ctc_loss)"));
    return Tensor();
  }
  std::vector<double> places;
  int64_t start = 0;
  for (int64_t length : lengths) {
    for (int64_t i = 0; i < longest; ++i) places.push_back(static_cast<double>(i < length ? start + i : 0));
    start += length;
  }
  const Tensor rows = SelectPlaces(c, joined, 0, places);
  return lazy::Reshape(rows, {static_cast<int64_t>(lengths.size()), longest});
}

}  // namespace

// log_probs [frames, batch, classes] or [frames, classes], targets [batch, length] or joined, input_lengths,
// target_lengths, blank, reduction, zero_infinity. Lengths given as tensors determine shapes: they are read on the
// host.
void CtcLoss(OpKernelContext& c) {
  if (!RequireRank(c, 0, 2, 3) || !RequireFloat(c, 0)) return;
  if (!IsInteger(c.tensor(1).dtype())) return c.Fail("targets must be a tensor of integers");
  IntList lengths[2];
  for (size_t i = 0; i < 2; ++i) {
    if (c.op() == Op::ctc_loss_IntList) {
      lengths[i].assign(c.ints(2 + i).begin(), c.ints(2 + i).end());
    } else {
      if (!IsInteger(c.tensor(2 + i).dtype())) return c.Fail("input_lengths and target_lengths must be integral");
      const std::optional<std::vector<int64_t>> fetched = FetchIntegers(c, 2 + i);
      if (!fetched) return;
      lengths[i].assign(fetched->begin(), fetched->end());
    }
  }
  const bool batched = c.tensor(0).dim() == 3;
  CtcProblem p;
  p.log_probs = batched ? c.tensor(0) : lazy::Unsqueeze(c.tensor(0), 1);
  const ElementType type = p.log_probs.dtype();
  if (type != ElementType::kF64) p.log_probs = p.log_probs.to(ElementType::kF32);
  const int64_t frames = p.log_probs.size(0), batch = p.log_probs.size(1);
  p.blank = c.int_arg(4);
  if (p.blank < 0 || p.blank >= p.log_probs.size(2)) return c.Fail("blank must be in label range");
  if (frames < 1 || frames > kMaxFrames) {
    return c.Fail(StrCat("the number of frames must be from 1 to ", kMaxFrames, ", but is ", frames));
  }
  if (!CheckLengths(c, "input_lengths", lengths[0], batch, frames) ||
      !CheckLengths(c, "target_lengths", lengths[1], batch, kMaxExtent)) {
    return;
  }
  const int64_t longest = lengths[1].empty() ? 0 : *std::max_element(lengths[1].begin(), lengths[1].end());
  const Tensor targets = lazy::To(c.tensor(1), ElementType::kS64);
  if (targets.dim() == 2) {
    if (targets.size(0) != batch || targets.size(1) < longest) {
      return c.Fail(StrCat("Expected tensor to have size at least ", longest, " at dimension 1, but got size ",
                           targets.size(1), " for argument #2 'targets' (while checking arguments for ctc_loss)"));
    }
    p.targets = lazy::Slice(targets, 1, 0, longest);
  } else if (targets.dim() == 1) {
    p.targets = PaddedTargets(c, targets, lengths[1]);
  } else {
    return c.Fail("targets must have 1 or 2 dimensions");
  }
  if (!p.targets.defined()) return c.Return(Tensor());
  p.input_lengths = LengthsTensor(c, lengths[0]);
  p.target_lengths = LengthsTensor(c, lengths[1]);
  const Tensor loss = CtcForward(c, p);
  // No frames align with an empty target only.
  const Tensor no_frames = lazy::Eq(p.input_lengths, 0), no_target = lazy::Eq(p.target_lengths, 0);
  const Tensor impossible = lazy::Or(lazy::And(no_frames, lazy::Not(no_target)), lazy::Gt(loss, -kLogZero / 10));
  const double infinite = c.bool_arg(6) ? 0 : std::numeric_limits<double>::infinity();
  Tensor each = lazy::MaskedFill(loss + ProbabilityTerm(c, p), lazy::And(no_frames, no_target), 0);
  each = lazy::MaskedFill(each, impossible, infinite).to(type);
  const int64_t reduction = c.int_arg(5);
  if (reduction == 1) each = each / lazy::To(InvokeOp(Op::clamp, p.target_lengths, 1), type);
  if (!batched && reduction == 0) each = lazy::Squeeze(each, 0);
  c.Return(Reduced(c, each, reduction));
}

}  // namespace hlokit::lazy::kernel
