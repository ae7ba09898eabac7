// SPDX-License-Identifier: Apache-2.0
// Kernels of the device: one for all ops, which passes calls to the tracer's recorder.
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/tensor_layouts.h>
#include <torch/csrc/utils/tensor_memoryformats.h>
#include <torch/library.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lazy_tensor.h"

namespace hlokit::torch_device {
namespace {

namespace py = pybind11;

PyObject* handler = nullptr;  // lives as long as the process

// Results that were handed over by the ops that this thread runs, one within the other.
thread_local std::vector<at::Tensor> handed_over;
thread_local size_t first_handed_over = 0;  // by the innermost

class ScopedResults {
 public:
  ScopedResults() : before_(first_handed_over) { first_handed_over = handed_over.size(); }
  ~ScopedResults() {
    handed_over.resize(first_handed_over);
    first_handed_over = before_;
  }
  ScopedResults(const ScopedResults&) = delete;
  ScopedResults& operator=(const ScopedResults&) = delete;

 private:
  const size_t before_;
};

bool IsKind(const c10::TypePtr& type, c10::TypeKind kind) {
  if (type->kind() == kind) return true;
  const auto optional = type->cast<c10::OptionalType>();
  return optional != nullptr && optional->getElementType()->kind() == kind;
}

// Returns the argument as __torch_dispatch__ has it: enumerations are torch's objects, tensors that stand for numbers
// of the program are numbers.
py::object ArgumentOf(const c10::IValue& value, const c10::Argument& argument) {
  if (value.isNone()) return py::none();
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      const at::Scalar number = tensor.item();
      return torch::jit::toPyObject(c10::IValue(number));
    }
    if (!tensor.defined()) return py::none();
    return py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor));
  }
  const c10::TypePtr& type = argument.real_type();
  if (value.isInt()) {
    const int64_t number = value.toInt();
    if (IsKind(type, c10::TypeKind::ScalarTypeType)) {
      return py::reinterpret_borrow<py::object>(
          reinterpret_cast<PyObject*>(torch::getTHPDtype(static_cast<at::ScalarType>(number))));
    }
    if (IsKind(type, c10::TypeKind::LayoutType)) return py::cast(static_cast<at::Layout>(number));
    if (IsKind(type, c10::TypeKind::MemoryFormatType)) return py::cast(static_cast<at::MemoryFormat>(number));
  }
  return torch::jit::toPyObject(value);
}

bool IsDefault(const c10::IValue& value, const c10::Argument& argument) {
  const std::optional<c10::IValue>& given = argument.default_value();
  if (!given.has_value()) return false;
  if (given->isNone() || value.isNone()) return given->isNone() && value.isNone();
  if (given->isIntList() && value.isIntList()) {
    return given->toIntVector() == value.toIntVector();
  }
  return *given == value;
}

// Takes the arguments of a call off the stack. Those that have the values of their defaults are left out, as in
// __torch_dispatch__: at the end of the positional ones, and anywhere among the others.
std::pair<py::tuple, py::dict> TakeArguments(const c10::FunctionSchema& schema, torch::jit::Stack* stack) {
  const std::vector<c10::Argument>& arguments = schema.arguments();
  const size_t begin = stack->size() - arguments.size();
  size_t positional = 0;
  while (positional < arguments.size() && !arguments[positional].kwarg_only()) ++positional;
  size_t given = positional;
  while (given > 0 && IsDefault((*stack)[begin + given - 1], arguments[given - 1])) --given;
  py::tuple args(given);
  for (size_t i = 0; i < given; ++i) args[i] = ArgumentOf((*stack)[begin + i], arguments[i]);
  py::dict kwargs;
  for (size_t i = positional; i < arguments.size(); ++i) {
    if (IsDefault((*stack)[begin + i], arguments[i])) continue;
    kwargs[py::str(arguments[i].name())] = ArgumentOf((*stack)[begin + i], arguments[i]);
  }
  return {std::move(args), std::move(kwargs)};
}

