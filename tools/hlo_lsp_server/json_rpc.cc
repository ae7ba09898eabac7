// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_lsp_server/json_rpc.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "absl/strings/match.h"
#include "ir/core/str_cat.h"

namespace hlokit::lsp {
namespace {

constexpr std::string_view kHeaderEnd = "\r\n\r\n";
constexpr size_t kMaxHeaderBytes = size_t{1} << 16;

// Returns the value of Content-Length; nullopt without one.
std::optional<uint64_t> ContentLength(std::string_view header) {
  constexpr std::string_view kName = "content-length:";
  for (size_t begin = 0; begin < header.size();) {
    const size_t end = std::min(header.find("\r\n", begin), header.size());
    std::string_view line = header.substr(begin, end - begin);
    begin = end + 2;
    if (line.size() < kName.size() ||
        !absl::EqualsIgnoreCase({line.data(), kName.size()}, {kName.data(), kName.size()})) {
      continue;
    }
    line.remove_prefix(kName.size());
    while (!line.empty() && line[0] == ' ') line.remove_prefix(1);
    uint64_t length = 0;
    const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), length);
    if (error == std::errc() && stop != line.data()) return length;
  }
  return std::nullopt;
}

}  // namespace

bool MessageReader::Next(std::string* message, bool* skipped) {
  *skipped = false;
  for (;;) {
    const size_t left_out = static_cast<size_t>(std::min<uint64_t>(to_skip_, buffer_.size() - begin_));
    begin_ += left_out;
    to_skip_ -= left_out;
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const size_t header_end = rest.find(kHeaderEnd);
    const size_t body = header_end + kHeaderEnd.size();
    const bool has_header = header_end != std::string_view::npos;
    const std::optional<uint64_t> length = has_header ? ContentLength(rest.substr(0, header_end)) : std::nullopt;
    if (has_header && length && *length <= kMaxMessageBytes) {
      if (rest.size() - body >= *length) {
        message->assign(rest.substr(body, static_cast<size_t>(*length)));
        begin_ += body + static_cast<size_t>(*length);
        return true;
      }
    } else if (has_header) {
      *skipped = true;
      begin_ += body;
      to_skip_ = length.value_or(0);
      continue;
    } else if (rest.size() > kMaxHeaderBytes) {
      *skipped = true;
      begin_ = buffer_.size();
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    return false;
  }
}

std::string Framed(std::string_view message) { return StrCat("Content-Length: ", message.size(), kHeaderEnd, message); }

}  // namespace hlokit::lsp
