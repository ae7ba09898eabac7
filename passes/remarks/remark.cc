// SPDX-License-Identifier: Apache-2.0
#include "passes/remarks/remark.h"

#include <algorithm>
#include <unordered_map>

#include "ir/core/str_cat.h"
#include "ir/graph/source_line.h"
#include "passes/remarks/remark_text.h"

namespace hlokit {
namespace {

constexpr RemarkRuleInfo kRules[] = {
#define REMARK_RULE(name, id, category, kind, says, advice) \
  {id, RemarkCategory::k##category, RemarkKind::k##kind, says, advice},
#include "passes/remarks/remark_rules.def"
};

bool IsEqual(const Remark& a, const Remark& b) {
  return a.rule == b.rule && a.pass == b.pass && a.instruction == b.instruction && a.function == b.function &&
         a.Message() == b.Message();
}

}  // namespace

const RemarkRuleInfo& InfoOf(RemarkRule rule) { return kRules[static_cast<size_t>(rule)]; }

absl::Span<const RemarkRuleInfo> RemarkRules() { return kRules; }

std::string_view ToString(RemarkKind kind) {
  constexpr std::string_view kNames[] = {"passed", "missed", "analysis"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view ToString(RemarkCategory category) {
  constexpr std::string_view kNames[] = {"fusion", "layout", "sharding", "schedule", "memory"};
  return kNames[static_cast<size_t>(category)];
}

Remark::Remark(RemarkRule remark_rule, Instruction of)
    : rule(remark_rule),
      function(of.parent().name()),
      instruction(of.name()),
      opcode(of.opcode_text()),
      source(SourceLineOf(of)),
      op_name(OpNameOf(of)) {}

Remark& Remark::Text(std::string_view text) {
  args.push_back({"String", std::string(text)});
  return *this;
}

Remark& Remark::Name(std::string_view key, Instruction other) {
  if (related.empty()) related = other.name();
  args.push_back({key, std::string(other.name()), RemarkArg::Kind::kName, SourceLineOf(other)});
  return *this;
}

Remark& Remark::Number(std::string_view key, int64_t value) {
  args.push_back({key, StrCat(value), RemarkArg::Kind::kNumber});
  return *this;
}

Remark& Remark::Value(std::string_view key, std::string_view value) {
  args.push_back({key, std::string(value)});
  return *this;
}

std::string Remark::Message() const {
  std::string message = StrCat("`", instruction, "`");
  for (const RemarkArg& arg : args) {
    const std::string_view quote = arg.kind == RemarkArg::Kind::kName ? "`" : "";
    StrAppend(&message, quote, arg.text, quote);
  }
  return message;
}

void BuildRemarkGraph(const Module& module, InstructionId producer, InstructionId consumer,
                      absl::Span<const InstructionId> members, RemarkGraph* graph) {
  constexpr size_t kMaxNodes = 64;
  std::unordered_map<uint32_t, uint32_t> index;  // by instruction
  const auto add = [&](InstructionId id, RemarkGraph::Role role) {
    if (index.contains(id.value)) return;
    if (graph->nodes.size() >= kMaxNodes) {
      ++graph->left_out;
      return;
    }
    const Instruction i = module.instruction(id);
    index.emplace(id.value, static_cast<uint32_t>(graph->nodes.size()));
    graph->nodes.push_back({std::string(i.name()), StrCat(ToString(i.shape(), false), " ", i.opcode_text()), role});
  };
  std::vector<InstructionId> inner = {producer, consumer};
  add(producer, RemarkGraph::Role::kProducer);
  add(consumer, RemarkGraph::Role::kConsumer);
  for (InstructionId id : members) {
    add(id, RemarkGraph::Role::kMember);
    inner.push_back(id);
  }
  for (InstructionId id : inner) {
    for (Instruction operand : module.instruction(id).operands()) add(operand.id(), RemarkGraph::Role::kNeighbor);
    for (Instruction user : module.instruction(id).users()) add(user.id(), RemarkGraph::Role::kNeighbor);
  }
  std::vector<std::pair<uint32_t, uint32_t>>& edges = graph->edges;
  for (const auto& [id, node] : index) {
    for (Instruction operand : module.instruction(InstructionId(id)).operands()) {
      const auto found = index.find(operand.id().value);
      if (found != index.end()) edges.emplace_back(found->second, node);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
}

void RemarkCollector::Add(Remark remark) {
  if (!Wants(remark.rule)) return;
  remark.pass = pass_;
  if (filter_.matches && !filter_.matches(RemarkLine(remark))) return;
  // A pass visits a value a few times in a row at most.
  constexpr size_t kMaxLookBack = 8;
  const size_t first = remarks_.size() > kMaxLookBack ? remarks_.size() - kMaxLookBack : 0;
  for (size_t k = first; k < remarks_.size(); ++k) {
    if (IsEqual(remarks_[k], remark)) return;
  }
  remarks_.push_back(std::move(remark));
}

}  // namespace hlokit
