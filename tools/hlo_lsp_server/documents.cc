// SPDX-License-Identifier: Apache-2.0
// Open documents: text from the client, and diagnostics after a pause.
#include <malloc.h>

#include <utility>

#include "ir/core/str_cat.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"
#include "tools/hlo_lsp_server/server.h"

namespace hlokit::lsp {

Document* Server::FindDocument(const std::string& uri) {
  const auto found = documents_.find(uri);
  return found == documents_.end() ? nullptr : found->second.document.get();
}

void Server::DidOpen(const Json& params) {
  const std::string uri = StringAt(params, {"textDocument", "uri"});
  if (uri.empty()) return;
  std::string text = StringAt(params, {"textDocument", "text"});
  const std::optional<Language> language = LanguageOf(StringAt(params, {"textDocument", "languageId"}), uri);
  OpenDocument& open = documents_[uri];
  open.document =
      std::make_unique<Document>(uri, language, IntAt(params, {"textDocument", "version"}), std::move(text), encoding_);
  open.to_publish = !client_pulls_diagnostics_;
  open.publish_at = Clock::now();
}

void Server::DidChange(const Json& params) {
  const auto found = documents_.find(StringAt(params, {"textDocument", "uri"}));
  const Json* const changes = Find(params, {"contentChanges"});
  if (found == documents_.end() || changes == nullptr || !changes->is_array()) return;
  OpenDocument& open = found->second;
  Document& document = *open.document;
  for (const Json& change : *changes) {
    const Json* const text = Find(change, {"text"});
    if (text == nullptr || !text->is_string()) continue;
    const auto& with = text->get_ref<const std::string&>();
    const Json* const range = Find(change, {"range"});
    if (range != nullptr && range->is_object()) {
      if (document.text().text().size() + with.size() > kMaxMessageBytes) continue;
      const TextRange replaced = RangeAt(document.text(), range);
      document.Replace(replaced.begin, replaced.end, with);
    } else {
      document.Reset(with);
    }
  }
  document.set_version(IntAt(params, {"textDocument", "version"}, document.version()));
  open.to_publish = !client_pulls_diagnostics_;
  open.publish_at = Clock::now() + std::chrono::milliseconds(options_.delay_milliseconds);
}

void Server::DidClose(const Json& params) {
  const std::string uri = StringAt(params, {"textDocument", "uri"});
  if (documents_.erase(uri) == 0 || client_pulls_diagnostics_) return;
  std::string text;
  {
    TextWriter out(&text);
    JsonWriter json(&out, JsonLayout::kCompact);
    json.BeginObject().Member("uri", uri).Key("diagnostics").BeginArray().EndArray().EndObject();
  }
  Notify("textDocument/publishDiagnostics", text);
}

void Server::PublishDue() {
  const Clock::time_point now = Clock::now();
  for (auto& [uri, open] : documents_) {
    if (!open.to_publish || open.publish_at > now) continue;
    Publish(&open);
    return;  // a message may have come meanwhile
  }
}

void Server::Publish(OpenDocument* open) {
  open->to_publish = false;
  Document& document = *open->document;
  std::string text;
  {
    TextWriter out(&text);
    JsonWriter json(&out, JsonLayout::kCompact);
    json.BeginObject().Member("uri", document.uri()).Member("version", document.version()).Key("diagnostics");
    WriteDiagnostics(document, &json);
    json.EndObject();
  }
  Notify("textDocument/publishDiagnostics", text);
  // In the pause, what parsing the texts before has left free goes back.
  malloc_trim(0);
}

}  // namespace hlokit::lsp
