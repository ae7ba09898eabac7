// SPDX-License-Identifier: Apache-2.0
// CheckShape and InferShape in general, and the elementwise rules.
#include "ir/inference/shape_inference.h"

#include "shape_inference_fixture.h"

namespace hlokit {
namespace {

// ---- comparisons ----

TEST_F(ShapeInferenceTest, CheckIgnoresLayouts) {
  EXPECT_EQ(Check(Opcode::kNegate, {"f32[2,3]{1,0}"}, {}, "f32[2,3]{0,1}"), "");
  EXPECT_EQ(Check(Opcode::kTuple, {"f32[2,3]{1,0}"}, {}, "(f32[2,3]{0,1:S(5)})"), "");
}

TEST_F(ShapeInferenceTest, CheckTakesStaticForBoundedAndAnyForUnbounded) {
  EXPECT_EQ(Check(Opcode::kNegate, {"f32[<=2,3]"}, {}, "f32[2,3]"), "");
  EXPECT_EQ(Check(Opcode::kNegate, {"f32[2,3]"}, {}, "f32[2,<=3]"), "");
  EXPECT_EQ(Check(Opcode::kNegate, {"f32[?,3]"}, {}, "f32[7,3]"), "");
  EXPECT_ERROR(Check(Opcode::kNegate, {"f32[<=2]"}, {}, "f32[3]"), "f32[3]");
  EXPECT_EQ(Check(Opcode::kTuple, {"(f32[<=2], s32[])", "token[]"}, {}, "((f32[2], s32[]), token[])"), "");
}

TEST_F(ShapeInferenceTest, MixedPrecisionWhereDataIsComputedOnly) {
  EXPECT_EQ(Check(Opcode::kAdd, {"f32[2]", "f32[2]"}, {}, "bf16[2]"), "");
  EXPECT_EQ(Check(Opcode::kAdd, {"bf16[2]", "f32[2]"}, {}, "f32[2]"), "");
  EXPECT_ERROR(Check(Opcode::kAdd, {"f32[2]", "f32[2]"}, {}, "bf16[2]", false), "bf16[2]");
  EXPECT_ERROR(Check(Opcode::kAdd, {"bf16[2]", "f32[2]"}, {}, "f32[2]", false), "mix bf16 and f32");
  EXPECT_ERROR(Check(Opcode::kTuple, {"f32[2]"}, {}, "(bf16[2])"), "declared as (bf16[2])");
  EXPECT_EQ(Check(Opcode::kTuple, {"f32[2]", "bf16[2]"}, {}, "(f32[2], bf16[2])", false), "");
  EXPECT_ERROR(Check(Opcode::kAdd, {"f32[2]", "f32[2]"}, {}, "s32[2]"), "s32[2]");
}

TEST_F(ShapeInferenceTest, MixedPrecisionOfReducers) {
  const Attrs attrs = {List(Attr::kDimensions, {0}), Calls(Attr::kToApply, "add")};
  EXPECT_EQ(Check(Opcode::kReduce, {"bf16[4]", "f32[]"}, attrs, "f32[]"), "");
  EXPECT_ERROR(Check(Opcode::kReduce, {"bf16[4]", "bf16[]"}, attrs, "f32[]", false), "parameter 0 of add is f32[]");
}

TEST_F(ShapeInferenceTest, MessageEndsWithWhatInferenceGives) {
  const std::string message = Check(Opcode::kAdd, {"f32[2,3]", "f32[2,3]"}, {}, "f32[3,2]");
  EXPECT_TRUE(message.ends_with("f32[2,3]")) << message;
}

TEST_F(ShapeInferenceTest, LargeTuplesAreReportedByElement) {
  const Operands operands(20, "f32[2]");
  std::string declared = "(";
  for (int i = 0; i < 20; ++i) declared += i == 0 ? "f32[2]" : i == 17 ? ", f32[3]" : ", f32[2]";
  declared += ")";
  EXPECT_EQ(Check(Opcode::kTuple, operands, {}, declared.c_str()),
            "error: element {17} of the result is declared as f32[3], but the shape inferred from its operands and "
            "attributes is f32[2]");
}

TEST_F(ShapeInferenceTest, OperandsAreCounted) {
  EXPECT_ERROR(Infer(Opcode::kAdd, {"f32[2]"}), "expected 2 operands, found 1");
  EXPECT_ERROR(Infer(Opcode::kNegate, {"f32[2]", "f32[2]"}), "expected 1 operand, found 2");
  EXPECT_ERROR(Infer(Opcode::kDot, {"f32[2]"}), "expected at least 2 operands, found 1");
}

TEST_F(ShapeInferenceTest, UnknownShapesAreErrors) {
  EXPECT_ERROR(Infer(Opcode::kNegate, {""}), "unknown shape of operand 0");
  EXPECT_ERROR(Check(Opcode::kNegate, {"f32[2]"}, {}, ""), "the instruction has no shape");
  EXPECT_ERROR(Check(Opcode::kNegate, {"f32[]"}, {}, ""), "no shape");
}

TEST_F(ShapeInferenceTest, CompatibilityOfNests) {
  EXPECT_TRUE(
      CompatibleIgnoringDynamism(S("((f32[2], b(f32[3])), token[])"), S("((f32[<=2]{0}, b(f32[3])), token[])")));
  EXPECT_FALSE(CompatibleIgnoringDynamism(S("((f32[2]), token[])"), S("((bf16[2]), token[])")));
  EXPECT_TRUE(CompatibleIgnoringFpPrecision(S("((f32[2]), token[])"), S("((bf16[2]), token[])")));
  EXPECT_FALSE(CompatibleIgnoringFpPrecision(S("(f32[2])"), S("(f32[2], f32[2])")));
  EXPECT_FALSE(CompatibleIgnoringFpPrecision(S("(f32[2])"), S("f32[2]")));
  EXPECT_FALSE(CompatibleIgnoringFpPrecision(S("b(f32[2])"), S("f32[2]")));
}

TEST_F(ShapeInferenceTest, TuplesThatShareElementsAreComparedOnce) {
  // 2^60 leaves each, different only at the innermost level, where types may differ.
  ShapeTable& shapes = module_->context().shapes;
  Shape a = S("f32[2]"), b = S("bf16[2]");
  for (int i = 0; i < 60; ++i) {
    a = shapes.Tuple({a, a});
    b = shapes.Tuple({b, b});
  }
  EXPECT_TRUE(CompatibleIgnoringFpPrecision(a, b));
  EXPECT_FALSE(CompatibleIgnoringDynamism(a, b));
  EXPECT_FALSE(InferShape({module_.get(), Opcode::kTuple, absl::MakeConstSpan(&a, 1), {}, Shape()}).ok());
  const InferenceRequest copy{module_.get(), Opcode::kCopy, absl::MakeConstSpan(&a, 1), {}, a};
  EXPECT_TRUE(CheckShape(copy, /*mixed_precision=*/false).ok());
}

TEST_F(ShapeInferenceTest, HigherPrecision) {
  EXPECT_EQ(HigherPrecision(ElementType::kF16, ElementType::kBF16), ElementType::kBF16);
  EXPECT_EQ(HigherPrecision(ElementType::kF32, ElementType::kBF16), ElementType::kF32);
  EXPECT_EQ(HigherPrecision(ElementType::kS32, ElementType::kF8E5M2), ElementType::kF8E5M2);
  EXPECT_EQ(HigherPrecision(ElementType::kC64, ElementType::kF64), ElementType::kC64);
  EXPECT_EQ(HigherPrecision(ElementType::kU8, ElementType::kS8), ElementType::kS8);
  EXPECT_EQ(HigherPrecision(ElementType::kS8, ElementType::kU16), ElementType::kU16);
  EXPECT_EQ(HigherPrecision(ElementType::kF8E4M3FN, ElementType::kF8E4M3), ElementType::kF8E4M3FN);
}

TEST_F(ShapeInferenceTest, RequestForAnInstruction) {
  std::vector<Shape> operands;
  for (Computation c : module_->computations()) {
    for (Instruction i : c.instructions()) {
      const absl::Status status = CheckShape(RequestFor(i, &operands));
      EXPECT_TRUE(status.ok()) << c.name() << ' ' << i.name() << ": " << status;
    }
  }
}

// ---- elementwise ----

TEST_F(ShapeInferenceTest, UnaryKeepsShapeAndLayout) {
  EXPECT_EQ(Infer(Opcode::kTanh, {"f32[2,3]{0,1:T(8,128)S(1)}"}), "f32[2,3]{0,1:T(8,128)S(1)}");
  EXPECT_EQ(Infer(Opcode::kNegate, {"s32[<=4]"}), "s32[<=4]{0}");
  EXPECT_EQ(Infer(Opcode::kAbs, {"c64[2]{0}"}), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kAbs, {"c128[2,2]{0,1}"}), "f64[2,2]{0,1}");
}

TEST_F(ShapeInferenceTest, UnaryTypes) {
  EXPECT_ERROR(Infer(Opcode::kFloor, {"s32[2]"}),
               "expected floating point elements for floor, but operand 0 is s32[2]");
  EXPECT_ERROR(Infer(Opcode::kFloor, {"c64[2]"}), "floating point");
  EXPECT_ERROR(Infer(Opcode::kTanh, {"pred[2]"}), "floating point or complex");
  EXPECT_EQ(Infer(Opcode::kTanh, {"c64[2]"}), "c64[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kNegate, {"pred[2]"}), "integer or floating point or complex");
  EXPECT_ERROR(Infer(Opcode::kAbs, {"u32[2]"}), "signed integer or floating point or complex");
  EXPECT_ERROR(Infer(Opcode::kSign, {"u8[2]"}),
               "expected signed integer or floating point or complex elements for sign, but operand 0 is u8[2]");
  EXPECT_ERROR(Infer(Opcode::kNot, {"f32[2]"}), "pred or integer");
  EXPECT_EQ(Infer(Opcode::kNot, {"pred[2]"}), "pred[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kPopulationCount, {"pred[2]"}),
               "expected integer elements for popcnt, but operand 0 is pred[2]");
  EXPECT_ERROR(Infer(Opcode::kNegate, {"(f32[2])"}), "expected operand 0 to be an array, found (f32[2])");
}

TEST_F(ShapeInferenceTest, CopyAndDomainPassOnAnything) {
  EXPECT_EQ(Infer(Opcode::kCopy, {"(f32[2]{0}, token[])"}), "(f32[2]{0}, token[])");
  EXPECT_EQ(Infer(Opcode::kDomain, {"(f32[2]{0}, token[])"}), "(f32[2]{0}, token[])");
}

TEST_F(ShapeInferenceTest, ReducePrecision) {
  EXPECT_EQ(Infer(Opcode::kReducePrecision, {"f32[2]"}, {Int(Attr::kExponentBits, 5), Int(Attr::kMantissaBits, 0)}),
            "f32[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kReducePrecision, {"f32[2]"}, {Int(Attr::kExponentBits, 0), Int(Attr::kMantissaBits, 0)}),
               "`exponent_bits` must be at least 1, found 0");
  EXPECT_ERROR(Infer(Opcode::kReducePrecision, {"f32[2]"}, {Int(Attr::kExponentBits, 5), Int(Attr::kMantissaBits, -1)}),
               "mantissa_bits");
  EXPECT_ERROR(Infer(Opcode::kReducePrecision, {"s32[2]"}, {Int(Attr::kExponentBits, 5), Int(Attr::kMantissaBits, 1)}),
               "floating point");
}

TEST_F(ShapeInferenceTest, BinaryOfEqualShapes) {
  EXPECT_EQ(Infer(Opcode::kAdd, {"f32[2,3]{0,1}", "f32[2,3]{1,0}"}), "f32[2,3]{0,1}");
  EXPECT_EQ(Infer(Opcode::kMultiply, {"bf16[2]", "f32[2]"}), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kAnd, {"pred[2]", "pred[2]"}), "pred[2]{0}");
  EXPECT_EQ(Infer(Opcode::kMaximum, {"pred[]", "pred[]"}), "pred[]");
}

TEST_F(ShapeInferenceTest, BinaryErrors) {
  EXPECT_ERROR(Infer(Opcode::kAdd, {"f32[2]", "f32[3]"}), "different sizes in dimension 0");
  EXPECT_ERROR(Infer(Opcode::kAdd, {"f32[2]", "f32[]"}), "does not broadcast implicitly");
  EXPECT_ERROR(Infer(Opcode::kAdd, {"f32[1,3]", "f32[2,3]"}), "different sizes in dimension 0");
  EXPECT_ERROR(Infer(Opcode::kAdd, {"f32[2]", "s32[2]"}),
               "operand 0 has elements of f32, but operand 1 has elements of s32");
  EXPECT_ERROR(Infer(Opcode::kSubtract, {"pred[2]", "pred[2]"}),
               "expected integer or floating point or complex elements for subtract, but operand 0 is pred[2]");
  EXPECT_ERROR(Infer(Opcode::kXor, {"f32[2]", "f32[2]"}), "pred or integer");
  EXPECT_ERROR(Infer(Opcode::kAtan2, {"s32[2]", "s32[2]"}), "floating point or complex");
  EXPECT_ERROR(Infer(Opcode::kAdd, {"f32[2]", "token[]"}), "operand 1 to be an array");
}

TEST_F(ShapeInferenceTest, BinaryOfDynamicShapes) {
  EXPECT_EQ(Infer(Opcode::kAdd, {"f32[2]", "f32[<=2]"}), "f32[<=2]{0}");
  EXPECT_EQ(Infer(Opcode::kAdd, {"f32[<=2,3]{0,1}", "f32[2,<=3]"}), "f32[<=2,<=3]{0,1}");
  EXPECT_EQ(Infer(Opcode::kAdd, {"f32[?]", "f32[2]"}), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kAdd, {"f32[<=2]", "f32[?]"}), "f32[<=2]{0}");
  EXPECT_EQ(Infer(Opcode::kAdd, {"f32[?]", "f32[?]"}), "f32[?]{0}");
}

