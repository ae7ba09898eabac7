// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/loops/loop_bounds.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "nlohmann/json.hpp"
#include "passes/analysis/loop.h"
#include "passes/analysis/trip_count.h"
#include "passes/annotations/annotations.h"
#include "passes/rewrite/change_loop.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {
namespace {

// Returns the backend_config of the loop with these facts; nullopt if it has a trip count already, or is not JSON.
std::optional<std::string> AnnotatedConfig(Instruction loop, const CountedLoop& counted) {
  const std::string_view given = loop.string_attr(Attr::kBackendConfig);
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  if (!given.empty()) {
    config = nlohmann::ordered_json::parse(given, nullptr, /*allow_exceptions=*/false);
    if (!config.is_object() || config.contains("known_trip_count")) return std::nullopt;
  }
  config["known_trip_count"]["n"] = StrCat(counted.trip_count);
  config["known_init_step"]["init"] = StrCat(counted.start);
  config["known_init_step"]["step"] = StrCat(counted.step);
  config["known_induction_variable"]["tuple_index"] = StrCat(counted.index);
  return config.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Returns true if the condition is `… and counter < constant`, where the body increments the counter by one.
bool IsBounded(const CanonicalLoop& loop) {
  const Instruction both = loop.condition.root();
  if (both.opcode() != Opcode::kAnd) return false;
  for (Instruction compare : both.operands()) {
    if (compare.opcode() != Opcode::kCompare ||
        compare.enum_attr(Attr::kDirection, ComparisonDirection::kEq) != ComparisonDirection::kLt) {
      continue;
    }
    const Instruction counter = compare.operand(0);
    if (!IsStateElement(counter, loop.condition) || !ScalarInteger(compare.operand(1))) continue;
    const int64_t index = counter.int_attr(Attr::kIndex);
    const Instruction next = loop.body.root().operand(index);
    if (next.opcode() == Opcode::kAdd && IsStateElement(next.operand(0), loop.body, index) &&
        ScalarInteger(next.operand(1)) == 1) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> WhileLoopTripCountAnnotator::Run(Module& module) {
  int64_t annotated = 0;
  for (InstructionId id : WhileLoops(module)) {
    const Instruction loop = module.instruction(id);
    const std::optional<CountedLoop> counted = CountLoop(loop);
    if (!counted) continue;
    const std::optional<std::string> config = AnnotatedConfig(loop, *counted);
    if (!config) continue;
    module.SetAttr(id, Attr::kBackendConfig, module.context().strings.Intern(*config).value);
    ++annotated;
  }
  if (annotated != 0) Count("trip counts recorded", annotated);
  return annotated != 0;
}

absl::StatusOr<bool> ControlFlowFlattening::Run(Module& module) {
  const int64_t bound = options().Int("while-execution-count");
  const std::vector<uint32_t> callers = CountCallers(module);
  int64_t bounded = 0;
  for (InstructionId id : WhileLoops(module)) {
    const Instruction loop = module.instruction(id);
    if (TripCount(loop) || HasControlEdges(loop) || loop.has(Attr::kSharding)) continue;
    const std::optional<CanonicalLoop> plain = MatchCanonicalLoop(loop, callers);
    if (!plain || IsBounded(*plain) || !plain->condition.root().shape().IsScalar()) continue;
    const MetadataId metadata = loop.metadata_id();
    Builder before(&module, id);
    before.SetMetadata(metadata);
    const InstructionId zero = before.MakeScalarConstant(ElementType::kS32, 0);
    RewriteLoopState(module, *plain, std::vector<uint8_t>(static_cast<size_t>(plain->size), 1), {zero});
    // The body forwards the new element; now it increments it.
    const InstructionId root = plain->body.root().id();
    const InstructionId counter = module.instruction(root).operand(plain->size).id();
    Builder body(&module, root);
    body.SetMetadata(metadata);
    const InstructionId one = body.MakeScalarConstant(ElementType::kS32, 1);
    module.ReplaceOperand(root, plain->size, body.MakeLike(Opcode::kAdd, {counter, one}));
    Builder condition(&module, plain->condition.id());
    condition.SetMetadata(metadata);
    const InstructionId more = plain->condition.root().id();
    const InstructionId count = condition.MakeElement(plain->condition.parameter(0).id(), plain->size);
    const InstructionId limit = condition.MakeScalarConstant(ElementType::kS32, static_cast<double>(bound));
    const InstructionId within = condition.MakeCompare(ComparisonDirection::kLt, count, limit);
    condition.SetRoot(condition.MakeLike(Opcode::kAnd, {more, within}));
    ++bounded;
  }
  if (bounded != 0) Count("loops bounded", bounded);
  return bounded != 0;
}

}  // namespace hlokit
