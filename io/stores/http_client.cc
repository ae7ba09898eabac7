// SPDX-License-Identifier: Apache-2.0
#include "io/stores/http_client.h"

#include <algorithm>
#include <optional>

#include "io/stores/credentials.h"
#include "io/stores/shared_library.h"
#include "io/stores/sigpipe_guard.h"
#include "ir/core/str_cat.h"

#if HLOKIT_HTTP_STORES
#include <curl/curl.h>
#endif

namespace hlokit {

#if HLOKIT_HTTP_STORES
namespace {

// Functions of libcurl. Members are called through pointers, past the macros of its header.
struct CurlLibrary {
  SharedLibrary library;
  CURLcode (*global_init)(long) = nullptr;
  CURL* (*easy_init)() = nullptr;
  CURLcode (*easy_setopt)(CURL*, CURLoption, ...) = nullptr;
  CURLcode (*easy_perform)(CURL*) = nullptr;
  CURLcode (*easy_getinfo)(CURL*, CURLINFO, ...) = nullptr;
  void (*easy_reset)(CURL*) = nullptr;
  void (*easy_cleanup)(CURL*) = nullptr;
  const char* (*easy_strerror)(CURLcode) = nullptr;
  curl_slist* (*slist_append)(curl_slist*, const char*) = nullptr;
  void (*slist_free_all)(curl_slist*) = nullptr;

  CurlLibrary() {
    if (!library.Load(HLOKIT_LIBCURL, "libcurl4").ok()) return;
    library.Resolve("curl_global_init", &global_init);
    library.Resolve("curl_easy_init", &easy_init);
    easy_setopt = reinterpret_cast<decltype(easy_setopt)>(Find("curl_easy_setopt"));
    library.Resolve("curl_easy_perform", &easy_perform);
    easy_getinfo = reinterpret_cast<decltype(easy_getinfo)>(Find("curl_easy_getinfo"));
    library.Resolve("curl_easy_reset", &easy_reset);
    library.Resolve("curl_easy_cleanup", &easy_cleanup);
    library.Resolve("curl_easy_strerror", &easy_strerror);
    library.Resolve("curl_slist_append", &slist_append);
    library.Resolve("curl_slist_free_all", &slist_free_all);
    if (library.status().ok()) global_init(CURL_GLOBAL_DEFAULT);
  }

 private:
  void* Find(const char* name) {
    void (*function)() = nullptr;
    library.Resolve(name, &function);
    return reinterpret_cast<void*>(function);
  }
};

const CurlLibrary& Curl() {
  static const CurlLibrary& curl = *new CurlLibrary();
  return curl;
}

// A connection that is slower for the whole stall timeout is no progress.
constexpr long kMinBytesPerSecond = 1000;

struct ResponseSink {
  HttpResponse* response;
  uint64_t max_bytes;
  bool truncate;
  bool over_limit = false;
};

size_t ReceiveBody(char* data, size_t size, size_t count, void* user) {
  auto* const sink = static_cast<ResponseSink*>(user);
  const size_t bytes = size * count;
  std::string& body = sink->response->body;
  if (bytes > sink->max_bytes - body.size()) {
    sink->over_limit = true;
    if (sink->truncate) body.append(data, sink->max_bytes - body.size());
    return CURL_WRITEFUNC_ERROR;
  }
  body.append(data, bytes);
  return bytes;
}

size_t ReceiveHeader(char* data, size_t size, size_t count, void* user) {
  constexpr size_t kMaxHeaders = 200;
  auto* const sink = static_cast<ResponseSink*>(user);
  std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) sink->response->headers.clear();  // of an interim response
  while (line.ends_with('\n') || line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos && sink->response->headers.size() < kMaxHeaders) {
    std::string name(line.substr(0, colon));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    sink->response->headers[std::move(name)] = value;
  }
  return size * count;
}

// Returns the file of certificates of private authorities, by the variables of the clouds' tools and of curl; ""
// without.
std::string CertificateFile() {
  const EnvironmentReader environment = ProcessEnvironment();
  for (const char* const name : {"AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (std::optional<std::string> file = environment(name)) return *file;
  }
  return "";
}

absl::Status CurlError(CURLcode code, const char* detail) {
  const std::string message(detail[0] != '\0' ? detail : Curl().easy_strerror(code));
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return absl::FailedPreconditionError(message);
    default:
      return absl::UnavailableError(message);
  }
}

class CurlClient : public HttpClient {
 public:
  explicit CurlClient(CURL* handle) : handle_(handle), certificates_(CertificateFile()) {}
  ~CurlClient() override { Curl().easy_cleanup(handle_); }

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request) override {
    const CurlLibrary& curl = Curl();
    HttpResponse response;
    ResponseSink sink = {&response, request.max_body_bytes, request.truncate_body};
    char detail[CURL_ERROR_SIZE] = "";
    curl_slist* headers = nullptr;
    // No pause for a "100 Continue" that some servers do not send.
    for (const char* const fixed : {"Expect:", "Content-Type: application/octet-stream"}) {
      headers = curl.slist_append(headers, fixed);
    }
    for (const auto& [name, value] : request.headers) {
      headers = curl.slist_append(headers, StrCat(name, ": ", value).c_str());
    }
    curl.easy_reset(handle_);  // keeps the connection
    const auto set = [&](CURLoption option, auto value) { curl.easy_setopt(handle_, option, value); };
    set(CURLOPT_URL, request.url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
    set(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    set(CURLOPT_NOSIGNAL, 1L);
    if (!certificates_.empty()) set(CURLOPT_CAINFO, certificates_.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_ERRORBUFFER, static_cast<char*>(detail));
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_WRITEFUNCTION, &ReceiveBody);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&sink));
    set(CURLOPT_HEADERFUNCTION, &ReceiveHeader);
    set(CURLOPT_HEADERDATA, static_cast<void*>(&sink));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout_ms));
    if (request.total_timeout_ms > 0) set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.total_timeout_ms));
    set(CURLOPT_LOW_SPEED_LIMIT, kMinBytesPerSecond);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>((request.stall_timeout_ms + 999) / 1000));
    if (request.method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (request.method == "PUT") {
      set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_CUSTOMREQUEST, "PUT");
    } else if (request.method != "GET") {
      set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
    CURLcode code;
    {
      const SigpipeGuard guard;
      code = curl.easy_perform(handle_);
    }
    long status = 0;
    curl.easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    curl.slist_free_all(headers);
    response.status = static_cast<int>(status);
    if (sink.over_limit && !sink.truncate) {
      return absl::ResourceExhaustedError(StrCat("more than ", request.max_body_bytes, " bytes"));
    }
    if (code != CURLE_OK && !sink.over_limit) return CurlError(code, detail);
    return response;
  }

 private:
  CURL* const handle_;
  const std::string certificates_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create() {
  if (!Curl().library.status().ok()) return Curl().library.status();
  CURL* const handle = Curl().easy_init();
  if (handle == nullptr) return absl::UnavailableError("libcurl does not start");
  return std::make_unique<CurlClient>(handle);
}

#else

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create() {
  return absl::UnimplementedError("this build has no s3, gs and az: libcurl was missing (tools/install-deps build)");
}

#endif

std::string HttpClient::Escape(std::string_view text, bool keep_slashes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || (c == '/' && keep_slashes);
    const auto byte = static_cast<unsigned char>(c);
    if (plain) {
      escaped.push_back(c);
    } else {
      StrAppend(&escaped, '%', kDigits[byte >> 4], kDigits[byte & 15]);
    }
  }
  return escaped;
}

}  // namespace hlokit
