// SPDX-License-Identifier: Apache-2.0
// Arguments of PyTorch's ops as values of the tracer.
#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"
#include "python/binding/torch_recorder.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/step/device_state.h"

namespace hlokit::python {
namespace {

// Reads a Python number that fits; booleans are numbers.
std::optional<lazy::Scalar> NumberOf(PyObject* object) {
  if (PyBool_Check(object)) return lazy::Scalar(object == Py_True);
  if (PyLong_Check(object)) {
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) return std::nullopt;
    return lazy::Scalar(value);
  }
  if (PyFloat_Check(object)) return lazy::Scalar(PyFloat_AS_DOUBLE(object));
  return std::nullopt;
}

bool IsSequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

}  // namespace

bool ArgumentConverter::Fail(std::string reason) {
  reason_ = std::move(reason);
  return false;
}

bool ArgumentConverter::Take(PyObject* tensor, lazy::Tensor* result) {
  const LazyTensorObject* const lazy = TorchTensors::Get().LazyOf(tensor);
  if (lazy == nullptr) return Fail(StrCat("a ", Py_TYPE(tensor)->tp_name, " that is not of the device"));
  if (first_ == nullptr) {
    first_ = lazy;
    first_tensor_ = tensor;
  }
  if (lazy->session != first_->session) return Fail("tensors of different sessions");
  *result = lazy->tensor;
  return true;
}

bool ArgumentConverter::ConvertTensor(PyObject* object, size_t index) {
  if (const std::optional<lazy::Scalar> number = NumberOf(object)) {
    numbers_.emplace_back(index, *number);
    return true;
  }
  lazy::Tensor tensor;
  if (!Take(object, &tensor)) return Fail(StrCat("`", schema_.args[index].name, "` is ", reason_));
  values_[index] = lazy::IValue(std::move(tensor));
  return true;
}

bool ArgumentConverter::ConvertTensors(PyObject* object, size_t index) {
  if (!IsSequence(object)) return Fail(StrCat("`", schema_.args[index].name, "` is no list"));
  lazy::Tensors tensors(static_cast<size_t>(PySequence_Fast_GET_SIZE(object)));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(object, i);
    if (item == Py_None) continue;
    if (!Take(item, &tensors[i])) return Fail(StrCat("`", schema_.args[index].name, "` has ", reason_));
  }
  values_[index] = lazy::IValue(std::move(tensors));
  return true;
}

bool ArgumentConverter::ConvertNumbers(PyObject* object, size_t index, bool integers) {
  PyObject* const* items = &object;
  size_t count = 1;
  if (IsSequence(object)) {
    items = PySequence_Fast_ITEMS(object);
    count = static_cast<size_t>(PySequence_Fast_GET_SIZE(object));
  }
  lazy::IntList ints;
  std::vector<double> floats;
  for (size_t i = 0; i < count; ++i) {
    const std::optional<lazy::Scalar> number = NumberOf(items[i]);
    if (!number || (integers && number->is_float())) {
      return Fail(StrCat("`", schema_.args[index].name, "` has a ", Py_TYPE(items[i])->tp_name));
    }
    if (integers) {
      ints.push_back(number->ToInt());
    } else {
      floats.push_back(number->ToDouble());
    }
  }
  if (integers) {
    if (!IsSequence(object)) ints.resize(static_cast<size_t>(std::max(schema_.args[index].list_size, 1)), ints[0]);
    values_[index] = lazy::IValue(std::move(ints));
  } else {
    values_[index] = lazy::IValue(std::move(floats));
  }
  return true;
}

bool ArgumentConverter::Convert(PyObject* object, int index) {
  const auto at = static_cast<size_t>(index);
  const lazy::ArgSpec& spec = schema_.args[at];
  if (object == Py_None) return spec.optional || Fail(StrCat("`", spec.name, "` is None"));
  switch (spec.type) {
    case lazy::ArgType::kTensor:
      return ConvertTensor(object, at);
    case lazy::ArgType::kTensorList:
      return ConvertTensors(object, at);
    case lazy::ArgType::kScalar:
    case lazy::ArgType::kInt:
    case lazy::ArgType::kFloat:
    case lazy::ArgType::kBool: {
      const std::optional<lazy::Scalar> number = NumberOf(object);
      if (!number) break;
      if (spec.type == lazy::ArgType::kInt && number->is_float()) break;
      if (spec.type == lazy::ArgType::kFloat) {
        values_[at] = lazy::IValue(number->ToDouble());
      } else if (spec.type == lazy::ArgType::kBool) {
        values_[at] = lazy::IValue(number->ToBool());
      } else {
        values_[at] = lazy::IValue(*number);
      }
      return true;
    }
    case lazy::ArgType::kIntList:
      return ConvertNumbers(object, at, true);
    case lazy::ArgType::kFloatList:
      return ConvertNumbers(object, at, false);
    case lazy::ArgType::kString: {
      Py_ssize_t size = 0;
      const char* const text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
      if (text == nullptr) {
        PyErr_Clear();
        break;
      }
      values_[at] = lazy::IValue(std::string(text, static_cast<size_t>(size)));
      return true;
    }
    case lazy::ArgType::kDtype:
      if (const std::optional<ElementType> type = TorchTensors::Get().ElementTypeOf(object)) {
        values_[at] = lazy::IValue(*type);
        return true;
      }
      break;
  }
  return Fail(StrCat("`", spec.name, "` is a ", Py_TYPE(object)->tp_name));
}

bool ArgumentConverter::Finish() {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].none()) values_[i] = schema_.args[i].default_value;
  }
  if (numbers_.empty()) return true;
  if (first_ == nullptr) return Fail("no argument is a lazy tensor");
  lazy::DeviceState& device = *first_->tensor.device();
  lazy::ResultTypeState tensors;
  bool any = false;
  for (const lazy::IValue& value : values_) {
    if (const lazy::Tensor* const tensor = value.get<lazy::Tensor>()) {
      tensors.Add(tensor->shape());
      any = true;
    }
  }
  lazy::DeviceLock lock(device.mutex());
  for (const auto& [index, number] : numbers_) {
    lazy::ResultTypeState promotion = any ? tensors : lazy::ResultTypeState();
    promotion.Add(number);
    values_[index] = lazy::IValue(device.NewTensor(device.ScalarNode(number, promotion.result())));
  }
  return true;
}

}  // namespace hlokit::python
