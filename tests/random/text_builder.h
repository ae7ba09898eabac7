// SPDX-License-Identifier: Apache-2.0
// Builds the text of a module value by value.
#ifndef HLOKIT_TESTS_RANDOM_TEXT_BUILDER_H_
#define HLOKIT_TESTS_RANDOM_TEXT_BUILDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/types/element_type.h"

namespace hlokit::random_test {

// SplitMix64: the same numbers on every platform.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Returns a number in [low, high].
  int64_t In(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int64_t n) { return In(1, n) == 1; }
  template <typename T>
  const T& Of(const std::vector<T>& list) {
    return list[static_cast<size_t>(In(0, static_cast<int64_t>(list.size()) - 1))];
  }

 private:
  uint64_t state_;
};

using Dims = std::vector<int64_t>;

struct Array {
  ElementType type = ElementType::kF32;
  Dims dims;
  friend bool operator==(const Array&, const Array&) = default;
};

struct Value {
  std::string name;
  Array array;
};

inline std::string List(const Dims& dims) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i) StrAppend(&text, i == 0 ? "" : ",", dims[i]);
  return text;
}
inline std::string Text(const Array& a) { return StrCat(ToString(a.type), "[", List(a.dims), "]"); }

// One computation: lines, and the arrays available to later ones.
struct Region {
  std::string lines;
  std::vector<Value> values;
};

}  // namespace hlokit::random_test

#endif  // HLOKIT_TESTS_RANDOM_TEXT_BUILDER_H_
