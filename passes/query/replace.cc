// SPDX-License-Identifier: Apache-2.0
#include "passes/query/replace.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/side_effects.h"
#include "parser/hlo/attribute_value.h"
#include "parser/hlo/literal_parser.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/query/query.h"

namespace hlokit::query {
namespace {

// Parses the replacement and checks that it can be built for every match.
absl::StatusOr<Pattern> ParseReplacement(const std::string& text, const Pattern& pattern) {
  DiagnosticSink sink;
  std::optional<Pattern> with = Pattern::Parse(text, &sink);
  if (!with) return QueryError(sink, "with", text);
  std::vector<uint32_t> open = {with->root_index()};
  while (!open.empty()) {
    const Pattern::Node& node = with->node(open.back());
    open.pop_back();
    if (node.variable >= 0) {
      const std::string& name = with->variables()[static_cast<size_t>(node.variable)];
      if (pattern.Find(name) < 0) {
        const std::vector<std::string_view> known(pattern.variables().begin(), pattern.variables().end());
        sink.Error(DiagnosticKind::kUnexpectedToken, node.range, StrCat("`match` has no variable `%", name, "`"),
                   DidYouMean(name, known));
        continue;
      }
    }
    const bool is_variable = node.kind == Pattern::Node::Kind::kAny && node.variable >= 0;
    const bool is_instruction = node.kind == Pattern::Node::Kind::kOpcode && node.has_operands && !node.more_operands &&
                                node.variable < 0 && with->OpcodeOf(node);
    if (!is_variable && !is_instruction && node.kind != Pattern::Node::Kind::kNumber) {
      sink.Error(DiagnosticKind::kUnexpectedToken, node.range,
                 "expected a variable, a number or an instruction of one opcode with all operands",
                 "a replacement is written add(%x, 1)");
    }
    for (uint32_t k = 0; k < node.count; ++k) open.push_back(with->operand(node, k));
  }
  if (sink.has_errors()) return QueryError(sink, "with", text);
  return *std::move(with);
}

// Builds replacements of matches.
class Replacer {
 public:
  Replacer(Module* module, const Pattern& match, const Pattern& with) : module_(*module), match_(match), with_(with) {}

  // Returns the value that replaces the match, which is in the computation of its root, before it.
  absl::StatusOr<InstructionId> Build(const Match& match) {
    Builder builder(&module_, match.root.id());
    builder.SetMetadata(match.root.metadata_id());
    CollectAttributes(match.root);
    // Operands before users, on a stack.
    struct Frame {
      uint32_t node;
      std::vector<InstructionId> operands;
    };
    std::vector<Frame> open = {{with_.root_index(), {}}};
    InstructionId result;
    while (!open.empty()) {
      const Pattern::Node& node = with_.node(open.back().node);
      if (node.kind == Pattern::Node::Kind::kOpcode && open.back().operands.size() < node.count) {
        open.push_back({with_.operand(node, static_cast<uint32_t>(open.back().operands.size())), {}});
        continue;
      }
      const Frame frame = std::move(open.back());
      open.pop_back();
      const bool is_root = open.empty();
      absl::StatusOr<InstructionId> made = Make(&builder, node, frame.operands, match, is_root);
      if (!made.ok()) return made.status();
      if (is_root) {
        result = *made;
      } else {
        open.back().operands.push_back(*made);
      }
    }
    if (!Compatible(builder.shape_of(result), match.root.shape())) {
      return absl::InvalidArgumentError(StrCat("the replacement has shape ", ToString(builder.shape_of(result), false),
                                               ", not ", ToString(match.root.shape(), false)));
    }
    return result;
  }

 private:
  struct Source {
    Opcode opcode;
    Instruction instruction;
  };

  // Collects the matched instructions by opcode, in the order of the pattern.
  void CollectAttributes(Instruction root) {
    sources_.clear();
    std::vector<std::pair<uint32_t, Instruction>> open = {{match_.root_index(), root}};
    while (!open.empty()) {
      const auto [number, at] = open.back();
      open.pop_back();
      const Pattern::Node& node = match_.node(number);
      if (node.kind == Pattern::Node::Kind::kOpcode) sources_.push_back({at.opcode(), at});
      for (uint32_t k = node.count; k-- > 0;) open.emplace_back(match_.operand(node, k), at.operand(k));
    }
  }

