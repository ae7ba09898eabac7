// SPDX-License-Identifier: Apache-2.0
#include "python/binding/executable.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "interp/observers/nonfinite_check.h"
#include "interp/observers/value_trace.h"
#include "ir/core/str_cat.h"
#include "ir/types/sized_shape.h"
#include "passes/simplify/dynamic/dynamic_padder.h"
#include "python/binding/regex.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

class RunningScope {
 public:
  explicit RunningScope(bool* running) : running_(running) { *running_ = true; }
  ~RunningScope() { *running_ = false; }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;

 private:
  bool* running_;
};

// Takes the interpreter's lock during a run.
class RunCall {
 public:
  RunCall(const std::shared_ptr<ContextUse>& use, bool exclusive) {
    if (exclusive) {
      call_.emplace(use);
    } else {
      lock_.emplace();
    }
  }

 private:
  std::optional<CallScope> call_;
  std::optional<py::gil_scoped_acquire> lock_;
};

FillKind FillNamed(const std::string& name) {
  if (name == "zeros") return FillKind::kZeros;
  if (name == "iota") return FillKind::kIota;
  if (name == "random") return FillKind::kRandom;
  throw py::value_error(StrCat("fill_elided: \"", name, "\" is none of zeros, iota and random"));
}

const SourceBuffer& SourceOf(const ModuleState& state) {
  static const auto* const none = new SourceBuffer("<module>", "");
  return state.source() == nullptr ? *none : *state.source();
}

void Add(const std::vector<bool>& some, std::vector<bool>* all) {
  all->resize(std::max(all->size(), some.size()), false);
  for (size_t i = 0; i < some.size(); ++i) {
    if (some[i]) (*all)[i] = true;
  }
}

py::list ProfileRows(const Module& module, const std::vector<interp::InstructionProfiler::Entry>& entries,
                     bool by_opcode) {
  py::list rows;
  for (const interp::InstructionProfiler::Entry& e : entries) {
    py::dict row;
    if (by_opcode) {
      row["opcode"] = ToStr(e.name);
      row["instructions"] = e.instructions;
    } else {
      const Instruction instruction = module.instruction(e.instruction);
      row["instruction"] = ToStr(e.name);
      row["opcode"] = ToStr(instruction.opcode_text());
      row["computation"] = ToStr(instruction.parent().name());
      row["shape"] = ToString(instruction.shape(), /*with_layout=*/false);
    }
    row["runs"] = e.runs;
    row["time_us"] = e.milliseconds * 1e3;
    rows.append(std::move(row));
  }
  return rows;
}

}  // namespace

class Executable::Relay : public interp::ExecutionObserver {
 public:
  explicit Relay(interp::InstructionProfiler* profiler) : profiler_(profiler) {}
  // The observers of the next run, borrowed; null after it.
  void set_run(interp::ObserverList* run) { run_ = run; }

  void OnInstructionBegin(InstructionId instruction) override {
    if (profiler_ != nullptr) profiler_->OnInstructionBegin(instruction);
  }
  void OnInstructionEnd() override {
    if (profiler_ != nullptr) profiler_->OnInstructionEnd();
  }
  // The profiler comes first: an instruction's time ends before other observers see its value.
  absl::Status OnValue(InstructionId instruction, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override {
    if (profiler_ != nullptr) {
      if (absl::Status status = profiler_->OnValue(instruction, values, operands); !status.ok()) return status;
    }
    return run_ == nullptr ? absl::OkStatus() : run_->OnValue(instruction, values, operands);
  }
  bool NeedsValue(InstructionId instruction, absl::Span<const std::byte* const> elements) override {
    if (profiler_ != nullptr) profiler_->NeedsValue(instruction, elements);
    return run_ != nullptr && run_->NeedsValue(instruction, elements);
  }
  absl::Status OnGroup(const interp::ObservedGroup& group, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands, InstructionId* at) override {
    return run_ == nullptr ? absl::OkStatus() : run_->OnGroup(group, values, operands, at);
  }
  bool NeedsGroup(const interp::ObservedGroup& group, absl::Span<const std::byte* const> elements) override {
    if (profiler_ != nullptr) profiler_->NeedsGroup(group, elements);
    return run_ != nullptr && run_->NeedsGroup(group, elements);
  }

 private:
  interp::InstructionProfiler* const profiler_;
  interp::ObserverList* run_ = nullptr;
};

// Calls `on_value` with copies of values.
class Executable::PythonValues : public interp::ExecutionObserver {
 public:
  explicit PythonValues(Executable* executable) : executable_(*executable) {}

