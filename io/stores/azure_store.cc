// SPDX-License-Identifier: Apache-2.0
#include "io/stores/azure_store.h"

#include <utility>

#include "io/stores/aws_signature.h"
#include "io/stores/azure_signature.h"
#include "io/stores/crypto.h"
#include "io/stores/http_store.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

class AzureStore : public HttpStore {
 public:
  AzureStore(const StoreUrl& url, const StoreOptions& options, std::unique_ptr<HttpClient> client,
             AzureSettings settings)
      : HttpStore(url, options, std::move(client)), settings_(std::move(settings)) {}

 protected:
  HttpRequest Sign(const Operation& operation, std::time_t now) const override {
    AzureRequest request;
    request.method = operation.method;
    request.account = settings_.account;
    request.path = StrCat(settings_.endpoint.path, "/", url().container, operation.key.empty() ? "" : "/",
                          HttpClient::Escape(operation.key, true));
    request.query = operation.query;
    if (operation.key.empty()) request.query["restype"] = "container";
    request.headers = operation.headers;
    request.headers["x-ms-date"] = HttpTime(now);
    request.headers["x-ms-version"] = "2020-10-02";
    if (const auto range = request.headers.find("range"); range != request.headers.end()) {
      request.headers["x-ms-range"] = range->second;
      request.headers.erase(range);
    }
    request.headers["content-type"] = "application/octet-stream";  // as the client sends
    request.content_length = operation.body.size();
    HttpRequest http;
    for (const auto& [name, value] : request.headers) {
      if (name != "content-type") http.headers.emplace_back(name, value);
    }
    std::string query = AwsQuery(request.query);
    if (!settings_.key.empty()) {
      http.headers.emplace_back("authorization", AzureAuthorization(settings_.key, request));
    } else {
      StrAppend(&query, query.empty() ? "" : "&", settings_.sas_token);
    }
    http.url = StrCat(settings_.endpoint.scheme, "://", settings_.endpoint.authority, request.path,
                      query.empty() ? "" : "?", query);
    return http;
  }

  std::string digest_header() const override { return "x-ms-meta-hlokit_xxh3_128"; }

  std::map<std::string, std::string> UploadHeaders(std::string_view bytes) const override {
    // The server compares the MD5 with what it received.
    return {{"x-ms-blob-type", "BlockBlob"}, {"content-md5", Base64Of(Md5(bytes))}};
  }

  std::map<std::string, std::string> ListQuery(const std::string& prefix, const std::string& from) const override {
    std::map<std::string, std::string> query = {{"comp", "list"}, {"prefix", prefix}};
    if (!from.empty()) query["marker"] = from;
    return query;
  }

  PageElements page_elements() const override { return {"Name", "NextMarker"}; }

  std::vector<std::string> Secrets() const override { return {Base64Of(settings_.key), settings_.sas_token}; }

 private:
  const AzureSettings settings_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStore>> OpenAzureStore(const StoreUrl& url, const StoreOptions& options) {
  absl::StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create();
  if (!client.ok()) return client.status();
  if (absl::Status s = LoadCrypto(); !s.ok()) return s;
  absl::StatusOr<AzureSettings> settings = FindAzureSettings(ProcessEnvironment());
  if (!settings.ok()) return settings.status();
  return std::make_unique<AzureStore>(url, options, *std::move(client), *std::move(settings));
}

}  // namespace hlokit
