// SPDX-License-Identifier: Apache-2.0
// Programs that are prepared to run on arrays of Python.
#ifndef HLOKIT_PYTHON_BINDING_EXECUTABLE_H_
#define HLOKIT_PYTHON_BINDING_EXECUTABLE_H_

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interp/observers/instruction_profiler.h"
#include "interp/observers/observer_list.h"
#include "interp/program/compile.h"
#include "python/binding/handles.h"
#include "python/binding/values.h"

namespace hlokit::python {

struct ExecutableOptions {
  std::string engine = "exact";
  std::optional<std::string> passes;  // nullopt: those of the engine
  int num_threads = 0;
  std::optional<int64_t> seed, max_bytes, max_steps;
  std::optional<double> max_seconds;
  int64_t replicas = 1, partitions = 1;
  std::optional<std::string> fill_elided;  // "zeros", "iota", "random"
  std::string results = "numpy";           // or "array"
  bool by_device = false;                  // of a program that is partitioned first: the parts of each device
  bool debug_nans = false;
  std::optional<std::string> print_values;    // pattern of names
  std::optional<std::string> on_value_match;  // the same, for `on_value`; nullopt: all
  pybind11::object on_value, write;           // functions of Python
  bool profile = false;
};

// A copy of a module, prepared: later edits do not change it.
class Executable {
 public:
  // Throws RunError, ValueError.
  Executable(const ModulePtr& state, ExecutableOptions options);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Takes the arguments of one device, or of each device a list.
  pybind11::object Call(const pybind11::args& arguments);

  const interp::RunStatistics& statistics() const { return executable_->statistics(); }
  pybind11::tuple argument_shapes() const;
  // The program of one device, which does not change.
  const ModulePtr& program() const { return program_; }
  bool is_partitioned() const { return executable_->division() != nullptr; }
  // Times of the last run, as hlo-run --profile-json has them. Throws ValueError if there was no `profile`.
  pybind11::dict Profile() const;
  // What runs each instruction, as hlo-run --explain-engine prints it. Throws ValueError with another engine than fast.
  std::string ExplainEngine() const;

 private:
  // Observers of one run, after those of all runs.
  class Relay;
  class PythonValues;

  [[noreturn]] void ThrowErrors(const DiagnosticSink& sink) const;
  // Issues the warnings of the sink as Python's; throws where a filter makes one an error.
  void Warn(const DiagnosticSink& sink) const;
  void Prepare(const ModulePtr& state);
  interp::CompileOptions compile_options() const;
  void SetShapes(bool is_partitioned);
  void SetObservation(interp::EvaluatorOptions* options);
  std::vector<bool> Matches(const std::string& pattern) const;
  // Calls Python during a run: signals, progress.
  void OnProgress(const interp::RunProgress& progress);
  std::vector<Literal> Arguments(const pybind11::args& arguments, pybind11::list* keep) const;
  std::optional<std::vector<Literal>> Run(std::vector<Literal> arguments, DiagnosticSink* sink);
  void Leaves(const pybind11::sequence& given, const std::string& what, std::vector<Literal>* literals,
              pybind11::list* keep) const;
  pybind11::object Result(Shape shape, std::vector<Literal>* leaves, size_t* next) const;

  const std::vector<Shape>& leaf_shapes() const { return executable_->argument_shapes(); }
  size_t argument_devices() const { return static_cast<size_t>(executable_->argument_devices()); }

  ExecutableOptions options_;
  ModulePtr whole_, program_;  // the same unless it was partitioned, or changed by passes, first
  std::shared_ptr<Context> context_;
  std::vector<Shape> parameter_shapes_;
  Shape result_shape_;
  // Work that reads the context of the module, or adds to it, excludes other threads from it.
  bool exclusive_ = false;
  bool running_ = false;
  std::atomic<bool> cancel_ = false;
  std::exception_ptr error_;  // an exception of Python during the run
  pybind11::object bar_;      // of the progress of this run; none until it is shown
  std::unique_ptr<interp::InstructionProfiler> profiler_;
  std::vector<bool> printed_, watched_;  // by instruction
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<interp::Executable> executable_;
};

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_EXECUTABLE_H_
