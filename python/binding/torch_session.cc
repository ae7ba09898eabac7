// SPDX-License-Identifier: Apache-2.0
// What hlokit.torch does with the values and metrics of a session beside recording: several values computed at once,
// barriers, seeds as values, annotations of shardings, the spans of loaders.
#include <pybind11/stl.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/metrics/metrics.h"
#include "python/binding/bindings.h"
#include "python/binding/handles.h"
#include "python/binding/interrupt.h"
#include "python/binding/torch_recorder.h"
#include "python/binding/torch_tensor.h"
#include "runtime/observe/profiler.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/ops/sharding.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

// Computes the tensors, those of one device by one program, and waits for them.
void Compute(const py::list& tensors) {
  struct Part {
    TracerPtr session;
    lazy::DeviceState* device;
    lazy::Tensors tensors;
  };
  std::vector<Part> parts;
  for (const py::handle object : tensors) {
    const LazyTensorObject& lazy = LazyTensorOf(object);
    lazy::DeviceState* const device = lazy.tensor.device();
    size_t p = 0;
    while (p < parts.size() && parts[p].device != device) ++p;
    if (p == parts.size()) parts.push_back({lazy.session, device, {}});
    lazy::RefreshView(lazy.tensor);
    parts[p].tensors.push_back(lazy.tensor);
  }
  for (const Part& part : parts) {
    std::optional<ScopedUserFrame> frame;
    if (RecordsLines(part.session->options())) frame.emplace();
    absl::Status status;
    {
      const InterruptibleSection section;
      const lazy::DeviceGuard guard(part.device);
      status = lazy::SyncTensors(*part.device, part.tensors, /*wait=*/true);
    }
    CheckInterrupt(*part.session);
    if (!status.ok()) {
      part.session->ClearStatus();
      Throw("RunError", status);
    }
  }
}

// Returns the token that depends on all collectives that the device has recorded: while it exists they all are part of
// what runs, also those whose results only other devices use.
py::object CollectiveToken(const TracerPtr& session, int ordinal) {
  lazy::DeviceState& device = DeviceOf(session, ordinal);
  lazy::DeviceLock lock(device.mutex());
  return LazyObject(device.CollectiveToken(), session);
}

// Returns the tensors as values that no pass knows to be them.
py::list Barrier(const py::list& tensors) {
  lazy::Tensors operands;
  for (const py::handle object : tensors) operands.push_back(LazyTensorOf(object).tensor);
  py::list result;
  if (operands.empty()) return result;
  const TracerPtr session = LazyTensorOf(tensors[0]).session;
  for (const lazy::Tensor& operand : operands) {
    if (operand.device() != operands[0].device()) throw py::value_error("a barrier is of tensors of one device");
  }
  const lazy::NoGradGuard no_grad;
  const lazy::DeviceGuard guard(operands[0].device());
  lazy::Outputs outputs = lazy::InvokeOpMultiOutput(lazy::Op::optimization_barrier, operands);
  outputs.resize(operands.size());
  for (lazy::Tensor& output : outputs) result.append(LazyObject(std::move(output), session));
  return result;
}

void MarkSharding(py::handle tensor, std::vector<int64_t> mesh, std::vector<int64_t> devices,
                  const lazy::PartitionSpec& spec) {
  const absl::Status status =
      lazy::MarkSharding(LazyTensorOf(tensor).tensor, {std::move(mesh), {}, std::move(devices)}, spec);
  if (!status.ok()) Throw("RunError", status);
}

// Returns (tiles, devices, whether the last dimension of tiles is that of copies); None of a tensor without annotation.
py::object ShardingOf(py::handle object) {
  const std::optional<lazy::Tiling> tiling = lazy::ShardingOf(LazyTensorOf(object).tensor);
  if (!tiling) return py::none();
  return py::make_tuple(tiling->tiles, tiling->devices, tiling->replicate_last, tiling->Text());
}

