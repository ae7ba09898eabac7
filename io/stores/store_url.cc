// SPDX-License-Identifier: Apache-2.0
#include "io/stores/store_url.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "ir/core/hex_digit.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit {
namespace {

constexpr std::string_view kSeparator = "://";
constexpr std::string_view kDefaultRedisPrefix = "hlokit";

// Returns the length of the scheme that the text begins with, or 0.
size_t SchemeLength(std::string_view text) {
  const size_t end = text.find(kSeparator);
  if (end == std::string_view::npos || end < 2) return 0;
  for (size_t i = 0; i < end; ++i) {
    const char c = text[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
    if (!letter && (i == 0 || !other)) return 0;
  }
  return end;
}

std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

bool ParseNumber(std::string_view text, int max, int* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= 0 && *number <= max;
}

// Returns true for HOST or HOST:PORT, or nothing at all, in which no password can hide.
bool IsAuthority(std::string_view text) {
  if (text.empty()) return true;
  std::string_view host = text.substr(0, text.rfind(':'));
  std::string_view more = "-._";
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    host = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    more = ":.%";
  } else {
    text.remove_prefix(host.size());
  }
  int port = 0;
  if (!text.empty() && (text[0] != ':' || !ParseNumber(text.substr(1), 65535, &port))) return false;
  return !host.empty() && std::all_of(host.begin(), host.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || more.find(c) != more.npos;
  });
}

bool IsObjectScheme(std::string_view scheme) {
  return scheme == ToString(StoreKind::kS3) || scheme == ToString(StoreKind::kGcs) ||
         scheme == ToString(StoreKind::kAzure);
}

// Returns true for a name of characters that buckets or containers have; `$root` is a container.
bool IsContainerName(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '$';
  });
}

std::string_view WithoutSlashes(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

absl::Status Malformed(std::string_view text, std::string_view message) {
  return absl::InvalidArgumentError(StrCat(WithoutPassword(text), ": ", message));
}

absl::StatusOr<StoreUrl> ParseRedis(std::string_view text, std::string_view rest) {
  StoreUrl url;
  url.kind = StoreKind::kRedis;
  url.path = kDefaultRedisPrefix;
  constexpr std::string_view kForm = "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=PREFIX]";
  // A password may hold the other separators only percent-encoded.
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    const std::string_view login = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    const size_t colon = login.find(':');
    const std::optional<std::string> user = PercentDecoded(login.substr(0, colon));
    const std::optional<std::string> password =
        PercentDecoded(colon == std::string_view::npos ? std::string_view() : login.substr(colon + 1));
    if (!user || !password) return Malformed(text, "expected two hexadecimal digits after `%` in user or password");
    url.user = *user;
    url.password = *password;
    if (url.password.empty()) return Malformed(text, StrCat("expected a password before `@`, as in ", kForm));
  }
  if (const size_t question = rest.find('?'); question != std::string_view::npos) {
    std::string_view query = rest.substr(question + 1);
    rest = rest.substr(0, question);
    constexpr std::string_view kName = "prefix=";
    if (query.starts_with(kName)) {
      query.remove_prefix(kName.size());
    } else if (query.find('=') != std::string_view::npos) {
      return Malformed(text, StrCat("expected ?prefix=PREFIX, as in ", kForm));
    }
    const std::optional<std::string> prefix = PercentDecoded(query);
    if (!prefix) return Malformed(text, "expected two hexadecimal digits after `%` in the prefix");
    url.path = WithoutSlashes(*prefix);
  }
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    const std::string_view database = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
    if (!database.empty() && !ParseNumber(database, 1 << 16, &url.database)) {
      return Malformed(text, StrCat("expected the number of a database after the host, as in ", kForm));
    }
  }
  // An IPv6 address stands in brackets.
  size_t colon = rest.rfind(':');
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return Malformed(text, "expected `]` after the address");
    url.host = rest.substr(1, close - 1);
    colon = close + 1 < rest.size() ? close + 1 : std::string_view::npos;
    if (colon != std::string_view::npos && rest[colon] != ':') return Malformed(text, "expected `:` after `]`");
  } else {
    url.host = rest.substr(0, colon);
  }
  if (colon != std::string_view::npos && (!ParseNumber(rest.substr(colon + 1), 65535, &url.port) || url.port == 0)) {
    return Malformed(text, StrCat("expected the number of a port, as in ", kForm));
  }
  if (url.host.empty()) return Malformed(text, StrCat("expected a host, as in ", kForm));
  return url;
}

