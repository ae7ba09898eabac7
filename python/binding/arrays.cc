// SPDX-License-Identifier: Apache-2.0
// Literals as NumPy arrays and back. Neither direction copies bytes where both sides have the same layout of elements.
#include <optional>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

// The type of elements in NumPy or ml_dtypes; the format of NumPy is empty for types that only ml_dtypes has.
struct ArrayType {
  ElementType type;
  const char* format;
  const char* ml_dtypes;
};

// The first row of a format is the one for it.
constexpr ArrayType kArrayTypes[] = {
    {ElementType::kPred, "?", ""},
    {ElementType::kS8, "i1", ""},
    {ElementType::kS16, "i2", ""},
    {ElementType::kS32, "i4", ""},
    {ElementType::kS64, "i8", ""},
    {ElementType::kU8, "u1", ""},
    {ElementType::kU16, "u2", ""},
    {ElementType::kU32, "u4", ""},
    {ElementType::kU64, "u8", ""},
    {ElementType::kF16, "f2", ""},
    {ElementType::kF32, "f4", ""},
    {ElementType::kF64, "f8", ""},
    {ElementType::kC64, "c8", ""},
    {ElementType::kC128, "c16", ""},
    {ElementType::kBF16, "", "bfloat16"},
    {ElementType::kS1, "", "int1"},
    {ElementType::kS2, "", "int2"},
    {ElementType::kS4, "", "int4"},
    {ElementType::kU1, "", "uint1"},
    {ElementType::kU2, "", "uint2"},
    {ElementType::kU4, "", "uint4"},
    {ElementType::kF4E2M1FN, "", "float4_e2m1fn"},
    {ElementType::kF8E3M4, "", "float8_e3m4"},
    {ElementType::kF8E4M3, "", "float8_e4m3"},
    {ElementType::kF8E4M3FN, "", "float8_e4m3fn"},
    {ElementType::kF8E4M3B11FNUZ, "", "float8_e4m3b11fnuz"},
    {ElementType::kF8E4M3FNUZ, "", "float8_e4m3fnuz"},
    {ElementType::kF8E5M2, "", "float8_e5m2"},
    {ElementType::kF8E5M2FNUZ, "", "float8_e5m2fnuz"},
    {ElementType::kF8E8M0FNU, "", "float8_e8m0fnu"},
};

// Returns the module ml_dtypes, or none.
py::object MlDtypes() {
  static const py::handle module = [] {
    PyObject* imported = PyImport_ImportModule("ml_dtypes");
    if (imported == nullptr) {
      PyErr_Clear();
      imported = Py_NewRef(Py_None);
    }
    return py::handle(imported);
  }();
  return py::reinterpret_borrow<py::object>(module);
}

// Returns the elements of raw types, which have no dtype of their own, as unsigned integers.
py::dtype RawDtype(ElementType type) { return py::dtype(BytesOf(type) == 2 ? "u2" : "u1"); }

std::vector<py::ssize_t> Sizes(Shape shape) { return {shape.dims().begin(), shape.dims().end()}; }

py::object Array(Shape shape, const std::byte* data, py::handle owner, bool writable) {
  py::array result(DtypeOf(shape.element_type()), Sizes(shape), data, owner);
  if (!writable) py::detail::array_proxy(result.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return result;
}

template <typename T>
py::capsule OwnerOf(T value) {
  return py::capsule(new T(std::move(value)), [](void* data) { delete static_cast<T*>(data); });
}

std::string DimsText(absl::Span<const int64_t> dims) {
  std::string text = "(";
  for (const int64_t d : dims) text += StrCat(text.size() > 1 ? ", " : "", d);
  return text + (dims.size() == 1 ? ",)" : ")");
}

}  // namespace

py::dtype DtypeOf(ElementType type) {
  for (const ArrayType& row : kArrayTypes) {
    if (row.type != type) continue;
    if (*row.format != '\0') return py::dtype(row.format);
    const py::object module = MlDtypes();
    if (py::hasattr(module, row.ml_dtypes)) return py::dtype::from_args(module.attr(row.ml_dtypes));
  }
  return RawDtype(type);
}

