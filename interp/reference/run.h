// SPDX-License-Identifier: Apache-2.0
// What the instructions of one run share: the program, memory, limits, the devices, the first error.
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
#include "interp/exact/evaluator.h"
#include "interp/reference/value.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/async.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::reference {

// The instructions of a computation in the order in which they run: those that the root or an effect needs, in the
// order of the text where operands come first in it.
struct Schedule {
  std::vector<Instruction> order;
  std::vector<std::vector<size_t>> last_uses;  // by place in `order`: places whose values nothing reads afterwards
  std::vector<Shape> parameter_leaves;         // of all parameters,
  std::vector<size_t> parameter_begins;        // and where those of each begin; one more at the end

  // Whether the computation can be called on these.
  bool Takes(const SlotValue& leaves) const;
};

struct PreparedProgram {
  const Module* module = nullptr;
  absl::flat_hash_map<uint32_t, Schedule> schedules;   // by computation id
  std::vector<size_t> places;                          // of each instruction in the order of its computation
  std::vector<std::unique_ptr<Literal>> filled;        // in place of elided constants
  absl::flat_hash_map<uint32_t, SlotValue> constants;  // by instruction id
  absl::flat_hash_set<uint32_t> mixed;  // instructions whose operands have other types than they compute in
  absl::flat_hash_map<const ShapeRecord*, std::vector<size_t>> element_begins;  // of tuples: the leaf each begins at
  AsyncStarts async_starts;

  // Leaves [first, second) of a value of `tuple` are its element `index`.
  std::pair<size_t, size_t> ElementLeaves(Shape tuple, int64_t index);
};

// What must be evaluated before an instruction: its operands and, for a get-dimension-size, the size that a
// set-dimension-size gave.
std::vector<Instruction> OperandsOf(Instruction instruction);

// Fills `program` with all that `entry` calls. False after an error report.
bool PrepareProgram(const Module& module, const interp::EvaluatorOptions& options, DiagnosticSink* sink,
                    PreparedProgram* program);

struct Device {
  int64_t replica = 0;
  int64_t partition = 0;
  uint64_t rng_draws = 0;                            // of rng
  std::pair<uint64_t, uint64_t> rng_state = {0, 0};  // of rng-get-and-update-state, low and high
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
  Device* device = nullptr;  // the one that runs
  // Sent from device to device, and not yet received: by channel and receiver.
  std::map<std::pair<int64_t, int64_t>, std::deque<SlotValue>> messages;
  interp::RunStatistics statistics;

  int64_t DeviceNumber() const { return device->replica * options.num_partitions + device->partition; }
  std::string DeviceName(int64_t number) const;

  // The first error ends the run.
  void Fail(std::string message);
  bool failed() const { return failed_; }
  const std::string& error() const { return error_; }
  InstructionId error_instruction;
  std::vector<std::string> error_loops;  // "in trip 3 of while.1", innermost first

  // Counts an instruction, or a piece of work within one. False when a limit is passed or the run has failed.
  bool CountStep();
  bool Tick() { return ++ticks_ % kTicksPerCheck != 0 ? !failed_ : CheckTime(); }
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  // Zeros; null after an error.
  std::shared_ptr<Array> Allocate(Shape shape);
  // An array of zeros for each leaf of the shape; empty after an error.
  std::vector<std::shared_ptr<Array>> AllocateLeaves(Shape shape);
  // Element i as a scalar; null after an error.
  Leaf ElementOf(const Array& array, int64_t i);

  // What a computation gives for these leaves of its parameters, for instructions that call it for elements, and the
  // leaves of its root's operands where they are asked for. Nullopt after an error.
  std::optional<SlotValue> Apply(Computation computation, SlotValue arguments, SlotValue* root_operands = nullptr);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kTicksPerCheck = 4096;
  bool CheckTime();

  const Clock::time_point begin_ = Clock::now();
  double next_progress_ = 0;
  int64_t ticks_ = 0;
  int depth_ = 0;  // of Apply
  bool failed_ = false;
  std::string error_;
};

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_RUN_H_
