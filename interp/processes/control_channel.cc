// SPDX-License-Identifier: Apache-2.0
#include "interp/processes/control_channel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

constexpr size_t kTokenBytes = 16;
constexpr size_t kMaxAddresses = 16;
constexpr uint32_t kMaxPayload = 1 << 20;
constexpr size_t kMaxText = 1 << 16;
constexpr size_t kHeaderBytes = 5;
constexpr int kPollMs = 100;
constexpr double kConnectSeconds = 30, kBeatSeconds = 1, kFailureSeconds = 0.2, kTerminationSeconds = 0.4;
// For errors of other processes that read their files, so that of several the first one is printed.
constexpr double kSetupSeconds = 5;
// For a call of the library that waits for others, which are at the same call, at least.
constexpr double kCallSeconds = 5;
constexpr int kInternalError = 3;

// What a process must know to connect.
struct Meeting {
  uint16_t port = 0;
  uint32_t count = 0;
  uint32_t addresses[kMaxAddresses] = {};  // IPv4, network order
  char token[kTokenBytes] = {};
  char error[128] = {};
};

std::atomic<int> termination_pipe{-1};
void OnTermination(int) {
  // mpirun sends it to all processes after one has died, which the thread then reports.
  const char byte = 't';
  if (const int fd = termination_pipe.load(); fd >= 0 && write(fd, &byte, 1) < 0) return;
}

// Returns the number of a wait at the begin of a message, which it takes off.
uint64_t TakeWait(std::string_view* payload) {
  uint64_t wait = 0;
  if (payload->size() < sizeof(wait)) return 0;
  std::memcpy(&wait, payload->data(), sizeof(wait));
  payload->remove_prefix(sizeof(wait));
  return wait;
}
std::string WithWait(uint64_t wait, std::string_view payload) {
  std::string message(reinterpret_cast<const char*>(&wait), sizeof(wait));
  message += payload;
  return message;
}

std::vector<DeviceState> StatesFrom(std::string_view payload) {
  std::vector<DeviceState> states(payload.size() / sizeof(DeviceState));
  if (!states.empty()) std::memcpy(states.data(), payload.data(), states.size() * sizeof(DeviceState));
  return states;
}
std::string_view BytesOfStates(absl::Span<const DeviceState> states) {
  return {reinterpret_cast<const char*>(states.data()), states.size() * sizeof(DeviceState)};
}

