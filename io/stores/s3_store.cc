// SPDX-License-Identifier: Apache-2.0
#include "io/stores/s3_store.h"

#include <utility>

#include "io/stores/aws_signature.h"
#include "io/stores/crypto.h"
#include "io/stores/http_store.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

class S3Store : public HttpStore {
 public:
  S3Store(const StoreUrl& url, const StoreOptions& options, std::unique_ptr<HttpClient> client, S3Settings settings)
      : HttpStore(url, options, std::move(client)), settings_(std::move(settings)) {
    // Servers other than Amazon's need not have a host name for each bucket, and certificates cover no further dots.
    const bool host_of_bucket =
        !settings_.endpoint && url.kind == StoreKind::kS3 && url.container.find('.') == std::string::npos;
    if (settings_.endpoint) {
      endpoint_ = *settings_.endpoint;
    } else if (url.kind == StoreKind::kGcs) {
      endpoint_ = {"https", "storage.googleapis.com", ""};
    } else {
      endpoint_ = {"https",
                   StrCat(host_of_bucket ? StrCat(url.container, ".") : "", "s3.", settings_.region, ".amazonaws.com"),
                   ""};
    }
    bucket_path_ = StrCat(endpoint_.path, host_of_bucket ? "" : StrCat("/", url.container));
  }

 protected:
  HttpRequest Sign(const Operation& operation, std::time_t now) const override {
    AwsRequest request;
    request.method = operation.method;
    request.path = StrCat(bucket_path_, "/", HttpClient::Escape(operation.key, true));
    request.query = operation.query;
    request.headers = operation.headers;
    request.payload_hash = HexOf(Sha256(operation.body));
    const std::string time = AwsTime(now);
    request.headers["x-amz-date"] = time;
    request.headers["x-amz-content-sha256"] = request.payload_hash;
    if (!settings_.session_token.empty()) request.headers["x-amz-security-token"] = settings_.session_token;
    HttpRequest http;
    for (const auto& [name, value] : request.headers) http.headers.emplace_back(name, value);
    request.headers["host"] = endpoint_.authority;
    const AwsSigningKey key = {settings_.access_key, settings_.secret_key, settings_.region, "s3"};
    http.headers.emplace_back("authorization", AwsAuthorization(key, request, time));
    http.url = StrCat(endpoint_.scheme, "://", endpoint_.authority, request.path, request.query.empty() ? "" : "?",
                      AwsQuery(request.query));
    return http;
  }

  std::string digest_header() const override { return "x-amz-meta-hlokit-xxh3-128"; }

  std::map<std::string, std::string> UploadHeaders(std::string_view) const override { return {}; }

  std::map<std::string, std::string> ListQuery(const std::string& prefix, const std::string& from) const override {
    std::map<std::string, std::string> query = {{"list-type", "2"}, {"prefix", prefix}};
    if (!from.empty()) query["continuation-token"] = from;
    return query;
  }

  PageElements page_elements() const override { return {"Key", "NextContinuationToken"}; }

  std::vector<std::string> Secrets() const override { return {settings_.secret_key, settings_.session_token}; }

 private:
  const S3Settings settings_;
  Endpoint endpoint_;
  std::string bucket_path_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStore>> OpenS3Store(const StoreUrl& url, const StoreOptions& options) {
  absl::StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create();
  if (!client.ok()) return client.status();
  if (absl::Status s = LoadCrypto(); !s.ok()) return s;
  const EnvironmentReader environment = ProcessEnvironment();
  absl::StatusOr<S3Settings> settings =
      url.kind == StoreKind::kGcs ? FindGcsSettings(environment) : FindS3Settings(environment);
  if (!settings.ok()) return settings.status();
  return std::make_unique<S3Store>(url, options, *std::move(client), *std::move(settings));
}

}  // namespace hlokit
