// SPDX-License-Identifier: Apache-2.0
// The names of HLO text. A scan with a stack of open bodies, which follows the grammar of parser/hlo as far as names
// need it and takes anything: what it cannot make sense of it passes over, to the next line that begins an instruction.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/ops/attribute.h"
#include "parser/text/scan.h"
#include "tools/hlo_lsp_server/symbol_index.h"

namespace hlokit::lsp {
namespace {

enum class ValueNames : uint8_t { kNone, kComputation, kComputations, kInstructions };

// What the values of an attribute name.
ValueNames NamesIn(std::string_view attribute) {
  static const auto* const table = [] {
    auto* t = new absl::flat_hash_map<std::string, ValueNames>;
    for (const AttrInfo& info : kAttrInfo) {
      const AttrTypeInfo& type = InfoOf(info.type);
      ValueNames names = ValueNames::kNone;
      if (type.payload == PayloadKind::kComputation) names = ValueNames::kComputation;
      if (type.elements == ElementKind::kComputation) names = ValueNames::kComputations;
      if (type.elements == ElementKind::kInstruction) names = ValueNames::kInstructions;
      if (names != ValueNames::kNone) (*t)[std::string(info.text)] = names;
    }
    // Those of a conditional, which the parser makes branch_computations of.
    (*t)["true_computation"] = (*t)["false_computation"] = ValueNames::kComputation;
    return t;
  }();
  const auto found = table->find(std::string(attribute));
  return found == table->end() ? ValueNames::kNone : found->second;
}

bool IsHeaderTable(std::string_view word) {
  return word == "FileNames" || word == "FunctionNames" || word == "FileLocations" || word == "StackFrames";
}

}  // namespace

class HloIndexer {
 public:
  explicit HloIndexer(std::string_view text) : p_(text.data()), begin_(text.data()), end_(text.data() + text.size()) {
    index_.text_ = text;
  }

  SymbolIndex Run() {
    while (SkipSpace(), p_ < end_) {
      if (bodies_.empty()) {
        Top();
      } else {
        InBody();
      }
    }
    while (!bodies_.empty()) CloseBody();
    Resolve();
    return std::move(index_);
  }

