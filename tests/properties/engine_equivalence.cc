// SPDX-License-Identifier: Apache-2.0
// Checks that the exact engine agrees with the reference evaluator.
//
//   engine_equivalence [--random=N] [--seed=N] [--seconds=N] [--max-work=N] [--list] PATH…
//
// Modules are the .hlo files among and below the paths, and --random generated ones. A module has its arguments in
// NAME.args, one per line, or in the lines `input: …` of NAME.lits; without such a file they are generated.
//
// A module agrees if both engines return the same bits (NaN equals NaN), or both an error. If the bits differ, the
// reference evaluates each instruction on the operands that the exact engine had for it, and the two results may differ
// by the row of check/comparison/engine_ulps.h: such a module agrees within ulps. Modules whose work, by element
// counts, exceeds the limit of --max-work, or that take the reference longer than 10 s, are skipped and counted.
// --seconds ends the test early. Exit code 1 if any module differs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "check/comparison/engine_ulps.h"
#include "check/comparison/value_comparison.h"
#include "check/isolation/instruction_runner.h"
#include "interp/program/engine_table.h"
#include "interp/reference/evaluator.h"
#include "io/arrays/arguments.h"
#include "ir/core/first_error.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "tests/properties/module_walk.h"
#include "tests/random/value_round_trips.h"

namespace hlokit {
namespace {

constexpr double kMaxSeconds = 10;  // of a run of the reference

// Returns the arguments of a module file; nullopt if there is no file of them.
std::optional<std::string> ArgumentText(const std::string& module_path) {
  const std::string base = module_path.substr(0, module_path.size() - std::string_view(".hlo").size());
  if (std::optional<std::string> text = TextOfFile(base + ".args")) return text;
  const std::optional<std::string> lits = TextOfFile(base + ".lits");
  if (!lits) return std::nullopt;
  std::istringstream lines(*lits);
  std::string line, arguments;
  constexpr std::string_view kInput = "input:";
  while (std::getline(lines, line)) {
    if (line.starts_with(kInput)) StrAppend(&arguments, line.substr(kInput.size()), "\n");
  }
  return arguments;
}

class LocalCheck : public interp::ExecutionObserver {
 public:
  LocalCheck(const Module& module, reference::Evaluator* plain) : module_(module), plain_(*plain) {
    observation.instructions.assign(module.instruction_id_bound(), true);
    observation.operands = true;
  }
  interp::ObservationRequest observation;

  bool within_ulps() const { return within_ulps_; }  // results differ within their ulps
  const std::string& difference() const { return difference_; }