TEST_F(ShapeInferenceTest, Compare) {
  const Attrs lt = {Enum(Attr::kDirection, ComparisonDirection::kLt)};
  EXPECT_EQ(Infer(Opcode::kCompare, {"f32[2,3]{0,1}", "f32[2,3]{0,1}"}, lt), "pred[2,3]{0,1}");
  EXPECT_EQ(Infer(Opcode::kCompare, {"s4[8]{0:E(4)}", "s4[8]{0:E(4)}"}, lt), "pred[8]{0}");
  EXPECT_EQ(Check(Opcode::kCompare, {"f32[2]", "f32[2]"}, lt, "pred[2]"), "");
  EXPECT_ERROR(Check(Opcode::kCompare, {"f32[2]", "f32[2]"}, lt, "f32[2]"), "attributes is pred[2]");
  EXPECT_ERROR(Infer(Opcode::kCompare, {"f32[2]", "f32[3]"}, lt), "different sizes");
}

TEST_F(ShapeInferenceTest, ComplexParts) {
  EXPECT_EQ(Infer(Opcode::kComplex, {"f32[2]", "f32[2]"}), "c64[2]{0}");
  EXPECT_EQ(Infer(Opcode::kComplex, {"f64[2]", "f64[2]"}), "c128[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kComplex, {"f32[2]", "f64[2]"}), "found f32 and f64");
  EXPECT_ERROR(Infer(Opcode::kComplex, {"f16[2]", "f16[2]"}), "f32 or two of f64");
  EXPECT_EQ(Infer(Opcode::kReal, {"c64[2]"}), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kImag, {"f32[2]"}), "f32[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kImag, {"s32[2]"}),
               "expected floating point or complex elements for imag, but operand 0 is s32[2]");
  EXPECT_EQ(Infer(Opcode::kIsFinite, {"f32[2,2]{0,1}"}), "pred[2,2]{0,1}");
  EXPECT_ERROR(Infer(Opcode::kIsFinite, {"s32[2]"}), "floating point");
}

