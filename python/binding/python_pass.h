// SPDX-License-Identifier: Apache-2.0
// Passes that are written in Python, beside those of the library in pipelines and their instrumentation.
#ifndef HLOKIT_PYTHON_BINDING_PYTHON_PASS_H_
#define HLOKIT_PYTHON_BINDING_PYTHON_PASS_H_

#include <pybind11/pybind11.h>

#include <exception>
#include <memory>
#include <string>

#include "passes/core/registry.h"
#include "python/binding/handles.h"

namespace hlokit::python {

// The run of a pipeline on a clone of a module, for the passes in Python among its passes.
struct PipelineRun {
  ModulePtr state;
  std::unique_ptr<Module> working;  // the clone; `state` has it while a pass in Python runs
  std::exception_ptr error;         // of a pass in Python: an exception of Python
};

// Makes a function a pass of this name; replaces an earlier one. It takes an hlokit.Module and returns whether it
// changed, or how often. `summary`: a line about it. `tolerance`: as PassInfo has it.
void RegisterPythonPass(const std::string& name, const std::string& summary, double tolerance,
                        pybind11::function function);

// Returns all passes: those of the library and those in Python, which refer to `run` and not to the registry.
PassRegistry RegistryWithPythonPasses(PipelineRun* run);

// Returns names and summaries of the passes in Python.
pybind11::dict PythonPasses();

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_PYTHON_PASS_H_
