// SPDX-License-Identifier: Apache-2.0
// Arithmetic composed of other ops.
#include <algorithm>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/scope.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy {

Tensor SumToSize(const LocatedTensor& located, Dims sizes) {
  const ScopedSourceLocation site(located.location);
  const Tensor& a = located.tensor;
  if (!a.defined() || a.sizes() == sizes) return a;
  const int64_t added = a.dim() - static_cast<int64_t>(sizes.size());
  IntList dims;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (d < added || (sizes[d - added] == 1 && a.size(d) != 1)) dims.push_back(d);
  }
  const Tensor sum = dims.empty() ? a : Sum(a, dims, true);
  return sum.defined() && sum.sizes() != sizes ? Reshape(sum, sizes) : sum;
}

namespace kernel {
namespace {

IntList All(const Tensor& t) {
  IntList dims(t.dim());
  for (int64_t d = 0; d < t.dim(); ++d) dims[d] = d;
  return dims;
}

// Returns nonnegative sorted dimensions; all if absent or empty.
IntList Normalized(OpKernelContext& c, size_t i) {
  const Tensor& t = c.tensor(0);
  IntList dims;
  for (int64_t d : c.ints(i)) {
    const int64_t dim = c.Dim(d, t.dim());
    if (t.dim() != 0) dims.push_back(dim);
  }
  std::sort(dims.begin(), dims.end());
  return c.ints(i).empty() ? All(t) : dims;
}

}  // namespace

void SumAll(OpKernelContext& c) {
  c.Return(lazy::Record(c.device(), Op::sum_dim_IntList,
                        {c.args()[0], IValue(All(c.tensor(0))), IValue(false), c.args()[1]}));
}
void Sum(OpKernelContext& c) {
  c.Return(lazy::Record(c.device(), c.op(), {c.args()[0], IValue(Normalized(c, 1)), c.args()[2], c.args()[3]}));
}
void MeanAll(OpKernelContext& c) {
  c.Return(InvokeOp(Op::mean_dim, c.args()[0], All(c.tensor(0)), false, c.args()[1]));
}
void Mean(OpKernelContext& c) {
  c.Return(lazy::Record(c.device(), c.op(), {c.args()[0], IValue(Normalized(c, 1)), c.args()[2], c.args()[3]}));
}
void ProdAll(OpKernelContext& c) { kernel::Record(c); }
void VarDim(OpKernelContext& c) {
  c.Return(InvokeOp(c.op() == Op::var_dim ? Op::var_correction : Op::std_correction, c.args()[0], c.args()[1],
                    int64_t{c.bool_arg(2) ? 1 : 0}, c.args()[3]));
}
void VarMean(OpKernelContext& c) {
  c.Return(InvokeOp(c.op() == Op::var_mean_correction ? Op::var_correction : Op::std_correction, c.args()[0],
                    c.args()[1], c.args()[2], c.args()[3]),
           lazy::Mean(c.tensor(0), Normalized(c, 1), c.bool_arg(3)));
}
void NormScalar(OpKernelContext& c) { c.Return(InvokeOp(Op::linalg_vector_norm, c.args()[0], c.args()[1])); }
void NormDim(OpKernelContext& c) {
  c.Return(InvokeOp(Op::linalg_vector_norm, c.args()[0], c.has(1) ? c.scalar(1) : Scalar(2), c.args()[2], c.args()[3]));
}
void CountNonzero(OpKernelContext& c) {
  const Tensor hits = lazy::Ne(c.tensor(0), 0);
  c.Return(c.has(1) ? lazy::Sum(hits, {c.int_arg(1)}) : lazy::Sum(hits));
}
void MaxOther(OpKernelContext& c) { c.Return(InvokeOp(Op::maximum, c.tensor(0), c.tensor(1))); }
void MinOther(OpKernelContext& c) { c.Return(InvokeOp(Op::minimum, c.tensor(0), c.tensor(1))); }
void ClampMin(OpKernelContext& c) { c.Return(InvokeOp(Op::clamp, c.tensor(0), c.scalar(1))); }
void ClampMax(OpKernelContext& c) { c.Return(InvokeOp(Op::clamp, c.tensor(0), IValue(), c.scalar(1))); }
void MaskedFillInPlace(OpKernelContext& c) {
  WriteInPlace(c.tensor(0), lazy::MaskedFill(c.tensor(0), c.tensor(1), c.scalar(2)));
  c.Return(c.tensor(0));
}

// ---- activations ----

void Selu(OpKernelContext& c) {
  c.Return(InvokeOp(Op::elu, c.tensor(0), 1.6732632423543772848170429916717, 1.0507009873554804934193349852946));
}
void Celu(OpKernelContext& c) { c.Return(InvokeOp(Op::elu, c.tensor(0), c.scalar(1), 1.0, 1.0 / c.float_arg(1))); }
void Relu6(OpKernelContext& c) { c.Return(InvokeOp(Op::hardtanh, c.tensor(0), 0, 6)); }
void Glu(OpKernelContext& c) {
  const int64_t dim = c.Dim(c.int_arg(1), c.tensor(0).dim());
  if (c.failed()) return;
  if (c.tensor(0).dim() == 0) return c.Fail("glu does not support 0-dimensional tensors");
  if (c.tensor(0).size(dim) % 2 != 0) {
    return c.Fail(StrCat("Halving dimension must be even, but dimension ", dim, " is size ", c.tensor(0).size(dim)));
  }
  const int64_t half = c.tensor(0).size(dim) / 2;
  c.Return(lazy::Slice(c.tensor(0), dim, 0, half) * lazy::Sigmoid(lazy::Slice(c.tensor(0), dim, half, 2 * half)));
}
void Prelu(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  Tensor w = c.tensor(1);
  if (w.dim() > 1) return c.Fail("`weight` must be a number or have 1 dimension");
  const int64_t channels = x.dim() > 1 ? x.size(1) : 1;
  if (w.numel() != 1 && w.numel() != channels) {
    return c.Fail(StrCat("there are ", w.numel(), " weights for ", channels, " channels"));
  }
  IntList sizes(x.dim(), 1);
  if (x.dim() > 1) sizes[1] = w.numel();
  w = lazy::Reshape(w, sizes);
  c.Return(lazy::Where(lazy::Gt(x, 0), x, x * w));
}

// ---- matmuls ----

namespace {

bool HasRank(OpKernelContext& c, size_t i, int64_t rank) {
  if (c.tensor(i).dim() == rank) return true;
  c.Fail(StrCat("`", SchemaOf(c.op()).args[i].name, "` must have ", Counted(rank, "dimension"), ", but has ",
                c.tensor(i).dim()));
  return false;
}

}  // namespace

void Addmm(OpKernelContext& c) {
  const Tensor bias = c.tensor(0);
  if (c.scalar(3).Is(0)) {
    c.args()[0] = InvokeOp(Op::zeros_like, bias);  // beta 0 ignores even NaN
  }
  kernel::Record(c);
}
namespace {

// Returns beta (argument 3) times argument 0 plus alpha (argument 4) times `product`. Beta 0 ignores even NaN; the
// factors of integers are integers, and those of bool conditions.
void ReturnSum(OpKernelContext& c, const Tensor& product) {
  const Tensor& self = c.tensor(0);
  if (!self.defined() || !product.defined()) return c.Return(Tensor());
  const ElementType type = Promote(self.dtype(), product.dtype());
  Scalar beta = c.scalar(3), alpha = c.scalar(4);
  const bool ignored = beta.Is(0);
  if (type == ElementType::kPred) {
    const Tensor right = lazy::And(product, lazy::FullLike(product, alpha.ToBool()));
    if (ignored) return c.Return(right);
    return c.Return(lazy::Or(lazy::And(self, lazy::FullLike(self, beta.ToBool())), right));
  }
  if (IsInteger(type)) {
    beta = beta.ToInt();
    alpha = alpha.ToInt();
  }
  if (ignored) return c.Return(product * alpha);
  c.Return(lazy::Add(self * beta, product, alpha));
}

}  // namespace

void Baddbmm(OpKernelContext& c) { ReturnSum(c, lazy::Bmm(c.tensor(1), c.tensor(2))); }
void Addbmm(OpKernelContext& c) {
  const Tensor products = lazy::Bmm(c.tensor(1), c.tensor(2));
  if (!products.defined()) return c.Return(products);
  ReturnSum(c, InvokeOp(Op::sum_dim_IntList, products, IntList{0}, false, products.dtype()));
}
void Addmv(OpKernelContext& c) {
  if (!HasRank(c, 1, 2) || !HasRank(c, 2, 1)) return;
  ReturnSum(c, InvokeOp(Op::mv, c.tensor(1), c.tensor(2)));
}
void Outer(OpKernelContext& c) {
  for (size_t i = 0; i < 2; ++i) {
    if (c.tensor(i).dim() == 1) continue;
    return c.Fail(
        StrCat("outer: Expected 1-D argument ", SchemaOf(c.op()).args[i].name, ", but got ", c.tensor(i).dim(), "-D"));
  }
  c.Return(lazy::Unsqueeze(c.tensor(0), 1) * c.tensor(1));
}
void Addr(OpKernelContext& c) {
  if (!HasRank(c, 1, 1) || !HasRank(c, 2, 1)) return;
  ReturnSum(c, InvokeOp(Op::outer, c.tensor(1), c.tensor(2)));
}

void Matmul(OpKernelContext& c) {
  Tensor a = c.tensor(0), b = c.tensor(1);
  if (a.dim() == 0 || b.dim() == 0) return c.Fail("both arguments to matmul need to be at least 1D");
  if (a.dim() == 1 && b.dim() == 1) return c.Return(InvokeOp(Op::dot, a, b));
  if (a.dim() == 2 && b.dim() == 1) return c.Return(InvokeOp(Op::mv, a, b));
  if (a.dim() == 2 && b.dim() == 2) return c.Return(lazy::Mm(a, b));
  const bool vector_a = a.dim() == 1, vector_b = b.dim() == 1;
  if (vector_a) a = lazy::Unsqueeze(a, 0);
  if (vector_b) b = lazy::Unsqueeze(b, 1);
  if (!a.defined() || !b.defined()) return c.Return(Tensor());
  IntList batch;
  int64_t count = 1;
  const int64_t rank = std::max(a.dim(), b.dim()) - 2;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t da = i + a.dim() - 2 - rank, db = i + b.dim() - 2 - rank;
    const int64_t size = std::max(da < 0 ? 1 : a.size(da), db < 0 ? 1 : b.size(db));
    const bool none = (da >= 0 && a.size(da) == 0) || (db >= 0 && b.size(db) == 0);
    batch.push_back(none ? 0 : size);
    count *= batch.back();
  }
  const int64_t n = a.size(-2), m = b.size(-1);
  Tensor product;
  if (b.dim() == 2) {
    // Collapses the rows of all batches.
    product = lazy::Mm(lazy::Reshape(a, {count * n, a.size(-1)}), b);
  } else {
    const auto flat = [&](const Tensor& t) {
      IntList wide = batch;
      wide.push_back(t.size(-2));
      wide.push_back(t.size(-1));
      return lazy::Reshape(lazy::Expand(t, wide), {count, t.size(-2), t.size(-1)});
    };
    product = lazy::Bmm(flat(a), flat(b));
  }
  IntList sizes = batch;
  if (!vector_a) sizes.push_back(n);
  if (!vector_b) sizes.push_back(m);
  c.Return(product.defined() ? lazy::Reshape(product, sizes) : product);
}
void Linear(OpKernelContext& c) {
  const Tensor& x = c.tensor(0);
  const Tensor& w = c.tensor(1);
  if (x.dim() == 2 && w.dim() == 2 && c.has(2)) return c.Return(InvokeOp(Op::addmm, c.tensor(2), x, lazy::T(w)));
  const Tensor y = lazy::Matmul(x, lazy::T(w));
  c.Return(c.has(2) ? y + c.tensor(2) : y);
}

