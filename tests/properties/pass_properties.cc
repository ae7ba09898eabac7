// SPDX-License-Identifier: Apache-2.0
// Properties of every pass on every module:
//   values    results on synthetic arguments do not change (integers exactly, floats within a few ulps), except those
//             that depend on opcodes that the pass redefines
//   verifies  a valid module stays valid
//   text      the changed module prints, parses, and prints the same
//   again     a second run changes nothing and reports so
//   undone    `defuse` inverts `fusion`, except for duplicate instructions
//   bytes     --no-more-bytes=PIPELINE: the program does not access more bytes than before, by the cost analysis
//
//   pass_properties [--seed=N] [--passes=PIPELINE]… [--random=N] [--no-run] [--verify-each] [--seconds=S]
//                   [--max-steps=N] [--modules=N] [--no-more-bytes=PIPELINE]… FILE|DIR…
//
// Without --passes each registered pass is tested alone, then each named pipeline; --random=N adds N random pipelines
// for each module. --no-run skips the values, --verify-each verifies after each pass of a pipeline. --seconds: when to
// stop and report the results so far. --modules=N adds N generated modules. Modules that do not parse, verify or run
// are skipped. Exit code 1 if a property does not hold.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "check/equivalence/equivalence_check.h"
#include "interp/exact/instruction_evaluator.h"
#include "interp/program/engine_table.h"
#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/sharding/unpartitioned.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/analysis/cost.h"
#include "passes/annotations/text.h"
#include "passes/core/pipeline.h"
#include "passes/instrumentation/dependent_results.h"
#include "passes/instrumentation/verify_each.h"
#include "tests/properties/hlo_files.h"
#include "tests/properties/verified.h"
#include "tests/random/random_module.h"

namespace hlokit {
namespace {

struct Flags {
  uint64_t seed = 0;
  std::vector<std::string> passes;
  std::vector<std::string> no_more_bytes;
  int64_t random = 0;
  uint64_t modules = 0;
  bool run = true;
  bool verify_each = false;
  double seconds = 1e9;
  int64_t max_steps = 2'000'000;
  std::vector<std::string> paths;
};

struct Outcome {
  int64_t held = 0;
  int64_t failed = 0;
};

std::string Print(const Module& module) {
  std::string text;
  {
    TextWriter out(&text);
    PrintModule(out, module, PrintOptions::Lossless());
  }
  return text;
}

class Checker {
 public:
  explicit Checker(const Flags& flags) : flags_(flags), random_(flags.seed) {
    if (!flags.passes.empty()) {
      pipelines_ = flags.passes;
      return;
    }
    for (const PassInfo* pass : PassRegistry::Get().passes()) pipelines_.emplace_back(pass->name);
    for (const NamedPipeline& named : PassRegistry::Get().pipelines()) pipelines_.emplace_back(named.name);
  }

  void Check(const std::string& path) {
    const auto source = ReadFile(path);
    if (source.ok()) Check(path, **source);
  }
  void Check(const std::string& path, const SourceBuffer& source) {
    const SplitInput split = SplitInputFile(source);
    for (size_t i = 0; i < split.chunks.size(); ++i) {
      CheckModule(split.chunks.size() == 1 ? path : StrCat(path, "#", i + 1), split.source, split.chunks[i]);
    }
  }

  int Report() const {
    int64_t failed = 0;
    std::printf("%lld modules, %lld skipped\n", static_cast<long long>(modules_), static_cast<long long>(skipped_));
    for (const auto& [name, outcome] : outcomes_) {
      std::printf("%-32s %7lld held %5lld failed, %lld changed\n", name.c_str(), static_cast<long long>(outcome.held),
                  static_cast<long long>(outcome.failed), static_cast<long long>(changed_.at(name)));
      failed += outcome.failed;
    }
    if (left_out_ != 0) {
      std::printf("after passes that redefine opcodes: %lld results compared, %lld depend on these\n",
                  static_cast<long long>(compared_), static_cast<long long>(left_out_));
    }
    std::printf("%lld failed\n", static_cast<long long>(failed));
    return failed == 0 ? 0 : 1;
  }

