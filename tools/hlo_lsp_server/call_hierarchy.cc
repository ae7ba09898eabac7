// SPDX-License-Identifier: Apache-2.0
// Which computations call which. An item's `data` is the offset of the name, to find it again.
#include <algorithm>
#include <map>
#include <vector>

#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

void WriteCallItem(const Document& document, const SymbolIndex& index, const Symbol& computation, JsonWriter* json) {
  constexpr int kFunction = 12;
  const TextDocument& text = document.text();
  json->BeginObject().Member("name", index.NameOf(computation)).Member("kind", kFunction);
  json->Member("detail", computation.entry ? "entry" : "").Member("uri", document.uri()).Key("range");
  WriteRange(text, computation.begin, computation.end, json);
  json->Key("selectionRange");
  WriteRange(text, computation.name.offset, computation.name.offset + computation.name.size, json);
  json->Member("data", computation.name.offset).EndObject();
}

// Returns the computation of the item of a request, or kNoSymbol.
uint32_t CallItem(const Request& request) {
  const Json* const position = Find(request.params, {"item", "selectionRange", "start"});
  if (position == nullptr) return kNoSymbol;
  const Occurrence* const o = request.document.index().At(OffsetAt(request.document.text(), *position));
  return o == nullptr ? kNoSymbol : o->symbol;
}

// Computations with names, which do not nest; to find the one that an offset is in, outside of bodies in attributes.
class NamedComputations {
 public:
  explicit NamedComputations(const SymbolIndex& index) : index_(index) {
    for (uint32_t k = 0; k < index.symbols().size(); ++k) {
      const Symbol& s = index.symbol(k);
      if (s.kind == SymbolKind::kComputation && s.name.size > 0) ids_.push_back(k);
    }
  }
  uint32_t At(uint32_t offset) const {
    const auto after = [this](uint32_t at, uint32_t id) { return at < index_.symbol(id).begin; };
    const auto it = std::upper_bound(ids_.begin(), ids_.end(), offset, after);
    return it == ids_.begin() || offset > index_.symbol(it[-1]).end ? kNoSymbol : it[-1];
  }

 private:
  const SymbolIndex& index_;
  std::vector<uint32_t> ids_;
};

void WriteCalls(const Request& request, const std::map<uint32_t, std::vector<Occurrence>>& calls, const char* end,
                JsonWriter* result) {
  const SymbolIndex& index = request.document.index();
  result->BeginArray();
  for (const auto& [computation, ranges] : calls) {
    result->BeginObject().Key(end);
    WriteCallItem(request.document, index, index.symbol(computation), result);
    result->Key("fromRanges").BeginArray();
    for (const Occurrence& o : ranges) WriteRange(request.document.text(), o.offset, o.offset + o.size, result);
    result->EndArray().EndObject();
  }
  result->EndArray();
}

}  // namespace

absl::Status PrepareCallHierarchy(const Request& request, JsonWriter* result) {
  const Json none;
  const Json* const position = Find(request.params, {"position"});
  const SymbolIndex& index = request.document.index();
  const uint32_t offset = OffsetAt(request.document.text(), position == nullptr ? none : *position);
  const Occurrence* const o = index.At(offset);
  uint32_t id = o == nullptr ? kNoSymbol : o->symbol;
  if (id == kNoSymbol || index.symbol(id).kind != SymbolKind::kComputation) id = NamedComputations(index).At(offset);
  if (id == kNoSymbol) {
    result->Null();
    return absl::OkStatus();
  }
  result->BeginArray();
  WriteCallItem(request.document, index, index.symbol(id), result);
  result->EndArray();
  return absl::OkStatus();
}

absl::Status IncomingCalls(const Request& request, JsonWriter* result) {
  const SymbolIndex& index = request.document.index();
  const uint32_t callee = CallItem(request);
  std::map<uint32_t, std::vector<Occurrence>> calls;  // by caller
  if (callee != kNoSymbol) {
    const NamedComputations callers(index);
    for (const Occurrence& o : index.OccurrencesOf(callee)) {
      const uint32_t caller = o.definition != 0 ? kNoSymbol : callers.At(o.offset);
      if (caller != kNoSymbol) calls[caller].push_back(o);
    }
  }
  WriteCalls(request, calls, "from", result);
  return absl::OkStatus();
}

absl::Status OutgoingCalls(const Request& request, JsonWriter* result) {
  const SymbolIndex& index = request.document.index();
  const uint32_t caller = CallItem(request);
  std::map<uint32_t, std::vector<Occurrence>> calls;  // by callee
  if (caller != kNoSymbol) {
    const Symbol& from = index.symbol(caller);
    for (size_t k = index.LowerBound(from.begin); k < index.occurrences().size(); ++k) {
      const Occurrence& o = index.occurrences()[k];
      if (o.offset > from.end) break;
      if (o.definition == 0 && o.symbol != kNoSymbol && index.symbol(o.symbol).kind == SymbolKind::kComputation) {
        calls[o.symbol].push_back(o);
      }
    }
  }
  WriteCalls(request, calls, "to", result);
  return absl::OkStatus();
}

}  // namespace hlokit::lsp