bool WriteFully(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool ReadFully(int fd, char* to, size_t bytes, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (bytes > 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    pollfd wait = {fd, POLLIN, 0};
    if (poll(&wait, 1, kPollMs) <= 0) continue;
    const ssize_t n = recv(fd, to, bytes, 0);
    if (n <= 0) return false;
    to += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

void SetOptions(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A peer that does not read must not hold this process.
  const timeval limit = {5, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

ControlChannel::ControlChannel(std::string tool, int rank, int size, double timeout_seconds)
    : tool_(std::move(tool)), rank_(rank), timeout_seconds_(timeout_seconds), peers_(static_cast<size_t>(size)) {}

absl::StatusOr<std::unique_ptr<ControlChannel>> ControlChannel::Open(Transport* transport, std::string tool,
                                                                     double timeout_seconds) {
  auto channel = std::unique_ptr<ControlChannel>(
      new ControlChannel(std::move(tool), transport->rank(), transport->size(), timeout_seconds));
  if (pipe2(channel->wake_, O_CLOEXEC | O_NONBLOCK) != 0) return absl::InternalError("cannot make a pipe");
  const absl::Status status =
      channel->rank_ == 0 ? channel->Listen(transport, transport->is_one_host()) : channel->Connect(transport);
  if (!status.ok()) return status;
  channel->Start();
  return channel;
}

absl::Status ControlChannel::Listen(Transport* transport, bool loopback) {
  Meeting meeting;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t length = sizeof(address);
  const auto generic = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || bind(listener, generic, length) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, generic, &length) != 0 ||
      getrandom(meeting.token, kTokenBytes, 0) != static_cast<ssize_t>(kTokenBytes)) {
    std::snprintf(meeting.error, sizeof(meeting.error), "cannot listen for other processes: %s", std::strerror(errno));
  }
  meeting.port = address.sin_port;
  if (loopback) {
    meeting.addresses[meeting.count++] = htonl(INADDR_LOOPBACK);
  } else if (ifaddrs* list = nullptr; getifaddrs(&list) == 0) {
    for (const ifaddrs* at = list; at != nullptr && meeting.count < kMaxAddresses; at = at->ifa_next) {
      if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
      const uint32_t one = reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr;
      if (one != htonl(INADDR_LOOPBACK)) meeting.addresses[meeting.count++] = one;
    }
    freeifaddrs(list);
  }
  absl::Status met;
  if (!transport->Broadcast(&meeting, sizeof(meeting))) {
    met = absl::InternalError(transport->error());
  } else if (meeting.error[0] != '\0') {
    met = absl::InternalError(meeting.error);
  }
  if (!met.ok()) {
    if (listener >= 0) close(listener);
    return met;
  }
  const auto end = Clock::now() + std::chrono::duration<double>(kConnectSeconds);
  for (size_t missing = peers_.size() - 1; missing > 0;) {
    if (Clock::now() > end) {
      close(listener);
      return absl::DeadlineExceededError(StrCat(missing, " processes do not connect"));
    }
    pollfd wait = {listener, POLLIN, 0};
    if (poll(&wait, 1, kPollMs) <= 0) continue;
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) continue;
    SetOptions(fd);
    char hello[kTokenBytes + sizeof(int32_t)];
    int32_t rank = 0;
    const bool read = ReadFully(fd, hello, sizeof(hello), 2);
    if (read) std::memcpy(&rank, hello + kTokenBytes, sizeof(rank));
    if (!read || std::memcmp(hello, meeting.token, kTokenBytes) != 0 || rank < 1 ||
        rank >= static_cast<int32_t>(peers_.size()) || peers_[static_cast<size_t>(rank)].socket >= 0) {
      close(fd);
      continue;
    }
    peers_[static_cast<size_t>(rank)].socket = fd;
    --missing;
  }
  close(listener);
  return absl::OkStatus();
}

absl::Status ControlChannel::Connect(Transport* transport) {
  Meeting meeting;
  if (!transport->Broadcast(&meeting, sizeof(meeting))) return absl::InternalError(transport->error());
  if (meeting.error[0] != '\0') return absl::InternalError(meeting.error);
  for (uint32_t i = 0; i < std::min<uint32_t>(meeting.count, kMaxAddresses); ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = meeting.port;
    address.sin_addr.s_addr = meeting.addresses[i];
    const auto rank = static_cast<int32_t>(rank_);
    std::string hello(meeting.token, kTokenBytes);
    hello.append(reinterpret_cast<const char*>(&rank), sizeof(rank));
    if (fd >= 0) SetOptions(fd);  // the limit of sending is that of connecting too
    if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
        WriteFully(fd, hello)) {
      peers_[0].socket = fd;
      return absl::OkStatus();
    }
    if (fd >= 0) close(fd);
  }
  return absl::InternalError("cannot connect to the first process");
}

void ControlChannel::Start() {
  const Clock::time_point now = Clock::now();
  for (Peer& peer : peers_) peer.heard = now;
  if (rank_ != 0) {
    // Errors of this process are printed by the first, if they are not the same there.
    stderr_ = fcntl(2, F_DUPFD_CLOEXEC, 3);
    kept_ = memfd_create("errors", MFD_CLOEXEC);
    if (kept_ >= 0) dup2(kept_, 2);
  }
  termination_pipe.store(wake_[1]);
  std::signal(SIGTERM, OnTermination);
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& e) {
    if (kept_ >= 0) dup2(stderr_, 2);  // where errors are seen
    throw std::system_error(e.code(), "--mpi: cannot start a thread");
  }
}

ControlChannel::~ControlChannel() {
  if (thread_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    Wake();
    thread_.join();
  }
  std::signal(SIGTERM, SIG_DFL);
  termination_pipe.store(-1);
  for (const Peer& peer : peers_) {
    if (peer.socket >= 0) close(peer.socket);
  }
  for (int fd : wake_) {
    if (fd >= 0) close(fd);
  }
}

