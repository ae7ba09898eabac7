// SPDX-License-Identifier: Apache-2.0
// Registers the simplification passes.
#include <cstddef>
#include <utility>
#include <vector>

#include "ir/ops/opcode.h"
#include "passes/core/register_passes.h"
#include "passes/simplify/algebraic/algsimp.h"
#include "passes/simplify/algebraic/rule_passes.h"
#include "passes/simplify/bf16_propagation.h"
#include "passes/simplify/calls/conditional.h"
#include "passes/simplify/calls/conditional_code_motion.h"
#include "passes/simplify/calls/conditional_forms.h"
#include "passes/simplify/calls/inline.h"
#include "passes/simplify/cleanup.h"
#include "passes/simplify/constant_folding.h"
#include "passes/simplify/cse.h"
#include "passes/simplify/dce.h"
#include "passes/simplify/dot_merger.h"
#include "passes/simplify/dynamic/dynamic_padder.h"
#include "passes/simplify/examples.h"
#include "passes/simplify/loops/loop_bounds.h"
#include "passes/simplify/loops/while_simplifier.h"

namespace hlokit {

namespace {

void Add(PassRegistry* registry, PassInfo info) {
  info.example = SimplifyExample(info.name);
  registry->Add(std::move(info));
}

// Returns the opcodes whose results a device alone cannot compute.
std::vector<Opcode> CommunicationOpcodes() {
  std::vector<Opcode> opcodes = {Opcode::kInfeed, Opcode::kRecv, Opcode::kPartitionId, Opcode::kReplicaId};
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    if (HasTrait(static_cast<Opcode>(i), kCollective)) opcodes.push_back(static_cast<Opcode>(i));
  }
  return opcodes;
}

const OptionInfo kDataMovement = {.name = "data-movement",
                                  .type = OptionInfo::Type::kBool,
                                  .default_text = "false",
                                  .doc =
                                      "widen also operations that only move elements, within a device and between "
                                      "devices, as XLA does for targets that name none they can do"};

void RegisterLoopPasses(PassRegistry* registry) {
  Add(registry, {.name = "while-loop-constant-sinking",
                 .category = "simplify",
                 .summary = "sink loop-carried constants into loop bodies",
                 .doc = "A loop-invariant state element with a constant initial value is replaced by the constant in "
                        "body and condition. while-loop-simplifier then removes it from the state.",
                 .create = MakePass<WhileLoopConstantSinking>});
  Add(registry,
      {.name = "while-loop-invariant-code-motion",
       .category = "simplify",
       .summary = "hoist loop-invariant instructions",
       .doc = "Instructions of the body that depend only on loop-invariant state are computed once before the loop and "
              "carried in the state, if the results are no larger than the operands. Instructions that are as cheap to "
              "recompute as to carry move only along with a user that moves.",
       .create = MakePass<WhileLoopInvariantCodeMotion>});
  Add(registry, {.name = "while-loop-expensive-invariant-code-motion",
                 .category = "simplify",
                 .summary = "hoist expensive loop-invariant instructions",
                 .doc = "Dots, convolutions, sorts, FFTs and factorizations that depend only on loop-invariant state, "
                        "with their operands, even if the results are larger than the operands. XLA's takes the "
                        "instructions that a backend names, but not those whose results are larger than the state that "
                        "they depend on, or that share an operand with instructions that stay, nor loops that run at "
                        "most once.",
                 .create = MakePass<WhileLoopExpensiveInvariantCodeMotion>});
  Add(registry, {.name = "while-loop-trip-count-annotator",
                 .category = "simplify",
                 .summary = "record known trip counts in backend_config",
                 .doc = "With initial value, step and index of the counter. A recorded trip count is not changed; a "
                        "backend_config that is not JSON stays. XLA's overwrites what is recorded, also records the "
                        "index of a counter whose trip count is unknown and which other elements change, and replaces "
                        "reads of the counter after the loop by constants.",
                 .create = MakePass<WhileLoopTripCountAnnotator>});
  Add(registry, {.name = "control-flow-flattening",
                 .category = "simplify",
                 .summary = "bound the trip counts of loops, remove communication",
                 .doc = "Loops with an unknown trip count end after a number of iterations at the latest, by a new "
                        "counter in the state. The other options, which XLA has too, with flatten-while-loop, "
                        "remove-infeed-outfeed and remove-comm as defaults, prepare a module for a run on its own and "
                        "change its results: a custom-call in place of communication does nothing.",
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
                 .create = MakePass<ControlFlowFlattening>});
  Add(registry, {.name = "while-loop-simplifier",
                 .category = "simplify",
                 .summary = "simplify loops and their state",
                 .doc = "Loops that are known never to run are removed, loops that run once become their body. State "
                        "elements that neither results nor condition nor side effects need are removed; loop-invariant "
                        "results are replaced by the initial values; equal loop-invariant elements are merged. Loops "
                        "whose computations have other callers do not change: flatten-call-graph helps. Loops that run "
                        "once get copies of a body with other callers, within a limit.",
                 .options = {{"max-added", OptionInfo::Type::kInt, "1000",
                              "limit on the instructions that copies of one body with several callers add"}},
                 .create = MakePass<WhileLoopSimplifier>});
  Add(registry,
      {.name = "while-loop-unroller",
       .category = "simplify",
       .summary = "unroll loops of few iterations",
       .doc = "For loops with a known trip count whose bodies contain no channels or asynchronous operations.",
       .options = {{"max-trips", OptionInfo::Type::kInt, "8", "loops with a larger trip count are not unrolled"},
                   {"max-instructions", OptionInfo::Type::kInt, "800",
                    "loops that would become larger than this stay"}},
       .create = MakePass<WhileLoopUnroller>});
}

void RegisterRulePasses(PassRegistry* registry) {
  Add(registry, {.name = "bf16-normalization",
                 .category = "simplify",
                 .summary = "compute bf16 operations in f32",
                 .doc = "For targets without bf16 arithmetic: operands are widened and results rounded, also those of "
                        "the computations that reductions and the like apply, which is the definition of the "
                        "operation; but as in XLA, all-reduce and reduce-scatter round their sums once. Not in "
                        "fusions.",
                 .options = {kDataMovement},
                 .tolerance = 1e-1,
                 .create = MakePass<RulesOf<AddBf16NormalizationRules, RewriteScope::kSequential>>});
  Add(registry, {.name = "bfloat16-propagation",
                 .category = "simplify",
                 .summary = "propagate bf16 to values that are only converted to bf16",
                 .doc = "Values of f32 that only pass through data movement, selections, minima and maxima, gathering "
                        "collectives and loop states, and whose uses all end in a conversion to bf16, are rounded at "
                        "their definition: half the bytes, and no result changes. No operation changes its precision.",
                 .create = MakePass<Bf16Propagation>});
  Add(registry, {.name = "convert-mover",
                 .category = "simplify",
                 .summary = "move narrowing conversions up and widening ones down",
                 .doc = "Across reshapes, transposes, broadcasts, slices and reversals, if no more elements are "
                        "converted than before, so that fewer bytes are moved. No value changes. Values that are "
                        "converted to bf16 in the end are thus moved in bf16.",
                 .create = MakePass<RulesOf<AddConvertMoverRules>>});
  Add(registry, {.name = "dot-merger",
                 .category = "simplify",
                 .summary = "merge dots that share an operand",
                 .doc = "Two independent dots that share an operand and agree in dimensions, types and precision "
                        "become one dot of it and the concatenation of the others, and slices of the result: larger "
                        "matmuls with exactly the same sums. Scheduled modules do not change.",
                 .options = {{"max-bytes", OptionInfo::Type::kInt, "33554432",
                              "dots with an operand or result larger than this stay"}},
                 .create = MakePass<DotMerger>});
  Add(registry,
      {.name = "dynamic-padder",
       .category = "simplify",
       .summary = "make arrays with dynamic dimensions static",
       .doc =
           "They get the size of their bound, and the size set by set-dimension-size becomes a separate scalar, in "
           "calls, loops and conditionals too. Operations that combine, sort or index elements ignore those beyond the "
           "size, by a select, an additional operand of a sort, or clamped indices; concatenation, padding, reversal "
           "and reshapes keep valid elements contiguous. XLA's custom calls SliceToDynamic and PadToStatic are "
           "replaced. Arguments and results of the program keep their dynamic dimensions. A module in which another "
           "operation, for example a fusion or the kernel of a convolution, has one does not change, and the error "
           "names the operation. The interpreters compute what this pass says.",
       .create = MakePass<DynamicPadder>});
  Add(registry,
      {.name = "dynamic-dimension-simplifier",
       .category = "simplify",
       .summary = "remove dynamic sizes that are static",
       .doc =
           "Replaces the size of a static dimension by a constant, and removes set-dimension-size to the static size.",
       .create = MakePass<RulesOf<AddDynamicDimensionRules>>});
  Add(registry, {.name = "gather-simplifier",
                 .category = "simplify",
                 .summary = "replace gathers and scatters with simpler instructions",
                 .doc = "A gather of a single slice becomes a dynamic-slice; gathers from a broadcast scalar become "
                        "broadcasts; scatters without updates are removed.",
                 .create = MakePass<RulesOf<AddGatherScatterSimplifierRules>>});
  Add(registry,
      {.name = "sort-simplifier",
       .category = "simplify",
       .summary = "remove unused operands of sorts",
       .doc = "Removes operands of a sort whose results are unused and whose elements the comparator does not read.",
       .create = MakePass<RulesOf<AddSortRules>>});
  Add(registry, {.name = "transpose-folding",
                 .category = "simplify",
                 .summary = "fold transposes into dots and convolutions",
                 .doc = "A transpose of an operand that keeps the order of the free dimensions folds into the "
                        "dimension numbers of the dot; one of the result that exchanges the two sides swaps the "
                        "operands. A transpose of an operand of a convolution folds into its dimension numbers.",
                 .create = MakePass<RulesOf<AddTransposeFoldingRules>>});
  Add(registry, {.name = "zero-sized-hlo-elimination",
                 .category = "simplify",
                 .summary = "replace arrays without elements by constants",
                 .create = MakePass<RulesOf<AddZeroSizedRules>>});
}

void RegisterCleanupPasses(PassRegistry* registry) {
  Add(registry,
      {.name = "sharding-remover",
       .category = "simplify",
       .summary = "remove shardings and the custom-calls that carry them",
       .doc = "Custom-calls Sharding, SPMDFullToShardShape and SPMDShardToFullShape are replaced by their "
              "operands. Unlike XLA's, the attributes of all other instructions are removed too, also those of "
              "Shardy in frontend attributes, and a custom-call that changes the shape stays.",
       .create = MakePass<ShardingRemover>});
  Add(registry, {.name = "control-dep-remover",
                 .category = "simplify",
                 .summary = "remove control edges",
                 .doc = "As XLA's, a part of its despecializer: all of them, in every computation.",
                 .create = MakePass<ControlDepRemover>});
  Add(registry, {.name = "hlo-descheduler",
                 .category = "simplify",
                 .summary = "mark the module as not scheduled",
                 .doc = "As XLA's, which clears the schedule. Here instructions keep their order in the text.",
                 .create = MakePass<HloDescheduler>});
  Add(registry, {.name = "literal-canonicalizer",
                 .category = "simplify",
                 .summary = "accepted for pipelines of XLA; changes nothing",
                 .doc = "XLA's lets constants of the entry computation with at least a given number of bytes (on CPUs "
                        "1024) share equal literals with other modules. Here all literals of a context always do.",
                 .create = MakePass<LiteralCanonicalizer>});
  Add(registry, {.name = "constant-deferring",
                 .category = "simplify",
                 .summary = "schedule constants just before their first users",
                 .doc = "XLA's defers broadcasts of constants too, and constants with control edges, which stay here. "
                        "Modules without a schedule do not change.",
                 .create = MakePass<ConstantDeferring>});
  Add(registry,
      {.name = "fusion-constant-sinking",
       .category = "simplify",
       .summary = "sink scalar constants into fusions",
       .doc = "Into all fusions but custom ones and those whose results alias operands. XLA's leaves out input "
              "fusions too, and fusions with one operand.",
       .create = MakePass<FusionConstantSinking>});
  Add(registry, {.name = "conditional-canonicalizer",
                 .category = "simplify",
                 .summary = "give conditionals tuples as arguments and results",
                 .doc = "An array that a conditional returns, or gives to a branch, becomes a tuple of it, of which "
                        "users read the element. Branches with other callers are cloned; XLA's does not clone those "
                        "of which all callers are conditionals.",
                 .create = MakePass<ConditionalCanonicalizer>});
  Add(registry, {.name = "conditional-to-select",
                 .category = "simplify",
                 .summary = "replace conditionals in maps and reducers by selects",
                 .doc = "Both branches are computed, and a select takes one of the results. As XLA's, only in "
                        "computations that are applied to elements, and in those that they call, for two branches "
                        "without side effects and loops that return an array. XLA's leaves out computations that are "
                        "also called otherwise, and takes loops and fusions too; here the branches may have 1000 "
                        "instructions.",
                 .create = MakePass<ConditionalToSelect>});
}

void RegisterCanonicalFormPasses(PassRegistry* registry) {
  Add(registry, {.name = "dynamic-index-splitter",
                 .category = "simplify",
                 .summary = "split arrays of start indices into scalars",
                 .doc = "As XLA's, for dynamic-slice and dynamic-update-slice; those of scalars are removed.",
                 .create = MakePass<RulesOf<AddDynamicIndexSplitterRules>>});
  Add(registry, {.name = "scatter-simplifier",
                 .category = "simplify",
                 .summary = "bring scatters into a simple form",
                 .doc = "No batching dimensions, one dimension of index vectors, windows of the rank of the array, and "
                        "indices of its first dimensions, with transposes and reshapes around the scatter. XLA's now "
                        "moves the indexed dimensions first only on request, applies the combiner of a scatter into "
                        "scalars, and leaves batching dimensions to another pass.",
                 .create = MakePass<RulesOf<AddScatterSimplifierRules, RewriteScope::kSequential>>});
  Add(registry,
      {.name = "batch-dot-simplification",
       .category = "simplify",
       .summary = "remove batch dimensions of size 1 from dots",
       .doc = "Operands and result are reshaped. XLA's requires batch dimensions to come first, in order, and "
              "one contracting dimension.",
       .create = MakePass<RulesOf<AddBatchDotSimplificationRules>>});
}

void RegisterPrecisionPasses(PassRegistry* registry) {
  Add(registry,
      {.name = "simplify-fp-conversions",
       .category = "simplify",
       .summary = "remove roundings between conversions of floats",
       .doc = "A conversion of a conversion becomes one, or none if the types are equal, though the first one "
              "rounds. As XLA's, except that roundings to 8 bits and fewer stay.",
       .tolerance = 1e-2,
       .create = MakePass<RulesOf<AddSimplifyFpConversionsRules>>});
  Add(registry,
      {.name = "float-normalization",
       .category = "simplify",
       .summary = "compute operations in 8-bit floats in f32",
       .doc = "For targets without arithmetic in 8-bit floats, for all these types at once; XLA has a pass for "
              "each. Operands are widened and results rounded, also those of the computations that reductions "
              "and the like apply, which is the definition of the operation; but as in XLA, all-reduce and "
              "reduce-scatter round their sums once. Not in fusions. For bf16 see bf16-normalization.",
       .options = {kDataMovement},
       .tolerance = 0.25,
       .create = MakePass<RulesOf<AddFloatNormalizationRules, RewriteScope::kSequential>>});
  const std::vector<std::string_view> floats = {"f8e4m3fn", "f8e5m2", "bf16", "f16", "f32", "f64"};
  const OptionInfo from_bf16 = {.name = "from",
                                .type = OptionInfo::Type::kString,
                                .default_text = "bf16",
                                .doc = "the type to replace",
                                .choices = floats};
  const OptionInfo to = {.name = "to",
                         .type = OptionInfo::Type::kString,
                         .default_text = "f32",
                         .doc = "the type to compute in",
                         .choices = floats};
  OptionInfo from_f16 = from_bf16;
  from_f16.default_text = "f16";
  const OptionInfo changed_opcode = {.name = "opcode",
                                     .type = OptionInfo::Type::kString,
                                     .default_text = "dot",
                                     .doc = "of the operations",
                                     .choices = ChangeableOpcodeNames(),
                                     .choices_text = "an elementwise opcode, dot or convolution"};
  Add(registry, {.name = "element-type-converter",
                 .category = "simplify",
                 .summary = "compute operations in another float type",
                 .doc = "Operations with an operand or result of the one type are computed in the other, between "
                        "conversions. Of those that apply a computation, such as reductions and all-reduces, and of "
                        "calls and control flow, the operations in the computation are converted instead. As XLA's, "
                        "except for copies that are asynchronous and bitcasts, which stay.",
                 .options = {from_bf16, to},
                 .tolerance = 1e-1,
                 .redefines = {Opcode::kRng},
                 .create = MakePass<RulesOf<AddElementTypeConverterRules>>});
  Add(registry,
      {.name = "change-op-data-type",
       .category = "simplify",
       .summary = "compute one kind of operation in another float type",
       .doc = "Only if all operands and the result have the type. XLA's takes any set of operations and pairs "
              "of types; this one takes one of each. Nothing changes if both types are the same.",
       .options = {from_f16, to, changed_opcode},
       .tolerance = 2e-2,
       .create = MakePass<RulesOf<AddChangeOpDataTypeRules, RewriteScope::kSequential>>});
  Add(registry, {.name = "operand-upcaster",
                 .category = "simplify",
                 .summary = "convert operands of dots to a wider type of the result",
                 .doc = "For dots and convolutions whose result is wider than their operands. As XLA's, without its "
                        "packed 4-bit operands, which stay.",
                 .tolerance = 1e-5,
                 .create = MakePass<RulesOf<AddOperandUpcasterRules>>});
  Add(registry,
      {.name = "result-caster",
       .category = "simplify",
       .summary = "convert results of dots to a narrower type after the operation",
       .doc = "For dots and convolutions whose result is narrower than their operands: computed in the type of "
              "the operands, then rounded. As XLA's, for floats, or integers of one signedness.",
       .tolerance = 2e-2,
       .create = MakePass<RulesOf<AddResultCasterRules>>});
}

}  // namespace