std::optional<ElementType> ElementTypeOf(const py::dtype& dtype) {
  const py::object module = MlDtypes();
  for (const ArrayType& row : kArrayTypes) {
    if (*row.format != '\0') {
      if (dtype.is(py::dtype(row.format)) || dtype.equal(py::dtype(row.format))) return row.type;
    } else if (py::hasattr(module, row.ml_dtypes) && dtype.equal(py::dtype::from_args(module.attr(row.ml_dtypes)))) {
      return row.type;
    }
  }
  return std::nullopt;
}

py::object LiteralToPython(const std::shared_ptr<Context>& context, LiteralId id) {
  const LiteralRecord& record = context->literals[id];
  if (record.elided) return py::none();
  if (record.shape.IsArray()) return Array(record.shape, record.data, OwnerOf(context), /*writable=*/false);
  // A tuple of constants: its depth is that of its shape.
  return LiteralToPython(context, context->literals.ToLiteral(id));
}

py::object LiteralToPython(std::shared_ptr<Context> context, Literal literal) {
  // Tuples nest as deep as the input says: a stack instead of recursion.
  struct Frame {
    explicit Frame(Literal value) : literal(std::move(value)) {}
    Literal literal;
    size_t next = 0;
    py::list values;
  };
  std::vector<Frame> stack;
  py::object result;
  stack.emplace_back(std::move(literal));
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const Shape shape = frame.literal.shape();
    if (shape.IsTuple()) {
      if (result) frame.values.append(std::exchange(result, py::object()));
      if (frame.next < frame.literal.elements().size()) {
        Literal element = std::move(frame.literal.elements()[frame.next++]);
        stack.emplace_back(std::move(element));
        continue;
      }
      result = py::tuple(frame.values);
    } else if (!shape.IsArray() || frame.literal.elided()) {
      result = py::none();
    } else {
      using Owned = std::pair<std::shared_ptr<Context>, Literal>;
      auto* owned = new Owned(context, std::move(frame.literal));
      const py::capsule owner(owned, [](void* data) { delete static_cast<Owned*>(data); });
      result = Array(shape, owned->second.data(), owner, /*writable=*/true);
    }
    stack.pop_back();
  }
  return result;
}

Literal ArrayToLiteral(py::handle value, Shape shape, const std::string& what, py::list* keep) {
  py::array array;
  if (py::hasattr(value, "__dlpack__") && !py::isinstance<py::array>(value) &&
      !py::hasattr(value, "__array_interface__") && !py::hasattr(value, "__array__")) {
    array = py::module_::import("numpy").attr("from_dlpack")(value);
  } else {
    array = py::array::ensure(value);
    if (!array) {
      PyErr_Clear();
      throw py::type_error(StrCat(what, ": not an array: ", std::string(py::str(py::type::of(value)))));
    }
  }
  if (array.dtype().kind() == 'O') {
    throw py::type_error(StrCat(what, ": not an array: ", std::string(py::str(py::type::of(value)))));
  }
  const ElementType type = shape.element_type();
  const std::vector<py::ssize_t> sizes = Sizes(shape);
  if (!std::equal(sizes.begin(), sizes.end(), array.shape(), array.shape() + array.ndim())) {
    const std::vector<int64_t> given(array.shape(), array.shape() + array.ndim());
    throw py::value_error(StrCat(what, ": the array has the shape ", DimsText(given), ", the program takes ",
                                 ToString(shape, /*with_layout=*/false)));
  }
  const std::optional<ElementType> given = ElementTypeOf(array.dtype());
  const bool raw = array.dtype().equal(RawDtype(type)) && DtypeOf(type).equal(RawDtype(type));
  if (given != type && !raw) {
    // Python's own numbers have types that their user did not choose.
    const bool number = py::isinstance<py::float_>(value) || py::isinstance<py::int_>(value) ||
                        py::isinstance<py::bool_>(value) || py::isinstance<py::list>(value) ||
                        py::isinstance<py::tuple>(value);
    if (!number) {
      throw py::type_error(StrCat(what, ": the array has the type ", std::string(py::str(array.dtype())),
                                  ", the program takes ", ToString(type),
                                  " (NumPy: ", std::string(py::str(DtypeOf(type))), ")"));
    }
    array = array.attr("astype")(DtypeOf(type));
  }
  array = py::module_::import("numpy").attr("ascontiguousarray")(array).attr("reshape")(ToTuple(shape.dims()));
  keep->append(array);
  return Literal::Borrowed(shape, const_cast<std::byte*>(static_cast<const std::byte*>(array.data())));
}

}  // namespace hlokit::python
