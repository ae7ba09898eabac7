// SPDX-License-Identifier: Apache-2.0
// The server: messages in and out, open documents, running tools, diagnostics after a pause.
//
// One thread. Requests are answered in the order in which they come; before each, what has arrived is read, so that a
// request that is cancelled while it waits is answered with that. No request takes longer than to read and verify its
// document, but those that run a tool, which are answered when it ends.
#ifndef HLOKIT_TOOLS_HLO_LSP_SERVER_SERVER_H_
#define HLOKIT_TOOLS_HLO_LSP_SERVER_SERVER_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/json_writer.h"
#include "tools/hlo_lsp_server/commands.h"
#include "tools/hlo_lsp_server/document.h"
#include "tools/hlo_lsp_server/json_rpc.h"
#include "tools/hlo_lsp_server/settings.h"
#include "tools/hlo_lsp_server/tool_runner.h"

namespace hlokit::lsp {

struct ServerOptions {
  int64_t delay_milliseconds = 150;  // from the last change to the diagnostics
};

class Server {
 public:
  Server(int in, int out, const ServerOptions& options) : in_(in), out_(out), options_(options) {}

  // Serves until the client ends it. Returns the exit code: 0 if it asked for the end before.
  int Run();

 private:
  using Clock = std::chrono::steady_clock;
  struct OpenDocument {
    std::unique_ptr<Document> document;
    bool to_publish = false;
    Clock::time_point publish_at;
  };
  struct PendingTool {
    Json id;
    bool show = true;
    StartedTool tool;
  };

  // ---- messages (server.cc) ----
  void Wait();
  void ReadInput();
  void Enqueue(std::string_view text);
  void Cancel(const Json& id);
  void Handle(const Json& message);
  void HandleRequest(const std::string& method, const Json& id, const Json& params);
  void HandleNotification(const std::string& method, const Json& params);
  void Send(std::string_view message);
  void Reply(const Json& id, std::string_view result);
  void ReplyError(const Json& id, ErrorCode code, std::string_view message);
  void Notify(std::string_view method, std::string_view params);
  void SendRequest(std::string_view method, std::string_view params);

  // ---- documents (documents.cc) ----
  void DidOpen(const Json& params);
  void DidChange(const Json& params);
  void DidClose(const Json& params);
  void PublishDue();
  void Publish(OpenDocument* open);
  Document* FindDocument(const std::string& uri);

  // ---- requests (requests.cc) ----
  void Initialize(const Json& id, const Json& params);
  void ExecuteCommand(const Json& id, const Json& params);
  void RemoveDead(const Json& id, Document& document);
  void Extract(const Json& id, Document& document, const Json& options);
  void ServeTools();
  void FinishTool(PendingTool* pending);
  void ShowDocument(std::string_view uri, bool external);

  const int in_;
  const int out_;
  const ServerOptions options_;
  MessageReader reader_;
  std::deque<Json> queue_;
  std::vector<Json> cancelled_;  // ids of requests in the queue
  bool input_ended_ = false;
  bool exit_ = false;
  bool initialized_ = false;
  bool shut_down_ = false;

  PositionEncoding encoding_ = PositionEncoding::kUtf16;
  bool client_shows_documents_ = false;
  bool client_pulls_diagnostics_ = false;  // then none are published, which it would show twice
  Settings settings_;
  int64_t next_id_ = 0;
  std::map<std::string, OpenDocument> documents_;  // by URI
  ScratchFolder scratch_;
  std::list<PendingTool> tools_;
};

}  // namespace hlokit::lsp

#endif  // HLOKIT_TOOLS_HLO_LSP_SERVER_SERVER_H_