  absl::StatusOr<InstructionId> Make(Builder* builder, const Pattern::Node& node,
                                     const std::vector<InstructionId>& operands, const Match& match, bool is_root) {
    if (node.kind == Pattern::Node::Kind::kAny) {
      const std::string& name = with_.variables()[static_cast<size_t>(node.variable)];
      return match.variables[static_cast<size_t>(match_.Find(name))].id();
    }
    const Shape shape = match.root.shape();
    if (node.kind == Pattern::Node::Kind::kNumber) {
      // A number is as large as the result: operands of elementwise instructions have its shape.
      if (!shape.IsArray()) return absl::InvalidArgumentError("a number instead of a tuple");
      return builder->MakeSplat(shape, builder->MakeScalarConstant(shape.element_type(), node.number));
    }
    const Opcode opcode = *with_.OpcodeOf(node);
    std::vector<AttrValue> attrs;
    Shape declared = is_root ? shape : Shape();
    for (const Source& source : sources_) {
      if (source.opcode != opcode) continue;
      for (const AttrValue value : source.instruction.attrs()) {
        if (!IsCommon(value.attr)) attrs.push_back(value);
      }
      if (!is_root) declared = source.instruction.shape();
      break;
    }
    // Operands and attributes determine the shape; the result's, or that of the matched instruction, has what they
    // lack.
    absl::StatusOr<InstructionId> made = builder->Add(opcode, operands, attrs, is_root ? declared : Shape());
    if (!made.ok() && !is_root && declared.valid()) made = builder->Add(opcode, operands, attrs, declared);
    return made;
  }

  Module& module_;
  const Pattern& match_;
  const Pattern& with_;
  std::vector<Source> sources_;
};

// Erases the instructions that nothing uses any more, from these on to their operands.
void EraseDead(Module& module, std::vector<InstructionId> open) {
  while (!open.empty()) {
    const Instruction i = module.instruction(open.back());
    open.pop_back();
    if (!i.record().parent.valid() || !IsUnused(i) || HasSideEffectNoRecurse(i) || i.has_control_edges()) {
      continue;
    }
    for (const Instruction operand : i.operands()) open.push_back(operand.id());
    module.Erase(i.id());
  }
}

}  // namespace

absl::StatusOr<bool> ReplacePass::Run(Module& module) {
  if (options().String("match").empty() && options().String("with").empty()) return false;
  const absl::StatusOr<Query> query = Query::Of(options(), context());
  if (!query.ok()) return query.status();
  const absl::StatusOr<Pattern> with = ParseReplacement(std::string(options().String("with")), query->pattern);
  if (!with.ok()) return with.status();
  Module changed = module.Clone();
  Replacer replacer(&changed, query->pattern, *with);
  int64_t count = 0;
  for (const Match& found : query->Find(module)) {
    // An earlier replacement may have changed it.
    Match match;
    const Instruction root = changed.instruction(found.root.id());
    if (!root.record().parent.valid() || !query->pattern.Matches(root, &match)) continue;
    const absl::StatusOr<InstructionId> by = replacer.Build(match);
    if (!by.ok()) {
      return absl::Status(by.status().code(), StrCat("`", root.name(), "` in `", root.parent().name(),
                                                     "`: ", std::string(by.status().message())));
    }
    if (*by == root.id()) continue;
    std::vector<InstructionId> operands;
    for (const Instruction operand : root.operands()) operands.push_back(operand.id());
    Replace(changed, root.id(), *by);
    EraseDead(changed, std::move(operands));
    ++count;
  }
  if (count == 0) return false;
  Count("instructions replaced", count);
  module = std::move(changed);
  return true;
}

absl::StatusOr<bool> SetAttributePass::Run(Module& module) {
  const std::string name(options().String("name")), text(options().String("value"));
  if (options().String("match").empty() && name.empty()) return false;
  const absl::StatusOr<Query> query = Query::Of(options(), context());
  if (!query.ok()) return query.status();
  std::optional<Attr> attr;
  std::vector<std::string_view> names;
  for (size_t k = 0; k < kAttrCount; ++k) {
    names.push_back(ToString(static_cast<Attr>(k)));
    if (names.back() == name) attr = static_cast<Attr>(k);
  }
  if (!attr) {
    DiagnosticSink sink;
    sink.Error(DiagnosticKind::kUnexpectedToken, {0, static_cast<uint32_t>(name.size())},
               StrCat("unknown attribute `", name, "`"), DidYouMean(name, names));
    return QueryError(sink, "name", name);
  }
  const bool remove = text.empty();
  uint32_t payload = 0;
  if (!remove) {
    DiagnosticSink sink;
    const std::optional<uint32_t> value = ParseAttributeValue(*attr, text, &module.context(), &sink);
    if (!value) return QueryError(sink, "value", text);
    payload = *value;
  }
  Module changed = module.Clone();
  int64_t count = 0;
  for (const Match& match : query->Find(module)) {
    const Instruction i = match.root;
    if (!IsCommon(*attr) && i.opcode() != Opcode::kUnknown && FindAttrSpec(i.opcode(), *attr) == nullptr) {
      return absl::InvalidArgumentError(
          StrCat("`", i.name(), "`: ", i.opcode_text(), " takes no attribute `", name, "`"));
    }
    if (i.payload(*attr) == (remove ? std::nullopt : std::optional<uint32_t>(payload))) continue;
    if (remove) {
      changed.RemoveAttr(i.id(), *attr);
    } else {
      changed.SetAttr(i.id(), *attr, payload);
    }
    ++count;
  }
  if (count == 0) return false;
  if (remove) {
    Count("attributes removed", count);
  } else {
    Count("attributes set", count);
  }
  module = std::move(changed);
  return true;
}

}  // namespace hlokit::query

