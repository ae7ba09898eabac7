// SPDX-License-Identifier: Apache-2.0
#include "io/stores/http_store.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "io/stores/redact.h"
#include "io/stores/retry.h"
#include "io/stores/xml_elements.h"
#include "ir/core/str_cat.h"
#include "ir/digest/digest.h"

namespace hlokit {
namespace {

constexpr uint64_t kMaxAnswerBytes = 1 << 24;  // of a list of keys
constexpr int kMaxPages = 10000;               // of it

constexpr uint64_t kMaxUploadBytes = uint64_t{5000} << 20;  // of one request, in all three clouds

std::string HeaderOf(const HttpResponse& response, const std::string& name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "" : found->second;
}

int64_t RetryAfterMs(const HttpResponse& response) {
  const std::string text = HeaderOf(response, "retry-after");
  int64_t seconds = 0;
  constexpr int64_t kMaxSeconds = 1'000'000'000;
  const std::from_chars_result read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (read.ec == std::errc::result_out_of_range) seconds = kMaxSeconds;
  return std::clamp<int64_t>(seconds, 0, kMaxSeconds) * 1000;
}

bool IsTransient(int status) { return status == 408 || status == 429 || status >= 500; }

// Returns the text on one line, cut off where it is long.
std::string OneLine(std::string_view text) {
  constexpr size_t kMaxBytes = 200;
  std::string line;
  for (const char c : text.substr(0, kMaxBytes)) {
    if (c == '\n') break;
    line.push_back(std::iscntrl(static_cast<unsigned char>(c)) != 0 ? ' ' : c);
  }
  return line;
}

}  // namespace

std::string AwsTime(std::time_t now) {
  std::tm utc = {};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  return std::string(text.data(), std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &utc));
}

std::string HttpTime(std::time_t now) {
  // Independent of the locale, unlike the names of strftime.
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc = {};
  gmtime_r(&now, &utc);
  std::array<char, 32> day{}, time{};
  const size_t day_size = std::strftime(day.data(), day.size(), "%d", &utc);
  const size_t time_size = std::strftime(time.data(), time.size(), "%Y %H:%M:%S GMT", &utc);
  return StrCat(kDays[utc.tm_wday], ", ", std::string_view(day.data(), day_size), " ", kMonths[utc.tm_mon], " ",
                std::string_view(time.data(), time_size));
}

absl::Status HttpStore::Error(absl::StatusCode code, std::string_view key, std::string_view message) const {
  return absl::Status(code, StrCat(AddressOf(key), ": ", Redacted(message, Secrets())));
}

absl::Status HttpStore::StatusOf(const HttpResponse& response, std::string_view key) const {
  std::string code = XmlText(response.body, "Code");
  if (code.empty()) code = HeaderOf(response, "x-ms-error-code");
  // Before it is cut off, perhaps within a secret.
  const std::string text = OneLine(Redacted(XmlText(response.body, "Message"), Secrets()));
  std::string message = StrCat("HTTP status ", response.status);
  if (!code.empty()) StrAppend(&message, ", ", OneLine(Redacted(code, Secrets())));
  if (!text.empty()) StrAppend(&message, ": ", text);
  const int status = response.status;
  if (status >= 200 && status < 300) return absl::OkStatus();
  if (status == 404) return Error(absl::StatusCode::kNotFound, key, StrCat("not found: ", message));
  if (status == 401 || status == 403) {
    return Error(absl::StatusCode::kPermissionDenied, key, StrCat("access denied: ", message));
  }
  if (status >= 300 && status < 400) {
    const std::string region = HeaderOf(response, "x-amz-bucket-region");
    if (!region.empty()) StrAppend(&message, "; the bucket is in the region ", OneLine(region), ": set AWS_REGION");
    return Error(absl::StatusCode::kFailedPrecondition, key, message);
  }
  return Error(IsTransient(status) ? absl::StatusCode::kUnavailable : absl::StatusCode::kFailedPrecondition, key,
               message);
}

