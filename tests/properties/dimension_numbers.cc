// SPDX-License-Identifier: Apache-2.0
// Runs modules with odd dimension numbers (tests/random/dimension_numbers.h) on all engines and through passes, on a
// heap that shows wrong accesses.
//
//   dimension_numbers [--count=N] [--seed=N] [--seconds=N] [--opcode=NAME] [--print]
//
// Ends after --count modules that the verifier accepted. Of each, with its operands as parameters, the exact and the
// fast engine must return the values of the reference, or all an error; so must the reference after simplification and
// after the expander of the opcode. With operands that are constants, constant folding runs on them, and the reference
// then returns the same. Differences are allowed as far as engines and passes promise no more. Exit code 1 if a module
// fails, which is printed; --print prints the module of --seed and --opcode instead.
#include "tests/random/dimension_numbers.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/comparison/engine_ulps.h"
#include "check/comparison/value_comparison.h"
#include "check/equivalence/equivalence_check.h"
#include "check/isolation/fast_tolerance.h"
#include "check/isolation/instruction_runner.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/exact/evaluator.h"
#include "interp/program/engine_table.h"
#include "ir/core/first_error.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/core/pipeline.h"
#include "passes/core/registry.h"
#include "tests/properties/module_walk.h"
#include "tests/properties/verified.h"
#include "tests/properties/with_kernels.h"

namespace hlokit {
namespace {

using random_test::DimensionNumbersCase;
using Results = std::optional<std::vector<Literal>>;

constexpr double kMaxWork = 2e5;  // elements that the reference visits
constexpr unsigned kMaxSecondsOfCase = 30;
constexpr int64_t kMaxBytes = int64_t{1} << 24;

// The module in progress, for signal handlers.
std::string running;

void PrintRunning(const char* what) {
  for (const std::string_view text : {std::string_view(what), std::string_view(running)}) {
    if (write(STDOUT_FILENO, text.data(), text.size()) < 0) return;
  }
}
void OnCrash(int number) {
  PrintRunning("crash in ");
  std::signal(number, SIG_DFL);
  std::raise(number);
}
void OnAlarm(int) {
  PrintRunning("out of time: ");
  _exit(1);
}

bool IsLimit(const std::string& error) {
  return error.find("limit") != std::string::npos || error.find("too large") != std::string::npos;
}

// The passes that rewrite an opcode, besides those that simplify.
struct Rewriting {
  Opcode opcode;
  std::string_view pipeline;
};
constexpr Rewriting kRewritings[] = {
    {Opcode::kGather, "gather-expander"},
    {Opcode::kScatter, "scatter-simplifier,scatter-expander"},
    {Opcode::kSelectAndScatter, "select-and-scatter-expander"},
    {Opcode::kSort, "stable-sort-expander"},
    {Opcode::kRaggedDot, "ragged-dot-rewriter"},
    {Opcode::kCholesky, "cholesky-expander"},
    {Opcode::kTriangularSolve, "triangular-solve-expander"},
    {Opcode::kDot, "dot-decomposer"},
};

struct Tally {
  int64_t generated = 0, accepted = 0, ran = 0, rewritten = 0, failed = 0;
};

// A module of a case.
struct Loaded {
  std::unique_ptr<Module> module;
  std::string error;  // why it is rejected
};

Loaded Load(const DimensionNumbersCase& c, bool constants) {
  Loaded loaded;
  DiagnosticSink sink;
  const auto source = std::make_shared<const SourceBuffer>("case.hlo", c.Text(constants));
  loaded.module = ParseModule(source, {}, &sink);
  if (loaded.module != nullptr && c.result_type) {
    const Instruction root = loaded.module->entry().root();
    if (root.shape().IsArray()) {
      loaded.module->SetShape(root.id(), loaded.module->context().shapes.WithElementType(root.shape(), *c.result_type));
    }
  }
  if (loaded.module != nullptr && !sink.has_errors()) VerifyModule(*loaded.module, VerifierOptions(), &sink);
  loaded.error = sink.has_errors() || loaded.module == nullptr ? FirstErrorOf(sink, "rejected") : "";
  return loaded;
}

// Returns the constants of the operands, on each device: those of device 0, moved on by one element for each further
// one.
std::vector<Literal> ArgumentsOf(const Module& constants, size_t operands, int64_t devices) {
  std::vector<Literal> first;
  for (Instruction i : constants.entry().instructions()) {
    if (i.opcode() == Opcode::kConstant && first.size() < operands) {
      first.push_back(constants.context().literals.ToLiteral(i.literal_id()));
    }
  }
  std::vector<Literal> arguments;
  for (int64_t device = 0; device < devices; ++device) {
    for (const Literal& value : first) {
      Literal moved = value;
      const int64_t count = value.element_count();
      const int64_t width = count == 0 ? 0 : static_cast<int64_t>(value.size_bytes()) / count;
      if (count > 0) std::rotate(moved.data(), moved.data() + device % count * width, moved.data() + count * width);
      arguments.push_back(std::move(moved));
    }
  }
  return arguments;
}

class DimensionNumbersTest {
 public:
  bool ParseFlag(std::string_view argument) {
    if (argument == "--print") return print_ = true;
    if (argument.starts_with("--opcode=")) {
      opcode_ = OpcodeFromText(argument.substr(9));
      return opcode_.has_value();
    }
    return ModuleWalk::Number(argument, "--count=", &count_) || ModuleWalk::Number(argument, "--seed=", &seed_) ||
           ModuleWalk::Number(argument, "--seconds=", &seconds_);
  }

