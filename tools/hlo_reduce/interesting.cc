// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_reduce/interesting.h"

#include <re2/re2.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "check/bisection/pass_bisection.h"
#include "interp/exact/instruction_evaluator.h"
#include "interp/observers/value_summary.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"
#include "passes/core/pipeline.h"
#include "passes/query/query.h"
#include "tools/cli/text/regex.h"
#include "tools/cli/text/shell_word.h"
#include "tools/hlo_reduce/command.h"

namespace hlokit::reduce {
namespace {

// The exit code of a shell whose command was ended by a signal, less the signal, and the largest signal.
constexpr int kSignalBase = 128;
constexpr int kLastSignal = 64;
constexpr int kInternalError = 3;

// A command that reads the module from a file.
class CommandTest : public Test {
 public:
  CommandTest(std::string command, const TestFlags& flags, const std::atomic<bool>* cancel)
      : command_(std::move(command)), crash_(flags.crash) {
    options_.max_seconds = flags.max_seconds;
    options_.cancel = cancel;
    if (!flags.diagnostic.empty()) {
      diagnostic_ = std::make_unique<RE2>(flags.diagnostic, RE2::Quiet);
      options_.capture = true;
    }
  }
  ~CommandTest() override {
    std::error_code ignored;
    if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
  }

  absl::Status Prepare() {
    if (diagnostic_ != nullptr && !diagnostic_->ok()) {
      return absl::InvalidArgumentError(StrCat("--diagnostic: `", diagnostic_->pattern(), "`: ", diagnostic_->error()));
    }
    std::error_code error;
    std::string name = std::filesystem::temp_directory_path(error) / "hlo-reduce-XXXXXX";
    if (error || mkdtemp(name.data()) == nullptr) {
      return absl::InternalError(StrCat("cannot make a temporary directory `", name, "`"));
    }
    directory_ = name;
    return absl::OkStatus();
  }

  bool IsInteresting(std::string_view text) override {
    const std::string path = directory_ / StrCat("candidate-", next_++, ".hlo");
    {
      std::ofstream file(path, std::ios::binary);
      file << text;
      if (!file.flush()) return Fail(StrCat("cannot write ", path));
    }
    const absl::StatusOr<CommandOutcome> outcome = RunCommand(command_, path, options_);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    if (!outcome.ok()) return Fail(std::string(outcome.status().message()));
    if (outcome->timed_out || outcome->interrupted) return Note(outcome->timed_out ? "reached the time limit" : "");
    if (crash_) {
      const int code = outcome->exit_code;
      const int signal = outcome->signal != 0                                      ? outcome->signal
                         : code > kSignalBase && code <= kSignalBase + kLastSignal ? code - kSignalBase
                                                                                   : 0;
      Note(signal != 0 ? StrCat("ended by signal ", signal) : StrCat("exit code ", code));
      return signal != 0 || code == kInternalError;
    }
    if (diagnostic_ != nullptr) {
      Note(StrCat("exit code ", outcome->exit_code, ", without a match of the expression"));
      return RE2::PartialMatch(outcome->output, *diagnostic_);
    }
    Note(StrCat("exit code ", outcome->exit_code));
    return outcome->exit_code == 0;
  }

  std::string Finding() const override {
    const std::lock_guard lock(mutex_);
    return finding_;
  }

 private:
  bool Note(std::string text) {
    const std::lock_guard lock(mutex_);
    finding_ = std::move(text);
    return false;
  }
  bool Fail(std::string text) { return Note(std::move(text)); }

  const std::string command_;
  const bool crash_;
  std::unique_ptr<RE2> diagnostic_;
  CommandOptions options_;
  std::filesystem::path directory_;
  std::atomic<int64_t> next_ = 0;
  mutable std::mutex mutex_;
  std::string finding_;
};

// A test that runs the module in this process, on synthetic arguments.
class RunTest : public Test {
 public:
  explicit RunTest(const interp::EquivalenceOptions& run) : run_(run) {}

  std::function<std::vector<Literal>(const Module&)> Recorder() const override {
    return [this](const Module& module) { return interp::RecordEntryValues(module, run_); };
  }
  bool IsInteresting(std::string_view text) override {
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    if (!module.ok()) return false;
    const absl::StatusOr<std::string> found = Find(**module);
    const std::lock_guard lock(mutex_);
    finding_ = !found.ok() ? std::string(found.status().message()) : found->empty() ? Nothing() : *found;
    return found.ok() && !found->empty();
  }
  std::string Finding() const override {
    const std::lock_guard lock(mutex_);
    return finding_;
  }