absl::StatusOr<HttpResponse> HttpStore::Send(const Operation& operation, std::string_view key, uint64_t max_body_bytes,
                                             const Deadline& deadline, bool truncate) {
  std::lock_guard<std::mutex> lock(mutex_);
  HttpResponse response;
  const absl::Status status = WithRetries(options_, deadline, [&](int64_t left_ms) {
    HttpRequest request = Sign(operation, std::time(nullptr));
    request.method = operation.method;
    request.body = operation.body;
    request.connect_timeout_ms = options_.connect_timeout_ms;
    request.stall_timeout_ms = options_.stall_timeout_ms;
    request.total_timeout_ms = left_ms;
    // An error that comes instead of a short value is read too.
    constexpr uint64_t kMaxErrorBytes = 1 << 16;
    request.max_body_bytes = std::max(max_body_bytes, truncate ? max_body_bytes : kMaxErrorBytes);
    request.truncate_body = truncate;
    absl::StatusOr<HttpResponse> received = client_->Send(request);
    if (!received.ok()) {
      return Attempt{Error(received.status().code(), key, std::string(received.status().message()))};
    }
    response = *std::move(received);
    if (IsTransient(response.status)) return Attempt{StatusOf(response, key), RetryAfterMs(response)};
    return Attempt{};
  });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<std::string> HttpStore::Get(std::string_view key, uint64_t max_bytes, bool first_bytes) {
  Operation operation = {.method = "GET", .key = FullKey(key)};
  if (first_bytes && max_bytes > 0) operation.headers["range"] = StrCat("bytes=0-", max_bytes - 1);
  absl::StatusOr<HttpResponse> response = Send(operation, key, max_bytes, Deadline(options_.deadline_ms), first_bytes);
  if (!response.ok()) return response.status();
  constexpr int kRangeNotSatisfiable = 416;  // of an empty value
  if (first_bytes && response->status == kRangeNotSatisfiable) return std::string();
  if (absl::Status s = StatusOf(*response, key); !s.ok()) return s;
  if (!first_bytes) {
    if (response->body.size() > max_bytes) {
      return Error(absl::StatusCode::kResourceExhausted, key, StrCat("more than ", max_bytes, " bytes"));
    }
    const std::string digest = HeaderOf(*response, digest_header());
    if (!digest.empty() && digest != ToString(DigestOf(response->body))) {
      return Error(absl::StatusCode::kDataLoss, key,
                   "damaged: the contents do not have the digest they were stored with");
    }
  }
  return std::move(response->body);
}

absl::Status HttpStore::Put(std::string_view key, std::string_view bytes) {
  if (bytes.size() > kMaxUploadBytes) {
    return Error(absl::StatusCode::kResourceExhausted, key, StrCat("more than ", kMaxUploadBytes, " bytes to write"));
  }
  Operation operation = {.method = "PUT", .key = FullKey(key), .headers = UploadHeaders(bytes), .body = bytes};
  operation.headers[digest_header()] = ToString(DigestOf(bytes));
  const absl::StatusOr<HttpResponse> response = Send(operation, key, 0, Deadline(options_.deadline_ms));
  return response.ok() ? StatusOf(*response, key) : response.status();
}

absl::StatusOr<bool> HttpStore::Exists(std::string_view key) {
  const absl::StatusOr<HttpResponse> response =
      Send({.method = "HEAD", .key = FullKey(key)}, key, 0, Deadline(options_.deadline_ms));
  if (!response.ok()) return response.status();
  const absl::Status status = StatusOf(*response, key);
  if (absl::IsNotFound(status)) return false;
  if (!status.ok()) return status;
  return true;
}

absl::StatusOr<std::vector<std::string>> HttpStore::List(std::string_view prefix, size_t max_keys) {
  const std::string root = url().path.empty() ? "" : StrCat(url().path, "/");
  std::vector<std::string> keys;
  std::string from;
  // A server's list may have no end.
  const Deadline deadline(options_.deadline_ms);
  for (int pages = 0;; ++pages) {
    if (pages == kMaxPages || deadline.is_over()) {
      return Error(absl::StatusCode::kUnavailable, prefix,
                   StrCat("the list of keys has no end after ", pages, " pages"));
    }
    const absl::StatusOr<HttpResponse> response =
        Send({.method = "GET", .query = ListQuery(StrCat(root, prefix), from)}, prefix, kMaxAnswerBytes, deadline);
    if (!response.ok()) return response.status();
    if (absl::Status s = StatusOf(*response, prefix); !s.ok()) return s;
    const absl::StatusOr<std::vector<std::string>> page = XmlTexts(response->body, page_elements().key);
    if (!page.ok()) return Error(page.status().code(), prefix, std::string(page.status().message()));
    for (const std::string& key : *page) {
      if (key.starts_with(root) && keys.size() < max_keys) keys.push_back(key.substr(root.size()));
    }
    std::string next = XmlText(response->body, page_elements().next);
    if (next == from) break;  // a server that does not advance
    from = std::move(next);
    if (from.empty() || keys.size() >= max_keys) break;
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

absl::Status HttpStore::Remove(std::string_view key) {
  const absl::StatusOr<HttpResponse> response =
      Send({.method = "DELETE", .key = FullKey(key)}, key, 0, Deadline(options_.deadline_ms));
  if (!response.ok()) return response.status();
  const absl::Status status = StatusOf(*response, key);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace hlokit
