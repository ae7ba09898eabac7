// SPDX-License-Identifier: Apache-2.0
// HTTP requests, by libcurl, which is loaded by the first client.
#ifndef HLOKIT_IO_STORES_HTTP_CLIENT_H_
#define HLOKIT_IO_STORES_HTTP_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlokit {

struct HttpRequest {
  std::string method = "GET";  // GET, HEAD, PUT, DELETE
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string_view body;  // of PUT
  int64_t connect_timeout_ms = 0;
  int64_t stall_timeout_ms = 0;  // rounded up to a second
  int64_t total_timeout_ms = 0;  // 0: none
  uint64_t max_body_bytes = 0;   // of the response
  bool truncate_body = false;    // a longer response is cut off there instead of an error
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;

  // Unimplemented if libcurl is missing.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create();

  // Returns the response, of any status. Unavailable: no connection, a connection that was lost or that stalls;
  // FailedPrecondition: the server's certificate was rejected; ResourceExhausted: a response over the limit. Messages
  // do not contain the URL. Follows no redirections. Not thread-safe.
  virtual absl::StatusOr<HttpResponse> Send(const HttpRequest& request) = 0;

  // Returns `text` with all but letters, digits and -._~ percent-encoded, and with '/' too unless `keep_slashes`.
  static std::string Escape(std::string_view text, bool keep_slashes);
};

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_HTTP_CLIENT_H_