namespace hlokit {
namespace {

OptionInfo MatchOption() {
  return {.name = "match",
          .type = OptionInfo::Type::kString,
          .default_text = "",
          .doc = "a pattern of instructions, as `hlo-inspect find` takes it"};
}

OptionInfo WhereOption() {
  return {.name = "where",
          .type = OptionInfo::Type::kString,
          .default_text = "",
          .doc = "a condition on the matches, as `hlo-inspect find --where` takes it"};
}

}  // namespace

HLOKIT_PASS(Replace) {
  return {.name = "replace",
          .category = "edits",
          .summary = "replace the instructions that match a pattern",
          .doc =
              "replace{match=add(%x,0),with=%x}: each match is replaced by a variable of the pattern, a number, or "
              "instructions of these, all operands given. Attributes are those of the matched instruction of "
              "the same opcode. The shape must stay. Replaced instructions that nothing uses are removed; "
              "new ones are not matched again.",
          .options = {MatchOption(),
                      {.name = "with",
                       .type = OptionInfo::Type::kString,
                       .default_text = "",
                       .doc = "what replaces a match: convert(dot(%x,%y)), %x, 0"},
                      WhereOption()},
          .preconditions = "the replacement computes what is wanted: nothing checks that values stay.",
          .create = MakePass<query::ReplacePass>};
}

HLOKIT_PASS(SetAttribute) {
  return {.name = "set-attribute",
          .category = "edits",
          .summary = "set an attribute of the instructions that match a pattern",
          .doc =
              "set-attribute{match=dot,name=operand_precision,value={highest,highest}}: the attribute by its name "
              "in HLO text, with a value as there; without a value it is removed. Attributes that name "
              "computations or instructions, and metadata, cannot be set.",
          .options = {MatchOption(),
                      {.name = "name",
                       .type = OptionInfo::Type::kString,
                       .default_text = "",
                       .doc = "the name of the attribute"},
                      {.name = "value",
                       .type = OptionInfo::Type::kString,
                       .default_text = "",
                       .doc = "its value, as in HLO text; empty: removes it"},
                      WhereOption()},
          .create = MakePass<query::SetAttributePass>};
}

}  // namespace hlokit
