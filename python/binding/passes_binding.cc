// SPDX-License-Identifier: Apache-2.0
// Pipelines, and passes that are written in Python.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/equivalence/equivalence_check.h"
#include "interp/exact/instruction_evaluator.h"
#include "ir/core/str_cat.h"
#include "ir/verify/verifier.h"
#include "passes/annotations/text.h"
#include "passes/core/pipeline.h"
#include "passes/instrumentation/printing.h"
#include "passes/instrumentation/verify_each.h"
#include "python/binding/bindings.h"
#include "python/binding/python_pass.h"
#include "python/binding/regex.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

// Records what each pass did, and how long it took.
class Recorder : public PassInstrumentation {
 public:
  struct Entry {
    std::string name, place;
    bool changed;
    double seconds;
    std::vector<std::pair<std::string, int64_t>> counts;
  };

  absl::Status RunBeforePass(const PassRun& run, const Module&) override {
    before_.clear();
    for (const Pass::Statistic& s : run.pass.statistics()) before_.emplace_back(s.what, s.count);
    start_ = std::chrono::steady_clock::now();
    return absl::OkStatus();
  }
  absl::Status RunAfterPass(const PassRun& run, const Module&, bool changed) override {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    Entry entry{std::string(run.info.name), std::string(run.place), changed, seconds.count(), {}};
    for (const Pass::Statistic& s : run.pass.statistics()) {
      int64_t count = s.count;
      for (const auto& [what, earlier] : before_) count -= what == s.what ? earlier : 0;
      if (count != 0) entry.counts.emplace_back(s.what, count);
    }
    entries_.push_back(std::move(entry));
    return absl::OkStatus();
  }

  py::list ToPython() const {
    py::list result;
    for (const Entry& e : entries_) {
      py::dict counts;
      for (const auto& [what, count] : e.counts) counts[py::str(what)] = count;
      result.append(Make("PassStatistics", e.name, e.place, e.changed, e.seconds, counts));
    }
    return result;
  }

 private:
  std::vector<std::pair<std::string, int64_t>> before_;
  std::chrono::steady_clock::time_point start_;
  std::vector<Entry> entries_;
};

// Lets Ctrl-C end a pipeline between passes, and says which pass comes.
class ProgressMonitor : public PassInstrumentation {
 public:
  ProgressMonitor(PipelineRun* run, py::object progress, size_t passes)
      : run_(*run), progress_(std::move(progress)), passes_(passes) {}

  absl::Status RunBeforePass(const PassRun& run, const Module&) override {
    if (run_.error == nullptr) {
      const CallScope call(run_.state->use());
      try {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (!progress_.is_none()) progress_(run.number, std::max<int64_t>(run.number, passes_), ToStr(run.info.name));
      } catch (py::error_already_set&) {
        run_.error = std::current_exception();
      }
    }
    return run_.error == nullptr ? absl::OkStatus() : absl::CancelledError("interrupted");
  }

 private:
  PipelineRun& run_;
  py::object progress_;
  int64_t passes_;
};

// How a pipeline is watched, as with the flags of hlo-opt.
struct WatchOptions {
  bool verify_each;
  std::string print_changed;  // "", "full", "diff"
  std::optional<std::string> print_before, print_after;
  bool run_before_after;
  std::optional<std::string> run_tolerance;
  py::object write, progress;  // functions of Python
};

// Returns the predicate of a pattern of whole pass names; empty for none.
std::function<bool(std::string_view)> PassPattern(const std::optional<std::string>& pattern) {
  if (!pattern) return {};
  ValueOrThrow(CompileRegex(*pattern), "PassError");  // by itself: it may close our parenthesis
  return ValueOrThrow(CompileRegex(StrCat("^(?:", *pattern, ")$")), "PassError");
}

PrintIr::Options PrintingOf(const WatchOptions& watch) {
  PrintIr::Options printing;
  printing.before = PassPattern(watch.print_before);
  printing.after = PassPattern(watch.print_after);
  if (watch.print_changed.empty()) return printing;
  if (watch.print_changed != "full" && watch.print_changed != "diff") {
    throw py::value_error(StrCat("print_changed: \"", watch.print_changed, "\" is none of full and diff"));
  }
  printing.changes = watch.print_changed == "diff" ? PrintIr::Changes::kDiff : PrintIr::Changes::kFull;
  if (!printing.after) printing.after = [](std::string_view) { return true; };
  return printing;
}

// A pass in Python may run a pipeline, whose passes may: each level takes stack.
constexpr int kMaxNesting = 16;
thread_local int nesting = 0;

class NestingScope {
 public:
  NestingScope() {
    if (nesting >= kMaxNesting) Throw("PassError", StrCat("pipelines within passes are nested ", nesting, " deep"));
    ++nesting;
  }
  ~NestingScope() { --nesting; }
  NestingScope(const NestingScope&) = delete;
  NestingScope& operator=(const NestingScope&) = delete;
};

