// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/evaluator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernel_provider.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/builder/program_text.h"
#include "interp/exact/devices/device_scheduler.h"
#include "interp/exact/devices/process_groups.h"
#include "interp/exact/machine/current_instruction.h"
#include "interp/exact/machine/run_context.h"
#include "interp/processes/world.h"
#include "interp/processor/thread_pool.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/dynamic_shapes.h"
#include "ir/graph/name_range.h"
#include "ir/types/element_memory.h"

namespace hlokit::interp {
namespace {

// Returns "in iteration 5 of while.3, in iteration 2 of while.1".
std::string LoopsToString(const Module& module, absl::Span<const RunContext::LoopPosition> loops) {
  std::string text;
  for (const RunContext::LoopPosition& at : loops) {
    StrAppend(&text, text.empty() ? "" : ", ", "in iteration ", at.iteration, " of ",
              module.instruction(at.loop).name());
  }
  return text;
}

void ReportAt(const Module& module, const RunContext& context, std::string message, DiagnosticSink* sink) {
  const InstructionId id = context.error_instruction;
  const Instruction at = id.valid() ? module.instruction(id) : Instruction();
  if (at.valid()) message = StrCat(at.name(), ": ", message);
  sink->Error(context.error_kind(), NameRange(at), std::move(message), LoopsToString(module, context.error_loops));
}

}  // namespace

struct Evaluator::State {
  const Module* module;
  EvaluatorOptions options;
  std::shared_ptr<KernelProvider> kernels;  // may be null
  std::unique_ptr<PreparedProgram> program;
  ThreadPool threads;
  ProcessGroups groups;
  BufferPool kept{0};  // memory between runs

  State(const Module* m, const EvaluatorOptions& o, std::shared_ptr<KernelProvider> k)
      : module(m), options(o), kernels(std::move(k)), threads(o.num_threads) {}
};

Evaluator::Evaluator() = default;
Evaluator::~Evaluator() = default;

std::unique_ptr<Evaluator> Evaluator::Prepare(const Module& module, const EvaluatorOptions& options,
                                              DiagnosticSink* sink, std::shared_ptr<KernelProvider> provider) {
  auto evaluator = std::unique_ptr<Evaluator>(new Evaluator());
  evaluator->state_ = std::make_unique<State>(&module, options, std::move(provider));
  if (!CheckProgram(module, options, sink)) return nullptr;
  KernelProvider* const kernels = evaluator->state_->kernels.get();
  PrepareOptions prepare{options, kernels};
  prepare.num_threads = evaluator->state_->threads.threads();
  const Computation entry = module.entry();
  if (HasDynamicShapes(module)) {
    sink->Error(DiagnosticKind::kUnsupported, {}, "a program with dynamic dimensions runs by PrepareEngine");
    return nullptr;
  }
  bool is_complete = false;
  while (!is_complete) {
    evaluator->state_->program = std::make_unique<PreparedProgram>();
    DiagnosticSink found;
    ProgramBuilder builder(module, prepare, &found, evaluator->state_->program.get());
    const bool built = builder.Build(entry);
    is_complete = kernels == nullptr || kernels->Complete(built) || !built;
    if (!is_complete) continue;
    for (const Diagnostic& diagnostic : found.diagnostics()) sink->Report(diagnostic);
    if (!built) return nullptr;
  }
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    AppendLeaves(entry.parameter(i).shape(), &evaluator->argument_shapes_);
  }
  AppendLeaves(entry.root().shape(), &evaluator->result_shapes_);
  if (!evaluator->CheckMemory(sink)) return nullptr;
  return evaluator;
}

