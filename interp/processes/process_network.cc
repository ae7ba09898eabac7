// SPDX-License-Identifier: Apache-2.0
#include "interp/processes/process_network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSecretBytes = 16;
constexpr int kNetworkPollMs = 100;
// The largest message: what a wrong header could ask memory for.
constexpr uint64_t kMaxBytes = uint64_t{1} << 40;
constexpr double kHelloSeconds = 5;

// What a process says when it connects.
struct Hello {
  char token[kSecretBytes];
  int32_t process;
};

struct Header {
  ProcessNetwork::Label label;
  uint64_t bytes;
};

double SecondsUntil(Clock::time_point end) { return std::chrono::duration<double>(end - Clock::now()).count(); }
Clock::time_point After(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Receives all bytes; waits for ever without an end.
bool ReceiveFully(int fd, void* to, size_t bytes, std::optional<Clock::time_point> end = std::nullopt) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    if (end) {
      if (SecondsUntil(*end) <= 0) return false;
      pollfd wait = {fd, POLLIN, 0};
      if (poll(&wait, 1, kNetworkPollMs) <= 0) continue;
    }
    const ssize_t n = recv(fd, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

enum class Sent { kAll, kClosed, kTimeout };

Sent SendFully(int fd, const void* from, size_t bytes, bool more, Clock::time_point end) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
    if (n > 0) {
      at += n;
      bytes -= static_cast<size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return Sent::kClosed;
    if (SecondsUntil(end) <= 0) return Sent::kTimeout;
    pollfd wait = {fd, POLLOUT, 0};
    poll(&wait, 1, kNetworkPollMs);
  }
  return Sent::kAll;
}

absl::Status SystemError(const char* what) {
  return absl::UnavailableError(StrCat("cannot ", what, ": ", std::system_category().message(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessNetwork>> ProcessNetwork::Listen() {
  std::unique_ptr<ProcessNetwork> network(new ProcessNetwork());
  network->token_.resize(kSecretBytes);
  if (getrandom(network->token_.data(), kSecretBytes, 0) != static_cast<ssize_t>(kSecretBytes)) {
    return SystemError("make a random token");
  }
  network->listening_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (network->listening_ < 0) return SystemError("open a socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(network->listening_, generic, size) != 0 || listen(network->listening_, SOMAXCONN) != 0 ||
      getsockname(network->listening_, generic, &size) != 0) {
    return SystemError("listen on the loopback device");
  }
  network->address_ =
      StrCat(static_cast<int64_t>(ntohs(address.sin_port)), " ", absl::BytesToHexString(network->token_));
  return network;
}

ProcessNetwork::~ProcessNetwork() {
  if (listening_ >= 0) close(listening_);
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (peer->socket >= 0) shutdown(peer->socket, SHUT_RDWR);
    if (peer->thread.joinable()) peer->thread.join();
    if (peer->socket >= 0) close(peer->socket);
  }
}

absl::Status ProcessNetwork::ConnectTo(int process, const std::string& address) {
  const size_t space = address.find(' ');
  int port = 0;
  const std::string token = space == std::string::npos ? "" : absl::HexStringToBytes(address.substr(space + 1));
  if (token.size() != kSecretBytes || !absl::SimpleAtoi(address.substr(0, space), &port)) {
    return absl::InternalError(StrCat("process ", process, " has an address that this version does not know"));
  }
  Peer& peer = *peers_[static_cast<size_t>(process)];
  peer.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (peer.socket < 0) return SystemError("open a socket");
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  Hello hello = {};
  std::memcpy(hello.token, token.data(), kSecretBytes);
  hello.process = self_;
  if (connect(peer.socket, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0 ||
      SendFully(peer.socket, &hello, sizeof(hello), false, After(kHelloSeconds)) != Sent::kAll) {
    return absl::UnavailableError(StrCat("cannot connect to process ", process,
                                         ", which has ended or is on another "
                                         "machine: ",
                                         std::system_category().message(errno)));
  }
  return absl::OkStatus();
}

void ProcessNetwork::Accept(double timeout_seconds) {
  const Clock::time_point end = After(timeout_seconds);
  int missing = size() - 1 - self_;
  while (missing > 0 && SecondsUntil(end) > 0) {
    pollfd wait = {listening_, POLLIN, 0};
    if (poll(&wait, 1, kNetworkPollMs) <= 0) continue;
    const int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    Hello hello;
    const bool known = ReceiveFully(fd, &hello, sizeof(hello), After(kHelloSeconds)) &&
                       std::memcmp(hello.token, token_.data(), kSecretBytes) == 0 && hello.process > self_ &&
                       hello.process < size() && peers_[static_cast<size_t>(hello.process)]->socket < 0;
    if (!known) {
      close(fd);
      continue;
    }
    peers_[static_cast<size_t>(hello.process)]->socket = fd;
    --missing;
  }
}

absl::Status ProcessNetwork::Connect(int self, absl::Span<const std::string> addresses, double timeout_seconds) {
  self_ = self;
  for (size_t i = 0; i < addresses.size(); ++i) peers_.push_back(std::make_unique<Peer>());
  for (int p = 0; p < self; ++p) {
    if (absl::Status s = ConnectTo(p, addresses[static_cast<size_t>(p)]); !s.ok()) return s;
  }
  Accept(timeout_seconds);
  std::string missing;
  for (int p = self + 1; p < size(); ++p) {
    if (peers_[static_cast<size_t>(p)]->socket < 0) StrAppend(&missing, missing.empty() ? "" : ", ", p);
  }
  if (!missing.empty()) {
    return absl::DeadlineExceededError(
        StrCat("process ", missing, " has not connected within ", FormatDouble(timeout_seconds), " s"));
  }
  close(std::exchange(listening_, -1));
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (peer->socket < 0) continue;
    const int on = 1;
    setsockopt(peer->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    peer->thread = std::thread([this, at = peer.get()] { Receive(at); });
  }
  return absl::OkStatus();
}

void ProcessNetwork::Receive(Peer* peer) {
  for (;;) {
    Header header;
    std::string message;
    bool ok = ReceiveFully(peer->socket, &header, sizeof(header)) && header.bytes <= kMaxBytes;
    if (ok) {
      try {
        message.resize(header.bytes);
      } catch (const std::bad_alloc&) {
        ok = false;  // nothing that follows can be understood
      }
    }
    ok = ok && ReceiveFully(peer->socket, message.data(), message.size());
    if (!ok) return End(peer);
    Deliver(peer, header.label, std::move(message));
  }
}

void ProcessNetwork::Deliver(Peer* peer, const Label& label, std::string message) {
  TakeFn take;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto ended = ended_runs_.find(label.world);
    if (ended != ended_runs_.end() && label.run <= ended->second) return;
    const auto taker = peer->takers.find(label);
    if (taker == peer->takers.end()) {
      peer->messages[label] = std::move(message);
      return;
    }
    take = std::move(taker->second);
    peer->takers.erase(taker);
  }
  take(std::move(message));
}

void ProcessNetwork::End(Peer* peer) {
  std::map<Label, TakeFn> takers;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    peer->ended = true;
    takers.swap(peer->takers);
  }
  for (const auto& [label, take] : takers) take(absl::UnavailableError("the process that sends it has ended"));
}

void ProcessNetwork::TakeWhenHere(int process, const Label& label, TakeFn take) {
  Peer& peer = *peers_[static_cast<size_t>(process)];
  absl::StatusOr<std::string> here = absl::UnavailableError("the process that sends it has ended");
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = peer.messages.find(label);
    if (at != peer.messages.end()) {
      here = std::move(at->second);
      peer.messages.erase(at);
    } else if (!peer.ended) {
      peer.takers[label] = std::move(take);
      return;
    }
  }
  take(std::move(here));
}

absl::Status ProcessNetwork::Send(int process, const Label& label, const void* data, size_t bytes,
                                  double timeout_seconds) {
  Peer& peer = *peers_[static_cast<size_t>(process)];
  if (process == self_) {
    Deliver(&peer, label, std::string(static_cast<const char*>(data), bytes));
    return absl::OkStatus();
  }
  const Header header = {label, bytes};
  const Clock::time_point end = After(timeout_seconds);
  const std::lock_guard<std::mutex> lock(peer.sending);
  Sent sent = SendFully(peer.socket, &header, sizeof(header), /*more=*/bytes > 0, end);
  if (sent == Sent::kAll) sent = SendFully(peer.socket, data, bytes, /*more=*/false, end);
  if (sent == Sent::kAll) return absl::OkStatus();
  // The rest of a message that was cut off would be taken for the begin of the next one.
  shutdown(peer.socket, SHUT_RDWR);
  if (sent == Sent::kClosed) return absl::UnavailableError(StrCat("process ", process, " has ended"));
  return absl::DeadlineExceededError(
      StrCat("process ", process, " has received nothing for ", FormatDouble(timeout_seconds), " s"));
}

std::optional<std::string> ProcessNetwork::Take(int process, const Label& label) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<Label, std::string>& messages = peers_[static_cast<size_t>(process)]->messages;
  const auto at = messages.find(label);
  if (at == messages.end()) return std::nullopt;
  std::string message = std::move(at->second);
  messages.erase(at);
  return message;
}

std::optional<std::string> ProcessNetwork::Read(int process, const Label& label) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::map<Label, std::string>& messages = peers_[static_cast<size_t>(process)]->messages;
  const auto at = messages.find(label);
  if (at == messages.end()) return std::nullopt;
  return at->second;
}

int64_t ProcessNetwork::SizeOf(int process, const Label& label) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::map<Label, std::string>& messages = peers_[static_cast<size_t>(process)]->messages;
  const auto at = messages.find(label);
  return at == messages.end() ? -1 : static_cast<int64_t>(at->second.size());
}

void ProcessNetwork::EndRun(uint64_t world, uint64_t run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t& last = ended_runs_[world];
  last = std::max(last, run);
  for (const std::unique_ptr<Peer>& peer : peers_) {
    const auto begin = peer->messages.lower_bound({world, 0, 0, 0});
    const auto end = peer->messages.lower_bound({world, last + 1, 0, 0});
    peer->messages.erase(begin, end);
  }
}

bool ProcessNetwork::HasEnded(int process) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peers_[static_cast<size_t>(process)]->ended;
}

}  // namespace hlokit::interp
