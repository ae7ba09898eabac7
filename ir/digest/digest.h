// SPDX-License-Identifier: Apache-2.0
// 128-bit digests of contents: XXH3. Safe against accidental collisions, not against an adversary: users that trust a
// file because its digest matches must compare the contents too.
#ifndef HLOKIT_IR_DIGEST_DIGEST_H_
#define HLOKIT_IR_DIGEST_DIGEST_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hlokit {

struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;

  friend auto operator<=>(const Digest&, const Digest&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Digest& d) {
    return H::combine(std::move(h), d.low);
  }
};

// Returns 32 hexadecimal digits.
std::string ToString(const Digest& digest);

Digest DigestOf(const void* data, size_t size);
inline Digest DigestOf(std::string_view s) { return DigestOf(s.data(), s.size()); }

}  // namespace hlokit

#endif  // HLOKIT_IR_DIGEST_DIGEST_H_
