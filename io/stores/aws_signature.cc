// SPDX-License-Identifier: Apache-2.0
#include "io/stores/aws_signature.h"

#include "io/stores/crypto.h"
#include "io/stores/http_client.h"
#include "ir/core/str_cat.h"

namespace hlokit {

std::string AwsQuery(const std::map<std::string, std::string>& query) {
  std::map<std::string, std::string> encoded;  // ordered by encoded names
  for (const auto& [name, value] : query) encoded[HttpClient::Escape(name, false)] = HttpClient::Escape(value, false);
  std::string text;
  for (const auto& [name, value] : encoded) StrAppend(&text, text.empty() ? "" : "&", name, "=", value);
  return text;
}

std::string AwsAuthorization(const AwsSigningKey& key, const AwsRequest& request, std::string_view time) {
  constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256", kTerminator = "aws4_request";
  std::string canonical = StrCat(request.method, "\n", request.path, "\n", AwsQuery(request.query), "\n");
  std::string signed_headers;
  for (const auto& [name, value] : request.headers) {
    StrAppend(&canonical, name, ":", value, "\n");
    StrAppend(&signed_headers, signed_headers.empty() ? "" : ";", name);
  }
  StrAppend(&canonical, "\n", signed_headers, "\n", request.payload_hash);
  const std::string_view day = time.substr(0, 8);
  const std::string scope = StrCat(day, "/", key.region, "/", key.service, "/", kTerminator);
  const std::string to_sign = StrCat(kAlgorithm, "\n", time, "\n", scope, "\n", HexOf(Sha256(canonical)));
  std::string derived = StrCat("AWS4", key.secret_key);
  for (const std::string_view part : {day, std::string_view(key.region), std::string_view(key.service), kTerminator}) {
    derived = HmacSha256(derived, part);
  }
  return StrCat(kAlgorithm, " Credential=", key.access_key, "/", scope, ",SignedHeaders=", signed_headers,
                ",Signature=", HexOf(HmacSha256(derived, to_sign)));
}

}  // namespace hlokit
