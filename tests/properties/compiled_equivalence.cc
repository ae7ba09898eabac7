// SPDX-License-Identifier: Apache-2.0
// Checks the fast engine against the exact one, or against the reference.
//
//   compiled_equivalence [--reference] [--random=N] [--seed=N] [--seconds=N] [--minimum-loops=N] [--minimum-random=N]
//       PATH…
//
// Modules are the .hlo files among and below the paths, and --random generated ones, with generated arguments. All
// loops are compiled, however small. Of each module
//
//   - fused loops must give the bits of loops of single instructions (any NaN equals any other): fusion changes
//   nothing;
//   - so must runs on one, two, three and eight threads;
//   - loops of single instructions must give the bits of the other engine, or each instruction, run by itself on the
//     values that its operands have in the other engine, must be within the bounds of docs/engine.md.
//
// Exit code 1 if any module differs, if fewer loops than --minimum-loops were compiled (without the module of LLVM the
// comparisons hold of themselves), or if fewer random modules than --minimum-random ran on both engines.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "check/comparison/engine_ulps.h"
#include "check/comparison/value_comparison.h"
#include "check/isolation/fast_tolerance.h"
#include "check/isolation/instruction_runner.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/compiled/products/product_error.h"
#include "interp/exact/evaluator.h"
#include "interp/program/engine_table.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "ir/types/float_types.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "tests/properties/module_walk.h"
#include "tests/properties/with_kernels.h"
#include "tests/random/value_round_trips.h"

namespace hlokit {
namespace {

using interp::compiled::CompiledKernels;
using interp::compiled::kMeasuredUnits;
using interp::compiled::ProductDifferenceUnits;

// Compares each instruction of a run on another engine with the same in the fast engine.
class LocalComparison : public interp::ExecutionObserver {
 public:
  // `base`: the engine of the run.
  LocalComparison(const Module& module, interp::EngineKind base, const interp::EvaluatorOptions& options)
      : module_(module),
        base_(base),
        tolerance_(module, options),
        fast_(module, interp::EngineKind::kFast, options, /*alone=*/true) {
    observation.instructions.assign(module.instruction_id_bound(), true);
    observation.operands = true;
  }
  interp::ObservationRequest observation;
  const std::string& difference() const { return difference_; }

  absl::Status OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override {
    const Instruction at = module_.instruction(id);
    if (fast_.Classify(at) != interp::Runnable::kYes || HasTrait(at.opcode(), kImpure) ||
        HasTrait(at.opcode(), kSideEffect) || HasTrait(at.opcode(), kControlFlow)) {
      return absl::OkStatus();
    }
    std::vector<Literal> given;
    for (Instruction operand : at.operands()) {
      std::vector<Literal> leaves = interp::LeavesOf(operand.shape(), operands.subspan(given.size()));
      std::move(leaves.begin(), leaves.end(), std::back_inserter(given));
    }
    const std::vector<Literal> expected = interp::LeavesOf(at.shape(), values);
    const absl::StatusOr<std::vector<Literal>> actual = fast_.Run(at, given);
    if (!actual.ok()) return Differs(at, std::string(actual.status().message()));
    if (expected.size() != actual->size()) return Differs(at, "another number of leaves");
    if (!interp::HasDefinedValues(at.opcode(), given)) return absl::OkStatus();
    for (size_t k = 0; k < expected.size(); ++k) {
      const bool sums = at.opcode() == Opcode::kDot || at.opcode() == Opcode::kConvolution;
      interp::ErrorSpec bounds;
      if (!sums) bounds = tolerance_.Of(at, given, expected[k]);
      if (base_ == interp::EngineKind::kReference) {
        // As far as the fast engine from the exact one, or the exact one from the reference.
        const interp::ErrorSpec exact = interp::EngineTolerance(at.opcode(), given, expected[k]);
        bounds.absolute = std::max(bounds.absolute, exact.absolute);
        bounds.relative = std::max(bounds.relative, exact.relative);
        bounds.ulp = std::max(bounds.ulp, exact.ulp);
      }
      const absl::Span<const Literal> one(&(*actual)[k], 1), other(&expected[k], 1);
      const auto compared = interp::CompareValues(one, other, bounds);
      if (!compared.ok()) return Differs(at, std::string(compared.status().message()));
      if (compared->equal()) continue;
      if (!sums || !WithinTerms(at, given, (*actual)[k], expected[k])) return Differs(at, compared->description);
    }
    return absl::OkStatus();
  }