void ControlChannel::Wake() {
  const char byte = 'w';
  if (write(wake_[1], &byte, 1) < 0) return;  // full: the thread wakes anyway
}

void ControlChannel::Exit(int exit_code) {
  // Another thread may be writing to a pipe that nobody reads.
  if (ftrylockfile(stdout) == 0) fflush_unlocked(stdout);
  _exit(exit_code);
}

bool ControlChannel::Send(int rank, Kind kind, std::string_view payload) {
  const auto size = static_cast<uint32_t>(payload.size());
  std::string message(kHeaderBytes, '\0');
  message[0] = static_cast<char>(kind);
  std::memcpy(message.data() + 1, &size, sizeof(size));
  message += payload;
  const int fd = peers_[static_cast<size_t>(rank)].socket;
  if (fd < 0) return false;
  if (WriteFully(fd, message)) return true;
  // Perhaps within a message, so nothing more can be sent; the thread reads the end and says that the peer is lost.
  shutdown(fd, SHUT_RDWR);
  return false;
}

void ControlChannel::Tell(Kind kind, std::string_view payload) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (rank_ == 0) {
    Handle(0, kind, payload);
  } else {
    Send(0, kind, payload);
  }
  Wake();
}

void ControlChannel::Run() {
  Clock::time_point last_beat = Clock::now();
  std::vector<pollfd> waits;
  std::vector<int> ranks;
  Clock::time_point terminated;
  for (;;) {
    waits = {{wake_[0], POLLIN, 0}};
    ranks = {-1};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
      for (size_t r = 0; r < peers_.size(); ++r) {
        if (peers_[r].socket < 0) continue;
        waits.push_back({peers_[r].socket, POLLIN, 0});
        ranks.push_back(static_cast<int>(r));
      }
    }
    poll(waits.data(), waits.size(), kPollMs);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return;
    const Clock::time_point now = Clock::now();
    if ((waits[0].revents & POLLIN) != 0) {
      char bytes[64];
      const ssize_t n = read(wake_[0], bytes, sizeof(bytes));
      if (n > 0 && std::find(bytes, bytes + n, 't') != bytes + n && terminated == Clock::time_point()) terminated = now;
    }
    for (size_t i = 1; i < waits.size(); ++i) {
      if (waits[i].revents == 0 || Read(ranks[i])) continue;
      Peer& peer = peers_[static_cast<size_t>(ranks[i])];
      close(peer.socket);
      peer.socket = -1;
      if (!ended_ && !(rank_ == 0 && peer.said_bye && peers_[0].said_bye))
        ReportDeath(ranks[i], "has ended unexpectedly");
    }
    if (!ended_ && std::chrono::duration<double>(now - last_beat).count() >= kBeatSeconds) {
      last_beat = now;
      for (size_t r = 0; r < peers_.size(); ++r) {
        if (peers_[r].socket >= 0) Send(static_cast<int>(r), Kind::kBeat, "");
      }
    }
    for (size_t r = 0; r < peers_.size() && !ended_; ++r) {
      if (peers_[r].socket < 0) continue;
      if (std::chrono::duration<double>(now - peers_[r].heard).count() > timeout_seconds_) {
        ReportDeath(static_cast<int>(r), StrCat("has not answered for ", FormatDouble(timeout_seconds_), " s"));
      }
    }
    CheckCall();
    if (rank_ == 0 && !ended_) Decide();
    if (terminated != Clock::time_point() &&
        std::chrono::duration<double>(now - terminated).count() > kTerminationSeconds) {
      Exit(128 + SIGTERM);
    }
  }
}

