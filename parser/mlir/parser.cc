// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/parser.h"

#include <algorithm>
#include <cstring>

#include "parser/mlir/operation_parser.h"

namespace hlokit::mlir {

std::unique_ptr<Module> ParseMlir(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                  const MlirOptions& options, DiagnosticSink* sink) {
  if (source->text().size() >= SourceRange::kNoOffset) {
    sink->Error(DiagnosticKind::kTooLarge, {}, "the input is too large: texts of 4 GiB and more are not supported");
    return nullptr;
  }
  auto module = std::make_unique<Module>();
  const auto base = static_cast<uint32_t>(text.data() - source->text().data());
  module->source = std::move(source);
  if (!OperationParser(text, base, options, module.get(), sink).Run()) return nullptr;
  return module;
}

bool OperationParser::Run() {
  m_.top = RegionId(0);
  m_.regions.push_back({});
  regions_.push_back({m_.top, BlockId(), 0});
  for (;;) {
    const bool top = regions_.size() == 1;
    const char c = in_.Peek();
    Flow flow = Flow::kDone;
    bool good = true;
    if (in_.AtEnd()) {
      if (!top) in_.ErrorHere("expected '}' before the end of the text");
      break;
    }
    if (c == '}' && !top) {
      in_.TryConsume('}');
      CloseRegion();
      flow = Resume();
    } else if (top && (c == '#' || c == '!')) {
      good = ParseAlias();
    } else if (top && c == '{') {
      good = ParseResources();
    } else if (c == '^' && !top) {
      good = ParseBlockLabel();
    } else {
      flow = StartOperation();
    }
    if (!good) flow = Flow::kError;
    if (flow == Flow::kError) {
      if (in_.sink()->limit_reached()) break;
      Recover();
    }
  }
  return !in_.sink()->has_errors();
}

// ---- the file ----

bool OperationParser::ParseAlias() {
  const bool type = in_.Peek() == '!';
  in_.TryConsume(type ? '!' : '#');
  const std::string name(in_.SuffixName());
  if (name.empty() || name.find('.') != std::string::npos) {
    return in_.ErrorHere("expected the name of an alias, without a dot");
  }
  if (!in_.Expect('=', "after the name of an alias")) return false;
  if (type) {
    const NodeId value = nodes_.ParseType();
    return value.valid() &&
           (nodes_.DefineTypeAlias(name, value) || in_.ErrorHere(StrCat("redefinition of type alias id '", name, "'")));
  }
  const NodeId value = nodes_.ParseAttribute();
  return value.valid() && (nodes_.DefineAttributeAlias(name, value) ||
                           in_.ErrorHere(StrCat("redefinition of attribute alias id '", name, "'")));
}

bool OperationParser::ParseResources() {
  if (!in_.TryConsume("{-#")) return in_.ErrorHere("expected an operation, found '{'");
  // name: { name: { key: "bytes", ... } }, ...
  std::vector<std::string> path;
  for (;;) {
    if (path.empty() ? in_.TryConsume("#-}") : in_.TryConsume('}')) {
      if (path.empty()) return true;
      path.pop_back();
      in_.TryConsume(',');
      continue;
    }
    std::string key;
    if (!in_.AttributeName(&key) || !in_.Expect(':', "after a key")) return false;
    if (in_.TryConsume('{')) {
      path.push_back(std::move(key));
      if (path.size() > 8) return in_.ErrorHere("the resource section is nested too deeply");
      continue;
    }
    if (in_.Peek() == '"') {
      std::string value;
      if (!in_.String(&value)) return false;
      if (path.size() == 2 && path[0] == "dialect_resources") {
        if (!value.starts_with("0x") || value.size() % 2 != 0) {
          return in_.ErrorHere("expected a string of hex digits that begins with `0x`");
        }
        std::string bytes;
        for (size_t i = 2; i + 1 < value.size(); i += 2) {
          const auto digit = [&](char d) { return d <= '9' ? d - '0' : (d | 0x20) - 'a' + 10; };
          bytes.push_back(static_cast<char>(digit(value[i]) * 16 + digit(value[i + 1])));
        }
        m_.resources.emplace(std::move(key), std::move(bytes));
      }
    } else {
      const std::string_view word = in_.Word();
      int64_t ignored = 0;
      if (word.empty() && !in_.Integer(&ignored)) return false;
    }
    in_.TryConsume(',');
  }
}

void OperationParser::Recover() {
  // The innermost module, or the file, goes on at its next function.
  size_t keep = regions_.size();
  while (keep > 1) {
    const OpenOperation& owner = ops_[std::min(keep - 2, ops_.size() - 1)];
    if (m_.nodes.str(owner.name) == "builtin.module") break;
    --keep;
  }
  Unwind(keep < regions_.size() ? regions_[keep].scope : shadowed_.size());
  regions_.resize(keep);
  const size_t open = keep - 1;
  if (ops_.size() > open) {
    const OpenOperation& first = ops_[open];
    results_.resize(first.results);
    operands_.resize(first.operands);
    attributes_.resize(first.attributes);
    region_list_.resize(first.regions);
    operand_types_.resize(first.operand_types);
    result_types_.resize(first.result_types);
    ops_.resize(open);
  } else if (ops_.empty()) {
    results_.clear();
  }
  arguments_.clear();
  has_arguments_ = false;
  for (const char* p = in_.at();;) {
    const auto* newline = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(in_.end() - p)));
    if (newline == nullptr) break;
    p = newline + 1;
    std::string_view line(p, static_cast<size_t>(in_.end() - p));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    for (std::string_view start : {"func.func", "\"func.func\"", "module", "builtin.module", "#", "!"}) {
      if (line.starts_with(start)) {
        in_.set_at(line.data());
        return;
      }
    }
  }
  in_.set_at(in_.end());
  regions_.resize(1);
  ops_.clear();
}