TEST_F(ShapeInferenceTest, ConvertTakesTheDeclaredType) {
  EXPECT_EQ(Infer(Opcode::kConvert, {"f32[2,3]{0,1}"}, {}, "s8[2,3]"), "s8[2,3]{0,1}");
  EXPECT_ERROR(Infer(Opcode::kConvert, {"f32[2]"}), "the element type of the result must be specified");
  EXPECT_ERROR(Check(Opcode::kConvert, {"f32[2]"}, {}, "s8[3]"), "attributes is s8[2]");
  EXPECT_ERROR(Check(Opcode::kConvert, {"f32[2]"}, {}, "(s8[2])"), "expected the result to be an array");
}

TEST_F(ShapeInferenceTest, BitcastConvert) {
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {"f32[2]"}, {}, "u32[2]"), "u32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {"s32[4]"}, {}, "s4[4,8]"), "s4[4,8]{1,0}");
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {"u8[5,4]"}, {}, "f32[5]"), "f32[5]{0}");
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {"f32[3,5]{0,1}"}, {}, "u8[]"), "u8[3,5,4]{2,0,1}");
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {"u8[3,5,4]{2,0,1}"}, {}, "f32[]"), "f32[3,5]{0,1}");
  EXPECT_ERROR(Infer(Opcode::kBitcastConvert, {"u8[5,2]"}, {}, "f32[5]"),
               "the last dimension of operand 0 (u8[5,2]) must be 4 to bitcast u8 to f32");
  EXPECT_ERROR(Infer(Opcode::kBitcastConvert, {"u8[]"}, {}, "f32[]"), "must be 4");
  EXPECT_ERROR(Infer(Opcode::kBitcastConvert, {"c64[2]"}, {}, "f64[2]"),
               "cannot bitcast c64 to f64: only one of them is complex");
  EXPECT_ERROR(Check(Opcode::kBitcastConvert, {"f32[2]"}, {}, "u8[2]"), "attributes is u8[2,4]");
}

