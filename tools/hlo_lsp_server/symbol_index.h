// SPDX-License-Identifier: Apache-2.0
// The names of a text: where each is defined and used, and the extent of what it names. Found without parsing, so that
// it is there for a text with errors too, which a document has most of the time while somebody types.
//
// Bounds: time and memory are linear in the text, 60 bytes for each instruction and 12 for each name in it. No
// recursion.
#ifndef HLOKIT_TOOLS_HLO_LSP_SERVER_SYMBOL_INDEX_H_
#define HLOKIT_TOOLS_HLO_LSP_SERVER_SYMBOL_INDEX_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/core/diagnostic.h"

namespace hlokit::lsp {

inline constexpr uint32_t kNoSymbol = 0xffffffffu;

enum class SymbolKind : uint8_t {
  kModule,
  kComputation,  // in StableHLO, a function
  kInstruction,  // in StableHLO, the results of an operation, or an argument of a block
};

struct Symbol {
  SymbolKind kind = SymbolKind::kInstruction;
  bool entry = false;           // the entry computation
  bool root = false;            // the root of its computation
  bool parameter = false;       // a parameter, or an argument of a function or block
  uint32_t parent = kNoSymbol;  // the computation of an instruction
  SourceRange name;             // without % or @; size 0: it has none
  uint32_t begin = 0;           // of the whole, from ENTRY or ROOT on
  uint32_t end = 0;
  SourceRange shape;          // of an instruction, as written; of a computation, its signature. Size 0: omitted
  SourceRange opcode;         // of an instruction
  uint32_t operands = 0;      // of an instruction: the offset after `(`; 0: none found
  uint32_t operands_end = 0;  // the offset of `)`, or where it is missing
  uint32_t users = 0;         // how many uses it has
};

// A name where it is defined or used.
struct Occurrence {
  uint32_t offset = 0;  // without % or @
  uint32_t size : 31;
  uint32_t definition : 1;
  uint32_t symbol = kNoSymbol;  // kNoSymbol: undefined
};

class SymbolIndex {
 public:
  // Of HLO text.
  static SymbolIndex OfHlo(std::string_view text);
  // Of StableHLO and other MLIR text.
  static SymbolIndex OfMlir(std::string_view text);

  std::string_view text() const { return text_; }
  // By their beginnings.
  const std::vector<Symbol>& symbols() const { return symbols_; }
  const Symbol& symbol(uint32_t id) const { return symbols_[id]; }
  // By offset.
  const std::vector<Occurrence>& occurrences() const { return occurrences_; }
  std::string_view NameOf(const Symbol& symbol) const { return text_.substr(symbol.name.offset, symbol.name.size); }
  // "" of a range that is not there.
  std::string_view TextOf(SourceRange range) const {
    return range.offset <= text_.size() ? text_.substr(range.offset, range.size) : std::string_view();
  }

  // Returns the occurrence that `offset` is in or at the end of, a sigil before the name included; null if none is.
  const Occurrence* At(uint32_t offset) const;
  // Returns the innermost symbol of the kind whose extent has `offset`, or kNoSymbol.
  uint32_t Enclosing(uint32_t offset, SymbolKind kind) const;
  // Returns the definition and the uses of a symbol.
  std::vector<Occurrence> OccurrencesOf(uint32_t symbol) const;
  // Returns the first occurrence at `offset` or after it, as an index.
  size_t LowerBound(uint32_t offset) const;
  // Returns the index of the first instruction or computation that ends after `offset`.
  uint32_t FirstEndingAfter(uint32_t offset) const;

 private:
  friend class HloIndexer;
  friend class MlirIndexer;

  std::string_view text_;
  std::vector<Symbol> symbols_;
  std::vector<Occurrence> occurrences_;
};

}  // namespace hlokit::lsp

#endif  // HLOKIT_TOOLS_HLO_LSP_SERVER_SYMBOL_INDEX_H_
