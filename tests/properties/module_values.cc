// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/module_values.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "check/equivalence/equivalence_check.h"
#include "interp/program/engine_table.h"
#include "ir/core/first_error.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/collective_groups.h"
#include "ir/sharding/replica_groups.h"
#include "passes/analysis/cost.h"
#include "passes/instrumentation/dependent_results.h"
#include "tests/random/value_round_trips.h"

namespace hlokit::properties {
namespace {

constexpr uint64_t kSeeds = 3;  // sets of arguments
// Limits of flops and bytes, one iteration of each loop, and of instructions run.
constexpr int64_t kMaxReferenceWork = 20'000'000;
constexpr int64_t kMaxExactWork = 5'000'000'000;
constexpr int64_t kMaxSteps = 200'000;
constexpr int64_t kMaxDevices = 16;

using Results = std::optional<std::vector<Literal>>;

struct Devices {
  int64_t replicas = 1, partitions = 1;
  int64_t count() const { return replicas * partitions; }
};

// Returns the devices of the header, or more if groups name more.
Devices DevicesOf(const Module& module) {
  Devices devices{module.header().replica_count, module.header().num_partitions};
  int64_t flattened = 0;  // ids of devices
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!HasTrait(i.opcode(), kCollective)) continue;
      int64_t named = 0;
      if (const auto groups = i.payload(Attr::kReplicaGroups)) {
        named = CountReplicaGroups(module.context(), ListId(*groups)).devices;
      }
      const absl::Span<const int64_t> pairs = i.list_attr(Attr::kSourceTargetPairs);  // 2, source, target, 2, ...
      for (size_t k = 0; k < pairs.size(); ++k) named = std::max(named, k % 3 == 0 ? 0 : pairs[k] + 1);
      const CollectiveOpGroupMode mode = GetCollectiveOpGroupMode(i);
      if (mode == CollectiveOpGroupMode::kCrossPartition) {
        devices.partitions = std::max(devices.partitions, named);
      } else if (mode == CollectiveOpGroupMode::kFlattenedId) {
        flattened = std::max(flattened, named);
      } else {
        devices.replicas = std::max(devices.replicas, named);
      }
    }
  }
  devices.replicas = std::max(devices.replicas, (flattened + devices.partitions - 1) / devices.partitions);
  return devices;
}

// Runs a module on one of the engines.
template <interp::EngineKind kKind>
Results Run(const Module& module, const Devices& devices, const std::vector<Literal>& arguments, std::string* error) {
  random_test::AnyHost host;
  interp::EvaluatorOptions options;
  options.seed = 1;
  options.fill_elided = FillKind::kRandom;
  options.num_threads = 1;
  options.host_io = &host;
  options.num_replicas = devices.replicas;
  options.num_partitions = devices.partitions;
  options.limits.max_steps = kMaxSteps;
  options.limits.max_bytes = int64_t{1} << 30;
  DiagnosticSink sink;
  const auto evaluator = interp::PrepareEngine(kKind, module, options, &sink);
  Results results;
  if (evaluator != nullptr) results = evaluator->Run(arguments, &sink);
  if (!results) *error = FirstErrorOf(sink);
  return results;
}

// Returns the arguments of each device in turn.
std::vector<Literal> Arguments(const Module& module, const Devices& devices, uint64_t seed) {
  std::vector<Literal> arguments;
  for (int64_t device = 0; device < devices.count(); ++device) {
    for (Literal& argument : interp::MakeFakeArguments(module, seed + kSeeds * static_cast<uint64_t>(device))) {
      arguments.push_back(std::move(argument));
    }
  }
  return arguments;
}

}  // namespace

Results RunReference(const Module& module, const std::vector<Literal>& arguments, std::string* error) {
  return Run<interp::EngineKind::kReference>(module, Devices(), arguments, error);
}

ValueComparison CompareValuesOf(const Module& before, const Module& after, const PassInfo& pass) {
  ValueComparison comparison;
  const Devices devices = DevicesOf(before);
  const Cost cost = CostAnalysis(before).OfModule();
  const int64_t work = (cost.flops + cost.bytes()) * devices.count();
  if (work > kMaxExactWork || devices.count() > kMaxDevices) {
    comparison.what = devices.count() > kMaxDevices ? "too many devices" : "too large";
    return comparison;
  }
  comparison.by_reference = work <= kMaxReferenceWork;
  const auto run = comparison.by_reference ? Run<interp::EngineKind::kReference> : Run<interp::EngineKind::kExact>;
  const std::vector<uint8_t> redefined =
      pass.redefines.empty() ? std::vector<uint8_t>() : DependentResults(before, pass.redefines);
  // Programs that run long get one set of arguments.
  const uint64_t seeds = comparison.by_reference ? kSeeds : 1;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::vector<Literal> arguments = Arguments(before, devices, seed);
    const Results expected = run(before, devices, arguments, &comparison.what);
    if (!expected) return comparison;
    Results found = run(after, devices, arguments, &comparison.what);
    if (!found) {
      comparison.outcome = ValueComparison::Outcome::kDifferent;
      comparison.what = StrCat("runs before, but after the pass: ", comparison.what);
      return comparison;
    }
    for (size_t k = 0; k < found->size() && k < expected->size() && !redefined.empty(); ++k) {
      if (redefined[k % redefined.size()] != 0) (*found)[k] = (*expected)[k];
    }
    comparison.what = interp::CompareResults(*expected, *found, interp::Tolerance::OfPass(pass.tolerance));
    if (!comparison.what.empty()) {
      comparison.outcome = ValueComparison::Outcome::kDifferent;
      return comparison;
    }
  }
  const bool complete = std::count(redefined.begin(), redefined.end(), 1) == 0;
  comparison.outcome = complete ? ValueComparison::Outcome::kEqual : ValueComparison::Outcome::kNotRun;
  if (!complete) comparison.what = "the pass redefines results";
  return comparison;
}

}  // namespace hlokit::properties
