// SPDX-License-Identifier: Apache-2.0
// Sessions of the lazy tracer, and what hlokit.torch needs of it.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "python/binding/bindings.h"
#include "python/binding/handles.h"
#include "python/binding/interrupt.h"
#include "python/binding/new_session.h"
#include "python/binding/torch_recorder.h"
#include "python/binding/torch_tensor.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/scope.h"
#include "tracer/ops/collective.h"
#include "tracer/step/device_state.h"
#include "tracer/step/divided_graph.h"
#include "tracer/step/execution_log.h"
#include "tracer/step/executor.h"
#include "tracer/step/graph_key.h"
#include "tracer/step/tracer.h"
#include "tracer/text/ir_text.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

void Check(const absl::Status& status) {
  if (!status.ok()) Throw("RunError", status);
}

ElementType TypeOf(py::handle dtype) {
  const std::optional<ElementType> type = TorchTensors::Get().ElementTypeOf(dtype.ptr());
  if (!type) throw py::type_error("lazy tensors have no elements of type " + py::cast<std::string>(py::str(dtype)));
  return *type;
}

int64_t ElementsOf(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) {
      throw py::value_error("a tensor has no negative sizes, and fewer than 2^63 elements");
    }
  }
  return count;
}

// Returns a value on the device: the bytes of a contiguous array, or zeros that take no memory.
py::object Upload(const TracerPtr& session, int ordinal, const std::vector<int64_t>& sizes, py::handle dtype,
                  const std::optional<py::buffer>& bytes) {
  lazy::DeviceState& device = DeviceOf(session, ordinal);
  const int64_t count = ElementsOf(sizes);
  const lazy::DeviceGuard guard(&device);
  const Shape shape = device.ArrayShape(TypeOf(dtype), sizes);
  if (!bytes) return LazyObject(session->FromGenerator(shape, [](Literal*) {}), session);
  const py::buffer_info info = bytes->request();
  if (info.size * info.itemsize != count * BytesOf(shape.element_type())) {
    throw py::value_error("the array has not the bytes of the tensor");
  }
  Literal value = Literal::Zeros(shape);
  if (value.size_bytes() != 0) std::memcpy(value.data(), info.ptr, value.size_bytes());
  return LazyObject(session->FromLiteral(std::move(value)), session);
}

// Returns the value as bytes that the array owns. `keep`: the graph stays, as for .item().
py::array Fetch(py::handle object, bool keep) {
  const LazyTensorObject& lazy = LazyTensorOf(object);
  const lazy::Tensor tensor = lazy.tensor;
  std::optional<ScopedUserFrame> frame;
  if (RecordsLines(lazy.session->options())) frame.emplace();
  lazy::RefreshView(tensor);
  absl::StatusOr<Literal> value = Literal();
  {
    const InterruptibleSection section;
    value = keep ? tensor.ItemLiteral() : tensor.ToLiteral();
  }
  CheckInterrupt(*lazy.session);
  auto* owned = new Literal(ValueOrThrow(std::move(value), "RunError"));
  const py::capsule owner(owned, [](void* data) { delete static_cast<Literal*>(data); });
  return py::array(py::dtype::of<uint8_t>(), {static_cast<py::ssize_t>(owned->size_bytes())}, {1},
                   reinterpret_cast<const uint8_t*>(owned->data()), owner);
}

void Write(py::handle target, py::handle value) {
  LazyTensorObject& to = LazyTensorOf(target);
  const LazyTensorObject& from = LazyTensorOf(value);
  lazy::TensorImpl* const impl = to.tensor.impl();
  // A tensor that nothing else refers to gets the value itself, whose buffer a step may then reuse.
  if (impl->refs() == 1 && impl->data->refs() == 1 && impl->view == nullptr &&
      from.tensor.shape() == to.tensor.shape() && from.session == to.session) {
    lazy::TensorData& written = *from.tensor.impl()->data;
    if (!written.sharding.valid()) written.sharding = impl->data->sharding;  // the annotation is the tensor's
    written.dropped_base |= impl->data->dropped_base;
    to.tensor = from.tensor;
    return;
  }
  const lazy::NoGradGuard no_grad;
  const lazy::DeviceGuard guard(to.tensor.device());
  lazy::WriteInPlace(to.tensor, from.tensor);
  const absl::Status status = to.session->status();
  if (!status.ok()) to.session->ClearStatus();
  Check(status);
}

