// SPDX-License-Identifier: Apache-2.0
// The loop of DecodeText: each trip normalizes, projects to query, key and value, writes key and value into the caches,
// attends to all positions so far, and feeds forward, in every layer; the most probable token is the next input.
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/engine/programs.h"
#include "ir/core/str_cat.h"

namespace hlokit::bench {
namespace {

using absl::StrFormat;

class DecodeWriter {
 public:
  explicit DecodeWriter(const DecodeSizes& sizes) : s_(sizes) {}

  std::string Write() {
    Element("s32[]");
    Element("s32[]");
    embedding_ = Element(StrFormat("f32[%d,%d]{1,0}", s_.vocabulary, s_.hidden));
    for (int64_t layer = 0; layer < s_.layers; ++layer) {
      for (int i = 0; i < 4; ++i) Element(StrFormat("f32[%d,%d]{1,0}", s_.hidden, s_.hidden));
      for (int i = 0; i < 2; ++i) Element(StrFormat("f32[%d,%d]{1,0}", s_.hidden, s_.feed_forward));
      Element(StrFormat("f32[%d,%d]{1,0}", s_.feed_forward, s_.hidden));
      for (int i = 0; i < 2; ++i) Element(StrFormat("f32[%d,%d]{1,0}", s_.positions, s_.hidden));
    }
    std::string state = "(";
    for (size_t i = 0; i < shapes_.size(); ++i) StrAppend(&state, i == 0 ? "" : ", ", shapes_[i]);
    state += ")";
    std::string text =
        StrCat(kStart, "more {\n  state = ", state,
               " parameter(0)\n  trip = s32[] get-tuple-element(state), index=0\n  trips = s32[] constant(", s_.tokens,
               ")\n  ROOT go_on = pred[] compare(trip, trips), direction=LT\n}\n");
    WriteBody();
    StrAppend(&text, "step {\n  state = ", state, " parameter(0)\n", body_, "  ROOT next = ", state, " tuple(");
    for (size_t i = 0; i < shapes_.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", values_[i]);
    StrAppend(&text, ")\n}\n\nENTRY main {\n  e0 = s32[] constant(0)\n");
    for (size_t i = 1; i < shapes_.size(); ++i) {
      StrAppend(&text, "  e", i, " = ", shapes_[i], " parameter(", i - 1, ")\n");
    }
    StrAppend(&text, "  start = ", state, " tuple(");
    for (size_t i = 0; i < shapes_.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", "e", i);
    StrAppend(&text, ")\n  end = ", state,
              " while(start), condition=more, body=step\n  ROOT token = s32[] get-tuple-element(end), index=1\n}");
    return text;
  }

 private:
  static constexpr char kStart[] = R"(HloModule decode

plus {
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT sum = f32[] add(left, right)
}

larger {
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT max = f32[] maximum(left, right)
}

first_largest {
  value = f32[] parameter(0)
  index = s32[] parameter(1)
  other = f32[] parameter(2)
  other.index = s32[] parameter(3)
  keep = pred[] compare(value, other), direction=GE
  best = f32[] select(keep, value, other)
  best.index = s32[] select(keep, index, other.index)
  ROOT pair = (f32[], s32[]) tuple(best, best.index)
}

)";

  size_t Element(std::string shape) {
    shapes_.push_back(std::move(shape));
    values_.push_back(StrCat("s", values_.size()));
    return shapes_.size() - 1;
  }

  // Appends an instruction and returns its name.
  std::string Add(const std::string& shape, const std::string& rest) {
    std::string name = StrCat("v", next_++);
    StrAppend(&body_, "  ", name, " = ", shape, " ", rest, "\n");
    return name;
  }
  std::string Row(int64_t n) const { return StrFormat("f32[1,%d]{1,0}", n); }
  std::string Product(const std::string& x, const std::string& weights, int64_t columns) {
    return Add(Row(columns), StrCat("dot(", x, ", ", weights, "), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
  }
  std::string Wide(const std::string& x, const std::string& shape, const std::string& dims) {
    return Add(shape, StrCat("broadcast(", x, "), dimensions={", dims, "}"));
  }
  // Divides by the root mean square.
  std::string Normal(const std::string& x) {
    const std::string row = Row(s_.hidden);
    const std::string squares = Add(row, StrCat("multiply(", x, ", ", x, ")"));
    const std::string sum = Add("f32[1]{0}", StrCat("reduce(", squares, ", zero), dimensions={1}, to_apply=plus"));
    const std::string mean = Add("f32[1]{0}", StrCat("multiply(", sum, ", ", Wide("share", "f32[1]{0}", ""), ")"));
    const std::string factor = Add("f32[1]{0}", StrCat("rsqrt(", mean, ")"));
    return Add(row, StrCat("multiply(", x, ", ", Wide(factor, row, "0"), ")"));
  }

  void WriteBody() {
    for (size_t i = 0; i < shapes_.size(); ++i) {
      StrAppend(&body_, "  s", i, " = ", shapes_[i], " get-tuple-element(state), index=", i, "\n");
    }
    StrAppend(
        &body_, "  zero = f32[] constant(0)\n  lowest = f32[] constant(-inf)\n  no = s32[] constant(0)\n",
        StrFormat("  one = s32[] constant(1)\n  share = f32[] constant(%.9g)\n", 1.0 / static_cast<double>(s_.hidden)));
    const std::string row = Row(s_.hidden), table = values_[embedding_];
    std::string x = Add(row, StrFormat("dynamic-slice(%s, s1, no), dynamic_slice_sizes={1,%d}", table, s_.hidden));
    for (int64_t layer = 0; layer < s_.layers; ++layer) x = Layer(x, static_cast<size_t>(layer));
    const std::string logits = Add(Row(s_.vocabulary), StrCat("dot(", Normal(x), ", ", table,
                                                              "), lhs_contracting_dims={1}, rhs_contracting_dims={1}"));
    const std::string numbers = Add(StrFormat("s32[1,%d]{1,0}", s_.vocabulary), "iota(), iota_dimension=1");
    const std::string best =
        Add("(f32[1]{0}, s32[1]{0})",
            StrCat("reduce(", logits, ", ", numbers, ", lowest, no), dimensions={1}, to_apply=first_largest"));
    values_[0] = Add("s32[]", "add(s0, one)");
    values_[1] =
        Add("s32[]", StrCat("reshape(", Add("s32[1]{0}", StrCat("get-tuple-element(", best, "), index=1")), ")"));
  }

  std::string Layer(const std::string& x, size_t layer) {
    const size_t first = embedding_ + 1 + layer * 9;
    const auto weights = [&](size_t i) { return values_[first + i]; };
    const std::string row = Row(s_.hidden);
    const std::string in = Normal(x);
    const std::string query = Product(in, weights(0), s_.hidden);
    for (size_t i = 0; i < 2; ++i) {
      const std::string made = Product(in, weights(1 + i), s_.hidden);
      values_[first + 7 + i] =
          Add(shapes_[first + 7 + i], StrCat("dynamic-update-slice(", weights(7 + i), ", ", made, ", s0, no)"));
    }
    // One head of 64 for each 64 columns.
    const int64_t heads = s_.hidden / 64;
    const std::string scores_shape = StrFormat("f32[%d,%d]{1,0}", heads, s_.positions);
    const std::string cache = StrFormat("f32[%d,%d,64]{2,1,0}", s_.positions, heads);
    const std::string query_heads = Add(StrFormat("f32[%d,64]{1,0}", heads), StrCat("reshape(", query, ")"));
    const std::string keys = Add(cache, StrCat("reshape(", values_[first + 7], ")"));
    const std::string cached = Add(cache, StrCat("reshape(", values_[first + 8], ")"));
    std::string scores =
        Add(scores_shape, StrCat("dot(", query_heads, ", ", keys,
                                 "), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={1}, "
                                 "rhs_contracting_dims={2}"));
    const std::string integers = StrFormat("s32[%d,%d]{1,0}", heads, s_.positions);
    const std::string masks = StrFormat("pred[%d,%d]{1,0}", heads, s_.positions);
    const std::string reached = Add(masks, StrCat("compare(", Add(integers, "iota(), iota_dimension=1"), ", ",
                                                  Wide("s0", integers, ""), "), direction=LE"));
    scores = Add(scores_shape, StrCat("select(", reached, ", ", scores, ", ", Wide("lowest", scores_shape, ""), ")"));
    const std::string by_head = StrFormat("f32[%d]{0}", heads);
    const std::string largest = Add(by_head, StrCat("reduce(", scores, ", lowest), dimensions={1}, to_apply=larger"));
    const std::string below =
        Add(scores_shape, StrCat("subtract(", scores, ", ", Wide(largest, scores_shape, "0"), ")"));
    const std::string powers = Add(scores_shape, StrCat("exponential(", below, ")"));
    const std::string sum = Add(by_head, StrCat("reduce(", powers, ", zero), dimensions={1}, to_apply=plus"));
    const std::string shares = Add(scores_shape, StrCat("divide(", powers, ", ", Wide(sum, scores_shape, "0"), ")"));
    const std::string mixed =
        Add(StrFormat("f32[%d,64]{1,0}", heads),
            StrCat("dot(", shares, ", ", cached,
                   "), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
    const std::string attended = Add(
        row, StrCat("add(", x, ", ", Product(Add(row, StrCat("reshape(", mixed, ")")), weights(3), s_.hidden), ")"));
    const std::string wide = Row(s_.feed_forward), fed = Normal(attended);
    const std::string gate = Product(fed, weights(4), s_.feed_forward), up = Product(fed, weights(5), s_.feed_forward);
    const std::string open = Add(wide, StrCat("multiply(", gate, ", ", Add(wide, StrCat("logistic(", gate, ")")), ")"));
    const std::string passed = Add(wide, StrCat("multiply(", open, ", ", up, ")"));
    return Add(row, StrCat("add(", attended, ", ", Product(passed, weights(6), s_.hidden), ")"));
  }

  const DecodeSizes s_;
  std::vector<std::string> shapes_;  // of the state
  std::vector<std::string> values_;  // of the next state
  size_t embedding_ = 0;
  std::string body_;
  int64_t next_ = 0;
};

}  // namespace

std::string DecodeText(const DecodeSizes& sizes) { return DecodeWriter(sizes).Write(); }

}  // namespace hlokit::bench
