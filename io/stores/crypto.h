// SPDX-License-Identifier: Apache-2.0
// Hash functions that signatures of requests are made of, by OpenSSL's libcrypto, which is loaded by the first use.
#ifndef HLOKIT_IO_STORES_CRYPTO_H_
#define HLOKIT_IO_STORES_CRYPTO_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hlokit {

// Loads the library. The functions below require success.
absl::Status LoadCrypto();

// Return the bytes of the digest.
std::string Sha256(std::string_view bytes);
std::string HmacSha256(std::string_view key, std::string_view bytes);
std::string Md5(std::string_view bytes);

// Returns lower-case hexadecimal digits.
std::string HexOf(std::string_view bytes);
std::string Base64Of(std::string_view bytes);
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_CRYPTO_H_
