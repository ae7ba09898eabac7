// SPDX-License-Identifier: Apache-2.0
#include "check/equivalence/partition_check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "check/arguments/argument_generator.h"
#include "check/comparison/value_comparison.h"
#include "check/equivalence/equivalence_check.h"
#include "interp/program/engine_table.h"
#include "ir/core/diagnostic.h"
#include "ir/core/first_error.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/ops/opcode.h"
#include "ir/types/float_types.h"
#include "passes/instrumentation/dependent_results.h"
#include "passes/sharding/sharding_rule.h"

namespace hlokit::interp {
namespace {

constexpr int64_t kPartitionedSteps = 16;  // times those of the whole program, at most

double EpsilonsOfSums(ElementType type) {
  const int bits = BitsOf(ComponentType(type));
  return bits >= 32 ? 256 : bits >= 16 ? 16 : 4;
}

// Opcodes that add elements: partitioned, they add partial sums.
std::vector<Opcode> Sums() {
  std::vector<Opcode> sums;
  for (size_t k = 0; k < kOpcodeCount; ++k) {
    const Opcode opcode = static_cast<Opcode>(k);
    if (AddsElements(RuleClassOf(opcode))) sums.push_back(opcode);
  }
  return sums;
}

// Returns the largest relative rounding error of the types of sums, and of `type`.
double EpsilonOfSums(const Module& whole, ElementType type) {
  double epsilon = EpsilonsOfSums(type) * EpsilonOf(type);
  for (Computation c : whole.computations()) {
    for (Instruction i : c.instructions()) {
      if (!AddsElements(RuleClassOf(i.opcode()))) continue;
      for (const Shape leaf : Leaves(i.shape())) {
        if (!leaf.IsArray() || !(IsFloat(leaf.element_type()) || IsComplex(leaf.element_type()))) continue;
        epsilon = std::max(epsilon, EpsilonsOfSums(leaf.element_type()) * EpsilonOf(leaf.element_type()));
      }
    }
  }
  return epsilon;
}

absl::StatusOr<std::unique_ptr<Engine>> PrepareRun(const Module& module, int64_t partitions,
                                                   const PartitionCheckOptions& run) {
  EvaluatorOptions options;
  options.num_threads = run.num_threads;
  options.limits = run.limits;
  options.num_partitions = partitions;
  DiagnosticSink sink;
  std::unique_ptr<Engine> evaluator = PrepareEngine(EngineKind::kExact, module, options, &sink);
  if (evaluator == nullptr) return absl::FailedPreconditionError(FirstErrorOf(sink));
  return evaluator;
}

absl::StatusOr<std::vector<Literal>> RunOn(Engine* evaluator, absl::Span<const Literal> arguments) {
  DiagnosticSink sink;
  std::optional<std::vector<Literal>> results = evaluator->Run(arguments, &sink);
  if (!results) return absl::FailedPreconditionError(FirstErrorOf(sink));
  return *std::move(results);
}

// Returns the largest finite modulus of an array.
double LargestModulus(const Literal& array) {
  return VisitType(array.shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    double largest = 0;
    for (const T& element : array.values<T>()) {
      double magnitude = 0;
      if constexpr (AnyComplex<T>) {
        magnitude = static_cast<double>(std::abs(element));
      } else {
        magnitude = std::abs(static_cast<double>(element));
      }
      if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    }
    return largest;
  });
}

}  // namespace

std::string WhyNotComparable(const Module& whole) {
  for (Computation c : whole.computations()) {
    for (Instruction i : c.instructions()) {
      // Custom-calls that run are functions of their operands.
      const bool impure = HasTrait(i.opcode(), kDeviceId);
      if (impure || HasTrait(i.opcode(), kSideEffect) || HasTrait(i.opcode(), kCollective))
        return StrCat("it has ", i.opcode_text());
    }
  }
  return "";
}

