// SPDX-License-Identifier: Apache-2.0
#include "parser/store/redis_store.h"

#include <sys/time.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ir/core/str_cat.h"
#include "parser/store/credentials.h"
#include "parser/store/retry.h"
#include "parser/store/shared_library.h"
#include "parser/store/sigpipe_guard.h"

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

struct RedisLibrary {
  SharedLibrary library;
  decltype(redisConnectWithTimeout)* connect = nullptr;
  decltype(redisSetTimeout)* set_timeout = nullptr;
  decltype(redisCommandArgv)* command = nullptr;
  decltype(freeReplyObject)* free_reply = nullptr;
  decltype(redisFree)* free_context = nullptr;

  RedisLibrary() {
    if (!library.Load(HLOKIT_LIBHIREDIS, "libhiredis0.14").ok()) return;
    library.Resolve("redisConnectWithTimeout", &connect);
    library.Resolve("redisSetTimeout", &set_timeout);
    library.Resolve("redisCommandArgv", &command);
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
    // Nothing is what a key that does not exist has, too. One that another process writes between the two questions
    // exists, and is read again.
    for (int reads = 0; reads < 2 && bytes.empty(); ++reads) {
      const absl::StatusOr<Reply> reply = Call(key, {"GETRANGE", full, "0", last});
      if (!reply.ok()) return reply.status();
      if ((*reply)->type != REDIS_REPLY_STRING) return Unexpected(key, "GETRANGE");
      bytes = TextOf(**reply);
      if (!bytes.empty()) break;
      const absl::StatusOr<bool> exists = Exists(key);
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
    return Call(key, {"SET", FullKey(key), bytes}).status();
  }

  absl::StatusOr<bool> Exists(std::string_view key) override {
    const absl::StatusOr<Reply> reply = Call(key, {"EXISTS", FullKey(key)});
    if (!reply.ok()) return reply.status();
    return (*reply)->integer > 0;
  }

  absl::StatusOr<std::vector<std::string>> List(std::string_view prefix, size_t max_keys) override {
    const std::string root = url().path.empty() ? "" : StrCat(url().path, "/");
    const std::string pattern = StrCat(GlobEscaped(StrCat(root, prefix)), "*");
    std::set<std::string> keys;  // a scan may return one several times
    std::string cursor = "0";
    int calls = 0;
    do {
      if (++calls > kMaxScanCalls) {
        return absl::ResourceExhaustedError(StrCat(AddressOf(prefix), ": more than ", kMaxScanCalls, " calls of SCAN"));
      }
      const absl::StatusOr<Reply> reply = Call(prefix, {"SCAN", cursor, "MATCH", pattern, "COUNT", StrCat(kScanCount)});
      if (!reply.ok()) return reply.status();
      const redisReply& scan = **reply;
      if (scan.type != REDIS_REPLY_ARRAY || scan.elements != 2) {
        return Unexpected(prefix, "SCAN");
      }
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

  absl::Status Remove(std::string_view key) override { return Call(key, {"DEL", FullKey(key)}).status(); }

 private:
  absl::Status Unexpected(std::string_view key, std::string_view command) const {
    return absl::FailedPreconditionError(StrCat(AddressOf(key), ": unexpected reply to ", command));
  }

  absl::StatusOr<Reply> Call(std::string_view key, const std::vector<std::string_view>& arguments) {
    std::lock_guard<std::mutex> lock(mutex_);
    const SigpipeGuard guard;
    Reply reply;
    absl::Status status = WithRetries(options_, [&](int64_t left_ms) {
      absl::Status connected = Connect(left_ms);
      if (!connected.ok()) return Attempt{connected};
      return Attempt{Command(arguments, &reply)};
    });
    if (status.ok()) return reply;
    return absl::Status(status.code(), StrCat(AddressOf(key), ": ", std::string(status.message())));
  }

  void Disconnect() {
    if (context_ != nullptr) Redis().free_context(context_);
    context_ = nullptr;
  }

  // Connects and logs in if there is no connection. `left_ms`: until the deadline, 0 without one.
  absl::Status Connect(int64_t left_ms) {
    const auto within = [&](int64_t ms) { return TimevalOf(left_ms > 0 ? std::min(ms, left_ms) : ms); };
    if (context_ == nullptr) {
      context_ = Redis().connect(url().host.c_str(), url().port, within(options_.connect_timeout_ms));
      if (context_ == nullptr) return absl::UnavailableError("no memory for a connection");
      if (context_->err != 0) return Lost("cannot connect");
      if (!password_.empty()) {
        std::vector<std::string_view> login = {"AUTH"};
        if (!url().user.empty()) login.push_back(url().user);
        login.push_back(password_);
        Redis().set_timeout(context_, within(options_.stall_timeout_ms));
        if (absl::Status s = Command(login, nullptr); !s.ok()) {
          Disconnect();
          if (absl::IsUnavailable(s)) return s;
          return absl::PermissionDeniedError(
              "the server rejects user or password");  // not the reply, which may quote them
        }
      }
      if (url().database != 0) {
        Redis().set_timeout(context_, within(options_.stall_timeout_ms));
        if (absl::Status s = Command({"SELECT", StrCat(url().database)}, nullptr); !s.ok()) {
          Disconnect();
          return s;
        }
      }
    }
    Redis().set_timeout(context_, within(options_.stall_timeout_ms));
    return absl::OkStatus();
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

  absl::Status Command(const std::vector<std::string_view>& arguments, Reply* result) {
    std::vector<const char*> data;
    std::vector<size_t> sizes;
    for (const std::string_view argument : arguments) {
      data.push_back(argument.data());
      sizes.push_back(argument.size());
    }
    Reply reply(
        static_cast<redisReply*>(Redis().command(context_, static_cast<int>(data.size()), data.data(), sizes.data())));
    if (reply == nullptr) return Lost("connection lost");
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