void RegisterSimplifyPasses(PassRegistry* registry) {
  Add(registry,
      {.name = "algsimp",
       .category = "simplify",
       .summary = "algebraic simplification",
       .doc = "Rewrites single instructions and small groups into cheaper ones until no rule applies: arithmetic with "
              "zero and one, comparisons and selections with a known result, chains of conversions, reshapes, "
              "broadcasts, transposes, slices, concatenations and padding, empty reductions, transposes into dots and "
              "convolutions, elements of tuples. No float is reassociated.",
       .options = {{"signed-zeros", OptionInfo::Type::kBool, "false",
                    "keep the signs of zeros: x + 0, which makes -0 to 0, is not x"}},
       .create = MakePass<AlgebraicSimplifier>});
  Add(registry, {.name = "reshape-mover",
                 .category = "simplify",
                 .summary = "move reshapes and transposes below elementwise operations",
                 .doc = "If all operands of an elementwise operation have the same reshape (transpose), or are "
                        "broadcasts of scalars, it sinks below the operation: one replaces several, and it may merge "
                        "with others further down. Nothing moves up.",
                 .create = MakePass<ReshapeMover>});
  Add(registry, {.name = "tuple-simplifier",
                 .category = "simplify",
                 .summary = "forward the elements of tuples",
                 .doc = "Replaces an element of a tuple by the tuple's operand, and a tuple of all elements of another "
                        "tuple by that tuple.",
                 .create = MakePass<TupleSimplifier>});
  Add(registry,
      {.name = "cse",
       .category = "simplify",
       .summary = "merge equal instructions",
       .doc = "Merges instructions of a computation that have the same opcode, shape, operands (in any order if the "
              "opcode is commutative) and attributes into the first of them. Called computations are equal if they are "
              "equal instruction by instruction. Instructions with side effects, parameters and elided constants do "
              "not merge. Metadata is ignored: the surviving instruction carries that of all.",
       .create = MakePass<Cse>});
  const OptionInfo growth = {"max-growth", OptionInfo::Type::kInt, "8",
                             "how many times its size the module may grow by"};
  Add(registry, {.name = "computation-deduplicator",
                 .category = "simplify",
                 .summary = "share equal computations",
                 .doc = "Redirects callers of computations that are equal instruction by instruction to one of them. "
                        "Computations of fusions and of asynchronous operations stay separate.",
                 .create = MakePass<DeduplicateComputations>});
  Add(registry, {.name = "conditional-simplifier",
                 .category = "simplify",
                 .summary = "replace conditionals with a known branch",
                 .doc = "Replaces a conditional by the taken branch if the predicate is a constant, or if all branches "
                        "and arguments are equal.",
                 .create = MakePass<ConditionalSimplifier>});
  Add(registry,
      {.name = "conditional-code-motion",
       .category = "simplify",
       .summary = "move what all branches of a conditional end with after it",
       .doc = "Elementwise operations, data movement and reductions that are equal in all branches, if the "
              "conditional then returns no more bytes. XLA's weighs how much data operations reuse, can also "
              "move all-reduces, and moves users of a conditional into its branches; these stay here. A computation "
              "that is several branches is cloned; branches with other callers stay, and so does a conditional "
              "that returns an array (`conditional-canonicalizer` makes it a tuple).",
       .preconditions = "No schedule: a module that has one is left alone.",
       .create = MakePass<ConditionalCodeMotion>});
  Add(registry, {.name = "dead-parameter-removal",
                 .category = "simplify",
                 .summary = "remove parameters that computations do not use",
                 .doc = "Removes them from called and fused computations, with the operands of their callers. The "
                        "entry keeps its parameters.",
                 .create = MakePass<DeadParameters>});
  Add(registry, {.name = "flatten-call-graph",
                 .category = "simplify",
                 .summary = "clone computations so that each call, while and conditional has separate ones",
                 .doc = "Clones computations with several sequential callers, except those with channels and "
                        "asynchronous operations.",
                 .options = {growth},
                 .create = MakePass<FlattenCallGraph>});
  registry->Add(
      {.name = "inline",
       .category = "simplify",
       .summary = "replace calls by the called computations",
       .doc = "Callees first, so that none is left. Calls stay if they are composite, have control edges or a "
              "backend_config, or if a callee with channels has several callers.",
       .options = {growth,
                   {"max-added", OptionInfo::Type::kInt, "1000000",
                    "limit on the instructions that inlining a computation with several callers adds"},
                   {"single-call-only", OptionInfo::Type::kBool, "false", "only computations that are called once"}},
       .create = MakePass<Inline>});
  Add(registry, {.name = "dce",
                 .category = "simplify",
                 .summary = "remove unused instructions and computations",
                 .doc = "Removes unused instructions without side effects, then computations without callers. "
                        "Parameters stay, since callers bind them.",
                 .create = MakePass<Dce>});
  registry->Add(
      {.name = "constant-folding",
       .category = "simplify",
       .summary = "evaluate instructions with constant operands",
       .doc = "Instructions whose operands are constants, or broadcasts of constants and iotas, are replaced by their "
              "values, computed by the interpreter. Calls, loops and conditionals too, if they contain no side effects "
              "or random numbers; fusions stay. Values that are much larger than the constants they are computed from "
              "are not folded, nor are those beyond the limits of evaluation.",
       .options = {{"max-elements", OptionInfo::Type::kInt, "1048576",
                    "fold no instruction whose result or operand has more elements"},
                   {"max-flops", OptionInfo::Type::kInt, "100000000",
                    "fold no instruction that takes more operations"}},
       .create = MakePass<ConstantFolding>});
  RegisterLoopPasses(registry);
  RegisterRulePasses(registry);
  RegisterCleanupPasses(registry);
  RegisterCanonicalFormPasses(registry);
  RegisterPrecisionPasses(registry);
}

}  // namespace hlokit
