// SPDX-License-Identifier: Apache-2.0
// The extension module hlokit._hlokit.
#include <pybind11/pybind11.h>

#include "python/binding/bindings.h"

PYBIND11_MODULE(_hlokit, m) {
  hlokit::python::CheckNumpy();
  m.doc() = "HLO modules in Python; hlokit/__init__.py is the public interface.";
  hlokit::python::BindShape(m);
  hlokit::python::BindArray(m);
  hlokit::python::BindInstruction(m);
  hlokit::python::BindComputation(m);
  hlokit::python::BindModule(m);
  hlokit::python::BindQuery(m);
  hlokit::python::BindBuilder(m);
  hlokit::python::BindPasses(m);
  hlokit::python::BindAnalyses(m);
  hlokit::python::BindSimulation(m);
  hlokit::python::BindView(m);
  hlokit::python::BindExecutable(m);
  hlokit::python::BindCustomCalls(m);
  hlokit::python::BindTracer(m);
  hlokit::python::BindCapturedGraph(m);
  hlokit::python::BindTorchSession(m);
  hlokit::python::BindTorchStorage(m);
  hlokit::python::BindTracerProfile(m);
}
