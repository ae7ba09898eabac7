// SPDX-License-Identifier: Apache-2.0
// Every op whose schema promises a view, "Tensor(a)", on numbered elements: the view shows what is written to its base,
// and what is written to the view is in the base, in exactly the elements that the view shows.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/tracer/tracing.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/schema.h"

namespace hlokit::lazy {
namespace {

class ViewsTest : public TracingTest {
 protected:
  // Returns 1, 2, ... in `dims`.
  Tensor Numbers(Dims dims) {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    std::vector<float> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 1.0f);
    return F32(dims, values);
  }
};

struct ViewCase {
  IntList dims;
  std::vector<IValue> args;  // after self
};

// By the op's full name.
std::map<std::string, std::vector<ViewCase>> Cases() {
  const auto ints = [](IntList list) { return IValue(std::move(list)); };
  const auto number = [](int64_t v) { return IValue(v); };
  return {
      {"aten::lift_fresh", {{{2, 3}, {}}}},
      {"aten::alias", {{{2, 3}, {}}}},
      {"aten::detach", {{{2, 3}, {}}}},
      {"aten::t", {{{2, 3}, {}}, {{3}, {}}}},
      {"aten::view", {{{2, 3}, {ints({3, 2})}}, {{2, 3}, {ints({-1})}}}},
      {"aten::view.dtype", {{{2, 3}, {IValue(ElementType::kF32)}}}},
      {"aten::reshape", {{{2, 3}, {ints({6, 1})}}}},
      {"aten::flatten.using_ints", {{{2, 3, 2}, {number(1), number(-1)}}, {{}, {number(0), number(-1)}}}},
      {"aten::expand", {{{2, 1}, {ints({2, 3}), IValue(false)}}}},
      {"aten::permute", {{{2, 3, 4}, {ints({2, 0, -2})}}}},
      {"aten::transpose.int", {{{2, 3, 4}, {number(-1), number(0)}}}},
      {"aten::unsqueeze", {{{2, 3}, {number(-2)}}}},
      {"aten::squeeze", {{{2, 1, 3, 1}, {}}}},
      {"aten::squeeze.dim", {{{2, 1, 3}, {number(1)}}, {{2, 1, 3}, {number(0)}}}},
      {"aten::slice.Tensor", {{{5, 2}, {number(0), number(1), number(-1), number(2)}}}},
      {"aten::select.int", {{{2, 3}, {number(1), number(-1)}}}},
      {"aten::narrow", {{{2, 5}, {number(1), number(-3), number(2)}}}},
      {"aten::movedim.int", {{{2, 3, 4}, {number(0), number(-1)}}}},
      {"aten::chunk", {{{5, 2}, {number(2), number(0)}}}},
      {"aten::split.Tensor", {{{2, 5}, {number(2), number(-1)}}}},
      {"aten::split_with_sizes", {{{6}, {ints({1, 0, 5}), number(0)}}}},
      {"aten::unbind.int", {{{2, 3}, {number(-1)}}}},
      {"aten::as_strided", {{{2, 3}, {ints({2, 2}), ints({3, 1}), number(1)}}}},
      {"aten::diagonal",
       {{{3, 4}, {number(1), number(0), number(1)}}, {{2, 3, 3}, {number(-1), number(2), number(1)}}}},
      {"aten::unfold",
       {{{7}, {number(0), number(2), number(3)}},
        {{2, 5, 3}, {number(-2), number(3), number(1)}},
        {{}, {number(0), number(1), number(1)}}}},
      {"aten::contiguous", {{{2, 3}, {}}}},
      {"aten::positive", {{{2, 3}, {}}}},
      {"aten::conj", {{{2, 3}, {}}}},
      {"aten::_conj", {{{2, 3}, {}}}},
      {"aten::resolve_conj", {{{2, 3}, {}}}},
      {"aten::resolve_neg", {{{2, 3}, {}}}},
      {"aten::real", {{{2, 3}, {}}}},
      {"aten::swapaxes", {{{2, 3, 4}, {number(-1), number(0)}}}},
      {"aten::swapdims", {{{2, 3, 4}, {number(1), number(2)}}}},
      {"aten::movedim.intlist", {{{2, 3, 4}, {ints({0, -1}), ints({1, 0})}}}},
      {"aten::moveaxis.intlist", {{{2, 3, 4}, {ints({0}), ints({2})}}}},
      {"aten::moveaxis.int", {{{2, 3, 4}, {number(2), number(0)}}}},
      {"aten::view_as", {{{2, 3}, {Zeros({3, 2}, ElementType::kF32)}}}},
      {"aten::reshape_as", {{{2, 3}, {Zeros({6}, ElementType::kF32)}}}},
      {"aten::expand_as", {{{2, 3}, {Zeros({1, 2, 3}, ElementType::kF32)}}}},
      {"aten::broadcast_to", {{{2, 3}, {ints({1, 2, 3})}}}},
      {"aten::ravel", {{{2, 3}, {}}}},
      {"aten::unflatten.int", {{{2, 6}, {number(-1), ints({3, -1})}}}},
      {"aten::hsplit.int", {{{2, 4}, {number(2)}}, {{4}, {number(2)}}}},
      {"aten::hsplit.array", {{{2, 5}, {ints({1, 3})}}}},
      {"aten::vsplit.int", {{{4, 2}, {number(2)}}}},
      {"aten::vsplit.array", {{{4, 2}, {ints({-1})}}}},
      {"aten::dsplit.int", {{{1, 2, 4}, {number(2)}}}},
      {"aten::dsplit.array", {{{1, 2, 4}, {ints({1})}}}},
      {"aten::tensor_split.sections", {{{5, 2}, {number(3), number(0)}}}},
      {"aten::tensor_split.indices", {{{2, 5}, {ints({1, 4}), number(-1)}}}},
  };
}

std::vector<Op> AliasOps() {
  std::vector<Op> ops;
  for (size_t i = 0; i < kOpCount; ++i) {
    const std::string_view text = InfoOf(static_cast<Op>(i)).schema_text;
    const Op op = static_cast<Op>(i);
    // Those between real and complex numbers have a test of their own.
    if (op == Op::imag || op == Op::view_as_real || op == Op::view_as_complex) continue;
    if (text.find("Tensor(a) self") != text.npos || text.find("Tensor(a -> *) self") != text.npos) ops.push_back(op);
  }
  return ops;
}

TEST_F(ViewsTest, AliasOfEverySchemaSharesItsElements) {
  const std::map<std::string, std::vector<ViewCase>> cases = Cases();
  for (Op op : AliasOps()) {
    const std::string name = SchemaOf(op).full_name();
    ASSERT_TRUE(cases.contains(name)) << name << " promises a view: add a case";
    for (const ViewCase& c : cases.at(name)) {
      const auto view_of = [&](const Tensor& base) {
        Args args = {IValue(base)};
        args.insert(args.end(), c.args.begin(), c.args.end());
        return Dispatch(op, std::move(args));
      };
      const Outputs shown = view_of(Numbers(c.dims));
      ASSERT_FALSE(shown.empty()) << name << ": " << tracer.status().message();
      for (size_t k = 0; k < shown.size(); ++k) {
        const std::vector<double> elements = Values(shown[k]);
        const Tensor base = Numbers(c.dims);
        const Tensor view = view_of(base)[k];
        ASSERT_TRUE(view.defined());
        // A write to the base.
        base.mul_(10);
        std::vector<double> expected = elements;
        for (double& v : expected) v *= 10;
        EXPECT_EQ(Values(view), expected) << name << ", output " << k;
        // A write to the view.
        if (op == Op::expand) continue;  // several elements of the view are one of the base
        view.fill_(-1);
        const std::set<double> written(elements.begin(), elements.end());
        expected = Values(Numbers(c.dims));
        for (double& v : expected) v = written.contains(v) ? -1 : 10 * v;
        EXPECT_EQ(Values(base), expected) << name << ", output " << k;
        EXPECT_TRUE(tracer.status().ok()) << name << ": " << tracer.status().message();
      }
    }
  }
}

TEST_F(ViewsTest, OneOfSeveralWindowsThatOverlap) {
  const Tensor base = F32({5}, {1, 2, 3, 4, 5});
  const Tensor windows = lazy::InvokeOp(Op::unfold, base, 0, 3, 1);
  lazy::InvokeOp(Op::select_int, windows, 0, 1).fill_(-1);
  EXPECT_EQ(Values(base), (std::vector<double>{1, -1, -1, -1, 5}));
  EXPECT_EQ(Values(windows), (std::vector<double>{1, -1, -1, -1, -1, -1, -1, -1, 5}));
  const Tensor column = F32({2, 1}, {1, 2});
  const Tensor rows = lazy::InvokeOp(Op::expand, column, IntList{2, 3}, false);
  lazy::InvokeOp(Op::select_int, rows, 0, 1).mul_(10);
  EXPECT_EQ(Values(column), (std::vector<double>{1, 20}));
}

TEST_F(ViewsTest, ElementsOfAnotherType) {
  const Tensor base = F32({2}, {1, 2});
  const Tensor bits = lazy::InvokeOp(Op::view_dtype, base, ElementType::kS32);
  EXPECT_EQ(Values(bits), (std::vector<double>{0x3F800000, 0x40000000}));
  const Tensor bytes = lazy::InvokeOp(Op::view_dtype, bits, ElementType::kU8);
  lazy::InvokeOp(Op::slice_Tensor, bytes, 0, 6, 8, 1).fill_(0x40);
  EXPECT_EQ(Values(base), (std::vector<double>{1, 3}));
  bits.fill_(0x3F800000);
  EXPECT_EQ(Values(base), (std::vector<double>{1, 1}));
}

TEST_F(ViewsTest, AChainOfManyViewsIsAViewOfTheBase) {
  const Tensor base = Numbers({4, 6});
  Tensor view = base;
  for (int i = 0; i < 40; ++i) {
    view = lazy::InvokeOp(Op::transpose_int, lazy::InvokeOp(Op::slice_Tensor, view, 0, 0, 9, 1), 0, 1);
  }
  view.mul_(2);
  std::vector<double> expected = Values(Numbers({4, 6}));
  for (double& v : expected) v *= 2;
  EXPECT_EQ(Values(base), expected);
  base.fill_(7);
  EXPECT_EQ(Values(view), std::vector<double>(24, 7));
}

TEST_F(ViewsTest, PartsOfComplexNumbers) {
  const Tensor pairs = F32({2, 2}, {1, 2, 3, 4});
  const Tensor z = lazy::InvokeOp(Op::view_as_complex, pairs);
  const Tensor real = lazy::InvokeOp(Op::real, z), imag = lazy::InvokeOp(Op::imag, z);
  EXPECT_EQ(Values(real), (std::vector<double>{1, 3}));
  EXPECT_EQ(Values(imag), (std::vector<double>{2, 4}));
  imag.mul_(10);
  real.add_(1);
  EXPECT_EQ(Values(pairs), (std::vector<double>{2, 20, 4, 40}));
  pairs.fill_(7);
  EXPECT_EQ(Values(imag), (std::vector<double>{7, 7}));
  const Tensor whole = lazy::InvokeOp(Op::complex, Vector({1, 2}), Vector({3, 4}));
  const Tensor parts = lazy::InvokeOp(Op::view_as_real, whole);
  parts.mul_(2);
  EXPECT_EQ(Values(lazy::InvokeOp(Op::imag, whole)), (std::vector<double>{6, 8}));
  EXPECT_TRUE(tracer.status().ok()) << tracer.status().message();
}

TEST_F(ViewsTest, OverlappingWindowsGetGradientsOfAll) {
  Tensor x = Numbers({4});
  x.set_requires_grad(true);
  EXPECT_TRUE(x.unfold(0, 2, 1).sum().Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{1, 2, 2, 1}));
}

TEST_F(ViewsTest, UnfoldRejectsWhatTorchRejects) {
  EXPECT_FALSE(Numbers({5}).unfold(0, 6, 1).defined());
  EXPECT_NE(tracer.status().message().find("maximum size for tensor at dimension 0 is 5 but size is 6"),
            std::string::npos)
      << tracer.status().message();
}

}  // namespace
}  // namespace hlokit::lazy
