// SPDX-License-Identifier: Apache-2.0
// JSON-RPC 2.0 in the framing of the Language Server Protocol: "Content-Length: N", an empty line, N bytes of JSON.
//
// The JSON-RPC libraries of Debian 12 for C++ (libjsonrpccpp, libjsonrpc-glib) have other framings or an event loop of
// their own, no way to see messages that wait, which cancellation takes, and report errors by exceptions; the framing
// is the few lines here.
//
// Bounds: one message of at most kMaxMessageBytes, and what has arrived after it.
#ifndef HLOKIT_TOOLS_HLO_LSP_SERVER_JSON_RPC_H_
#define HLOKIT_TOOLS_HLO_LSP_SERVER_JSON_RPC_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hlokit::lsp {

using Json = nlohmann::json;

inline constexpr size_t kMaxMessageBytes = size_t{1} << 30;

// Codes of JSON-RPC and of the protocol.
enum class ErrorCode : int {
  kNone = 0,
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kInternalError = -32603,
  kServerNotInitialized = -32002,
  kRequestFailed = -32803,
  kRequestCancelled = -32800,
};

// Takes messages out of a stream of bytes.
class MessageReader {
 public:
  // Appends bytes that have arrived.
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // Takes the next whole message; returns false if there is none yet. A header without a length, or with one above the
  // limit, is skipped with its message as far as that is known, and `skipped` set.
  bool Next(std::string* message, bool* skipped);

 private:
  std::string buffer_;
  size_t begin_ = 0;      // of what is left in `buffer_`
  uint64_t to_skip_ = 0;  // bytes of a message that is too long
};

// Returns the message with its header.
std::string Framed(std::string_view message);

}  // namespace hlokit::lsp

#endif  // HLOKIT_TOOLS_HLO_LSP_SERVER_JSON_RPC_H_
