#include "interp/reference/evaluator.h"

#include <cstring>
#include <utility>

#include "interp/reference/machine.h"
#include "interp/reference/program_builder.h"
#include "interp/reference/routine_builder.h"
#include "interp/reference/run_context.h"
#include "interp/reference/thread_pool.h"
#include "ir/str_cat.h"

namespace hlokit::interp {
namespace {

// "in trip 5 of while.3, in trip 2 of while.1".
std::string LoopsText(const Module& module, absl::Span<const RunContext::LoopPosition> loops) {
  std::string text;
  for (const RunContext::LoopPosition& at : loops) {
    StrAppend(&text, text.empty() ? "" : ", ", "in trip ", at.trip, " of ", module.instruction(at.loop).name());
  }
  return text;
}

void ReportAt(const Module& module, const RunContext& context, std::string message, DiagnosticSink* sink) {
  const InstructionId id = context.error_instruction;
  SourceRange range;
  if (id.valid()) {
    const Instruction at = module.instruction(id);
    const uint32_t offset = at.record().source_offset;
    if (offset != InstructionRecord::SourceOffsetNone()) range = {offset, static_cast<uint32_t>(at.name().size())};
    message = StrCat(at.name(), ": ", message);
  }
  sink->Error(DiagnosticKind::kEvaluation, range, std::move(message), LoopsText(module, context.error_loops));
}

}  // namespace

struct Evaluator::State {
  const Module* module;
  EvaluatorOptions options;
  Program program;
  ThreadPool threads;

  State(const Module* m, const EvaluatorOptions& o) : module(m), options(o), threads(o.num_threads) {}
};

Evaluator::Evaluator() = default;
Evaluator::~Evaluator() = default;

std::unique_ptr<Evaluator> Evaluator::Prepare(const Module& module, const EvaluatorOptions& options,
                                              DiagnosticSink* sink) {
  auto evaluator = std::unique_ptr<Evaluator>(new Evaluator());
  evaluator->state_ = std::make_unique<State>(&module, options);
  PrepareOptions prepare;
  prepare.fill_elided = options.fill_elided;
  prepare.seed = options.seed;
  prepare.limits = options.limits;
  prepare.custom_calls = options.custom_calls;
  prepare.observation = options.observation;
  prepare.mixed_types = options.mixed_types;
  ProgramBuilder builder(module, prepare, sink, &evaluator->state_->program);
  const Computation entry = module.entry();
  if (!entry.valid()) {
    sink->Error(DiagnosticKind::kUnsupported, {}, "the module has no entry computation");
    return nullptr;
  }
  if (!builder.Build(entry)) return nullptr;
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    AppendLeaves(entry.parameter(i).shape(), &evaluator->argument_shapes_);
  }
  AppendLeaves(entry.root().shape(), &evaluator->result_shapes_);
  return evaluator;
}

std::optional<std::vector<Literal>> Evaluator::Run(absl::Span<const Literal> arguments, DiagnosticSink* sink) {
  State& state = *state_;
  if (arguments.size() != argument_shapes_.size()) {
    sink->Error(
        DiagnosticKind::kEvaluation, {},
        StrCat("the program takes ", argument_shapes_.size(), " arguments (leaves), ", arguments.size(), " are given"));
    return std::nullopt;
  }
  std::vector<Value> values;
  static std::byte no_bytes[16];
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!SameShape(arguments[i].shape(), argument_shapes_[i], /*ignore_layout=*/true)) {
      sink->Error(DiagnosticKind::kEvaluation, {},
                  StrCat("argument ", i, " has shape ", ToString(arguments[i].shape(), false), ", expected ",
                         ToString(argument_shapes_[i], false)));
      return std::nullopt;
    }
    std::byte* data = const_cast<std::byte*>(arguments[i].data());  // never written: the value has no owner
    values.push_back({nullptr, data == nullptr ? no_bytes : data});
  }

  RunContext context(state.options.limits, &state.threads, state.options.cancel);
  context.rng_seed = state.options.seed;
  if (state.options.progress) context.set_progress(&state.options.progress);
  std::optional<std::vector<Literal>> results;
  {
    Machine machine(context, state.program.entry, values);
    machine.set_observer(state.options.observer);
    const Machine::State end = machine.state() == Machine::State::kRunning ? machine.Run() : machine.state();
    if (end == Machine::State::kDone) {
      results.emplace();
      for (size_t i = 0; i < result_shapes_.size(); ++i) {
        Literal literal = Literal::Zeros(result_shapes_[i]);
        if (literal.size_bytes() != 0) std::memcpy(literal.data(), machine.results()[i].data, literal.size_bytes());
        results->push_back(std::move(literal));
      }
    } else {
      ReportAt(*state.module, context,
               context.failed() ? context.error() : "a collective operation waits for other devices", sink);
    }
  }
  statistics_.steps = context.steps();
  statistics_.loop_trips = context.loop_trips;
  statistics_.peak_bytes = context.pool.peak_bytes();
  statistics_.seconds = context.seconds();
  return results;
}

}  // namespace hlokit::interp