std::string ComparePartitionedResults(const Module& whole, absl::Span<const Literal> expected,
                                      absl::Span<const Literal> found) {
  const std::vector<uint8_t> sums = DependentResults(whole, Sums());
  for (size_t n = 0; n < expected.size() && n < found.size(); ++n) {
    if (!expected[n].shape().IsArray()) continue;
    const ElementType type = expected[n].shape().element_type();
    ErrorSpec spec;
    spec.ulp = 0;  // zeros of either sign are equal
    if (sums[n] != 0 && (IsFloat(type) || IsComplex(type))) {
      spec.relative = EpsilonOfSums(whole, type);
      spec.absolute = *spec.relative * LargestModulus(expected[n]);
    }
    const absl::StatusOr<ValueDifference> difference = CompareValues(found.subspan(n, 1), expected.subspan(n, 1), spec);
    const std::string what = difference.ok() ? difference->description : std::string(difference.status().message());
    if (what.empty()) continue;
    return expected.size() == 1 ? what : StrCat("array ", n, " of the results: ", what);
  }
  if (expected.size() != found.size()) return StrCat(found.size(), " results, expected ", expected.size());
  return "";
}

absl::StatusOr<PartitionCheck> PartitionCheck::Prepare(const Module& whole, int64_t partitions,
                                                       const PartitionCheckOptions& options) {
  if (const std::string why = WhyNotComparable(whole); !why.empty()) return absl::UnimplementedError(why);
  PartitionCheck check;
  check.whole_ = &whole;
  check.options_ = options;
  absl::StatusOr<ShardedArrays> parameters = ShardedArrays::OfParameters(whole, partitions);
  if (!parameters.ok()) return parameters.status();
  absl::StatusOr<ShardedArrays> result = ShardedArrays::OfResult(whole, partitions);
  if (!result.ok()) return result.status();
  check.parameters_ = *std::move(parameters);
  check.result_ = *std::move(result);
  absl::StatusOr<std::unique_ptr<Engine>> evaluator = PrepareRun(whole, 1, options);
  if (!evaluator.ok()) return evaluator.status();
  GeneratorOptions generator;
  generator.num_threads = options.num_threads;
  generator.max_bytes = options.limits.max_bytes;
  absl::StatusOr<std::vector<Literal>> arguments = MakeFakeArguments(whole, options.seed, generator);
  if (!arguments.ok()) return arguments.status();
  check.arguments_ = *std::move(arguments);
  absl::StatusOr<std::vector<Literal>> expected = RunOn(evaluator->get(), check.arguments_);
  if (!expected.ok()) return expected.status();
  check.expected_ = *std::move(expected);
  return check;
}

absl::Status PartitionCheck::Compare(const Module& partitioned, PaddingFill fill) const {
  // A program of one device has further instructions, to find its parts.
  PartitionCheckOptions options = options_;
  options.limits.max_steps = SaturatingMultiply(options.limits.max_steps, kPartitionedSteps);
  const absl::StatusOr<std::unique_ptr<Engine>> evaluator = PrepareRun(partitioned, parameters_.partitions(), options);
  if (!evaluator.ok()) return evaluator.status();
  if (absl::Status status = parameters_.CheckPartShapes((*evaluator)->argument_shapes(), "argument"); !status.ok()) {
    return status;
  }
  if (absl::Status status = result_.CheckPartShapes((*evaluator)->result_shapes(), "result"); !status.ok()) {
    return status;
  }
  const absl::StatusOr<std::vector<Literal>> parts = RunOn(evaluator->get(), parameters_.Divide(arguments_, fill));
  if (!parts.ok()) return parts.status();
  const absl::StatusOr<std::vector<Literal>> found = result_.Assemble(*parts, "result");
  if (!found.ok()) return found.status();
  const std::string difference = ComparePartitionedResults(*whole_, expected_, *found);
  if (!difference.empty()) return absl::FailedPreconditionError(difference);
  return absl::OkStatus();
}

}  // namespace hlokit::interp