 private:
  // Returns true if each element is within the bound of its number of terms, and what two kernels differ by on random
  // terms, and a rounding of narrower types.
  bool WithinTerms(Instruction at, absl::Span<const Literal> operands, const Literal& actual, const Literal& expected) {
    const absl::StatusOr<std::vector<Literal>> terms = tolerance_.OnMagnitudes(at, operands);
    if (!terms.ok()) return false;
    const int64_t count = interp::FastTolerance::TermsOf(at);
    const double units = std::min(ProductDifferenceUnits(count), 2 * kMeasuredUnits);
    bool within = IsFloat(expected.shape().element_type());
    VisitType(expected.shape().element_type(), [&]<typename T>(std::type_identity<T>) {
      if constexpr (AnyFloat<T>) {
        const absl::Span<const T> a_of = actual.values<T>(), e_of = expected.values<T>(),
                                  t_of = (*terms)[0].values<T>();
        for (size_t i = 0; i < e_of.size() && within; ++i) {
          const double a = static_cast<double>(a_of[i]), e = static_cast<double>(e_of[i]);
          const double t = static_cast<double>(t_of[i]);
          if (a == e || (std::isnan(a) && std::isnan(e))) continue;
          // Sums that overflow in one order may not in another.
          if (!std::isfinite(t) || t > 0x1p126) continue;
          double bound = std::ldexp(units * t, -24) + 0x1p-140;
          if (sizeof(T) < sizeof(float)) {
            constexpr int kDigits = std::numeric_limits<T>::digits;
            bound += std::ldexp(std::max(std::fabs(a), std::fabs(e)), 1 - kDigits) +
                     static_cast<double>(std::numeric_limits<T>::denorm_min());
          }
          within = std::fabs(a - e) <= bound;
        }
      }
    });
    return within;
  }

  absl::Status Differs(Instruction at, std::string why) {
    difference_ = StrCat(at.name(), " (", at.opcode_text(), "): ", why);
    return absl::CancelledError("differs");
  }

  const Module& module_;
  const interp::EngineKind base_;
  interp::FastTolerance tolerance_;
  interp::InstructionRunner fast_;
  std::string difference_;
};

class CompiledEquivalenceTest {
 public:
  bool ParseFlag(std::string_view argument) {
    if (argument == "--reference") {
      base_ = interp::EngineKind::kReference;
      return true;
    }
    return walk_.ParseFlag(argument) || ModuleWalk::Number(argument, "--minimum-loops=", &minimum_loops_) ||
           ModuleWalk::Number(argument, "--minimum-random=", &minimum_random_);
  }

  int Run(const std::vector<std::string>& paths) {
    walk_.Run(paths, [&](WalkedModule m) {
      const int64_t ran = same_bits_ + within_bounds_ + differ_;
      Check(m.name, std::move(m.text), m.mixed_precision);
      if (!m.is_file) random_ran_ += same_bits_ + within_bounds_ + differ_ - ran;
    });
    std::printf(
        "%lld modules: %lld with the bits of the %s, %lld within bounds, %lld with an error in both, "
        "%lld skipped, %lld differ; %lld random modules ran on both; %lld loops compiled\n",
        static_cast<long long>(modules_), static_cast<long long>(same_bits_),
        base_ == interp::EngineKind::kReference ? "reference" : "exact engine", static_cast<long long>(within_bounds_),
        static_cast<long long>(both_fail_), static_cast<long long>(skipped_), static_cast<long long>(differ_),
        static_cast<long long>(random_ran_), static_cast<long long>(loops_));
    if (loops_ == 0) std::printf("no loop was compiled: the module for LLVM is missing or of another build\n");
    if (static_cast<uint64_t>(random_ran_) < minimum_random_) {
      std::printf("fewer than %llu random modules ran (--minimum-random)\n",
                  static_cast<unsigned long long>(minimum_random_));
      return 1;
    }
    if (static_cast<uint64_t>(loops_) < minimum_loops_) {
      std::printf("fewer than %llu loops compiled (--minimum-loops)\n",
                  static_cast<unsigned long long>(minimum_loops_));
      return 1;
    }
    return differ_ == 0 ? 0 : 1;
  }

 private:
  // Runs the module with loops of up to `max_members` instructions; 0: on the engine to compare with. Code is compiled
  // once while an engine of `kept` has it.
  std::optional<std::vector<Literal>> RunWith(const Module& module, interp::EvaluatorOptions options, int max_members,
                                              int threads, const std::vector<Literal>& values,
                                              std::vector<std::unique_ptr<interp::Engine>>* kept, std::string* error) {
    std::shared_ptr<CompiledKernels> kernels;
    if (max_members > 0) {
      kernels = std::make_shared<CompiledKernels>(interp::ObservationRequest(),
                                                  interp::compiled::GroupOptions::OfAnySize(max_members));
    }
    random_test::AnyHost host;
    options.host_io = &host;
    options.num_threads = threads;
    DiagnosticSink sink;
    std::optional<std::vector<Literal>> results;
    std::unique_ptr<interp::Engine> engine = kernels != nullptr ? PrepareWithKernels(kernels, module, options, &sink)
                                                                : interp::PrepareEngine(base_, module, options, &sink);
    if (engine != nullptr) {
      results = engine->Run(values, &sink);
      kept->push_back(std::move(engine));
    }
    if (!results && !sink.diagnostics().empty()) *error = sink.diagnostics().back().message;
    if (kernels != nullptr) loops_ += kernels->statistics().compiled;
    return results;
  }