// Reports an error if every run takes more than the limit.
bool Evaluator::CheckMemory(DiagnosticSink* sink) const {
  const MemoryUsage& memory = state_->program->entry->memory;
  const int64_t limit = state_->options.limits.max_bytes;
  int64_t arguments = 0;
  for (const Shape shape : argument_shapes_) {
    if (shape.IsArray()) arguments = SaturatingAdd(arguments, std::max<int64_t>(LiteralBytes(shape), 0));
  }
  // The arguments alone are checked where they are made.
  if (arguments > limit || memory.required_bytes <= limit - arguments) return true;
  const Instruction at = memory.at.valid() ? state_->module->instruction(memory.at) : Instruction();
  sink->Error(DiagnosticKind::kTooLarge, NameRange(at),
              StrCat(at.valid() ? StrCat(at.name(), ": ") : "", "values of ", memory.required_bytes,
                     " bytes are live here, beside arguments of ", arguments, " bytes; the limit is ", limit,
                     " bytes (--max-bytes)"));
  return false;
}

PlannedMemory Evaluator::planned_memory() const {
  const MemoryUsage& memory = state_->program->entry->memory;
  return {memory.live_bytes, memory.planned_bytes};
}

DeviceRange Evaluator::devices() const {
  const int64_t all = state_->options.num_replicas * state_->options.num_partitions;
  World* const world = state_->options.world;
  if (world == nullptr) return {all, 0, all};
  const std::vector<int64_t> own = world->OwnDevices(all);
  return {all, own.empty() ? 0 : own.front(), static_cast<int64_t>(own.size())};
}

std::string Evaluator::PlanText(const std::function<std::string(InstructionId)>& describe) const {
  return ProgramText(*state_->program, describe);
}

// Returns the results as literals. A result that was computed in a literal is that; one in the memory of a donated
// argument of the same device, or in unowned memory, takes over that literal.
std::vector<Literal> Evaluator::TakeResults(DeviceScheduler& set, DonatedArguments* donation) {
  std::vector<Literal> results;
  DonatedArguments none;
  if (donation == nullptr) donation = &none;
  std::vector<Literal*>& given = donation->donated;
  donation->aliased_argument.assign(result_shapes_.size() * static_cast<size_t>(set.size()), -1);
  // Start of each donated argument's bytes, and its number.
  std::vector<std::pair<const std::byte*, size_t>> begins;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] != nullptr) begins.emplace_back(given[i]->data(), i);
  }
  std::sort(begins.begin(), begins.end());
  const auto argument_of = [&](const std::byte* data) -> std::optional<size_t> {
    const auto after = std::upper_bound(begins.begin(), begins.end(), std::make_pair(data, SIZE_MAX));
    if (after == begins.begin()) return std::nullopt;
    const auto [begin, i] = *std::prev(after);
    if (data >= begin + given[i]->size_bytes()) return std::nullopt;
    return i;
  };
  std::vector<int64_t> users(given.size());
  const size_t each = given.size() / static_cast<size_t>(set.size());
  for (int64_t d = 0; d < set.size(); ++d) {
    for (const SlotValue& value : set.results(d)) {
      if (const std::optional<size_t> i = argument_of(value.data)) ++users[*i];
    }
  }
  size_t placed_bytes = 0;
  const auto take = [&](size_t i) {
    donation->aliased_argument[results.size()] = static_cast<int64_t>(i);
    users[i] = -1;
    results.push_back(std::move(*given[i]));
  };
  for (int64_t d = 0; d < set.size(); ++d) {
    const size_t first = static_cast<size_t>(d) * each, end = first + each;
    for (size_t r = 0; r < result_shapes_.size(); ++r) {
      const std::byte* from = set.results(d)[r].data;
      if (Literal& literal = set.literals(d)[r]; literal.data() != nullptr && literal.data() == from) {
        placed_bytes += literal.size_bytes();
        results.push_back(std::move(literal));
        continue;
      }
      const auto fits = [&](size_t i) {
        return SameShape(given[i]->shape(), result_shapes_[r], /*ignore_layout=*/true);
      };
      const std::optional<size_t> at = argument_of(from);
      if (at && *at >= first && *at < end && users[*at] == 1 && from == given[*at]->data() && fits(*at)) {
        take(*at);
        continue;
      }
      size_t slot = first;
      while (slot < end && (given[slot] == nullptr || users[slot] != 0 || !fits(slot))) ++slot;
      if (slot < end) {
        take(slot);
      } else {
        results.push_back(Literal::Zeros(result_shapes_[r]));
      }
      Literal& literal = results.back();
      constexpr int64_t kGrain = int64_t{1} << 20;
      state_->threads.ParallelFor(static_cast<int64_t>(literal.size_bytes()), kGrain, [&](int64_t begin, int64_t end) {
        std::memcpy(literal.data() + begin, from + begin, static_cast<size_t>(end - begin));
      });
    }
  }
  // Programs with compiled kernels are run often: their results get memory of earlier ones.
  if (state_->kernels != nullptr) ReserveElements(placed_bytes);
  return results;
}

