// SPDX-License-Identifier: Apache-2.0
// Secrets out of messages: a server may quote a request, in any of the encodings that it came in.
#ifndef HLOKIT_IO_STORES_REDACT_H_
#define HLOKIT_IO_STORES_REDACT_H_

#include <string>
#include <string_view>
#include <vector>

namespace hlokit {

// Returns the text with `...` for each secret in it: as it is, percent-decoded, and with any of its characters
// percent-encoded or as a character reference of XML.
std::string Redacted(std::string_view text, const std::vector<std::string>& secrets);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_REDACT_H_