  void Check(const std::string& name, std::string text, interp::MixedPrecisionMode mixed_precision) {
    ++modules_;
    DiagnosticSink sink;
    const auto source = std::make_shared<const SourceBuffer>(name, std::move(text));
    const std::unique_ptr<Module> module = ParseModule(source, {}, &sink);
    if (module != nullptr) VerifyModule(*module, VerifierOptions(), &sink);
    if (module == nullptr || sink.has_errors()) {
      ++skipped_;
      return;
    }
    double work = 0;
    for (Computation computation : module->computations()) {
      for (Instruction i : computation.instructions()) {
        work += HasTrait(i.opcode(), kControlFlow) ? 0 : interp::WorkOf(i);
      }
    }
    std::vector<std::unique_ptr<interp::Engine>> kept;
    auto values = interp::MakeFakeArguments(*module, 1, {.num_threads = 1, .max_bytes = int64_t{1} << 28, .poll = {}});
    constexpr double kMaxWork = 1e8;
    if (work > kMaxWork || !values.ok()) {
      ++skipped_;
      return;
    }
    interp::EvaluatorOptions options;
    options.seed = 1;
    options.fill_elided = FillKind::kRandom;
    options.mixed_precision = mixed_precision;
    options.limits.max_bytes = int64_t{1} << 30;
    options.limits.max_seconds = 60;
    std::string error;
    const auto base = RunWith(*module, options, 0, 1, *values, &kept, &error);
    const auto fused = RunWith(*module, options, 64, 3, *values, &kept, &error);
    if (base_ == interp::EngineKind::kReference && base && fused) {
      // The comparison with the exact engine looks at single instructions too.
      const auto same = interp::CompareValues(*fused, *base, {});
      if (same.ok() && same->equal()) {
        ++same_bits_;
        return;
      }
    }
    const auto single = RunWith(*module, options, 1, 1, *values, &kept, &error);
    if (!base && !single && !fused) {
      ++both_fail_;
      return;
    }
    if (!base || !single || !fused) return Differ(name, StrCat("one engine fails: ", error));
    const auto fusion = interp::CompareValues(*fused, *single, {});
    if (!fusion.ok() || !fusion->equal()) {
      return Differ(name, StrCat("fused: ", fusion.ok() ? fusion->description : "shapes"));
    }
    for (const int threads : {2, 8}) {
      const auto more = RunWith(*module, options, 64, threads, *values, &kept, &error);
      if (!more) return Differ(name, StrCat("on ", threads, " threads it fails: ", error));
      const auto threaded = interp::CompareValues(*more, *fused, {});
      if (!threaded.ok() || !threaded->equal()) {
        return Differ(name, StrCat("on ", threads, " threads: ", threaded.ok() ? threaded->description : "shapes"));
      }
    }
    const auto whole = interp::CompareValues(*single, *base, {});
    if (whole.ok() && whole->equal()) {
      ++same_bits_;
      return;
    }
    options.limits.max_seconds = 60;  // each instruction runs once more, by itself
    LocalComparison local(*module, base_, options);
    options.observer = &local;
    options.observation = local.observation;
    random_test::AnyHost host;
    options.host_io = &host;
    DiagnosticSink again_sink;
    const auto again = interp::PrepareEngine(base_, *module, options, &again_sink);
    const bool ran = again != nullptr && again->Run(*values, &again_sink).has_value();
    if (!local.difference().empty()) return Differ(name, local.difference());
    if (!ran) {
      const auto& reports = again_sink.diagnostics();
      return Differ(name, StrCat("the observed run fails: ", reports.empty() ? "" : reports.back().message));
    }
    ++within_bounds_;
  }

  void Differ(const std::string& name, const std::string& why) {
    if (++differ_ <= 40) std::printf("%s: %s\n", name.c_str(), why.c_str());
  }

  ModuleWalk walk_;
  interp::EngineKind base_ = interp::EngineKind::kExact;  // the engine to compare with
  uint64_t minimum_loops_ = 0, minimum_random_ = 0;
  int64_t modules_ = 0, same_bits_ = 0, within_bounds_ = 0, both_fail_ = 0, skipped_ = 0, differ_ = 0, loops_ = 0,
          random_ran_ = 0;
};

int Main(int argc, char** argv) {
  CompiledEquivalenceTest test;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with("--")) {
      paths.push_back(argv[i]);
    } else if (!test.ParseFlag(argument)) {
      std::fprintf(stderr,
                   "usage: compiled_equivalence [--reference] [--random=N] [--seed=N] [--seconds=N] "
                   "[--minimum-loops=N] [--minimum-random=N] PATH…\n");
      return 2;
    }
  }
  return test.Run(paths);
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Main(argc, argv); }
