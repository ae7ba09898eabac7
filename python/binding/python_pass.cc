// SPDX-License-Identifier: Apache-2.0
#include "python/binding/python_pass.h"

#include <map>
#include <utility>

#include "ir/core/str_cat.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

struct Registered {
  std::string summary;
  double tolerance;
  py::function function;
};

// By name; never destroyed, since functions outlive neither the interpreter nor its end.
std::map<std::string, Registered>& Passes() {
  static auto* const passes = new std::map<std::string, Registered>();
  return *passes;
}

class PythonPass : public Pass {
 public:
  PythonPass(PipelineRun* run, py::function function) : run_(*run), function_(std::move(function)) {}

  // Without the interpreter's lock, which a WorkScope has given up.
  absl::StatusOr<bool> Run(Module&) override {
    const CallScope call(run_.state->use());
    run_.state->Exchange(&run_.working);
    const int64_t edits = run_.state->edits();
    int64_t count = 0;
    bool changed = false;
    try {
      const py::object result = function_(run_.state);
      changed = !result.is_none() && py::bool_(result);
      if (py::isinstance<py::int_>(result) && !py::isinstance<py::bool_>(result)) count = result.cast<int64_t>();
    } catch (py::error_already_set&) {
      run_.error = std::current_exception();
    } catch (const py::cast_error&) {
      changed = true;  // a count beyond 64 bits
    }
    // A pass that edits and says that it did not would otherwise lose its edits.
    changed = changed || run_.state->edits() != edits;
    run_.state->Exchange(&run_.working);
    if (run_.error != nullptr) return absl::AbortedError("the pass raised an exception");
    if (count > 0) Count("matches replaced", count);
    return changed;
  }

 private:
  PipelineRun& run_;
  py::function function_;
};

}  // namespace

void RegisterPythonPass(const std::string& name, const std::string& summary, double tolerance, py::function function) {
  Passes()[name] = {summary, tolerance, std::move(function)};
}

PassRegistry RegistryWithPythonPasses(PipelineRun* run) {
  PassRegistry registry;
  for (const PassInfo* info : PassRegistry::Get().passes()) registry.Add(*info);
  for (const NamedPipeline& pipeline : PassRegistry::Get().pipelines()) registry.AddPipeline(pipeline);
  for (const auto& [name, pass] : Passes()) {
    PassInfo info;
    info.name = name;  // keys stay where they are
    info.category = "python";
    info.summary = pass.summary;
    info.tolerance = pass.tolerance;
    info.create = [run, function = pass.function]() -> std::unique_ptr<Pass> {
      return std::make_unique<PythonPass>(run, function);
    };
    registry.Add(std::move(info));
  }
  return registry;
}

py::dict PythonPasses() {
  py::dict result;
  for (const auto& [name, pass] : Passes()) result[ToStr(name)] = ToStr(pass.summary);
  return result;
}

}  // namespace hlokit::python
