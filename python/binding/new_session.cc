// SPDX-License-Identifier: Apache-2.0
#include "python/binding/new_session.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "interp/interface/engine.h"
#include "interp/program/engine_table.h"
#include "ir/core/str_cat.h"
#include "passes/core/pipeline.h"
#include "python/binding/interrupt.h"
#include "tracer/step/environment.h"
#include "tracer/step/partitioning.h"
#include "tracer/step/tracer.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

// How long a program waits for other processes, which may compute for long.
constexpr double kProcessSeconds = 1800;

// Of the devices of the network, one in each process.
constexpr uint64_t kWorldNumber = 1;

}  // namespace

Processes::Processes() : network_(ValueOrThrow(interp::ProcessNetwork::Listen(), "RunError")) {}

void Processes::Connect(int self, const std::vector<std::string>& addresses, double timeout_seconds) {
  absl::Status status;
  {
    const py::gil_scoped_release release;
    status = network_->Connect(self, addresses, timeout_seconds);
  }
  if (!status.ok()) Throw("RunError", status);
  std::vector<int> process_of;
  for (int p = 0; p < network_->size(); ++p) process_of.push_back(p);
  world_ = interp::NetworkWorld::Create(network_.get(), std::move(process_of), kWorldNumber, kProcessSeconds);
}

TracerPtr NewSession(int devices, const std::string& pipeline, bool debug, bool fake, int64_t replicas,
                     const std::string& engine, int num_threads, bool spmd,
                     const std::shared_ptr<Processes>& processes) {
  lazy::TracerOptions options;
  if (absl::Status s = lazy::ApplyEnvironment(environ, &options); !s.ok()) Throw("RunError", s);
  if (devices > 0) options.client.num_devices = devices;
  if (options.client.num_devices < 1 || options.client.num_devices > 1024 || replicas < 1) {
    throw py::value_error("a session has 1 to 1024 devices, and at least one replica");
  }
  if (spmd) {
    options.client.num_devices = 1;  // that of all
    options.client.platform = std::string(lazy::kSpmdPlatform);
  }
  const std::optional<interp::EngineKind> kind = interp::EngineKindOf(engine);
  if (!kind) throw py::value_error(interp::UnknownEngineMessage(engine));
  if (num_threads < 0 || num_threads > 1024) throw py::value_error("num_threads: expected 0 to 1024");
  if (absl::StatusOr<Pipeline> parsed = Pipeline::Parse(pipeline); !parsed.ok()) {
    throw py::value_error(StrCat("pipeline: ", std::string(parsed.status().message())));
  }
  options.client.engine = *kind;
  options.client.evaluator.num_threads = num_threads;
  if (pipeline != "default") options.client.pipeline = pipeline;  // that of the engine
  options.client.keep_lowered = true;
  options.client.evaluator.cancel = &CancelExecutions();
  options.client.defer_executions = fake;
  options.debug = options.debug || debug;
  options.explain_recompiles = true;
  options.replicas = replicas;
  if (processes != nullptr && processes->world() != nullptr) {
    if (options.client.num_devices != 1 || spmd || fake) {
      throw py::value_error("of several processes each has one device, with values");
    }
    if (!interp::RowOf(*kind).runs_in_processes) {
      throw py::value_error(StrCat("the engine ", engine, " runs no programs of several processes"));
    }
    options.client.evaluator.world = processes->world();
    options.replicas = processes->world()->size();
  }
  return std::make_shared<lazy::Tracer>(options);
}

void BindProcesses(py::module_& m) {
  py::class_<Processes, std::shared_ptr<Processes>>(m, "_Processes",
                                                    "Processes of one machine that run programs together.")
      .def(py::init<>())
      .def_property_readonly("address", &Processes::address)
      .def("connect", &Processes::Connect, py::arg("index"), py::arg("addresses"), py::arg("timeout"));
}

}  // namespace hlokit::python
