// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/reductions/sort_keys.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>

#include "interp/exact/kernels/element_loop.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

// The bits of a float as an unsigned integer of the same order: negative values are inverted, others get the top bit.
// NaNs sort last in both directions unless the order is total. Without branches, so that the loops are vectorized.
template <typename F, bool kTotalOrder, bool kDescending>
auto FloatKey(F v) {
  using Bits = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;
  using Signed = std::make_signed_t<Bits>;
  constexpr int kTop = 8 * sizeof(F) - 1;
  Bits bits = std::bit_cast<Bits>(v);
  if (!kTotalOrder) bits = v == F{0} ? Bits{0} : bits;  // of either sign
  Bits key = bits ^ (static_cast<Bits>(static_cast<Signed>(bits) >> kTop) | Bits{1} << kTop);
  if (kDescending) key = ~key;
  if (!kTotalOrder) key = v == v ? key : ~Bits{0};
  return key;
}

template <typename T, typename Key, bool kTotalOrder, bool kDescending>
void FloatKeys(const T* x, int64_t n, Key* keys) {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
  ForEachElement(
      n, [=](int64_t i) { keys[i] = static_cast<Key>(FloatKey<F, kTotalOrder, kDescending>(static_cast<F>(x[i]))); });
}

}  // namespace

bool KeyOrder::Supported() const { return IsArrayType(type) && !IsComplex(type); }

template <typename Key>
void KeyOrder::MakeKeys(const std::byte* elements, int64_t n, Key* keys) const {
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    const T* x = reinterpret_cast<const T*>(elements);
    if constexpr (AnyFloat<T>) {
      if (total_order) {
        descending ? FloatKeys<T, Key, true, true>(x, n, keys) : FloatKeys<T, Key, true, false>(x, n, keys);
      } else {
        descending ? FloatKeys<T, Key, false, true>(x, n, keys) : FloatKeys<T, Key, false, false>(x, n, keys);
      }
    } else if constexpr (!AnyComplex<T>) {
      const Key mask = static_cast<Key>(~uint64_t{0} >> (64 - 8 * sizeof(T)));
      Key flip = IsSigned(type) ? static_cast<Key>(uint64_t{1} << (8 * sizeof(T) - 1)) : Key{0};
      if (descending) flip ^= mask;
      ForEachElement(n, [=](int64_t i) { keys[i] = (static_cast<Key>(static_cast<int64_t>(x[i])) & mask) ^ flip; });
    }
  });
}
template void KeyOrder::MakeKeys(const std::byte*, int64_t, uint32_t*) const;
template void KeyOrder::MakeKeys(const std::byte*, int64_t, uint64_t*) const;

absl::Span<uint64_t> KeySorter::Keys(size_t n) {
  n_ = n;
  return {keys_.Resize(n), n};
}

absl::Span<const uint32_t> KeySorter::Sort(RunContext& context, bool together) {
  const size_t n = n_;
  uint64_t* keys = keys_.data.get();
  uint32_t* order = order_.Resize(n);
  constexpr size_t kRadixFrom = 256;
  if (n < kRadixFrom) {
    std::iota(order, order + n, 0);
    std::stable_sort(order, order + n, [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
    return {order, n};
  }
  uint32_t* other_order = other_order_.Resize(n);
  uint64_t* other_keys = other_keys_.Resize(n);
  // Least significant digit first, 8 bits at a time. A pass counts the digits of each chunk of the keys, and then moves
  // each chunk's keys after the same digits of earlier chunks, so that equal keys keep their order independent of the
  // number of chunks.
  const int64_t parts = together ? int64_t{2} * context.threads() : 1;
  // Calls body(part, begin, end) for pieces of the chunks, between which the run may stop.
  const auto for_parts = [&](auto&& body) {
    constexpr size_t kPiece = size_t{1} << 20;
    const auto run = [&](int64_t first, int64_t last) {
      const auto at = [&](int64_t p) { return n * static_cast<size_t>(p) / static_cast<size_t>(parts); };
      for (int64_t part = first; part < last; ++part) {
        for (size_t begin = at(part); begin < at(part + 1) && !context.failed(); begin += kPiece) {
          body(static_cast<size_t>(part), begin, std::min(begin + kPiece, at(part + 1)));
          if (n > kPiece && context.ShouldStop()) return;
        }
      }
    };
    if (!together) return run(0, parts);
    context.ParallelFor(parts, static_cast<double>(n) / static_cast<double>(parts), run);
  };
  // Digits that are equal for all keys need no pass.
  std::vector<uint64_t> differing(static_cast<size_t>(parts), 0);
  for_parts([&](size_t part, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      order[i] = static_cast<uint32_t>(i);
      differing[part] |= keys[i] ^ keys[0];
    }
  });
  const uint64_t differs = std::accumulate(differing.begin(), differing.end(), uint64_t{0}, std::bit_or<>());
  std::vector<Counts> counts(static_cast<size_t>(parts));
  for (int shift = 0; shift < 64; shift += 8) {
    if (((differs >> shift) & 0xff) == 0) continue;
    for (Counts& count : counts) count.fill(0);
    for_parts([&](size_t part, size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) ++counts[part][(keys[i] >> shift) & 0xff];
    });
    uint32_t at = 0;
    for (size_t digit = 0; digit < 256; ++digit) {
      for (Counts& count : counts) at += std::exchange(count[digit], at);
    }
    // Incomplete counts would write out of bounds.
    if (context.failed()) break;
    for_parts([&](size_t part, size_t begin, size_t end) {
      Counts& next = counts[part];
      for (size_t i = begin; i < end; ++i) {
        const uint32_t to = next[(keys[i] >> shift) & 0xff]++;
        other_keys[to] = keys[i];
        other_order[to] = order[i];
      }
    });
    std::swap(keys_, other_keys_);
    std::swap(order_, other_order_);
    std::swap(keys, other_keys);
    std::swap(order, other_order);
  }
  return {order, n};
}

}  // namespace hlokit::interp