// Returns a result of the handler: what was handed over, or a tensor. Of one that nothing else refers to, as one
// without a Python object, to which PyTorch may give one of another class: Parameter(x) is the result of detach().
at::Tensor TensorOf(PyObject* result) {
  if (PyLong_CheckExact(result)) {
    const size_t number = PyLong_AsSize_t(result);
    TORCH_CHECK(number >= first_handed_over && number < handed_over.size(), "a number where a tensor was expected");
    return std::move(handed_over[number]);
  }
  const at::Tensor& tensor = THPVariable_Unpack(result);
  if (Py_REFCNT(result) != 1 || tensor.use_count() != 1 || ImplOf(tensor) == nullptr || tensor.requires_grad())
    return tensor;
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
}

c10::IValue ResultOf(py::handle result, const c10::Argument& argument) {
  const c10::TypePtr& type = argument.real_type();
  if (type->kind() == c10::TypeKind::TensorType) {
    if (result.is_none()) return at::Tensor();
    if (PyLong_CheckExact(result.ptr()) || THPVariable_Check(result.ptr())) return TensorOf(result.ptr());
  }
  if (type->kind() == c10::TypeKind::ListType && PyList_CheckExact(result.ptr()) &&
      type->castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::TensorType) {
    c10::List<at::Tensor> tensors;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(result.ptr()); ++i) {
      PyObject* const item = PyList_GET_ITEM(result.ptr(), i);
      tensors.push_back(item == Py_None ? at::Tensor() : TensorOf(item));
    }
    return tensors;
  }
  if (type->kind() == c10::TypeKind::ScalarTypeType) {
    return static_cast<int64_t>(reinterpret_cast<THPDtype*>(result.ptr())->scalar_type);
  }
  return torch::jit::toIValue(result, type);
}

void PushResults(const c10::FunctionSchema& schema, const py::object& result, torch::jit::Stack* stack) {
  const std::vector<c10::Argument>& returns = schema.returns();
  if (returns.empty()) return;
  if (returns.size() == 1) {
    stack->push_back(ResultOf(result, returns[0]));
    return;
  }
  TORCH_CHECK(
      PySequence_Check(result.ptr()) && PySequence_Size(result.ptr()) == static_cast<Py_ssize_t>(returns.size()),
      schema.operator_name(), " has ", returns.size(), " results");
  const auto results = py::reinterpret_borrow<py::sequence>(result);
  for (size_t i = 0; i < returns.size(); ++i) stack->push_back(ResultOf(results[i], returns[i]));
}

// ---- conjugates and negatives ----

// PyTorch marks them on views, and its own kernels compute them before most ops run: not before those that kernels of
// its other devices read marks in, as products, and copies.

bool IsMarked(const at::Tensor& tensor) {
  return tensor.defined() && ImplOf(tensor) != nullptr && (tensor.is_conj() || tensor.is_neg());
}

void CopyMarks(const at::Tensor& from, const at::Tensor& to) {
  if (from.is_conj()) to.unsafeGetTensorImpl()->_set_conj(true);
  if (from.is_neg()) to.unsafeGetTensorImpl()->_set_neg(true);
}

