// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/literal_parser.h"

#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "ir/core/str_cat.h"
#include "ir/text/literal_text.h"
#include "ir/types/float_types.h"

namespace hlokit {
namespace {

class LiteralParserTest : public testing::Test {
 protected:
  Shape Array(ElementType type, std::vector<int64_t> dims = {}) { return context.shapes.Array(type, dims); }
  Shape F32(std::vector<int64_t> dims = {}) { return Array(ElementType::kF32, std::move(dims)); }
  Shape S32(std::vector<int64_t> dims = {}) { return Array(ElementType::kS32, std::move(dims)); }

  // Returns the parsed literal as text; or the first error, as "KIND OFFSET+SIZE: MESSAGE" (with " (HINT)").
  std::string Parse(Shape shape, const std::string& text, const LiteralLimits& limits = {}) {
    DiagnosticSink sink;
    TextCursor in(text, &sink);
    const bool ok = ParseLiteral(in, &context, shape, limits, &id);
    EXPECT_EQ(ok, !sink.has_errors());
    warnings = sink.warning_count();
    if (!ok) {
      if (sink.diagnostics().empty()) return "failed without a word";
      for (const Diagnostic& d : sink.diagnostics()) {
        if (d.severity != Severity::kError) continue;
        return StrCat(ToString(d.kind), " ", d.range.offset, "+", d.range.size, ": ", d.message,
                      d.hint.empty() ? "" : StrCat(" (", d.hint, ")"));
      }
    }
    if (!in.AtEnd()) return StrCat("stopped at ", in.Here());
    return ToString(context, id);
  }

  template <typename T>
  std::vector<T> Values() {
    const Literal literal = context.literals.ToLiteral(id);
    return {literal.values<T>().begin(), literal.values<T>().end()};
  }
  template <typename T>
  T ParseScalar(ElementType type, const std::string& text) {
    const std::string printed = Parse(Array(type), text);
    const LiteralRecord& r = context.literals[id];
    T v{};
    if (r.size_bytes == sizeof(T)) {
      std::memcpy(static_cast<void*>(&v), r.data, sizeof(T));
    } else {
      ADD_FAILURE() << text << ": " << printed;
    }
    return v;
  }

