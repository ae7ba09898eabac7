// SPDX-License-Identifier: Apache-2.0
// Signature Version 4 of AWS (docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html). Signed here
// rather than by libcurl: 7.81 leaves session tokens out, and 7.88 (Debian 12) signs headers that it does not send, so
// that each request without `Expect: 100-continue` is denied.
#ifndef HLOKIT_IO_STORES_AWS_SIGNATURE_H_
#define HLOKIT_IO_STORES_AWS_SIGNATURE_H_

#include <map>
#include <string>
#include <string_view>

namespace hlokit {

struct AwsSigningKey {
  std::string access_key, secret_key;
  std::string region, service;
};

struct AwsRequest {
  std::string method;
  std::string path;                            // percent-encoded, begins with '/'
  std::map<std::string, std::string> query;    // not encoded
  std::map<std::string, std::string> headers;  // names in lower case, values without blanks around them
  std::string payload_hash;                    // SHA-256 of the body, in hexadecimal digits
};

// Returns "name=value&...", encoded, in the order of the signature.
std::string AwsQuery(const std::map<std::string, std::string>& query);

// Returns the value of the header Authorization that signs all headers of the request. `time` is UTC, as in
// 20130524T000000Z. Requires LoadCrypto.
std::string AwsAuthorization(const AwsSigningKey& key, const AwsRequest& request, std::string_view time);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_AWS_SIGNATURE_H_