  absl::Status OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const>) override {
    if (id.value >= executable_.watched_.size() || !executable_.watched_[id.value]) return absl::OkStatus();
    const RunCall call(executable_.program_->use(), executable_.exclusive_);
    const Instruction instruction = executable_.program_->read().instruction(id);
    const std::vector<Shape> shapes = LeafShapes(instruction.shape());
    std::vector<Literal> leaves;
    for (size_t i = 0; i < shapes.size() && i < values.size(); ++i) {
      leaves.push_back(Literal::Zeros(shapes[i]));
      if (shapes[i].IsArray()) std::memcpy(leaves[i].data(), values[i], leaves[i].size_bytes());
    }
    try {
      size_t next = 0;
      executable_.options_.on_value(py::cast(Handle(executable_.program_, instruction)),
                                    executable_.Result(instruction.shape(), &leaves, &next));
    } catch (py::error_already_set&) {
      executable_.error_ = std::current_exception();
      return absl::CancelledError("on_value raised an exception");
    }
    return absl::OkStatus();
  }

 private:
  // Arrays and tokens, tuples flattened.
  static std::vector<Shape> LeafShapes(Shape shape) {
    std::vector<Shape> stack = {shape}, leaves;
    while (!stack.empty()) {
      const Shape s = stack.back();
      stack.pop_back();
      if (!s.IsTuple()) {
        leaves.push_back(s);
        continue;
      }
      for (int64_t i = s.tuple_size(); i-- > 0;) stack.push_back(s.element(i));
    }
    return leaves;
  }

  Executable& executable_;
};

Executable::Executable(const ModulePtr& state, ExecutableOptions options) : options_(std::move(options)) {
  if (!interp::EngineKindOf(options_.engine)) {
    throw py::value_error(interp::UnknownEngineMessage(options_.engine));
  }
  if (options_.results != "numpy" && options_.results != "array") {
    throw py::value_error(StrCat("results: \"", options_.results, "\" is none of numpy and array"));
  }
  constexpr int64_t kMax = interp::EvaluatorOptions::kMaxDevices;
  const int64_t r = options_.replicas, p = options_.partitions;
  if (r < 1 || p < 1 || r > kMax || p > kMax || r * p > kMax) {
    throw py::value_error(StrCat("replicas times partitions is from 1 to ", kMax));
  }
  constexpr int kMaxThreads = 1024;
  if (options_.num_threads < 0 || options_.num_threads > kMaxThreads) {
    throw py::value_error(StrCat("num_threads is from 0 to ", kMaxThreads));
  }
  // Written so that a NaN is none.
  const bool bounded = options_.max_bytes.value_or(0) >= 0 && options_.max_steps.value_or(0) >= 0 &&
                       options_.max_seconds.value_or(0) >= 0;
  if (!bounded) throw py::value_error("max_bytes, max_seconds and max_steps are not negative");
  const bool watches = options_.debug_nans || options_.print_values || !options_.on_value.is_none();
  const bool is_observable = interp::RowOf(*interp::EngineKindOf(options_.engine)).is_observable;
  if ((watches || options_.profile) && !is_observable) {
    throw py::value_error(
        StrCat("debug_nans, print_values, on_value and profile are not for engine=\"", options_.engine, "\""));
  }
  if (options_.on_value_match && options_.on_value.is_none()) throw py::value_error("on_value_match requires on_value");
  // The plain evaluator and results of dynamic shapes add shapes to the context, and observers read names in it.
  exclusive_ = watches || options_.profile || !is_observable || HasDynamicArrays(state->complete());
  Prepare(state);
}

Executable::~Executable() = default;