absl::StatusOr<StoreUrl> ParseObject(StoreKind kind, std::string_view text, std::string_view rest) {
  StoreUrl url;
  url.kind = kind;
  const size_t slash = rest.find('/');
  url.container = rest.substr(0, slash);
  if (slash != std::string_view::npos) url.path = WithoutSlashes(rest.substr(slash));
  const std::string_view what = kind == StoreKind::kAzure ? "container" : "bucket";
  if (url.container.empty()) {
    return Malformed(text, StrCat("expected the name of a ", what, ", as in ", ToString(kind), "://", what, "/name"));
  }
  if (!IsContainerName(url.container) || (kind != StoreKind::kAzure && url.container.find('$') != std::string::npos)) {
    return Malformed(text, StrCat("the name of a ", what, " has letters, digits, `-`, `.` and `_`"));
  }
  if (url.container == "." || url.container == "..") return Malformed(text, StrCat("this is not the name of a ", what));
  // HTTP clients and servers would rewrite such a path.
  for (std::string_view path = url.path; !path.empty();) {
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(segment.size() + 1, path.size()));
    if (segment == "." || segment == "..") return Malformed(text, StrCat("`", segment, "` cannot be part of a key"));
  }
  return url;
}

}  // namespace

std::string_view ToString(StoreKind kind) {
  switch (kind) {
    case StoreKind::kDirectory:
      return "directory";
    case StoreKind::kRedis:
      return "redis";
    case StoreKind::kS3:
      return "s3";
    case StoreKind::kGcs:
      return "gs";
    case StoreKind::kAzure:
      return "az";
  }
  return "";
}

bool IsStoreUrl(std::string_view path) { return SchemeLength(path) > 0; }

absl::StatusOr<StoreUrl> ParseStoreUrl(std::string_view text) {
  const size_t length = SchemeLength(text);
  if (length == 0) {
    StoreUrl directory;
    directory.container = text;
    return directory;
  }
  const std::string_view scheme = text.substr(0, length), rest = text.substr(length + kSeparator.size());
  if (scheme == "redis") return ParseRedis(text, rest);
  for (const StoreKind kind : {StoreKind::kS3, StoreKind::kGcs, StoreKind::kAzure}) {
    if (scheme == ToString(kind)) return ParseObject(kind, text, rest);
  }
  if (scheme == "file") {
    return Malformed(text, StrCat("write a local path without `file://`: ",
                                  WithoutPassword(text).substr(length + kSeparator.size())));
  }
  if (scheme == "rediss") return Malformed(text, "Redis over TLS is not supported; use redis:// through a TLS tunnel");
  const std::vector<std::string_view> known = {"redis", "s3", "gs", "az"};
  std::string hint = DidYouMeanSuffix(scheme, known);
  if (hint.empty() || hint.find("did you mean") == std::string::npos) hint = "; there are redis, s3, gs and az";
  return Malformed(text, StrCat("unknown scheme `", scheme, "`", hint));
}

std::string ToString(const StoreUrl& url) {
  if (url.kind == StoreKind::kDirectory) return url.container;
  if (url.kind == StoreKind::kRedis) {
    const bool v6 = url.host.find(':') != std::string::npos;
    return StrCat("redis://", v6 ? "[" : "", url.host, v6 ? "]" : "", ":", url.port, "/", url.database,
                  "?prefix=", url.path);
  }
  return StrCat(ToString(url.kind), kSeparator, url.container, url.path.empty() ? "" : "/", url.path);
}

std::string WithoutPassword(std::string_view text) {
  const size_t length = SchemeLength(text);
  if (length == 0) return std::string(text);
  const std::string_view head = text.substr(0, length + kSeparator.size());
  std::string_view rest = text.substr(head.size());
  const bool is_object = IsObjectScheme(text.substr(0, length));
  // Then an `@` is part of a key.
  if (is_object && IsContainerName(rest.substr(0, rest.find('/')))) return std::string(text);
  const size_t at = rest.rfind('@');
  if (at != std::string_view::npos) rest.remove_prefix(at + 1);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  if (!(is_object ? IsContainerName(authority) : IsAuthority(authority))) return StrCat(head, "...");
  return StrCat(head, at == std::string_view::npos ? "" : "...@", rest);
}

}  // namespace hlokit