 private:
  void CheckModule(const std::string& path, std::shared_ptr<const SourceBuffer> source, std::string_view text) {
    DiagnosticSink sink;
    const std::unique_ptr<Module> module = ParseModulePart(std::move(source), text, {}, &sink);
    if (module == nullptr || !Problems(*module).empty()) {
      ++skipped_;
      return;
    }
    std::optional<std::vector<Literal>> before;
    if (flags_.run) {
      // Programs that would exceed the time limit are not started.
      constexpr int64_t kMaxFlops = 20'000'000'000;
      if (CostAnalysis(*module).OfModule().flops <= kMaxFlops) before = Evaluate(*module);
      if (!before) {
        ++skipped_;
        return;
      }
    }
    ++modules_;
    for (const std::string& pipeline : pipelines_) CheckPipeline(path, *module, pipeline, before);
    if (flags_.passes.empty()) CheckUndone(path, *module, before);
    for (int64_t i = 0; i < flags_.random; ++i) CheckPipeline(path, *module, RandomPipeline(), before, "random");
  }

  std::optional<std::vector<Literal>> Evaluate(const Module& module) {
    interp::EvaluatorOptions options;
    options.limits.max_steps = flags_.max_steps;
    options.limits.max_seconds = 10;
    options.limits.max_bytes = int64_t{1} << 30;
    options.num_threads = 1;
    DiagnosticSink sink;
    const auto evaluator = interp::PrepareEngine(interp::EngineKind::kExact, module, options, &sink);
    if (evaluator == nullptr) return std::nullopt;
    const interp::GeneratorOptions limits = {.num_threads = 1, .max_bytes = options.limits.max_bytes, .poll = {}};
    const auto arguments = interp::MakeFakeArguments(evaluator->argument_shapes(), flags_.seed, limits);
    if (!arguments.ok()) return std::nullopt;
    return evaluator->Run(*arguments, &sink);
  }

  std::string RandomPipeline() {
    const auto& passes = PassRegistry::Get().passes();
    std::string text;
    for (uint64_t n = 1 + random_() % 6; n-- > 0;) {
      StrAppend(&text, text.empty() ? "" : ",", passes[random_() % passes.size()]->name);
    }
    return random_() % 3 == 0 ? StrCat("(", text, ")*") : text;
  }

  void CheckPipeline(const std::string& path, const Module& original, const std::string& text,
                     const std::optional<std::vector<Literal>>& before, const std::string& group = "") {
    absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text);
    if (!pipeline.ok()) {
      std::fprintf(stderr, "%s\n", std::string(pipeline.status().message()).c_str());
      std::exit(2);
    }
    const std::string& name = group.empty() ? text : group;
    Outcome& outcome = outcomes_[name];
    const auto fail = [&](std::string_view property, std::string_view what) {
      ++outcome.failed;
      std::printf("%s: %s: %s: %s\n", path.c_str(), text.c_str(), std::string(property).c_str(),
                  std::string(what).c_str());
    };
    Module module = original.Clone();
    ReadMetadataSources(module);
    VerifyEach verify{VerifierOptions()};
    std::vector<PassInstrumentation*> instruments;
    if (flags_.verify_each) instruments.push_back(&verify);
    const auto result = pipeline->Run(module, WithEvaluator(), instruments);
    // A pass that returns Unimplemented does not change the module.
    const bool declined = result.status().code() == absl::StatusCode::kUnimplemented;
    if (!result.ok() && !declined) return fail("runs", std::string(result.status().message()));
    if (declined) {
      ++outcome.held;
      return;
    }
    changed_[name] += result->changed ? 1 : 0;
    if (!result->changed) {
      ++outcome.held;
      return;
    }
    if (const std::string problem = Problems(module); !problem.empty()) return fail("verifies", problem);
    const auto& frugal = flags_.no_more_bytes;
    if (std::find(frugal.begin(), frugal.end(), name) != frugal.end()) {
      const int64_t was = CostAnalysis(original).OfModule().bytes(), is = CostAnalysis(module).OfModule().bytes();
      if (is > was) return fail("bytes", StrCat("reads and writes ", is, " bytes, before ", was));
    }
    // What has become the program of one device of many is compared by spmd_properties.
    const bool partitioned = IsMarkedPartitioned(module) && !IsMarkedPartitioned(original);
    if (before && !partitioned) {
      double tolerance = 0;
      std::vector<Opcode> redefined;
      for (const PassInfo* pass : pipeline->passes()) {
        tolerance = std::max(tolerance, pass->tolerance);
        redefined.insert(redefined.end(), pass->redefines.begin(), pass->redefines.end());
      }
      auto after = Evaluate(module);
      if (!after) return fail("values", "cannot be run any more");
      const std::string difference = Compare(original, redefined, *before, &*after, tolerance == 0 ? -1 : tolerance);
      if (!difference.empty()) return fail("values", difference);
    }
    // A single pass may need several runs; a fixpoint or a named pipeline none.
    const auto again = pipeline->Run(module, WithEvaluator());
    if (!again.ok()) return fail("again", std::string(again.status().message()));
    const bool fixpoint = group.empty();
    if (fixpoint && again->changed) return fail("again", "a second run changes the module");
    WriteMetadataSources(module);
    const std::string printed = Print(module);
    const auto read = ParseModuleText(printed);
    if (!read.ok()) return fail("text", std::string(read.status().message()));
    if (Print(**read) != printed) return fail("text", "prints differently when read again");
    ++outcome.held;
  }