  int Run() {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, OnCrash);
    std::signal(SIGALRM, OnAlarm);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    const std::vector<Opcode> opcodes =
        opcode_ ? std::vector<Opcode>{*opcode_} : random_test::OpcodesWithDimensionNumbers();
    uint64_t accepted = 0;
    bool ended = false;
    for (uint64_t seed = seed_; !ended; ++seed) {
      for (size_t k = 0; k < opcodes.size() && !ended; ++k) {
        accepted += Check(opcodes[k], seed * opcodes.size() + k) ? 1 : 0;
        ended =
            print_ || accepted >= count_ || (seconds_ != 0 && Clock::now() - begin > std::chrono::seconds(seconds_));
      }
    }
    return print_ ? 0 : Report();
  }

 private:
  // Returns true if the verifier accepts the module.
  bool Check(Opcode opcode, uint64_t seed) {
    const DimensionNumbersCase c = random_test::MakeDimensionNumbersCase(opcode, seed);
    if (print_) {
      std::printf("%s", c.Text(false).c_str());
      return true;
    }
    tally_ = &tallies_[opcode];
    ++tally_->generated;
    failed_ = false;
    running = StrCat("--opcode=", ToString(opcode), " --seed=", seed, "\n", c.Text(true));
    alarm(kMaxSecondsOfCase);
    const Loaded constants = Load(c, true);
    if (!constants.error.empty()) {
      alarm(0);
      return false;
    }
    const Loaded module = Load(c, false);
    ++tally_->accepted;
    if (module.module == nullptr || !module.error.empty()) {
      Fail(StrCat("rejected with parameters: ", module.error));
    } else {
      CheckAccepted(c, *constants.module, *module.module);
    }
    alarm(0);
    return true;
  }

  void CheckAccepted(const DimensionNumbersCase& c, const Module& constants, const Module& module) {
    const std::vector<Literal> arguments = ArgumentsOf(constants, c.operands.size(), c.replicas * c.partitions);
    interp::EvaluatorOptions options;
    options.num_threads = 1;
    options.num_replicas = c.replicas;
    options.num_partitions = c.partitions;
    options.limits.max_bytes = kMaxBytes;
    options.limits.max_seconds = 5;
    const Instruction root = module.entry().root();
    if (interp::WorkOf(root) > kMaxWork) {
      // Without a comparison.
      std::string error;
      options.limits.max_seconds = 0.02;
      RunOn(interp::EngineKind::kExact, module, options, arguments, &error);
      return;
    }
    std::string error;
    const Results expected = RunOn(interp::EngineKind::kReference, module, options, arguments, &error);
    if (expected) {
      ++tally_->ran;
    } else if (!IsLimit(error) && !HasTrait(c.opcode, kCollective)) {
      // Only what devices send depends on values that do not fit.
      Fail(StrCat("no engine runs it: ", error));
      return;
    }
    Tolerances exact, fast;
    if (expected) SetTolerances(module, options, arguments, *expected, &exact, &fast);
    CompareRun(interp::EngineKind::kExact, module, options, arguments, expected, error, exact);
    CompareRun(interp::EngineKind::kFast, module, options, arguments, expected, error, fast);
    if (!expected) return;
    ComparePasses("algsimp", module, options, arguments, *expected, exact);
    for (const Rewriting& rewriting : kRewritings) {
      if (rewriting.opcode == c.opcode && !c.has_overlaps) {
        ComparePasses(rewriting.pipeline, module, options, arguments, *expected, exact);
      }
    }
    if (c.replicas * c.partitions == 1) ComparePasses("constant-folding", constants, options, {}, *expected, exact);
  }

