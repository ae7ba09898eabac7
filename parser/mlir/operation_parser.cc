// SPDX-License-Identifier: Apache-2.0
// Operations: their names, operands, attributes and types.
#include "parser/mlir/operation_parser.h"

#include <algorithm>
#include <limits>

#include "ir/core/suggest.h"

namespace hlokit::mlir {
namespace {

// Names of operations without their dialect, as the custom form has them.
struct ShortName {
  std::string_view text;
  OpKind kind;
};
constexpr ShortName kShortNames[] = {{"return", OpKind::kFuncReturn},
                                     {"call", OpKind::kFuncCall},
                                     {"module", OpKind::kBuiltinModule},
                                     {"call_indirect", OpKind::kFuncCallIndirect},
                                     {"constant", OpKind::kFuncConstant}};

// A hint for a name that no operation has; "" if none is near.
std::string NearestOperation(std::string_view name) {
  // In a dialect that is known, the rest of the name is misspelt.
  const size_t dot = name.find('.');
  const std::string_view dialect = name.substr(0, dot == std::string_view::npos ? 0 : dot);
  const bool known = IsKnownDialect(dialect);
  const std::string_view prefix = known ? name.substr(0, dot + 1) : std::string_view();
  std::vector<std::string_view> names;
  if (!known) {
    for (const ShortName& row : kShortNames) names.push_back(row.text);
  }
  for (const OpDefinition& definition : AllDefinitions()) {
    if (!known || definition.dialect == dialect) names.push_back(definition.name.substr(prefix.size()));
  }
  const std::string_view nearest = FindNearest(name.substr(prefix.size()), names);
  return nearest.empty() ? std::string() : StrCat("did you mean `", prefix, nearest, "`?");
}

}  // namespace

OperationParser::Flow OperationParser::StartOperation() {
  if (static_cast<int64_t>(ops_.size()) >= options_.max_nesting ||
      static_cast<int64_t>(m_.operations.size()) >= options_.max_operations) {
    in_.Error(DiagnosticKind::kTooDeep, in_.Next(), LimitMessage(ops_.size(), options_));
    return Flow::kError;
  }
  ops_.push_back({});
  OpenOperation& current = op();
  current.results = results_.size();
  current.operands = operands_.size();
  current.attributes = attributes_.size();
  current.regions = region_list_.size();
  current.operand_types = operand_types_.size();
  current.result_types = result_types_.size();
  current.offset = in_.Offset();
  if (in_.Peek() == '%') {
    do {
      const uint32_t offset = in_.Offset();
      if (!in_.Expect('%', "before the name of a result")) return Flow::kError;
      const std::string_view name = in_.SuffixName();
      int64_t count = 1;
      if (name.empty()) return in_.ErrorHere("expected a name after '%'"), Flow::kError;
      results_.push_back({name, offset, 1});
      if (in_.TryConsume(':')) {
        if (!in_.Integer(&count)) return Flow::kError;
        constexpr int64_t kMaxResults = 1 << 24;
        if (count < 1 || count > kMaxResults) {
          in_.ErrorHere("expected named operation to have at least 1 result");
          return Flow::kError;
        }
        results_.back().count = static_cast<uint32_t>(count);
      }
    } while (in_.TryConsume(','));
    if (!in_.Expect('=', "after the names of results")) return Flow::kError;
    current.offset = in_.Offset();
  }
  std::string quoted;
  std::string_view name;
  current.generic = in_.Peek() == '"';
  if (current.generic) {
    if (!in_.String(&quoted)) return Flow::kError;
    name = quoted;
    current.name_size = in_.Here() - current.offset;
  } else {
    const std::string_view word = in_.Word();
    current.name_size = static_cast<uint32_t>(word.size());
    if (word.empty()) {
      in_.ErrorHere(StrCat("expected operation name in quotes, found ", in_.DescribeNext()));
      return Flow::kError;
    }
    name = word;
    if (word.find('.') == std::string_view::npos) {
      for (const ShortName& row : kShortNames) {
        if (word == row.text) name = DefinitionOf(row.kind).name;
      }
    }
  }
  current.definition = FindDefinition(name);
  if (current.definition != nullptr) {
    StringId& id = names_by_kind_[static_cast<size_t>(current.definition->kind)];
    if (!id.valid()) id = m_.nodes.strings().Intern(name);
    current.name = id;
  } else {
    current.name = m_.nodes.strings().Intern(name);
    const std::string_view dialect = name.substr(0, name.find('.'));
    if (IsKnownDialect(dialect)) {
      in_.Error(DiagnosticKind::kUnknownOpcode, {current.offset, current.name_size},
                StrCat("unregistered operation '", name, "' found in dialect ('", dialect,
                       "') that does not allow unknown operations"),
                NearestOperation(name));
      return Flow::kError;
    }
    if (!current.generic) {
      const std::string hint = NearestOperation(name);
      in_.Error(DiagnosticKind::kUnknownOpcode, {current.offset, current.name_size},
                StrCat("custom op '", name, "' is unknown"),
                hint.empty() ? "the generic form, in quotes, can be read of any operation" : hint);
      return Flow::kError;
    }
  }
  if (!current.generic) {
    // A custom form of its own, or the generic one without quotes.
    in_.Skip();
    const bool generic = current.definition->format.empty() ||
                         (current.definition->kind == OpKind::kStablehloConstant && in_.Peek() == '(');
    if (generic && in_.Peek() != '(') {
      in_.Error(DiagnosticKind::kUnexpectedToken, {current.offset, current.name_size},
                StrCat("op '", name, "' has no custom form"), "write its generic form, in quotes");
      return Flow::kError;
    }
    current.generic = generic;
  }
  const Flow flow = op().generic ? GenericHead() : RunFormat();
  if (flow != Flow::kDone) return flow;
  return FinishOperation() ? Flow::kDone : Flow::kError;
}

OperationParser::Flow OperationParser::Resume() {
  if (ops_.empty()) return Flow::kError;
  const Flow flow = op().generic ? GenericTail() : RunFormat();
  if (flow != Flow::kDone) return flow;
  return FinishOperation() ? Flow::kDone : Flow::kError;
}

OperationParser::Flow OperationParser::GenericHead() {
  if (!in_.Expect('(', "before operands")) return Flow::kError;
  if (!in_.TryConsume(')') && (!ParseOperands(true) || !in_.Expect(')', "after operands"))) return Flow::kError;
  if (TakeKnownTail()) return Flow::kDone;
  if (in_.Peek() == '[' && !ParseSuccessors()) return Flow::kError;
  if (in_.TryConsume('<')) {
    const size_t first = attributes_.size();
    if (in_.Peek() != '{' || !ParseAttributeDictionary()) {
      in_.ErrorExpected("{", "after <");
      return Flow::kError;
    }
    for (size_t i = first; i < attributes_.size(); ++i) attributes_[i].inherent = true;
    if (!in_.Expect('>', "after properties")) return Flow::kError;
  }
  if (!in_.TryConsume('(')) return GenericTail();
  if (!in_.Expect('{', "to begin a region")) return Flow::kError;
  op().state = 1;
  return OpenedRegion();
}

OperationParser::Flow OperationParser::GenericTail() {
  if (op().state == 1) {
    if (in_.TryConsume(',')) {
      if (!in_.Expect('{', "to begin a region")) return Flow::kError;
      return OpenedRegion();
    }
    if (!in_.Expect(')', "after regions")) return Flow::kError;
    op().state = 0;
  }
  if (in_.Peek() == '{' && !ParseAttributeDictionary()) return Flow::kError;
  if (!in_.Expect(':', "followed by operation type") || !ParseFunctionType()) return Flow::kError;
  return Flow::kDone;
}

bool OperationParser::FinishOperation(bool with_location) {
  OpenOperation& current = op();
  const OperationId id(static_cast<uint32_t>(m_.operations.size()));
  const bool record = !current.same_as.valid() && TailEndsHere();
  Operation made;
  made.name = current.name;
  made.definition = current.definition;
  made.offset = current.offset;
  made.name_size = current.name_size;
  made.same_as = current.same_as;
  if (with_location && in_.Peek() == 'l' && in_.PeekWord() == "loc" && !ParseLocation(&made.location)) return false;
  if (current.reducer.valid() && made.location.valid()) {
    for (OperationId inner = m_.blocks[current.reducer.value].first; inner.valid(); inner = m_.op(inner).next) {
      m_.operations[inner.value].location = made.location;
    }
  }
  if (!MakeOperands(&made)) return false;
  MakeAttributes(&made);
  MakeRegions(id, &made);
  MakeResults(id, &made);
  const uint64_t tree_size = TreeSizeOf(made);
  if (!TakeFromBudget(tree_size, {current.offset, current.name_size})) return false;
  AppendToBlock(id, &made);
  if (record && known_tails_.Find(current.tail, current.tail_kind) == nullptr) {
    known_tails_.Set(current.tail, current.tail_kind, {id, tree_size});
  }
  if (!DefineResults(made)) return false;
  CloseOperation();
  return true;
}

bool OperationParser::MakeOperands(Operation* made) {
  const OpenOperation& current = op();
  const size_t operands = operands_.size() - current.operands;
  const size_t types = operand_types_.size() - current.operand_types;
  if (current.has_types && operands != types) {
    return in_.Error(DiagnosticKind::kOperandCount, {current.offset, current.name_size},
                     current.generic ? StrCat("expected ", operands, " operand types but had ", types)
                                     : StrCat("custom op '", m_.nodes.str(current.name),
                                              "' number of operands and types do not match: got ", operands,
                                              " operands and ", types, " types"));
  }
  made->operand_begin = static_cast<uint32_t>(m_.operands.size());
  made->operand_count = static_cast<uint32_t>(operands);
  for (size_t i = 0; i < operands; ++i) {
    const OperandUse& use = operands_[current.operands + i];
    if (current.has_types && use.value.valid() && m_.type(use.value) != operand_types_[current.operand_types + i]) {
      return Error({use.offset, use.size}, StrCat("use of value '", m_.source->text().substr(use.offset, use.size),
                                                  "' expects different type than prior uses: '",
                                                  ToText(m_.nodes, operand_types_[current.operand_types + i]), "' vs '",
                                                  ToText(m_.nodes, m_.type(use.value)), "'"));
    }
    m_.operands.push_back(use.value);
  }
  return true;
}

void OperationParser::MakeAttributes(Operation* made) {
  const OpenOperation& current = op();
  if (current.same_as.valid()) {
    const Operation& other = m_.op(current.same_as);
    made->attribute_begin = other.attribute_begin;
    made->attribute_count = other.attribute_count;
    return;
  }
  made->attribute_begin = static_cast<uint32_t>(m_.attributes.size());
  made->attribute_count = static_cast<uint32_t>(attributes_.size() - current.attributes);
  const auto first = attributes_.begin() + static_cast<std::ptrdiff_t>(current.attributes);
  std::sort(first, attributes_.end(),
            [&](const Attribute& a, const Attribute& b) { return m_.nodes.str(a.name) < m_.nodes.str(b.name); });
  m_.attributes.insert(m_.attributes.end(), first, attributes_.end());
}

void OperationParser::MakeRegions(OperationId id, Operation* made) {
  const OpenOperation& current = op();
  made->region_begin = static_cast<uint32_t>(m_.region_lists.size());
  made->region_count = static_cast<uint32_t>(region_list_.size() - current.regions);
  for (size_t i = current.regions; i < region_list_.size(); ++i) {
    m_.region_lists.push_back(region_list_[i]);
    m_.regions[region_list_[i].value].parent = id;
  }
  made->successor_begin = static_cast<uint32_t>(m_.successors.size());
  made->successor_count = static_cast<uint32_t>(current.successors.size());
  m_.successors.insert(m_.successors.end(), current.successors.begin(), current.successors.end());
}

void OperationParser::MakeResults(OperationId id, Operation* made) {
  const OpenOperation& current = op();
  const bool same = current.same_as.valid();
  made->result_begin = static_cast<uint32_t>(m_.values.size());
  made->result_count =
      same ? m_.op(current.same_as).result_count : static_cast<uint32_t>(result_types_.size() - current.result_types);
  for (uint32_t i = 0; i < made->result_count; ++i) {
    const NodeId type = same ? m_.type(m_.result(m_.op(current.same_as), i)) : result_types_[current.result_types + i];
    m_.values.push_back({type, NodeId(), id, BlockId(), i});
  }
}

uint64_t OperationParser::TreeSizeOf(const Operation& made) const {
  uint64_t size = ops_.back().tree_size;
  if (made.same_as.valid()) return size;
  for (const Attribute& attribute : m_.attributes_of(made)) size += m_.nodes[attribute.value].tree_size;
  for (uint32_t i = 0; i < made.result_count; ++i) size += TreeSizeOfType(m_.result(made, i));
  for (const ValueId value : m_.operands_of(made)) size += TreeSizeOfType(value);
  return size;
}

void OperationParser::AppendToBlock(OperationId id, Operation* made) {
  OpenRegion& region = regions_.back();
  if (!region.block.valid()) {
    region.block = BlockId(static_cast<uint32_t>(m_.blocks.size()));
    m_.blocks.push_back({});
    m_.blocks.back().region = region.region;
    m_.regions[region.region.value].first = m_.regions[region.region.value].last = region.block;
  }
  made->block = region.block;
  Block& block = m_.blocks[region.block.value];
  if (block.last.valid()) {
    m_.operations[block.last.value].next = id;
  } else {
    block.first = id;
  }
  block.last = id;
  m_.operations.push_back(*made);
}

bool OperationParser::DefineResults(const Operation& made) {
  const size_t first = op().results;
  uint64_t named = 0;
  for (size_t i = first; i < results_.size(); ++i) named += results_[i].count;
  if (results_.size() > first && named != made.result_count) {
    return Error({results_[first].offset, 1},
                 StrCat("operation defines ", made.result_count, " results but was provided ", named, " to bind"));
  }
  uint32_t next = made.result_begin;
  for (size_t i = first; i < results_.size(); ++i) {
    Define(results_[i].name, results_[i].offset, ValueId(next), results_[i].count);
    next += results_[i].count;
  }
  return true;
}

void OperationParser::CloseOperation() {
  const OpenOperation& current = op();
  results_.resize(current.results);
  operands_.resize(current.operands);
  attributes_.resize(current.attributes);
  region_list_.resize(current.regions);
  operand_types_.resize(current.operand_types);
  result_types_.resize(current.result_types);
  ops_.pop_back();
}

bool OperationParser::TakeFromBudget(uint64_t size, SourceRange range) {
  tree_budget_ -= static_cast<int64_t>(std::min<uint64_t>(size, std::numeric_limits<uint32_t>::max()));
  return tree_budget_ >= 0 ||
         in_.Error(DiagnosticKind::kTooLarge, range,
                   "the attributes and types of the program are too large, as aliases in them occur often");
}

// ---- operands ----

bool OperationParser::ParseOperand() {
  const uint32_t offset = in_.Offset();
  if (!in_.TryConsume('%')) return in_.ErrorHere(StrCat("expected SSA operand, found ", in_.DescribeNext()));
  const std::string_view name = in_.SuffixName();
  int64_t index = 0;
  const uint32_t size = in_.Here() - offset;
  if (*in_.at() == '#') {
    in_.TryConsume('#');
    if (!in_.Integer(&index)) return false;
  }
  NameKey key;
  const Definition definition = FindName(name, /*add=*/false, &key) ? DefinitionAt(key) : Definition();
  if (definition.failed) {
    operands_.push_back({ValueId(), offset, size});
    return true;
  }
  if (!definition.first.valid()) {
    return in_.Error(DiagnosticKind::kUndefinedOperand, {offset, size},
                     StrCat("use of undeclared SSA value name '%", name, "'"));
  }
  if (index < 0 || index >= definition.count) {
    return in_.Error(DiagnosticKind::kUndefinedOperand, {offset, size},
                     StrCat("reference to invalid result number ", index, " of '%", name, "'"));
  }
  operands_.push_back({ValueId(definition.first.value + static_cast<uint32_t>(index)), offset, size});
  return true;
}

bool OperationParser::ParseOperands(bool required) {
  if (in_.Peek() != '%' && !required) return true;
  for (;;) {
    if (!ParseOperand()) return false;
    const char* const before = in_.at();
    if (!in_.TryConsume(',')) return true;
    if (in_.Peek() != '%') {
      in_.set_at(before);
      return true;
    }
  }
}

bool OperationParser::ParseSuccessors() {
  if (!in_.Expect('[')) return false;
  do {
    if (!in_.Expect('^', "before the label of a block")) return false;
    op().successors.push_back(BlockNamed(in_.SuffixName()));
  } while (in_.TryConsume(','));
  return in_.Expect(']', "after successors");
}

// ---- attributes and types ----

bool OperationParser::HasPropertyOrAttribute(std::string_view name) const {
  for (size_t i = ops_.back().attributes; i < attributes_.size(); ++i) {
    if (m_.nodes.str(attributes_[i].name) == name) return true;
  }
  return false;
}

bool OperationParser::AddAttribute(std::string_view name, NodeId value, bool inherent) {
  if (!value.valid()) return false;
  if (HasPropertyOrAttribute(name)) {
    return in_.Error(DiagnosticKind::kDuplicateAttribute, in_.Next(),
                     StrCat("attribute '", name, "' occurs more than once in the attribute list"));
  }
  attributes_.push_back({m_.nodes.strings().Intern(name), value, inherent});
  return true;
}

bool OperationParser::ParseAttributeDictionary() {
  std::vector<NamedNode> entries;
  if (!nodes_.ParseDictionary(&entries)) return false;
  for (const NamedNode& entry : entries) {
    const std::string_view name = m_.nodes.str(entry.name);
    const bool inherent = op().definition != nullptr && op().definition->FindAttribute(name) != nullptr;
    if (!AddAttribute(name, entry.value, inherent)) return false;
  }
  return true;
}

bool OperationParser::ParseTypeList(std::vector<NodeId>* types) {
  do {
    const NodeId type = nodes_.ParseType();
    if (!type.valid()) return false;
    types->push_back(type);
  } while (in_.TryConsume(','));
  return true;
}

bool OperationParser::ParseFunctionType() {
  const uint32_t offset = in_.Offset();
  const NodeId type = nodes_.ParseType();
  if (!type.valid()) return false;
  if (m_.nodes.kind(type) != NodeKind::kFunctionType) return Error({offset, 1}, "expected function type");
  return SetFunctionType(type);
}

bool OperationParser::SetFunctionType(NodeId type) {
  const auto inputs = static_cast<size_t>(m_.nodes.ints(type)[0]);
  const size_t count = m_.nodes.child_count(type);
  for (size_t i = 0; i < count; ++i) (i < inputs ? operand_types_ : result_types_).push_back(m_.nodes.child(type, i));
  op().has_types = true;
  return true;
}

}  // namespace hlokit::mlir
