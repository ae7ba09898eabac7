// SPDX-License-Identifier: Apache-2.0
// The parts of the extension module, in the order in which they are registered.
#ifndef HLOKIT_PYTHON_BINDING_BINDINGS_H_
#define HLOKIT_PYTHON_BINDING_BINDINGS_H_

#include <pybind11/pybind11.h>

// Older ones read arrays of NumPy 2 as zeros.
static_assert(PYBIND11_VERSION_HEX >= 0x030000f0, "hlokit needs pybind11 3: tools/install-deps python");

namespace hlokit::python {

// Throws ImportError if the NumPy of this process lays out arrays otherwise than this module was compiled for.
void CheckNumpy();

void BindShape(pybind11::module_& m);
void BindArray(pybind11::module_& m);
void BindModule(pybind11::module_& m);
void BindComputation(pybind11::module_& m);
void BindInstruction(pybind11::module_& m);
void BindQuery(pybind11::module_& m);
void BindBuilder(pybind11::module_& m);
void BindPasses(pybind11::module_& m);
void BindAnalyses(pybind11::module_& m);
void BindSimulation(pybind11::module_& m);
void BindView(pybind11::module_& m);
void BindExecutable(pybind11::module_& m);
void BindCustomCalls(pybind11::module_& m);
void BindTracer(pybind11::module_& m);
void BindCapturedGraph(pybind11::module_& m);
void BindTorchSession(pybind11::module_& m);
void BindTorchStorage(pybind11::module_& m);
void BindTracerProfile(pybind11::module_& m);

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_BINDINGS_H_