void MarkStep(const TracerPtr& session, int ordinal, bool wait, const std::string& reason) {
  lazy::DeviceState& device = DeviceOf(session, ordinal);
  std::optional<ScopedUserFrame> frame;
  if (RecordsLines(session->options())) frame.emplace();
  absl::Status status;
  {
    const InterruptibleSection section;
    const lazy::DeviceGuard guard(&device);
    std::optional<lazy::ScopedSyncReason> cause;
    if (reason == "loader") cause.emplace(lazy::SyncReason::kLoaderStep);
    if (reason == "trace") cause.emplace(lazy::SyncReason::kStepTrace);
    status = session->MarkStep(&device, wait);
  }
  CheckInterrupt(*session);
  if (!status.ok()) session->ClearStatus();
  Check(status);
}

// Runs all that is recorded, as a step does, also within modules, whose scopes go on. `divided`: what small integers
// make new is interpreted.
void RunRecorded(const TracerPtr& session, int ordinal, bool wait, bool divided) {
  lazy::DeviceState& device = DeviceOf(session, ordinal);
  std::optional<ScopedUserFrame> frame;
  if (RecordsLines(session->options())) frame.emplace();
  absl::Status status;
  {
    const InterruptibleSection section;
    const lazy::DeviceGuard guard(&device);
    status = divided ? lazy::SyncRecorded(device, lazy::SyncReason::kItem)
                     : lazy::SyncLiveTensors(device, lazy::SyncReason::kItem, wait);
    lazy::DeviceLock lock(device.mutex());
    device.NextStepSeed();
  }
  CheckInterrupt(*session);
  if (!status.ok()) session->ClearStatus();
  Check(status);
}

lazy::Tensors TensorsOf(const py::list& tensors) {
  lazy::Tensors result;
  for (const py::handle tensor : tensors) result.push_back(LazyTensorOf(tensor).tensor);
  return result;
}

py::list LazyObjects(lazy::Tensors tensors, const TracerPtr& session) {
  py::list result;
  for (lazy::Tensor& tensor : tensors) result.append(LazyObject(std::move(tensor), session));
  return result;
}

lazy::ReduceType ReduceTypeOf(const std::string& name) {
  static const std::map<std::string, lazy::ReduceType> kTypes = {
      {"sum", lazy::ReduceType::kSum}, {"mul", lazy::ReduceType::kMul}, {"and", lazy::ReduceType::kAnd},
      {"or", lazy::ReduceType::kOr},   {"min", lazy::ReduceType::kMin}, {"max", lazy::ReduceType::kMax}};
  const auto found = kTypes.find(name);
  if (found == kTypes.end()) throw py::value_error("a reduction is sum, mul, and, or, min or max");
  return found->second;
}

// ---- graphs ----

// Collects the executions of a session.
class TraceLog {
 public:
  explicit TraceLog(TracerPtr session) : session_(std::move(session)), executions_(session_->device_count()) {
    recording_ = true;
    for (size_t d = 0; d < executions_.size(); ++d) {
      if (Listen(d)) continue;
      Stop();  // those before it, as there is no destructor after an exception
      throw py::value_error("the device is traced already");
    }
  }
  ~TraceLog() { Stop(); }
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;

  void Stop() {
    if (!recording_) return;
    recording_ = false;
    for (size_t d = 0; d < executions_.size(); ++d) {
      lazy::DeviceState& device = *session_->device(static_cast<int>(d));
      lazy::DeviceLock lock(device.mutex());
      if (device.listener == &executions_[d]) device.listener = nullptr;
    }
  }

  py::list Executions() const {
    py::list result;
    for (size_t d = 0; d < executions_.size(); ++d) {
      lazy::DeviceState& device = *session_->device(static_cast<int>(d));
      std::vector<lazy::ExecutionRecord> executions;
      {
        lazy::DeviceLock lock(device.mutex());
        executions = executions_[d];
      }
      for (const lazy::ExecutionRecord& e : executions) {
        py::dict row;
        row["hash"] = ToString(e.graph);
        row["step"] = e.step;
        row["reason"] = std::string(lazy::ToString(e.cause));
        row["name"] = e.name;
        row["compiled"] = e.program == lazy::ExecutionRecord::ProgramOrigin::kCompiled;
        row["device"] = e.device;
        row["ordinal"] = e.ordinal;
        row["nodes"] = e.nodes;
        row["inputs"] = e.inputs;
        row["outputs"] = e.outputs;
        row["donated"] = e.donated;
        row["location"] = lazy::LocationOf(e.frames);
        result.append(row);
      }
    }
    return result;
  }

