// SPDX-License-Identifier: Apache-2.0
#include "io/stores/azure_signature.h"

#include "io/stores/crypto.h"
#include "ir/core/str_cat.h"

namespace hlokit {

std::string AzureStringToSign(const AzureRequest& request) {
  std::string text = StrCat(request.method, "\n");
  for (const char* const name :
       {"content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
        "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"}) {
    if (std::string_view(name) == "content-length") {
      StrAppend(&text, request.content_length == 0 ? "" : StrCat(request.content_length), "\n");
      continue;
    }
    const auto found = request.headers.find(name);
    StrAppend(&text, found == request.headers.end() ? "" : found->second, "\n");
  }
  for (const auto& [name, value] : request.headers) {
    if (name.starts_with("x-ms-")) StrAppend(&text, name, ":", value, "\n");
  }
  StrAppend(&text, "/", request.account, request.path);
  for (const auto& [name, value] : request.query) StrAppend(&text, "\n", name, ":", value);
  return text;
}

std::string AzureAuthorization(const std::string& key, const AzureRequest& request) {
  return StrCat("SharedKey ", request.account, ":", Base64Of(HmacSha256(key, AzureStringToSign(request))));
}

}  // namespace hlokit
