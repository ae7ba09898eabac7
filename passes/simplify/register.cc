// SPDX-License-Identifier: Apache-2.0
// Registers the simplification passes.
#include "passes/core/register_passes.h"
#include "passes/simplify/algebraic/algsimp.h"
#include "passes/simplify/algebraic/rule_passes.h"
#include "passes/simplify/bf16_propagation.h"
#include "passes/simplify/calls/conditional.h"
#include "passes/simplify/calls/inline.h"
#include "passes/simplify/constant_folding.h"
#include "passes/simplify/cse.h"
#include "passes/simplify/dce.h"
#include "passes/simplify/dot_merger.h"
#include "passes/simplify/dynamic/dynamic_padder.h"
#include "passes/simplify/examples.h"
#include "passes/simplify/loops/while_simplifier.h"

namespace hlokit {

namespace {

void Add(PassRegistry* registry, PassInfo info) {
  info.example = SimplifyExample(info.name);
  registry->Add(std::move(info));
}

void RegisterLoopPasses(PassRegistry* registry) {
  Add(registry, {.name = "while-loop-constant-sinking",
                 .category = "simplify",
                 .summary = "sink loop-carried constants into loop bodies",
                 .doc = "A part of the state that starts as a constant and that the body passes on unchanged is that "
                        "constant in body and condition. while-loop-simplifier then takes it out of the state.",
                 .create = MakePass<WhileLoopConstantSinking>});
  Add(registry,
      {.name = "while-loop-invariant-code-motion",
       .category = "simplify",
       .summary = "hoist loop-invariant instructions",
       .doc = "Instructions of the body that depend on unchanged parts of the state alone are done once and "
              "their results carried in the state, if those are no larger than what they are made of. What is "
              "as cheap to do again as to carry moves only along with what needs it.",
       .create = MakePass<WhileLoopInvariantCodeMotion>});
  Add(registry,
      {.name = "while-loop-simplifier",
       .category = "simplify",
       .summary = "simplify loops and their state",
       .doc = "Loops that are known never to run are removed, loops that run once become their body. Parts of "
              "the state that neither results nor condition nor effects need leave it; results that the body "
              "passes on unchanged are what they were before; equal unchanged inputs become one. Loops whose "
              "computations have other callers are left alone: flatten-call-graph helps.",
       .create = MakePass<WhileLoopSimplifier>});
  Add(registry, {.name = "while-loop-unroller",
                 .category = "simplify",
                 .summary = "unroll loops of few iterations",
                 .doc = "For loops whose trips can be counted and whose bodies hold no channels or asynchronous "
                        "operations.",
                 .options = {{"max-trips", OptionInfo::Type::kInt, "8", "loops with more trips stay"},
                             {"max-instructions", OptionInfo::Type::kInt, "800",
                              "loops that would become larger than this stay"}},
                 .create = MakePass<WhileLoopUnroller>});
}

void RegisterRulePasses(PassRegistry* registry) {
  Add(registry, {.name = "bf16-normalization",
                 .category = "simplify",
                 .summary = "compute elementwise bf16 operations in f32",
                 .doc = "For machines without arithmetic in bf16: operands are widened, results rounded back, which is "
                        "what the operation means. Selections and what only moves elements stay.",
                 .create = MakePass<RulesOf<AddBf16NormalizationRules, RewriteScope::kSequential>>});
  Add(registry, {.name = "bfloat16-propagation",
                 .category = "simplify",
                 .summary = "propagate bf16 to values that are only converted to bf16",
                 .doc = "Values of f32 that are only moved, chosen among or compared for the larger and smaller, "
                        "gathered from other devices or carried in the states of loops, and whose every use ends in a "
                        "conversion to bf16, are rounded where they are made: half the bytes, and every result is what "
                        "it was. No operation is done in another precision.",
                 .create = MakePass<Bf16Propagation>});
  Add(registry, {.name = "convert-mover",
                 .category = "simplify",
                 .summary = "move narrowing conversions up and widening ones down",
                 .doc = "Across reshapes, transposes, broadcasts, slices and reversals, where no more elements are "
                        "converted than before, so that fewer bytes are moved. No value changes. This is also how bf16 "
                        "spreads: what ends in bf16 is moved in bf16.",
                 .create = MakePass<RulesOf<AddConvertMoverRules>>});
  Add(registry,
      {.name = "dot-merger",
       .category = "simplify",
       .summary = "merge dots that share an operand",
       .doc = "Two dots of one operand that agree in dimensions, types and precision, and do not depend on each "
              "other, become one dot of it and the others side by side, and slices of the result: larger work "
              "for the matrix unit, exactly the same sums. Schedules are left alone.",
       .options = {{"max-bytes", OptionInfo::Type::kInt, "33554432",
                    "dots with an operand or result larger than this stay"}},
       .create = MakePass<DotMerger>});
  Add(registry,
      {.name = "dynamic-padder",
       .category = "simplify",
       .summary = "make arrays with dynamic dimensions static",
       .doc =
           "They get the size of the bound, and what set-dimension-size said stands beside them as a scalar, in calls, "
           "loops and conditionals too. What combines elements, orders them or finds them by index leaves those behind "
           "the size out, by a select before it, one more operand of a sort, or a limit of indices; arrays are joined, "
           "padded and reversed so that no gap is left. Reshapes may join dimensions behind a dynamic one, or split it "
           "so. Arguments and results of the program keep their dynamic dimensions. A module in which something else "
           "meets one, a fusion or a convolution say, stays as it is, and the error names that. (The interpreter "
           "computes dynamic arrays at their bounds, and sums over all of them.)",
       .redefines = {Opcode::kSetDimensionSize},
       .create = MakePass<DynamicPadder>});
  Add(registry, {.name = "dynamic-dimension-simplifier",
                 .category = "simplify",
                 .summary = "remove dynamic sizes that are static",
                 .doc = "The size of a static dimension is a constant, and setting a static dimension to its own size "
                        "does nothing.",
                 .create = MakePass<RulesOf<AddDynamicDimensionRules>>});
  Add(registry,
      {.name = "gather-simplifier",
       .category = "simplify",
       .summary = "replace gathers and scatters with simpler instructions",
       .doc = "A gather of a single slice is a dynamic-slice; gathers from a broadcast scalar are broadcasts; "
              "scatters of nothing go.",
       .create = MakePass<RulesOf<AddGatherScatterSimplifierRules>>});
  Add(registry, {.name = "sort-simplifier",
                 .category = "simplify",
                 .summary = "remove unused operands of sorts",
                 .doc = "Operands of a sort whose results are unused and whose elements the comparison does not look "
                        "at.",
                 .create = MakePass<RulesOf<AddSortRules>>});
  Add(registry,
      {.name = "transpose-folding",
       .category = "simplify",
       .summary = "fold transposes into dots and convolutions",
       .doc = "A transpose of an operand that keeps the order of the free dimensions renumbers the dimensions "
              "of the dot; one of the result that exchanges the two sides exchanges the operands. A transpose of an "
              "operand of a convolution renumbers that operand's dimensions.",
       .create = MakePass<RulesOf<AddTransposeFoldingRules>>});
  Add(registry, {.name = "zero-sized-hlo-elimination",
                 .category = "simplify",
                 .summary = "replace arrays without elements by constants",
                 .create = MakePass<RulesOf<AddZeroSizedRules>>});
  Add(registry, {.name = "batchnorm-expander",
                 .category = "expand",
                 .summary = "expand batch normalizations",
                 .doc = "Training, inference and gradient, as sums, products and rsqrt over the dimensions other than "
                        "the feature. Operands of one float type.",
                 .tolerance = 1e-4,
                 .create = MakePass<RulesOf<AddBatchNormExpanderRules>>});
  const OptionInfo size = {"max-size", OptionInfo::Type::kInt, "32", "larger matrices stay"};
  const OptionInfo wide = {
      "wide", OptionInfo::Type::kBool, "true",
      "compute in f64 and round the result; else in the type of the matrix, or f32 if that is wider"};
  Add(registry, {.name = "cholesky-expander",
                 .category = "expand",
                 .summary = "expand Cholesky factorizations of small real matrices",
                 .doc = "Column by column, by slices and dots; NaN where the matrix is not positive definite.",
                 .options = {size, wide},
                 .tolerance = 1e-3,
                 .create = MakePass<RulesOf<AddCholeskyExpanderRules>>});
  Add(registry, {.name = "triangular-solve-expander",
                 .category = "expand",
                 .summary = "expand triangular solves with small real matrices",
                 .doc = "Forward or backward substitution, row by row, by slices and dots. The other triangle is not "
                        "looked at.",
                 .options = {size, wide},
                 .tolerance = 1e-3,
                 .create = MakePass<RulesOf<AddTriangularSolveExpanderRules>>});
  Add(registry,
      {.name = "dot-decomposer",
       .category = "expand",
       .summary = "transform dots into canonical form",
       .doc = "Batch dimensions first, then one dimension of rows and one that is contracted on the left, one "
              "that is contracted and one of columns on the right, by transposes and reshapes around the dot.",
       .create = MakePass<RulesOf<AddDotDecomposerRules>>});
  Add(registry, {.name = "rng-bit-generator-expander",
                 .category = "expand",
                 .summary = "expand random bit generators",
                 .doc = "ThreeFry and Philox as integer arithmetic on arrays of counters: the same bits and the same "
                        "next state. The default algorithm is Philox.",
                 .create = MakePass<RulesOf<AddRngBitGeneratorExpanderRules>>});
  Add(registry,
      {.name = "rng-expander",
       .category = "expand",
       .summary = "expand random numbers",
       .doc = "Uniform and normal numbers as arithmetic on bits of Philox or ThreeFry, whose counter is the random "
              "state of the program, read and advanced by rng-get-and-update-state. Other numbers of the same "
              "distribution than another implementation of rng gives.",
       .options = {{.name = "algorithm",
                    .type = OptionInfo::Type::kString,
                    .default_text = "philox",
                    .doc = "the generator of bits",
                    .choices = {"philox", "three-fry"}},
                   {"key", OptionInfo::Type::kInt, "0", "the key of the generator: another one gives other numbers"}},
       .redefines = {Opcode::kRng},
       .create = MakePass<RulesOf<AddRngExpanderRules, RewriteScope::kSequential>>});
  Add(registry, {.name = "gather-expander",
                 .category = "expand",
                 .summary = "expand gathers into loops",
                 .doc = "A trip for each index vector, with a dynamic slice of the operand that is written into the "
                        "result. gather-simplifier does better where there is only one.",
                 .create = MakePass<RulesOf<AddGatherExpanderRules, RewriteScope::kSequential>>});
  Add(registry,
      {.name = "scatter-expander",
       .category = "expand",
       .summary = "expand scatters into loops",
       .doc = "A trip for each index vector, in order, with a dynamic slice, the function of the scatter as a "
              "map over the window, and a dynamic update; windows that do not fit are left out. A scatter "
              "into several arrays has one loop, and a map for each of them.",
       .create = MakePass<RulesOf<AddScatterExpanderRules, RewriteScope::kSequential>>});
  Add(registry, {.name = "logistic-expander",
                 .category = "expand",
                 .summary = "expand logistic functions",
                 .doc = "logistic(x) = 1 / (1 + exp(-x)), which rounds more often.",
                 .tolerance = 1e-5,
                 .create = MakePass<RulesOf<AddLogisticExpanderRules>>});
}

}  // namespace

void RegisterSimplifyPasses(PassRegistry* registry) {
  Add(registry,
      {.name = "algsimp",
       .category = "simplify",
       .summary = "algebraic simplification",
       .doc = "Rewrites single instructions and small groups into cheaper ones until no rule applies: "
              "arithmetic with zero and one, comparisons and selections with a known result, chains of "
              "conversions, reshapes, broadcasts, transposes, slices, concatenations and padding, reductions "
              "of nothing, transposes into dots and convolutions, elements of tuples. No float is reassociated.",
       .create = MakePass<AlgebraicSimplifier>});
  Add(registry,
      {.name = "reshape-mover",
       .category = "simplify",
       .summary = "move reshapes and transposes below elementwise operations",
       .doc = "Where all operands of an elementwise operation are reshaped (transposed) alike, or are "
              "broadcasts of scalars, the operation is done before and the result reshaped: one for many, and "
              "they meet others further down. Nothing moves up.",
       .create = MakePass<ReshapeMover>});
  Add(registry, {.name = "tuple-simplifier",
                 .category = "simplify",
                 .summary = "forward the elements of tuples",
                 .doc = "An element of a tuple is what was put there, and a tuple of all elements of another is that "
                        "other one.",
                 .create = MakePass<TupleSimplifier>});
  Add(registry,
      {.name = "cse",
       .category = "simplify",
       .summary = "merge equal instructions",
       .doc = "Merges instructions of a computation that have the same opcode, shape, operands (in any order "
              "where the opcode is commutative) and attributes into the first of them. Called computations are "
              "equal when they are equal instruction by instruction. Instructions with side effects, "
              "parameters and constants without a value stay apart. Metadata does not keep instructions "
              "apart: the one that stays stands for all.",
       .create = MakePass<Cse>});
  const OptionInfo growth = {"max-growth", OptionInfo::Type::kInt, "8",
                             "how many times its size the module may grow by"};
  Add(registry, {.name = "computation-deduplicator",
                 .category = "simplify",
                 .summary = "share equal computations",
                 .doc = "Callers of computations that are equal instruction by instruction call one of them. "
                        "Computations of fusions and of asynchronous operations stay apart.",
                 .create = MakePass<DeduplicateComputations>});
  Add(registry, {.name = "conditional-simplifier",
                 .category = "simplify",
                 .summary = "replace conditionals with a known branch",
                 .doc = "By the branch taken: where the selector is a constant, or all branches are equal and have the "
                        "same argument.",
                 .create = MakePass<ConditionalSimplifier>});
  Add(registry, {.name = "dead-parameter-removal",
                 .category = "simplify",
                 .summary = "remove parameters that computations do not use",
                 .doc = "Of called and fused computations, with the operands of their callers. The entry keeps its "
                        "parameters.",
                 .create = MakePass<DeadParameters>});
  Add(registry, {.name = "flatten-call-graph",
                 .category = "simplify",
                 .summary = "clone computations so that each call, while and conditional has separate ones",
                 .doc = "Copies computations with several sequential callers, those with channels and asynchronous "
                        "operations excepted.",
                 .options = {growth},
                 .create = MakePass<FlattenCallGraph>});
  registry->Add(
      {.name = "inline",
       .category = "simplify",
       .summary = "replace calls by the called computations",
       .doc = "Callees first, so that none is left. Calls stay where they are composite, have control edges "
              "or a backend_config, or where a callee with channels has several callers.",
       .options = {growth,
                   {"single-call-only", OptionInfo::Type::kBool, "false", "only computations that are called once"}},
       .create = MakePass<Inline>});
  Add(registry, {.name = "dce",
                 .category = "simplify",
                 .summary = "remove unused instructions and computations",
                 .doc = "Removes instructions that nothing uses and that have no side effect, then computations that "
                        "nothing calls. Parameters stay, since callers give them values.",
                 .create = MakePass<Dce>});
  registry->Add({.name = "constant-folding",
                 .category = "simplify",
                 .summary = "evaluate instructions with constant operands",
                 .doc = "Instructions whose operands are constants, or broadcasts of constants and iotas, are replaced "
                        "by their values, computed by the reference interpreter. Calls, loops and conditionals too, if "
                        "nothing in them has an effect or draws random numbers; fusions stay. A value that is much "
                        "larger than the constants it was made of stays computed, and so does what takes more than "
                        "the limits.",
                 .options = {{"max-elements", OptionInfo::Type::kInt, "1048576",
                              "fold no instruction whose result or operand has more elements"},
                             {"max-flops", OptionInfo::Type::kInt, "100000000",
                              "fold no instruction that takes more operations"}},
                 .create = MakePass<ConstantFolding>});
  RegisterLoopPasses(registry);
  RegisterRulePasses(registry);
}

}  // namespace hlokit
