// SPDX-License-Identifier: Apache-2.0
// Initialization and commands.
#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"
#include "tools/cli/version.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"
#include "tools/hlo_lsp_server/server.h"

namespace hlokit::lsp {
namespace {

std::string_view ToString(PositionEncoding encoding) {
  switch (encoding) {
    case PositionEncoding::kUtf8:
      return "utf-8";
    case PositionEncoding::kUtf16:
      return "utf-16";
    case PositionEncoding::kUtf32:
      return "utf-32";
  }
  return "";
}

// Returns the first encoding of the client's list; UTF-16, which every client has, without one.
PositionEncoding ChooseEncoding(const Json& params) {
  const Json* const offered = Find(params, {"capabilities", "general", "positionEncodings"});
  if (offered == nullptr || !offered->is_array()) return PositionEncoding::kUtf16;
  for (const Json& name : *offered) {
    for (const auto encoding : {PositionEncoding::kUtf8, PositionEncoding::kUtf16, PositionEncoding::kUtf32}) {
      if (name.is_string() && name.get_ref<const std::string&>() == ToString(encoding)) return encoding;
    }
  }
  return PositionEncoding::kUtf16;
}

void WriteCapabilities(PositionEncoding encoding, JsonWriter* json) {
  constexpr int kIncremental = 2;
  json->BeginObject().Member("positionEncoding", ToString(encoding));
  json->Key("textDocumentSync").BeginObject().Member("openClose", true).Member("change", kIncremental).EndObject();
  for (const char* const provider :
       {"definitionProvider", "declarationProvider", "referencesProvider", "documentHighlightProvider",
        "callHierarchyProvider", "documentSymbolProvider", "foldingRangeProvider", "hoverProvider",
        "documentFormattingProvider", "inlayHintProvider"}) {
    json->Member(provider, true);
  }
  json->Key("renameProvider").BeginObject().Member("prepareProvider", true).EndObject();
  json->Key("completionProvider").BeginObject().Key("triggerCharacters").BeginArray();
  for (const char* const c : {"%", "@", "=", ",", "(", " "}) json->Value(c);
  json->EndArray().EndObject();
  json->Key("semanticTokensProvider").BeginObject().Key("legend");
  WriteSemanticTokensLegend(json);
  json->Member("full", true).Member("range", true).EndObject();
  json->Key("codeActionProvider").BeginObject().Key("codeActionKinds").BeginArray();
  for (const char* const kind : {"quickfix", "refactor.extract", "refactor.rewrite"}) json->Value(kind);
  json->EndArray().EndObject();
  json->Key("codeLensProvider").BeginObject().Member("resolveProvider", false).EndObject();
  json->Key("diagnosticProvider").BeginObject();
  json->Member("interFileDependencies", false).Member("workspaceDiagnostics", false).EndObject();
  json->Key("executeCommandProvider").BeginObject().Key("commands").BeginArray();
  for (const std::string_view command : CommandNames()) json->Value(command);
  json->EndArray().EndObject().EndObject();
}

}  // namespace

void Server::Initialize(const Json& id, const Json& params) {
  initialized_ = true;
  encoding_ = ChooseEncoding(params);
  client_shows_documents_ = BoolAt(params, {"capabilities", "window", "showDocument", "support"});
  client_pulls_diagnostics_ = Find(params, {"capabilities", "textDocument", "diagnostic"}) != nullptr;
  settings_.snippets =
      BoolAt(params, {"capabilities", "textDocument", "completion", "completionItem", "snippetSupport"});
  if (const Json* const options = Find(params, {"initializationOptions"})) ReadSettings(*options, &settings_);
  std::string result;
  {
    TextWriter out(&result);
    JsonWriter json(&out, JsonLayout::kCompact);
    json.BeginObject().Key("capabilities");
    WriteCapabilities(encoding_, &json);
    json.Key("serverInfo").BeginObject().Member("name", "hlo-lsp-server").Member("version", cli::kVersion);
    json.EndObject().EndObject();
  }
  Reply(id, result);
}

void Server::ExecuteCommand(const Json& id, const Json& params) {
  const std::string command = StringAt(params, {"command"});
  const std::vector<std::string_view> names = CommandNames();
  if (std::find(names.begin(), names.end(), command) == names.end()) {
    return ReplyError(id, ErrorCode::kInvalidParams, StrCat("there is no command `", command, "`"));
  }
  const Json* const arguments = Find(params, {"arguments"});
  const bool has_uri =
      arguments != nullptr && arguments->is_array() && !arguments->empty() && (*arguments)[0].is_string();
  Document* const document = has_uri ? FindDocument((*arguments)[0].get_ref<const std::string&>()) : nullptr;
  if (document == nullptr) {
    return ReplyError(id, ErrorCode::kInvalidParams,
                      StrCat(command, ": the first argument is the URI of no open document"));
  }
  const Json none = Json::object();
  const Json& options = arguments->size() > 1 && (*arguments)[1].is_object() ? (*arguments)[1] : none;
  if (command == "hlo.removeDead") return RemoveDead(id, *document);
  if (command == "hlo.extract") return Extract(id, *document, options);
  if (tools_.size() >= kMaxRuns) {
    return ReplyError(id, ErrorCode::kRequestFailed, StrCat(kMaxRuns, " commands are running already"));
  }
  absl::StatusOr<StartedTool> tool = StartTool(command, *document, options, settings_, &scratch_);
  if (!tool.ok()) return ReplyError(id, ErrorCode::kRequestFailed, std::string(tool.status().message()));
  tools_.push_back({id, BoolAt(options, {"show"}, true), *std::move(tool)});
}

void Server::RemoveDead(const Json& id, Document& document) {
  const absl::StatusOr<std::vector<TextRange>> ranges = DeadRanges(document);
  if (!ranges.ok()) return ReplyError(id, ErrorCode::kRequestFailed, std::string(ranges.status().message()));
  std::string params;
  {
    TextWriter out(&params);
    JsonWriter json(&out, JsonLayout::kCompact);
    json.BeginObject().Member("label", "Remove dead instructions").Key("edit").BeginObject();
    json.Key("changes").BeginObject().Key(document.uri()).BeginArray();
    for (const TextRange& range : *ranges) {
      json.BeginObject().Key("range");
      WriteRange(document.text(), range.begin, range.end, &json);
      json.Member("newText", "").EndObject();
    }
    json.EndArray().EndObject().EndObject().EndObject();
  }
  if (!ranges->empty()) SendRequest("workspace/applyEdit", params);
  Reply(id, "null");
}

void Server::Extract(const Json& id, Document& document, const Json& options) {
  const absl::StatusOr<std::string> path = ExtractToFile(document, StringAt(options, {"name"}), &scratch_);
  if (!path.ok()) return ReplyError(id, ErrorCode::kRequestFailed, std::string(path.status().message()));
  const std::string uri = UriOfPath(*path);
  std::string result;
  {
    TextWriter out(&result);
    JsonWriter(&out, JsonLayout::kCompact).BeginObject().Member("uri", uri).EndObject();
  }
  Reply(id, result);
  if (BoolAt(options, {"show"}, true)) ShowDocument(uri, false);
}

void Server::ServeTools() {
  for (auto it = tools_.begin(); it != tools_.end();) {
    if (it->tool.run.Read()) {
      if (!it->tool.run.expired()) {
        ++it;
        continue;
      }
      ReplyError(it->id, ErrorCode::kRequestFailed, StrCat(it->tool.tool, " took longer than ", kToolSeconds, " s"));
    } else {
      FinishTool(&*it);
    }
    it = tools_.erase(it);
  }
}

void Server::FinishTool(PendingTool* pending) {
  StartedTool& tool = pending->tool;
  const int code = tool.run.Finish();
  if (code < 0 || code > tool.highest_ok) {
    constexpr size_t kShown = 2000;
    return ReplyError(pending->id, ErrorCode::kRequestFailed,
                      StrCat(tool.tool, " failed: ", tool.run.output().substr(0, kShown)));
  }
  const std::string uri = tool.output_path.empty() ? "" : UriOfPath(tool.output_path);
  std::string result;
  {
    TextWriter out(&result);
    JsonWriter json(&out, JsonLayout::kCompact);
    json.BeginObject().Member("text", tool.run.output());
    if (!uri.empty()) json.Member("uri", uri);
    json.EndObject();
  }
  Reply(pending->id, result);
  if (!pending->show) return;
  if (!uri.empty()) return ShowDocument(uri, uri.ends_with(".html"));
  constexpr size_t kShown = 4000;
  std::string message;
  {
    constexpr int kInfo = 3;
    TextWriter out(&message);
    JsonWriter json(&out, JsonLayout::kCompact);
    json.BeginObject().Member("type", kInfo).Member("message", tool.run.output().substr(0, kShown)).EndObject();
  }
  Notify("window/showMessage", message);
}

void Server::ShowDocument(std::string_view uri, bool external) {
  std::string params;
  TextWriter out(&params);
  JsonWriter json(&out, JsonLayout::kCompact);
  if (client_shows_documents_) {
    json.BeginObject().Member("uri", uri).Member("external", external).Member("takeFocus", true).EndObject();
    out.Flush();
    SendRequest("window/showDocument", params);
  } else {
    constexpr int kInfo = 3;
    json.BeginObject().Member("type", kInfo).Member("message", StrCat("written: ", PathOfUri(uri))).EndObject();
    out.Flush();
    Notify("window/showMessage", params);
  }
}

}  // namespace hlokit::lsp
