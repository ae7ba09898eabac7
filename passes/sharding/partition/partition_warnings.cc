// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/partition/partition_warnings.h"

#include <utility>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module_statistics.h"
#include "ir/graph/source_line.h"
#include "ir/sharding/sharding.h"
#include "passes/sharding/explanation.h"
#include "passes/sharding/sharding_rule.h"

namespace hlokit::spmd {
namespace {

// Returns true if the text has the instruction.
bool HasPlace(Instruction i) { return i.record().source_offset != InstructionRecord::kNoSourceOffset; }

// Returns " (model.py:12)"; "" if the line is not known.
std::string LineSuffix(Instruction i) {
  const std::string line = SourceLineOf(i);
  return line.empty() ? line : StrCat(" (", line, ")");
}

// Returns "f32[2,3] (24 B)".
std::string TextOf(Shape array) {
  const int64_t bits = BitsOf(array.element_type());
  const int64_t bytes = SaturatingMultiply(array.element_count(), bits) / 8;
  return StrCat(ToString(array, false), " (", HumanBytes(bytes), ")");
}

}  // namespace

void PartitionWarnings::Add(Instruction user, std::string key, std::string message, std::string hint) {
  Instruction at = user;
  const auto [known, added] = known_.emplace(std::move(key), warnings_.size());
  if (added) {
    // One that an earlier pass made has no place: that of an operand is near.
    for (int64_t k = 0; !HasPlace(at) && k < user.operand_count(); ++k) at = user.operand(k);
    SourceRange range;
    if (HasPlace(at)) range = {at.record().source_offset, static_cast<uint32_t>(at.name().size())};
    warnings_.push_back({range, std::move(message), std::move(hint), 0});
  }
  ++warnings_[known->second].count;
}

void PartitionWarnings::AddFullGather(Instruction user, Instruction producer, Shape array, const Tiling& from,
                                      const Tiling& to) {
  const std::string before = sharding::TilingText(module_, from), after = sharding::TilingText(module_, to);
  const std::string shape = TextOf(array);
  const std::string what = producer.valid() ? StrCat("`", producer.name(), "`, operand of `", user.name(), "`")
                                            : StrCat("the result of `", user.name(), "`");
  const std::string owner = producer.valid() ? std::string(producer.name()) : std::string(user.name());
  Add(user, StrCat(ToString(user.opcode()), producer.valid() ? 1 : 0, shape, before, after),
      StrCat("every device gathers all of ", what, ", ", shape, ", to get from ", before, " to ", after,
             LineSuffix(user)),
      producer.valid() ? StrCat("the sharding ", after, " of `", owner, "` would avoid it, or one of `", user.name(),
                                "` that fits ", before)
                       : StrCat("the sharding ", before, " of `", owner, "` would avoid it"));
}

void PartitionWarnings::AddUndivided(Instruction user, Instruction operand, Shape array, const Tiling& tiling) {
  const std::string shape = TextOf(array), before = sharding::TilingText(module_, tiling);
  const bool custom = user.opcode() == Opcode::kCustomCall;
  const bool stated = custom && RuleClassOf(user) == RuleClass::kStated;
  const std::string target = custom ? std::string(user.string_attr(Attr::kCustomCallTarget)) : "";
  Add(user, StrCat(ToString(user.opcode()), target, shape, before),
      StrCat("every device gathers all of `", operand.name(), "`, ", shape, ", from ", before, ": `", user.name(),
             stated ? "` states a sharding rule that does not fit its arrays" : "` has no sharding rule",
             custom ? StrCat(" (target `", target, "`)") : "", " and is computed whole", LineSuffix(user)),
      stated ? "expected #sdy.op_sharding_rule<([i, j])->([i]) {i=8, j=4} reduction={j}>, with the sizes of the arrays"
      : custom ? std::string("the frontend attribute xla.sdy.sharding_rule gives it one")
               : StrCat("a replicated `", operand.name(), "` would avoid it"));
}

void PartitionWarnings::Report(DiagnosticSink* sink) const {
  for (const Warning& w : warnings_) {
    const std::string more = w.count == 1 ? "" : StrCat(", and ", w.count - 1, " more like it");
    sink->Warning(DiagnosticKind::kSharding, w.range, w.message + more, w.hint);
  }
}

}  // namespace hlokit::spmd