bool ControlChannel::Read(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  char bytes[4096];
  const ssize_t n = recv(peer.socket, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  peer.heard = Clock::now();
  peer.received.append(bytes, static_cast<size_t>(n));
  while (peer.received.size() >= kHeaderBytes) {
    uint32_t size = 0;
    std::memcpy(&size, peer.received.data() + 1, sizeof(size));
    if (size > kMaxPayload) return false;
    if (peer.received.size() < kHeaderBytes + size) break;
    const std::string message = peer.received.substr(0, kHeaderBytes + size);
    peer.received.erase(0, kHeaderBytes + size);
    Handle(rank, static_cast<Kind>(message[0]), std::string_view(message).substr(kHeaderBytes));
  }
  return true;
}

void ControlChannel::Handle(int rank, Kind kind, std::string_view payload) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const auto number = [&](auto value) {
    if (payload.size() >= sizeof(value)) std::memcpy(&value, payload.data(), sizeof(value));
    return value;
  };
  switch (kind) {
    case Kind::kHello:
    case Kind::kBeat:
      break;
    case Kind::kBusy:
      SetStates(rank, false, payload);
      break;
    case Kind::kIdle:
      peer.wait = TakeWait(&payload);
      SetStates(rank, true, payload);
      break;
    case Kind::kReady:
      peer.ready = true;
      break;
    case Kind::kFail:
      if (failed_at_ == Clock::time_point()) failed_at_ = Clock::now();
      peer.exit_code = std::max(number(int32_t{1}), 1);
      peer.text = payload.substr(std::min(payload.size(), sizeof(int32_t)));
      break;
    case Kind::kBye:
      peer.said_bye = true;
      peer.idle = true;
      peer.waits_for_bytes = false;
      break;
    case Kind::kNext: {
      const int64_t item = next_item_++;
      if (rank == rank_) {
        item_ = item;
      } else {
        Send(rank, Kind::kItem, {reinterpret_cast<const char*>(&item), sizeof(item)});
      }
      break;
    }
    case Kind::kItem:
      item_ = number(int64_t{0});
      break;
    case Kind::kEnd: {
      const int32_t exit_code = number(int32_t{kInternalError});
      if (exit_code != 0) Exit(exit_code);
      ended_ = true;
      break;
    }
    case Kind::kAllWait:
      all_wait_ = TakeWait(&payload) == wait_;
      all_states_ = StatesFrom(payload);
      break;
  }
  changed_.notify_all();
}

void ControlChannel::SetStates(int rank, bool idle, std::string_view payload) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!payload.empty()) peer.states = StatesFrom(payload);
  peer.waits_for_bytes = idle && payload.empty();
  if (peer.idle != idle) {
    for (Peer& each : peers_) each.idle_reports = 0;
  }
  peer.idle = idle;
  ++peer.idle_reports;
}

// All processes say that they have waited, and again after the last one began to: no short message is on its way.
void ControlChannel::FindAllWait() {
  constexpr int kReports = 3;
  std::vector<DeviceState> all;
  int at_collective = -1, for_bytes = -1;
  for (size_t r = 0; r < peers_.size(); ++r) {
    const Peer& peer = peers_[r];
    if (!peer.idle) return;
    const bool waits = !peer.said_bye && !peer.waits_for_bytes &&
                       std::any_of(peer.states.begin(), peer.states.end(),
                                   [](const DeviceState& state) { return state.instruction >= 0; });
    if ((waits || peer.waits_for_bytes) && peer.idle_reports < kReports) return;
    if (waits && at_collective < 0) at_collective = static_cast<int>(r);
    if (peer.waits_for_bytes && for_bytes < 0) for_bytes = static_cast<int>(r);
    all.insert(all.end(), peer.states.begin(), peer.states.end());
  }
  const int told = at_collective >= 0 ? at_collective : for_bytes;
  if (told < 0) return;
  const std::string payload = WithWait(peers_[static_cast<size_t>(told)].wait, BytesOfStates(all));
  if (told == rank_) {
    Handle(rank_, Kind::kAllWait, payload);
  } else {
    Send(told, Kind::kAllWait, payload);
  }
  for (Peer& peer : peers_) peer.idle_reports = 0;
}

void ControlChannel::CheckCall() {
  const double limit = std::max(timeout_seconds_, kCallSeconds);
  if (call_.empty() || std::chrono::duration<double>(Clock::now() - call_began_).count() < limit) return;
  const std::string text = StrCat(tool_, ": error: process ", rank_, " of ", peers_.size(), " has waited for ",
                                  FormatDouble(limit), " s for others in ", call_, "\n");
  call_.clear();
  if (rank_ == 0 || ended_) dprintf(stderr_, "%s", text.c_str());
  if (ended_) Exit(kInternalError);
  if (rank_ == 0) EndAll(kInternalError);
  std::string payload(sizeof(int32_t), '\0');
  std::memcpy(payload.data(), &kInternalError, sizeof(kInternalError));
  // The first process ends all; without it, this one ends.
  if (!Send(0, Kind::kFail, payload + text)) Exit(kInternalError);
}