std::optional<std::vector<Literal>> Evaluator::RunPointers(absl::Span<const Literal* const> arguments,
                                                           DiagnosticSink* sink, DonatedArguments* donation) {
  State& state = *state_;
  if (!CheckArguments(arguments, sink)) return std::nullopt;
  int64_t argument_bytes = 0;
  for (const Literal* argument : arguments) argument_bytes += static_cast<int64_t>(argument->size_bytes());
  RunContext context(state.options.limits, argument_bytes, &state.threads, state.options.cancel);
  // Programs with compiled kernels are run often: their memory stays.
  if (state.kernels != nullptr) context.pool.TakeFreeBlocks(&state.kept);
  std::vector<SlotValue> values;
  static std::byte no_bytes[16];
  for (size_t i = 0; i < arguments.size(); ++i) {
    // Bytes without an owner are never written. Donated bytes have one, a reference-counted block.
    SlotValue value{nullptr, const_cast<std::byte*>(arguments[i]->data())};
    if (value.data == nullptr) {
      value.data = no_bytes;
    } else if (donation != nullptr && donation->donated[i] != nullptr) {
      value.owner = context.pool.AllocateOutside(0);
    }
    values.push_back(value);
  }

  context.rng_seed = state.options.seed;
  context.host_io = state.options.host_io;
  context.num_replicas = state.options.num_replicas;
  context.num_partitions = state.options.num_partitions;
  if (state.options.progress) context.set_progress(&state.options.progress);
  std::optional<std::vector<Literal>> results;
  {
    World* const world = state.options.world;
    if (world != nullptr && !state.groups.created()) {
      const absl::Status made = state.groups.Create(*state.program, num_devices(), world);
      if (!made.ok()) context.Fail(std::string(made.message()));
    }
    DeviceScheduler set(context, *state.module, state.program->entry, values, state.options.observer, world,
                        &state.groups);
    // Donated arguments are the memory of results, where there are some.
    const bool is_donated = donation != nullptr && std::any_of(donation->donated.begin(), donation->donated.end(),
                                                               [](const Literal* given) { return given != nullptr; });
    if (!is_donated) set.PlaceResults();
    const bool ran = !context.failed() && set.Run();
    current_instruction.store(kNoInstruction, std::memory_order_relaxed);
    if (ran) {
      results = TakeResults(set, donation);
    } else {
      std::string message = context.error();
      if (num_devices() > 1) {
        message = StrCat("replica ", context.device.replica, ", partition ", context.device.partition, ": ", message);
      }
      ReportAt(*state.module, context, std::move(message), sink);
    }
  }
  for (const std::unique_ptr<CompiledComputation>& computation : state.program->computations)
    computation->DropFrames(context.pool);
  if (state.kernels != nullptr) state.kept.TakeFreeBlocks(&context.pool);
  statistics_.steps = context.steps();
  statistics_.loop_iterations = context.loop_iterations;
  statistics_.peak_bytes = context.pool.peak_bytes();
  statistics_.peak_live_bytes = context.pool.peak_live_bytes();
  statistics_.peak_held_bytes = context.pool.peak_held_bytes();
  statistics_.system_allocations = context.pool.system_allocations();
  statistics_.seconds = context.seconds();
  return results;
}

}  // namespace hlokit::interp
