// SPDX-License-Identifier: Apache-2.0
// A Python number, whose kind determines type promotion.
#ifndef HLOKIT_TRACER_GRAPH_SCALAR_H_
#define HLOKIT_TRACER_GRAPH_SCALAR_H_

#include <cstdint>
#include <limits>

namespace hlokit::lazy {

class Scalar {
 public:
  enum class Kind : uint8_t { kBool, kInt, kFloat };

  Scalar() = default;
  Scalar(bool v) : kind_(Kind::kBool), i_(v) {}     // NOLINT: numbers stand for scalars
  Scalar(int v) : i_(v) {}                          // NOLINT
  Scalar(int64_t v) : i_(v) {}                      // NOLINT
  Scalar(double v) : kind_(Kind::kFloat), d_(v) {}  // NOLINT

  Kind kind() const { return kind_; }
  bool is_float() const { return kind_ == Kind::kFloat; }
  double ToDouble() const { return is_float() ? d_ : static_cast<double>(i_); }
  // Returns the integer part. Saturates outside the range of int64; NaN gives 0.
  int64_t ToInt() const {
    if (!is_float()) return i_;
    if (!(d_ >= -9.2e18)) return d_ < 0 ? std::numeric_limits<int64_t>::min() : 0;
    return d_ >= 9.2e18 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(d_);
  }
  bool ToBool() const { return is_float() ? d_ != 0 : i_ != 0; }
  bool Is(double v) const { return ToDouble() == v; }
  // Returns the same number as a float, or itself if no double is equal.
  Scalar AsFloatIfExact() const {
    constexpr int64_t kMaxExact = int64_t{1} << 53;
    return is_float() || i_ > kMaxExact || i_ < -kMaxExact ? *this : Scalar(static_cast<double>(i_));
  }
  Scalar operator-() const {
    return is_float() ? Scalar(-d_) : Scalar(static_cast<int64_t>(-static_cast<uint64_t>(i_)));
  }

 private:
  Kind kind_ = Kind::kInt;
  union {
    int64_t i_ = 0;
    double d_;
  };
};

inline Scalar operator*(Scalar a, Scalar b) {
  if (a.is_float() || b.is_float()) return a.ToDouble() * b.ToDouble();
  return static_cast<int64_t>(static_cast<uint64_t>(a.ToInt()) * static_cast<uint64_t>(b.ToInt()));
}

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_SCALAR_H_
