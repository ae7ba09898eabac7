// SPDX-License-Identifier: Apache-2.0
// Running modules on NumPy arrays.
#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/compiled/compiled_kernels.h"
#include "interp/exact/evaluator.h"
#include "interp/reference/engine.h"
#include "interp/reference/evaluator.h"
#include "ir/core/str_cat.h"
#include "ir/verify/verifier.h"
#include "python/binding/bindings.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

struct Statistics {
  int64_t steps;
  int64_t loop_iterations;
  int64_t peak_bytes;
  double seconds;
};

class RunningScope {
 public:
  explicit RunningScope(bool* running) : running_(running) { *running_ = true; }
  ~RunningScope() { *running_ = false; }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;

 private:
  bool* running_;
};

// A prepared program: a copy of the module, which later edits do not change.
class Executable {
 public:
  Executable(const ModulePtr& state, const std::string& engine, int num_threads, std::optional<int64_t> seed,
             std::optional<int64_t> max_bytes, std::optional<double> max_seconds, int64_t replicas, int64_t partitions)
      : module_(state->read().Clone()), source_(state->source()), use_(state->use()) {
    const std::optional<interp::EngineKind> kind = interp::EngineKindOf(engine);
    if (!kind) throw py::value_error(StrCat("engine: \"", engine, "\" is none of exact, fast and reference"));
    interp::EvaluatorOptions options;
    options.num_threads = num_threads;
    options.seed = static_cast<uint64_t>(seed.value_or(0));
    if (max_bytes) options.limits.max_bytes = *max_bytes;
    if (max_seconds) options.limits.max_seconds = *max_seconds;
    options.limits.max_seconds_flag = "max_seconds";
    constexpr int64_t kMax = interp::EvaluatorOptions::kMaxDevices;
    if (replicas < 1 || partitions < 1 || replicas > kMax || partitions > kMax || replicas * partitions > kMax) {
      throw py::value_error(StrCat("replicas times partitions is from 1 to ", kMax));
    }
    options.num_replicas = replicas;
    options.num_partitions = partitions;
    options.cancel = &cancel_;
    options.progress = [this](const interp::RunProgress&) { CheckSignals(); };
    DiagnosticSink sink;
    {
      const WorkScope work(state, "preparing a program");
      VerifyModule(module_, {}, &sink);
      if (!sink.has_errors()) {
        if (*kind == interp::EngineKind::kFast) {
          options.kernels = std::make_shared<interp::compiled::CompiledKernels>(options.observation);
        }
        if (*kind != interp::EngineKind::kReference) {
          exact_ = interp::Evaluator::Prepare(module_, options, &sink);
        } else {
          reference_ = reference::Evaluator::Prepare(module_, options, &sink);
        }
      }
    }
    if (exact_ == nullptr && reference_ == nullptr) ThrowErrors(sink);
  }

