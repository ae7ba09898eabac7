// SPDX-License-Identifier: Apache-2.0
#include "check/comparison/value_comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "interp/observers/value_summary.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

constexpr double kInfiniteDistance = std::numeric_limits<double>::infinity();

// Distance between two numbers by each measure; infinite if no finite distance exists.
struct Distance {
  double ulp = 0;
  double rel = 0;
  double abs = 0;
};

template <typename T>
struct BitsOfFloat {
  using type = decltype(T().bits());
};
template <>
struct BitsOfFloat<float> {
  using type = uint32_t;
};
template <>
struct BitsOfFloat<double> {
  using type = uint64_t;
};

// Returns the rank of a float among all values of its type; -0 and +0 have the same rank.
template <typename T>
int64_t Rank(T v) {
  using Bits = typename BitsOfFloat<T>::type;
  const Bits bits = std::bit_cast<Bits>(v);
  if constexpr (!std::numeric_limits<T>::is_signed) {
    return bits;
  } else {
    int width = static_cast<int>(sizeof(Bits)) * 8;
    if constexpr (SoftFloat<T> && sizeof(T) == 1) width = T::kBits;
    const Bits sign = static_cast<Bits>(Bits{1} << (width - 1));
    const int64_t magnitude = static_cast<int64_t>(bits & static_cast<Bits>(sign - 1));
    return (bits & sign) != 0 ? -magnitude : magnitude;
  }
}

template <typename T>
Distance Between(T a, T expected) {
  if constexpr (AnyFloat<T>) {
    const double x = static_cast<double>(a);
    const double y = static_cast<double>(expected);
    if (std::isnan(x) || std::isnan(y)) {
      return std::isnan(x) && std::isnan(y) ? Distance()
                                            : Distance{kInfiniteDistance, kInfiniteDistance, kInfiniteDistance};
    }
    if (std::isinf(x) || std::isinf(y))
      return x == y ? Distance() : Distance{kInfiniteDistance, kInfiniteDistance, kInfiniteDistance};
    const double off = std::fabs(x - y);
    // Ranks of f64 are up to 2^64 apart.
    const uint64_t from = static_cast<uint64_t>(Rank(expected));
    const uint64_t to = static_cast<uint64_t>(Rank(a));
    const uint64_t steps = Rank(a) > Rank(expected) ? to - from : from - to;
    return {static_cast<double>(steps), off == 0 ? 0 : y == 0 ? kInfiniteDistance : off / std::fabs(y), off};
  } else if constexpr (std::is_same_v<T, bool>) {
    const double off = a == expected ? 0 : 1;
    return {off, off == 0 ? 0 : kInfiniteDistance, off == 0 ? 0 : kInfiniteDistance};
  } else {
    static_assert(AnyInteger<T>);
    const auto wide = [](T v) {
      if constexpr (std::numeric_limits<T>::is_signed) {
        return static_cast<uint64_t>(static_cast<int64_t>(v));
      } else {
        return static_cast<uint64_t>(v);
      }
    };
    const uint64_t steps = a > expected ? wide(a) - wide(expected) : wide(expected) - wide(a);
    const double off = static_cast<double>(steps);
    double of;
    if constexpr (std::numeric_limits<T>::is_signed) {
      of = std::fabs(static_cast<double>(static_cast<int64_t>(expected)));
    } else {
      of = static_cast<double>(wide(expected));
    }
    return {off, off == 0 ? 0 : of == 0 ? kInfiniteDistance : off / of, off};
  }
}

template <typename T>
bool IsNanValue(T v) {
  if constexpr (AnyFloat<T>) {
    return std::isnan(static_cast<double>(v));
  } else {
    return false;
  }
}

template <typename T>
bool SameBits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (IsNanValue(a) && IsNanValue(b));
}

bool Near(const Distance& d, const ErrorSpec& t) {
  return (t.ulp && d.ulp <= *t.ulp) || (t.relative && d.rel <= *t.relative) || (t.absolute && d.abs <= *t.absolute);
}

double Measure(const Distance& d, const ErrorSpec& t) {
  if (t.ulp || t.is_exact()) return d.ulp;
  return t.relative ? d.rel : d.abs;
}

// Largest difference so far.
struct Worst {
  int64_t different = 0;
  double max_ulp = 0, max_absolute = 0;  // of all elements
  double measure = -1;
  size_t leaf = 0;
  int64_t element = 0;
  Distance distance;
};

// Compares one component: an element of a real type, or one half of a complex number.
template <typename T>
void ComparePart(const T& a, const T& expected, const ErrorSpec& tolerance, bool* near, Distance* worst) {
  if (std::memcmp(&a, &expected, sizeof(T)) == 0) return;
  const Distance d = Between(a, expected);
  if (Measure(d, tolerance) > Measure(*worst, tolerance)) *worst = d;
  *near = *near && (tolerance.is_exact() ? SameBits(a, expected) : Near(d, tolerance));
}

