// SPDX-License-Identifier: Apache-2.0
// Calls shape inference with operands, results and computations written as HLO text.
#ifndef HLOKIT_TESTS_UNIT_IR_INFERENCE_SHAPE_INFERENCE_FIXTURE_H_
#define HLOKIT_TESTS_UNIT_IR_INFERENCE_SHAPE_INFERENCE_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"
#include "ir/inference/shape_inference.h"
#include "parser/formats/parser.h"

namespace hlokit {

class ShapeInferenceTest : public ::testing::Test {
 protected:
  using Operands = std::vector<const char*>;
  using Attrs = std::vector<AttrValue>;
  using Numbers = std::vector<int64_t>;

  // Returns the inferred shape, as text with layout, or "error: ...".
  std::string Infer(Opcode opcode, const Operands& operands, const Attrs& attrs = {}, const char* declared = "") {
    const std::vector<Shape> shapes = Shapes(operands);
    absl::StatusOr<Shape> shape = InferShape({module_.get(), opcode, shapes, attrs, S(declared)});
    return shape.ok() ? ToString(*shape) : Message(shape.status());
  }

  // Returns "" or "error: ...".
  std::string Check(Opcode opcode, const Operands& operands, const Attrs& attrs, const char* declared,
                    bool mixed_precision = true) {
    const std::vector<Shape> shapes = Shapes(operands);
    const absl::Status status = CheckShape({module_.get(), opcode, shapes, attrs, S(declared)}, mixed_precision);
    return status.ok() ? "" : Message(status);
  }

  Shape S(std::string_view text) {
    if (text.empty()) return Shape();
    absl::StatusOr<Shape> shape = ParseShapeText(text, &module_->context());
    EXPECT_TRUE(shape.ok()) << text << ": " << shape.status();
    return shape.ok() ? *shape : Shape();
  }

  AttrValue Int(Attr attr, int64_t value) { return {attr, module_->EncodeInt64(value)}; }
  AttrValue List(Attr attr, const Numbers& values) { return {attr, module_->ListPayload(values)}; }
  AttrValue Text(Attr attr, std::string_view text) { return {attr, module_->context().strings.Intern(text).value}; }
  template <typename E>
  AttrValue Enum(Attr attr, E value) {
    return {attr, static_cast<uint32_t>(value)};
  }
  AttrValue Flag(Attr attr) { return {attr, 1}; }
  // Returns an attribute with the computation of kComputations (below) called `name`.
  AttrValue Calls(Attr attr, std::string_view name) { return {attr, Id(name).value}; }
  AttrValue CallsAll(Attr attr, const std::vector<std::string_view>& names) {
    Numbers ids;
    for (std::string_view name : names) ids.push_back(Id(name).value);
    return List(attr, ids);
  }
  ComputationId Id(std::string_view name) {
    for (Computation c : module_->computations()) {
      if (c.name() == name) return c.id();
    }
    ADD_FAILURE() << "no computation " << name;
    return ComputationId();
  }

  // Window dimension: size, and the non-default parameters.
  struct WindowOf {
    int64_t size = 1, stride = 1, low = 0, high = 0, base = 1, dilate = 1, reversal = 0;
  };
  AttrValue Window(const std::vector<WindowOf>& dims) {
    Numbers list;
    for (const WindowOf& w : dims) {
      list.insert(list.end(), {w.size, w.stride, w.low, w.high, w.base, w.dilate, w.reversal});
    }
    return List(Attr::kWindow, list);
  }

  std::unique_ptr<Module> module_ = Parse();

 private:
  static std::string Message(const absl::Status& status) { return "error: " + std::string(status.message()); }

  std::vector<Shape> Shapes(const Operands& operands) {
    std::vector<Shape> shapes;
    for (const char* text : operands) shapes.push_back(S(text));
    return shapes;
  }

  static std::unique_ptr<Module> Parse() {
    static constexpr std::string_view kComputations = R"(
HloModule computations

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

add_s32 {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT sum = s32[] add(a, b)
}

add_bf16 {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT sum = bf16[] add(a, b)
}

add_one {
  a = f32[] parameter(0)
  ROOT sum = f32[] add(a, a)
}

add_vector {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ROOT sum = f32[2] add(a, b)
}

arg_max {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  ROOT both = (f32[], s32[]) tuple(a, i)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT lt = pred[] compare(a, b), direction=LT
}

less_pair {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT lt = pred[] compare(a, b), direction=LT
}

convert_s32 {
  a = f32[] parameter(0)
  ROOT r = s32[] convert(a)
}

scan_step {
  x = f32[3] parameter(0)
  carry = f32[3] parameter(1)
  sum = f32[3] add(x, carry)
  ROOT out = (f32[3], f32[3]) tuple(sum, sum)
}

in_tuple {
  x = f32[] parameter(0)
  ROOT out = (f32[]) tuple(x)
}

condition {
  p = (f32[4], s32[]) parameter(0)
  ROOT done = pred[] constant(false)
}

condition_s32 {
  p = (f32[4], s32[]) parameter(0)
  ROOT done = s32[] constant(0)
}

body {
  ROOT p = (f32[4], s32[]) parameter(0)
}

body_narrow {
  p = (f32[4], s32[]) parameter(0)
  ROOT x = f32[4] get-tuple-element(p), index=0
}

identity {
  ROOT p = f32[4] parameter(0)
}

identity_bounded {
  ROOT p = f32[<=4] parameter(0)
}

to_pair {
  p = f32[4] parameter(0)
  q = f32[3] parameter(1)
  ROOT out = (f32[4], f32[3]) tuple(p, q)
}

ENTRY main {
  ROOT p = f32[] parameter(0)
}
)";
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(kComputations);
    EXPECT_TRUE(module.ok()) << module.status();
    return module.ok() ? std::move(*module) : std::make_unique<Module>();
  }
};

// Expects that the message of a failed inference or check contains `text`.
#define EXPECT_ERROR(result, text)                                                                \
  do {                                                                                            \
    const std::string result_ = (result);                                                         \
    EXPECT_TRUE(result_.starts_with("error: ") && result_.find(text) != std::string::npos)        \
        << #result << "\n  gives " << result_ << "\n  and not an error about \"" << text << "\""; \
  } while (false)

}  // namespace hlokit

#endif  // HLOKIT_TESTS_UNIT_IR_INFERENCE_SHAPE_INFERENCE_FIXTURE_H_