  Results RunOn(interp::EngineKind kind, const Module& module, const interp::EvaluatorOptions& options,
                const std::vector<Literal>& arguments, std::string* error) {
    DiagnosticSink sink;
    Results results;
    std::unique_ptr<interp::Engine> engine;
    if (kind == interp::EngineKind::kFast) {
      // All loops are compiled, however small.
      const auto kernels = std::make_shared<interp::compiled::CompiledKernels>(
          interp::ObservationRequest(), interp::compiled::GroupOptions::OfAnySize(64));
      engine = PrepareWithKernels(kernels, module, options, &sink);
    } else {
      engine = interp::PrepareEngine(kind, module, options, &sink);
    }
    if (engine != nullptr) results = engine->Run(arguments, &sink);
    if (!results) *error = FirstErrorOf(sink);
    return results;
  }

  // By result leaf.
  using Tolerances = std::vector<interp::ErrorSpec>;

  static void SetTolerances(const Module& module, const interp::EvaluatorOptions& options,
                            const std::vector<Literal>& arguments, const std::vector<Literal>& expected,
                            Tolerances* exact, Tolerances* fast);
  void CompareRun(interp::EngineKind kind, const Module& module, const interp::EvaluatorOptions& options,
                  const std::vector<Literal>& arguments, const Results& expected, const std::string& why_none,
                  const Tolerances& tolerances);
  void ComparePasses(std::string_view text, const Module& module, const interp::EvaluatorOptions& options,
                     const std::vector<Literal>& arguments, const std::vector<Literal>& expected,
                     const Tolerances& tolerances);

  void Compare(std::string_view name, const std::vector<Literal>& actual, const std::vector<Literal>& expected,
               const Tolerances& tolerances);

  void Fail(const std::string& why) {
    if (std::exchange(failed_, true)) return;
    if (++tally_->failed <= 5) std::printf("%s\n%s\n", why.c_str(), running.c_str());
    std::fflush(stdout);
  }

  int Report() const {
    Tally all;
    bool tried_all = !tallies_.empty();
    for (const auto& [opcode, tally] : tallies_) {
      tried_all = tried_all && tally.ran > 0;
      std::printf("%-22s %7lld generated, %7lld accepted, %7lld ran, %7lld changed by passes, %lld failed\n",
                  std::string(ToString(opcode)).c_str(), static_cast<long long>(tally.generated),
                  static_cast<long long>(tally.accepted), static_cast<long long>(tally.ran),
                  static_cast<long long>(tally.rewritten), static_cast<long long>(tally.failed));
      all.generated += tally.generated;
      all.accepted += tally.accepted;
      all.ran += tally.ran;
      all.failed += tally.failed;
    }
    std::printf("%lld modules generated, %lld accepted, %lld ran, %lld failed\n", static_cast<long long>(all.generated),
                static_cast<long long>(all.accepted), static_cast<long long>(all.ran),
                static_cast<long long>(all.failed));
    if (!tried_all) std::printf("an opcode has no module that ran\n");
    return all.failed == 0 && tried_all ? 0 : 1;
  }

