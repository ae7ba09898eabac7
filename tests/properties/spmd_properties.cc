// SPDX-License-Identifier: Apache-2.0
// Property of sharding propagation and the SPMD partitioner: a program with random shardings, propagated and
// partitioned, is valid and returns the values of the whole program on simulated devices, whatever padding holds.
//
//   spmd_properties [--seed=N] [--count=N] [--seconds=S] [--max-failures=N] [--dump=DIR] [--print] FILE|DIR…
//
// Case k takes a module of the files, or a generated one, and 2, 4 or 8 devices, all drawn from seed + k. --print
// writes the module of case `seed` with its shardings, instead of checking it; --dump writes those that fail, NAME.hlo.
// Each failure is printed with a command that shows it, whose file hlo-reduce makes small. Modules that cannot be
// compared (random numbers, communication, custom calls) or take long are skipped: --count counts the others. Cases
// that differ next to a pole of a function of sums, and those that the partitioner says it does not take, are counted
// apart. Ends with `N passed, N failed`.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check/equivalence/partition_check.h"
#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "passes/analysis/cost.h"
#include "passes/core/pipeline.h"
#include "passes/sharding/sharding_rule.h"
#include "tests/properties/hlo_files.h"
#include "tests/properties/random_shardings.h"
#include "tests/properties/verified.h"
#include "tests/random/random_module.h"

namespace hlokit::properties {
namespace {

struct Flags {
  uint64_t seed = 0, count = 1000;
  double seconds = 1e9;
  int64_t max_failures = 20;
  std::string dump;
  bool print = false;
  std::vector<std::string> paths;
};

struct Case {
  std::string name;  // of the module
  std::unique_ptr<Module> module;
  std::string pipeline;  // propagation and partitioning
  int64_t devices = 2;
  interp::PaddingFill fill = interp::PaddingFill::kNan;
};

std::string Print(const Module& module) {
  std::string text;
  {
    TextWriter out(&text);
    PrintModule(out, module, PrintOptions::Lossless());
  }
  return text;
}

// Returns true for a scan that says its computation is associative, where that is more than one operation: programs
// that claim what does not hold exist, and get other values.
bool ClaimsAssociative(const Module& module) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kScan || !i.bool_attr(Attr::kIsAssociative)) continue;
      int64_t operations = 0;
      for (Instruction inner : i.computation_attr(Attr::kToApply).instructions()) {
        operations += inner.opcode() == Opcode::kParameter || inner.opcode() == Opcode::kTuple ? 0 : 1;
      }
      if (operations > 1) return true;
    }
  }
  return false;
}

// Returns true if a function with a pole or an edge of its domain is applied where sums of floats may come from: near
// it another order of summation gives any other value.
bool HasSingularFunctionOfSums(const Module& module) {
  constexpr Opcode kSingular[] = {Opcode::kLog, Opcode::kLog1p, Opcode::kSqrt, Opcode::kRsqrt};
  bool sums = false, singular = false;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      sums = sums || AddsElements(RuleClassOf(i.opcode()));
      singular = singular || std::find(std::begin(kSingular), std::end(kSingular), i.opcode()) != std::end(kSingular);
    }
  }
  return sums && singular;
}

absl::Status RunPasses(const std::string& text, Module* module) {
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text);
  if (!pipeline.ok()) return pipeline.status();
  return pipeline->Run(*module, WithEvaluator()).status();
}

class Checker {
 public:
  explicit Checker(const Flags& flags) : flags_(flags), files_(HloFiles(flags.paths)) {}

  // Returns nullopt if there is no module for the case.
  std::optional<Case> Make(uint64_t seed) {
    std::mt19937_64 random(seed);
    Case made;
    const bool generate = files_.empty() || random() % 4 == 0;
    if (generate) {
      random_test::RandomModuleOptions options;
      options.seed = random();
      options.instructions = 1 + static_cast<int>(random() % 12);
      made.name = StrCat("random module ", options.seed);
      absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(random_test::RandomModule(options));
      if (module.ok()) made.module = *std::move(module);
    } else {
      made.name = files_[random() % files_.size()];
      const auto source = ReadFile(made.name);
      DiagnosticSink sink;
      if (source.ok()) made.module = ParseModulePart(*source, (*source)->text(), {}, &sink);
    }
    if (made.module == nullptr || !Problems(*made.module).empty() || !CanShard(*made.module)) return std::nullopt;
    if (ClaimsAssociative(*made.module)) return std::nullopt;
    made.devices = int64_t{2} << random() % 3;
    made.fill = interp::kPaddingFills[std::array{1, 1, 1, 2, 0}[random() % 5]];
    const uint64_t kind = random() % 10;
    const ShardedInstructions which = kind < 6   ? ShardedInstructions::kParameters
                                      : kind < 8 ? ShardedInstructions::kSome
                                                 : ShardedInstructions::kAll;
    RandomShardings(random(), made.devices).AddTo(which, made.module.get());
    if (which != ShardedInstructions::kAll) made.pipeline = "sharding-propagation{is-spmd=true},";
    StrAppend(&made.pipeline, "spmd-partitioner");
    return made;
  }

