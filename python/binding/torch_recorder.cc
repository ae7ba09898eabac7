// SPDX-License-Identifier: Apache-2.0
#include "python/binding/torch_recorder.h"

#include <memory>
#include <optional>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/step/device_state.h"
#include "tracer/views/base_tensor.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

Attempt Untranslated(std::string reason) { return {nullptr, true, std::move(reason)}; }

bool IsDeviceName(PyObject* name) {
  static PyObject* const device = PyUnicode_InternFromString("device");
  return name == device || PyUnicode_Compare(name, device) == 0;
}

// Results that share their data with an argument, although the op makes no views, get their own.
void SeparateFrom(const lazy::Args& args, lazy::Outputs* outputs) {
  const auto separate = [&](const lazy::Tensor& argument) {
    if (!argument.defined()) return;
    for (lazy::Tensor& output : *outputs) {
      if (!output.defined() || output.impl()->data.get() != argument.impl()->data.get()) continue;
      lazy::DeviceState& device = *argument.device();
      lazy::DeviceLock lock(device.mutex());
      output = device.NewTensor(device.ValueOf(argument.impl()->data.get()), argument.shape());
    }
  };
  for (const lazy::IValue& value : args) {
    if (const lazy::Tensor* const tensor = value.get<lazy::Tensor>()) separate(*tensor);
    if (const lazy::Tensors* const list = value.get<lazy::Tensors>()) {
      for (const lazy::Tensor& tensor : *list) separate(tensor);
    }
  }
}

// Makes a view an ordinary tensor where nothing else refers to its base: a step then computes one value, not two.
// PyTorch drops the results of derivatives as soon as it has their transposes, and keeps these as gradients.
void ForgetUnreachableBase(const lazy::Tensor& tensor) {
  constexpr int64_t kOfTheView = 2;  // ViewInfo::parent, and its first argument
  lazy::TensorImpl* const impl = tensor.impl();
  if (impl->view == nullptr) return;
  bool separate = false;
  for (const lazy::TensorImpl* at = impl; at->view != nullptr; at = at->view->parent.impl()) {
    const lazy::TensorImpl* const parent = at->view->parent.impl();
    if (parent->refs() > kOfTheView) return;
    separate |= parent->data.get() != impl->data.get();
  }
  if (!separate) return;
  lazy::RefreshView(tensor);
  const bool all = lazy::HasAllInOrder(tensor);
  impl->view.reset();
  impl->data->follows_base = false;
  impl->data->dropped_base = !all;
}

void ForgetUnreachableBases(const lazy::Args& args) {
  for (const lazy::IValue& value : args) {
    if (const lazy::Tensor* const tensor = value.get<lazy::Tensor>()) ForgetUnreachableBase(*tensor);
  }
}

// Returns true for ops whose results' sizes are values: of their kind, or for a mask among their indices.
bool ReadsValues(lazy::Op op, const lazy::Args& args) {
  if ((lazy::InfoOf(op).flags & lazy::kFallback) != 0) return true;
  const lazy::Schema& schema = lazy::SchemaOf(op);
  for (size_t i = 0; i < args.size(); ++i) {
    const lazy::Tensors* const indices = schema.args[i].optional_items ? args[i].get<lazy::Tensors>() : nullptr;
    if (indices == nullptr) continue;
    for (const lazy::Tensor& tensor : *indices) {
      if (tensor.defined() && (tensor.dtype() == ElementType::kPred || tensor.dtype() == ElementType::kU8)) return true;
    }
  }
  return false;
}

// Returns why PyTorch does not take the types of the arguments, which the tracer would promote; nothing if it does. Its
// own kernel on the CPU then has the error.
std::string UnacceptedTypes(const OpPlan& plan, const lazy::Args& args) {
  const lazy::Tensor* first = nullptr;
  bool has_float = false;
  for (const lazy::IValue& value : args) {
    const lazy::Tensor* const tensor = value.get<lazy::Tensor>();
    if (tensor == nullptr || !tensor->defined()) continue;
    if (first == nullptr) first = tensor;
    has_float |= IsFloat(tensor->dtype()) || IsComplex(tensor->dtype());
    if (plan.no_complex && IsComplex(tensor->dtype())) return "PyTorch takes no complex numbers";
    if (plan.no_bool && tensor->dtype() == ElementType::kPred) return "PyTorch takes no booleans";
  }
  if (plan.needs_float && first != nullptr && !has_float) return "PyTorch takes no integers";
  for (const int index : plan.same_type) {
    const lazy::Tensor* const tensor = args[static_cast<size_t>(index)].get<lazy::Tensor>();
    if (tensor != nullptr && tensor->defined() && tensor->dtype() != first->dtype()) return "tensors of several types";
  }
  return "";
}

}  // namespace

TorchRecorder& TorchRecorder::Get() {
  static TorchRecorder* const recorder = new TorchRecorder;
  return *recorder;
}

void TorchRecorder::AddPlan(py::object function, OpPlan plan) {
  plans_.insert_or_assign(function.ptr(), std::make_shared<const OpPlan>(std::move(plan)));
  function.release();  // kept, so that the address is not used again
}

