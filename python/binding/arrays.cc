// SPDX-License-Identifier: Apache-2.0
// Literals as arrays of Python and back. Neither direction copies bytes where both sides have the same layout of
// elements.
#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/types/float_types.h"
#include "ir/types/sized_shape.h"
#include "python/binding/bindings.h"
#include "python/binding/dlpack.h"
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
    PyObject* const imported = PyImport_ImportModule("ml_dtypes");
    if (imported != nullptr) return py::handle(imported);
    PyErr_Clear();
    return py::handle(py::none().release());
  }();
  return py::reinterpret_borrow<py::object>(module);
}

// Returns the dtype of the elements' bits, for types that have no dtype of their own.
py::dtype RawDtype(ElementType type) { return py::dtype(BytesOf(type) == 2 ? "u2" : IsSigned(type) ? "i1" : "u1"); }

std::vector<py::ssize_t> Sizes(Shape shape) { return {shape.dims().begin(), shape.dims().end()}; }

py::array Array(Shape shape, const std::byte* data, py::handle owner, bool writable) {
  py::array result(DtypeOf(shape.element_type()), Sizes(shape), data, owner);
  if (!writable) py::detail::array_proxy(result.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return result;
}

template <typename T>
py::capsule OwnerOf(T value) {
  return py::capsule(new T(std::move(value)), [](void* data) { delete static_cast<T*>(data); });
}

std::string DimsText(absl::Span<const py::ssize_t> dims) {
  std::string text = "(";
  for (const py::ssize_t d : dims) text += StrCat(text.size() > 1 ? ", " : "", d);
  return text + (dims.size() == 1 ? ",)" : ")");
}

std::string DtypeText(const py::array& array) { return py::str(array.dtype()); }

// Returns true if each byte is an element of a type that has fewer values than a byte.
bool AreElements(ElementType type, const py::array& array) {
  const int bits = type == ElementType::kPred ? 1 : BitsOf(type);
  if (bits >= 8) return true;
  const uint8_t offset = IsSigned(type) ? uint8_t{1} << (bits - 1) : 0, mask = static_cast<uint8_t>(0xff << bits);
  const auto* const data = static_cast<const uint8_t*>(array.data());
  uint8_t beyond = 0;
  for (py::ssize_t i = 0; i < array.size(); ++i) beyond |= static_cast<uint8_t>(data[i] + offset) & mask;
  return beyond == 0;
}

// Returns the array, or a copy of it whose elements are dense, aligned and row-major.
py::array Dense(const py::array& array) {
  constexpr int kDense = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if ((array.flags() & kDense) == kDense) return array;
  return py::module_::import("numpy").attr("require")(array, py::none(), py::make_tuple("C", "A"));
}

// Returns true if NumPy itself has the type of the elements.
bool IsNumpyType(const py::dtype& dtype) { return py::cast<int>(dtype.attr("isbuiltin")) == 1; }

// Returns an array of the same sizes.
py::array EmptyLike(const py::array& array, const py::dtype& dtype) {
  return py::array(dtype, std::vector<py::ssize_t>(array.shape(), array.shape() + array.ndim()));
}

// Returns the elements as literals have them, with the sign in all bits of the byte: ml_dtypes leaves those beyond the
// element's clear, or did so in some version.
py::array Extended(ElementType type, const py::array& array) {
  const py::array from = Dense(array);
  py::array to = EmptyLike(from, RawDtype(type));
  const int unused = 8 - BitsOf(type);
  const auto* const given = static_cast<const uint8_t*>(from.data());
  auto* const elements = static_cast<uint8_t*>(to.mutable_data());
  for (py::ssize_t i = 0; i < from.size(); ++i) {
    const auto high = static_cast<uint8_t>(given[i] << unused);
    elements[i] = static_cast<uint8_t>(IsSigned(type) ? static_cast<int8_t>(high) >> unused : high >> unused);
  }
  return to;
}

// Returns the name of the Python type, for messages.
std::string TypeText(py::handle value) { return py::str(py::type::of(value)); }

}  // namespace