  // Returns the graphs by step, and what broke them.
  std::string Report() const {
    lazy::ExecutionLog log;
    for (size_t d = 0; d < executions_.size(); ++d) {
      lazy::DeviceLock lock(session_->device(static_cast<int>(d))->mutex());
      for (const lazy::ExecutionRecord& e : executions_[d]) log.Add(e);
    }
    return lazy::GraphReport(log.executions());
  }

 private:
  // Returns false where another log listens to the device.
  bool Listen(size_t d) {
    lazy::DeviceState& device = *session_->device(static_cast<int>(d));
    lazy::DeviceLock lock(device.mutex());
    if (device.listener != nullptr) return false;
    device.listener = &executions_[d];
    return true;
  }

  TracerPtr session_;
  std::vector<std::vector<lazy::ExecutionRecord>> executions_;
  bool recording_ = false;
};

// Returns (lazy IR, HLO before the passes) of a compiled graph; "" for what the session has dropped.
py::tuple ProgramText(const TracerPtr& session, int ordinal, const std::string& hash) {
  lazy::DeviceState& device = DeviceOf(session, ordinal);
  std::string text, hlo;
  {
    const py::gil_scoped_release release;
    lazy::DeviceLock lock(device.mutex());
    for (const std::shared_ptr<lazy::CompiledGraph>& graph : device.cache().entries()) {
      if (ToString(graph->hash) != hash) continue;
      text = graph->text;
      if (graph->executable->lowered() != nullptr) hlo = ToString(*graph->executable->lowered());
      break;
    }
  }
  return py::make_tuple(text, hlo);
}

// Returns the pending graph of tensors: lazy IR, HLO, hash.
py::tuple PendingText(const py::list& tensors) {
  const lazy::Tensors roots = TensorsOf(tensors);
  if (roots.empty()) return py::make_tuple("", "", "");
  for (const lazy::Tensor& root : roots) lazy::RefreshView(root);
  lazy::DeviceState& device = *roots[0].device();
  lazy::DeviceLock lock(device.mutex());
  const std::string text = lazy::TensorsToString(roots, {});
  const lazy::PendingSubgraph slice = lazy::CollectSubgraphOfTensors(roots);
  absl::StatusOr<std::unique_ptr<Module>> module = lazy::LowerSubgraph(device, slice, "IrToHlo.1");
  Check(module.status());
  return py::make_tuple(text, ToString(**module), ToString(lazy::HashOf(device, slice, {})));
}

// ---- scopes ----

thread_local std::vector<std::unique_ptr<lazy::ScopedName>> scopes;

// ---- the table of ops ----

const char* NameOf(lazy::ArgType type) {
  switch (type) {
    case lazy::ArgType::kTensor:
      return "Tensor";
    case lazy::ArgType::kTensorList:
      return "Tensor[]";
    case lazy::ArgType::kScalar:
      return "Scalar";
    case lazy::ArgType::kInt:
      return "int";
    case lazy::ArgType::kFloat:
      return "float";
    case lazy::ArgType::kBool:
      return "bool";
    case lazy::ArgType::kIntList:
      return "int[]";
    case lazy::ArgType::kFloatList:
      return "float[]";
    case lazy::ArgType::kString:
      return "str";
    case lazy::ArgType::kDtype:
      return "ScalarType";
  }
  return "";
}

// Returns the ops that programs call: name with overload -> (number, arguments, results, list, view).
py::dict Ops() {
  py::dict result;
  for (size_t i = 0; i < lazy::kOpCount; ++i) {
    const auto op = static_cast<lazy::Op>(i);
    const lazy::OpInfo& info = lazy::InfoOf(op);
    if ((info.flags & lazy::kInternal) != 0) continue;
    const lazy::Schema& schema = lazy::SchemaOf(op);
    py::list arguments;
    for (const lazy::ArgSpec& spec : schema.args) {
      arguments.append(py::make_tuple(spec.name, NameOf(spec.type), spec.written, spec.has_default || spec.optional));
    }
    result[py::str(schema.full_name())] =
        py::make_tuple(i, arguments, schema.outputs, schema.list_output, (info.flags & lazy::kView) != 0);
  }
  return result;
}