// ---- operations ----

OperationParser::Flow OperationParser::StartOperation() {
  if (static_cast<int64_t>(ops_.size()) >= options_.max_nesting ||
      static_cast<int64_t>(m_.operations.size()) >= options_.max_operations) {
    in_.Error(DiagnosticKind::kTooDeep, in_.Next(), "too many operations, or nested too deeply");
    return Flow::kError;
  }
  const size_t results = results_.size();
  if (in_.Peek() == '%') {
    do {
      const uint32_t offset = in_.Offset();
      if (!in_.Expect('%', "before the name of a result")) return Flow::kError;
      const std::string_view name = in_.SuffixName();
      int64_t count = 1;
      if (name.empty()) return in_.ErrorHere("expected a name after '%'"), Flow::kError;
      if (in_.TryConsume(':')) {
        if (!in_.Integer(&count)) return Flow::kError;
        constexpr int64_t kMaxResults = 1 << 24;
        if (count < 1 || count > kMaxResults) {
          in_.ErrorHere("expected named operation to have at least 1 result");
          return Flow::kError;
        }
      }
      results_.push_back({name, offset, static_cast<uint32_t>(count)});
    } while (in_.TryConsume(','));
    if (!in_.Expect('=', "after the names of results")) {
      results_.resize(results);
      return Flow::kError;
    }
  }
  ops_.push_back({});
  OpenOperation& current = op();
  current.results = results;
  current.operands = operands_.size();
  current.attributes = attributes_.size();
  current.regions = region_list_.size();
  current.operand_types = operand_types_.size();
  current.result_types = result_types_.size();
  current.offset = in_.Offset();
  std::string name;
  current.generic = in_.Peek() == '"';
  if (current.generic) {
    if (!in_.String(&name)) return Flow::kError;
    current.name_size = in_.Here() - current.offset;
  } else {
    const std::string_view word = in_.Word();
    current.name_size = static_cast<uint32_t>(word.size());
    if (word.empty()) {
      in_.ErrorHere(StrCat("expected operation name in quotes, found ", in_.DescribeNext()));
      return Flow::kError;
    }
    name = word;
    if (name == "module") name = "builtin.module";
    if (name == "return" || name == "call" || name == "call_indirect" || name == "constant") name = "func." + name;
  }
  current.name = m_.nodes.strings().Intern(name);
  current.definition = FindDefinition(name);
  if (current.definition == nullptr) {
    const std::string_view dialect = std::string_view(name).substr(0, name.find('.'));
    if (IsKnownDialect(dialect)) {
      in_.Error(DiagnosticKind::kUnknownOpcode, {current.offset, current.name_size},
                StrCat("unregistered operation '", name, "' found in dialect ('", dialect,
                       "') that does not allow unknown operations"));
      return Flow::kError;
    }
    if (!current.generic) {
      in_.Error(DiagnosticKind::kUnknownOpcode, {current.offset, current.name_size},
                StrCat("custom op '", name, "' is unknown"),
                "the generic form, in quotes, can be read of any operation");
      return Flow::kError;
    }
  }
  if (!current.generic) {
    // A custom form of its own, or the generic one without quotes.
    in_.Skip();
    const bool generic = current.definition->format.empty() || (name == "stablehlo.constant" && in_.Peek() == '(');
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
  return OpenRegionHere() ? Flow::kRegion : Flow::kError;
}

OperationParser::Flow OperationParser::GenericTail() {
  if (op().state == 1) {
    if (in_.TryConsume(',')) {
      if (!in_.Expect('{', "to begin a region")) return Flow::kError;
      return OpenRegionHere() ? Flow::kRegion : Flow::kError;
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
  NodeId location;
  if (with_location && in_.Peek() == 'l' && in_.PeekWord() == "loc" && !ParseLocation(&location)) return false;
  const size_t operands = operands_.size() - current.operands;
  const size_t types = operand_types_.size() - current.operand_types;
  if (current.has_types && operands != types) {
    return current.generic ? in_.Error(DiagnosticKind::kOperandCount, {current.offset, current.name_size},
                                       StrCat("expected ", operands, " operand types but had ", types))
                           : in_.Error(DiagnosticKind::kOperandCount, {current.offset, current.name_size},
                                       StrCat("custom op '", m_.nodes.str(current.name),
                                              "' number of operands and types do not match: got ", operands,
                                              " operands and ", types, " types"));
  }
  Operation made;
  made.name = current.name;
  made.definition = current.definition;
  made.offset = current.offset;
  made.name_size = current.name_size;
  made.location = location;
  const OperationId id(static_cast<uint32_t>(m_.operations.size()));
  made.operand_begin = static_cast<uint32_t>(m_.operands.size());
  made.operand_count = static_cast<uint32_t>(operands);
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
  made.attribute_begin = static_cast<uint32_t>(m_.attributes.size());
  made.attribute_count = static_cast<uint32_t>(attributes_.size() - current.attributes);
  const auto first = attributes_.begin() + static_cast<std::ptrdiff_t>(current.attributes);
  std::sort(first, attributes_.end(),
            [&](const Attribute& a, const Attribute& b) { return m_.nodes.str(a.name) < m_.nodes.str(b.name); });
  m_.attributes.insert(m_.attributes.end(), first, attributes_.end());
  made.region_begin = static_cast<uint32_t>(m_.region_lists.size());
  made.region_count = static_cast<uint32_t>(region_list_.size() - current.regions);
  for (size_t i = current.regions; i < region_list_.size(); ++i) {
    m_.region_lists.push_back(region_list_[i]);
    m_.regions[region_list_[i].value].parent = id;
  }
  made.successor_begin = static_cast<uint32_t>(m_.successors.size());
  made.successor_count = static_cast<uint32_t>(current.successors.size());
  m_.successors.insert(m_.successors.end(), current.successors.begin(), current.successors.end());
  made.result_begin = static_cast<uint32_t>(m_.values.size());
  made.result_count = static_cast<uint32_t>(result_types_.size() - current.result_types);
  for (uint32_t i = 0; i < made.result_count; ++i) {
    m_.values.push_back({result_types_[current.result_types + i], NodeId(), id, BlockId(), i});
  }
  // Into the block.
  OpenRegion& region = regions_.back();
  if (!region.block.valid()) {
    region.block = BlockId(static_cast<uint32_t>(m_.blocks.size()));
    m_.blocks.push_back({});
    m_.blocks.back().region = region.region;
    m_.regions[region.region.value].first = m_.regions[region.region.value].last = region.block;
  }
  made.block = region.block;
  Block& block = m_.blocks[region.block.value];
  if (block.last.valid()) {
    m_.operations[block.last.value].next = id;
  } else {
    block.first = id;
  }
  block.last = id;
  m_.operations.push_back(made);
  // The names of results.
  uint32_t named = 0;
  for (size_t i = current.results; i < results_.size(); ++i) named += results_[i].count;
  if (results_.size() > current.results && named != made.result_count) {
    return Error({results_[current.results].offset, 1},
                 StrCat("operation defines ", made.result_count, " results but was provided ", named, " to bind"));
  }
  uint32_t next = made.result_begin;
  bool good = true;
  for (size_t i = current.results; i < results_.size(); ++i) {
    good = Define(results_[i].name, results_[i].offset, ValueId(next), results_[i].count) && good;
    next += results_[i].count;
  }
  results_.resize(current.results);
  operands_.resize(current.operands);
  attributes_.resize(current.attributes);
  region_list_.resize(current.regions);
  operand_types_.resize(current.operand_types);
  result_types_.resize(current.result_types);
  ops_.pop_back();
  return good;
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
  const StringId id = m_.nodes.strings().Find(name);
  Definition definition;
  if (id.valid() && id.value < definitions_.size()) definition = definitions_[id.value];
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

BlockId OperationParser::BlockNamed(std::string_view label) {
  const StringId id = m_.nodes.strings().Intern(label);
  const RegionId region = regions_.back().region;
  for (size_t i = m_.blocks.size(); i-- > 0;) {
    if (m_.blocks[i].label == id && m_.blocks[i].region == region) return BlockId(static_cast<uint32_t>(i));
    if (m_.blocks.size() - i > 1024) break;
  }
  m_.blocks.push_back({});
  m_.blocks.back().region = region;
  m_.blocks.back().label = id;
  return BlockId(static_cast<uint32_t>(m_.blocks.size() - 1));
}

bool OperationParser::Define(std::string_view name, uint32_t offset, ValueId first, uint32_t count) {
  const StringId id = m_.nodes.strings().Intern(name);
  if (id.value >= definitions_.size()) definitions_.resize(std::max<size_t>(id.value + 1, definitions_.size() * 2));
  if (definitions_[id.value].first.valid()) {
    return in_.Error(DiagnosticKind::kDuplicateName, {offset, static_cast<uint32_t>(name.size() + 1)},
                     StrCat("redefinition of SSA value '%", name, "'"));
  }
  shadowed_.push_back({id, definitions_[id.value]});
  definitions_[id.value] = {first, count};
  return true;
}

void OperationParser::Unwind(size_t scope) {
  while (shadowed_.size() > scope) {
    definitions_[shadowed_.back().first.value] = shadowed_.back().second;
    shadowed_.pop_back();
  }
}

// ---- regions and blocks ----

bool OperationParser::OpenRegionHere() {
  const RegionId id(static_cast<uint32_t>(m_.regions.size()));
  m_.regions.push_back({});
  m_.regions.back().value_begin = static_cast<uint32_t>(m_.values.size());
  m_.regions.back().operation_begin = static_cast<uint32_t>(m_.operations.size());
  region_list_.push_back(id);
  regions_.push_back({id, BlockId(), shadowed_.size()});
  if (arguments_.empty() && !has_arguments_) return true;
  has_arguments_ = false;
  const BlockId block(static_cast<uint32_t>(m_.blocks.size()));
  m_.blocks.push_back({});
  Block& made = m_.blocks.back();
  made.region = id;
  made.argument_begin = static_cast<uint32_t>(m_.values.size());
  made.argument_count = static_cast<uint32_t>(arguments_.size());
  m_.regions[id.value].first = m_.regions[id.value].last = block;
  regions_.back().block = block;
  bool good = true;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const PendingArgument& argument = arguments_[i];
    const ValueId value(static_cast<uint32_t>(m_.values.size()));
    m_.values.push_back({argument.type, argument.location, OperationId(), block, static_cast<uint32_t>(i)});
    if (!argument.name.empty()) good = Define(argument.name, argument.offset, value, 1) && good;
  }
  arguments_.clear();
  return good;
}

void OperationParser::CloseRegion() {
  Region& region = m_.regions[regions_.back().region.value];
  region.value_end = static_cast<uint32_t>(m_.values.size());
  region.operation_end = static_cast<uint32_t>(m_.operations.size());
  Unwind(regions_.back().scope);
  regions_.pop_back();
}

bool OperationParser::ParseArgument(PendingArgument* argument) {
  argument->offset = in_.Offset();
  if (!in_.TryConsume('%')) return in_.ErrorHere(StrCat("expected SSA operand, found ", in_.DescribeNext()));
  argument->name = in_.SuffixName();
  if (!in_.Expect(':', "and a type for SSA operand")) return false;
  argument->type = nodes_.ParseType();
  return argument->type.valid();
}

bool OperationParser::ParseBlockLabel() {
  in_.TryConsume('^');
  const BlockId block = BlockNamed(in_.SuffixName());
  OpenRegion& region = regions_.back();
  if (m_.blocks[block.value].first.valid()) return in_.ErrorHere("redefinition of a block");
  Region& owner = m_.regions[region.region.value];
  if (owner.last.valid()) {
    m_.blocks[owner.last.value].next = block;
  } else {
    owner.first = block;
  }
  owner.last = block;
  region.block = block;
  if (in_.TryConsume('(') && !in_.TryConsume(')')) {
    std::vector<PendingArgument> arguments;
    do {
      PendingArgument argument{};
      if (!ParseArgument(&argument)) return false;
      if (in_.PeekWord() == "loc" && !ParseLocation(&argument.location)) return false;
      arguments.push_back(argument);
    } while (in_.TryConsume(','));
    if (!in_.Expect(')', "after the arguments of a block")) return false;
    m_.blocks[block.value].argument_begin = static_cast<uint32_t>(m_.values.size());
    m_.blocks[block.value].argument_count = static_cast<uint32_t>(arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ValueId value(static_cast<uint32_t>(m_.values.size()));
      m_.values.push_back({arguments[i].type, arguments[i].location, OperationId(), block, static_cast<uint32_t>(i)});
      if (!Define(arguments[i].name, arguments[i].offset, value, 1)) return false;
    }
  }
  return in_.Expect(':', "after block name");
}

bool OperationParser::ParseLocation(NodeId* location) {
  in_.Word();
  if (!in_.Expect('(', "in location")) return false;
  *location = nodes_.ParseLocation();
  return location->valid() && in_.Expect(')', "in location");
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
