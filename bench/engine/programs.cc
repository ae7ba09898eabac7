// SPDX-License-Identifier: Apache-2.0
#include "bench/engine/programs.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "ir/core/str_cat.h"

namespace hlokit::bench {
namespace {

using absl::StrFormat;

// An f32 array of images. Arrays are row-major in memory, whatever their layouts.
std::string Images(int64_t channels, int64_t size, bool channels_minor) {
  return channels_minor ? StrFormat("f32[8,%d,%d,%d]{3,2,1,0}", size, size, channels)
                        : StrFormat("f32[8,%d,%d,%d]{3,2,1,0}", channels, size, size);
}

// By dimension of images: 1 but for height and width.
std::string InSpace(std::string_view value, bool channels_minor) {
  return channels_minor ? StrCat("1x", value, "x", value, "x1") : StrCat("1x1x", value, "x", value);
}
std::string PaddingInSpace(std::string_view value, bool channels_minor) {
  return channels_minor ? StrCat("0_0x", value, "x", value, "x0_0") : StrCat("0_0x0_0x", value, "x", value);
}

constexpr char kPlus[] = R"(
plus {
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT sum = f32[] add(left, right)
}
)";

constexpr char kLarger[] = R"(
larger {
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT max = f32[] maximum(left, right)
}
)";

}  // namespace

std::string ProductText(const ProductSizes& s, bool transposed, bool transposed_lhs) {
  const auto [lhs_rows, lhs_columns] = transposed_lhs ? std::pair(s.depth, s.rows) : std::pair(s.rows, s.depth);
  const auto [rhs_rows, rhs_columns] = transposed ? std::pair(s.columns, s.depth) : std::pair(s.depth, s.columns);
  if (s.batch == 1) {
    return StrFormat(R"(HloModule product
ENTRY main {
  lhs = f32[%d,%d]{1,0} parameter(0)
  rhs = f32[%d,%d]{1,0} parameter(1)
  ROOT product = f32[%d,%d]{1,0} dot(lhs, rhs), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}
})",
                     lhs_rows, lhs_columns, rhs_rows, rhs_columns, s.rows, s.columns, transposed_lhs ? 0 : 1,
                     transposed ? 1 : 0);
  }
  return StrFormat(R"(HloModule product
ENTRY main {
  lhs = f32[%d,%d,%d]{2,1,0} parameter(0)
  rhs = f32[%d,%d,%d]{2,1,0} parameter(1)
  ROOT product = f32[%d,%d,%d]{2,1,0} dot(lhs, rhs), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={%d},
    rhs_contracting_dims={%d}
})",
                   s.batch, lhs_rows, lhs_columns, s.batch, rhs_rows, rhs_columns, s.batch, s.rows, s.columns,
                   transposed_lhs ? 1 : 2, transposed ? 2 : 1);
}

std::string ConvolutionText(const ConvolutionSizes& s, Gradient gradient, bool channels_minor) {
  const int64_t result = s.result_size(), k = s.kernel;
  const std::string src = Images(s.inputs, s.size, channels_minor), dst = Images(s.outputs, result, channels_minor);
  const std::string weights = channels_minor ? StrFormat("f32[%d,%d,%d,%d]{3,2,1,0}", k, k, s.inputs, s.outputs)
                                             : StrFormat("f32[%d,%d,%d,%d]{3,2,1,0}", s.outputs, s.inputs, k, k);
  const int64_t reach = (result - 1) * s.stride;  // of the last window's first element
  const auto window = [](int64_t size, int64_t stride, int64_t low, int64_t high, const char* dilation,
                         int64_t dilated) {
    return StrFormat("window={size=%dx%d stride=%dx%d pad=%d_%dx%d_%d %s=%dx%d}", size, size, stride, stride, low, high,
                     low, high, dilation, dilated, dilated);
  };
  std::string text = "HloModule convolution\nENTRY main {\n";
  if (gradient == Gradient::kNone) {
    StrAppend(&text, "  src = ", src, " parameter(0)\n  weights = ", weights, " parameter(1)\n  ROOT dst = ", dst,
              " convolution(src, weights), ",
              window(k, s.stride, s.padding, reach + k - s.size - s.padding, "rhs_dilate", 1),
              ", dim_labels=", channels_minor ? "b01f_01io->b01f" : "bf01_oi01->bf01", "\n}");
  } else if (gradient == Gradient::kData) {
    const int64_t low = k - 1 - s.padding;
    StrAppend(&text, "  dst = ", dst, " parameter(0)\n  weights = ", weights, " parameter(1)\n  reversed = ", weights,
              " reverse(weights), dimensions=", channels_minor ? "{0,1}" : "{2,3}", "\n  ROOT src = ", src,
              " convolution(dst, reversed), ", window(k, 1, low, s.size + k - 2 - reach - low, "lhs_dilate", s.stride),
              ", dim_labels=", channels_minor ? "b01f_01oi->b01f" : "bf01_io01->bf01", "\n}");
  } else {
    StrAppend(&text, "  src = ", src, " parameter(0)\n  dst = ", dst, " parameter(1)\n  ROOT weights = ", weights,
              " convolution(src, dst), ",
              window(result, 1, s.padding, k + reach - s.size - s.padding, "rhs_dilate", s.stride),
              ", dim_labels=", channels_minor ? "f01b_i01o->01bf" : "fb01_io01->fb01", "\n}");
  }
  return text;
}