void AddPlan(py::object function, size_t op, int results, std::vector<int> positional,
             const std::vector<std::pair<std::string, int>>& keywords, std::vector<int> returns, bool list, bool view,
             std::vector<int> same_type, bool no_complex, bool no_bool, bool needs_float) {
  if (op >= lazy::kOpCount) throw py::value_error("there is no such op");
  if (results < 0 || results > static_cast<int>(OpPlan::Results::kOp)) throw py::value_error("there is no such form");
  const auto arguments = static_cast<int>(lazy::SchemaOf(static_cast<lazy::Op>(op)).args.size());
  const auto check = [&](int index) {
    if (index < OpPlan::kIgnored || index >= arguments) throw py::value_error("there is no such argument");
  };
  OpPlan plan;
  plan.op = static_cast<lazy::Op>(op);
  plan.results = static_cast<OpPlan::Results>(results);
  for (const int index : positional) check(index);
  for (const auto& [name, index] : keywords) {
    check(index);
    plan.keywords.emplace_back(PyUnicode_InternFromString(name.c_str()), index);
  }
  for (const int position : returns) {
    if (position < -1 || position >= static_cast<int>(positional.size())) throw py::value_error("no such argument");
  }
  if (plan.results == OpPlan::Results::kWritten &&
      (returns.size() != 1 || returns[0] < 0 || positional[static_cast<size_t>(returns[0])] < 0)) {
    throw py::value_error("one argument is written");
  }
  plan.positional = std::move(positional);
  plan.returns = std::move(returns);
  plan.list = list;
  plan.view = view;
  for (const int index : same_type) check(index);
  plan.same_type = std::move(same_type);
  plan.no_complex = no_complex;
  plan.no_bool = no_bool;
  plan.needs_float = needs_float;
  TorchRecorder::Get().AddPlan(std::move(function), std::move(plan));
}

PyObject* Dispatch(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 4 || !PyTuple_Check(arguments[2])) {
    PyErr_SetString(PyExc_TypeError, "__torch_dispatch__ takes a function, types, a tuple and keywords");
    return nullptr;
  }
  PyObject* const kwargs = PyDict_Check(arguments[3]) ? arguments[3] : nullptr;
  try {
    return TorchRecorder::Get().Handle(arguments[0], arguments[1], arguments[2], kwargs);
  } catch (std::exception& exception) {
    return SetError(exception);
  }
}

PyMethodDef dispatch_definition = {"dispatch", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&Dispatch)),
                                   METH_FASTCALL, "The handler __torch_dispatch__ of lazy tensors."};

// Returns (value, None) or (None, reason).
py::tuple Try(const py::object& function, const py::tuple& args, const py::dict& kwargs, const TracerPtr& session,
              int ordinal) {
  lazy::DeviceState* const device = session == nullptr ? nullptr : &DeviceOf(session, ordinal);
  const Attempt attempt =
      TorchRecorder::Get().Try(function.ptr(), args.ptr(), kwargs.ptr(), /*for_op=*/false, session, device);
  if (attempt.untranslated) return py::make_tuple(py::none(), attempt.reason);
  if (attempt.value == nullptr) throw py::error_already_set();
  return py::make_tuple(py::reinterpret_steal<py::object>(attempt.value), py::none());
}

