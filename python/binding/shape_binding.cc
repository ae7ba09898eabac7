// SPDX-License-Identifier: Apache-2.0
#include "parser/formats/parser.h"
#include "python/binding/bindings.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

py::tuple Dims(const ShapeValue& value) {
  if (!value.shape.IsArray()) return py::tuple();
  const absl::Span<const int64_t> dims = value.shape.dims();
  py::tuple result(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    // An unbounded dimension has no size.
    result[i] = dims[i] == kUnboundedSize ? py::object(py::none()) : py::object(py::int_(dims[i]));
  }
  return result;
}

py::object LayoutOf(const ShapeValue& value) {
  if (!value.shape.IsArray() || !value.shape.has_layout()) return py::none();
  const LayoutRecord* layout = value.shape.layout();
  const std::string with = ToString(value.shape), without = ToString(value.shape, /*with_layout=*/false);
  return Make("Layout", with.substr(without.size()), ToTuple(layout->minor_to_major), layout->memory_space());
}

}  // namespace

void BindShape(py::module_& m) {
  py::class_<ShapeValue>(m, "Shape", R"(The type of a value: an array, a tuple, a token.

Shapes are values: they compare and hash by their contents, layouts included.)")
      .def(py::init([](const std::string& text) {
             auto context = std::make_shared<Context>();
             const Shape shape = ValueOrThrow(ParseShapeText(text, context.get()), "ParseError");
             return ShapeValue{std::move(context), shape};
           }),
           py::arg("text"), "Parses HLO text, such as `f32[2,3]{1,0}`. Raises ParseError.")
      .def_property_readonly("dims", &Dims,
                             "Sizes of the dimensions, None for unbounded ones; bounds of dynamic ones. () for tuples.")
      .def_property_readonly(
          "dynamic",
          [](const ShapeValue& v) {
            py::tuple result(v.shape.rank());
            for (int64_t i = 0; i < v.shape.rank(); ++i) result[i] = py::bool_(v.shape.is_dynamic(i));
            return result;
          },
          "For each dimension, whether its size is known only when the program runs.")
      .def_property_readonly(
          "dtype", [](const ShapeValue& v) { return ToStr(ToString(v.shape.element_type())); },
          "Element type in HLO's words: \"f32\", \"bf16\", \"s4\"; \"tuple\", \"token\", \"opaque\".")
      .def_property_readonly(
          "numpy_dtype",
          [](const ShapeValue& v) -> py::object {
            if (!v.shape.IsArray()) return py::none();
            return DtypeOf(v.shape.element_type());
          },
          "dtype of arrays of this shape, or None: see docs/python.md.")
      .def_property_readonly("layout", &LayoutOf, "Layout, or None for a shape without one.")
      .def_property_readonly(
          "rank", [](const ShapeValue& v) { return v.shape.rank(); }, "Number of dimensions.")
      .def_property_readonly(
          "is_tuple", [](const ShapeValue& v) { return v.shape.IsTuple(); }, "Whether it is a tuple.")
      .def_property_readonly(
          "is_array", [](const ShapeValue& v) { return v.shape.IsArray(); }, "Whether it is an array, which has dims.")
      .def_property_readonly(
          "is_token", [](const ShapeValue& v) { return v.shape.IsToken(); }, "Whether it is a token.")
      .def_property_readonly(
          "elements",
          [](const ShapeValue& v) {
            py::tuple result(v.shape.tuple_size());
            for (int64_t i = 0; i < v.shape.tuple_size(); ++i) {
              result[i] = py::cast(ShapeValue{v.context, v.shape.element(i)});
            }
            return result;
          },
          "Shapes of a tuple's elements; () for others.")
      .def_property_readonly(
          "element_count",
          [](const ShapeValue& v) -> py::object {
            if (!v.shape.IsArray() || v.shape.element_count() < 0) return py::none();
            return py::int_(v.shape.element_count());
          },
          "Number of elements of an array; None where it is not known.")
      .def_property_readonly(
          "bytes", [](const ShapeValue& v) { return ByteSize(v.shape); },
          "Bytes of all arrays in it, whole bytes for narrow types; bounds of dynamic dimensions.")
      .def("__str__", [](const ShapeValue& v) { return ToString(v.shape); })
      .def("__repr__", [](const ShapeValue& v) { return "Shape('" + ToString(v.shape) + "')"; })
      .def("__eq__",
           [](const ShapeValue& a, const py::object& other) -> py::object {
             if (!py::isinstance<ShapeValue>(other)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
             const auto& b = other.cast<const ShapeValue&>();
             if (a.context == b.context) return py::bool_(a.shape == b.shape);
             return py::bool_(SameShape(a.shape, b.shape, /*ignore_layout=*/false));
           })
      .def("__hash__", [](const ShapeValue& v) { return std::hash<std::string>()(ToString(v.shape)); });
}

}  // namespace hlokit::python