std::string ChainText(int64_t elements, bool three_functions) {
  const std::string shape = StrFormat("f32[%d]{0}", elements);
  std::string text = "HloModule chain\nENTRY main {\n";
  const auto line = [&](const char* name, const std::string& rest) {
    StrAppend(&text, "  ", name, " = ", shape, " ", rest, "\n");
  };
  line("x", "parameter(0)");
  line("y", "parameter(1)");
  for (const auto& [name, value] : {std::pair("large", "1.5"), {"quarter", "0.25"}, {"half", "0.5"}}) {
    StrAppend(&text, "  ", name, " = f32[] constant(", value, ")\n");
    StrAppend(&text, "  ", name, ".wide = ", shape, " broadcast(", name, "), dimensions={}\n");
  }
  line("a", "multiply(x, large.wide)");
  line("b", "add(a, y)");
  line("c", "subtract(b, quarter.wide)");
  line("d", "tanh(c)");
  line("e", "multiply(d, y)");
  line("f", three_functions ? "exponential(e)" : "add(e, x)");
  line("g", "maximum(f, y)");
  line("h", three_functions ? "erf(g)" : "multiply(x, half.wide)");
  line("i", three_functions ? "subtract(h, x)" : "subtract(g, h)");
  line("ROOT j", "multiply(i, i)");
  return text + "}";
}

std::string LayerNormText(int64_t rows, int64_t columns) {
  const std::string all = StrFormat("f32[%d,%d]{1,0}", rows, columns);
  const std::string by_row = StrFormat("f32[%d]{0}", rows), by_column = StrFormat("f32[%d]{0}", columns);
  std::string text = StrCat("HloModule layer_norm\n", kPlus, "ENTRY main {\n");
  const auto line = [&](const char* name, const std::string& shape, const std::string& rest) {
    StrAppend(&text, "  ", name, " = ", shape, " ", rest, "\n");
  };
  line("x", all, "parameter(0)");
  line("scale", by_column, "parameter(1)");
  line("offset", by_column, "parameter(2)");
  line("zero", "f32[]", "constant(0)");
  line("epsilon", "f32[]", "constant(1e-05)");
  line("share", "f32[]", StrFormat("constant(%.9g)", 1.0 / static_cast<double>(columns)));
  line("share.wide", by_row, "broadcast(share), dimensions={}");
  line("epsilon.wide", by_row, "broadcast(epsilon), dimensions={}");
  line("total", by_row, "reduce(x, zero), dimensions={1}, to_apply=plus");
  line("mean", by_row, "multiply(total, share.wide)");
  line("mean.wide", all, "broadcast(mean), dimensions={0}");
  line("centered", all, "subtract(x, mean.wide)");
  line("squares", all, "multiply(centered, centered)");
  line("squares.total", by_row, "reduce(squares, zero), dimensions={1}, to_apply=plus");
  line("variance", by_row, "multiply(squares.total, share.wide)");
  line("above.zero", by_row, "add(variance, epsilon.wide)");
  line("factor", by_row, "rsqrt(above.zero)");
  line("factor.wide", all, "broadcast(factor), dimensions={0}");
  line("normal", all, "multiply(centered, factor.wide)");
  line("scale.wide", all, "broadcast(scale), dimensions={1}");
  line("scaled", all, "multiply(normal, scale.wide)");
  line("offset.wide", all, "broadcast(offset), dimensions={1}");
  line("ROOT result", all, "add(scaled, offset.wide)");
  return text + "}";
}

