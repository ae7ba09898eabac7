// SPDX-License-Identifier: Apache-2.0
// hlokit.Executable.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "python/binding/bindings.h"
#include "python/binding/executable.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

std::unique_ptr<Executable> NewExecutable(const ModulePtr& module, const std::string& engine, int num_threads,
                                          std::optional<int64_t> seed, std::optional<int64_t> max_bytes,
                                          std::optional<double> max_seconds, std::optional<int64_t> max_steps,
                                          int64_t replicas, int64_t partitions, std::optional<std::string> fill_elided,
                                          const std::string& results, bool by_device, bool debug_nans,
                                          std::optional<std::string> print_values, py::object file, py::object on_value,
                                          std::optional<std::string> on_value_match, bool profile,
                                          std::optional<std::string> passes) {
  ExecutableOptions options;
  options.engine = engine;
  options.num_threads = num_threads;
  options.seed = seed;
  options.max_bytes = max_bytes;
  options.max_seconds = max_seconds;
  options.max_steps = max_steps;
  options.replicas = replicas;
  options.partitions = partitions;
  options.fill_elided = std::move(fill_elided);
  options.results = results;
  options.by_device = by_device;
  options.debug_nans = debug_nans;
  options.print_values = std::move(print_values);
  options.on_value = std::move(on_value);
  options.on_value_match = std::move(on_value_match);
  options.profile = profile;
  options.passes = std::move(passes);
  if (options.print_values) {
    if (file.is_none()) file = py::module_::import("sys").attr("stderr");
    options.write = file.attr("write");
  }
  return std::make_unique<Executable>(module, std::move(options));
}

}  // namespace

void BindExecutable(py::module_& m) {
  using interp::RunStatistics;
  py::class_<RunStatistics>(m, "RunStatistics", "What a run took.")
      .def_readonly("steps", &RunStatistics::steps, "Instructions run, those of called computations too.")
      .def_readonly("loop_iterations", &RunStatistics::loop_iterations, "Iterations of all loops.")
      .def_readonly("peak_bytes", &RunStatistics::peak_bytes, "Most bytes of live values.")
      .def_readonly("seconds", &RunStatistics::seconds, "Time of the run.");

  py::class_<Executable>(m, "Executable", R"(A program that is ready to run on arrays, any number of times.

Executable(module)(x, y) takes one array for each parameter, nested tuples for tuples, and returns an array or a tuple.
With several devices it takes a list of arguments for each, and returns a list of results; a program with shardings that
is not partitioned yet is partitioned for `partitions` devices, and takes and returns whole arrays. Dense arrays are
read in place, and results own their memory: nothing is copied. docs/python.md has the types.)")
      .def(py::init(&NewExecutable), py::arg("module"), py::arg("engine") = "exact", py::kw_only(),
           py::arg("num_threads") = 0, py::arg("seed") = py::none(), py::arg("max_bytes") = py::none(),
           py::arg("max_seconds") = py::none(), py::arg("max_steps") = py::none(), py::arg("replicas") = 1,
           py::arg("partitions") = 1, py::arg("fill_elided") = py::none(), py::arg("results") = "numpy",
           py::arg("by_device") = false, py::arg("debug_nans") = false, py::arg("print_values") = py::none(),
           py::arg("file") = py::none(), py::arg("on_value") = py::none(), py::arg("on_value_match") = py::none(),
           py::arg("profile") = false, py::arg("passes") = py::none(),
           R"(Prepares a copy of a module; later edits do not change it.

engine: "exact"; "fast", with compiled loops and bounded differences (docs/engine.md); or "reference", the plain
evaluator that defines the values, slowly. passes: run first, in the syntax of Module.run; by default none, and "cpu" for
the fast engine unless values are watched or the program has rng. num_threads: 0 is one for each
core; results do not depend on it. seed: of rng and of random constants. max_bytes, max_seconds, max_steps: limits on
the bytes of live values, the time of a run and its instructions. fill_elided: "zeros", "iota" or "random" values for
constants whose text is elided. results: "numpy", or "array" for hlokit.Array. by_device: of a program that is
partitioned first, returns the parts of each device.

debug_nans ends a run at the first instruction that produces a NaN or an infinity, a RunError that names it and its
operands. print_values prints the values of instructions in whose names a regular expression is found, large ones as
statistics, to `file` (sys.stderr). on_value is called as f(instruction, value) with the value, a copy, of each
instruction, or those that on_value_match is found in the names of, as it is computed. profile measures the time of each
instruction.

Raises RunError for programs that cannot be run, and ValueError.)")
      .def("__call__", &Executable::Call,
           R"(Runs the program on arrays: of NumPy, with DLPack (torch), hlokit.Array, or numbers.

Raises RunError where the run fails, TypeError and ValueError for arguments that do not fit, BusyError while it runs in
another thread; Ctrl-C ends the run.)")
      .def_property_readonly("argument_shapes", &Executable::argument_shapes,
                             "Shapes of the arrays it takes, tuples flattened.")
      .def_property_readonly("module", &Executable::program,
                             "The program of one device: the module as it was, or after partitioning and passes. It "
                             "cannot be edited.")
      .def_property_readonly("is_partitioned", &Executable::is_partitioned,
                             "Whether it was partitioned first, so that it takes whole arrays.")
      .def("explain_engine", &Executable::ExplainEngine,
           R"(What runs each instruction in the fast engine, and why that is a kernel of the exact one, as text.

Raises ValueError unless it was made with engine="fast".)")
      .def("_profile", &Executable::Profile)
      .def_property_readonly(
          "statistics", [](const Executable& e) { return e.statistics(); }, "RunStatistics of the last run.");
}

}  // namespace hlokit::python