TEST_F(ShapeInferenceTest, StochasticConvert) {
  EXPECT_EQ(Infer(Opcode::kStochasticConvert, {"f32[2]", "u32[2]"}, {}, "s8[2]"), "s8[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kStochasticConvert, {"f32[2]", "s32[2]"}, {}, "s8[2]"), "unsigned");
  EXPECT_ERROR(Infer(Opcode::kStochasticConvert, {"f32[2]", "u16[2]"}, {}, "s8[2]"), "32 bits");
  EXPECT_ERROR(Infer(Opcode::kStochasticConvert, {"f32[2]", "u32[3]"}, {}, "s8[2]"), "different dimensions");
  EXPECT_ERROR(Infer(Opcode::kStochasticConvert, {"s32[2]", "u32[2]"}, {}, "s8[2]"), "floating point");
}

TEST_F(ShapeInferenceTest, Clamp) {
  EXPECT_EQ(Infer(Opcode::kClamp, {"f32[]", "f32[2]{0}", "f32[]"}), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kClamp, {"f32[2]", "f32[2]", "f32[]"}), "f32[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kClamp, {"f32[3]", "f32[2]", "f32[]"}), "operand 0 must be a scalar");
  EXPECT_ERROR(Infer(Opcode::kClamp, {"f32[]", "f32[2]", "s32[]"}), "operand 2 has elements of s32");
}

TEST_F(ShapeInferenceTest, Select) {
  EXPECT_EQ(Infer(Opcode::kSelect, {"pred[2]", "f32[2]", "f32[2]"}), "f32[2]{0}");
  EXPECT_EQ(Infer(Opcode::kSelect, {"pred[]", "f32[2,3]{0,1}", "f32[2,3]"}), "f32[2,3]{0,1}");
  EXPECT_EQ(Infer(Opcode::kSelect, {"pred[2,3]{1,0}", "f32[2,3]{0,1}", "f32[2,3]"}), "f32[2,3]{1,0}");
  EXPECT_EQ(Infer(Opcode::kSelect, {"pred[2]", "bf16[2]", "f32[<=2]"}), "f32[<=2]{0}");
  EXPECT_EQ(Infer(Opcode::kSelect, {"pred[2]", "f32[?]", "f32[2]"}), "f32[2]{0}");
  EXPECT_ERROR(Infer(Opcode::kSelect, {"s32[2]", "f32[2]", "f32[2]"}), "operand 0 must have pred elements");
  EXPECT_ERROR(Infer(Opcode::kSelect, {"pred[2]", "f32[2]", "f32[3]"}), "operands 1 and 2 must have the same shape");
  EXPECT_ERROR(Infer(Opcode::kSelect, {"pred[3]", "f32[2]", "f32[2]"}), "operand 0 must be a scalar or");
  EXPECT_ERROR(Infer(Opcode::kSelect, {"pred[]", "(f32[2])", "(f32[2])"}), "operand 1 to be an array");
}

}  // namespace
}  // namespace hlokit