std::string BatchNormText(int64_t channels, int64_t size, bool gradient, bool channels_minor) {
  const std::string images = Images(channels, size, channels_minor), each = StrFormat("f32[%d]{0}", channels);
  const std::string result = StrCat("(", images, ", ", each, ", ", each, ")");
  if (!gradient) {
    return StrCat("HloModule batch_norm\nENTRY main {\n  x = ", images, " parameter(0)\n  scale = ", each,
                  " parameter(1)\n  offset = ", each, " parameter(2)\n  ROOT all = ", result,
                  " batch-norm-training(x, scale, offset), epsilon=1e-05, feature_index=", channels_minor ? 3 : 1,
                  "\n}");
  }
  return StrCat("HloModule batch_norm_gradient\nENTRY main {\n  x = ", images, " parameter(0)\n  scale = ", each,
                " parameter(1)\n  mean = ", each, " parameter(2)\n  variance = ", each,
                " parameter(3)\n  dy = ", images, " parameter(4)\n  ROOT all = ", result,
                " batch-norm-grad(x, scale, mean, variance, dy), epsilon=1e-05, feature_index=", channels_minor ? 3 : 1,
                "\n}");
}

std::string MaxPoolText(int64_t channels, int64_t size, bool gradient, bool channels_minor) {
  const std::string images = Images(channels, size, channels_minor);
  const std::string pooled = Images(channels, (size - 1) / 2 + 1, channels_minor);
  const std::string window =
      StrCat("window={size=", InSpace("3", channels_minor), " stride=", InSpace("2", channels_minor),
             " pad=", PaddingInSpace("1_0", channels_minor), "}");
  if (!gradient) {
    return StrCat("HloModule max_pool\n", kLarger, "ENTRY main {\n  x = ", images,
                  " parameter(0)\n  lowest = f32[] constant(-inf)\n  ROOT y = ", pooled, " reduce-window(x, lowest), ",
                  window, ", to_apply=larger\n}");
  }
  return StrCat("HloModule max_pool_gradient\n", kPlus, R"(
not_less {
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT result = pred[] compare(left, right), direction=GE
}
ENTRY main {
  x = )",
                images, " parameter(0)\n  dy = ", pooled,
                " parameter(1)\n  zero = f32[] constant(0)\n  ROOT dx = ", images, " select-and-scatter(x, dy, zero), ",
                window, ", select=not_less, scatter=plus\n}");
}

std::string AveragePoolText(int64_t channels, int64_t size, bool gradient, bool channels_minor) {
  const std::string images = Images(channels, size, channels_minor);
  const std::string pooled = Images(channels, size / 2, channels_minor);
  const std::string start = StrCat("HloModule average_pool\n", kPlus,
                                   "ENTRY main {\n  zero = f32[] constant(0)\n  part = f32[] constant(0.25)\n");
  if (!gradient) {
    return StrCat(start, "  x = ", images, " parameter(0)\n  sum = ", pooled,
                  " reduce-window(x, zero), window={size=", InSpace("2", channels_minor),
                  " stride=", InSpace("2", channels_minor), "}, to_apply=plus\n  wide = ", pooled,
                  " broadcast(part), dimensions={}\n  ROOT y = ", pooled, " multiply(sum, wide)\n}");
  }
  const std::string spread = Images(channels, size + 1, channels_minor);
  return StrCat(start, "  dy = ", pooled, " parameter(0)\n  wide = ", pooled,
                " broadcast(part), dimensions={}\n  each = ", pooled, " multiply(dy, wide)\n  spread = ", spread,
                " pad(each, zero), padding=", PaddingInSpace("1_1_1", channels_minor), "\n  ROOT dx = ", images,
                " reduce-window(spread, zero), window={size=", InSpace("2", channels_minor), "}, to_apply=plus\n}");
}

std::string MovedText(Moved how, int64_t rows, int64_t columns) {
  const std::string all = StrFormat("f32[%d,%d]{1,0}", rows, columns);
  std::string text = "HloModule moved\nENTRY main {\n  two = f32[] constant(2)\n";
  const auto line = [&](std::string_view name, std::string_view shape, std::string_view instruction) {
    StrAppend(&text, "  ", name, " = ", shape, " ", instruction, "\n");
  };
  if (how == Moved::kConcatenate) {
    const std::string half = StrFormat("f32[%d,%d]{1,0}", rows, columns / 2);
    line("left", half, "parameter(0)");
    line("right", half, "parameter(1)");
    line("x", all, "concatenate(left, right), dimensions={1}");
  } else if (how == Moved::kPad) {
    line("inner", StrFormat("f32[%d,%d]{1,0}", rows - 2, columns - 2), "parameter(0)");
    line("x", all, "pad(inner, two), padding=1_1x1_1");
  } else if (how == Moved::kDynamicSlice) {
    line("whole", StrFormat("f32[2,%d,%d]{2,1,0}", rows, columns), "parameter(0)");
    line("at", "s32[]", "parameter(1)");
    line("zero", "s32[]", "constant(0)");
    line("slice", StrFormat("f32[1,%d,%d]{2,1,0}", rows, columns),
         StrFormat("dynamic-slice(whole, at, zero, zero), dynamic_slice_sizes={1,%d,%d}", rows, columns));
    line("x", all, "reshape(slice)");
  } else {
    line("table", StrFormat("f32[%d,%d]{1,0}", 2 * rows, columns), "parameter(0)");
    line("ids", StrFormat("s32[%d]{0}", rows), "parameter(1)");
    line("x", all,
         StrFormat("gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
                   "index_vector_dim=1, slice_sizes={1,%d}",
                   columns));
  }
  line("factor", all, "broadcast(two), dimensions={}");
  line("ROOT doubled", all, "multiply(x, factor)");
  return text + "}";
}