 private:
  struct Body {
    uint32_t computation;
    uint32_t instruction;  // whose attribute it is; kNoSymbol of a computation of the module
    bool in_list;          // of computations
  };
  // A use whose definition is looked for at the end: definitions may follow.
  struct Key {
    uint32_t scope;  // the computation, or kChunk and the number of the part of the file
    std::string_view name;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.scope, absl::string_view(k.name.data(), k.name.size()));
    }
  };
  static constexpr uint32_t kChunk = 0x80000000u;

  uint32_t Here() const { return static_cast<uint32_t>(p_ - begin_); }
  uint32_t At(std::string_view view) const { return static_cast<uint32_t>(view.data() - begin_); }
  char Peek(size_t k = 0) const { return static_cast<size_t>(end_ - p_) > k ? p_[k] : '\0'; }
  std::string_view Word() {
    const char* const start = p_;
    if (p_ < end_ && char_class::Is(*p_, char_class::kNameStart)) p_ = scan::NameEnd(p_, end_);
    return {start, static_cast<size_t>(p_ - start)};
  }
  // Reads a name with or without a sigil.
  std::string_view Name() {
    if (Peek() == '%') ++p_;
    const char* const start = p_;
    p_ = scan::NameEnd(p_, end_);
    return {start, static_cast<size_t>(p_ - start)};
  }

  // Skips whitespace and comments. Does not pass the beginning of a line that begins an instruction, if `stop`, and
  // returns false there.
  bool SkipSpace(bool stop = false) {
    while (p_ < end_) {
      const char c = *p_;
      if (c == '\n' || c == '\r') {
        ++p_;
        if (stop && BeginsInstruction(p_)) return false;
      } else if (char_class::Is(c, char_class::kWhitespace)) {
        ++p_;
      } else if (c == '/' && Peek(1) == '/') {
        if (bodies_.empty() && std::string_view(p_, static_cast<size_t>(end_ - p_)).starts_with("// -----")) ++chunk_;
        p_ = scan::FindAny<'\n', '\r'>(p_, end_);
      } else if (c == '/' && Peek(1) == '*') {
        const size_t close = std::string_view(p_, static_cast<size_t>(end_ - p_)).find("*/", 2);
        p_ = close == std::string_view::npos ? end_ : p_ + close + 2;
      } else {
        return true;
      }
    }
    return true;
  }

  // Returns true if a line that starts at `p` begins an instruction: `[ROOT] name = `.
  bool BeginsInstruction(const char* p) const {
    while (p < end_ && (*p == ' ' || *p == '\t')) ++p;
    if (end_ - p > 5 && std::string_view(p, 5) == "ROOT ") p += 5;
    if (p < end_ && *p == '%') ++p;
    const char* const name = p;
    if (p >= end_ || !char_class::Is(*p, char_class::kNameStart)) return false;
    p = scan::NameEnd(p, end_);
    if (p == name) return false;
    while (p < end_ && *p == ' ') ++p;
    return end_ - p > 1 && *p == '=' && (p[1] == ' ' || p[1] == '\t');
  }

  // Skips to after the bracket that closes the one here; stops where an instruction begins, and returns false.
  bool SkipBrackets() {
    int64_t depth = 0;
    while (p_ < end_) {
      p_ = scan::FindAny<'(', ')', '{', '}', '[', ']', '"', '/', '\n'>(p_, end_);
      if (p_ >= end_) return false;
      const char c = *p_++;
      if (c == '(' || c == '{' || c == '[') {
        ++depth;
      } else if (c == ')' || c == '}' || c == ']') {
        if (--depth <= 0) return true;
      } else if (c == '"') {
        SkipString();
      } else if (c == '/') {
        --p_;
        if (Peek(1) == '/' || Peek(1) == '*') {
          if (!SkipSpace(true)) return false;
        } else {
          ++p_;
        }
      } else if (BeginsInstruction(p_)) {
        return false;
      }
    }
    return false;
  }
  // From after the opening quote to after the closing one. A string may have line breaks; one that is not closed ends
  // where an instruction begins.
  void SkipString() {
    while (p_ < end_) {
      p_ = scan::FindAny<'"', '\\', '\n'>(p_, end_);
      if (p_ >= end_) return;
      const char c = *p_;
      if (c == '\n' && BeginsInstruction(p_ + 1)) return;
      ++p_;
      if (c == '"') return;
      if (c == '\\' && p_ < end_ && *p_ != '\n') ++p_;
    }
  }

  void Define(uint32_t scope, uint32_t symbol, std::string_view name) {
    index_.occurrences_.push_back({At(name), static_cast<uint32_t>(name.size()), 1, symbol});
    defined_.try_emplace(Key{scope, name}, symbol);
  }
  void Use(uint32_t scope, std::string_view name) {
    unresolved_.push_back({index_.occurrences_.size(), scope});
    index_.occurrences_.push_back({At(name), static_cast<uint32_t>(name.size()), 0, kNoSymbol});
  }
  void Resolve() {
    for (const auto& [occurrence, scope] : unresolved_) {
      Occurrence& o = index_.occurrences_[occurrence];
      const auto found = defined_.find(Key{scope, index_.text_.substr(o.offset, o.size)});
      if (found == defined_.end()) continue;
      o.symbol = found->second;
      ++index_.symbols_[found->second].users;
    }
  }

  // The header, or a computation up to its body.
  void Top() {
    const char* const start = p_;
    const uint32_t begin = Here();
    std::string_view word = Peek() == '%' ? std::string_view() : Word();
    if (word == "HloModule") {
      SkipSpace();
      Symbol module;
      module.kind = SymbolKind::kModule;
      module.begin = begin;
      const std::string_view name = Name();
      module.name = {At(name), static_cast<uint32_t>(name.size())};
      Values();
      module.end = Here();
      index_.symbols_.push_back(module);
      return;
    }
    if (IsHeaderTable(word)) {
      // Lines of numbers, which may be indented.
      do {
        p_ = scan::FindAny<'\n'>(p_, end_);
        while (p_ < end_ && (*p_ == '\n' || *p_ == ' ' || *p_ == '\t')) ++p_;
      } while (p_ < end_ && char_class::IsDigit(*p_));
      return;
    }
    Symbol computation;
    computation.kind = SymbolKind::kComputation;
    computation.begin = begin;
    computation.entry = word == "ENTRY";
    if (computation.entry) {
      SkipSpace();
      word = Name();
    } else if (word.empty()) {
      word = Name();
    }
    if (word.empty() && !computation.entry && Peek() != '{') {
      p_ = start + 1;  // a character that begins nothing
      return;
    }
    computation.name = {word.empty() ? Here() : At(word), static_cast<uint32_t>(word.size())};
    SkipSpace();
    const uint32_t signature = Here();
    if (Peek() == '(') SkipBrackets();
    SkipSpace();
    if (Peek() == '-' && Peek(1) == '>') {
      p_ += 2;
      SkipSpace();
      Shape();
    }
    computation.shape = {signature, Here() - signature};
    SkipSpace();
    if (Peek() != '{') {
      // An instruction outside of a computation is one of a module without braces.
      if (Peek() == '=' && !computation.entry && !word.empty()) {
        p_ = start;
        Instruction(kNoSymbol);
      }
      return;
    }
    ++p_;
    const auto id = static_cast<uint32_t>(index_.symbols_.size());
    if (!word.empty()) Define(kChunk | chunk_, id, word);
    index_.symbols_.push_back(computation);
    bodies_.push_back({id, kNoSymbol, false});
  }

  // A shape as it is written: brackets, or a word with dimensions and a layout.
  void Shape() {
    if (Peek() == '(') {
      SkipBrackets();
      return;
    }
    Word();
    if (Peek() == '(') SkipBrackets();  // b(...), a buffer
    if (Peek() == '[') SkipBrackets();
    if (Peek() == '{') SkipBrackets();
  }

  void CloseBody() {
    const Body body = bodies_.back();
    bodies_.pop_back();
    index_.symbols_[body.computation].end = Here();
    if (body.instruction == kNoSymbol) {
      if (p_ < end_) Values();  // of a computation
      return;
    }
    // Either may open a further body, at whose end the instruction goes on.
    if (body.in_list && ComputationList(body.instruction)) return;
    Values(body.instruction);
    Symbol& outer = index_.symbols_[body.instruction];
    outer.end = std::max(outer.end, Here());
  }

  void InBody() {
    if (*p_ == '}') {
      ++p_;
      CloseBody();
      return;
    }
    // A new computation without the end of the last: the brace is missing.
    if (std::string_view(p_, static_cast<size_t>(end_ - p_)).starts_with("ENTRY ")) {
      while (!bodies_.empty()) {
        index_.symbols_[bodies_.back().computation].end = Here();
        bodies_.pop_back();
      }
      return;
    }
    if (Instruction(bodies_.back().computation)) return;
    // No instruction: to the next line that might have one, or to a brace that closes the body.
    while (p_ < end_ && *p_ != '\n' && *p_ != '}') {
      if (*p_ == '"') {
        ++p_;
        SkipString();
      } else {
        ++p_;
      }
    }
  }

  // Returns false if no instruction begins here; may then have moved.
  bool Instruction(uint32_t computation) {
    Symbol instruction;
    instruction.begin = Here();
    instruction.parent = computation;
    const char* const start = p_;
    std::string_view name = Name();
    if (name == "ROOT") {
      instruction.root = true;
      SkipSpace();
      name = Name();
    }
    if (name.empty()) return false;
    SkipSpace();
    if (Peek() != '=') {
      if (p_ == start) ++p_;
      return false;
    }
    ++p_;
    instruction.name = {At(name), static_cast<uint32_t>(name.size())};
    const auto id = static_cast<uint32_t>(index_.symbols_.size());
    Define(computation, id, name);
    if (SkipSpace(true)) Head(&instruction);
    instruction.parameter = index_.TextOf(instruction.opcode) == "parameter";
    index_.symbols_.push_back(instruction);
    if (instruction.operands != 0) {
      Operands(id);
      Values(id);
    }
    Symbol& done = index_.symbols_[id];
    done.end = std::max(done.end, Here());
    while (done.end > done.begin && char_class::Is(begin_[done.end - 1], char_class::kWhitespace)) --done.end;
    return true;
  }

  // The shape and the opcode.
  void Head(Symbol* instruction) {
    const uint32_t at = Here();
    const char* const start = p_;
    if (Peek() == '(') {
      if (!SkipBrackets()) return;
    } else {
      const std::string_view word = Word();
      if (Peek() == '(' && word != "b") {
        p_ = start;  // the shape is omitted
      } else {
        p_ = start;
        Shape();
      }
    }
    instruction->shape = {at, Here() - at};
    if (!SkipSpace(true)) return;
    const std::string_view opcode = Word();
    instruction->opcode = {Here() - static_cast<uint32_t>(opcode.size()), static_cast<uint32_t>(opcode.size())};
    if (opcode.empty() || !SkipSpace(true) || Peek() != '(') return;
    instruction->operands = Here() + 1;
  }

  // The operands of an instruction, those nested in them included. From the opening parenthesis to after the closing
  // one.
  void Operands(uint32_t id) {
    const std::string_view opcode = index_.TextOf(index_.symbols_[id].opcode);
    if (opcode == "constant" || opcode == "parameter") {
      const bool closed = SkipBrackets();
      index_.symbols_[id].operands_end = closed ? Here() - 1 : Here();
      return;
    }
    const uint32_t computation = index_.symbols_[id].parent;
    int64_t depth = 0;
    while (SkipSpace(true) && p_ < end_) {
      const char c = *p_;
      if (c == '(') {
        ++depth;
        ++p_;
      } else if (c == ')') {
        index_.symbols_[id].operands_end = Here();
        ++p_;
        if (--depth == 0) return;
      } else if (c == '{' || c == '[') {
        if (!SkipBrackets()) break;
      } else if (c == '}') {
        break;  // the end of a body
      } else if (c == '"') {
        ++p_;
        SkipString();
      } else if (c == '%' || char_class::Is(c, char_class::kNameStart)) {
        OperandWord(computation);
      } else {
        ++p_;
      }
    }
    index_.symbols_[id].operands_end = Here();
  }
  void OperandWord(uint32_t computation) {
    const bool sigil = *p_ == '%';
    const std::string_view word = Name();
    if (word.empty()) return;
    if (!sigil) {
      if (Peek() == '[') return;  // a type
      const char* q = p_;
      while (q < end_ && *q == ' ') ++q;
      if (q < end_ && *q == '(') {  // a nested instruction
        if (word == "constant" || word == "parameter") {
          p_ = q;
          SkipBrackets();
        }
        return;
      }
    }
    Use(computation, word);
  }

  // `, name=value` as often as it comes; of the instruction `id`, or of the header or a computation.
  void Values(uint32_t id = kNoSymbol) {
    for (;;) {
      const char* const before = p_;
      if (!SkipSpace(true) || Peek() != ',') {
        p_ = before;
        return;
      }
      ++p_;
      if (!SkipSpace(true)) return;
      const std::string_view name = Word();
      if (name.empty()) {
        if (p_ < end_ && *p_ != '}' && *p_ != '\n') ++p_;
        return;
      }
      if (!SkipSpace(true)) return;
      if (Peek() != '=') continue;
      ++p_;
      if (!SkipSpace(true)) return;
      const ValueNames names = id == kNoSymbol ? ValueNames::kNone : NamesIn(name);
      if (names == ValueNames::kNone) {
        PlainValue();
      } else if (Value(names, id)) {
        return;  // in a body, after which the rest follows
      }
    }
  }
  void PlainValue() {
    int64_t pieces = 0;
    while (p_ < end_ && pieces++ < 64) {
      const char c = *p_;
      if (c == '{' || c == '(' || c == '[') {
        if (!SkipBrackets()) return;
      } else if (c == '"') {
        ++p_;
        SkipString();
      } else if (c == ',' || c == '\n' || c == '\r' || c == '}' || c == ')') {
        return;
      } else if (c == '/' && (Peek(1) == '/' || Peek(1) == '*')) {
        return;
      } else {
        p_ = char_class::IsName(c) ? scan::NameEnd(p_, end_) : p_ + 1;
      }
    }
  }
  // Returns true if a body begins.
  bool Value(ValueNames names, uint32_t id) {
    if (Peek() != '{') {
      const std::string_view name = Name();
      if (!name.empty()) {
        Use(names == ValueNames::kInstructions ? index_.symbols_[id].parent : kChunk | chunk_, name);
      }
      return false;
    }
    ++p_;
    if (names == ValueNames::kComputation && !AtName(',', '}')) {
      OpenBody(id, false);
      return true;
    }
    if (names == ValueNames::kInstructions) {
      List(index_.symbols_[id].parent);
      return false;
    }
    return ComputationList(id);
  }
  // Returns true if a name, or nothing, and one of the characters follow.
  bool AtName(char a, char b) {
    const char* q = p_;
    while (q < end_ && char_class::Is(*q, char_class::kWhitespace)) ++q;
    if (q < end_ && *q == '%') ++q;
    q = scan::NameEnd(q, end_);
    while (q < end_ && char_class::Is(*q, char_class::kWhitespace)) ++q;
    return q < end_ && (*q == a || *q == b);
  }
  void OpenBody(uint32_t id, bool in_list) {
    Symbol computation;
    computation.kind = SymbolKind::kComputation;
    computation.begin = Here() - 1;
    computation.name = {Here(), 0};
    bodies_.push_back({static_cast<uint32_t>(index_.symbols_.size()), id, in_list});
    index_.symbols_.push_back(computation);
  }
  void List(uint32_t scope) {
    while (SkipSpace(true) && p_ < end_ && *p_ != '}') {
      if (*p_ == '%' || char_class::Is(*p_, char_class::kNameStart)) {
        const std::string_view name = Name();
        if (!name.empty()) Use(scope, name);
      } else {
        ++p_;
      }
    }
    if (Peek() == '}') ++p_;
  }
  // The rest of a list of computations. Returns true if one of them is a body.
  bool ComputationList(uint32_t id) {
    while (SkipSpace(true) && p_ < end_ && *p_ != '}') {
      if (*p_ == '{') {
        ++p_;
        OpenBody(id, true);
        return true;
      }
      if (*p_ == '%' || char_class::Is(*p_, char_class::kNameStart)) {
        const std::string_view name = Name();
        if (!name.empty()) Use(kChunk | chunk_, name);
      } else {
        ++p_;
      }
    }
    if (Peek() == '}') ++p_;
    return false;
  }

  const char* p_;
  const char* const begin_;
  const char* const end_;
  uint32_t chunk_ = 0;
  std::vector<Body> bodies_;
  SymbolIndex index_;
  absl::flat_hash_map<Key, uint32_t> defined_;
  std::vector<std::pair<size_t, uint32_t>> unresolved_;
};

SymbolIndex SymbolIndex::OfHlo(std::string_view text) { return HloIndexer(text).Run(); }

}  // namespace hlokit::lsp
