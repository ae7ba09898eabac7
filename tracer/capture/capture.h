// SPDX-License-Identifier: Apache-2.0
// Graph capture: traces a function of tensors once for each kind of arguments and replays the graph afterwards.
// Forward, backward and the optimizer's step may all be in it, and become one graph.
//
//   CapturedFunction step = Compile(&tracer, [&](const Tensors& batch) -> Tensors {
//     optimizer.ZeroGrad();
//     Tensor loss = Mean(model(batch[0]));
//     loss.Backward();
//     optimizer.Step();
//     return {loss};
//   });
//   absl::StatusOr<Tensors> losses = step({x, y});
//
// A call reads its arguments and the other tensors that the function read in the trace, at their current values, and
// updates those that the function writes in place. Numbers that the function computes on the host are those of the
// trace: a graph with such numbers is replayed only after a second trace gave the same ones. Numbers that may change
// later belong in GraphCaptureOptions::guarded_scalars. Results are detached, unless
// GraphCaptureOptions::differentiable is set: differentiate inside of the function.
//
// Functions that cannot be replayed are traced at every call, which is slower but correct; Report gives the reasons:
// fetching a value, marking a step, creating tensors that persist (an optimizer's state, in the first call), replacing
// a tensor that it reads, or computing numbers that change. A view created before a call does not reflect writes of a
// replay.
#ifndef HLOKIT_TRACER_CAPTURE_CAPTURE_H_
#define HLOKIT_TRACER_CAPTURE_CAPTURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/graph/value.h"
#include "tracer/step/executor.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

struct GraphCaptureOptions {
  std::string name = "captured";
  // Treats a call that would run more than one graph as an error.
  bool full_graph = false;
  // The views that the function reads are made in each step by a captured function that runs before it.
  bool views_are_current = false;
  // The caller may differentiate results: a call with a result that requires a gradient is traced, and the result keeps
  // its history.
  bool differentiable = false;
  // Returns numbers that the function uses, e.g. a learning rate; a change of their bits causes a new trace.
  std::function<std::vector<double>()> guarded_scalars;
};

class CapturedFunction {
 public:
  using Function = std::function<Tensors(const Tensors& arguments)>;

  CapturedFunction(Tracer* tracer, Function function, GraphCaptureOptions options);

  // Calls the function on this thread's device. Requires: all arguments are defined.
  absl::StatusOr<Tensors> operator()(const Tensors& arguments,
                                     const std::source_location& location = std::source_location::current());

  // Forgets all graphs, so that the next call traces.
  void Forget() { cache_entries_.clear(); }
  // Returns true if a further call like the last one would be replayed.
  bool replayable() const { return replayable_; }
  int64_t calls() const { return calls_; }
  int64_t replays() const { return replays_; }
  // Returns the counts of calls, replays and graphs, and the reasons for traces.
  std::string Report() const;

 private:
  // Conditions under which a graph can be replayed.
  struct Guard {
    std::vector<Shape> shapes;
    std::vector<size_t> same_as;  // by argument: the first argument with the same value
    std::vector<bool> requires_grad;
    bool grad_enabled = true;
    std::vector<uint64_t> guarded_scalars;  // their bits

    friend bool operator==(const Guard&, const Guard&) = default;
  };
  // Source of an input of the graph.
  struct Source {
    enum class Kind : uint8_t { kArgument, kState, kSeed, kNumber } kind;
    size_t argument = 0;
    TensorData* state = nullptr;                    // owned by CacheEntry::state
    std::shared_ptr<runtime::DeviceBuffer> number;  // the value in the trace
    std::string use;                                // for numbers: the node that uses it
  };
  // Target of a root of the graph, in addition to being a result.
  struct OutputBinding {
    std::optional<size_t> argument;
    TensorData* state = nullptr;  // owned by CacheEntry::state
    bool made = false;            // `state` is in CacheEntry::made
  };
  struct Result {
    std::optional<size_t> root;      // a root of the graph
    std::optional<size_t> argument;  // an argument
    Tensor same;                     // otherwise always this tensor
  };
  struct CacheEntry {
    Guard guard;
    std::shared_ptr<CompiledGraph> program;
    std::vector<Source> sources;
    std::vector<OutputBinding> output_bindings;
    std::vector<Result> results;
    std::vector<Ref<TensorData>> state;
    std::vector<TensorData*> made;  // those of `state` that every trace creates, such as gradients
  };
  // The last trace of a graph with numbers, which a further trace with the same ones confirms.
  struct Candidate {
    Guard guard;
    std::shared_ptr<CompiledGraph> program;
    std::vector<Source> sources;
  };
  class Recording;  // a trace

  // The oldest ones are forgotten.
  static constexpr size_t kMaxCacheEntries = 1024;
  static constexpr size_t kMaxCandidates = 64;

  Guard GuardOf(const Tensors& arguments) const;
  absl::StatusOr<Tensors> Replay(DeviceState& device, const CacheEntry& variant, const Tensors& arguments);
  // Returns true if the tensors that the entry writes are still in use.
  bool InUse(const CacheEntry& variant) const;
  int64_t HeldByCacheEntries(const TensorData* data) const;
  void RecordReason(std::string why);

  Tracer* tracer_;
  Function function_;
  GraphCaptureOptions options_;
  std::vector<CacheEntry> cache_entries_;
  std::vector<Candidate> candidates_;
  bool replayable_ = false;
  int64_t calls_ = 0;
  int64_t replays_ = 0;
  std::vector<std::pair<std::string, int64_t>> reasons_;  // reasons for traces, with counts
};

CapturedFunction Compile(Tracer* tracer, CapturedFunction::Function function, GraphCaptureOptions options = {});

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_CAPTURE_CAPTURE_H_
