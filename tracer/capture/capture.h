// SPDX-License-Identifier: Apache-2.0
// Graph capture: a function of tensors that is traced once for each kind of arguments and then runs without being
// traced. Forward, backward and the optimizer's step may all be in it, and are one graph then.
//
//   CapturedFunction step = Compile(&tracer, [&](const Tensors& batch) -> Tensors {
//     optimizer.ZeroGrad();
//     Tensor loss = ...;
//     loss.Backward();
//     optimizer.Step();
//     return {loss};
//   });
//   absl::StatusOr<Tensors> losses = step({x, y});
//
// A call reads its arguments and whatever other tensors the function read when it was traced, at their current values,
// and gives those that the function writes in place their new ones. Numbers that the function computes on the host are
// those of the trace: a graph that holds some is replayed only after a second trace gave the same, and those that may
// change later belong into GraphCaptureOptions::guarded_scalars. Results are detached: differentiate inside of the
// function.
//
// What cannot be replayed is traced at every call, which is slower and as right; Report says why. That is so where the
// function fetches a value or marks a step, makes tensors that stay (an optimizer's state, in the first call), replaces
// a tensor that it reads, or computes numbers that change. A view that was made before a call does not see what a
// replay writes.
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
  // A call that would run more than one graph is an error.
  bool full_graph = false;
  // Numbers that the function uses, a learning rate say: when they change it is traced again.
  std::function<std::vector<double>()> guarded_scalars;
};

class CapturedFunction {
 public:
  using Function = std::function<Tensors(const Tensors& arguments)>;

  CapturedFunction(Tracer* tracer, Function function, GraphCaptureOptions options);

  // Calls it on this thread's device; no argument may be undefined.
  absl::StatusOr<Tensors> operator()(const Tensors& arguments,
                                     const std::source_location& location = std::source_location::current());

  int64_t calls() const { return calls_; }
  int64_t replays() const { return replays_; }
  // Calls, replays, graphs, and why calls were traced.
  std::string Report() const;

 private:
  // What must be as it was for a graph to be replayed.
  struct Guard {
    std::vector<Shape> shapes;
    std::vector<size_t> same_as;  // of each argument: the first that has the same value
    std::vector<bool> requires_grad;
    bool grad_enabled = true;
    std::vector<double> guarded_scalars;

    friend bool operator==(const Guard&, const Guard&) = default;
  };
  // Where an input of the graph comes from.
  struct Source {
    enum class Kind : uint8_t { kArgument, kState, kSeed, kNumber } kind;
    size_t argument = 0;
    TensorData* state = nullptr;                    // kept by CacheEntry::state
    std::shared_ptr<runtime::DeviceBuffer> number;  // what the trace used
    std::string use;                                // of a number: the node that takes it
  };
  // Where a root of the graph goes, beside being a result.
  struct OutputBinding {
    std::optional<size_t> argument;
    TensorData* state = nullptr;  // kept by CacheEntry::state
  };
  struct Result {
    std::optional<size_t> root;      // of the graph
    std::optional<size_t> argument;  // it is this argument
    Tensor same;                     // otherwise it is always this tensor
  };
  struct CacheEntry {
    Guard guard;
    std::shared_ptr<CompiledGraph> program;
    std::vector<Source> sources;
    std::vector<OutputBinding> output_bindings;
    std::vector<Result> results;
    std::vector<Ref<TensorData>> state;
    std::vector<TensorData*> made;  // of `state`: those that every trace makes anew, as gradients are
  };
  // A graph with numbers that waits for a second trace.
  struct Candidate {
    Guard guard;
    std::shared_ptr<CompiledGraph> program;
    std::vector<Source> sources;
  };
  struct Entry;  // what a trace starts from

  Guard GuardOf(const Tensors& arguments) const;
  absl::StatusOr<Tensors> Trace(DeviceState& device, const Tensors& arguments, const Guard& guard);
  absl::StatusOr<Tensors> Replay(DeviceState& device, const CacheEntry& variant, const Tensors& arguments);
  // Whether the places that the variant writes to are still in use.
  bool InUse(const CacheEntry& variant) const;
  int64_t HeldByCacheEntries(const TensorData* data) const;
  void RecordReason(std::string why);

  Tracer* tracer_;
  Function function_;
  GraphCaptureOptions options_;
  std::vector<CacheEntry> cache_entries_;
  std::vector<Candidate> candidates_;
  int64_t calls_ = 0;
  int64_t replays_ = 0;
  std::vector<std::pair<std::string, int64_t>> reasons_;  // why calls were traced, times
};

CapturedFunction Compile(Tracer* tracer, CapturedFunction::Function function, GraphCaptureOptions options = {});

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_CAPTURE_CAPTURE_H_
