// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_lsp_server/server.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ir/core/str_cat.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

// As many messages wait at most; more stay in the pipe.
constexpr size_t kMaxQueue = 4096;
constexpr size_t kReadBytes = size_t{1} << 18;

struct FeatureRow {
  std::string_view method;
  Feature feature;
};
constexpr FeatureRow kFeatures[] = {
    {"textDocument/definition", Definition},
    {"textDocument/declaration", Definition},
    {"textDocument/references", References},
    {"textDocument/documentHighlight", DocumentHighlight},
    {"textDocument/prepareRename", PrepareRename},
    {"textDocument/rename", Rename},
    {"textDocument/prepareCallHierarchy", PrepareCallHierarchy},
    {"callHierarchy/incomingCalls", IncomingCalls},
    {"callHierarchy/outgoingCalls", OutgoingCalls},
    {"textDocument/documentSymbol", DocumentSymbols},
    {"textDocument/foldingRange", FoldingRanges},
    {"textDocument/hover", Hover},
    {"textDocument/completion", Completion},
    {"textDocument/semanticTokens/full", SemanticTokens},
    {"textDocument/semanticTokens/range", SemanticTokens},
    {"textDocument/inlayHint", InlayHints},
    {"textDocument/formatting", Formatting},
    {"textDocument/codeAction", CodeActions},
    {"textDocument/codeLens", CodeLenses},
    {"textDocument/diagnostic", DocumentDiagnostics},
};

bool IsId(const Json& id) { return id.is_number() || id.is_string(); }

// An id in a message: nlohmann's own text of a number or a string.
std::string IdText(const Json& id) {
  return IsId(id) ? id.dump(-1, ' ', false, Json::error_handler_t::replace) : "null";
}

}  // namespace

int Server::Run() {
  while (!exit_) {
    if (queue_.empty() && input_ended_) break;
    Wait();
    ServeTools();
    if (!queue_.empty()) {
      const Json message = std::move(queue_.front());
      queue_.pop_front();
      Handle(message);
    } else {
      PublishDue();
    }
  }
  return shut_down_ ? 0 : 1;
}

// Waits for input, output of tools or the next diagnostics to publish; not at all if a message waits.
void Server::Wait() {
  const Clock::time_point now = Clock::now();
  int64_t timeout = queue_.empty() ? -1 : 0;
  for (const auto& [uri, open] : documents_) {
    if (!open.to_publish || timeout == 0) continue;
    const int64_t left = std::chrono::ceil<std::chrono::milliseconds>(open.publish_at - now).count();
    timeout = timeout < 0 ? std::max<int64_t>(left, 0) : std::clamp<int64_t>(left, 0, timeout);
  }
  if (!tools_.empty()) timeout = timeout < 0 ? 1000 : std::min<int64_t>(timeout, 1000);
  std::vector<pollfd> fds;
  const bool reads = !input_ended_ && queue_.size() < kMaxQueue;
  if (reads) fds.push_back({in_, POLLIN, 0});
  for (const PendingTool& pending : tools_) fds.push_back({pending.tool.run.fd(), POLLIN, 0});
  if (fds.empty() && timeout < 0) return;
  const int ready = poll(fds.data(), fds.size(), static_cast<int>(timeout));
  if (ready > 0 && reads && fds[0].revents != 0) ReadInput();
}

void Server::ReadInput() {
  std::string buffer(kReadBytes, '\0');
  const ssize_t n = read(in_, buffer.data(), buffer.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) {
    input_ended_ = true;
    return;
  }
  reader_.Append(std::string_view(buffer).substr(0, static_cast<size_t>(n)));
  std::string message;
  bool skipped = false;
  while (reader_.Next(&message, &skipped)) Enqueue(message);
  if (skipped) ReplyError(Json(), ErrorCode::kParseError, "a message has no length, or one above the limit");
}

void Server::Enqueue(std::string_view text) {
  Json message = Json::parse(text, nullptr, false);
  if (message.is_discarded() || !message.is_object()) {
    const bool batch = message.is_array();
    ReplyError(Json(), batch ? ErrorCode::kInvalidRequest : ErrorCode::kParseError,
               batch ? "expected one request, found a list of them" : "the message is no JSON object");
    return;
  }
  if (StringAt(message, {"method"}) == "$/cancelRequest") {
    const Json* const id = Find(message, {"params", "id"});
    if (id != nullptr && IsId(*id)) Cancel(*id);
    return;
  }
  queue_.push_back(std::move(message));
}

void Server::Cancel(const Json& id) {
  for (auto it = tools_.begin(); it != tools_.end(); ++it) {
    if (it->id != id) continue;
    tools_.erase(it);
    ReplyError(id, ErrorCode::kRequestCancelled, "cancelled");
    return;
  }
  const bool waits = std::any_of(queue_.begin(), queue_.end(), [&id](const Json& message) {
    const Json* const other = Find(message, {"id"});
    return other != nullptr && *other == id && Find(message, {"method"}) != nullptr;
  });
  if (waits) cancelled_.push_back(id);
}

