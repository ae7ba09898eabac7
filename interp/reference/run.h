// SPDX-License-Identifier: Apache-2.0
// State shared by the instructions of one run: the program, memory, limits, the devices, the first error.
#ifndef HLOKIT_INTERP_REFERENCE_RUN_H_
#define HLOKIT_INTERP_REFERENCE_RUN_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "interp/interface/evaluator_options.h"
#include "interp/reference/value.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/async.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::reference {

// Execution order of a computation: the live instructions in text order, except that operands always come first.
struct Schedule {
  std::vector<Instruction> order;
  std::vector<std::vector<size_t>> last_uses;  // by position in `order`: positions whose values have no later use
  std::vector<Shape> parameter_leaves;         // of all parameters,
  std::vector<size_t> parameter_begins;        // first leaf of each; one more at the end

  // Returns true if the leaves match the parameters.
  bool Takes(const SlotValue& leaves) const;
};

struct PreparedProgram {
  const Module* module = nullptr;
  absl::flat_hash_map<uint32_t, Schedule> schedules;   // by computation id
  std::vector<size_t> positions;                       // position of each instruction in its computation's order
  std::vector<std::unique_ptr<Literal>> filled;        // values of elided constants
  absl::flat_hash_map<uint32_t, SlotValue> constants;  // by instruction id
  absl::flat_hash_set<uint32_t> mixed;                 // mixed-precision instructions
  absl::flat_hash_map<const ShapeRecord*, std::vector<size_t>> element_begins;  // of tuples: first leaf of each element
  AsyncStarts async_starts;

  // Returns the range of leaves of element `index` in a value of `tuple`.
  std::pair<size_t, size_t> ElementLeaves(Shape tuple, int64_t index);
};

// Prepares all computations reachable from `entry`. Returns false after an error report.
bool PrepareProgram(const Module& module, const interp::EvaluatorOptions& options, DiagnosticSink* sink,
                    PreparedProgram* program);

struct Device {
  int64_t replica = 0;
  int64_t partition = 0;
  uint64_t rng_draws = 0;                            // count of rng draws
  std::pair<uint64_t, uint64_t> rng_state = {0, 0};  // state of rng-get-and-update-state, low and high
};

class Run {
 public:
  Run(PreparedProgram* program, const interp::EvaluatorOptions& options, DiagnosticSink* sink)
      : program(*program), options(options), sink(sink) {
    memory.max = options.limits.max_bytes;
  }

  PreparedProgram& program;
  const interp::EvaluatorOptions& options;
  DiagnosticSink* const sink;
  Memory memory;
  Device* device = nullptr;  // the running device
  // Messages in flight, by channel and receiver.
  std::map<std::pair<int64_t, int64_t>, std::deque<SlotValue>> messages;
  interp::RunStatistics statistics;

  int64_t DeviceNumber() const { return device->replica * options.num_partitions + device->partition; }
  std::string DeviceName(int64_t number) const;

  // Sets the first error, which ends the run.
  void Fail(std::string message);
  bool failed() const { return failed_; }
  const std::string& error() const { return error_; }
  InstructionId error_instruction;
  std::vector<std::string> error_loops;  // "in iteration 3 of while.1", innermost first

  // Counts an instruction, or a unit of work within one. Returns false if a limit is exceeded or the run has failed.
  bool CountStep();
  bool Tick() { return ++ticks_ % kTicksPerCheck != 0 ? !failed_ : CheckTime(); }
  // Fails if the run was canceled or is out of time. Returns false if it has failed.
  bool CheckTime();
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  // Returns an array of zeros; null after an error.
  std::shared_ptr<Array> Allocate(Shape shape);
  // Returns an array of zeros for each leaf of the shape; empty after an error.
  std::vector<std::shared_ptr<Array>> AllocateLeaves(Shape shape);
  // Returns element i as a scalar; null after an error.
  Leaf ElementOf(const Array& array, int64_t i);

  // Applies a computation to these leaves of its parameters, for instructions that call it on elements. Also returns
  // the leaves of its root's operands if requested. Returns nullopt after an error.
  std::optional<SlotValue> Apply(Computation computation, SlotValue arguments, SlotValue* root_operands = nullptr);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kTicksPerCheck = 4096;

  const Clock::time_point begin_ = Clock::now();
  double next_progress_ = 0;
  int64_t ticks_ = 0;
  int depth_ = 0;  // nesting of Apply
  bool failed_ = false;
  std::string error_;
};

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_RUN_H_