 private:
  // Returns what is interesting in the module, "" if nothing is.
  virtual absl::StatusOr<std::string> Find(const Module& module) = 0;
  // Says what was looked for and not found.
  virtual std::string Nothing() const = 0;

  mutable std::mutex mutex_;
  std::string finding_;

 protected:
  // Returns the arguments of the run, and the flags that choose others.
  std::string ArgumentsText() const {
    return StrCat(run_.given != nullptr ? "the given arguments" : StrCat("the synthetic arguments of seed ", run_.seed),
                  "; --run-seed, --run-inputs and --run-special-values try others, --args and --args-npy yours, and "
                  "--test='hlo-run {} ...' any run");
  }

  const interp::EquivalenceOptions run_;
};

class DiffersTest : public RunTest {
 public:
  DiffersTest(std::string passes, const TestFlags& flags) : RunTest(flags.run), passes_(std::move(passes)) {
    options_.run = flags.run;
    options_.pipeline.context = interp::EvaluatingContext();
  }

 private:
  absl::StatusOr<std::string> Find(const Module& module) override {
    return interp::DifferenceAfter(module, passes_, options_);
  }
  std::string Nothing() const override {
    return StrCat("the results are the same after ", passes_, ", on ", ArgumentsText());
  }
  const std::string passes_;
  interp::BisectionOptions options_;
};

class NanTest : public RunTest {
 public:
  explicit NanTest(const TestFlags& flags) : RunTest(flags.run) {}

 private:
  absl::StatusOr<std::string> Find(const Module& module) override {
    const absl::StatusOr<interp::ResultSets> sets = interp::EvaluateOnFakeArguments(module, run_);
    if (!sets.ok()) return sets.status();
    for (const std::vector<Literal>& results : *sets) {
      for (size_t k = 0; k < results.size(); ++k) {
        // Results are arrays: tuples are taken apart.
        if (!results[k].shape().IsArray() || interp::Summarize(results[k].shape(), results[k].data()).nans == 0)
          continue;
        return StrCat("result ", k, " has a NaN");
      }
    }
    return std::string();
  }
  std::string Nothing() const override { return StrCat("no result has a NaN on ", ArgumentsText()); }
};

class PatternTest : public Test {
 public:
  explicit PatternTest(query::Query query) : query_(std::move(query)) {}
  bool IsInteresting(std::string_view text) override {
    const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    return module.ok() && !query_.Find(**module).empty();
  }
  std::string Finding() const override { return "no instruction matches"; }

 private:
  const query::Query query_;
};

// Returns the path of a tool that stands beside this one, or its name.
std::string ToolBeside(std::string_view name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = self.parent_path() / name;
  return !error && std::filesystem::exists(beside, error) ? beside.string() : std::string(name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Test>> MakeTest(const TestFlags& flags, const std::atomic<bool>* cancel) {
  for (const auto& [flag, text] :
       {std::pair("--passes", &flags.passes), {"--differs", flags.differs ? &*flags.differs : nullptr}}) {
    if (text == nullptr || text->empty()) continue;
    if (const absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(*text); !pipeline.ok()) {
      return absl::InvalidArgumentError(StrCat(flag, ": ", std::string(pipeline.status().message())));
    }
  }
  if (!flags.pattern.empty()) {
    absl::StatusOr<query::Query> query =
        query::Query::Parse(flags.pattern, flags.where, cli::CompileRegex, "--pattern", "--where");
    if (!query.ok()) return query.status();
    return std::make_unique<PatternTest>(*std::move(query));
  }
  if (flags.differs) return std::make_unique<DiffersTest>(*flags.differs, flags);
  if (flags.nan) return std::make_unique<NanTest>(flags);
  std::string command = flags.test;
  if (command.empty()) command = flags.command;
  if (command.empty()) {
    command = cli::ShellWord(ToolBeside("hlo-opt"));
    if (!flags.passes.empty()) StrAppend(&command, " ", cli::ShellWord(StrCat("--passes=", flags.passes)));
    command += " -o /dev/null {}";
  }
  auto test = std::make_unique<CommandTest>(std::move(command), flags, cancel);
  if (const absl::Status status = test->Prepare(); !status.ok()) return status;
  return test;
}

}  // namespace hlokit::reduce
