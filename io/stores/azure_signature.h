// SPDX-License-Identifier: Apache-2.0
// Shared Key signatures of Azure Storage (learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key).
#ifndef HLOKIT_IO_STORES_AZURE_SIGNATURE_H_
#define HLOKIT_IO_STORES_AZURE_SIGNATURE_H_

#include <cstdint>
#include <map>
#include <string>

namespace hlokit {

struct AzureRequest {
  std::string method;
  std::string account;
  std::string path;                            // of the URL, percent-encoded, begins with '/'
  std::map<std::string, std::string> query;    // not encoded
  std::map<std::string, std::string> headers;  // names in lower case
  uint64_t content_length = 0;
};

// Returns the text that is signed.
std::string AzureStringToSign(const AzureRequest& request);
// Returns the value of the header Authorization. `key` is the account's, decoded. Requires LoadCrypto.
std::string AzureAuthorization(const std::string& key, const AzureRequest& request);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_AZURE_SIGNATURE_H_
