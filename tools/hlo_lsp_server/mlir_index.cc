// SPDX-License-Identifier: Apache-2.0
// The names of MLIR text: functions, results of operations and arguments of blocks. Values are visible from their
// definition to the end of the region, and hide earlier ones of the same name, as sibling regions have them.
//
// A name is defined where it stands before `=` (`%0 = `, `%0:2 = `, and `%arg = %init` of the loops of StableHLO) or
// right before a colon and a space (`%arg0: tensor<f32>`); otherwise it is used.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "parser/text/scan.h"
#include "tools/hlo_lsp_server/symbol_index.h"

namespace hlokit::lsp {

class MlirIndexer {
 public:
  explicit MlirIndexer(std::string_view text) : p_(text.data()), begin_(text.data()), end_(text.data() + text.size()) {
    index_.text_ = text;
  }

  SymbolIndex Run() {
    while (p_ < end_) {
      const char c = *p_;
      if (c == '"') {
        ++p_;
        SkipQuoted();
      } else if (c == '/' && Peek(1) == '/') {
        p_ = scan::FindAny<'\n'>(p_, end_);
      } else if (c == '{') {
        ++p_;
        scopes_.push_back({hidden_.size(), opened_function_});
        if (opened_function_ != kNoSymbol) function_ = opened_function_;
        opened_function_ = kNoSymbol;
      } else if (c == '}') {
        ++p_;
        CloseScope();
      } else if (c == '\n') {
        ++p_;
      } else if (c == '%') {
        Value();
      } else if (c == '@') {
        Function();
      } else if (char_class::Is(c, char_class::kNameStart)) {
        const char* const start = p_;
        p_ = scan::NameEnd(p_, end_);
        Word({start, static_cast<size_t>(p_ - start)});
      } else {
        ++p_;
      }
    }
    while (!scopes_.empty()) CloseScope();
    for (const size_t use : function_uses_) {
      Occurrence& o = index_.occurrences_[use];
      const auto found = functions_.find(std::string_view(begin_ + o.offset, o.size));
      if (found == functions_.end()) continue;
      o.symbol = found->second;
      ++index_.symbols_[o.symbol].users;
    }
    return std::move(index_);
  }

 private:
  struct Scope {
    size_t hidden;      // size of hidden_ at its start
    uint32_t function;  // whose body it is; kNoSymbol: of none
  };

  uint32_t Here() const { return static_cast<uint32_t>(p_ - begin_); }
  char Peek(size_t k = 0) const { return static_cast<size_t>(end_ - p_) > k ? p_[k] : '\0'; }
  void SkipQuoted() {
    while (p_ < end_) {
      p_ = scan::FindAny<'"', '\\', '\n'>(p_, end_);
      if (p_ >= end_ || *p_ == '\n') return;
      if (*p_++ == '"') return;
      if (p_ < end_) ++p_;
    }
  }
  // A name after its sigil; a symbol's may be in quotes.
  std::string_view Name() {
    ++p_;
    if (Peek() == '"') {
      const char* const start = ++p_;
      SkipQuoted();
      const char* const stop = p_ > start && p_[-1] == '"' ? p_ - 1 : p_;
      return {start, static_cast<size_t>(stop - start)};
    }
    const char* const start = p_;
    while (p_ < end_ && (char_class::IsName(*p_) || *p_ == '$')) ++p_;
    return {start, static_cast<size_t>(p_ - start)};
  }

  void Word(std::string_view word) {
    if (word == "func.func" || word == "module" || word == "func") {
      word_ = word == "module" ? SymbolKind::kModule : SymbolKind::kComputation;
      word_at_ = static_cast<uint32_t>(word.data() - begin_);
    } else if (word != "public" && word != "private" && word != "nested") {
      word_at_ = kNoSymbol;
    }
  }

  void Function() {
    const std::string_view name = Name();
    if (name.empty()) return;
    const auto offset = static_cast<uint32_t>(name.data() - begin_);
    const auto size = static_cast<uint32_t>(name.size());
    if (word_at_ == kNoSymbol) {
      function_uses_.push_back(index_.occurrences_.size());
      index_.occurrences_.push_back({offset, size, 0, kNoSymbol});
      return;
    }
    const auto id = static_cast<uint32_t>(index_.symbols_.size());
    Symbol symbol;
    symbol.kind = word_;
    symbol.begin = word_at_;
    symbol.name = {offset, size};
    symbol.end = Here();
    symbol.entry = word_ == SymbolKind::kComputation && name == "main";
    index_.occurrences_.push_back({offset, size, 1, id});
    index_.symbols_.push_back(symbol);
    if (word_ == SymbolKind::kComputation) {
      functions_.try_emplace(name, id);
      opened_function_ = id;
    }
    word_at_ = kNoSymbol;
  }