  // Results that depend on redefined opcodes are ignored from then on.
  std::string Compare(const Module& original, const std::vector<Opcode>& redefined, const std::vector<Literal>& before,
                      std::vector<Literal>* after, double tolerance) {
    if (!redefined.empty() && before.size() == after->size()) {
      const std::vector<uint8_t> dependent = DependentResults(original, redefined);
      for (size_t k = 0; k < dependent.size() && dependent.size() == before.size(); ++k) {
        if (dependent[k]) (*after)[k] = before[k];
        compared_ += dependent[k] ? 0 : 1;
        left_out_ += dependent[k] ? 1 : 0;
      }
    }
    std::string difference =
        interp::CompareResults(before, *after, interp::Tolerance::OfPass(std::max(tolerance, 0.0)));
    if (difference.empty() || tolerance <= 0 || before.size() != after->size()) return difference;
    // Of a pass that rounds, results that depend on floats of 8 bits or fewer may be off by one of those.
    constexpr double kNarrowEpsilon = 0.25;  // of f8e5m2
    const std::vector<uint8_t> narrow = DependentResults(original, NarrowOpcodes(original));
    std::vector<Literal> exact_before, exact_after, narrow_before, narrow_after;
    for (size_t k = 0; k < before.size() && k < narrow.size(); ++k) {
      (narrow[k] ? narrow_before : exact_before).push_back(before[k]);
      (narrow[k] ? narrow_after : exact_after).push_back((*after)[k]);
    }
    difference = interp::CompareResults(exact_before, exact_after, interp::Tolerance::OfPass(tolerance));
    if (!difference.empty()) return difference;
    return interp::CompareResults(narrow_before, narrow_after,
                                  interp::Tolerance::OfPass(std::max(tolerance, kNarrowEpsilon)));
  }

  // Opcodes of arithmetic on floats of 8 bits or fewer.
  static std::vector<Opcode> NarrowOpcodes(const Module& module) {
    std::vector<Opcode> opcodes;
    for (Computation c : module.computations()) {
      for (Instruction i : c.instructions()) {
        const bool narrow =
            i.shape().IsArray() && IsFloat(i.shape().element_type()) && BitsOf(i.shape().element_type()) <= 8;
        if (narrow && HasTrait(i.opcode(), kElementwise)) opcodes.push_back(i.opcode());
      }
    }
    return opcodes;
  }

