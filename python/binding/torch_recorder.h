// SPDX-License-Identifier: Apache-2.0
// The handler of `__torch_dispatch__`: records calls of aten ops on lazy tensors. What PyTorch passes for an overload
// is analysed once, in Python (hlokit/torch/_plans.py); the plan then translates each call to one of the tracer's ops.
//
// A call that has no plan, or arguments that its plan does not translate, goes to a function in Python, which knows
// decompositions and runs the rest on the CPU.
#ifndef HLOKIT_PYTHON_BINDING_TORCH_RECORDER_H_
#define HLOKIT_PYTHON_BINDING_TORCH_RECORDER_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "python/binding/torch_tensor.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/op.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/value.h"

namespace hlokit::python {

// How a call of an overload of PyTorch becomes a call of an op of the tracer.
struct OpPlan {
  enum class Results : uint8_t {
    kNew,      // the op's results
    kWritten,  // the op's first result is written to the argument that `returns` names
    kOp,       // the op writes in place itself; `returns` says which results are arguments
  };
  static constexpr int kIgnored = -1;

  lazy::Op op;
  Results results = Results::kNew;
  std::vector<int> positional;                      // the op's argument for each of PyTorch's; kIgnored
  std::vector<std::pair<PyObject*, int>> keywords;  // the same for arguments with names, interned
  std::vector<int> returns;                         // for kWritten, kOp: by result the position of the argument, or -1
  bool list = false;                                // the result is a list
  bool view = false;                                // results share the storage of an argument
  std::vector<int> same_type;  // the op's arguments that PyTorch takes only in the type of its first tensor
  bool no_complex = false;     // PyTorch takes no complex tensors
  bool no_bool = false;        // PyTorch takes no tensors of booleans
  bool needs_float = false;    // PyTorch takes no integers alone
};

// The result of an attempt: a value, "not translated" with a reason, or a Python error.
struct Attempt {
  PyObject* value = nullptr;  // a new reference
  bool untranslated = false;
  std::string reason;
};

class TorchRecorder {
 public:
  static TorchRecorder& Get();

  // `untranslated`: called with the arguments of __torch_dispatch__ and a reason.
  void SetUntranslated(pybind11::object function) { untranslated_ = function.release().ptr(); }
  // `before_read`: called before an op that reads values of its arguments.
  void SetBeforeRead(pybind11::object function) { before_read_ = function.release().ptr(); }
  void AddPlan(pybind11::object function, OpPlan plan);
  // Records the call by its plan. `for_op`: as a result of the op that PyTorch runs. `session`, `device`: where results
  // of a call without tensors are; null: nowhere.
  Attempt Try(PyObject* function, PyObject* args, PyObject* kwargs, bool for_op, TracerPtr session = nullptr,
              lazy::DeviceState* device = nullptr);
  // __torch_dispatch__ itself. Returns a new reference, or null with a Python error.
  PyObject* Handle(PyObject* function, PyObject* types, PyObject* args, PyObject* kwargs);

 private:
  Attempt Run(const OpPlan& plan, PyObject* args, lazy::Args values, bool for_op, const TracerPtr& session);

  // Guarded by the interpreter's lock, which calls release: each holds its plan, as other threads may add some.
  absl::flat_hash_map<PyObject*, std::shared_ptr<const OpPlan>> plans_;
  PyObject* untranslated_ = nullptr;
  PyObject* before_read_ = nullptr;
};

// Returns whether something shows the lines of the program: the graphs, or PT_XLA_DEBUG and XLA_SAVE_TENSORS_FILE.
inline bool RecordsLines(const lazy::TracerOptions& options) {
  return options.debug || options.debug_level > 0 || options.auto_analysis || !options.save_graphs_file.empty();
}

// ---- torch_arguments.cc ----
// Converts arguments of a call. What it does not convert is reported by Failed().
class ArgumentConverter {
 public:
  explicit ArgumentConverter(const lazy::Schema& schema) : schema_(schema), values_(schema.args.size()) {}

  // Sets argument `index` of the schema.
  bool Convert(PyObject* object, int index);
  // Makes tensors of the numbers that were given as tensors, in the types that these take by promotion.
  bool Finish();

  lazy::Args TakeValues() { return std::move(values_); }
  // The first lazy tensor; null if there is none.
  const LazyTensorObject* first() const { return first_; }
  PyObject* first_tensor() const { return first_tensor_; }  // PyTorch's; borrowed
  const std::string& reason() const { return reason_; }

 private:
  bool Fail(std::string reason);
  bool ConvertTensor(PyObject* object, size_t index);
  bool ConvertTensors(PyObject* object, size_t index);
  bool ConvertNumbers(PyObject* object, size_t index, bool integers);
  bool Take(PyObject* tensor, lazy::Tensor* result);

  const lazy::Schema& schema_;
  lazy::Args values_;
  std::vector<std::pair<size_t, lazy::Scalar>> numbers_;  // for tensor arguments
  const LazyTensorObject* first_ = nullptr;
  PyObject* first_tensor_ = nullptr;
  std::string reason_;
};

// ---- torch_frames.cc ----
// Attributes what is recorded meanwhile to the innermost line of the user's program: a frame whose file is in none of
// the directories of libraries.
class ScopedUserFrame {
 public:
  ScopedUserFrame();
  ~ScopedUserFrame();
  ScopedUserFrame(const ScopedUserFrame&) = delete;
  ScopedUserFrame& operator=(const ScopedUserFrame&) = delete;

  // Sets the directories, with a slash at the end.
  static void SetLibraries(std::vector<std::string> directories);

 private:
  bool pushed_ = false;
};

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_TORCH_RECORDER_H_