void Executable::Prepare(const ModulePtr& state) {
  whole_ =
      std::make_shared<ModuleState>(std::make_unique<Module>(state->complete().Clone()), state->source(), state->use());
  program_ = whole_;
  interp::EvaluatorOptions options;
  options.num_threads = options_.num_threads;
  options.seed = static_cast<uint64_t>(options_.seed.value_or(0));
  if (options_.max_bytes) options.limits.max_bytes = *options_.max_bytes;
  options.limits.max_bytes_flag = "max_bytes";
  if (options_.max_steps) options.limits.max_steps = *options_.max_steps;
  if (options_.max_seconds) options.limits.max_seconds = *options_.max_seconds;
  options.limits.max_seconds_flag = "max_seconds";
  if (options_.fill_elided) options.fill_elided = FillNamed(*options_.fill_elided);
  options.num_replicas = options_.replicas;
  options.num_partitions = options_.partitions;
  options.cancel = &cancel_;
  options.progress = [this](const interp::RunProgress& progress) { OnProgress(progress); };
  DiagnosticSink sink;
  const interp::CompileOptions compile = compile_options();
  absl::StatusOr<interp::LoweredProgram> lowered;
  {
    const WorkScope work(state, "preparing a program");
    lowered = interp::Lower(*whole_->work_module(), compile, options, &sink);
  }
  if (lowered.ok() && lowered->owned != nullptr) {
    program_ = std::make_shared<ModuleState>(std::move(lowered->owned), whole_->source(), whole_->use());
  }
  whole_->Freeze();
  program_->Freeze();
  if (!lowered.ok()) ThrowErrors(sink);
  SetShapes(lowered->division.has_value());
  SetObservation(&options);
  {
    const WorkScope work(state, "preparing a program");
    executable_ = interp::Compile(*std::move(lowered), compile, options, &sink);
  }
  if (executable_ == nullptr) ThrowErrors(sink);
  Warn(sink);
}

// Runs look at the shapes, which do not move, and not at the module: other threads may add to its context meanwhile.
void Executable::SetShapes(bool is_partitioned) {
  const Computation entry = whole_->read().entry();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) parameter_shapes_.push_back(entry.parameter(i).shape());
  const bool parts = !is_partitioned || options_.by_device;
  context_ = program_->read().shared_context();
  result_shape_ = (parts ? program_ : whole_)->read().entry().root().shape();
}

// Observers see the instructions of the module as it is.
interp::CompileOptions Executable::compile_options() const {
  interp::CompileOptions compile;
  compile.engine = *interp::EngineKindOf(options_.engine);
  compile.verification = interp::Verification::kVerify;
  compile.results_by_device = options_.by_device;
  compile.passes = options_.passes;
  compile.passes_flag = "passes";
  compile.shows_instructions = options_.debug_nans || options_.print_values || !options_.on_value.is_none();
  compile.partition_hint =
      "run it with partitions=1; if it is partitioned, remove its shardings with the pass sharding-remover";
  return compile;
}

std::vector<bool> Executable::Matches(const std::string& pattern) const {
  const Module& module = program_->read();
  const TextPredicate named = ValueOrThrow(CompileRegex(pattern), "QueryError");
  std::vector<bool> matches(module.instruction_id_bound(), false);
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) matches[i.id().value] = named(i.name());
  }
  return matches;
}

void Executable::SetObservation(interp::EvaluatorOptions* options) {
  const Module& module = program_->read();
  if (options_.profile) profiler_ = std::make_unique<interp::InstructionProfiler>(module);
  if (options_.print_values) printed_ = Matches(*options_.print_values);
  if (!options_.on_value.is_none()) watched_ = Matches(options_.on_value_match.value_or(""));
  if (!options_.profile && !options_.debug_nans && printed_.empty() && watched_.empty()) return;
  relay_ = std::make_unique<Relay>(profiler_.get());
  options->observer = relay_.get();
  interp::ObservationRequest& observation = options->observation;
  Add(printed_, &observation.instructions);
  Add(watched_, &observation.instructions);
  if (!options_.debug_nans) return;
  observation.computed_only = printed_.empty() && watched_.empty();
  interp::NonfiniteCheck::AddTo(module, &observation);
}