// A span of a profile with a metric of its time, and the flows that connect a loader's threads. `waits`: its time is
// that which passes, as it reads files or waits for processes, and not that of the processor.
class LoaderSpan {
 public:
  LoaderSpan(TracerPtr session, std::string name, std::string metric, std::optional<int64_t> consumes,
             std::optional<int64_t> produces, bool waits)
      : session_(std::move(session)),
        name_(std::move(name)),
        metric_(std::move(metric)),
        consumes_(consumes),
        produces_(produces),
        waits_(waits) {}

  LoaderSpan& Enter() {
    span_ = std::make_unique<runtime::TraceMe>(name_);
    if (consumes_) span_->Consumes(*consumes_);
    if (produces_) span_->Produces(*produces_);
    start_ = std::chrono::steady_clock::now();
    if (!metric_.empty()) timed_ = std::make_unique<runtime::TimedSection>(&session_->metrics(), metric_);
    return *this;
  }
  void Exit(const py::args&) {
    timed_.reset();
    if (span_ != nullptr && waits_) {
      span_->SetCost(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count());
    }
    span_.reset();
  }

 private:
  const TracerPtr session_;
  const std::string name_, metric_;
  const std::optional<int64_t> consumes_, produces_;
  const bool waits_;
  std::chrono::steady_clock::time_point start_;
  std::unique_ptr<runtime::TraceMe> span_;
  std::unique_ptr<runtime::TimedSection> timed_;
};

}  // namespace

void BindTorchSession(py::module_& m) {
  py::class_<LoaderSpan>(m, "_LoaderSpan", "A timed part of a loader's work, as a context.")
      .def(py::init<TracerPtr, std::string, std::string, std::optional<int64_t>, std::optional<int64_t>, bool>(),
           py::arg("session"), py::arg("name"), py::arg("metric"), py::arg("consumes"), py::arg("produces"),
           py::arg("waits") = false)
      .def("__enter__", &LoaderSpan::Enter, py::return_value_policy::reference)
      .def("__exit__", &LoaderSpan::Exit);
  m.def("_new_flow", &runtime::TraceMe::NewFlow);
  m.def(
      "_name_thread", [](const std::string& name) { runtime::Profiler::SetThreadName(name); }, py::arg("name"));
  m.def("_lazy_compute", &Compute, py::arg("tensors"));
  m.def("_lazy_mark_sharding", &MarkSharding, py::arg("tensor"), py::arg("mesh"), py::arg("devices"), py::arg("spec"));
  m.def("_lazy_collective_token", &CollectiveToken, py::arg("session"), py::arg("ordinal"));
  m.def(
      "_torch_before_read", [](py::object function) { TorchRecorder::Get().SetBeforeRead(std::move(function)); },
      py::arg("function"));
  m.def(
      "_lazy_clear_sharding", [](py::handle tensor) { lazy::ClearSharding(LazyTensorOf(tensor).tensor); },
      py::arg("tensor"));
  m.def("_lazy_sharding", &ShardingOf, py::arg("tensor"));
  m.def("_lazy_barrier", &Barrier, py::arg("tensors"));
  m.def(
      "_lazy_seed",
      [](const TracerPtr& session, int ordinal) {
        lazy::DeviceState& device = DeviceOf(session, ordinal);
        lazy::DeviceLock lock(device.mutex());
        return LazyObject(device.RunningSeed(), session);
      },
      py::arg("session"), py::arg("ordinal"));
  m.def(
      "_lazy_set_seed",
      [](py::handle seed) {
        const LazyTensorObject& lazy = LazyTensorOf(seed);
        if (lazy.tensor.dim() != 0 || lazy.tensor.shape().element_type() != ElementType::kS64) {
          throw py::value_error("a seed is a number of type int64");
        }
        lazy::DeviceState& device = *lazy.tensor.device();
        lazy::DeviceLock lock(device.mutex());
        device.SetRunningSeed(lazy.tensor);
      },
      py::arg("seed"));
  m.def(
      "_cancel_executions", [](bool cancel) { CancelExecutions() = cancel; }, py::arg("cancel"));
}

}  // namespace hlokit::python