  Context context;
  LiteralId id;
  size_t warnings = 0;
};

TEST_F(LiteralParserTest, Arrays) {
  EXPECT_EQ(Parse(S32(), "42"), "42");
  EXPECT_EQ(Parse(S32({3}), "{1,2,3}"), "{1, 2, 3}");
  EXPECT_EQ(Parse(S32({2, 2}), "{{1,2},{3,4}}"), "{ { 1, 2 }, { 3, 4 } }");
  EXPECT_EQ(Values<int32_t>(), (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(Parse(S32({2, 1}), " { {1} , {2} } "), "{ {1}, {2} }");
  EXPECT_EQ(Parse(S32({1, 2, 1, 2}), "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } }, { /*i1=1*/ { 3, 4 } } } }"),
            "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } }, { /*i1=1*/ { 3, 4 } } } }");
}

TEST_F(LiteralParserTest, ArraysWithoutElements) {
  EXPECT_EQ(Parse(F32({0}), "{}"), "{}");
  EXPECT_EQ(Parse(F32({0, 2}), "{ }"), "{  }");
  EXPECT_EQ(Parse(F32({2, 0}), "{ {}, {} }"), "{ {}, {} }");
  EXPECT_EQ(Parse(F32({2, 0, 1, 1}), "{ { /*i0=0*/ }, { /*i0=1*/ } }"), "{ { /*i0=0*/ }, { /*i0=1*/ } }");
}

TEST_F(LiteralParserTest, CommasAndCommentsAreFree) {
  EXPECT_EQ(Parse(S32({3}), "{1 2 3}"), "{1, 2, 3}");
  EXPECT_EQ(Parse(S32({3}), "{,1,,2 3,}"), "{1, 2, 3}");
  EXPECT_EQ(Parse(S32({2, 2}), "{{1,2}{3,4}}"), "{ { 1, 2 }, { 3, 4 } }");
  EXPECT_EQ(Parse(S32({2}), "/*a*/{ // one\n 1/*b*/, 2 // two\n}"), "{1, 2}");
}

TEST_F(LiteralParserTest, Numbers) {
  for (const auto& [text, printed] : std::vector<std::pair<const char*, const char*>>{
           {"1", "1"},
           {"1.", "1"},
           {"-448.", "-448"},
           {".5", "0.5"},
           {"-.5", "-0.5"},
           {"1e5", "100000"},
           {"1E-5", "1e-05"},
           {"1.5e+3", "1500"},
           {"-3e-05", "-3e-05"},
           {"inf", "inf"},
           {"-inf", "-inf"},
           {"nan", "nan"},
           {"-nan", "-nan"},
           {"-0", "-0"},
           {"-0.0", "-0"},
           {"0", "0"},
           {"007", "7"},
           {"1e-400", "0"},
           {"-1e-400", "-0"},
           {"1e-50", "0"},
           {"0e999999", "0"},
           {"12345678901234567890123", "1.23456794e+22"},
           {"9223372036854775808", "9.22337204e+18"},
           {"nan(0x40007f)", "nan(0x40007f)"},
           {"-nan(0x1)", "-nan(0x1)"},
           {"nan(0x8000000000000)", "nan"},
       }) {
    EXPECT_EQ(Parse(F32(), text), printed) << text;
  }
  EXPECT_EQ(ParseScalar<double>(ElementType::kF64, "0.1"), 0.1);
  EXPECT_EQ(ParseScalar<double>(ElementType::kF64, "1.7976931348623157e308"), std::numeric_limits<double>::max());
  EXPECT_EQ(ParseScalar<double>(ElementType::kF64, "4.94065645841247e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(ParseScalar<double>(ElementType::kF64, StrCat("0.", std::string(400, '0'), "1")), 0);
  EXPECT_EQ(ParseScalar<double>(ElementType::kF64, StrCat("1", std::string(400, '0'), "e-400")), 1);
}

TEST_F(LiteralParserTest, Integers) {
  EXPECT_EQ(ParseScalar<int64_t>(ElementType::kS64, "-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseScalar<uint64_t>(ElementType::kU64, "18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ParseScalar<uint64_t>(ElementType::kU64, "-1"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ParseScalar<uint64_t>(ElementType::kU64, "000000000000000000000000000000000001"), 1u);
  EXPECT_EQ(ParseScalar<Int4>(ElementType::kS4, "-8"), Int4(-8));
  EXPECT_EQ(ParseScalar<UInt4>(ElementType::kU4, "15"), UInt4(15));
  EXPECT_EQ(ParseScalar<Int1>(ElementType::kS1, "-1"), Int1(-1));
  EXPECT_EQ(ParseScalar<uint8_t>(ElementType::kU8, "-0"), 0);
}

TEST_F(LiteralParserTest, Pred) {
  EXPECT_EQ(Parse(Array(ElementType::kPred), "true"), "true");
  EXPECT_EQ(Parse(Array(ElementType::kPred), "0"), "false");
  EXPECT_EQ(Parse(Array(ElementType::kPred), "-7"), "true");
  EXPECT_EQ(Parse(Array(ElementType::kPred, {4}), "{true, 0, 1, false}"), "{1, 0, 1, 0}");
}

TEST_F(LiteralParserTest, Complex) {
  const Shape c64 = Array(ElementType::kC64, {2});
  EXPECT_EQ(Parse(c64, "{(1, -2.5),(inf,/*i*/nan)}"), "{(1, -2.5), (inf, nan)}");
  EXPECT_EQ(Parse(Array(ElementType::kC128), "( 1 , 2 )"), "(1, 2)");
  EXPECT_EQ(Parse(c64, "{(-nan, 1), (1, nan(0x1))}"), "{(-nan, -nan), (1, nan(0x1))}");
  LiteralLimits exact;
  exact.propagate_complex_nan = false;
  EXPECT_EQ(Parse(c64, "{(-nan, 1), (1, 2)}", exact), "{(-nan, 1), (1, 2)}");
}

TEST_F(LiteralParserTest, TryBf16) {
  EXPECT_EQ(Parse(Array(ElementType::kBF16), "1e-40"), "9.184e-41");
  EXPECT_EQ(Parse(Array(ElementType::kBF16), "-nan(0x7f)"), "-nan(0x7f)");
  EXPECT_EQ(Parse(Array(ElementType::kF16), "65519"), "65504");
  EXPECT_EQ(Parse(Array(ElementType::kF8E4M3FN), "464"), "448");
  EXPECT_EQ(Parse(Array(ElementType::kF8E4M3FN), "-nan"), "-nan");
  EXPECT_EQ(Parse(Array(ElementType::kF8E5M2), "inf"), "inf");
  EXPECT_EQ(Parse(Array(ElementType::kF4E2M1FN), "100"), "6");
  // The two digits printed for 2^-127 are nearer to it than to the next number.
  EXPECT_EQ(Parse(Array(ElementType::kF8E8M0FNU), "5.87747e-39"), "5.9e-39");
  EXPECT_EQ(Parse(Array(ElementType::kF8E8M0FNU), "5.9e-39"), "5.9e-39");
  EXPECT_EQ(Parse(Array(ElementType::kF8E8M0FNU), "1.2e-38"), "1.2e-38");
}

template <typename T>
void ExpectAllCodesComeBack(ElementType type, int codes) {
  Context context;
  const Shape shape = context.shapes.Array(type, {codes});
  Literal literal = Literal::Zeros(shape);
  for (int i = 0; i < codes; ++i) literal.values<T>()[i] = T::FromBits(static_cast<decltype(T().bits())>(i));
  const LiteralId id = context.literals.Add(literal);
  const std::string text = ToString(context, id);
  DiagnosticSink sink;
  TextCursor in(text, &sink);
  LiteralId parsed;
  ASSERT_TRUE(ParseLiteral(in, &context, shape, {}, &parsed)) << sink.diagnostics()[0].message;
  EXPECT_EQ(parsed, id) << ToString(type);
}

TEST_F(LiteralParserTest, EveryCodeOfEveryNarrowFloatComesBack) {
  ExpectAllCodesComeBack<BF16>(ElementType::kBF16, 1 << 16);
  ExpectAllCodesComeBack<F16>(ElementType::kF16, 1 << 16);
  ExpectAllCodesComeBack<F8E3M4>(ElementType::kF8E3M4, 1 << 8);
  ExpectAllCodesComeBack<F8E4M3>(ElementType::kF8E4M3, 1 << 8);
  ExpectAllCodesComeBack<F8E4M3FN>(ElementType::kF8E4M3FN, 1 << 8);
  ExpectAllCodesComeBack<F8E4M3FNUZ>(ElementType::kF8E4M3FNUZ, 1 << 8);
  ExpectAllCodesComeBack<F8E4M3B11FNUZ>(ElementType::kF8E4M3B11FNUZ, 1 << 8);
  ExpectAllCodesComeBack<F8E5M2>(ElementType::kF8E5M2, 1 << 8);
  ExpectAllCodesComeBack<F8E5M2FNUZ>(ElementType::kF8E5M2FNUZ, 1 << 8);
  ExpectAllCodesComeBack<F8E8M0FNU>(ElementType::kF8E8M0FNU, 1 << 8);
  ExpectAllCodesComeBack<F4E2M1FN>(ElementType::kF4E2M1FN, 1 << 4);
}

TEST_F(LiteralParserTest, OutOfRange) {
  EXPECT_EQ(Parse(Array(ElementType::kS4), "-9"),
            "number-out-of-range 0+2: value `-9` does not fit in s4, which has -8 to 7");
  EXPECT_EQ(Parse(Array(ElementType::kU8, {2}), "{1, 256}"),
            "number-out-of-range 4+3: value `256` does not fit in u8, which has 0 to 255");
  EXPECT_EQ(Parse(Array(ElementType::kU32), "-1"),
            "number-out-of-range 0+2: value `-1` does not fit in u32, which has 0 to 4294967295");
  EXPECT_EQ(
      Parse(Array(ElementType::kS64), "9223372036854775808"),
      "number-out-of-range 0+19: value `9223372036854775808` does not fit in s64, which has -9223372036854775808 to "
      "9223372036854775807");
  EXPECT_EQ(Parse(Array(ElementType::kU64), "18446744073709551616").substr(0, 24), "number-out-of-range 0+20");
  EXPECT_EQ(Parse(Array(ElementType::kU64), "-9223372036854775809").substr(0, 24), "number-out-of-range 0+20");
  EXPECT_EQ(Parse(Array(ElementType::kF16), "-65520"),
            "number-out-of-range 0+6: value `-65520` does not fit in f16, which has -65504 to 65504");
  EXPECT_EQ(Parse(Array(ElementType::kBF16), "1e100").substr(0, 23), "number-out-of-range 0+5");
  EXPECT_EQ(Parse(F32(), "3.5e38").substr(0, 23), "number-out-of-range 0+6");
  EXPECT_EQ(Parse(Array(ElementType::kC64), "(1, 1e100)"),
            "number-out-of-range 4+5: value `1e100` does not fit in c64, which has -3.40282347e+38 to 3.40282347e+38");
  EXPECT_EQ(Parse(Array(ElementType::kF64), "-1.8e308"), "number-out-of-range 0+8: number is too large even for f64");
  EXPECT_EQ(Parse(Array(ElementType::kF64), "1e99999999999999999999").substr(0, 24), "number-out-of-range 0+22");
  EXPECT_EQ(Parse(Array(ElementType::kF8E8M0FNU), "0").substr(0, 23), "number-out-of-range 0+1");
  EXPECT_EQ(Parse(Array(ElementType::kF8E8M0FNU), "-1").substr(0, 23), "number-out-of-range 0+2");
  EXPECT_EQ(Parse(Array(ElementType::kF8E4M3FN), "465").substr(0, 23), "number-out-of-range 0+3");
}

TEST_F(LiteralParserTest, NanPayloadsOutOfRange) {
  EXPECT_EQ(
      Parse(Array(ElementType::kBF16), "nan(0x3ff)"),
      "number-out-of-range 0+10: the payload of `nan(0x3ff)` does not fit in the 7 bits that a NaN of bf16 has for it");
  EXPECT_EQ(Parse(Array(ElementType::kF8E4M3FN), "nan(0x1)"),
            "number-out-of-range 0+8: NaN payload in `nan(0x1)`, but NaNs of f8e4m3fn have none");
  EXPECT_EQ(Parse(Array(ElementType::kF64), "nan(0x0)"),
            "number-out-of-range 0+8: a NaN payload is at least 0x1 and at most 0xfffffffffffff");
  EXPECT_EQ(Parse(Array(ElementType::kF64), "nan(0x10000000000000)").substr(0, 24), "number-out-of-range 0+21");
  EXPECT_EQ(Parse(F32(), "nan(7f)"), "bad-literal 0+6: malformed NaN payload (write it as in nan(0x7f))");
  EXPECT_EQ(Parse(F32(), "nan(0x7f"), "bad-literal 0+8: malformed NaN payload (write it as in nan(0x7f))");
}

TEST_F(LiteralParserTest, NotANumber) {
  EXPECT_EQ(Parse(S32(), "1.5"), "bad-literal 0+3: expected an integer for s32, found `1.5`");
  EXPECT_EQ(Parse(S32(), "true"), "bad-literal 0+4: expected an integer for s32, found `true`");
  EXPECT_EQ(Parse(S32(), "inf"), "bad-literal 0+3: expected an integer for s32, found `inf`");
  EXPECT_EQ(Parse(S32(), "-"), "bad-literal 0+1: expected an integer for s32, found `-`");
  EXPECT_EQ(Parse(F32(), "true"),
            "bad-literal 0+4: expected a number for f32, found `true` (`true` and `false` are values of pred only)");
  EXPECT_EQ(Parse(F32(), "0x10"), "bad-literal 0+4: malformed number `0x10`");
  EXPECT_EQ(Parse(F32(), "1e"), "bad-literal 0+2: malformed number `1e`");
  EXPECT_EQ(Parse(F32(), "infinity").substr(0, 15), "bad-literal 0+8");
  EXPECT_EQ(Parse(F32(), "(1, 2)").substr(0, 15), "bad-literal 0+1");
  EXPECT_EQ(Parse(F32(), "\"1\"").substr(0, 15), "bad-literal 0+3");
  EXPECT_EQ(Parse(Array(ElementType::kPred), "1.0"),
            "bad-literal 0+3: expected true, false, 0 or 1 for pred, found `1.0`");
  EXPECT_EQ(Parse(Array(ElementType::kC64), "1"),
            "bad-literal 0+1: expected a complex number for c64, found `1` (write it as (real, imaginary))");
  EXPECT_EQ(Parse(Array(ElementType::kC64), "(1)"), "bad-literal 2+1: expected `,` after a real part, found `)`");
  EXPECT_EQ(Parse(Array(ElementType::kC64), "(1,2"),
            "bad-literal 4+0: expected `)` after a complex number, found the end of the text");
}

TEST_F(LiteralParserTest, WrongNesting) {
  EXPECT_EQ(Parse(S32({2, 2}), "{1,{2}}"),
            "bad-literal 1+1: expected an element of s32[2,2] in 2 levels of braces, found 1");
  EXPECT_EQ(Parse(S32({2}), "{{1,2}}"), "bad-literal 1+1: unexpected `{`: s32[2] has 1 levels of braces");
  EXPECT_EQ(Parse(S32(), "{1}"), "bad-literal 0+1: unexpected `{`: s32[] is a scalar");
  EXPECT_EQ(Parse(S32({2}), "}"), "bad-literal 0+1: expected a value of s32[2], found `}`");
  EXPECT_EQ(Parse(S32({2}), ""), "bad-literal 0+0: expected a value of s32[2], found the end of the text");
  EXPECT_EQ(Parse(S32({2, 2}), "{{1,2}"),
            "bad-literal 6+0: expected the rest of a value of s32[2,2], found the end of the text");
}

TEST_F(LiteralParserTest, TooFewOrTooMany) {
  EXPECT_EQ(Parse(S32({3}), "{1,2}"), "bad-literal 4+1: expected 3 elements in dimension 0 of s32[3], found 2");
  EXPECT_EQ(Parse(S32({3}), "{1,2,3,44}"), "bad-literal 7+2: too many elements: s32[3] has size 3 in dimension 0");
  EXPECT_EQ(Parse(S32({1, 2}), "{{1,2},{3,4}}"),
            "bad-literal 7+1: too many elements: s32[1,2] has size 1 in dimension 0");
  EXPECT_EQ(Parse(S32({2, 2}), "{{1,2}}"), "bad-literal 6+1: expected 2 elements in dimension 0 of s32[2,2], found 1");
  EXPECT_EQ(Parse(S32({2, 2}), "{{1,2},{3}}"),
            "bad-literal 9+1: expected 2 elements in dimension 1 of s32[2,2], found 1");
  EXPECT_EQ(Parse(S32({0}), "{1}"), "bad-literal 1+1: too many elements: s32[0] has size 0 in dimension 0");
  EXPECT_EQ(Parse(S32({2, 0}), "{}"), "bad-literal 1+1: expected 2 elements in dimension 0 of s32[2,0], found 0");
}

TEST_F(LiteralParserTest, ElidedLiterals) {
  EXPECT_EQ(Parse(S32({12}), "{...}"), "{...}");
  EXPECT_TRUE(context.literals[id].elided);
  EXPECT_EQ(Parse(S32({3, 4}), "{ ... }"), "{...}");
  EXPECT_EQ(Parse(S32(), "{...}"), "{...}");
  EXPECT_EQ(Parse(S32({1 << 30, 1 << 30, 1 << 30}), "{...}"), "{...}");
  EXPECT_EQ(Parse(S32({12}), "{1, 2, ...}"), "{...}");
  EXPECT_EQ(Parse(S32({3, 2}), "{ {1, 2}, ... }"), "{...}");
  EXPECT_EQ(Parse(S32({3, 2}), "{{...}}"),
            "bad-literal 2+3: expected `...` in one level of braces, found 2 (write the literal as {...})");
  EXPECT_EQ(Parse(S32({3}), "...").substr(0, 15), "bad-literal 0+3");
  EXPECT_EQ(Parse(S32({3}), "{..., 3}"), "bad-literal 6+1: expected `}` after `...`, found `3`");
}

TEST_F(LiteralParserTest, AScalarStandsForTheFirstElementOfAnArray) {
  EXPECT_EQ(Parse(F32({3}), "1"), "{1, 0, 0}");
  EXPECT_EQ(warnings, 1u);
  EXPECT_EQ(Parse(F32({2, 2}), "0"), "{ { 0, 0 }, { 0, 0 } }");
  EXPECT_EQ(warnings, 0u);
  EXPECT_EQ(Parse(F32({1, 1, 1}), "1.5"), "{ { {1.5} } }");
  EXPECT_EQ(warnings, 0u);
  EXPECT_EQ(Parse(F32({0}), "1"), "bad-literal 0+1: too many elements: f32[0] has none");
}

TEST_F(LiteralParserTest, WhatNoTextStandsForIsBounded) {
  const Shape vast = F32({1000000000000});
  EXPECT_EQ(Parse(vast, "1"), "{...}");
  EXPECT_EQ(warnings, 1u);
  LiteralBudget budget;
  budget.implicit_bytes = 1000;
  LiteralLimits limits;
  limits.budget = &budget;
  EXPECT_EQ(Parse(F32({200}), "0", limits).size(), 200u * 3);
  EXPECT_EQ(budget.implicit_bytes, 200);
  EXPECT_EQ(Parse(F32({200}), "0", limits), "{...}");
}

TEST_F(LiteralParserTest, SizesOfTheShapeTakeNoMemory) {
  EXPECT_EQ(Parse(F32({1000000000000}), "{1}"),
            "bad-literal 2+1: expected 1000000000000 elements in dimension 0 of f32[1000000000000], found 1");
  EXPECT_EQ(Parse(F32({int64_t{1} << 40, int64_t{1} << 40}), "{{1, 2}}").substr(0, 15), "bad-literal 6+1");
  EXPECT_LT(context.arena().bytes_reserved(), 1u << 16);
}

TEST_F(LiteralParserTest, Limits) {
  LiteralLimits limits;
  limits.max_bytes = 1024;
  std::string text = "{0";
  for (int i = 1; i < 300; ++i) StrAppend(&text, ",", i);
  text += "}";
  EXPECT_EQ(Parse(S32({300}), text, limits),
            "too-large 915+3: literal of s32[300] has more bytes than the limit of 1024");
  // All leaves of a tuple together.
  const Shape leaf = S32({200});
  std::string ones = "{1";
  for (int i = 1; i < 200; ++i) ones += ",1";
  ones += "}";
  const Shape pair = context.shapes.Tuple({leaf, leaf});
  EXPECT_EQ(Parse(pair, StrCat("(", ones, ",", ones, ")"), limits).substr(0, 9), "too-large");
  // All literals with one budget together.
  LiteralBudget budget;
  budget.bytes = ByteLimit(1000);
  limits.budget = &budget;
  EXPECT_EQ(Parse(leaf, ones, limits).substr(0, 4), "{1, ");
  EXPECT_EQ(Parse(leaf, ones, limits).substr(0, 9), "too-large");
}

TEST_F(LiteralParserTest, Tuples) {
  const Shape a = F32({2, 1});
  const Shape b = F32({2});
  const Shape t = context.shapes.Tuple({a, b});
  EXPECT_EQ(Parse(t, "({{1},{2}}, {2, 42})"), "( { {1}, {2} }, {2, 42} )");
  EXPECT_EQ(Parse(t, "( {...}, {2, 42} )"), "( {...}, {2, 42} )");
  EXPECT_EQ(Parse(t, "{...}"), "{...}");
  EXPECT_EQ(Parse(context.shapes.Tuple({}), "()"), "(  )");
  const Shape nested = context.shapes.Tuple({t, context.shapes.Tuple({}), F32(), context.shapes.Token()});
  EXPECT_EQ(Parse(nested, "(({{1},{2}},{3,4}),(),5,token)"), "( ( { {1}, {2} }, {3, 4} ), (  ), 5, token )");
  EXPECT_EQ(Parse(t, "({{1},{2}})"), "bad-literal 10+1: expected 2 elements of (f32[2,1], f32[2]), found 1");
  EXPECT_EQ(Parse(t, "({{1},{2}}, {2, 42}, 3)"),
            "bad-literal 19+1: expected `)` after the 2 elements of (f32[2,1], f32[2]), found `,`");
  EXPECT_EQ(Parse(t, "1"), "unexpected-token 0+1: expected `(` before the elements of a tuple, found `1`");
}

TEST_F(LiteralParserTest, ShapesWithoutLiterals) {
  EXPECT_EQ(Parse(context.shapes.Token(), "1"), "bad-literal 0+1: unsupported literal of shape token[]");
  const Shape unbounded = context.shapes.Array(ElementType::kF32, {kUnboundedSize}, {1});
  EXPECT_EQ(Parse(unbounded, "{1}"), "bad-literal 0+1: unsupported literal of shape f32[?]");
  const Shape bounded = context.shapes.Array(ElementType::kF32, {2}, {1});
  EXPECT_EQ(Parse(bounded, "{1, 2}"), "{1, 2}");
}

TEST_F(LiteralParserTest, DeepTuplesNeedNoStack) {
  Shape shape = F32();
  constexpr int kDepth = 100000;
  for (int i = 0; i < kDepth; ++i) shape = context.shapes.Tuple({shape});
  EXPECT_EQ(Parse(shape, StrCat(std::string(kDepth, '('), "1", std::string(kDepth, ')'))).size(), 4u * kDepth + 1);
  EXPECT_EQ(Parse(shape, std::string(kDepth, '(')).substr(0, 11), "bad-literal");
}

TEST_F(LiteralParserTest, DeepBracesStopAtTheRank) {
  EXPECT_EQ(Parse(S32({1}), std::string(100000, '{')),
            "bad-literal 1+1: unexpected `{`: s32[1] has 1 levels of braces");
}

TEST_F(LiteralParserTest, LargeLiterals) {
  constexpr int kCount = 1000000;
  std::string text = "{";
  for (int i = 0; i < kCount; ++i) StrAppend(&text, i == 0 ? "" : ", ", i);
  text += "}";
  EXPECT_EQ(Parse(S32({kCount}), text), text);
  EXPECT_EQ(Values<int32_t>()[kCount - 1], kCount - 1);
}

TEST_F(LiteralParserTest, NoisyTextIsRejectedInOrder) {
  // Every prefix of a literal, and the literal with each character replaced: no crash, and errors are reported.
  const Shape shape = context.shapes.Tuple({Array(ElementType::kC64, {1, 2}), Array(ElementType::kPred, {2}), S32()});
  const std::string text = "( { { (1.5, -nan(0x1)), (2, 3) } }, /*c*/ {true, 0}, -7 )";
  ASSERT_EQ(Parse(shape, text).substr(0, 4), "( { ");
  for (size_t i = 0; i < text.size(); ++i) {
    Parse(shape, text.substr(0, i));
    for (const char c : std::string_view("{}(),.-/*0ex \n\0\"", 16)) {
      std::string changed = text;
      changed[i] = c;
      Parse(shape, changed);
    }
  }
}

}  // namespace
}  // namespace hlokit
