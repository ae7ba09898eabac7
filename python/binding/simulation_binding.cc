// SPDX-License-Identifier: Apache-2.0
// The simulated TPU.
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "passes/rewrite/type_conversion.h"
#include "python/binding/bindings.h"
#include "python/binding/values.h"
#include "simulator/export/report_document.h"
#include "simulator/report/report.h"
#include "simulator/report/simulated_module.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/device_selection.h"
#include "simulator/timing/host.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

// Converts the floats of a program to one type. Throws ValueError, and EditError where it depends on its types.
void ConvertFloats(const std::string& name, Module* module) {
  const std::optional<ElementType> type = ComputeTypeFromText(name);
  if (!type) throw py::value_error(StrCat("dtype: \"", name, "\" is none of f64, f32, f16 and bf16"));
  DiagnosticSink sink;
  if (!ConvertComputeTypes(module, *type, &sink)) Throw("EditError", sink, SourceBuffer("<module>", ""));
}

// Returns the report as JSON; with `host` the document of the page, which has the host's work too.
std::string Simulated(const ModulePtr& state, const std::string& device, const std::string& pipeline,
                      int64_t trip_count, bool memory, const std::vector<std::pair<std::string, double>>& scale,
                      const std::optional<std::string>& dtype, const std::optional<std::string>& host) {
  const Module& original = state->valid();
  absl::StatusOr<tpu::SimulationOptions> options = tpu::OptionsForDevice(device, original);
  if (!options.ok()) throw py::value_error(StrCat("device: ", std::string(options.status().message())));
  constexpr int64_t kMaxTripCount = int64_t{1} << 40;
  if (trip_count < 0 || trip_count > kMaxTripCount) {
    throw py::value_error(StrCat("trip_count is from 0 to ", kMaxTripCount));
  }
  options->default_trip_count = trip_count;
  for (const auto& [name, factor] : scale) {
    const absl::Status status = tpu::ScaleParameter(name, factor, &options->machine);
    if (!status.ok()) throw py::value_error(StrCat("scale: ", std::string(status.message())));
  }
  std::optional<tpu::HostModel> plan;
  if (host) {
    absl::StatusOr<tpu::HostModel> parsed =
        tpu::ParseHostModel(*host, options->machine.queued_dispatch_latency, options->machine.host_rate);
    if (!parsed.ok()) throw py::value_error(StrCat("host: ", std::string(parsed.status().message())));
    plan = *std::move(parsed);
  }
  Module compiled = original.Clone();
  if (dtype) ConvertFloats(*dtype, &compiled);
  const Module source = compiled.Clone();
  absl::Status status;
  std::string json;
  {
    const WorkScope work(state, "a simulation");
    status = tpu::Compile(*options, pipeline, &compiled);
    if (status.ok()) {
      const tpu::SimulatedModule simulated(compiled, *options);
      const tpu::ReportInput input = simulated.Input(&source, pipeline);
      if (plan) {
        tpu::ReportDocumentOptions document;
        document.tool = "hlokit.simulate";
        json = tpu::ReportDocument(input, simulated.plan, *plan, document);
      } else {
        json = tpu::ReportJson(input, memory);
      }
    }
  }
  if (!status.ok()) Throw("PassError", status);
  return json;
}

}  // namespace

void BindSimulation(py::module_& m) {
  m.def("_simulate", &Simulated, py::arg("module"), py::arg("device"), py::arg("pipeline"), py::arg("trip_count"),
        py::arg("memory"), py::arg("scale"), py::arg("dtype"), py::arg("host"));
  m.def(
      "devices",
      [] {
        py::list names;
        for (const std::string_view name : tpu::BuiltinDeviceDescriptions()) names.append(ToStr(name));
        return names;
      },
      "Names of the simulated devices, which take chips after a colon: \"v5p:4x4x4\".");
}

}  // namespace hlokit::python