  void Value() {
    const uint32_t begin = Here();
    const std::string_view name = Name();
    if (name.empty()) return;
    const char* q = p_;
    bool argument = false;
    if (q + 1 < end_ && *q == ':' && char_class::IsDigit(q[1])) {
      while (++q < end_ && char_class::IsDigit(*q)) {
      }
    } else if (q + 1 < end_ && *q == ':' && q[1] == ' ') {
      argument = true;
    }
    while (q < end_ && *q == ' ') ++q;
    const bool before_equals = q + 1 < end_ && *q == '=' && q[1] == ' ';
    const auto offset = static_cast<uint32_t>(name.data() - begin_);
    const auto size = static_cast<uint32_t>(name.size());
    if (!argument && !before_equals && !BeforeOthersAndEquals(q)) {
      const auto found = values_.find(name);
      const uint32_t symbol = found == values_.end() ? kNoSymbol : found->second;
      if (symbol != kNoSymbol) ++index_.symbols_[symbol].users;
      index_.occurrences_.push_back({offset, size, 0, symbol});
      return;
    }
    Symbol symbol;
    symbol.begin = begin;
    symbol.name = {offset, size};
    symbol.parent = opened_function_ != kNoSymbol ? opened_function_ : function_;
    symbol.parameter = argument || (before_equals && q + 2 < end_ && q[2] == '%');
    symbol.end = symbol.parameter ? Here() : static_cast<uint32_t>(scan::FindAny<'\n'>(p_, end_) - begin_);
    if (before_equals && !symbol.parameter) SetOpcode(q + 2, &symbol);
    const auto id = static_cast<uint32_t>(index_.symbols_.size());
    index_.occurrences_.push_back({offset, size, 1, id});
    index_.symbols_.push_back(symbol);
    const auto [slot, is_new] = values_.try_emplace(name, id);
    hidden_.push_back({name, is_new ? kNoSymbol : slot->second});
    slot->second = id;
  }
  // `, %b = ` after the first of several results, at the start of a line.
  bool BeforeOthersAndEquals(const char* q) const {
    for (int names = 0; names < 64 && q + 2 < end_ && *q == ','; ++names) {
      ++q;
      while (q < end_ && *q == ' ') ++q;
      if (q >= end_ || *q != '%') return false;
      q = scan::NameEnd(q + 1, end_);
      if (q + 1 < end_ && *q == ':' && char_class::IsDigit(q[1])) {
        while (++q < end_ && char_class::IsDigit(*q)) {
        }
      }
      while (q < end_ && *q == ' ') ++q;
      if (q + 2 < end_ && *q == '=' && q[1] == ' ') return q[2] != '%';
    }
    return false;
  }
  void SetOpcode(const char* q, Symbol* symbol) const {
    if (q < end_ && *q == '"') ++q;
    const char* const stop = scan::NameEnd(q, end_);
    symbol->opcode = {static_cast<uint32_t>(q - begin_), static_cast<uint32_t>(stop - q)};
  }

  void CloseScope() {
    if (scopes_.empty()) return;
    const Scope scope = scopes_.back();
    scopes_.pop_back();
    while (hidden_.size() > scope.hidden) {
      const auto& [name, symbol] = hidden_.back();
      if (symbol == kNoSymbol) {
        values_.erase(name);
      } else {
        values_[name] = symbol;
      }
      hidden_.pop_back();
    }
    if (scope.function != kNoSymbol) {
      index_.symbols_[scope.function].end = Here();
      function_ = kNoSymbol;
    }
  }

  const char* p_;
  const char* const begin_;
  const char* const end_;
  SymbolKind word_ = SymbolKind::kComputation;
  uint32_t word_at_ = kNoSymbol;          // of `func.func` or `module` before a name
  uint32_t opened_function_ = kNoSymbol;  // whose body has not begun
  uint32_t function_ = kNoSymbol;
  SymbolIndex index_;
  std::vector<Scope> scopes_;
  absl::flat_hash_map<std::string_view, uint32_t> values_;
  std::vector<std::pair<std::string_view, uint32_t>> hidden_;  // values that definitions hide, kNoSymbol: none
  absl::flat_hash_map<std::string_view, uint32_t> functions_;
  std::vector<size_t> function_uses_;
};

SymbolIndex SymbolIndex::OfMlir(std::string_view text) { return MlirIndexer(text).Run(); }

}  // namespace hlokit::lsp
