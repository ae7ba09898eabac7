// SPDX-License-Identifier: Apache-2.0
// Profiles of traced programs, and their simulation on TPUs.
#include <pybind11/stl.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "python/binding/bindings.h"
#include "python/binding/handles.h"
#include "python/binding/torch_recorder.h"
#include "runtime/observe/profile_directory.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/profiler_server.h"
#include "simulator/export/profile_simulation.h"
#include "simulator/export/report_document.h"
#include "simulator/export/xplane.h"
#include "simulator/timing/device_selection.h"
#include "tracer/observe/profiling.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

constexpr int64_t kPlanes = 8;         // devices with planes
constexpr size_t kMaxEvents = 200000;  // of a profile

absl::StatusOr<std::unique_ptr<tpu::ProfileSimulation>> SimulateProfile(const runtime::Profile& profile,
                                                                        const std::string& device, int64_t replicas,
                                                                        bool measured, tpu::HostSystem host) {
  tpu::ProfileSimulation::Options options;
  options.replicas = replicas;
  options.host = host;
  options.times = measured ? tpu::HostTimes::kMeasured : tpu::HostTimes::kModeled;
  options.machine = [&](const Module& module) { return tpu::OptionsForDevice(device, module); };
  return tpu::ProfileSimulation::Create(profile, options);
}

std::string SpaceBytes(const tpu::ProfileSimulation& simulated) {
  tpu::ProfileSpace space = simulated.ToSpace(kPlanes, kMaxEvents);
  space.hostname = runtime::ProfileHostName();
  return tpu::XSpaceBytes(space);
}

// What a program did, as recorded.
struct RecordedProfile {
  runtime::Profile profile;
};

// The same on a simulated device.
struct SimulatedRun {
  std::shared_ptr<RecordedProfile> recorded;
  std::string device;
  std::unique_ptr<tpu::ProfileSimulation> simulation;
};

std::shared_ptr<SimulatedRun> SimulateRun(const std::shared_ptr<RecordedProfile>& recorded, const std::string& device,
                                          int64_t replicas, bool measured, const std::string& host) {
  if (host != "recorded" && host != "torch_xla") {
    Throw("RunError", absl::InvalidArgumentError(StrCat("host \"", host, "\": expected recorded or torch_xla")));
  }
  absl::StatusOr<std::unique_ptr<tpu::ProfileSimulation>> simulation =
      absl::InternalError("the profile was not simulated");
  {
    const py::gil_scoped_release release;
    simulation = SimulateProfile(recorded->profile, device, replicas, measured,
                                 host == "torch_xla" ? tpu::HostSystem::kTorchXla : tpu::HostSystem::kTracer);
  }
  if (absl::IsNotFound(simulation.status())) {
    Throw("RunError", absl::NotFoundError("nothing was executed: there is nothing to simulate"));
  }
  auto run = std::make_shared<SimulatedRun>();
  run->recorded = recorded;
  run->device = device;
  run->simulation = ValueOrThrow(std::move(simulation), "RunError");
  return run;
}

std::string Document(const SimulatedRun& run, const std::string& title) {
  const tpu::Replay& replay = run.simulation->replay();
  if (replay.plan.steps.empty()) {
    Throw("RunError", absl::FailedPreconditionError("the program marked no step: there is nothing to report on"));
  }
  tpu::ReportDocumentOptions options;
  options.title = title;
  options.tool = "hlokit.torch";
  const tpu::RecordedRun recorded = run.simulation->recorded_run();
  options.run = &recorded;
  const py::gil_scoped_release release;
  return tpu::ReportDocument(run.simulation->input(replay.main_program), run.simulation->plan(replay.main_program),
                             replay.plan, options);
}

std::string WriteProfile(const SimulatedRun& run, const std::string& logdir) {
  const std::filesystem::path directory =
      runtime::ProfileRunDirectory(logdir, runtime::ProfileRunName(run.recorded->profile.start_unix_ns));
  const absl::Status status =
      runtime::WriteProfileDirectory(directory, runtime::ProfileHostName(), SpaceBytes(*run.simulation));
  if (!status.ok()) Throw("RunError", status);
  return directory.string();
}

// A profiler that hlo-profile and TensorBoard capture from.
std::unique_ptr<runtime::ProfilerServer> Serve(int port, const std::string& device) {
  runtime::Profiler::SetThreadName("main");
  return ValueOrThrow(
      runtime::ProfilerServer::Start(port,
                                     [device](const runtime::Profile& profile) -> absl::StatusOr<std::string> {
                                       absl::StatusOr<std::unique_ptr<tpu::ProfileSimulation>> simulated =
                                           SimulateProfile(profile, device, 0, false, tpu::HostSystem::kTracer);
                                       if (!simulated.ok()) return simulated.status();
                                       return SpaceBytes(**simulated);
                                     }),
      "RunError");
}

// Open spans of this thread, innermost last.
struct Span {
  std::unique_ptr<lazy::StepSpan> step;
  std::unique_ptr<runtime::AnnotationSpan> span;
  std::unique_ptr<lazy::ScopedName> scope;
};
thread_local std::vector<Span> spans;

}  // namespace

void BindTracerProfile(py::module_& m) {
  py::class_<RecordedProfile, std::shared_ptr<RecordedProfile>>(m, "RecordedProfile", "What a program did.")
      .def("simulate", &SimulateRun, py::arg("device"), py::arg("replicas") = 0, py::arg("measured") = false,
           py::arg("host") = "recorded");
  py::class_<SimulatedRun, std::shared_ptr<SimulatedRun>>(m, "SimulatedRun",
                                                          "A recorded program on a simulated device.")
      .def_readonly("device", &SimulatedRun::device)
      .def_property_readonly("program_count", [](const SimulatedRun& r) { return r.simulation->program_count(); })
      .def("document", &Document, py::arg("title"))
      .def("write_profile", &WriteProfile, py::arg("logdir"));
  py::class_<runtime::ProfilerServer>(m, "ProfilerServer", "A profiler that serves until it is deleted.")
      .def_property_readonly("port", &runtime::ProfilerServer::port);
  m.def("_profiler_serve", &Serve, py::arg("port"), py::arg("device"));
  m.def("_profile_active", &runtime::Profiler::active);
  m.def(
      "_profile_thread", [](const std::string& name) { runtime::Profiler::SetThreadName(name); }, py::arg("name"));
  m.def("_profile_start", [] {
    runtime::Profiler::SetThreadName("main");
    if (absl::Status s = runtime::Profiler::Start(); !s.ok()) Throw("RunError", s);
  });
  m.def("_profile_stop", [] {
    return std::make_shared<RecordedProfile>(RecordedProfile{ValueOrThrow(runtime::Profiler::Stop(), "RunError")});
  });
  // `step` < 0: no step.
  m.def(
      "_push_span",
      [](const std::string& name, int64_t step, bool scope) {
        Span span;
        const ScopedUserFrame frame;  // the span has the line that opens it
        if (step >= 0) {
          span.step = std::make_unique<lazy::StepSpan>(name, step);
        } else {
          span.span = std::make_unique<runtime::AnnotationSpan>(name);
        }
        if (scope) span.scope = std::make_unique<lazy::ScopedName>(name);
        spans.push_back(std::move(span));
      },
      py::arg("name"), py::arg("step"), py::arg("scope"));
  m.def("_end_scope_of_span", [] {
    if (!spans.empty()) spans.back().scope.reset();
  });
  m.def("_pop_span", [] {
    if (spans.empty()) return;
    spans.back().scope.reset();
    spans.pop_back();
  });
}

}  // namespace hlokit::python
