// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the fingerprint and of its explanation only.
#ifndef HLOKIT_IR_DIGEST_FINGERPRINT_INTERNAL_H_
#define HLOKIT_IR_DIGEST_FINGERPRINT_INTERNAL_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "ir/digest/content_digest.h"
#include "ir/digest/fingerprint.h"
#include "ir/graph/module_fwd.h"

namespace hlokit {

// Mixed into every module digest. Increment it whenever digests of the same text change.
inline constexpr uint64_t kFingerprintVersion = 1;

// Adds the version, the options, and the header attributes that they select.
void AddHeader(const Module& module, const FingerprintOptions& options, ContentDigests* contents, DigestWords* words);

// Shortens `s` to `limit` bytes around the byte `focus`, at UTF-8 character boundaries, with dots for omitted text.
std::string Shorten(std::string_view s, size_t limit, size_t focus = 0);

// Maximum bytes of a value in a difference.
inline constexpr size_t kMaxValue = 160;
// Returns "x vs y", with long values shortened around the first byte in which they differ.
std::string Versus(std::string_view a, std::string_view b);

}  // namespace hlokit

#endif  // HLOKIT_IR_DIGEST_FINGERPRINT_INTERNAL_H_