template <typename T>
void CompareLeaf(const Literal& actual, const Literal& expected, size_t leaf, const ErrorSpec& tolerance,
                 Worst* worst) {
  const T* a = reinterpret_cast<const T*>(actual.data());
  const T* e = reinterpret_cast<const T*>(expected.data());
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    bool near = true;
    Distance distance;
    if constexpr (AnyComplex<T>) {
      ComparePart(a[i].real(), e[i].real(), tolerance, &near, &distance);
      ComparePart(a[i].imag(), e[i].imag(), tolerance, &near, &distance);
    } else {
      ComparePart(a[i], e[i], tolerance, &near, &distance);
    }
    if (distance.abs < kInfiniteDistance) {
      worst->max_ulp = std::max(worst->max_ulp, distance.ulp);
      worst->max_absolute = std::max(worst->max_absolute, distance.abs);
    }
    if (near) continue;
    ++worst->different;
    const double measure = Measure(distance, tolerance);
    if (measure <= worst->measure) continue;
    worst->measure = measure;
    worst->leaf = leaf;
    worst->element = i;
    worst->distance = distance;
  }
}

std::string Describe(const Literal& actual, const Literal& expected, const Worst& worst) {
  const Shape shape = actual.shape();
  std::string text = StrCat("result ", worst.leaf);
  if (shape.rank() != 0) StrAppend(&text, ", element ", IndexToString(shape, worst.element));
  StrAppend(&text, " of ", ToString(shape, /*with_layout=*/false), ": ",
            ElementToString(shape, actual.data(), worst.element), ", expected ",
            ElementToString(shape, expected.data(), worst.element));
  if (ClassOf(shape.element_type()) != ElementClass::kPred && worst.distance.abs < kInfiniteDistance) {
    StrAppend(&text, " (off by ", FormatDouble(worst.distance.abs, 4));
    if (worst.distance.rel < kInfiniteDistance)
      StrAppend(&text, ", ", FormatDouble(worst.distance.rel, 4), " of the expected value");
    if (!IsInteger(shape.element_type())) StrAppend(&text, ", ", FormatDouble(worst.distance.ulp, 4), " ulp");
    StrAppend(&text, ")");
  }
  return text;
}

}  // namespace

absl::StatusOr<ErrorSpec> ParseErrorSpec(std::string_view text) {
  ErrorSpec tolerance;
  if (text == "exact") return tolerance;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t colon = part.find(':');
    // A number alone is a relative bound.
    const std::string number(part.substr(colon == std::string_view::npos ? 0 : colon + 1));
    char* number_end = nullptr;
    const double value = std::strtod(number.c_str(), &number_end);
    const std::string_view name = colon == std::string_view::npos ? "rel" : part.substr(0, colon);
    std::optional<double>* bound = name == "ulp"   ? &tolerance.ulp
                                   : name == "rel" ? &tolerance.relative
                                   : name == "abs" ? &tolerance.absolute
                                                   : nullptr;
    const bool is_bound = std::isfinite(value) && value >= 0;
    if (bound == nullptr || bound->has_value() || number.empty() || *number_end != '\0' || !is_bound) {
      return absl::InvalidArgumentError(
          StrCat("tolerance `", text,
                 "`: expected exact, a relative bound, or ulp:N, rel:X, abs:X (several separated by commas)"));
    }
    *bound = value;
  }
  return tolerance;
}

absl::StatusOr<ValueDifference> CompareValues(absl::Span<const Literal> actual, absl::Span<const Literal> expected,
                                              const ErrorSpec& tolerance) {
  return CompareValuesByType(actual, expected, [&](ElementType) { return tolerance; });
}

absl::StatusOr<ValueDifference> CompareValuesByType(absl::Span<const Literal> actual,
                                                    absl::Span<const Literal> expected,
                                                    const std::function<ErrorSpec(ElementType)>& tolerance_of) {
  if (actual.size() != expected.size()) {
    return absl::InvalidArgumentError(StrCat("there are ", actual.size(), " results, expected ", expected.size()));
  }
  ValueDifference difference;
  Worst worst;
  for (size_t leaf = 0; leaf < actual.size(); ++leaf) {
    const Shape shape = actual[leaf].shape();
    if (!SameShape(shape, expected[leaf].shape(), /*ignore_layout=*/true)) {
      return absl::InvalidArgumentError(StrCat("result ", leaf, " has shape ", ToString(shape, /*with_layout=*/false),
                                               ", expected ", ToString(expected[leaf].shape(), /*with_layout=*/false)));
    }
    if (!shape.IsArray()) continue;
    difference.elements += shape.element_count();
    const ErrorSpec tolerance = tolerance_of(shape.element_type());
    VisitType(shape.element_type(), [&]<typename T>(std::type_identity<T>) {
      CompareLeaf<T>(actual[leaf], expected[leaf], leaf, tolerance, &worst);
    });
  }
  difference.different = worst.different;
  difference.max_ulp = worst.max_ulp;
  difference.max_absolute = worst.max_absolute;
  if (worst.different == 0) return difference;
  difference.leaf = worst.leaf;
  difference.element = worst.element;
  const Shape shape = actual[worst.leaf].shape();
  difference.actual = ElementToString(shape, actual[worst.leaf].data(), worst.element);
  difference.expected = ElementToString(shape, expected[worst.leaf].data(), worst.element);
  difference.ulp = worst.distance.ulp;
  difference.relative = worst.distance.rel;
  difference.absolute = worst.distance.abs;
  difference.description = Describe(actual[worst.leaf], expected[worst.leaf], worst);
  return difference;
}

}  // namespace hlokit::interp
