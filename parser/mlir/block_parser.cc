// SPDX-License-Identifier: Apache-2.0
// Regions, blocks, and the names of values, which are those of a region and the ones around it.
#include <algorithm>

#include "parser/mlir/operation_parser.h"

namespace hlokit::mlir {

void OperationParser::OpenRegionHere() {
  const RegionId id(static_cast<uint32_t>(m_.regions.size()));
  m_.regions.push_back({});
  m_.regions.back().value_begin = static_cast<uint32_t>(m_.values.size());
  m_.regions.back().operation_begin = static_cast<uint32_t>(m_.operations.size());
  region_list_.push_back(id);
  regions_.push_back({id, BlockId(), shadowed_.size()});
  if (arguments_.empty() && !has_arguments_) return;
  has_arguments_ = false;
  const BlockId block(static_cast<uint32_t>(m_.blocks.size()));
  m_.blocks.push_back({});
  Block& made = m_.blocks.back();
  made.region = id;
  made.argument_begin = static_cast<uint32_t>(m_.values.size());
  made.argument_count = static_cast<uint32_t>(arguments_.size());
  m_.regions[id.value].first = m_.regions[id.value].last = block;
  regions_.back().block = block;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const PendingArgument& argument = arguments_[i];
    const ValueId value(static_cast<uint32_t>(m_.values.size()));
    m_.values.push_back({argument.type, argument.location, OperationId(), block, static_cast<uint32_t>(i)});
    tree_budget_ -= static_cast<int64_t>(TreeSizeOfType(value));  // the operation around it finds if there was enough
    if (!argument.name.empty()) Define(argument.name, argument.offset, value, 1);
  }
  arguments_.clear();
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
      tree_budget_ -= static_cast<int64_t>(TreeSizeOfType(value));
      Define(arguments[i].name, arguments[i].offset, value, 1);
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

bool OperationParser::FindName(std::string_view name, bool add, NameKey* key) {
  constexpr size_t kMaxDigits = 6;
  const bool digits = !name.empty() && name.size() <= kMaxDigits && name[0] >= '0' && name[0] <= '9';
  if (digits && (name[0] != '0' || name.size() == 1)) {
    *key = {true, 0};
    for (char c : name) key->index = key->index * 10 + static_cast<uint32_t>(c - '0');
    return true;
  }
  const StringId id = add ? m_.nodes.strings().InternStable(name) : m_.nodes.strings().Find(name);
  *key = {false, id.value};
  return id.valid();
}

OperationParser::Definition& OperationParser::DefinitionAt(NameKey key) {
  std::vector<Definition>& list = key.is_number ? numbered_ : definitions_;
  if (key.index >= list.size()) list.resize(std::max<size_t>(key.index + 1, list.size() * 2));
  return list[key.index];
}

void OperationParser::Define(std::string_view name, uint32_t offset, ValueId first, uint32_t count) {
  NameKey key;
  FindName(name, /*add=*/true, &key);
  Definition& definition = DefinitionAt(key);
  if (definition.first.valid()) {
    in_.Error(DiagnosticKind::kDuplicateName, {offset, static_cast<uint32_t>(name.size() + 1)},
              StrCat("redefinition of SSA value '%", name, "'"));
    return;
  }
  shadowed_.push_back(key);
  definition = {first, count, false};
}

void OperationParser::DefineFailed(std::string_view name) {
  NameKey key;
  FindName(name, /*add=*/true, &key);
  Definition& definition = DefinitionAt(key);
  if (definition.first.valid() || definition.failed) return;
  shadowed_.push_back(key);
  definition.failed = true;
}

void OperationParser::Unwind(size_t scope) {
  while (shadowed_.size() > scope) {
    DefinitionAt(shadowed_.back()) = {};
    shadowed_.pop_back();
  }
}

}  // namespace hlokit::mlir
