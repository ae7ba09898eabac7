// SPDX-License-Identifier: Apache-2.0
// Values of the IR as Python objects: shapes, attributes, literals, metadata.
#ifndef HLOKIT_PYTHON_BINDING_VALUES_H_
#define HLOKIT_PYTHON_BINDING_VALUES_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>

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
// installed, and otherwise unsigned integers of as many bytes with the bits of the elements.
pybind11::dtype DtypeOf(ElementType type);
// Returns the element type of an array's dtype; nullopt for dtypes without one, such as objects.
std::optional<ElementType> ElementTypeOf(const pybind11::dtype& dtype);
// Returns the value as an array that refers to its bytes, read-only, or as a tuple of such.
pybind11::object LiteralToPython(const std::shared_ptr<Context>& context, LiteralId id);
// Returns arrays that own the literal's bytes.
pybind11::object LiteralToPython(std::shared_ptr<Context> context, Literal literal);
// Returns a literal of `shape`, an array, that refers to the bytes of `value` where they are contiguous, and are of its
// type, or owns a copy. `keep` receives the object whose bytes it refers to. Throws ValueError or TypeError, whose
// message begins with `what`.
Literal ArrayToLiteral(pybind11::handle value, Shape shape, const std::string& what, pybind11::list* keep);

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_VALUES_H_
