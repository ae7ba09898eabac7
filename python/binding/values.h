// SPDX-License-Identifier: Apache-2.0
// Values of the IR as Python objects: shapes, attributes, literals, metadata.
#ifndef HLOKIT_PYTHON_BINDING_VALUES_H_
#define HLOKIT_PYTHON_BINDING_VALUES_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"
#include "python/binding/handles.h"

namespace hlokit::python {

// A shape with the context that owns it.
struct ShapeValue {
  std::shared_ptr<Context> context;
  Shape shape;
};

// Returns an instance of a class of hlokit/_values.py.
template <typename... Fields>
pybind11::object Make(const char* type, Fields&&... fields) {
  return pybind11::module_::import("hlokit._values").attr(type)(std::forward<Fields>(fields)...);
}

pybind11::tuple ToTuple(absl::Span<const int64_t> values);
pybind11::str ToStr(std::string_view text);

// Returns the attribute as a Python value: bool, int, float, str, tuples of these, handles, or a class of
// hlokit/_values.py. Types without a class are their HLO text.
pybind11::object AttributeToPython(const ModulePtr& state, Instruction instruction, AttrValue value);
// Returns all attributes by name, in print order.
pybind11::dict AttributesToPython(const ModulePtr& state, Instruction instruction);
pybind11::object MetadataToPython(const Module& module, MetadataId id);

// ---- arrays ----
// Returns the NumPy type of elements: bool, the integers and floats that NumPy has, those of ml_dtypes where that is
// installed, and otherwise raw ones: integers of as many bytes with the bits of the elements, signed ones for s1 to s4.
pybind11::dtype DtypeOf(ElementType type);
// Returns the element type of an array's dtype; nullopt for dtypes without one, such as objects.
std::optional<ElementType> ElementTypeOf(const pybind11::dtype& dtype);

// A dense array of any element type behind Python's `hlokit.Array`.
struct ArrayValue {
  std::shared_ptr<Context> context;  // of the shape
  Shape shape;
  std::byte* data = nullptr;
  std::shared_ptr<void> owner;  // of the data
  bool writable = true;
};
// Takes the bytes of an array literal.
ArrayValue ArrayOf(std::shared_ptr<Context> context, Literal literal);
// Returns a NumPy array that refers to the elements and keeps them.
pybind11::array ToNumpy(const ArrayValue& array);

// What arrays are in Python: NumPy's, or hlokit.Array.
enum class ArrayForm : uint8_t { kNumpy, kArray };

// Returns the value as an array that refers to its bytes, read-only, or as a tuple of such.
pybind11::object LiteralToPython(const std::shared_ptr<Context>& context, LiteralId id);
// Returns arrays that own the literal's bytes.
pybind11::object LiteralToPython(std::shared_ptr<Context> context, Literal literal, ArrayForm form = ArrayForm::kNumpy);

// Returns the elements of a Python value as an array and their type; a list of numbers, and a number, are an array of
// Python's type. `what`: how messages of the TypeError begin.
struct GivenArray {
  pybind11::array array;
  std::optional<ElementType> type;  // nullopt: no HLO type
  bool numbers = false;             // numbers of Python, whose type the user did not choose
};
GivenArray ArrayFromPython(pybind11::handle value, const std::string& what);
// Returns dense and aligned elements of `type` in the sizes `dims`: those of the array where they are so already, or a
// copy. Raw elements are taken as they are, numbers of Python are converted. Throws ValueError or TypeError.
pybind11::array ElementsOf(const GivenArray& given, ElementType type, absl::Span<const int64_t> dims,
                           const std::string& what);
// Returns the values of an array of numbers in another type, floats rounded as that type does. Throws ValueError for
// numbers that an integer type or pred lacks.
pybind11::array ConvertNumbers(const pybind11::array& numbers, ElementType type, const std::string& what);
// Returns true if the array has the dtype in which `type`, which has none of its own, is given as bits.
bool IsRaw(const pybind11::array& array, ElementType type);
// Returns the values as f32. Requires: `array` has elements of `type`, a float or a type narrower than a byte.
pybind11::array ToFloat32(const pybind11::array& array, ElementType type);

// Returns a literal of `shape`, an array, that refers to the bytes of `value` where they are dense and of its type, or
// to a copy. `keep` receives the object whose bytes it refers to. Throws ValueError or TypeError, whose message begins
// with `what`. A dynamic shape takes arrays of any size within its bounds; `sized` returns the shape of their literals.
Literal ArrayToLiteral(pybind11::handle value, Shape shape, const std::string& what, pybind11::list* keep,
                       absl::FunctionRef<Shape(absl::Span<const int64_t> dims)> sized);

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_VALUES_H_