void Executable::OnProgress(const interp::RunProgress& progress) {
  if (error_ != nullptr) return;
  const RunCall call(program_->use(), exclusive_);
  try {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (bar_.is_none()) bar_ = py::module_::import("hlokit._progress").attr("bar")("run");
    bar_.attr("update")(progress.steps, py::none(), "instructions");
  } catch (py::error_already_set&) {
    error_ = std::current_exception();
    cancel_ = true;
  }
}

py::object Executable::Call(const py::args& arguments) {
  if (running_) Throw("BusyError", "the program is running in another thread");
  // From here on: converting arguments calls Python, which may switch threads.
  const RunningScope running(&running_);
  py::list keep;
  std::vector<Literal> literals = Arguments(arguments, &keep);
  DiagnosticSink sink;
  cancel_ = false;
  error_ = nullptr;
  bar_ = py::none();
  if (profiler_ != nullptr) profiler_->Clear();
  std::optional<std::vector<Literal>> results = Run(std::move(literals), &sink);
  if (!bar_.is_none()) bar_.attr("__exit__")();
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  if (!results) ThrowErrors(sink);
  Warn(sink);
  const size_t devices = static_cast<size_t>(executable_->result_devices());
  const size_t count = results->size() / devices;
  py::list all;
  for (size_t d = 0; d < devices; ++d) {
    size_t next = d * count;
    all.append(Result(result_shape_, &*results, &next));
  }
  return devices == 1 ? py::object(all[0]) : py::object(all);
}

std::optional<std::vector<Literal>> Executable::Run(std::vector<Literal> arguments, DiagnosticSink* sink) {
  const auto write = [this](std::string_view text) {
    if (error_ != nullptr) return;
    const RunCall call(program_->use(), exclusive_);
    try {
      options_.write(ToStr(text));
    } catch (py::error_already_set&) {
      error_ = std::current_exception();
      cancel_ = true;
    }
  };
  interp::ObserverList observers;
  const Module& module = *program_->work_module();
  std::optional<TextWriter> out;
  std::optional<interp::ValueTrace> trace;
  std::optional<interp::NonfiniteCheck> check;
  std::optional<PythonValues> values;
  if (options_.print_values) {
    out.emplace(write);
    observers.Add(&trace.emplace(module, printed_, interp::ValueTraceOptions(), &*out));
  }
  if (options_.debug_nans) observers.Add(&check.emplace(module));
  if (!options_.on_value.is_none()) observers.Add(&values.emplace(this));
  if (relay_ != nullptr) relay_->set_run(&observers);
  std::optional<std::vector<Literal>> results;
  {
    std::optional<WorkScope> work;
    std::optional<py::gil_scoped_release> release;
    if (exclusive_) {
      work.emplace(program_, "a run");
    } else {
      release.emplace();
    }
    results = executable_->Run(arguments, sink);
    if (out) out->Flush();
  }
  if (relay_ != nullptr) relay_->set_run(nullptr);
  return results;
}

py::tuple Executable::argument_shapes() const {
  const std::vector<Shape>& shapes = leaf_shapes();
  py::tuple result(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) result[i] = py::cast(ShapeValue{context_, shapes[i]});
  return result;
}

std::string Executable::ExplainEngine() const {
  const interp::CodeInspection* const code = executable_->engine().code();
  if (code == nullptr) throw py::value_error("the Executable was made without engine=\"fast\"");
  return code->Explain();
}

py::dict Executable::Profile() const {
  if (profiler_ == nullptr) throw py::value_error("no profile: the Executable was made without profile=True");
  if (running_) Throw("BusyError", "the program is running in another thread");
  const Module& module = program_->read();
  py::dict result;
  result["module"] = ToStr(module.name());
  result["total_us"] = profiler_->total_milliseconds() * 1e3;
  result["instructions_run"] = statistics().steps;
  result["loop_iterations"] = statistics().loop_iterations;
  result["peak_bytes"] = statistics().peak_bytes;
  result["opcodes"] = ProfileRows(module, profiler_->ByOpcode(), /*by_opcode=*/true);
  result["instructions"] = ProfileRows(module, profiler_->ByInstruction(), /*by_opcode=*/false);
  return result;
}

