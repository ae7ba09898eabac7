// SPDX-License-Identifier: Apache-2.0
// hlokit.Array: arrays of any element type, for NumPy, DLPack and the runs of programs.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ir/core/str_cat.h"
#include "python/binding/bindings.h"
#include "python/binding/dlpack.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

// Keeps a Python object from C++, which may let go of it in any thread.
std::shared_ptr<void> Keep(py::object object) {
  return {object.release().ptr(), [](void* kept) {
            if (Py_IsInitialized() == 0) return;
            const py::gil_scoped_acquire lock;
            Py_DECREF(static_cast<PyObject*>(kept));
          }};
}

ElementType TypeNamed(const std::string& name) {
  const std::optional<ElementType> type = ElementTypeFromText(name);
  if (!type || !IsArrayType(*type)) throw py::value_error(StrCat("dtype: HLO has no element type \"", name, "\""));
  return *type;
}

ArrayValue NewArray(const py::object& value, const std::optional<std::string>& dtype) {
  GivenArray given = ArrayFromPython(value, "Array");
  const std::optional<ElementType> type = dtype ? TypeNamed(*dtype) : given.type;
  if (!type)
    throw py::type_error(StrCat("Array: HLO has no element type for ", std::string(py::str(given.array.dtype()))));
  const absl::Span<const py::ssize_t> sizes(given.array.shape(), static_cast<size_t>(given.array.ndim()));
  const std::vector<int64_t> dims(sizes.begin(), sizes.end());
  // Other numbers are values: only integers with the bits of the elements are taken as they are.
  const bool floats = given.type && (*given.type == ElementType::kF32 || *given.type == ElementType::kF64 ||
                                     *given.type == ElementType::kF16);
  if (floats && given.type != type && IsFloat(*type)) {
    given.array = ConvertNumbers(given.array, *type, "Array");
    given.type = *type;
  }
  const py::array elements = ElementsOf(given, *type, dims, "Array");
  ArrayValue array;
  array.context = std::make_shared<Context>();
  array.shape = array.context->shapes.Array(*type, dims);
  array.data = const_cast<std::byte*>(static_cast<const std::byte*>(elements.data()));
  array.writable = elements.writeable();
  array.owner = Keep(elements);
  return array;
}

py::capsule Dlpack(const ArrayValue& array, const py::object&, const py::object&, const py::object& device,
                   const py::object& copy) {
  if (!array.writable) throw py::buffer_error("DLPack cannot say that an array is read-only: copy it");
  if (!device.is_none() && py::int_(py::tuple(device)[0]).cast<int>() != 1) {
    throw py::buffer_error("the array is in the CPU's memory");
  }
  if (!copy.is_none() && py::bool_(copy)) throw py::buffer_error("no copies are made: copy the array before");
  return ToDlpack(array.shape, array.data, array.owner);
}

}  // namespace

void BindArray(py::module_& m) {
  py::class_<ArrayValue>(m, "Array", R"(A dense, row-major array of any element type of HLO, in the CPU's memory.

NumPy sees it without a copy (numpy.asarray, `__array_interface__`), and so do libraries with DLPack, such as torch:
torch.from_dlpack(array), in bf16 too. Programs take it, and return it with Executable(..., results="array").)")
      .def(py::init(&NewArray), py::arg("value"), py::arg("dtype") = py::none(),
           R"(Refers to an array of NumPy, torch or another library with DLPack, without a copy where it is dense.

dtype: the element type in HLO's words, "bf16", by default that of the array. Integers with the bits of the elements
(uint16 for bf16) are taken as they are, floats are rounded to it. Raises TypeError for other arrays, ValueError for
unknown types and for elements beyond those of narrow types.)")
      .def_property_readonly(
          "shape",
          [](const ArrayValue& a) {
            return ShapeValue{a.context, a.shape};
          },
          "Its hlokit.Shape.")
      .def_property_readonly(
          "dtype", [](const ArrayValue& a) { return ToStr(ToString(a.shape.element_type())); },
          "Element type in HLO's words: \"f32\", \"bf16\", \"s4\".")
      .def_property_readonly(
          "nbytes", [](const ArrayValue& a) { return LiteralBytes(a.shape); },
          "Bytes in memory; an element takes at least one.")
      .def("numpy", &ToNumpy, "A NumPy array of the same memory, in shape.numpy_dtype.")
      .def(
          "float32",
          [](const ArrayValue& a) {
            if (IsComplex(a.shape.element_type())) throw py::type_error("complex numbers are no f32");
            return ToFloat32(ToNumpy(a), a.shape.element_type());
          },
          "The values as a new NumPy array of float32. Raises TypeError for complex ones.")
      .def(
          "__array__",
          [](const ArrayValue& a, const py::object& dtype, const py::object& copy) -> py::object {
            py::object array = ToNumpy(a);
            if (!dtype.is_none()) array = array.attr("astype")(dtype, py::arg("copy") = false);
            return !copy.is_none() && py::bool_(copy) ? array.attr("copy")() : array;
          },
          py::arg("dtype") = py::none(), py::arg("copy") = py::none(), "As numpy().")
      .def_property_readonly(
          "__array_interface__",
          [](const ArrayValue& a) -> py::object {
            const py::array array = ToNumpy(a);
            // It has no words for the types of ml_dtypes: NumPy then asks __array__.
            if (py::cast<int>(array.dtype().attr("isbuiltin")) == 1) return array.attr("__array_interface__");
            throw py::attribute_error(
                StrCat(std::string(py::str(array.dtype())), " is no type of NumPy: __array__ returns the array"));
          },
          "NumPy's description of the memory, where NumPy has the type.")
      .def("__dlpack__", &Dlpack, py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
           py::arg("dl_device") = py::none(), py::arg("copy") = py::none(),
           R"(The memory as a capsule of DLPack, which keeps it.

Types narrower than a byte are int8 or uint8. Raises BufferError for read-only arrays and for f4e2m1fn.)")
      .def(
          "__dlpack_device__", [](const ArrayValue&) { return py::make_tuple(1, 0); }, "The CPU.")
      .def("__len__",
           [](const ArrayValue& a) {
             if (a.shape.rank() == 0) throw py::type_error("a scalar has no length");
             return a.shape.dims()[0];
           })
      .def("__repr__",
           [](const ArrayValue& a) { return StrCat("<Array ", ToString(a.shape, /*with_layout=*/false), ">"); });
}

}  // namespace hlokit::python
