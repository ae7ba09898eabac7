#include "interp/reference/kernels/sort_keys.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "ir/float_types.h"

namespace hlokit::interp {
namespace {

// Bits of a float as an unsigned integer that grows with the float: negative values are flipped, others get the top
// bit.
uint64_t FloatKey(float v, bool total_order) {
  if (!total_order) {
    if (v != v) return 0xffffffffu;
    if (v == 0) v = 0;  // of either sign
  }
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
uint64_t FloatKey(double v, bool total_order) {
  if (!total_order) {
    if (v != v) return ~uint64_t{0};
    if (v == 0) v = 0;
  }
  const uint64_t bits = std::bit_cast<uint64_t>(v);
  return bits >> 63 != 0 ? ~bits : bits | uint64_t{1} << 63;
}

}  // namespace

bool KeyOrder::Supported() const { return IsArrayType(type) && !IsComplex(type); }

void KeyOrder::MakeKeys(const std::byte* elements, int64_t stride, int64_t n, uint64_t* keys) const {
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    const T* x = reinterpret_cast<const T*>(elements);
    if constexpr (AnyFloat<T>) {
      using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const uint64_t mask = sizeof(F) == 4 ? 0xffffffffu : ~uint64_t{0};
      for (int64_t i = 0; i < n; ++i) {
        const F v = static_cast<F>(x[i * stride]);
        uint64_t key = FloatKey(v, total_order);
        // NaNs stay last in both directions unless the order is total.
        if (descending && (total_order || v == v)) key = ~key & mask;
        keys[i] = key;
      }
    } else if constexpr (!AnyComplex<T>) {
      const bool flip = IsSigned(type);
      const uint64_t mask = ~uint64_t{0} >> (64 - 8 * sizeof(T));
      for (int64_t i = 0; i < n; ++i) {
        uint64_t key = static_cast<uint64_t>(static_cast<int64_t>(x[i * stride])) & mask;
        if (flip) key ^= uint64_t{1} << (8 * sizeof(T) - 1);
        keys[i] = descending ? ~key & mask : key;
      }
    }
  });
}

const std::vector<uint32_t>& KeySorter::Sort(std::vector<uint64_t>& keys) {
  const size_t n = keys.size();
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0);
  constexpr size_t kRadixFrom = 256;
  if (n < kRadixFrom) {
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
    return order_;
  }
  // Least significant digit first, 8 bits at a time. One pass counts all digits; digits that are the same everywhere
  // need no pass of their own.
  std::array<std::array<uint32_t, 256>, 8> counts{};
  for (uint64_t key : keys) {
    for (int d = 0; d < 8; ++d) ++counts[d][(key >> (8 * d)) & 0xff];
  }
  other_order_.resize(n);
  other_keys_.resize(n);
  for (int d = 0; d < 8; ++d) {
    std::array<uint32_t, 256>& count = counts[d];
    if (count[(keys[0] >> (8 * d)) & 0xff] == n) continue;
    uint32_t begin = 0;
    for (uint32_t& c : count) {
      const uint32_t size = c;
      c = begin;
      begin += size;
    }
    for (size_t i = 0; i < n; ++i) {
      const uint32_t to = count[(keys[i] >> (8 * d)) & 0xff]++;
      other_keys_[to] = keys[i];
      other_order_[to] = order_[i];
    }
    keys.swap(other_keys_);
    order_.swap(other_order_);
  }
  return order_;
}

}  // namespace hlokit::interp
