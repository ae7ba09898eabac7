// SPDX-License-Identifier: Apache-2.0
// The DLPack protocol: arrays of other libraries, and ours for them, without copies. The structures are those of
// DLPack 0.8 (https://dmlc.github.io/dlpack), whose capsules every consumer takes.
#ifndef HLOKIT_PYTHON_BINDING_DLPACK_H_
#define HLOKIT_PYTHON_BINDING_DLPACK_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>
#include <string>

#include "ir/types/element_type.h"
#include "ir/types/shape.h"

namespace hlokit::python {

// An array of another library: its elements in NumPy's DtypeOf(type), whose base keeps the memory.
struct ImportedArray {
  pybind11::array array;
  ElementType type;
};

// Takes the elements of an object with `__dlpack__`. Throws what the object raises, TypeError for memory of other
// devices than the CPU and for element types that HLO lacks. `what`: how messages begin.
ImportedArray FromDlpack(pybind11::handle value, const std::string& what);

// Returns a capsule for `__dlpack__` of a dense array, which keeps `owner` until the consumer is done. Signed and
// unsigned types narrower than a byte are s8 and u8. Throws BufferError for f4 types, which DLPack packs.
pybind11::capsule ToDlpack(Shape shape, std::byte* data, std::shared_ptr<void> owner);

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_DLPACK_H_
