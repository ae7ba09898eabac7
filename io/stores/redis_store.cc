// SPDX-License-Identifier: Apache-2.0
#include "io/stores/redis_store.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "io/stores/credentials.h"
#include "io/stores/resolve_host.h"
#include "io/stores/retry.h"
#include "io/stores/shared_library.h"
#include "io/stores/sigpipe_guard.h"
#include "ir/core/str_cat.h"

#if HLOKIT_REDIS_STORE
#include <hiredis/hiredis.h>
#endif

namespace hlokit {

#if HLOKIT_REDIS_STORE
namespace {

constexpr uint64_t kMaxValueBytes = uint64_t{512} << 20;  // of Redis
// Keys that a scan visits at a time, and calls of a scan: a bound for a server whose scan has no end.
constexpr int kScanCount = 1000;
constexpr int kMaxScanCalls = 1 << 16;
// Limits on what a server may send: elements of an array, bytes of a reply to a scan, and of one that is a line or a
// short string.
constexpr size_t kMaxElements = 1 << 20;
constexpr uint64_t kMaxScanBytes = 1 << 24;
constexpr uint64_t kMaxLineBytes = 1 << 16;

struct RedisLibrary {
  SharedLibrary library;
  decltype(redisConnectWithTimeout)* connect = nullptr;
  decltype(redisBufferRead)* read = nullptr;
  decltype(redisReaderGetReply)* get_reply = nullptr;
  decltype(freeReplyObject)* free_reply = nullptr;
  decltype(redisFree)* free_context = nullptr;