  void Check(uint64_t seed) {
    ++tried_;
    std::optional<Case> made = Make(seed);
    if (!made) return;
    Module whole = made->module->Clone();
    const size_t comma = made->pipeline.find(',');
    if (comma != std::string::npos) {
      // Of propagation: the number of devices does not divide into sizes of loops that disagree, and the like.
      const absl::Status status = RunPasses(made->pipeline.substr(0, made->pipeline.rfind(',')), &whole);
      if (!status.ok()) return Fail(seed, *made, "propagation", std::string(status.message()));
    }
    interp::PartitionCheckOptions options;
    options.seed = seed;
    options.limits.max_steps = 20'000;
    options.limits.max_bytes = int64_t{1} << 28;
    const absl::StatusOr<interp::PartitionCheck> check = interp::PartitionCheck::Prepare(whole, made->devices, options);
    if (!check.ok()) return;
    Module partitioned = whole.Clone();
    if (const absl::Status status = RunPasses("spmd-partitioner", &partitioned); !status.ok()) {
      // What the partitioner says that it does not do.
      if (status.code() == absl::StatusCode::kUnimplemented) {
        ++kinds_["not implemented"];
        return;
      }
      return Fail(seed, *made, "rejected", std::string(status.message()));
    }
    if (const std::string problem = Problems(partitioned); !problem.empty()) {
      return Fail(seed, *made, "invalid", problem);
    }
    if (const absl::Status status = check->Compare(partitioned, made->fill); !status.ok()) {
      if (HasSingularFunctionOfSums(whole)) {
        ++kinds_["different, with a logarithm or root of sums"];
        return;
      }
      return Fail(seed, *made, "wrong", std::string(status.message()));
    }
    ++passed_;
  }

  uint64_t checked() const { return passed_ + failed_; }
  uint64_t tried() const { return tried_; }
  bool has_too_many_failures() const { return static_cast<int64_t>(failed_) >= flags_.max_failures; }
  int Report() const {
    std::printf("%llu programs of %llu cases, others cannot be compared\n", static_cast<unsigned long long>(checked()),
                static_cast<unsigned long long>(tried_));
    for (const auto& [kind, count] : kinds_) std::printf("%s: %d\n", kind.c_str(), count);
    std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed_),
                static_cast<unsigned long long>(failed_));
    return failed_ == 0 && passed_ > 0 ? 0 : 1;
  }

 private:
  static bool CanShard(const Module& module) {
    if (module.header().num_partitions != 1 || module.header().replica_count != 1) return false;
    if (!interp::WhyNotComparable(module).empty()) return false;
    constexpr int64_t kMaxWork = 3'000'000;
    const Cost cost = CostAnalysis(module).OfModule();
    if (cost.flops + cost.bytes() > kMaxWork) return false;
    for (Computation c : module.computations()) {
      for (Instruction i : c.instructions()) {
        if (i.has(Attr::kSharding) || i.shape().has_dynamic_dims()) return false;
      }
    }
    return true;
  }

  void Fail(uint64_t seed, const Case& made, std::string_view kind, std::string_view what) {
    ++failed_;
    ++kinds_[std::string(kind)];
    std::string paths;
    for (const std::string& path : flags_.paths) StrAppend(&paths, " ", path);
    std::printf("case %llu: %s: %s on %lld devices, padding %s: %s\n", static_cast<unsigned long long>(seed),
                std::string(kind).c_str(), made.name.c_str(), static_cast<long long>(made.devices),
                std::string(ToString(made.fill)).c_str(), std::string(what).c_str());
    std::printf(
        "  spmd_properties --seed=%llu --print%s > case.hlo; hlo-opt --run-before-after --passes='%s' case.hlo\n",
        static_cast<unsigned long long>(seed), paths.c_str(), made.pipeline.c_str());
    if (flags_.dump.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(flags_.dump, error);
    std::ofstream(StrCat(flags_.dump, "/case", seed, ".hlo")) << Print(*made.module);
  }

  const Flags& flags_;
  std::vector<std::string> files_;
  uint64_t tried_ = 0, passed_ = 0, failed_ = 0;
  std::map<std::string, int> kinds_;
};

int Run(int argc, char** argv) {
  Flags flags;
  for (int k = 1; k < argc; ++k) {
    const std::string_view a = argv[k];
    const auto number = [&](std::string_view name, uint64_t* to) {
      if (a.starts_with(name)) *to = std::strtoull(a.data() + name.size(), nullptr, 10);
      return a.starts_with(name);
    };
    uint64_t value = 0;
    if (number("--seed=", &flags.seed) || number("--count=", &flags.count)) continue;
    if (number("--seconds=", &value)) {
      flags.seconds = static_cast<double>(value);
    } else if (number("--max-failures=", &value)) {
      flags.max_failures = static_cast<int64_t>(value);
    } else if (a.starts_with("--dump=")) {
      flags.dump = a.substr(7);
    } else if (a == "--print") {
      flags.print = true;
    } else if (a.starts_with("--")) {
      std::fprintf(stderr, "spmd_properties: unknown flag %s\n", argv[k]);
      return 2;
    } else {
      flags.paths.emplace_back(a);
    }
  }
  Checker checker(flags);
  if (flags.print) {
    const std::optional<Case> made = checker.Make(flags.seed);
    if (!made) return 1;
    std::printf("// %s, padding %s\n%s", made->pipeline.c_str(), std::string(ToString(made->fill)).c_str(),
                Print(*made->module).c_str());
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t seed = flags.seed; checker.checked() < flags.count && checker.tried() < 10 * flags.count; ++seed) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (elapsed.count() > flags.seconds || checker.has_too_many_failures()) break;
    checker.Check(seed);
  }
  return checker.Report();
}

}  // namespace
}  // namespace hlokit::properties

int main(int argc, char** argv) { return hlokit::properties::Run(argc, argv); }