  void CheckUndone(const std::string& path, const Module& original, const std::optional<std::vector<Literal>>& before) {
    constexpr std::string_view kName = "fusion,defuse";
    Module module = original.Clone();
    const auto run = [&](std::string_view text) {
      absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text);
      return pipeline.ok() && pipeline->Run(module, WithEvaluator()).ok();
    };
    bool good = run("(defuse,tuple-simplifier,cse,dce)*");
    const Digest unfused = Fingerprint(module);
    good = good && run("fusion,defuse");
    changed_[std::string(kName)] += Fingerprint(module) != unfused ? 1 : 0;
    const auto after = before ? Evaluate(module) : std::nullopt;
    const std::string difference = after    ? interp::CompareResults(*before, *after, interp::Tolerance::OfPass(0))
                                   : before ? "cannot be run any more"
                                            : "";
    good = good && run("(tuple-simplifier,cse,dce)*");
    Outcome& outcome = outcomes_[std::string(kName)];
    const bool undone = good && Fingerprint(module) == unfused;
    ++(undone && difference.empty() ? outcome.held : outcome.failed);
    if (!undone) std::printf("%s: undone: defuse leaves another program than there was before fusion\n", path.c_str());
    if (!difference.empty()) std::printf("%s: undone: %s\n", path.c_str(), difference.c_str());
  }

  const Flags& flags_;
  std::mt19937_64 random_;
  std::vector<std::string> pipelines_;
  std::map<std::string, Outcome> outcomes_;
  std::map<std::string, int64_t> changed_;
  int64_t modules_ = 0;
  int64_t skipped_ = 0;
  int64_t compared_ = 0, left_out_ = 0;  // results, after passes that redefine
};

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    const auto value = [&](std::string_view prefix) { return std::string(a.substr(prefix.size())); };
    if (a.starts_with("--seed=")) {
      flags.seed = std::strtoull(value("--seed=").c_str(), nullptr, 10);
    } else if (a.starts_with("--passes=")) {
      flags.passes.push_back(value("--passes="));
    } else if (a.starts_with("--random=")) {
      flags.random = std::strtoll(value("--random=").c_str(), nullptr, 10);
    } else if (a.starts_with("--modules=")) {
      flags.modules = std::strtoull(value("--modules=").c_str(), nullptr, 10);
    } else if (a.starts_with("--seconds=")) {
      flags.seconds = std::strtod(value("--seconds=").c_str(), nullptr);
    } else if (a.starts_with("--max-steps=")) {
      flags.max_steps = std::strtoll(value("--max-steps=").c_str(), nullptr, 10);
    } else if (a.starts_with("--no-more-bytes=")) {
      flags.no_more_bytes.push_back(value("--no-more-bytes="));
    } else if (a == "--verify-each") {
      flags.verify_each = true;
    } else if (a == "--no-run") {
      flags.run = false;
    } else if (a.starts_with("--")) {
      std::fprintf(stderr, "pass_properties: unknown flag %s\n", argv[i]);
      return 2;
    } else {
      flags.paths.emplace_back(a);
    }
  }
  std::vector<std::string> files = HloFiles(flags.paths);
  // Shuffled by the seed, so that runs that stop early test different files.
  std::mt19937_64 shuffle(flags.seed);
  if (flags.seconds < 1e8) std::shuffle(files.begin(), files.end(), shuffle);
  Checker checker(flags);
  const auto start = std::chrono::steady_clock::now();
  const auto late = [&] {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return elapsed.count() > flags.seconds;
  };
  for (const std::string& file : files) {
    if (late()) break;
    checker.Check(file);
  }
  for (uint64_t k = 0; k < flags.modules && !late(); ++k) {
    random_test::RandomModuleOptions options;
    options.seed = flags.seed + k;
    if (options.seed < kOpcodeCount) options.first = static_cast<Opcode>(options.seed);
    const std::string name = StrCat("random module ", options.seed);
    checker.Check(name, SourceBuffer(name, random_test::RandomModule(options)));
  }
  return checker.Report();
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Main(argc, argv); }