void CheckNumpy() {
  const py::module_ numpy = py::module_::import("numpy");
  // {{1, 2}, {4, 5}}, not dense.
  const py::array array = numpy.attr("frombuffer")(py::bytes("\0\1\2\3\4\5", 6), "u1")
                              .attr("reshape")(2, 3)[py::make_tuple(py::ellipsis(), py::slice(1, 3, 1))];
  bool equal = array.ndim() == 2 && array.itemsize() == 1 && array.dtype().kind() == 'u' && !array.writeable();
  for (int i = 0; equal && i < 2; ++i) {
    equal = array.shape(i) == 2 && array.strides(i) == (i == 0 ? 3 : 1);
  }
  for (int i = 0; equal && i < 4; ++i) {
    equal = *static_cast<const uint8_t*>(array.data(i / 2, i % 2)) == (i < 2 ? i + 1 : i + 2);
  }
  // And back.
  const float values[] = {1.5f, -2.0f, 4.0f};
  const py::array made(py::dtype("f4"), std::vector<py::ssize_t>{3}, values);
  equal = equal && py::str(made.attr("tolist")()).cast<std::string>() == "[1.5, -2.0, 4.0]";
  if (equal) return;
  throw py::import_error(StrCat("hlokit was compiled for arrays of another layout than those of NumPy ",
                                std::string(py::str(numpy.attr("__version__"))),
                                "; build it again with a newer pybind11"));
}

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

ArrayValue ArrayOf(std::shared_ptr<Context> context, Literal literal) {
  ArrayValue value;
  value.shape = literal.shape();
  auto owned = std::make_shared<std::pair<std::shared_ptr<Context>, Literal>>(context, std::move(literal));
  value.context = std::move(context);
  value.data = owned->second.data();
  value.owner = std::move(owned);
  return value;
}

py::array ToNumpy(const ArrayValue& array) {
  return Array(array.shape, array.data, OwnerOf(std::make_pair(array.context, array.owner)), array.writable);
}

py::object LiteralToPython(std::shared_ptr<Context> context, Literal literal, ArrayForm form) {
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
      ArrayValue value = ArrayOf(context, std::move(frame.literal));
      result = form == ArrayForm::kNumpy ? py::object(ToNumpy(value)) : py::cast(std::move(value));
    }
    stack.pop_back();
  }
  return result;
}

// Returns whether elements of a masked array of NumPy are masked, under which there is no data.
bool HasMaskedElements(py::handle value) {
  return py::isinstance<py::array>(value) && py::hasattr(value, "mask") &&
         py::module_::import("numpy").attr("ma").attr("is_masked")(value).cast<bool>();
}

GivenArray ArrayFromPython(py::handle value, const std::string& what) {
  if (py::isinstance<ArrayValue>(value)) {
    const auto& array = value.cast<const ArrayValue&>();
    return {ToNumpy(array), array.shape.element_type()};
  }
  if (HasMaskedElements(value)) {
    throw py::value_error(StrCat(what, ": elements of the array are masked; its method filled() gives them values"));
  }
  const bool numpy = py::isinstance<py::array>(value);
  std::string why;
  if (!numpy && py::hasattr(value, "__dlpack__")) {
    try {
      ImportedArray imported = FromDlpack(value, what);
      return {std::move(imported.array), imported.type};
    } catch (py::error_already_set& error) {
      // Types that its DLPack lacks, such as bool in torch 1.13, come as an array.
      if (!error.matches(PyExc_Exception)) throw;
      why = StrCat(": ", std::string(py::str(error.value())));
    }
  }
  py::array array = py::array::ensure(value);
  if (!array) {
    PyErr_Clear();
    throw py::type_error(StrCat(what, ": not an array: ", TypeText(value), why));
  }
  constexpr std::string_view kNoNumbers = "OUSVMm";  // objects, texts, records, dates
  if (kNoNumbers.find(array.dtype().kind()) != std::string_view::npos && !ElementTypeOf(array.dtype()))
    throw py::type_error(StrCat(what, ": not an array: ", TypeText(value)));
  GivenArray given{array, ElementTypeOf(array.dtype())};
  given.numbers = py::isinstance<py::float_>(value) || py::isinstance<py::int_>(value) ||
                  py::isinstance<py::bool_>(value) || py::isinstance<py::list>(value) ||
                  py::isinstance<py::tuple>(value) || PyComplex_Check(value.ptr());
  return given;
}

