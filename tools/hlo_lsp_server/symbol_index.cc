// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_lsp_server/symbol_index.h"

#include <algorithm>

namespace hlokit::lsp {

size_t SymbolIndex::LowerBound(uint32_t offset) const {
  const auto before = [](const Occurrence& o, uint32_t at) { return o.offset < at; };
  return static_cast<size_t>(std::lower_bound(occurrences_.begin(), occurrences_.end(), offset, before) -
                             occurrences_.begin());
}

const Occurrence* SymbolIndex::At(uint32_t offset) const {
  // The last one that starts at the offset or, with its sigil, just after it.
  const bool at_sigil = offset < text_.size() && (text_[offset] == '%' || text_[offset] == '@');
  const uint32_t at = at_sigil ? offset + 1 : offset;
  size_t i = LowerBound(at + 1);
  if (i == 0) return nullptr;
  const Occurrence& o = occurrences_[--i];
  return at <= o.offset + o.size ? &o : nullptr;
}

uint32_t SymbolIndex::Enclosing(uint32_t offset, SymbolKind kind) const {
  const auto after = [](uint32_t at, const Symbol& s) { return at < s.begin; };
  auto it = std::upper_bound(symbols_.begin(), symbols_.end(), offset, after);
  // Symbols nest: from the last that begins before the offset, out through the parents. Bodies within instructions may
  // lie between, so a few are looked at before that.
  for (int steps = 0; it != symbols_.begin() && steps < 64; ++steps) {
    --it;
    const auto id = static_cast<uint32_t>(it - symbols_.begin());
    if (it->kind == kind && offset <= it->end) return id;
    if (it->kind == SymbolKind::kInstruction && kind == SymbolKind::kComputation && it->parent != kNoSymbol &&
        offset <= symbols_[it->parent].end) {
      return it->parent;
    }
    if (kind == SymbolKind::kInstruction && it->kind == SymbolKind::kComputation && it->name.size != 0) break;
  }
  return kNoSymbol;
}

std::vector<Occurrence> SymbolIndex::OccurrencesOf(uint32_t symbol) const {
  std::vector<Occurrence> found;
  for (const Occurrence& o : occurrences_) {
    if (o.symbol == symbol) found.push_back(o);
  }
  return found;
}

uint32_t SymbolIndex::FirstEndingAfter(uint32_t offset) const {
  // Extents of instructions do not overlap, up to bodies within them: the last that begins before the offset is near.
  const auto after = [](uint32_t at, const Symbol& s) { return at < s.begin; };
  const auto it = std::upper_bound(symbols_.begin(), symbols_.end(), offset, after);
  const auto id = static_cast<uint32_t>(it - symbols_.begin());
  return id == 0 ? 0 : id - 1;
}

}  // namespace hlokit::lsp
