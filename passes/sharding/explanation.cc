// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/explanation.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/core/text_writer.h"
#include "passes/sharding/sharding_rule.h"

namespace hlokit::sharding {
namespace {

constexpr size_t kMaxLines = 200;

int64_t LeavesBefore(Instruction tuple, int64_t operand) {
  int64_t leaves = 0;
  for (int64_t k = 0; k < operand; ++k) leaves += tuple.operand(k).shape().leaf_count();
  return leaves;
}

int64_t FirstLeafOfElement(Instruction element) {
  int64_t first = 0;
  for (int64_t k = 0; k < element.int_attr(Attr::kIndex); ++k)
    first += element.operand(0).shape().element(k).leaf_count();
  return first;
}

// The leaf of the source that a step took its sharding from.
std::pair<Instruction, int64_t> LeafAtSource(const Module& module, const PropagationStep& step) {
  const Instruction i = module.instruction(step.instruction), source = module.instruction(step.source);
  if (step.kind == SourceKind::kOperand && i.opcode() == Opcode::kTuple) {
    int64_t leaf = step.leaf;
    for (Instruction operand : i.operands()) {
      if (leaf < operand.shape().leaf_count()) return {operand, leaf};
      leaf -= operand.shape().leaf_count();
    }
  }
  if (step.kind == SourceKind::kOperand && i.opcode() == Opcode::kGetTupleElement) {
    return {source, FirstLeafOfElement(i) + step.leaf};
  }
  if (step.kind == SourceKind::kUser && source.opcode() == Opcode::kTuple) {
    for (int64_t k = 0; k < source.operand_count(); ++k) {
      if (source.operand(k) == i) return {source, LeavesBefore(source, k) + step.leaf};
    }
  }
  if (step.kind == SourceKind::kUser && source.opcode() == Opcode::kGetTupleElement) {
    return {source, std::max<int64_t>(step.leaf - FirstLeafOfElement(source), 0)};
  }
  return {source, source.shape().leaf_count() == i.shape().leaf_count() ? step.leaf : 0};
}

std::string ReasonOf(const Module& module, const PropagationStep& step) {
  const Instruction source = step.source.valid() ? LeafAtSource(module, step).first : Instruction();
  const std::string name = source.valid() ? std::string(source.name()) : "";
  const auto along = [](Instruction op) -> std::string {
    const ShardingRule rule = RuleOf(op);
    return RuleClassOf(op) == RuleClass::kForwarding || !rule.known ? "" : StrCat(", along ", rule.ToString());
  };
  switch (step.kind) {
    case SourceKind::kText:
      return "given in the text";
    case SourceKind::kOperand:
      return StrCat("from operand ", name, ", level ", step.level, along(module.instruction(step.instruction)));
    case SourceKind::kUser:
      return StrCat("from user ", name, ", level ", step.level, along(source));
    case SourceKind::kSameValue:
      return StrCat("the same value as ", name);
    case SourceKind::kConstraint:
      return StrCat("constrained by ", name);
    case SourceKind::kShardGroup:
      return StrCat("in a shard group with ", name);
    case SourceKind::kManual:
      return StrCat("manual as ", name);
    case SourceKind::kNotDivisible:
      return "replicated, since the tiles do not divide a parameter or result";
  }
  return "";
}

// Returns the last accepted step of a leaf before step `end`; nullopt if there is none.
std::optional<size_t> LastStep(const PropagationLog& log, InstructionId instruction, int64_t leaf, size_t end) {
  for (size_t n = end; n-- > 0;) {
    const PropagationStep& step = log.steps[n];
    if (step.instruction == instruction && step.leaf == leaf && !step.rejected) return n;
  }
  return std::nullopt;
}

// Returns the sharding of a leaf that nothing has changed: that of the text.
std::optional<Tiling> FromText(Instruction i, int64_t leaf) {
  if (!i.has(Attr::kSharding)) return std::nullopt;
  const Sharding sharding = DecodeSharding(i.module().context(), ListId(*i.payload(Attr::kSharding)));
  for (const Sharding::Run& run : sharding.runs) {
    if (!sharding.is_tuple || leaf < run.count) return TilingOf(run.leaf, run.leaf.data_rank());
    leaf -= run.count;
  }
  return std::nullopt;
}

}  // namespace

std::string TilingText(const Module& module, const Tiling& tiling) {
  std::string text;
  TextWriter out(&text);
  Context& context = module.context();
  PrintSharding(out, context, EncodeLeaf(&context, LeafOf(tiling)), /*include_metadata=*/false);
  out.Flush();
  return text;
}

std::string_view ToString(SourceKind kind) {
  switch (kind) {
    case SourceKind::kText:
      return "text";
    case SourceKind::kOperand:
      return "operand";
    case SourceKind::kUser:
      return "user";
    case SourceKind::kSameValue:
      return "same value";
    case SourceKind::kConstraint:
      return "constraint";
    case SourceKind::kShardGroup:
      return "shard group";
    case SourceKind::kManual:
      return "manual";
    case SourceKind::kNotDivisible:
      return "not divisible";
  }
  return "";
}

SourceKind SourceOf(const PropagationLog& log, Instruction instruction, int64_t leaf) {
  const std::optional<size_t> step = LastStep(log, instruction.id(), leaf, log.steps.size());
  return step ? log.steps[*step].kind : SourceKind::kText;
}

Explanation ExplainSharding(const Module& module, const PropagationLog& log, Instruction instruction, int64_t leaf) {
  Explanation explanation;
  struct Question {
    Instruction instruction;
    int64_t leaf;
    size_t end;  // the state before this step
    int depth;
    std::optional<Tiling> at_that_time;
  };
  std::vector<Question> pending = {{instruction, leaf, log.steps.size(), 0, std::nullopt}};
  std::set<std::tuple<uint32_t, int64_t, size_t>> seen;
  while (!pending.empty() && explanation.chain.size() < kMaxLines) {
    const Question q = pending.back();
    pending.pop_back();
    const std::optional<size_t> last = LastStep(log, q.instruction.id(), q.leaf, q.end);
    if (!last) {
      // Of the text, if a later step did not replace it.
      std::optional<Tiling> given = q.at_that_time;
      if (!given) {
        for (const PropagationStep& step : log.steps) {
          if (step.instruction != q.instruction.id() || step.leaf != q.leaf || step.rejected) continue;
          given = step.before;
          break;
        }
      }
      if (!given) given = FromText(q.instruction, q.leaf);
      if (!given || given->kind == ShardingKind::kUnknown) continue;
      explanation.chain.push_back(
          {q.depth, q.instruction.id(), q.leaf, TilingText(module, *given), ReasonOf(module, PropagationStep())});
      continue;
    }
    const PropagationStep& step = log.steps[*last];
    const bool repeated = !seen.insert({q.instruction.id().value, q.leaf, *last}).second;
    explanation.chain.push_back({q.depth, q.instruction.id(), q.leaf, TilingText(module, step.after),
                                 repeated ? std::string("as above") : ReasonOf(module, step)});
    if (repeated) continue;
    // What it had before, which the new one refines; explained after the source.
    if (step.before.tiled() && step.before.tiles() > 1) {
      pending.push_back({q.instruction, q.leaf, *last, q.depth + 1, step.before});
    }
    if (step.source.valid()) {
      const auto [source, source_leaf] = LeafAtSource(module, step);
      pending.push_back({source, source_leaf, *last, q.depth + 1, std::nullopt});
    }
  }
  std::set<std::string> told;
  for (const PropagationStep& step : log.steps) {
    if (step.instruction != instruction.id() || step.leaf != leaf || !step.rejected) continue;
    ExplanationLine line{0, step.source, 0, TilingText(module, step.after), ReasonOf(module, step)};
    if (told.insert(line.sharding + StrCat(step.source.value)).second) explanation.rejected.push_back(std::move(line));
  }
  return explanation;
}

absl::StatusOr<Subject> FindSubject(const Module& module, std::string name) {
  const std::string given = name;
  if (name.starts_with('%')) name.erase(0, 1);
  constexpr int64_t kMaxLeaves = 64;
  Subject subject;
  std::vector<std::string_view> names;
  std::optional<int64_t> leaf;
  if (const size_t bracket = name.find('['); bracket != name.npos && name.ends_with(']')) {
    leaf = std::atoll(name.c_str() + bracket + 1);
    name.erase(bracket);
  }
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.name() == name) subject.instruction = i;
      names.push_back(i.name());
    }
  }
  const int64_t count =
      subject.instruction.valid() ? std::max<int64_t>(subject.instruction.shape().leaf_count(), 1) : 0;
  for (int64_t k = 0; k < std::min(count, kMaxLeaves); ++k) {
    if (!leaf || *leaf == k) subject.leaves.push_back(k);
  }
  if (!subject.leaves.empty()) return subject;
  return absl::NotFoundError(StrCat("no instruction `", given, "`", DidYouMeanSuffix(given, names)));
}

}  // namespace hlokit::sharding