// ---- einsum ----

namespace {

struct EinsumPlan {
  std::vector<std::string> terms;
  std::string out;
};

// Replaces an ellipsis by reserved labels and finds the implicit result.
bool ParseEinsum(OpKernelContext& c, EinsumPlan* plan) {
  std::string equation(c.str(0));
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const size_t arrow = equation.find("->");
  std::string terms = equation.substr(0, arrow);
  size_t begin = 0;
  while (true) {
    const size_t comma = terms.find(',', begin);
    plan->terms.push_back(terms.substr(begin, comma - begin));
    if (comma == std::string::npos) break;
    begin = comma + 1;
  }
  if (plan->terms.size() != c.list(1).size()) {
    c.Fail("the equation names another number of operands");
    return false;
  }
  // Labels for the dimensions of an ellipsis; the last one is the same in all operands.
  constexpr char kFirst = '\x01';
  int64_t widest = 0;
  for (size_t i = 0; i < plan->terms.size(); ++i) {
    std::string& term = plan->terms[i];
    const size_t dots = term.find("...");
    if (dots == std::string::npos) continue;
    const int64_t hidden = c.list(1)[i].dim() - static_cast<int64_t>(term.size() - 3);
    if (hidden < 0 || hidden > 16) {
      c.Fail("the ellipsis implies an impossible number of dimensions");
      return false;
    }
    widest = std::max(widest, hidden);
    std::string labels;
    for (int64_t k = hidden; k-- > 0;) labels.push_back(static_cast<char>(kFirst + k));
    term.replace(dots, 3, labels);
  }
  std::string hidden;
  for (int64_t k = widest; k-- > 0;) hidden.push_back(static_cast<char>(kFirst + k));
  if (arrow != std::string::npos) {
    plan->out = equation.substr(arrow + 2);
    if (const size_t dots = plan->out.find("..."); dots != std::string::npos) plan->out.replace(dots, 3, hidden);
  } else {
    std::string all;
    for (const std::string& term : plan->terms) all += term;
    std::string sorted = all;
    std::sort(sorted.begin(), sorted.end());
    plan->out = hidden;
    for (size_t i = 0; i < sorted.size(); ++i) {
      const auto count = std::count(all.begin(), all.end(), sorted[i]);
      if (count == 1 && sorted[i] > 16) plan->out.push_back(sorted[i]);
    }
  }
  for (size_t i = 0; i < plan->terms.size(); ++i) {
    if (static_cast<int64_t>(plan->terms[i].size()) != c.list(1)[i].dim()) {
      c.Fail("a term has another number of labels than its operand has dimensions");
      return false;
    }
  }
  return true;
}

bool Distinct(std::string s) {
  std::sort(s.begin(), s.end());
  return std::unique(s.begin(), s.end()) == s.end();
}

// Returns true if one dot computes it: two operands, no label twice in one, no label that only one operand and not the
// result has, equal sizes.
bool OneDot(const EinsumPlan& plan, const Tensors& operands) {
  if (operands.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i) {
    const std::string& term = plan.terms[i];
    const std::string& other = plan.terms[1 - i];
    if (!Distinct(term)) return false;
    for (size_t k = 0; k < term.size(); ++k) {
      const size_t in_other = other.find(term[k]);
      if (in_other == std::string::npos && plan.out.find(term[k]) == std::string::npos) return false;
      if (in_other != std::string::npos &&
          operands[i].size(static_cast<int64_t>(k)) != operands[1 - i].size(static_cast<int64_t>(in_other))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

void Einsum(OpKernelContext& c) {
  EinsumPlan plan;
  if (!ParseEinsum(c, &plan)) return;
  Tensors operands = c.list(1);
  if (OneDot(plan, operands)) {
    // Renames all labels to letters.
    std::string all = plan.terms[0] + "," + plan.terms[1] + "->" + plan.out;
    std::string used;
    for (char& ch : all) {
      if (ch == ',' || ch == '-' || ch == '>') continue;
      if (used.find(ch) == std::string::npos) used.push_back(ch);
      ch = static_cast<char>('a' + used.find(ch));
    }
    return c.Return(InvokeOp(Op::einsum_node, all, operands));
  }
  // General case: every operand over all labels, multiplied, summed over those that the result lacks.
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string& term = plan.terms[i];
    for (size_t a = 0; a < term.size(); ++a) {
      const size_t b = term.find(term[a], a + 1);
      if (b == std::string::npos) continue;
      operands[i] = InvokeOp(Op::diagonal, operands[i], 0, static_cast<int64_t>(a), static_cast<int64_t>(b));
      term.push_back(term[a]);
      term.erase(b, 1);
      term.erase(a, 1);
      --a;
    }
  }
  std::string labels = plan.out;
  for (const std::string& term : plan.terms) {
    for (char label : term) {
      if (labels.find(label) == std::string::npos) labels.push_back(label);
    }
  }
  Tensor product;
  for (size_t i = 0; i < operands.size(); ++i) {
    IntList order, sizes;
    for (char label : labels) {
      const size_t at = plan.terms[i].find(label);
      if (at != std::string::npos) order.push_back(static_cast<int64_t>(at));
      sizes.push_back(at == std::string::npos ? 1 : operands[i].size(static_cast<int64_t>(at)));
    }
    const Tensor wide = lazy::Reshape(lazy::Permute(operands[i], order), sizes);
    product = product.defined() ? product * wide : wide;
  }
  IntList summed;
  for (size_t k = plan.out.size(); k < labels.size(); ++k) summed.push_back(static_cast<int64_t>(k));
  c.Return(summed.empty() ? product : lazy::Sum(product, summed));
}

}  // namespace kernel
}  // namespace hlokit::lazy