void Server::Handle(const Json& message) {
  const Json* const method = Find(message, {"method"});
  const Json* const id = Find(message, {"id"});
  if (method == nullptr || !method->is_string()) {
    // An answer to a request of the server: none needs it.
    const bool answer = Find(message, {"result"}) != nullptr || Find(message, {"error"}) != nullptr;
    if (!answer) ReplyError(id == nullptr ? Json() : *id, ErrorCode::kInvalidRequest, "the message has no method");
    return;
  }
  const Json none = Json::object();
  const Json* const given = Find(message, {"params"});
  const Json& params = given != nullptr && given->is_object() ? *given : none;
  const auto& name = method->get_ref<const std::string&>();
  if (id == nullptr) {
    HandleNotification(name, params);
  } else if (!IsId(*id)) {
    ReplyError(Json(), ErrorCode::kInvalidRequest, "the id is neither a number nor a string");
  } else if (const auto c = std::find(cancelled_.begin(), cancelled_.end(), *id); c != cancelled_.end()) {
    cancelled_.erase(c);
    ReplyError(*id, ErrorCode::kRequestCancelled, "cancelled");
  } else {
    HandleRequest(name, *id, params);
  }
}

void Server::HandleNotification(const std::string& method, const Json& params) {
  if (method == "exit") {
    exit_ = true;
  } else if (!initialized_ || shut_down_) {
    return;
  } else if (method == "textDocument/didOpen") {
    DidOpen(params);
  } else if (method == "textDocument/didChange") {
    DidChange(params);
  } else if (method == "textDocument/didClose") {
    DidClose(params);
  } else if (method == "workspace/didChangeConfiguration") {
    if (const Json* const settings = Find(params, {"settings"})) ReadSettings(*settings, &settings_);
  }
}

void Server::HandleRequest(const std::string& method, const Json& id, const Json& params) {
  if (shut_down_) return ReplyError(id, ErrorCode::kInvalidRequest, "the server is shut down");
  if (method == "initialize") {
    if (initialized_) return ReplyError(id, ErrorCode::kInvalidRequest, "the server is initialized already");
    return Initialize(id, params);
  }
  if (!initialized_) return ReplyError(id, ErrorCode::kServerNotInitialized, "the server is not initialized");
  if (method == "shutdown") {
    shut_down_ = true;
    tools_.clear();
    return Reply(id, "null");
  }
  if (method == "workspace/executeCommand") return ExecuteCommand(id, params);
  for (const FeatureRow& row : kFeatures) {
    if (row.method != method) continue;
    const std::string uri = StringAt(params, {"textDocument", "uri"}, StringAt(params, {"item", "uri"}));
    Document* const document = FindDocument(uri);
    if (document == nullptr) {
      return ReplyError(id, ErrorCode::kInvalidParams, StrCat("the document `", uri, "` is not open"));
    }
    std::string result;
    TextWriter out(&result);
    JsonWriter json(&out, JsonLayout::kCompact);
    const absl::Status status = row.feature({*document, params, settings_}, &json);
    out.Flush();
    if (status.ok()) return Reply(id, result);
    return ReplyError(id, ErrorCode::kRequestFailed, std::string(status.message()));
  }
  ReplyError(id, ErrorCode::kMethodNotFound, StrCat("there is no method `", method, "`"));
}

void Server::Send(std::string_view message) {
  const std::string framed = Framed(message);
  for (size_t done = 0; done < framed.size();) {
    const ssize_t n = write(out_, framed.data() + done, framed.size() - done);
    if (n < 0 && errno == EAGAIN) {
      pollfd fd = {out_, POLLOUT, 0};
      poll(&fd, 1, 1000);
      continue;
    }
    if (n < 0 && errno != EINTR) {
      exit_ = true;  // nobody listens
      return;
    }
    if (n > 0) done += static_cast<size_t>(n);
  }
}

void Server::Reply(const Json& id, std::string_view result) {
  Send(StrCat(R"({"jsonrpc":"2.0","id":)", IdText(id), R"(,"result":)", result, "}"));
}

void Server::ReplyError(const Json& id, ErrorCode code, std::string_view message) {
  std::string text;
  {
    TextWriter out(&text);
    PrintJsonString(out, message);
  }
  Send(StrCat(R"({"jsonrpc":"2.0","id":)", IdText(id), R"(,"error":{"code":)", static_cast<int>(code), R"(,"message":)",
              text, "}}"));
}

void Server::Notify(std::string_view method, std::string_view params) {
  Send(StrCat(R"({"jsonrpc":"2.0","method":")", method, R"(","params":)", params, "}"));
}

void Server::SendRequest(std::string_view method, std::string_view params) {
  Send(StrCat(R"({"jsonrpc":"2.0","id":"server-)", ++next_id_, R"(","method":")", method, R"(","params":)", params,
              "}"));
}

}  // namespace hlokit::lsp
