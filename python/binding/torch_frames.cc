// SPDX-License-Identifier: Apache-2.0
// Lines of the user's program.
#include <pybind11/pybind11.h>

#include <mutex>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "python/binding/torch_recorder.h"
#include "tracer/graph/scope.h"

namespace hlokit::python {
namespace {

struct Code {
  bool user;
  std::string function, file;
};

// By code object, of which one reference is kept: programs have a bounded number of functions. Guarded by the
// interpreter's lock.
absl::flat_hash_map<PyObject*, Code>& Codes() {
  static auto* const codes = new absl::flat_hash_map<PyObject*, Code>;
  return *codes;
}

std::vector<std::string>& Libraries() {
  static auto* const directories = new std::vector<std::string>;
  return *directories;
}

std::string TextOf(PyObject* object, const char* name) {
  PyObject* const value = PyObject_GetAttrString(object, name);
  const char* const text = value != nullptr && PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : nullptr;
  std::string result = text == nullptr ? "" : text;
  Py_XDECREF(value);
  PyErr_Clear();
  return result;
}

const Code& Describe(PyObject* code) {
  const auto found = Codes().find(code);
  if (found != Codes().end()) return found->second;
  Code description{true, TextOf(code, "co_name"), TextOf(code, "co_filename")};
  for (const std::string& directory : Libraries()) {
    if (std::string_view(description.file).starts_with(directory)) description.user = false;
  }
  Py_INCREF(code);
  return Codes().emplace(code, std::move(description)).first->second;
}

thread_local std::vector<lazy::ScopedFrame*> frames;

}  // namespace

void ScopedUserFrame::SetLibraries(std::vector<std::string> directories) {
  Libraries() = std::move(directories);
  for (auto& [code, description] : Codes()) {
    description.user = true;
    for (const std::string& directory : Libraries()) {
      if (std::string_view(description.file).starts_with(directory)) description.user = false;
    }
  }
}

ScopedUserFrame::ScopedUserFrame() {
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  Py_XINCREF(frame);
  while (frame != nullptr) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    const Code& description = Describe(reinterpret_cast<PyObject*>(code));
    Py_DECREF(code);
    if (description.user) {
      frames.push_back(new lazy::ScopedFrame(description.function, description.file, PyFrame_GetLineNumber(frame)));
      pushed_ = true;
      Py_DECREF(frame);
      return;
    }
    PyFrameObject* const back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
}

ScopedUserFrame::~ScopedUserFrame() {
  if (!pushed_) return;
  delete frames.back();
  frames.pop_back();
}

}  // namespace hlokit::python
