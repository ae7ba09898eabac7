// SPDX-License-Identifier: Apache-2.0
// Attention as one kernel, as JAX's splash attention for TPUs: a custom-call with the cost that Pallas would state, the
// sizes of its blocks, and a sharding rule by batch and heads. It cannot be executed, only simulated.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

constexpr int64_t kLargestBlock = 2048;  // of queries and of keys, as in MaxText's recipes

struct AttentionSizes {
  int64_t batch, groups, heads, queries, keys, depth;  // groups: heads of keys and values; heads: of queries in each
};

// Takes the sizes of q [batch, groups * heads, queries, depth], k and v [batch, groups, keys, depth].
bool SizesOf(LoweringContext& n, XlaOp q, XlaOp k, XlaOp v, AttentionSizes* sizes) {
  if (!q.ok() || !k.ok() || !v.ok()) return false;
  const bool fits = q.rank() == 4 && k.rank() == 4 && v.dims() == k.dims() && q.size(0) == k.size(0) && k.size(1) > 0 &&
                    q.size(1) % k.size(1) == 0 && q.size(3) == k.size(3) && q.type() == k.type() &&
                    q.type() == v.type() && q.size(2) > 0 && k.size(2) > 0 && q.size(3) > 0 && q.size(0) > 0 &&
                    q.size(1) > 0;
  if (!fits) {
    n.emitter().Fail(absl::InvalidArgumentError(
        "splash_attention: expected queries [batch, heads, tokens, width], and keys and values of one type and shape, "
        "whose heads divide those of the queries"));
    return false;
  }
  *sizes = {q.size(0), k.size(1), q.size(1) / k.size(1), q.size(2), k.size(2), q.size(3)};
  return true;
}

XlaOp Kernel(LoweringContext& n, std::string_view name, const AttentionSizes& s, double flops_by_score,
             std::string_view rule, absl::Span<const InstructionId> operands, Shape result) {
  XlaEmitter& e = n.emitter();
  const double all = static_cast<double>(s.batch) * static_cast<double>(s.groups * s.heads) *
                     static_cast<double>(s.queries) * static_cast<double>(s.keys);
  const double scores = n.bool_arg(operands.size()) ? all / 2 : all;
  const double flops = flops_by_score * scores * static_cast<double>(s.depth);
  static constexpr double kLargest = 0x1p62;
  const auto number = [](double x) { return static_cast<int64_t>(std::min(x, kLargest)); };
  const std::string cost = StrCat("{\"custom_call_config\":{\"cost_estimate\":{\"flops\":", number(flops),
                                  ",\"transcendentals\":", number(scores), "}}}");
  Context* context = &e.module().context();
  ListId attributes =
      WithFrontendAttribute(context, ListId(), "kernel_metadata",
                            StrCat("{'name': '", name, "', 'block_q': ", std::min(s.queries, kLargestBlock),
                                   ", 'block_kv': ", std::min(s.keys, kLargestBlock), "}"));
  attributes = WithFrontendAttribute(
      context, attributes, "xla.sdy.sharding_rule",
      StrCat("#sdy.op_sharding_rule<", rule, " {i=", s.batch, ", j=", s.groups, ", k=", s.heads, ", l=", s.queries,
             ", m=", s.depth, ", n=", s.keys, "} need_replication={k, l, m, n}>"));
  return e.Take(e.builder().Add(
      Opcode::kCustomCall, operands,
      {e.builder().String(Attr::kCustomCallTarget, "tpu_custom_call"), e.builder().String(Attr::kBackendConfig, cost),
       AttrValue{Attr::kFrontendAttributes, attributes.value}},
      result));
}

}  // namespace

// q, k, v, causal
void SplashAttention(LoweringContext& n) {
  const XlaOp q = n.in(0), k = n.in(1), v = n.in(2);
  AttentionSizes sizes;
  if (!SizesOf(n, q, k, v, &sizes)) return;
  n.Return(Kernel(n, "splash_mha_fwd_residuals", sizes, 4,
                  "([i, jk, l, m], [i, j, n, m], [i, j, n, m])->([i, jk, l, m])", {q.id(), k.id(), v.id()}, q.shape()));
}

// q, k, v, output, gradient of the output, causal -> gradients of q, k, v
void SplashAttentionBackward(LoweringContext& n) {
  const XlaOp q = n.in(0), k = n.in(1), v = n.in(2), out = n.in(3), grad = n.in(4);
  AttentionSizes sizes;
  if (!SizesOf(n, q, k, v, &sizes) || !out.ok() || !grad.ok()) return;
  if (out.dims() != q.dims() || grad.dims() != q.dims()) {
    return (void)n.emitter().Fail("the output and its gradient must have the shape of the queries");
  }
  const Shape results = n.emitter().builder().shapes().Tuple({q.shape(), k.shape(), v.shape()});
  const XlaOp all = Kernel(n, "splash_mha_dkv_no_residuals", sizes, 10,
                           "([i, jk, l, m], [i, j, n, m], [i, j, n, m], [i, jk, l, m], [i, jk, l, m])->"
                           "([i, jk, l, m], [i, j, n, m], [i, j, n, m])",
                           {q.id(), k.id(), v.id(), out.id(), grad.id()}, results);
  n.Return(Element(all, 0), Element(all, 1), Element(all, 2));
}

}  // namespace hlokit::lazy::lower
