// SPDX-License-Identifier: Apache-2.0
// An engine: a module, prepared to run on arguments. interp/program/engine_table.h lists the engines there are.
#ifndef HLOKIT_INTERP_INTERFACE_ENGINE_H_
#define HLOKIT_INTERP_INTERFACE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// Devices of a process, [first, first + count), of `all`.
struct DeviceRange {
  int64_t all = 1;
  int64_t first = 0;
  int64_t count = 1;
};

// What an engine that generates code made of a program, for reports.
class CodeInspection {
 public:
  virtual ~CodeInspection() = default;
  // Returns a table of what runs each instruction, and why that is not generated code.
  virtual std::string Explain() const = 0;
  // Returns the steps of the program, with kernels and buffers.
  virtual std::string Plan() const = 0;
  virtual size_t loops() const = 0;
  // The forms of a loop, as extensions of files: its instructions, intermediate code, assembly (".s").
  virtual absl::Span<const std::string_view> stage_extensions() const = 0;
  // Returns the text of each of them.
  virtual std::vector<std::string> StagesOfLoop(size_t loop) const = 0;
  // Returns the instructions of each loop, by the id of the last one.
  virtual std::map<uint32_t, std::vector<InstructionId>> LoopMembers() const = 0;
};

// A prepared module, which can run any number of times, one run at a time. The module must outlive it unchanged.
class Engine {
 public:
  Engine() = default;
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Shapes of the arguments and results of a run: the array and token leaves of the entry's parameters and of its root,
  // tuples flattened in order. Tokens are literals without elements. Where a dimension is dynamic, the literals have
  // its size: an f32[5] for f32[<=8].
  virtual const std::vector<Shape>& argument_shapes() const = 0;
  virtual const std::vector<Shape>& result_shapes() const = 0;

  virtual DeviceRange devices() const = 0;
  int64_t num_devices() const { return devices().all; }

  // Runs the module. Arguments of device 0, of device 1, ..., where device `replica * num_partitions + partition` runs
  // one partition of one replica; of the devices of this process only. Results have the same order. Arguments are read
  // in place; an engine may not take donations. Returns nullopt after an error.
  virtual std::optional<std::vector<Literal>> RunPointers(absl::Span<const Literal* const> arguments,
                                                          DiagnosticSink* sink, DonatedArguments* donation) = 0;
  std::optional<std::vector<Literal>> RunPointers(absl::Span<const Literal* const> arguments, DiagnosticSink* sink) {
    return RunPointers(arguments, sink, nullptr);
  }
  // The same with contiguous arguments.
  std::optional<std::vector<Literal>> Run(absl::Span<const Literal> arguments, DiagnosticSink* sink);

  // Of the last run.
  virtual const RunStatistics& statistics() const = 0;
  // Null: the engine generates no code.
  virtual const CodeInspection* code() const { return nullptr; }

 protected:
  // For Prepare: reports an error and returns false for more devices than kMaxDevices, or none, and for a module
  // without an entry computation.
  static bool CheckProgram(const Module& module, const EvaluatorOptions& options, DiagnosticSink* sink);
  // For RunPointers: reports an error and returns false unless there are arguments for all devices of this process, and
  // of the right shapes.
  bool CheckArgumentCount(absl::Span<const Literal* const> arguments, DiagnosticSink* sink) const;
  bool CheckArguments(absl::Span<const Literal* const> arguments, DiagnosticSink* sink) const;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_INTERFACE_ENGINE_H_