py::object Wrap(py::handle lazy) {
  const LazyTensorObject& object = LazyTensorOf(lazy);
  PyObject* const result = TorchTensors::Get().Wrap(object.tensor, object.session);
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

using Session = py::class_<lazy::Tracer, TracerPtr>;

// Devices, steps and metrics.
void BindSteps(Session& session) {
  session
      .def(py::init(&NewSession), py::kw_only(), py::arg("devices"), py::arg("pipeline"), py::arg("debug"),
           py::arg("fake"), py::arg("replicas"), py::arg("engine") = "exact", py::arg("num_threads") = 0,
           py::arg("spmd") = false, py::arg("processes") = nullptr)
      .def_property_readonly("device_count", &lazy::Tracer::device_count)
      .def_property_readonly("fake", [](const TracerPtr& s) { return s->options().client.defer_executions; })
      .def("world_size", [](const TracerPtr& s) { return lazy::WorldSize(s->device(0)); })
      .def("mark_step", &MarkStep, py::arg("ordinal"), py::arg("wait"), py::arg("reason"))
      .def(
          "has_pending",
          [](const TracerPtr& s, int ordinal) {
            lazy::DeviceState& device = DeviceOf(s, ordinal);
            const lazy::DeviceLock lock(device.mutex());
            return !lazy::PendingTensors(device).empty();
          },
          py::arg("ordinal"))
      .def("run_recorded", &RunRecorded, py::arg("ordinal"), py::arg("wait"), py::arg("divided") = false)
      .def(
          "wait",
          [](const TracerPtr& s, int ordinal) {
            lazy::DeviceState& device = DeviceOf(s, ordinal);
            absl::Status status;
            {
              const InterruptibleSection section;
              status = s->Wait(&device);
            }
            CheckInterrupt(*s);
            Check(status);
          },
          py::arg("ordinal"))
      .def("upload", &Upload, py::arg("ordinal"), py::arg("sizes"), py::arg("dtype"), py::arg("bytes"))
      .def("metrics_report",
           [](const TracerPtr& s) {
             s->PublishCounters();
             return s->metrics().Report();
           })
      .def("metrics_json",
           [](const TracerPtr& s) {
             s->PublishCounters();
             return s->metrics().JsonReport();
           })
      .def("clear_metrics",
           [](const TracerPtr& s) {
             s->PublishCounters();
             s->metrics().ClearCounters();
             s->metrics().ClearMetrics();
           })
      .def(
          "count", [](const TracerPtr& s, const std::string& name) { s->metrics().Add(name); }, py::arg("counter"))
      .def("take_explanations", [](const TracerPtr& s) { return s->TakeExplanations(); })
      .def(
          "seed", [](const TracerPtr& s, int ordinal) { return DeviceOf(s, ordinal).seed(); }, py::arg("ordinal"))
      .def(
          "set_seed",
          [](const TracerPtr& s, int ordinal, int64_t seed) {
            lazy::DeviceState& device = DeviceOf(s, ordinal);
            lazy::DeviceLock lock(device.mutex());
            device.SetSeed(seed);
          },
          py::arg("ordinal"), py::arg("seed"))
      .def("program", &ProgramText, py::arg("ordinal"), py::arg("hash"));
}

// What devices do together.
void BindCollectives(Session& session) {
  session
      .def(
          "all_reduce",
          [](const TracerPtr& s, const std::string& type, const py::list& tensors, double scale,
             const lazy::Groups& groups) {
            const lazy::ReduceType reduction = ReduceTypeOf(type);
            const lazy::Tensors arguments = TensorsOf(tensors);
            const lazy::NoGradGuard no_grad;
            return LazyObjects(lazy::AllReduce(reduction, arguments, scale, groups), s);
          },
          py::arg("type"), py::arg("tensors"), py::arg("scale"), py::arg("groups"))
      .def(
          "all_gather",
          [](const TracerPtr& s, py::handle tensor, int64_t dim, const lazy::Groups& groups) {
            const lazy::NoGradGuard no_grad;
            return LazyObject(lazy::AllGather(LazyTensorOf(tensor).tensor, dim, groups), s);
          },
          py::arg("tensor"), py::arg("dim"), py::arg("groups"))
      .def(
          "reduce_scatter",
          [](const TracerPtr& s, const std::string& type, py::handle tensor, double scale, int64_t dim,
             const lazy::Groups& groups) {
            const lazy::NoGradGuard no_grad;
            return LazyObject(lazy::ReduceScatter(ReduceTypeOf(type), LazyTensorOf(tensor).tensor, scale, dim, groups),
                              s);
          },
          py::arg("type"), py::arg("tensor"), py::arg("scale"), py::arg("dim"), py::arg("groups"))
      .def(
          "all_to_all",
          [](const TracerPtr& s, py::handle tensor, int64_t split, int64_t concat, int64_t count,
             const lazy::Groups& groups) {
            const lazy::NoGradGuard no_grad;
            return LazyObject(lazy::AllToAll(LazyTensorOf(tensor).tensor, split, concat, count, groups), s);
          },
          py::arg("tensor"), py::arg("split_dimension"), py::arg("concat_dimension"), py::arg("split_count"),
          py::arg("groups"))
      .def(
          "collective_permute",
          [](const TracerPtr& s, py::handle tensor, const std::vector<std::pair<int64_t, int64_t>>& pairs) {
            const lazy::NoGradGuard no_grad;
            return LazyObject(lazy::CollectivePermute(LazyTensorOf(tensor).tensor, pairs), s);
          },
          py::arg("tensor"), py::arg("pairs"))
      .def(
          "rendezvous",
          [](const TracerPtr& s, int ordinal, const std::string& tag, const std::string& payload) {
            lazy::DeviceState& device = DeviceOf(s, ordinal);
            absl::StatusOr<std::vector<std::string>> payloads = std::vector<std::string>();
            {
              const InterruptibleSection section;
              payloads = lazy::Rendezvous(&device, tag, payload);
            }
            CheckInterrupt(*s);
            py::list result;
            for (const std::string& p : ValueOrThrow(std::move(payloads), "RunError")) result.append(py::bytes(p));
            return result;
          },
          py::arg("ordinal"), py::arg("tag"), py::arg("payload"))
      .def(
          "leave",
          [](const TracerPtr& s, int ordinal, const std::string& why) {
            lazy::DeviceState& device = DeviceOf(s, ordinal);
            const py::gil_scoped_release release;
            s->Leave(&device, why);
          },
          py::arg("ordinal"), py::arg("why"))
      .def("next_session", &lazy::Tracer::NextSession);
}

void BindSession(py::module_& m) {
  Session session(m, "TracerSession", "Devices of the lazy tracer, with their graphs and programs.");
  BindSteps(session);
  BindCollectives(session);
  py::class_<TraceLog>(m, "TraceLog", "The executions of a session, from now until stop().")
      .def(py::init<TracerPtr>(), py::arg("session"))
      .def("stop", &TraceLog::Stop)
      .def("executions", &TraceLog::Executions)
      .def("report", &TraceLog::Report);
}

}  // namespace

