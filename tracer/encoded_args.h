// How a node keeps the arguments of its op: one list of int64 that is interned, so nodes with equal arguments share it.
// For each argument of the schema a head word (tag | count << 8) and its payload:
//   kNone          nothing                 kOperand       the next operand (a tensor, or a number that is a node)
//   kOperandList   count presence words: 1 the next operand, 0 none
//   kInt, kBool    the value               kFloat         the bits of the double
//   kInts          count values            kFloats        bits of count doubles
//   kString        count bytes, in ceil(count / 8) words        kDtype  the element type
#ifndef HLOKIT_TRACER_ENCODED_ARGS_H_
#define HLOKIT_TRACER_ENCODED_ARGS_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "ir/element_type.h"
#include "tracer/scalar.h"

namespace hlokit::lazy {

enum class ArgTag : uint8_t { kNone, kOperand, kOperandList, kInt, kBool, kFloat, kInts, kFloats, kString, kDtype };

// One decoded argument. `payload` points into the interned list.
struct EncodedArg {
  ArgTag tag = ArgTag::kNone;
  uint32_t count = 0;
  uint32_t operand = 0;  // index of the first operand it stands for
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
  using Words = absl::InlinedVector<int64_t, 32>;

  void None() { Head(ArgTag::kNone, 0); }
  void Operand() { Head(ArgTag::kOperand, 0); }
  void OperandList(absl::Span<const int64_t> present) { List(ArgTag::kOperandList, present); }
  void Number(Scalar s) {
    if (s.is_float()) {
      Head(ArgTag::kFloat, 0);
      words_.push_back(Bits(s.ToDouble()));
    } else {
      Head(s.kind() == Scalar::Kind::kBool ? ArgTag::kBool : ArgTag::kInt, 0);
      words_.push_back(s.ToInt());
    }
  }
  void Ints(absl::Span<const int64_t> values) { List(ArgTag::kInts, values); }
  void Floats(absl::Span<const double> values) {
    Head(ArgTag::kFloats, values.size());
    for (double v : values) words_.push_back(Bits(v));
  }
  void String(const std::string& s) {
    Head(ArgTag::kString, s.size());
    const size_t begin = words_.size();
    words_.resize(begin + (s.size() + 7) / 8);
    if (!s.empty()) std::memcpy(&words_[begin], s.data(), s.size());
  }
  void Dtype(ElementType t) {
    Head(ArgTag::kDtype, 0);
    words_.push_back(static_cast<int64_t>(t));
  }
  absl::Span<const int64_t> words() const { return words_; }

 private:
  static int64_t Bits(double d) {
    int64_t bits;
    std::memcpy(&bits, &d, sizeof(bits));
    return bits;
  }
  void Head(ArgTag tag, size_t count) {
    words_.push_back(static_cast<int64_t>(tag) | static_cast<int64_t>(count) << 8);
  }
  void List(ArgTag tag, absl::Span<const int64_t> values) {
    Head(tag, values.size());
    words_.insert(words_.end(), values.begin(), values.end());
  }

  Words words_;
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

#endif  // HLOKIT_TRACER_ENCODED_ARGS_H_
