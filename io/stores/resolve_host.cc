// SPDX-License-Identifier: Apache-2.0
#include "io/stores/resolve_host.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

// What the system writes to while it resolves a name.
struct Request {
  explicit Request(const std::string& host) : name(host) {
    hints.ai_socktype = SOCK_STREAM;
    query.ar_name = name.c_str();
    query.ar_request = &hints;
  }
  ~Request() {
    if (query.ar_result != nullptr) freeaddrinfo(query.ar_result);
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const std::string name;
  addrinfo hints{};
  gaicb query{};
};

// Waits until the request has an answer; returns false if it has none in time. A signal may interrupt a wait.
bool Wait(const gaicb& query, int64_t timeout_ms) {
  const auto begin = std::chrono::steady_clock::now();
  const gaicb* const list[] = {&query};
  while (gai_error(const_cast<gaicb*>(&query)) == EAI_INPROGRESS) {
    const int64_t spent =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
    if (timeout_ms != 0 && spent >= timeout_ms) return false;
    const int64_t left = timeout_ms - spent;
    const timespec time = {static_cast<time_t>(left / 1000), static_cast<long>(left % 1000 * 1'000'000)};
    gai_suspend(list, 1, timeout_ms == 0 ? nullptr : &time);
  }
  return true;
}

absl::Status NotResolved(const std::string& host, std::string_view why) {
  return absl::UnavailableError(StrCat("cannot resolve `", host, "`: ", why));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host, int64_t timeout_ms) {
  auto request = std::make_unique<Request>(host);
  gaicb* list[] = {&request->query};
  if (const int error = getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr); error != 0) {
    return NotResolved(host, gai_strerror(error));
  }
  if (!Wait(request->query, timeout_ms)) {
    // A request under way cannot be cancelled: it stays until the system is done with it.
    if (gai_cancel(&request->query) == EAI_NOTCANCELED) request.release();  // NOLINT(bugprone-unused-return-value)
    return NotResolved(host, "no name server answers in time (HLOKIT_STORE_TIMEOUT)");
  }
  if (const int error = gai_error(&request->query); error != 0) return NotResolved(host, gai_strerror(error));
  std::vector<std::string> addresses[2];  // of IPv4, of others
  for (const addrinfo* at = request->query.ar_result; at != nullptr; at = at->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    addresses[at->ai_family == AF_INET ? 0 : 1].emplace_back(text);
  }
  addresses[0].insert(addresses[0].end(), addresses[1].begin(), addresses[1].end());
  if (addresses[0].empty()) return NotResolved(host, "it has no address");
  return std::move(addresses[0]);
}

}  // namespace hlokit
