// SPDX-License-Identifier: Apache-2.0
// Pipelines, and passes that are written in Python.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/exact/instruction_evaluator.h"
#include "ir/core/str_cat.h"
#include "ir/verify/verifier.h"
#include "passes/annotations/text.h"
#include "passes/core/pipeline.h"
#include "passes/instrumentation/verify_each.h"
#include "python/binding/bindings.h"
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

// Runs a pipeline on a clone, and gives the module its contents if all passes succeed.
py::object RunPipeline(const ModulePtr& state, const std::string& text, bool stats, bool verify_each) {
  Pipeline pipeline = ValueOrThrow(Pipeline::Parse(text), "PassError");
  auto changed = std::make_unique<Module>(state->read().Clone());
  Recorder recorder;
  VerifyEach verify({});
  std::vector<PassInstrumentation*> instruments = {&recorder};
  if (verify_each) instruments.push_back(&verify);
  PipelineOptions options;
  options.context = interp::EvaluatingContext();
  options.context.compile_regex = CompileRegex;
  absl::StatusOr<Pipeline::Result> result;
  {
    const WorkScope work(state, StrCat("the pipeline `", text, "`"));
    ReadMetadataSources(*changed);
    result = pipeline.Run(*changed, options, instruments);
    if (result.ok()) WriteMetadataSources(*changed);
  }
  if (!result.ok()) Throw("PassError", result.status());
  if (result->changed) state->Replace(std::move(changed));
  if (stats) return recorder.ToPython();
  return py::bool_(result->changed);
}

}  // namespace

void BindPasses(py::module_& m) {
  auto type = py::reinterpret_borrow<py::class_<ModuleState, ModulePtr>>(m.attr("Module"));
  type.def("_run", &RunPipeline, py::arg("pipeline"), py::arg("stats"), py::arg("verify_each"));
  type.def("_restore", [](const ModulePtr& state, const ModulePtr& before) {
    state->edit();
    state->Replace(std::make_unique<Module>(before->read().Clone()));
  });
  m.def("_check_pipeline",
        [](const std::string& text) { return ValueOrThrow(Pipeline::Parse(text), "PassError").ToString(); });
  m.def(
      "passes",
      [] {
        py::dict result;
        for (const PassInfo* pass : PassRegistry::Get().passes()) result[ToStr(pass->name)] = ToStr(pass->summary);
        for (const NamedPipeline& p : PassRegistry::Get().pipelines()) result[ToStr(p.name)] = ToStr(p.summary);
        return result;
      },
      "The passes and named pipelines, with a line about each.");
}

}  // namespace hlokit::python
