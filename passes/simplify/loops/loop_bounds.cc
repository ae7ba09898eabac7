// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/loops/loop_bounds.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "nlohmann/json.hpp"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/loop.h"
#include "passes/analysis/trip_count.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/change_loop.h"
#include "passes/rewrite/dead_operands.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/simplify/loops/remove_communication.h"

namespace hlokit {
namespace {

constexpr int64_t kMaxIterations = std::numeric_limits<int32_t>::max();

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

// Returns the positive constant that the condition compares with, if any: it need not be the trip count.
std::optional<int64_t> BoundInCondition(Computation condition) {
  const Instruction compare = condition.root();
  if (compare.opcode() != Opcode::kCompare) return std::nullopt;
  std::optional<int64_t> bound;
  switch (compare.enum_attr(Attr::kDirection, ComparisonDirection::kEq)) {
    case ComparisonDirection::kLt:
    case ComparisonDirection::kLe:
      bound = ScalarInteger(compare.operand(1));
      break;
    case ComparisonDirection::kGt:
    case ComparisonDirection::kGe:
      bound = ScalarInteger(compare.operand(0));
      break;
    case ComparisonDirection::kNe:
      bound = ScalarInteger(compare.operand(1));
      if (!bound) bound = ScalarInteger(compare.operand(0));
      break;
    case ComparisonDirection::kEq:
      break;
  }
  return bound && *bound > 0 ? bound : std::nullopt;
}

// Returns for each computation whether a loop runs it, directly or in calls.
std::vector<uint8_t> ComputationsInLoops(const Module& module) {
  std::vector<uint8_t> in_loop(module.computation_id_bound(), 0);
  const CallGraph calls(module);
  const absl::Span<const ComputationId> order = calls.PostOrder();
  for (auto callee = order.rbegin(); callee != order.rend(); ++callee) {
    for (const CallSite& site : calls.caller_callsites(module.computation(*callee))) {
      const Instruction caller = module.instruction(site.caller);
      if (caller.opcode() == Opcode::kWhile || in_loop[caller.parent().id().value] != 0) in_loop[callee->value] = 1;
    }
  }
  return in_loop;
}

// Adds a counter to the state. The loop ends after `bound` iterations, or earlier when its condition says so if
// `until_condition` is true.
void CountIterations(Module& module, const CanonicalLoop& loop, int64_t bound, bool until_condition) {
  const MetadataId metadata = loop.loop.metadata_id();
  Builder before(&module, loop.loop.id());
  before.SetMetadata(metadata);
  const InstructionId zero = before.MakeScalarConstant(ElementType::kS32, 0);
  RewriteLoopState(module, loop, std::vector<uint8_t>(static_cast<size_t>(loop.size), 1), {zero});
  // The body forwards the new element; now it increments it.
  const InstructionId root = loop.body.root().id();
  const InstructionId counter = module.instruction(root).operand(loop.size).id();
  Builder body(&module, root);
  body.SetMetadata(metadata);
  const InstructionId one = body.MakeScalarConstant(ElementType::kS32, 1);
  module.ReplaceOperand(root, loop.size, body.MakeLike(Opcode::kAdd, {counter, one}));
  Builder condition(&module, loop.condition.id());
  condition.SetMetadata(metadata);
  const InstructionId more = loop.condition.root().id();
  const InstructionId count = condition.MakeElement(loop.condition.parameter(0).id(), loop.size);
  const InstructionId limit = condition.MakeScalarConstant(ElementType::kS32, static_cast<double>(bound));
  const InstructionId within = condition.MakeCompare(ComparisonDirection::kLt, count, limit);
  condition.SetRoot(until_condition ? condition.MakeLike(Opcode::kAnd, {more, within}) : within);
  if (!until_condition) EraseDead(module, more, within);
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
  // The counter is an s32.
  const int64_t count = std::min(options().Int("while-execution-count"), kMaxIterations);
  const bool flattens = options().Bool("flatten-while-loop");
  const std::vector<uint32_t> callers = CountCallers(module);
  const std::vector<uint8_t> in_loop = ComputationsInLoops(module);
  int64_t bounded = 0, flattened = 0;
  for (InstructionId id : WhileLoops(module)) {
    const Instruction loop = module.instruction(id);
    const std::optional<int64_t> trip_count = TripCount(loop);
    if ((trip_count && !flattens) || loop.has_control_edges() || loop.has(Attr::kSharding)) continue;
    const std::optional<CanonicalLoop> plain = MatchCanonicalLoop(loop, callers);
    if (!plain || !plain->condition.root().shape().IsScalar()) continue;
    if (!flattens) {
      if (IsBounded(*plain)) continue;
      CountIterations(module, *plain, count, /*until_condition=*/true);
      ++bounded;
      continue;
    }
    int64_t bound = std::min(BoundInCondition(plain->condition).value_or(count), kMaxIterations);
    bound = std::min(bound, options().Int("max-loop-count"));
    if (in_loop[loop.parent().id().value] == 0) bound = std::min(bound, options().Int("max-outer-loop-count"));
    if (trip_count == bound) continue;
    CountIterations(module, *plain, bound, /*until_condition=*/false);
    ++flattened;
  }
  const CommunicationToRemove what = {.infeed_outfeed = options().Bool("remove-infeed-outfeed"),
                                      .between_devices = options().Bool("remove-comm"),
                                      .host_transfers = options().Bool("remove-host-transfer")};
  const int64_t removed = RemoveCommunication(module, what);
  if (bounded != 0) Count("loops bounded", bounded);
  if (flattened != 0) Count("loops flattened", flattened);
  if (removed != 0) Count("communication removed", removed);
  return bounded + flattened + removed != 0;
}

namespace {

// Returns the opcodes whose results a device alone cannot compute.
std::vector<Opcode> CommunicationOpcodes() {
  std::vector<Opcode> opcodes = {Opcode::kInfeed, Opcode::kRecv, Opcode::kPartitionId, Opcode::kReplicaId};
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    if (HasTrait(static_cast<Opcode>(i), kCollective)) opcodes.push_back(static_cast<Opcode>(i));
  }
  return opcodes;
}

}  // namespace

HLOKIT_PASS(WhileLoopTripCountAnnotator) {
  return {.name = "while-loop-trip-count-annotator",
          .category = "simplify",
          .summary = "record known trip counts in backend_config",
          .doc =
              "With initial value, step and index of the counter. A recorded trip count is not changed; a "
              "backend_config that is not JSON stays. XLA's overwrites what is recorded, also records the "
              "index of a counter whose trip count is unknown and which other elements change, and replaces "
              "reads of the counter after the loop by constants.",
          .example = R"(cond {
  s = (s32[], f32[2,2], f32[2,3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(8)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[2,2], f32[2,3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[2,2] get-tuple-element(s), index=1
  b = f32[2,3] get-tuple-element(s), index=2
  two = s32[] constant(2)
  next = s32[] add(i, two)
  next_b = f32[2,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/while/dot"}
  ROOT t = (s32[], f32[2,2], f32[2,3]) tuple(next, a, next_b)
}
ENTRY e {
  a = f32[2,2] parameter(0)
  b = f32[2,3] parameter(1)
  start = s32[] constant(1)
  init = (s32[], f32[2,2], f32[2,3]) tuple(start, a, b)
  w = (s32[], f32[2,2], f32[2,3]) while(init), condition=cond, body=body, metadata={op_name="f/while"}
  ROOT r = f32[2,3] get-tuple-element(w), index=2
})",
          .create = MakePass<WhileLoopTripCountAnnotator>};
}

HLOKIT_PASS(ControlFlowFlattening) {
  return {.name = "control-flow-flattening",
          .category = "simplify",
          .summary = "bound the trip counts of loops, remove communication",
          .doc =
              "Loops with an unknown trip count end after a number of iterations at the latest, by a new "
              "counter in the state. The other options, which XLA has too, with flatten-while-loop, "
              "remove-infeed-outfeed and remove-comm as defaults, prepare a module for a run on its own and "
              "change its results: a custom-call in place of communication does nothing.",
          .example = R"(cond {
  s = (f32[], s32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  n = f32[] constant(100)
  ROOT lt = pred[] compare(x, n), direction=LT, metadata={op_name="f/while/cond"}
}
body {
  s = (f32[], s32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  k = s32[] get-tuple-element(s), index=1
  y = f32[] abs(x)
  three = f32[] constant(3)
  z = f32[] add(y, three), metadata={op_name="f/while/add"}
  minus = s32[] negate(k)
  ROOT t = (f32[], s32[]) tuple(z, minus)
}
ENTRY e {
  x = f32[] parameter(0)
  k = s32[] parameter(1)
  init = (f32[], s32[]) tuple(x, k)
  ROOT w = (f32[], s32[]) while(init), condition=cond, body=body, metadata={op_name="f/while"}
})",
          .options = {{.name = "while-execution-count",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "1000",
                       .doc = "the bound",
                       .min = 1},
                      {.name = "flatten-while-loop",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "false",
                       .doc = "replace the condition of every loop by a comparison of the counter with the "
                              "constant in the condition, or else with the bound"},
                      {.name = "max-loop-count",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "2147483647",
                       .doc = "with flatten-while-loop, maximum iterations of a loop",
                       .min = 1},
                      {.name = "max-outer-loop-count",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "2147483647",
                       .doc = "with flatten-while-loop, maximum iterations of a loop that is in no other",
                       .min = 1},
                      {.name = "remove-infeed-outfeed",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "false",
                       .doc = "replace infeeds and outfeeds by custom-calls NopCustomCall, NopReturnToken"},
                      {.name = "remove-comm",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "false",
                       .doc = "replace collectives, sends and recvs by such calls, device ids by 0"},
                      {.name = "remove-host-transfer",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "false",
                       .doc = "replace sends to the host and recvs from it by such calls"}},
          .redefines = CommunicationOpcodes(),
          .create = MakePass<ControlFlowFlattening>};
}

}  // namespace hlokit
