// SPDX-License-Identifier: Apache-2.0
#include "ir/digest/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hlokit {

std::string ToString(const Digest& digest) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[i] = kHex[(digest.high >> (60 - 4 * i)) & 15];
    text[16 + i] = kHex[(digest.low >> (60 - 4 * i)) & 15];
  }
  return text;
}

Digest DigestOf(const void* data, size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return {hash.high64, hash.low64};
}

}  // namespace hlokit