void ControlChannel::Decide() {
  const auto failed = std::find_if(peers_.begin(), peers_.end(), [](const Peer& p) { return p.exit_code != 0; });
  if (failed == peers_.end()) {
    FindAllWait();
    if (std::all_of(peers_.begin(), peers_.end(), [](const Peer& p) { return p.said_bye; })) EndAll(0);
    return;
  }
  const bool all_ready =
      std::all_of(peers_.begin(), peers_.end(), [](const Peer& p) { return p.ready || p.exit_code != 0; });
  const double since = std::chrono::duration<double>(Clock::now() - failed_at_).count();
  if (since < (all_ready ? kFailureSeconds : std::min(kSetupSeconds, timeout_seconds_))) return;
  // The first process has printed its own.
  if (failed != peers_.begin()) {
    std::fprintf(stderr, "%s", failed->text.c_str());
    if (failed->text.empty()) {
      std::fprintf(stderr, "%s: error: process %d failed\n", tool_.c_str(), static_cast<int>(failed - peers_.begin()));
    }
  }
  EndAll(failed->exit_code);
}

void ControlChannel::EndAll(int exit_code) {
  ended_ = true;
  const auto code = static_cast<int32_t>(exit_code);
  for (size_t r = 1; r < peers_.size(); ++r) {
    Send(static_cast<int>(r), Kind::kEnd, {reinterpret_cast<const char*>(&code), sizeof(code)});
  }
  if (exit_code != 0) Exit(exit_code);
  changed_.notify_all();
}

void ControlChannel::ReportDeath(int rank, std::string_view how) {
  // Of the death of the first process, the second one tells.
  if (rank_ == 0 || rank_ == 1) {
    dprintf(stderr_, "%s: error: process %d of %d %.*s\n", tool_.c_str(), rank, static_cast<int>(peers_.size()),
            static_cast<int>(how.size()), how.data());
  }
  if (rank_ == 0) EndAll(kInternalError);
  Exit(kInternalError);
}

void ControlChannel::EndSetup() { Tell(Kind::kReady, ""); }

void ControlChannel::Fail(int exit_code, std::string_view text) {
  const auto code = static_cast<int32_t>(exit_code);
  std::string payload(reinterpret_cast<const char*>(&code), sizeof(code));
  std::string kept;
  if (kept_ >= 0) {
    std::fflush(stderr);
    kept.resize(kMaxText);
    const ssize_t n = pread(kept_, kept.data(), kept.size(), 0);
    kept.resize(n > 0 ? static_cast<size_t>(n) : 0);
  } else if (!text.empty()) {
    std::fprintf(stderr, "%.*s", static_cast<int>(text.size()), text.data());
  }
  StrAppend(&payload, kept, text);
  if (payload.size() > kMaxPayload) payload.resize(kMaxPayload);
  Tell(Kind::kFail, payload);
  for (;;) pause();  // the thread ends the process
}

void ControlChannel::Finish() {
  Tell(Kind::kReady, "");
  Tell(Kind::kBye, "");
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return ended_; });
}

int64_t ControlChannel::NextItem() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    item_ = -1;
  }
  Tell(Kind::kNext, "");
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return item_ >= 0; });
  return item_;
}

void ControlChannel::BeginCall(std::string_view what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  call_ = what;
  call_began_ = Clock::now();
}

void ControlChannel::EndCall() {
  const std::lock_guard<std::mutex> lock(mutex_);
  call_.clear();
}

void ControlChannel::SetIdle(absl::Span<const DeviceState> states) {
  Tell(Kind::kIdle, WithWait(wait_, BytesOfStates(states)));
}

void ControlChannel::SetBusy(absl::Span<const DeviceState> states) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++wait_;
    all_wait_ = false;
  }
  Tell(Kind::kBusy, BytesOfStates(states));
}

bool ControlChannel::TakeAllWait(std::vector<DeviceState>* states) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!all_wait_) return false;
  all_wait_ = false;
  *states = std::move(all_states_);
  return true;
}

}  // namespace hlokit::interp
