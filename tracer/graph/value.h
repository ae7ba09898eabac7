// SPDX-License-Identifier: Apache-2.0
// An argument of an op: none, a tensor, a list of tensors, a number, a list of numbers, text, an element type.
#ifndef HLOKIT_TRACER_GRAPH_VALUE_H_
#define HLOKIT_TRACER_GRAPH_VALUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "ir/types/element_type.h"
#include "tracer/graph/scalar.h"
#include "tracer/graph/tensor.h"

namespace hlokit::lazy {

class IValue {
 public:
  using Storage =
      std::variant<std::monostate, Tensor, Tensors, Scalar, IntList, std::vector<double>, std::string, ElementType>;
  // In the order of Storage.
  enum class Kind : uint8_t { kNone, kTensor, kTensors, kScalar, kInts, kFloats, kString, kType };

  IValue() = default;
  IValue(Tensor t) {  // NOLINT: arguments are written as they are; a tensor that is not there is None
    if (t.defined()) v_ = std::move(t);
  }
  IValue(Tensors t) : v_(std::move(t)) {}              // NOLINT
  IValue(Scalar s) : v_(s) {}                          // NOLINT
  IValue(bool s) : v_(Scalar(s)) {}                    // NOLINT
  IValue(int s) : v_(Scalar(s)) {}                     // NOLINT
  IValue(int64_t s) : v_(Scalar(s)) {}                 // NOLINT
  IValue(double s) : v_(Scalar(s)) {}                  // NOLINT
  IValue(IntList l) : v_(std::move(l)) {}              // NOLINT
  IValue(Dims l) : v_(IntList(l.begin(), l.end())) {}  // NOLINT
  IValue(DimList l) {                                  // NOLINT
    if (!l.none()) v_ = std::move(l).values();
  }
  IValue(const std::vector<int64_t>& l) : v_(IntList(l.begin(), l.end())) {}  // NOLINT
  IValue(std::vector<double> l) : v_(std::move(l)) {}                         // NOLINT
  IValue(std::string s) : v_(std::move(s)) {}                                 // NOLINT
  IValue(const char* s) : v_(std::string(s)) {}                               // NOLINT
  IValue(std::string_view s) : v_(std::string(s)) {}                          // NOLINT
  template <typename T>
  IValue(const std::optional<T>& v) {  // NOLINT
    if (v) *this = IValue(*v);
  }
  IValue(ElementType t) : v_(t) {}  // NOLINT

  Kind kind() const { return static_cast<Kind>(v_.index()); }
  bool none() const { return kind() == Kind::kNone; }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&v_);
  }
  template <typename T>
  T* get() {
    return std::get_if<T>(&v_);
  }

 private:
  Storage v_;
};

inline constexpr size_t kArgsInline = 5;
using Args = absl::InlinedVector<IValue, kArgsInline>;
// Results of an op. A list output has one entry for each element.
using Outputs = absl::InlinedVector<Tensor, 3>;

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_VALUE_H_