// How results before and after a pass are compared.
interp::EquivalenceOptions ComparisonOf(const WatchOptions& watch) {
  interp::EquivalenceOptions options;
  if (watch.run_tolerance) {
    options.tolerance = ValueOrThrow(interp::Tolerance::Parse(*watch.run_tolerance), "PassError");
  }
  return options;
}

// Runs a pipeline on a clone, and gives the module its contents if all passes succeed.
py::object RunPipeline(const ModulePtr& state, const std::string& text, bool stats, const WatchOptions& watch) {
  const NestingScope nested;
  PipelineRun run{state, nullptr, nullptr};
  const PassRegistry registry = RegistryWithPythonPasses(&run);
  Pipeline pipeline = ValueOrThrow(Pipeline::Parse(text, registry), "PassError");
  PrintIr print(PrintingOf(watch), [&](std::string_view printed) {
    if (run.error != nullptr) return;
    const CallScope call(state->use());
    try {
      watch.write(ToStr(printed));
    } catch (py::error_already_set&) {
      run.error = std::current_exception();
    }
  });
  interp::EquivalenceCheck compare(ComparisonOf(watch));
  Recorder recorder;
  VerifyEach verify({});
  ProgressMonitor monitor(&run, watch.progress, pipeline.passes().size());
  std::vector<PassInstrumentation*> instruments = {&monitor, &print};
  if (watch.run_before_after) instruments.push_back(&compare);
  instruments.push_back(&recorder);  // the others' time before a pass is not the pass's
  if (watch.verify_each) instruments.push_back(&verify);
  PipelineOptions options;
  options.context = interp::EvaluatingContext();
  options.context.compile_regex = CompileRegex;
  state->edit();  // throws where the module does not change
  run.working = std::make_unique<Module>(state->valid().Clone());
  absl::StatusOr<Pipeline::Result> result;
  {
    const WorkScope work(state, StrCat("the pipeline `", text, "`"));
    Module& working = *run.working;
    ReadMetadataSources(working);
    result = pipeline.Run(working, options, instruments);
    if (result.ok()) WriteMetadataSources(working);
  }
  if (!result.ok() || run.error != nullptr) {
    // Handles of what the failed passes added stay dead.
    state->ReserveIds(*run.working);
    if (run.error != nullptr) std::rethrow_exception(run.error);
    Throw("PassError", result.status());
  }
  if (result->changed) state->Replace(std::move(run.working));
  if (watch.run_before_after && !compare.Uncompared().empty()) {
    DiagnosticSink warnings;
    warnings.Warning(DiagnosticKind::kEvaluation, {}, StrCat("run_before_after: ", compare.Uncompared()));
    const SourceBuffer none("", "");
    py::module_::import("hlokit._errors").attr("warn")(ToStr(RenderJson(warnings, none)));
  }
  if (stats) return recorder.ToPython();
  return py::bool_(result->changed);
}

}  // namespace

void BindPasses(py::module_& m) {
  auto type = py::reinterpret_borrow<py::class_<ModuleState, ModulePtr>>(m.attr("Module"));
  type.def(
      "_run",
      [](const ModulePtr& state, const std::string& pipeline, bool stats, bool verify_each,
         const std::string& print_changed, std::optional<std::string> print_before,
         std::optional<std::string> print_after, bool run_before_after, std::optional<std::string> run_tolerance,
         py::object write, py::object progress) {
        return RunPipeline(state, pipeline, stats,
                           {verify_each, print_changed, std::move(print_before), std::move(print_after),
                            run_before_after, std::move(run_tolerance), std::move(write), std::move(progress)});
      },
      py::arg("pipeline"), py::arg("stats"), py::arg("verify_each"), py::arg("print_changed"), py::arg("print_before"),
      py::arg("print_after"), py::arg("run_before_after"), py::arg("run_tolerance"), py::arg("write"),
      py::arg("progress"));
  m.def("_register_pass", &RegisterPythonPass, py::arg("name"), py::arg("summary"), py::arg("tolerance"),
        py::arg("function"));
  m.def(
      "_is_library_pass",
      [](const std::string& name) {
        return PassRegistry::Get().Find(name) != nullptr || PassRegistry::Get().FindPipeline(name) != nullptr;
      },
      py::arg("name"));
  m.def(
      "passes",
      [] {
        py::dict result;
        for (const PassInfo* pass : PassRegistry::Get().passes()) result[ToStr(pass->name)] = ToStr(pass->summary);
        for (const NamedPipeline& p : PassRegistry::Get().pipelines()) result[ToStr(p.name)] = ToStr(p.summary);
        for (const auto& [name, summary] : PythonPasses()) result[name] = summary;
        return result;
      },
      "The passes and named pipelines, those in Python last, with a line about each.");
}

}  // namespace hlokit::python