  uint64_t count_ = 1000, seed_ = 0, seconds_ = 0;
  std::optional<Opcode> opcode_;
  bool print_ = false;
  std::map<Opcode, Tally> tallies_;
  Tally* tally_ = nullptr;
  bool failed_ = false;  // the module in progress
};

void DimensionNumbersTest::SetTolerances(const Module& module, const interp::EvaluatorOptions& options,
                                         const std::vector<Literal>& arguments, const std::vector<Literal>& expected,
                                         Tolerances* exact, Tolerances* fast) {
  const Instruction root = module.entry().root();
  interp::EvaluatorOptions one = options;
  one.num_replicas = one.num_partitions = 1;
  interp::FastTolerance fast_tolerance(module, one);
  const size_t operands = static_cast<size_t>(root.operand_count());
  for (size_t k = 0; k < expected.size(); ++k) {
    // Of the operands of its device.
    const size_t device = k * static_cast<size_t>(options.num_replicas * options.num_partitions) / expected.size();
    const auto given = absl::MakeConstSpan(arguments).subspan(device * operands, operands);
    interp::ErrorSpec e = interp::EngineTolerance(root, given, expected[k]);
    if (!interp::HasDefinedValues(root.opcode(), given)) e.absolute = std::numeric_limits<double>::infinity();
    exact->push_back(e);
    interp::ErrorSpec f = HasTrait(root.opcode(), kCollective) ? e : fast_tolerance.Of(root, given, expected[k]);
    f.absolute = std::max(e.absolute, f.absolute);
    f.relative = std::max(e.relative, f.relative);
    f.ulp = std::max(e.ulp, f.ulp);
    fast->push_back(f);
  }
}

void DimensionNumbersTest::CompareRun(interp::EngineKind kind, const Module& module,
                                      const interp::EvaluatorOptions& options, const std::vector<Literal>& arguments,
                                      const Results& expected, const std::string& why_none,
                                      const Tolerances& tolerances) {
  const std::string_view name = kind == interp::EngineKind::kFast ? "the fast engine" : "the exact engine";
  std::string error;
  const Results actual = RunOn(kind, module, options, arguments, &error);
  if (actual.has_value() != expected.has_value()) {
    // Engines reach limits at different times.
    if (IsLimit(actual ? why_none : error)) return;
    Fail(actual ? StrCat("only the reference fails, not ", name, ": ", why_none) : StrCat(name, " fails: ", error));
    return;
  }
  if (actual) Compare(name, *actual, *expected, tolerances);
}

void DimensionNumbersTest::ComparePasses(std::string_view text, const Module& module,
                                         const interp::EvaluatorOptions& options, const std::vector<Literal>& arguments,
                                         const std::vector<Literal>& expected, const Tolerances& tolerances) {
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text);
  if (!pipeline.ok()) return Fail(StrCat(text, ": ", pipeline.status().ToString()));
  double declared = 0;
  for (const PassInfo* info : pipeline->passes()) declared = std::max(declared, info->tolerance);
  Module changed = module.Clone();
  const absl::StatusOr<Pipeline::Result> result = pipeline->Run(changed, WithEvaluator());
  if (!result.ok()) return Fail(StrCat(text, ": ", result.status().ToString()));
  if (!result->changed) return;
  ++tally_->rewritten;
  if (const std::string problem = Problems(changed); !problem.empty()) {
    return Fail(StrCat("after ", text, ": ", problem, "\n", ToString(changed)));
  }
  std::string error;
  const Results actual = RunOn(interp::EngineKind::kReference, changed, options, arguments, &error);
  if (!actual) {
    if (!IsLimit(error)) Fail(StrCat("after ", text, ": ", error, "\n", ToString(changed)));
    return;
  }
  if (declared == 0) return Compare(StrCat("after ", text), *actual, expected, tolerances);
  const std::string difference = interp::CompareResults(*actual, expected, interp::Tolerance::OfPass(declared));
  if (!difference.empty()) Fail(StrCat("after ", text, ": ", difference));
}

void DimensionNumbersTest::Compare(std::string_view name, const std::vector<Literal>& actual,
                                   const std::vector<Literal>& expected, const Tolerances& tolerances) {
  if (actual.size() != expected.size()) return Fail(StrCat(name, " returns another number of arrays"));
  for (size_t k = 0; k < actual.size(); ++k) {
    const auto compared = interp::CompareValues({&actual[k], 1}, {&expected[k], 1}, tolerances[k]);
    if (!compared.ok()) return Fail(StrCat(name, ": ", compared.status().ToString()));
    if (!compared->equal()) return Fail(StrCat(name, ": result ", k, ": ", compared->description));
  }
}

int Main(int argc, char** argv) {
  DimensionNumbersTest test;
  for (int i = 1; i < argc; ++i) {
    if (test.ParseFlag(argv[i])) continue;
    std::fprintf(stderr, "usage: dimension_numbers [--count=N] [--seed=N] [--seconds=N] [--opcode=NAME] [--print]\n");
    return 2;
  }
  return test.Run();
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Main(argc, argv); }
