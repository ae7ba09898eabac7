// SPDX-License-Identifier: Apache-2.0
// Functions of custom calls in Python.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "interp/custom_calls/process_calls.h"
#include "ir/core/str_cat.h"
#include "ir/types/literal.h"
#include "python/binding/bindings.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

// A function that may be destroyed where the GIL is not held.
using SharedFunction = std::shared_ptr<py::function>;

SharedFunction Share(py::function function) {
  return {new py::function(std::move(function)), [](py::function* f) {
            const py::gil_scoped_acquire acquire;
            delete f;
          }};
}

py::array CopyOf(const interp::CustomCallOperand& operand) {
  const std::vector<py::ssize_t> dims(operand.shape.dims().begin(), operand.shape.dims().end());
  py::array array(DtypeOf(operand.shape.element_type()), dims);
  std::memcpy(array.mutable_data(), operand.data, static_cast<size_t>(array.nbytes()));
  return array;
}

// Returns why a value cannot be a result; "" once it is stored.
std::string Store(const py::handle& value, const interp::CustomCallResult& result) {
  const py::module_ numpy = py::module_::import("numpy");
  const py::dtype type = DtypeOf(result.shape.element_type());
  const py::array given = numpy.attr("asarray")(value);
  // Numbers of Python have no type of their own; fractions are not cut off.
  if (!numpy.attr("can_cast")(given.dtype(), type, "same_kind").cast<bool>()) {
    return StrCat("returned an array of ", std::string(py::str(given.dtype())), ", not of ",
                  std::string(py::str(type)));
  }
  const py::array array = numpy.attr("ascontiguousarray")(given, type);
  const absl::Span<const int64_t> dims = result.shape.dims();
  bool same = LiteralBytes(result.shape) == array.nbytes();
  for (size_t d = 0; same && d < dims.size() && static_cast<py::ssize_t>(dims.size()) == array.ndim(); ++d) {
    same = array.shape(static_cast<py::ssize_t>(d)) == dims[d];
  }
  // NumPy makes scalars arrays of one element.
  const bool scalar = dims.empty() && array.size() == 1;
  if (!same || (!scalar && static_cast<py::ssize_t>(dims.size()) != array.ndim())) {
    return StrCat("returned an array of another shape: ", std::string(py::str(array.attr("shape"))));
  }
  std::memcpy(result.data, array.data(), static_cast<size_t>(array.nbytes()));
  return "";
}

absl::Status Call(const py::function& function, absl::Span<const interp::CustomCallOperand> operands,
                  absl::Span<const interp::CustomCallResult> results, std::string_view backend_config) {
  const py::gil_scoped_acquire acquire;
  try {
    py::list arrays;
    for (const interp::CustomCallOperand& operand : operands) {
      if (operand.shape.IsArray()) arrays.append(CopyOf(operand));
    }
    const py::object returned = function(*py::tuple(arrays), py::arg("backend_config") = ToStr(backend_config));
    std::vector<interp::CustomCallResult> leaves;
    for (const interp::CustomCallResult& result : results) {
      if (result.shape.IsArray()) leaves.push_back(result);
    }
    py::list values;
    if (py::isinstance<py::tuple>(returned) || py::isinstance<py::list>(returned)) {
      values = py::list(returned);
    } else if (!returned.is_none()) {
      values.append(returned);
    }
    if (values.size() != leaves.size()) {
      return absl::InvalidArgumentError(
          StrCat("the function of the custom call returned ", values.size(), " arrays, not ", leaves.size()));
    }
    for (size_t i = 0; i < leaves.size(); ++i) {
      const std::string wrong = Store(values[i], leaves[i]);
      if (!wrong.empty()) return absl::InvalidArgumentError(StrCat("the function of the custom call ", wrong));
    }
  } catch (const py::error_already_set& error) {
    return absl::InternalError(StrCat("the function of the custom call raised ", error.what()));
  }
  return absl::OkStatus();
}

void Register(const std::string& target, const py::object& function) {
  if (function.is_none()) return interp::RegisterProcessCall(target, nullptr);
  interp::RegisterProcessCall(
      target, [shared = Share(function.cast<py::function>())](auto operands, auto results, std::string_view config) {
        return Call(*shared, operands, results, config);
      });
}

void Stub(bool enabled) {
  interp::StubProcessCalls(enabled ? [](std::string_view) { return true; } : std::function<bool(std::string_view)>());
}

}  // namespace

void BindCustomCalls(py::module_& m) {
  m.def("register_custom_call", &Register, py::arg("target"), py::arg("function"),
        R"(Has custom calls of a target run a function, in programs that are compiled from now on.

`function(*operands, backend_config)` takes NumPy arrays and the text of the attribute, and returns an array, or a tuple
of them, of the shapes of the result; nothing if it has none. None removes a function.)");
  m.def("stub_custom_calls", &Stub, py::arg("enabled") = true,
        R"(Has custom calls without a function return made-up values, a fixed function of their operands.)");
}

}  // namespace hlokit::python
