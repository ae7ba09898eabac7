// SPDX-License-Identifier: Apache-2.0
// Encoding of the arguments of a node's op: one interned list of int64, shared by nodes with equal arguments.
// Each argument of the schema has a header word (tag | count << 8) and its payload:
//   kNone          nothing                 kOperand       the next operand (a tensor, or a number that is a node)
//   kOperandList   count presence words: 1 the next operand, 0 none
//   kInt, kBool    the value               kFloat         the bits of the double
//   kInts          count values            kFloats        bits of count doubles
//   kString        count bytes, in ceil(count / 8) words        kDtype  the element type
#ifndef HLOKIT_TRACER_GRAPH_ENCODED_ARGS_H_
#define HLOKIT_TRACER_GRAPH_ENCODED_ARGS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "ir/types/element_type.h"
#include "tracer/graph/scalar.h"

namespace hlokit::lazy {

enum class ArgTag : uint8_t { kNone, kOperand, kOperandList, kInt, kBool, kFloat, kInts, kFloats, kString, kDtype };

// One decoded argument. `payload` points into the interned list.
struct EncodedArg {
  ArgTag tag = ArgTag::kNone;
  uint32_t count = 0;
  uint32_t operand = 0;  // index of its first operand
  const int64_t* payload = nullptr;

  Scalar scalar() const {
    if (tag == ArgTag::kFloat) {
      double d;
      std::memcpy(&d, payload, sizeof(d));
      return d;
    }
    if (tag == ArgTag::kBool) return *payload != 0;
    return *payload;
  }
  absl::Span<const int64_t> ints() const { return {payload, count}; }
  double float_at(size_t i) const {
    double d;
    std::memcpy(&d, payload + i, sizeof(d));
    return d;
  }
  std::string string() const { return std::string(reinterpret_cast<const char*>(payload), count); }
  ElementType dtype() const { return static_cast<ElementType>(*payload); }
};

class ArgEncoder {
 public:
  ArgEncoder() = default;
  ArgEncoder(const ArgEncoder&) = delete;
  ArgEncoder& operator=(const ArgEncoder&) = delete;

  void None() { Header(ArgTag::kNone, 0); }
  void Operand() { Header(ArgTag::kOperand, 0); }
  void OperandList(absl::Span<const int64_t> present) { List(ArgTag::kOperandList, present); }
  void Number(Scalar s) {
    if (s.is_float()) {
      Header(ArgTag::kFloat, 0);
      *Reserve(1) = Bits(s.ToDouble());
    } else {
      Header(s.kind() == Scalar::Kind::kBool ? ArgTag::kBool : ArgTag::kInt, 0);
      *Reserve(1) = s.ToInt();
    }
  }
  void Ints(absl::Span<const int64_t> values) { List(ArgTag::kInts, values); }
  void Floats(absl::Span<const double> values) {
    Header(ArgTag::kFloats, values.size());
    int64_t* at = Reserve(values.size());
    for (double v : values) *at++ = Bits(v);
  }
  void String(const std::string& s) {
    Header(ArgTag::kString, s.size());
    if (s.empty()) return;
    const size_t words = (s.size() + 7) / 8;
    int64_t* const at = Reserve(words);
    at[words - 1] = 0;
    std::memcpy(at, s.data(), s.size());
  }
  void Dtype(ElementType t) {
    Header(ArgTag::kDtype, 0);
    *Reserve(1) = static_cast<int64_t>(t);
  }
  absl::Span<const int64_t> words() const { return {begin_, static_cast<size_t>(end_ - begin_)}; }

 private:
  static int64_t Bits(double d) {
    if (d != d) d = std::numeric_limits<double>::quiet_NaN();  // all are printed alike
    int64_t bits;
    std::memcpy(&bits, &d, sizeof(bits));
    return bits;
  }
  void Header(ArgTag tag, size_t count) { *Reserve(1) = static_cast<int64_t>(tag) | static_cast<int64_t>(count) << 8; }
  void List(ArgTag tag, absl::Span<const int64_t> values) {
    Header(tag, values.size());
    std::copy(values.begin(), values.end(), Reserve(values.size()));
  }
  // Appends `n` uninitialized words, which the caller writes.
  int64_t* Reserve(size_t n) {
    if (static_cast<size_t>(limit_ - end_) < n) Grow(n);
    return std::exchange(end_, end_ + n);
  }
  [[gnu::noinline]] void Grow(size_t n) {
    const size_t size = words().size();
    std::vector<int64_t> more(2 * (size + n));
    std::copy(begin_, end_, more.begin());
    heap_words_.swap(more);
    begin_ = heap_words_.data();
    end_ = begin_ + size;
    limit_ = begin_ + heap_words_.size();
  }

  int64_t inline_words_[40];
  std::vector<int64_t> heap_words_;  // replaces inline_words_ if those do not suffice
  int64_t* begin_ = inline_words_;
  int64_t* end_ = inline_words_;
  int64_t* limit_ = inline_words_ + 40;
};

using EncodedArgs = absl::InlinedVector<EncodedArg, 10>;

inline EncodedArgs DecodeArgs(absl::Span<const int64_t> words) {
  EncodedArgs args;
  uint32_t operand = 0;
  for (size_t i = 0; i < words.size();) {
    EncodedArg arg;
    arg.tag = static_cast<ArgTag>(words[i] & 0xff);
    arg.count = static_cast<uint32_t>(words[i] >> 8);
    arg.operand = operand;
    arg.payload = words.data() + ++i;
    switch (arg.tag) {
      case ArgTag::kNone:
        break;
      case ArgTag::kOperand:
        ++operand;
        break;
      case ArgTag::kOperandList:
        for (uint32_t k = 0; k < arg.count; ++k) operand += arg.payload[k] != 0;
        i += arg.count;
        break;
      case ArgTag::kInt:
      case ArgTag::kBool:
      case ArgTag::kFloat:
      case ArgTag::kDtype:
        ++i;
        break;
      case ArgTag::kInts:
      case ArgTag::kFloats:
        i += arg.count;
        break;
      case ArgTag::kString:
        i += (arg.count + 7) / 8;
        break;
    }
    args.push_back(arg);
  }
  return args;
}

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_ENCODED_ARGS_H_