void Executable::ThrowErrors(const DiagnosticSink& sink) const { Throw("RunError", sink, SourceOf(*whole_)); }

void Executable::Warn(const DiagnosticSink& sink) const {
  if (sink.warning_count() == 0) return;
  py::module_::import("hlokit._errors").attr("warn")(ToStr(RenderJson(sink, SourceOf(*whole_))));
}

std::vector<Literal> Executable::Arguments(const py::args& arguments, py::list* keep) const {
  std::vector<Literal> literals;
  const size_t devices = argument_devices();
  if (devices == 1) {
    Leaves(arguments, "", &literals, keep);
    return literals;
  }
  if (arguments.size() != devices) {
    throw py::type_error(StrCat("the program runs on ", devices, " devices, and takes a list of arguments for each; ",
                                arguments.size(), " are given"));
  }
  for (size_t d = 0; d < devices; ++d) {
    const bool list = py::isinstance<py::list>(arguments[d]) || py::isinstance<py::tuple>(arguments[d]);
    if (!list) throw py::type_error(StrCat("device ", d, ": expected a list of its arguments"));
    Leaves(py::reinterpret_borrow<py::sequence>(arguments[d]), StrCat("device ", d, ", "), &literals, keep);
  }
  return literals;
}

// Appends the arrays of the leaves: tuples of arguments are nested sequences, or are given as their leaves.
void Executable::Leaves(const py::sequence& given, const std::string& what, std::vector<Literal>* literals,
                        py::list* keep) const {
  const std::vector<Shape>& shapes = leaf_shapes();
  std::vector<py::object> flat;
  // A sequence stands for a tuple parameter; other parameters may be lists of numbers.
  if (given.size() == parameter_shapes_.size()) {
    for (size_t i = 0; i < given.size(); ++i) {
      std::vector<std::pair<py::object, Shape>> stack = {{given[i], parameter_shapes_[i]}};
      while (!stack.empty()) {
        const auto [v, s] = stack.back();
        stack.pop_back();
        if (!s.IsTuple()) {
          flat.push_back(v);
          continue;
        }
        const bool sequence = py::isinstance<py::sequence>(v) && !py::isinstance<py::str>(v);
        if (!sequence || py::len(v) != static_cast<size_t>(s.tuple_size())) {
          throw py::type_error(StrCat(what, "argument ", i, ": the program takes a tuple of ", s.tuple_size()));
        }
        const auto elements = py::reinterpret_borrow<py::sequence>(v);
        for (int64_t k = s.tuple_size(); k-- > 0;) stack.push_back({elements[static_cast<size_t>(k)], s.element(k)});
      }
    }
  } else if (given.size() == shapes.size()) {
    for (const py::handle value : given) flat.push_back(py::reinterpret_borrow<py::object>(value));
  } else {
    throw py::type_error(
        StrCat(what, "the program takes ", parameter_shapes_.size(), " arguments, ", given.size(), " are given"));
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i].IsArray()) {
      literals->push_back(Literal::Zeros(shapes[i]));
      continue;
    }
    const auto sized = [&](absl::Span<const int64_t> dims) {
      const WorkScope work(program_, "a run");
      return SizedShape(&context_->shapes, shapes[i], dims);
    };
    literals->push_back(ArrayToLiteral(flat[i], shapes[i], StrCat(what, "argument ", i), keep, sized));
  }
}

// Returns the value of `shape` from its leaves.
py::object Executable::Result(Shape shape, std::vector<Literal>* leaves, size_t* next) const {
  struct Frame {
    explicit Frame(Shape s) : shape(s) {}
    Shape shape;
    int64_t next = 0;
    py::list values;
  };
  const ArrayForm form = options_.results == "array" ? ArrayForm::kArray : ArrayForm::kNumpy;
  std::vector<Frame> stack;
  stack.emplace_back(shape);
  py::object result;
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (!frame.shape.IsTuple()) {
      result = LiteralToPython(context_, std::move((*leaves)[(*next)++]), form);
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

}  // namespace hlokit::python