  // Takes the arguments of one device, or of each device a list.
  py::object Call(const py::args& arguments) {
    if (running_) Throw("BusyError", "the program is running in another thread");
    // From here on: converting arguments calls Python, which may switch threads.
    const RunningScope running(&running_);
    const size_t devices = static_cast<size_t>(exact_ ? exact_->num_devices() : reference_->num_devices());
    const std::vector<Shape>& shapes = exact_ ? exact_->argument_shapes() : reference_->argument_shapes();
    std::vector<Literal> literals;
    py::list keep;
    if (devices == 1) {
      Leaves(arguments, shapes, "", &literals, &keep);
    } else {
      if (arguments.size() != devices) {
        throw py::type_error(StrCat("the program runs on ", devices,
                                    " devices, and takes a list of arguments for each; ", arguments.size(),
                                    " are given"));
      }
      for (size_t d = 0; d < devices; ++d) {
        Leaves(py::reinterpret_borrow<py::sequence>(arguments[d]), shapes, StrCat("device ", d, ", "), &literals,
               &keep);
      }
    }
    DiagnosticSink sink;
    std::optional<std::vector<Literal>> results;
    cancel_ = false;
    interrupted_ = false;
    if (exact_) {
      const py::gil_scoped_release release;
      results = exact_->Run(literals, &sink);
    } else {
      // The plain evaluator adds shapes to the context, which the module's shares.
      const WorkScope work(use_, "the plain evaluator");
      results = reference_->Run(literals, &sink);
    }
    if (interrupted_) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
      throw py::error_already_set();
    }
    if (!results) ThrowErrors(sink);
    const size_t count = results->size() / devices;
    std::vector<py::object> values;
    for (size_t d = 0; d < devices; ++d) {
      size_t next = d * count;
      values.push_back(Result(module_.entry().root().shape(), &*results, &next));
    }
    if (devices == 1) return values[0];
    py::list all;
    for (py::object& value : values) all.append(std::move(value));
    return all;
  }

  Statistics statistics() const {
    const interp::RunStatistics& s = exact_ ? exact_->statistics() : reference_->statistics();
    return {s.steps, s.loop_iterations, s.peak_bytes, s.seconds};
  }
  py::tuple argument_shapes() const {
    const std::vector<Shape>& shapes = exact_ ? exact_->argument_shapes() : reference_->argument_shapes();
    py::tuple result(shapes.size());
    for (size_t i = 0; i < shapes.size(); ++i) result[i] = py::cast(ShapeValue{module_.shared_context(), shapes[i]});
    return result;
  }

 private:
  [[noreturn]] void ThrowErrors(const DiagnosticSink& sink) const {
    const SourceBuffer none("<module>", "");
    Throw("RunError", sink, source_ == nullptr ? none : *source_);
  }

  void CheckSignals() {
    const py::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() == 0) return;
    PyErr_Clear();
    interrupted_ = true;
    cancel_ = true;
  }

  // Appends the arrays of the leaves: tuples of arguments are nested sequences, or are given as their leaves.
  void Leaves(const py::sequence& given, const std::vector<Shape>& shapes, const std::string& what,
              std::vector<Literal>* literals, py::list* keep) const {
    std::vector<py::object> flat;
    // A sequence stands for a tuple parameter; other parameters may be lists of numbers.
    if (given.size() == static_cast<size_t>(module_.entry().parameter_count())) {
      for (size_t i = 0; i < given.size(); ++i) {
        Flatten(given[i], module_.entry().parameter(static_cast<int64_t>(i)).shape(), StrCat(what, "argument ", i),
                &flat);
      }
    } else if (given.size() == shapes.size()) {
      for (const py::handle value : given) flat.push_back(py::reinterpret_borrow<py::object>(value));
    } else {
      throw py::type_error(StrCat(what, "the program takes ", module_.entry().parameter_count(), " arguments, ",
                                  given.size(), " are given"));
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (!shapes[i].IsArray()) {
        literals->push_back(Literal::Zeros(shapes[i]));
        continue;
      }
      literals->push_back(ArrayToLiteral(flat[i], shapes[i], StrCat(what, "argument ", i), keep));
    }
  }

  void Flatten(const py::object& value, Shape shape, const std::string& what, std::vector<py::object>* flat) const {
    std::vector<std::pair<py::object, Shape>> stack = {{value, shape}};
    while (!stack.empty()) {
      const auto [v, s] = stack.back();
      stack.pop_back();
      if (!s.IsTuple()) {
        flat->push_back(v);
        continue;
      }
      if (!py::isinstance<py::sequence>(v) || py::len(v) != static_cast<size_t>(s.tuple_size())) {
        throw py::type_error(StrCat(what, ": the program takes a tuple of ", s.tuple_size()));
      }
      const auto elements = py::reinterpret_borrow<py::sequence>(v);
      for (int64_t i = s.tuple_size(); i-- > 0;) stack.push_back({elements[static_cast<size_t>(i)], s.element(i)});
    }
  }

  // Returns the value of `shape` from its leaves.
  py::object Result(Shape shape, std::vector<Literal>* leaves, size_t* next) const {
    struct Frame {
      explicit Frame(Shape s) : shape(s) {}
      Shape shape;
      int64_t next = 0;
      py::list values;
    };
    std::vector<Frame> stack;
    stack.emplace_back(shape);
    py::object result;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (!frame.shape.IsTuple()) {
        result = LiteralToPython(module_.shared_context(), std::move((*leaves)[(*next)++]));
      } else {
        if (result) frame.values.append(std::exchange(result, py::object()));
        if (frame.next < frame.shape.tuple_size()) {
          const Shape element = frame.shape.element(frame.next++);
          stack.emplace_back(element);
          continue;
        }
        result = py::tuple(frame.values);
      }
      stack.pop_back();
    }
    return result;
  }

  const Module module_;
  const std::shared_ptr<const SourceBuffer> source_;
  const std::shared_ptr<ContextUse> use_;
  std::atomic<bool> cancel_ = false;
  bool interrupted_ = false;
  bool running_ = false;
  std::unique_ptr<interp::Evaluator> exact_;
  std::unique_ptr<reference::Evaluator> reference_;
};

}  // namespace

void BindExecutable(py::module_& m) {
  py::class_<Statistics>(m, "RunStatistics", "What a run took.")
      .def_readonly("steps", &Statistics::steps, "Instructions run, those of called computations too.")
      .def_readonly("loop_iterations", &Statistics::loop_iterations)
      .def_readonly("peak_bytes", &Statistics::peak_bytes, "Most bytes of live values.")
      .def_readonly("seconds", &Statistics::seconds);

  py::class_<Executable>(m, "Executable", R"(A program that is ready to run on arrays.

Executable(module)(x, y) takes one array for each parameter, nested tuples for tuples, and returns an array or a tuple.
With several devices it takes a list of arguments for each, and returns a list of results. Arrays that are contiguous
are read in place, and results own their memory: nothing is copied. docs/python.md has the types.)")
      .def(py::init<const ModulePtr&, const std::string&, int, std::optional<int64_t>, std::optional<int64_t>,
                    std::optional<double>, int64_t, int64_t>(),
           py::arg("module"), py::arg("engine") = "exact", py::kw_only(), py::arg("num_threads") = 0,
           py::arg("seed") = py::none(), py::arg("max_bytes") = py::none(), py::arg("max_seconds") = py::none(),
           py::arg("replicas") = 1, py::arg("partitions") = 1)
      .def("__call__", &Executable::Call)
      .def_property_readonly("argument_shapes", &Executable::argument_shapes,
                             "Shapes of the arrays it takes, tuples flattened.")
      .def_property_readonly("statistics", &Executable::statistics, "RunStatistics of the last run.");
}

}  // namespace hlokit::python
