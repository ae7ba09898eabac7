// SPDX-License-Identifier: Apache-2.0
// Windows of pooling and its gradients, and others.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/random/module_generator.h"

namespace hlokit::random_test {
namespace {

struct RandomWindow {
  Dims from, to;
  std::string sizes, strides, pads, base_dilations, window_dilations;

  void Add(int64_t n, int64_t size, int64_t stride, int64_t low, int64_t high, int64_t base, int64_t dilation) {
    const char* const x = from.empty() ? "" : "x";
    const int64_t padded = (n - 1) * base + 1 + low + high, extent = (size - 1) * dilation + 1;
    from.push_back(n);
    to.push_back(padded < extent ? 0 : (padded - extent) / stride + 1);
    StrAppend(&sizes, x, size);
    StrAppend(&strides, x, stride);
    StrAppend(&pads, x, low, "_", high);
    StrAppend(&base_dilations, x, base);
    StrAppend(&window_dilations, x, dilation);
  }
  // A dimension without a window.
  void AddTrivial(int64_t n) { Add(n, 1, 1, 0, 0, 1, 1); }
};

}  // namespace

bool ModuleGenerator::EmitWindows(Opcode opcode) {
  const std::string_view text = ToString(opcode);
  const ShapeRule rule = InfoOf(opcode).shape_rule;
  if (rule != ShapeRule::kReduceWindow && rule != ShapeRule::kSelectAndScatter) return false;
  const ElementType type = random_.Of(random_.OneIn(2) ? std::vector<ElementType>{kF32, kBF16, kF16} : kNumbers);
  RandomWindow w;
  if (random_.OneIn(4)) w.AddTrivial(random_.In(1, 4));
  for (int64_t rank = random_.In(1, 3); rank > 0; --rank) {
    const int64_t n = Size(6), size = random_.In(1, 3), stride = random_.In(1, 4);
    if (rule == ShapeRule::kSelectAndScatter) {
      // Each window covers an element. Those that cover none have no defined result.
      const int64_t covered = std::min(n, size);
      w.Add(n, covered, stride, random_.In(0, covered - 1), random_.In(0, covered - 1), 1, 1);
      continue;
    }
    // Sometimes a dilation that exceeds the operand.
    const int64_t dilation = random_.OneIn(3) ? random_.In(2, 3) : random_.OneIn(8) ? n + random_.In(1, 8) : 1;
    const int64_t reach = dilation > n ? (size - 1) * dilation : 2;
    w.Add(n, size, stride, random_.In(0, reach), random_.In(0, reach), random_.OneIn(3) ? random_.In(2, 3) : 1,
          dilation);
  }
  if (random_.OneIn(3)) w.AddTrivial(random_.In(8, 40));  // features
  const Array operand{type, w.from};
  if (rule == ShapeRule::kReduceWindow) {
    Add({type, w.to}, text, {NeedWithNans(operand), Scalar(type)},
        StrCat("window={size=", w.sizes, " stride=", w.strides, " pad=", w.pads, " lhs_dilate=", w.base_dilations,
               " rhs_dilate=", w.window_dilations, "}, to_apply=", Function(type)));
    return true;
  }
  const std::string select = NewName("ge");
  const std::string t = StrCat(ToString(type), "[]");
  StrAppend(&computations_, select, " {\n  a = ", t, " parameter(0)\n  b = ", t,
            " parameter(1)\n  ROOT r = pred[] compare(a, b), direction=", random_.OneIn(4) ? "GT" : "GE", "\n}\n\n");
  Add(operand, text, {NeedWithNans(operand), Need({type, w.to}), Scalar(type)},
      StrCat("window={size=", w.sizes, " stride=", w.strides, " pad=", w.pads, "}, select=", select,
             ", scatter=", Function(type)));
  return true;
}

}  // namespace hlokit::random_test