// The same elements without the marks.
at::Tensor Unmarked(const at::Tensor& tensor) {
  at::Tensor raw(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
  raw.unsafeGetTensorImpl()->_set_conj(false);
  raw.unsafeGetTensorImpl()->_set_neg(false);
  return raw;
}

// The elements that are stored for values of a marked tensor, and the reverse.
at::Tensor Toggled(at::Tensor values, const at::Tensor& marked) {
  if (marked.is_conj()) values = at::_conj_physical(values);
  return marked.is_neg() ? at::neg(values) : values;
}

bool HasMarks(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  for (size_t i = stack.size() - schema.arguments().size(); i < stack.size(); ++i) {
    if (stack[i].isTensor() && IsMarked(stack[i].toTensor())) return true;
    if (!stack[i].isTensorList()) continue;
    for (const at::Tensor& tensor : stack[i].toTensorVector()) {
      if (IsMarked(tensor)) return true;
    }
  }
  return false;
}

// Whether an op changes which elements a tensor has, and none of them.
bool IsOfStorage(const std::string& name) {
  static const auto* const names =
      new std::set<std::string>{"aten::set_",     "aten::resize_",    "aten::t_",         "aten::transpose_",
                                "aten::squeeze_", "aten::unsqueeze_", "aten::as_strided_"};
  return names->count(name) != 0;
}

// Calls an op with values in place of marked tensors, and writes those that it changed.
void CallWithValues(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t begin = stack->size() - schema.arguments().size();
  std::vector<std::pair<at::Tensor, at::Tensor>> written;  // the tensor, its values
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    c10::IValue& value = (*stack)[begin + i];
    const c10::AliasInfo* const info = schema.arguments()[i].alias_info();
    const auto values_of = [&](const at::Tensor& tensor) {
      if (!IsMarked(tensor)) return tensor;
      at::Tensor values = Toggled(Unmarked(tensor), tensor);
      if (info != nullptr && info->isWrite()) written.emplace_back(tensor, values);
      return values;
    };
    if (value.isTensor()) {
      value = values_of(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(values_of(tensor));
      value = list;
    }
  }
  op.callBoxed(*stack);
  for (const auto& [tensor, values] : written) {
    Unmarked(tensor).copy_(Toggled(values, tensor));
    for (size_t i = begin; i < stack->size(); ++i) {
      if ((*stack)[i].isTensor() && (*stack)[i].toTensor().is_same(values)) (*stack)[i] = tensor;
    }
  }
}

// ---- views ----

// The argument of which the first result is a view; -1 if it is none.
int ViewedArgument(const c10::FunctionSchema& schema) {
  if (schema.returns().empty()) return -1;
  const c10::AliasInfo* const info = schema.returns()[0].alias_info();
  if (info == nullptr || info->isWrite() || schema.returns()[0].type()->kind() == c10::TypeKind::NoneType) return -1;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* const of = schema.arguments()[i].alias_info();
    if (of != nullptr && !of->isWrite() && schema.arguments()[i].type()->kind() == c10::TypeKind::TensorType) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

at::Tensor MetaOf(const at::Tensor& tensor) {
  // With the storage's size, so that any view of the storage has room.
  at::Tensor meta = at::empty({0}, tensor.options().device(c10::DeviceType::Meta))
                        .set_(c10::Storage(c10::Storage::use_byte_size_t(), tensor.storage().nbytes(),
                                           c10::GetAllocator(c10::DeviceType::Meta), true),
                              tensor.storage_offset(), tensor.sizes(), tensor.strides());
  CopyMarks(tensor, meta);
  return meta;
}

// A view shares the storage of what it is a view of. On tpu, where autograd finds views by their strides, it has those
// that it has on any other device.
class ViewOf {
 public:
  ViewOf(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    const int argument = ViewedArgument(op.schema());
    if (argument < 0) return;
    const size_t begin = stack.size() - op.schema().arguments().size();
    const c10::IValue& value = stack[begin + static_cast<size_t>(argument)];
    if (!value.isTensor() || ImplOf(value.toTensor()) == nullptr) return;
    base_ = value.toTensor();
    if (base_.device().type() != kTpu && !IsMarked(base_)) return;
    torch::jit::Stack copy(stack.begin() + static_cast<std::ptrdiff_t>(begin), stack.end());
    copy[static_cast<size_t>(argument)] = MetaOf(base_);
    op.callBoxed(copy);
    if (!copy.empty()) meta_ = copy[0];
  }

  bool is_view() const { return base_.defined(); }
  const at::Tensor& base() const { return base_; }

  void Finish(const c10::IValue& result) const {
    if (!base_.defined()) return;
    if (result.isTensor()) return Set(result.toTensor(), meta_);
    if (!result.isTensorList()) return;
    const c10::List<at::Tensor> list = result.toTensorList();
    for (size_t i = 0; i < list.size(); ++i) {
      Set(list[i], meta_.isTensorList() && i < meta_.toTensorList().size()
                       ? c10::IValue(at::Tensor(meta_.toTensorList()[i]))
                       : c10::IValue());
    }
  }

 private:
  void Set(const at::Tensor& view, const c10::IValue& meta) const {
    LazyTensorImpl* const impl = ImplOf(view);
    if (impl == nullptr || view.is_same(base_)) return;
    impl->set_storage_keep_dtype(base_.storage());
    impl->BecomeViewOf(*ImplOf(base_));
    CopyMarks(meta.isTensor() ? meta.toTensor() : base_, view);
    if (base_.device().type() != kTpu) return;
    if (meta.isTensor() && meta.toTensor().sizes() == view.sizes()) {
      impl->set_sizes_and_strides(view.sizes(), meta.toTensor().strides(), meta.toTensor().storage_offset());
    }
  }

  at::Tensor base_;
  c10::IValue meta_;
};

// The handler sees tensors, whatever their classes do with functions of torch.
class WithoutTorchFunction {
 public:
  WithoutTorchFunction() : before_(at::impl::PythonTorchFunctionTLS::get_disabled_state()) {
    if (before_ == at::impl::TorchFunctionDisabledState::ENABLED) {
      at::impl::PythonTorchFunctionTLS::set_disabled_state(at::impl::TorchFunctionDisabledState::SUBCLASSES_DISABLED);
    }
  }
  ~WithoutTorchFunction() { at::impl::PythonTorchFunctionTLS::set_disabled_state(before_); }
  WithoutTorchFunction(const WithoutTorchFunction&) = delete;
  WithoutTorchFunction& operator=(const WithoutTorchFunction&) = delete;

 private:
  const at::impl::TorchFunctionDisabledState before_;
};

bool IsFake(const at::Tensor& tensor) {
  if (!tensor.defined() || ImplOf(tensor) != nullptr) return false;
  const c10::DispatchKeySet keys = tensor.key_set();
  return keys.has_backend(c10::BackendComponent::XLABit) || keys.has_backend(c10::BackendComponent::PrivateUse1Bit);
}

// Whether an argument is a tensor that only has the device's kernels: a fake one, below its Python class.
bool HasFakeTensor(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  for (size_t i = stack.size() - schema.arguments().size(); i < stack.size(); ++i) {
    if (stack[i].isTensor() && IsFake(stack[i].toTensor())) return true;
    if (!stack[i].isTensorList()) continue;
    for (const at::Tensor& tensor : stack[i].toTensorVector()) {
      if (IsFake(tensor)) return true;
    }
  }
  return false;
}

void Record(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (HasFakeTensor(op.schema(), *stack)) return op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
  const ScopedType type(keys.has_backend(c10::BackendComponent::PrivateUse1Bit) ? kTpu : kXla);
  // Gradients are recorded by the thread that asks for them: it has the line of the program, and the thread's device.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  const c10::FunctionSchema& schema = op.schema();
  const ViewOf view(op, *stack);
  if (!view.is_view() && HasMarks(schema, *stack) && !IsOfStorage(schema.name())) {
    return CallWithValues(op, stack);
  }
  const ScopedStorage storage(view.is_view() ? view.base().storage() : c10::Storage());
  const py::gil_scoped_acquire gil;
  const py::handle function = torch::detail::getTorchApiFunction(op);
  auto [args, kwargs] = TakeArguments(schema, stack);
  torch::jit::drop(*stack, schema.arguments().size());
  const WithoutTorchFunction without;
  const ScopedResults results;
  PyObject* const arguments[] = {function.ptr(), Py_None, args.ptr(), kwargs.ptr()};
  const auto result = py::reinterpret_steal<py::object>(PyObject_Vectorcall(handler, arguments, 4, nullptr));
  if (!result) throw python_error();
  PushResults(schema, result, stack);
  if (!stack->empty()) view.Finish(stack->back());
}

// Views whose marks PyTorch itself sets.
bool IsMark(const std::string& name) { return name == "aten::_conj" || name == "aten::_neg_view"; }

void RegisterFor(c10::DispatchKey key) {
  auto* const others = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  others->fallback(torch::CppFunction::makeFromBoxedFunction<&Record>());
  auto* const aten = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const std::optional<c10::OperatorHandle> op = c10::Dispatcher::singleton().findSchema(name);
    if (!op.has_value()) continue;
    // Composites call ops that have kernels; autograd differentiates these.
    if (op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) continue;
    if (op->hasKernelForDispatchKey(key) || IsMark(name.name)) continue;
    const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    aten->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&Record>());
  }
}

}  // namespace

PyObject* HandOver(at::Tensor tensor) {
  handed_over.push_back(std::move(tensor));
  return PyLong_FromSize_t(handed_over.size() - 1);
}

void SetHandler(py::object function) { handler = function.release().ptr(); }

void RegisterKernels(bool xla, py::object function) {
  SetHandler(std::move(function));
  RegisterFor(c10::DispatchKey::PrivateUse1);
  if (xla) RegisterFor(c10::DispatchKey::XLA);
}

}  // namespace hlokit::torch_device