  absl::Status OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override {
    const Instruction at = module_.instruction(id);
    if (!reference::Evaluator::CanEvaluateOne(at)) return absl::OkStatus();
    std::vector<Literal> given;
    for (Instruction operand : at.operands()) {
      std::vector<Literal> leaves = interp::LeavesOf(operand.shape(), operands.subspan(given.size()));
      std::move(leaves.begin(), leaves.end(), std::back_inserter(given));
    }
    const std::vector<Literal> actual = interp::LeavesOf(at.shape(), values);
    const absl::StatusOr<std::vector<Literal>> expected = plain_.EvaluateOne(at, given);
    if (!expected.ok()) return Differs(at, std::string(expected.status().message()));
    if (expected->size() != actual.size()) return Differs(at, "another number of leaves");
    if (!interp::HasDefinedValues(at.opcode(), given)) return absl::OkStatus();
    for (size_t k = 0; k < actual.size(); ++k) {
      const absl::Span<const Literal> one(&actual[k], 1), other(&(*expected)[k], 1);
      const auto bits = interp::CompareValues(one, other, {});
      if (!bits.ok()) return Differs(at, std::string(bits.status().message()));
      if (bits->equal()) continue;
      const auto near = interp::CompareValues(one, other, interp::EngineTolerance(at.opcode(), given, (*expected)[k]));
      if (!near->equal()) return Differs(at, near->description);
      within_ulps_ = true;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Differs(Instruction at, std::string why) {
    difference_ = StrCat(at.name(), " (", at.opcode_text(), "): ", why);
    return absl::CancelledError("differs");
  }

  const Module& module_;
  reference::Evaluator& plain_;
  bool within_ulps_ = false;
  std::string difference_;
};

struct Tally {
  int64_t modules = 0, same_bits = 0, within_ulps = 0, both_fail = 0, too_large = 0, too_slow = 0, unread = 0,
          differ = 0;
  std::vector<bool> opcodes = std::vector<bool>(kOpcodeCount, false);
};

class EquivalenceTest {
 public:
  bool ParseFlag(std::string_view argument) {
    return walk_.ParseFlag(argument) || ModuleWalk::Number(argument, "--max-work=", &max_work_);
  }
  void set_list() { list_ = true; }

  int Run(const std::vector<std::string>& paths) {
    Tally tally;
    walk_.Run(
        paths,
        [&](WalkedModule m) {
          Check(m.name, std::move(m.text), m.is_file ? ArgumentText(m.name) : std::nullopt, m.mixed_precision, &tally);
        },
        [&](const std::string& path) { Report(path, std::exchange(tally, Tally())); });
    return differ_ == 0 ? 0 : 1;
  }

 private:
  void Check(const std::string& name, std::string text, std::optional<std::string> arguments,
             interp::MixedPrecisionMode mixed_precision, Tally* tally) {
    ++tally->modules;
    DiagnosticSink sink;
    const auto source = std::make_shared<const SourceBuffer>(name, std::move(text));
    const std::unique_ptr<Module> module = ParseModule(source, {}, &sink);
    if (module != nullptr) VerifyModule(*module, VerifierOptions(), &sink);
    if (module == nullptr || sink.has_errors()) return Skip(name, "is rejected", &tally->unread);
    double work = 0;
    for (Computation computation : module->computations()) {
      for (Instruction i : computation.instructions())
        work += HasTrait(i.opcode(), kControlFlow) ? 0 : interp::WorkOf(i);
    }
    if (work > static_cast<double>(max_work_)) return Skip(name, "is too large", &tally->too_large);

    random_test::AnyHost host;
    interp::EvaluatorOptions options;
    options.seed = 1;
    options.fill_elided = FillKind::kRandom;
    options.mixed_precision = mixed_precision;
    options.host_io = &host;
    options.limits.max_bytes = int64_t{1} << 30;
    options.limits.max_seconds = kMaxSeconds;
    DiagnosticSink exact_sink, plain_sink;
    const auto exact = interp::PrepareEngine(interp::EngineKind::kExact, *module, options, &exact_sink);
    const auto plain = interp::PrepareEngine(interp::EngineKind::kReference, *module, options, &plain_sink);
    std::optional<std::vector<Literal>> exact_results, plain_results;
    std::vector<Literal> values;
    const std::vector<Shape>* shapes = exact != nullptr ? &exact->argument_shapes() : nullptr;
    if (plain != nullptr) shapes = &plain->argument_shapes();
    if (shapes != nullptr && arguments) {
      const SourceBuffer lines("arguments", *arguments);
      DiagnosticSink argument_sink;
      std::optional<std::vector<Literal>> read =
          interp::ReadArguments(lines, *shapes, &module->context(), &argument_sink);
      if (!read) return Skip(name, "has other arguments", &tally->unread);
      values = std::move(*read);
    } else if (shapes != nullptr) {
      auto made = interp::MakeFakeArguments(*module, 1, {.num_threads = 1, .max_bytes = int64_t{1} << 30, .poll = {}});
      if (!made.ok()) return Skip(name, "has arguments of more than 1 GiB", &tally->unread);
      values = *std::move(made);
    }
    if (plain != nullptr) plain_results = plain->Run(values, &plain_sink);
    if (!plain_results && FirstErrorOf(plain_sink).find("the time limit") != std::string::npos) {
      return Skip(name, "is too slow", &tally->too_slow);
    }
    if (exact != nullptr) exact_results = exact->Run(values, &exact_sink);
    if (!plain_results || !exact_results) {
      if (!plain_results && !exact_results) {
        ++tally->both_fail;
      } else {
        Differ(name,
               plain_results ? StrCat("the exact engine fails: ", FirstErrorOf(exact_sink))
                             : StrCat("the plain evaluator fails: ", FirstErrorOf(plain_sink)),
               tally);
      }
      return;
    }
    for (Computation computation : module->computations()) {
      for (Instruction i : computation.instructions()) {
        if (i.opcode() != Opcode::kUnknown) tally->opcodes[static_cast<size_t>(i.opcode())] = true;
      }
    }
    const auto whole = interp::CompareValues(*exact_results, *plain_results, {});
    if (whole.ok() && whole->equal()) {
      ++tally->same_bits;
      return;
    }
    DiagnosticSink single_sink;
    const auto single = reference::Evaluator::Prepare(*module, options, &single_sink);
    LocalCheck local(*module, single.get());
    options.observer = &local;
    options.observation = local.observation;
    DiagnosticSink again_sink;
    if (const auto again = interp::PrepareEngine(interp::EngineKind::kExact, *module, options, &again_sink))
      again->Run(values, &again_sink);
    if (!local.difference().empty()) return Differ(name, local.difference(), tally);
    if (local.within_ulps()) {
      ++tally->within_ulps;
      return;
    }
    Differ(name, StrCat("each instruction agrees, the results do not: ", whole.ok() ? whole->description : "shapes"),
           tally);
  }

  void Skip(const std::string& name, std::string_view why, int64_t* count) {
    ++*count;
    if (list_) std::printf("%s: %.*s\n", name.c_str(), static_cast<int>(why.size()), why.data());
  }
  void Differ(const std::string& name, const std::string& why, Tally* tally) {
    ++tally->differ;
    if (++differ_ <= 40) std::printf("%s: %s\n", name.c_str(), why.c_str());
  }

  static void Report(const std::string& name, const Tally& t) {
    std::printf(
        "%s: %lld modules, %lld agree (%lld bit for bit, %lld within ulps, %lld both with an error), %lld differ; "
        "skipped: %lld too large, %lld too slow, %lld rejected; %lld of %zu opcodes ran\n",
        name.c_str(), static_cast<long long>(t.modules),
        static_cast<long long>(t.same_bits + t.within_ulps + t.both_fail), static_cast<long long>(t.same_bits),
        static_cast<long long>(t.within_ulps), static_cast<long long>(t.both_fail), static_cast<long long>(t.differ),
        static_cast<long long>(t.too_large), static_cast<long long>(t.too_slow), static_cast<long long>(t.unread),
        static_cast<long long>(std::count(t.opcodes.begin(), t.opcodes.end(), true)), kOpcodeCount);
    std::fflush(stdout);
  }

  ModuleWalk walk_;
  uint64_t max_work_ = 1'000'000'000;
  bool list_ = false;
  int64_t differ_ = 0;
};

int Main(int argc, char** argv) {
  EquivalenceTest test;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--list") {
      test.set_list();
    } else if (!argument.starts_with("--")) {
      paths.push_back(argv[i]);
    } else if (!test.ParseFlag(argument)) {
      std::fprintf(stderr,
                   "usage: engine_equivalence [--random=N] [--seed=N] [--seconds=N] [--max-work=N] [--list] PATH…\n");
      return 2;
    }
  }
  return test.Run(paths);
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Main(argc, argv); }