  RedisLibrary() {
    if (!library.Load(HLOKIT_LIBHIREDIS, "libhiredis0.14").ok()) return;
    library.Resolve("redisConnectWithTimeout", &connect);
    library.Resolve("redisBufferRead", &read);
    library.Resolve("redisReaderGetReply", &get_reply);
    library.Resolve("freeReplyObject", &free_reply);
    library.Resolve("redisFree", &free_context);
  }
};

const RedisLibrary& Redis() {
  static const RedisLibrary& redis = *new RedisLibrary();
  return redis;
}

struct ReplyDeleter {
  void operator()(redisReply* reply) const { Redis().free_reply(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyDeleter>;

// The functions that make parts of a reply, of this process; arrays take memory as the server says, before it sends
// them.
redisReplyObjectFunctions& ReplyFunctions() {
  static redisReplyObjectFunctions functions{};
  return functions;
}
decltype(redisReplyObjectFunctions::createArray) create_array = nullptr;

template <typename Count>  // int or size_t, by the version of hiredis
void* CreateArrayWithinLimit(const redisReadTask* task, Count elements) {
  return static_cast<size_t>(elements) > kMaxElements ? nullptr : create_array(task, elements);
}

timeval TimevalOf(int64_t ms) { return {.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000}; }

std::string TextOf(const redisReply& reply) { return reply.str == nullptr ? "" : std::string(reply.str, reply.len); }

// Escapes characters that a pattern gives a meaning.
std::string GlobEscaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

class RedisStore : public ByteStore {
 public:
  RedisStore(const StoreUrl& url, const StoreOptions& options) : ByteStore(url), options_(options) {
    password_ = url.password.empty() ? ProcessEnvironment()("REDISCLI_AUTH").value_or("") : url.password;
  }
  ~RedisStore() override { Disconnect(); }

  absl::StatusOr<std::string> Get(std::string_view key, uint64_t max_bytes, bool first_bytes) override {
    const std::string full = FullKey(key);
    // One byte more than may be, as the server sends all that it is asked for.
    const std::string last = StrCat(std::min(max_bytes, kMaxValueBytes));
    std::string bytes;
    const Deadline deadline(options_.deadline_ms);
    // Nothing is what a key that does not exist has, too. One that another process writes between the two questions
    // exists, and is read again.
    for (int reads = 0; reads < 2 && bytes.empty(); ++reads) {
      const uint64_t limit = std::min(max_bytes, kMaxValueBytes) + kMaxLineBytes;
      const absl::StatusOr<Reply> reply = Call(key, {"GETRANGE", full, "0", last}, deadline, limit);
      if (!reply.ok()) return reply.status();
      if ((*reply)->type != REDIS_REPLY_STRING) return Unexpected(key, "GETRANGE");
      bytes = TextOf(**reply);
      if (!bytes.empty()) break;
      const absl::StatusOr<bool> exists = Exists(key, deadline);
      if (!exists.ok()) return exists.status();
      if (!*exists) return absl::NotFoundError(StrCat(AddressOf(key), ": no such key"));
    }
    if (bytes.size() > max_bytes) {
      if (!first_bytes)
        return absl::ResourceExhaustedError(StrCat(AddressOf(key), ": more than ", max_bytes, " bytes"));
      bytes.resize(max_bytes);
    }
    return bytes;
  }

  absl::Status Put(std::string_view key, std::string_view bytes) override {
    if (bytes.size() > kMaxValueBytes) {
      return absl::ResourceExhaustedError(StrCat(AddressOf(key), ": more than ", kMaxValueBytes, " bytes to write"));
    }
    return Call(key, {"SET", FullKey(key), bytes}, Deadline(options_.deadline_ms)).status();
  }

  absl::StatusOr<bool> Exists(std::string_view key) override { return Exists(key, Deadline(options_.deadline_ms)); }

  absl::StatusOr<std::vector<std::string>> List(std::string_view prefix, size_t max_keys) override {
    const std::string root = url().path.empty() ? "" : StrCat(url().path, "/");
    const std::string pattern = StrCat(GlobEscaped(StrCat(root, prefix)), "*");
    std::set<std::string> keys;  // a scan may return one several times
    std::string cursor = "0";
    int calls = 0;
    const Deadline deadline(options_.deadline_ms);
    do {
      if (deadline.is_over()) return absl::UnavailableError(StrCat(AddressOf(prefix), ": timeout of SCAN"));
      if (++calls > kMaxScanCalls) {
        return absl::ResourceExhaustedError(StrCat(AddressOf(prefix), ": more than ", kMaxScanCalls, " calls of SCAN"));
      }
      const absl::StatusOr<Reply> reply =
          Call(prefix, {"SCAN", cursor, "MATCH", pattern, "COUNT", StrCat(kScanCount)}, deadline, kMaxScanBytes);
      if (!reply.ok()) return reply.status();
      const redisReply& scan = **reply;
      if (scan.type != REDIS_REPLY_ARRAY || scan.elements != 2) {
        return Unexpected(prefix, "SCAN");
      }
      if (scan.element[0] == nullptr || scan.element[1] == nullptr) return Unexpected(prefix, "SCAN");
      const std::string next = TextOf(*scan.element[0]);
      if (next == cursor && next != "0") return Unexpected(prefix, "SCAN");  // it does not advance
      cursor = next;
      const redisReply& found = *scan.element[1];
      for (size_t i = 0; found.type == REDIS_REPLY_ARRAY && i < found.elements; ++i) {
        const std::string key = TextOf(*found.element[i]);
        if (key.starts_with(root)) keys.insert(key.substr(root.size()));
      }
    } while (cursor != "0" && keys.size() < max_keys);
    std::vector<std::string> list(keys.begin(), keys.end());
    if (list.size() > max_keys) list.resize(max_keys);
    return list;
  }

  absl::Status Remove(std::string_view key) override {
    return Call(key, {"DEL", FullKey(key)}, Deadline(options_.deadline_ms)).status();
  }

 private:
  absl::Status Unexpected(std::string_view key, std::string_view command) const {
    return absl::FailedPreconditionError(StrCat(AddressOf(key), ": unexpected reply to ", command));
  }

  absl::StatusOr<bool> Exists(std::string_view key, const Deadline& deadline) {
    const absl::StatusOr<Reply> reply = Call(key, {"EXISTS", FullKey(key)}, deadline);
    if (!reply.ok()) return reply.status();
    return (*reply)->integer > 0;
  }

  // Returns the reply to a command, of `max_bytes` at most.
  absl::StatusOr<Reply> Call(std::string_view key, const std::vector<std::string_view>& arguments,
                             const Deadline& deadline, uint64_t max_bytes = kMaxLineBytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    const SigpipeGuard guard;
    Reply reply;
    absl::Status status = WithRetries(options_, deadline, [&](int64_t) {
      absl::Status connected = Connect(deadline);
      if (!connected.ok()) return Attempt{connected};
      return Attempt{Command(arguments, deadline, max_bytes, &reply)};
    });
    if (status.ok()) return reply;
    return absl::Status(status.code(), StrCat(AddressOf(key), ": ", std::string(status.message())));
  }

  void Disconnect() {
    if (context_ != nullptr) Redis().free_context(context_);
    context_ = nullptr;
  }

  // Connects and logs in if there is no connection.
  absl::Status Connect(const Deadline& deadline) {
    if (context_ != nullptr) return absl::OkStatus();
    // The library would wait for name servers as long as the system does.
    const absl::StatusOr<std::vector<std::string>> addresses =
        ResolveHost(url().host, deadline.Within(options_.connect_timeout_ms));
    if (!addresses.ok()) return addresses.status();
    for (const std::string& address : *addresses) {
      Disconnect();
      context_ = Redis().connect(address.c_str(), url().port, TimevalOf(deadline.Within(options_.connect_timeout_ms)));
      if (context_ == nullptr) return absl::UnavailableError("no memory for a connection");
      if (context_->err == 0) break;
    }
    if (context_->err != 0) return Lost("cannot connect");
    // From here on this process waits, until the deadline, instead of the library, which waits for each part.
    const int flags = fcntl(context_->fd, F_GETFL);
    if (flags < 0 || fcntl(context_->fd, F_SETFL, flags | O_NONBLOCK) != 0) return Lost("cannot connect");
    context_->flags &= ~REDIS_BLOCK;
    BoundArrays();
    if (!password_.empty()) {
      std::vector<std::string_view> login = {"AUTH"};
      if (!url().user.empty()) login.push_back(url().user);
      login.push_back(password_);
      if (absl::Status s = Command(login, deadline, kMaxLineBytes, nullptr); !s.ok()) {
        Disconnect();
        if (absl::IsUnavailable(s)) return s;
        return absl::PermissionDeniedError(
            "the server rejects user or password");  // not the reply, which may quote them
      }
    }
    if (url().database != 0) {
      if (absl::Status s = Command({"SELECT", StrCat(url().database)}, deadline, kMaxLineBytes, nullptr); !s.ok()) {
        Disconnect();
        return s;
      }
    }
    return absl::OkStatus();
  }

  void BoundArrays() {
    static const bool done = [this] {
      ReplyFunctions() = *context_->reader->fn;
      create_array = ReplyFunctions().createArray;
      ReplyFunctions().createArray = &CreateArrayWithinLimit;
      return true;
    }();
    if (done) context_->reader->fn = &ReplyFunctions();
  }

  absl::Status LostFor(absl::StatusCode code, std::string_view message) {
    Disconnect();
    return absl::Status(code, std::string(message));
  }

  // Waits for events of the connection.
  absl::Status Wait(short events, const Deadline& deadline) {
    pollfd poll_for = {.fd = context_->fd, .events = events, .revents = 0};
    for (;;) {
      if (deadline.is_over()) return LostFor(absl::StatusCode::kUnavailable, "connection lost: timeout");
      const int ready = poll(&poll_for, 1, static_cast<int>(deadline.Within(options_.stall_timeout_ms)));
      if (ready > 0) return absl::OkStatus();
      if (ready < 0 && errno == EINTR) continue;
      return LostFor(absl::StatusCode::kUnavailable, "connection lost: timeout");
    }
  }

  // Sends bytes: the library would move those that are left each time that the system takes some.
  absl::Status Send(std::string_view bytes, const Deadline& deadline) {
    while (!bytes.empty()) {
      if (absl::Status s = Wait(POLLOUT, deadline); !s.ok()) return s;
      const ssize_t n = send(context_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n >= 0) {
        bytes.remove_prefix(static_cast<size_t>(n));
      } else if (errno != EINTR && errno != EAGAIN) {
        return LostFor(absl::StatusCode::kUnavailable,
                       StrCat("connection lost: ", std::system_category().message(errno)));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Reply> Receive(const Deadline& deadline, uint64_t max_bytes) {
    const RedisLibrary& redis = Redis();
    redisReader& reader = *context_->reader;
    if (reader.len != reader.pos)
      return LostFor(absl::StatusCode::kFailedPrecondition, "a reply that nobody asked for");
    uint64_t received = 0;
    char kind = '\0';
    for (;;) {
      if (absl::Status s = Wait(POLLIN, deadline); !s.ok()) return s;
      const size_t before = reader.len - reader.pos;
      if (redis.read(context_) != REDIS_OK) return Lost("connection lost");
      received += reader.len - reader.pos - before;
      if (kind == '\0' && received > 0) kind = reader.buf[reader.pos];
      void* reply = nullptr;
      const bool is_valid = redis.get_reply(&reader, &reply) == REDIS_OK;
      if (reply != nullptr) return Reply(static_cast<redisReply*>(reply));
      if (!is_valid) {
        return LostFor(absl::StatusCode::kFailedPrecondition, StrCat("no reply of Redis: ", reader.errstr));
      }
      const uint64_t limit = kind == '$' || kind == '*' ? max_bytes : std::min(max_bytes, kMaxLineBytes);
      if (received > limit) {
        return LostFor(absl::StatusCode::kFailedPrecondition, StrCat("a reply of more than ", limit, " bytes"));
      }
    }
  }

  // Closes a connection with an error.
  absl::Status Lost(std::string_view what) {
    // EAGAIN is how a timeout appears.
    const bool timeout = context_->err == REDIS_ERR_IO && errno == EAGAIN;
    const std::string message = StrCat(what, ": ", timeout ? "timeout" : std::string_view(context_->errstr));
    const bool protocol = context_->err == REDIS_ERR_PROTOCOL;
    Disconnect();
    if (protocol) return absl::FailedPreconditionError(message);  // no Redis server
    return absl::UnavailableError(message);
  }

  absl::Status Command(const std::vector<std::string_view>& arguments, const Deadline& deadline, uint64_t max_bytes,
                       Reply* result) {
    // Strings with their sizes; a long one is not copied.
    constexpr size_t kMaxCopied = 4096;
    std::string text = StrCat("*", arguments.size(), "\r\n");
    for (const std::string_view argument : arguments) {
      StrAppend(&text, "$", argument.size(), "\r\n");
      if (argument.size() <= kMaxCopied) {
        text.append(argument);
      } else {
        for (const std::string_view part : {std::string_view(text), argument}) {
          if (absl::Status s = Send(part, deadline); !s.ok()) return s;
        }
        text.clear();
      }
      text.append("\r\n");
    }
    if (absl::Status s = Send(text, deadline); !s.ok()) return s;
    absl::StatusOr<Reply> received = Receive(deadline, max_bytes);
    if (!received.ok()) return received.status();
    Reply reply = *std::move(received);
    if (reply->type == REDIS_REPLY_ERROR) {
      const std::string text = TextOf(*reply);
      for (const std::string_view busy : {"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN"}) {
        if (text.starts_with(busy)) return absl::UnavailableError(text);
      }
      for (const std::string_view denied : {"NOAUTH", "WRONGPASS", "NOPERM"}) {
        if (text.starts_with(denied)) return absl::PermissionDeniedError(text);
      }
      return absl::FailedPreconditionError(text);
    }
    if (result != nullptr) *result = std::move(reply);
    return absl::OkStatus();
  }

  const StoreOptions options_;
  std::string password_;
  std::mutex mutex_;
  redisContext* context_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStore>> OpenRedisStore(const StoreUrl& url, const StoreOptions& options) {
  if (absl::Status s = Redis().library.status(); !s.ok()) return s;
  return std::make_unique<RedisStore>(url, options);
}

#else

absl::StatusOr<std::unique_ptr<ByteStore>> OpenRedisStore(const StoreUrl&, const StoreOptions&) {
  return absl::UnimplementedError("this build has no redis: hiredis was missing (tools/install-deps build)");
}

#endif

}  // namespace hlokit