void BindTracer(py::module_& m) {
  BindProcesses(m);
  BindSession(m);
  m.attr("LazyTensor") = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(LazyTensorType()));
  m.attr("_torch_dispatch") = py::reinterpret_steal<py::object>(PyCFunction_New(&dispatch_definition, nullptr));
  m.def("_torch_setup",
        [](const py::capsule& api, const py::dict& types, py::object untranslated, std::vector<std::string> libraries) {
          if (std::string_view(api.name()) != TorchDeviceApi::kCapsule)
            throw py::type_error("expected a device of PyTorch");
          TorchTensors::Get().Set(api.get_pointer<const TorchDeviceApi>(), types);
          TorchRecorder::Get().SetUntranslated(std::move(untranslated));
          ScopedUserFrame::SetLibraries(std::move(libraries));
        });
  m.def("_torch_plan", &AddPlan, py::arg("function"), py::arg("op"), py::arg("results"), py::arg("positional"),
        py::arg("keywords"), py::arg("returns"), py::arg("list"), py::arg("view"),
        py::arg("same_type") = std::vector<int>(), py::arg("no_complex") = false, py::arg("no_bool") = false,
        py::arg("needs_float") = false);
  m.def("_torch_try", &Try, py::arg("function"), py::arg("args"), py::arg("kwargs"), py::arg("session") = py::none(),
        py::arg("ordinal") = 0);
  m.def("_torch_wrap", &Wrap, py::arg("lazy"));
  m.def(
      "_lazy_of",
      [](py::handle tensor) -> py::object {
        LazyTensorObject* const lazy = TorchTensors::Get().LazyOf(tensor.ptr());
        if (lazy == nullptr) return py::none();
        return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(lazy));
      },
      py::arg("tensor"));
  m.def("_tracer_ops", &Ops);
  m.def("_lazy_pending", &PendingText, py::arg("tensors"));
  m.def("_lazy_fetch", &Fetch, py::arg("lazy"), py::arg("keep"));
  m.def("_lazy_ordinal", [](py::handle lazy) { return LazyTensorOf(lazy).tensor.device()->device()->ordinal(); });
  m.def("_lazy_session", [](py::handle lazy) { return LazyTensorOf(lazy).session; });
  m.def("_lazy_write", &Write, py::arg("target"), py::arg("value"));
  m.def("_push_scope", [](const std::string& name) { scopes.push_back(std::make_unique<lazy::ScopedName>(name)); });
  m.def("_pop_scope", [] {
    if (!scopes.empty()) scopes.pop_back();
  });
  m.def("_clear_scopes", [] {
    while (!scopes.empty()) scopes.pop_back();
  });
}

}  // namespace hlokit::python