Attempt TorchRecorder::Try(PyObject* function, PyObject* args, PyObject* kwargs, bool for_op, TracerPtr session,
                           lazy::DeviceState* device) {
  const auto found = plans_.find(function);
  if (found == plans_.end()) return Untranslated("");
  const std::shared_ptr<const OpPlan> held = found->second;
  const OpPlan& plan = *held;
  ArgumentConverter converter(lazy::SchemaOf(plan.op));
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (static_cast<size_t>(count) > plan.positional.size()) return Untranslated("too many arguments");
  for (const int position : plan.returns) {
    if (position >= count) return Untranslated("a written argument is given by name");
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    const int index = plan.positional[static_cast<size_t>(i)];
    if (index == OpPlan::kIgnored) continue;
    if (!converter.Convert(PyTuple_GET_ITEM(args, i), index)) return Untranslated(converter.reason());
  }
  PyObject* named_device = Py_None;
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) {
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(kwargs, &position, &name, &value)) {
      if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "keywords are strings");
        return {};
      }
      int index = OpPlan::kIgnored;
      bool known = false;
      for (const auto& [keyword, argument] : plan.keywords) {
        if (keyword != name && PyUnicode_Compare(keyword, name) != 0) continue;
        index = argument;
        known = true;
        break;
      }
      if (!known) {
        const char* const text = PyUnicode_AsUTF8(name);  // null for lone surrogates
        return text == nullptr ? Attempt{} : Untranslated(StrCat("argument `", text, "`"));
      }
      if (index == OpPlan::kIgnored) {
        if (IsDeviceName(name)) named_device = value;
        continue;
      }
      if (!converter.Convert(value, index)) return Untranslated(converter.reason());
    }
  }
  if (const LazyTensorObject* const first = converter.first()) {
    if (!TorchTensors::Get().IsDeviceOf(named_device, converter.first_tensor())) {
      return Untranslated("a result on another device");
    }
    session = first->session;
    device = first->tensor.device();
  }
  if (session == nullptr) return Untranslated("no argument is a lazy tensor");
  std::optional<ScopedUserFrame> frame;
  if (RecordsLines(session->options())) frame.emplace();
  const lazy::DeviceGuard guard(device);
  const lazy::NoGradGuard no_grad;
  if (!converter.Finish()) return Untranslated(converter.reason());
  lazy::Args values = converter.TakeValues();
  if (std::string why = UnacceptedTypes(plan, values); !why.empty()) return Untranslated(std::move(why));
  return Run(plan, args, std::move(values), for_op, session);
}

Attempt TorchRecorder::Run(const OpPlan& plan, PyObject* args, lazy::Args values, bool for_op,
                           const TracerPtr& session) {
  lazy::Tracer& tracer = *session;
  ForgetUnreachableBases(values);
  const lazy::Args given = values;
  lazy::Outputs outputs;
  if (ReadsValues(plan.op, values)) {
    const bool fake = tracer.options().client.defer_executions;
    if (fake && plan.results == OpPlan::Results::kNew) return Untranslated("the size of its result depends on values");
    if (before_read_ != nullptr) {
      const auto done = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(before_read_));
      if (!done) return {};
    }
    const py::gil_scoped_release release;  // the op waits for values
    outputs = lazy::Dispatch(plan.op, std::move(values));
  } else {
    outputs = lazy::Dispatch(plan.op, std::move(values));
  }
  if (plan.results == OpPlan::Results::kWritten) {
    const auto at = static_cast<size_t>(plan.positional[static_cast<size_t>(plan.returns[0])]);
    const lazy::Tensor* const target = given[at].get<lazy::Tensor>();
    if (target != nullptr && outputs[0].defined()) lazy::WriteInPlace(*target, outputs[0]);
  }
  if (absl::Status status = tracer.status(); !status.ok()) {
    tracer.ClearStatus();
    return Untranslated(std::string(status.message()));
  }
  if (plan.results == OpPlan::Results::kNew && !plan.view) SeparateFrom(given, &outputs);
  if (plan.results == OpPlan::Results::kWritten) {
    return {py::handle(PyTuple_GET_ITEM(args, plan.returns[0])).inc_ref().ptr(), false, ""};
  }
  const TorchTensors& tensors = TorchTensors::Get();
  const auto result = [&](size_t k) -> PyObject* {
    if (plan.results == OpPlan::Results::kOp && k < plan.returns.size() && plan.returns[k] >= 0) {
      return py::handle(PyTuple_GET_ITEM(args, plan.returns[k])).inc_ref().ptr();
    }
    if (k >= outputs.size() || !outputs[k].defined()) return py::none().release().ptr();
    return tensors.Wrap(std::move(outputs[k]), session, for_op);
  };
  if (plan.results == OpPlan::Results::kOp && plan.returns.empty() && !plan.list)
    return {py::none().release().ptr(), false, ""};
  if (outputs.size() == 1 && !plan.list) return {result(0), false, ""};
  const size_t count = outputs.size();
  PyObject* const list =
      plan.list ? PyList_New(static_cast<Py_ssize_t>(count)) : PyTuple_New(static_cast<Py_ssize_t>(count));
  if (list == nullptr) return {};
  for (size_t k = 0; k < count; ++k) {
    PyObject* const item = result(k);
    if (item == nullptr) {
      Py_DECREF(list);
      return {};
    }
    if (plan.list) {
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(k), item);
    } else {
      PyTuple_SET_ITEM(list, static_cast<Py_ssize_t>(k), item);
    }
  }
  return {list, false, ""};
}

PyObject* TorchRecorder::Handle(PyObject* function, PyObject* types, PyObject* args, PyObject* kwargs) {
  Attempt attempt = Try(function, args, kwargs, /*for_op=*/true);
  if (!attempt.untranslated) return attempt.value;
  if (untranslated_ == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "hlokit.torch is not imported");
    return nullptr;
  }
  PyObject* const reason =
      PyUnicode_DecodeUTF8(attempt.reason.data(), static_cast<Py_ssize_t>(attempt.reason.size()), "replace");
  if (reason == nullptr) return nullptr;
  PyObject* const result = PyObject_CallFunctionObjArgs(untranslated_, function, types, args,
                                                        kwargs == nullptr ? Py_None : kwargs, reason, nullptr);
  Py_DECREF(reason);
  return result;
}

}  // namespace hlokit::python