py::array ConvertNumbers(const py::array& numbers, ElementType type, const std::string& what) {
  const py::dtype dtype = DtypeOf(type);
  py::array to;
  if (ElementTypeOf(dtype) == type) {
    to = numbers.attr("astype")(dtype);
  } else {
    const py::array from = Dense(numbers.attr("astype")("f8"));
    to = EmptyLike(from, dtype);
    const auto* const values = static_cast<const double*>(from.data());
    VisitType(type, [&]<typename T>(std::type_identity<T>) {
      auto* const elements = static_cast<T*>(to.mutable_data());
      for (py::ssize_t i = 0; i < from.size(); ++i) {
        if constexpr (SoftFloat<T>) {
          elements[i] = T(values[i]);
        } else if constexpr (std::numeric_limits<T>::is_integer && sizeof(T) == 1) {
          // Others differ from the number, which is noticed below.
          elements[i] = T(values[i] > -256 && values[i] < 256 ? static_cast<int>(values[i]) : 0);
        }
      }
    });
  }
  const bool exact = IsInteger(type) || type == ElementType::kPred;
  if (exact && !py::bool_(py::module_::import("numpy").attr("array_equal")(to, numbers))) {
    throw py::value_error(StrCat(what, ": a number is no ", ToString(type)));
  }
  return to;
}

bool IsRaw(const py::array& array, ElementType type) {
  const auto* const row = std::find_if(std::begin(kArrayTypes), std::end(kArrayTypes),
                                       [&](const ArrayType& candidate) { return candidate.type == type; });
  const bool in_numpy = row != std::end(kArrayTypes) && *row->format != '\0';
  return !in_numpy && array.dtype().equal(RawDtype(type));
}

py::array ToFloat32(const py::array& array, ElementType type) {
  const py::array from = Dense(array);
  py::array to = EmptyLike(from, py::dtype("f4"));
  auto* const values = static_cast<float*>(to.mutable_data());
  VisitType(type, [&]<typename T>(std::type_identity<T>) {
    if constexpr (!AnyComplex<T>) {
      const auto* const elements = static_cast<const T*>(from.data());
      for (py::ssize_t i = 0; i < from.size(); ++i) values[i] = static_cast<float>(elements[i]);
    }
  });
  return to;
}

py::array ElementsOf(const GivenArray& given, ElementType type, absl::Span<const int64_t> dims,
                     const std::string& what) {
  py::array array = given.array;
  const absl::Span<const py::ssize_t> sizes(array.shape(), static_cast<size_t>(array.ndim()));
  if (!std::equal(sizes.begin(), sizes.end(), dims.begin(), dims.end())) {
    throw py::value_error(StrCat(what, ": the array has the shape ", DimsText(sizes), ", not ",
                                 DimsText(std::vector<py::ssize_t>(dims.begin(), dims.end()))));
  }
  if (given.numbers && given.type != type) {
    array = ConvertNumbers(array, type, what);
  } else if (given.type != type && !IsRaw(array, type)) {
    throw py::type_error(
        StrCat(what, ": the array has elements of ",
               given.type ? StrCat(ToString(*given.type), " (", DtypeText(array), ")") : DtypeText(array), ", not of ",
               ToString(type), " (", std::string(py::str(DtypeOf(type))), ")"));
  }
  array = Dense(array);
  if (AreElements(type, array)) return array;
  if (IsInteger(type) && !IsNumpyType(array.dtype())) return Extended(type, array);
  throw py::value_error(StrCat(what, ": an element has bits beyond those of ", ToString(type)));
}

Literal ArrayToLiteral(py::handle value, Shape shape, const std::string& what, py::list* keep,
                       absl::FunctionRef<Shape(absl::Span<const int64_t> dims)> sized) {
  const GivenArray given = ArrayFromPython(value, what);
  if (shape.has_dynamic_dims()) {
    const std::vector<int64_t> dims(given.array.shape(), given.array.shape() + given.array.ndim());
    if (FitsWithin(dims, shape)) shape = sized(dims);
  }
  const py::array array = ElementsOf(given, shape.element_type(), shape.dims(), what);
  keep->append(array);
  return Literal::Borrowed(shape, const_cast<std::byte*>(static_cast<const std::byte*>(array.data())));
}

}  // namespace hlokit::python