std::string NarrowText(std::string_view type, int64_t elements, bool back) {
  const std::string wide = StrFormat("f32[%d]{0}", elements), narrow = StrFormat("%s[%d]{0}", type, elements);
  const std::string head = StrCat("HloModule narrow\nENTRY main {\n  half = f32[] constant(0.5)\n  factor = ", wide,
                                  " broadcast(half), dimensions={}\n");
  if (back) {
    return StrCat(head, "  x = ", narrow, " parameter(0)\n  y = ", wide, " convert(x)\n  ROOT z = ", wide,
                  " multiply(y, factor)\n}");
  }
  return StrCat(head, "  x = ", wide, " parameter(0)\n  y = ", wide, " multiply(x, factor)\n  ROOT z = ", narrow,
                " convert(y)\n}");
}

std::string ArgMaxText(int64_t rows, int64_t columns) {
  return StrFormat(R"(HloModule arg_max
first_greatest {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  x = f32[] parameter(2)
  j = s32[] parameter(3)
  greater = pred[] compare(a, x), direction=GT
  nan = pred[] compare(a, a), direction=NE
  keep = pred[] or(greater, nan)
  value = f32[] select(keep, a, x)
  equal = pred[] compare(a, x), direction=EQ
  before = pred[] compare(i, j), direction=LT
  first = pred[] and(equal, before)
  keep_index = pred[] or(keep, first)
  index = s32[] select(keep_index, i, j)
  ROOT both = (f32[], s32[]) tuple(value, index)
}
ENTRY main {
  x = f32[%d,%d]{1,0} parameter(0)
  i = s32[%d,%d]{1,0} iota(), iota_dimension=1
  lowest = f32[] constant(-inf)
  zero = s32[] constant(0)
  both = (f32[%d]{0}, s32[%d]{0}) reduce(x, i, lowest, zero), dimensions={1}, to_apply=first_greatest
  ROOT at = s32[%d]{0} get-tuple-element(both), index=1
})",
                   rows, columns, rows, columns, rows, rows, rows);
}

std::string WithSmallResult(const std::string& text) {
  const size_t root = text.rfind("ROOT "), end = text.rfind('}');
  const std::string line = text.substr(root + 5, end - root - 5);
  const size_t equals = line.find(" = ");
  const std::string name = line.substr(0, equals), rest = line.substr(equals + 3);
  const bool tuple = rest[0] == '(';
  const std::string shape = tuple ? rest.substr(0, rest.find(')') + 1) : rest.substr(0, rest.find(' '));
  std::string first = shape.substr(tuple ? 1 : 0);
  first = first.substr(0, first.find('}') + 1);
  const std::string layout = first.substr(first.find('{'));
  std::string ones, slices;
  for (int64_t i = 0; i <= std::count(layout.begin(), layout.end(), ','); ++i) {
    StrAppend(&ones, i == 0 ? "" : ",", "1");
    StrAppend(&slices, i == 0 ? "" : ", ", "[0:1]");
  }
  return StrCat(text.substr(0, root), line, "  kept = ", shape, " opt-barrier(", name, ")\n",
                tuple ? StrCat("  first = ", first, " get-tuple-element(kept), index=0\n") : "",
                "  ROOT some = ", first.substr(0, first.find('[')), "[", ones, "]", layout, " slice(",
                tuple ? "first" : "kept", "), slice={", slices, "}\n}");
}

std::string SmallStepsText(int64_t count) {
  std::string text = R"(HloModule small_steps
ENTRY main {
  x0 = f32[2,2]{1,0} parameter(0)
  w = f32[2,2]{1,0} parameter(1)
)";
  for (int64_t i = 1; i <= count; ++i) {
    StrAppend(&text, "  ", i == count ? "ROOT " : "", "x", i, " = f32[2,2]{1,0} dot(x", i - 1,
              ", w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  }
  return text + "}";
}

}  // namespace hlokit::bench
