// SPDX-License-Identifier: Apache-2.0
// Runs a parsed script on one device: the machine in script_runner.cc, operators in script_operators.cc, calls in
// script_calls.cc, statements in script_statements.cc, captured blocks in script_captures.cc.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_RUNNER_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/autograd/node.h"
#include "tracer/capture/capture.h"
#include "tracer/capture/compile_region.h"
#include "tracer/dispatch/autocast.h"
#include "tracer/graph/scope.h"
#include "tracer/script/native_functions.h"
#include "tracer/script/script.h"
#include "tracer/script/script_objects.h"
#include "tracer/script/script_program.h"
#include "tracer/script/script_value.h"
#include "tracer/step/dynamic_shape_detector.h"

namespace hlokit::lazy::script {

class ScriptRunner {
 public:
  // context: the device, whose turn is held while the script runs.
  ScriptRunner(const SourceBuffer& source, const ScriptProgram& program, const RunContext& context,
               const ProgramOptions& options, TextWriter& out, DiagnosticSink* sink)
      : source_(source),
        program_(program),
        tracer_(*context.tracer),
        options_(options),
        out_(out),
        sink_(*sink),
        context_(context) {}

  // Returns false after an error, which is in the sink.
  bool Run(ProgramResult* result);
  // Returns true if the error is that another device has ended.
  bool stopped() const { return stopped_; }

 private:
  struct OpenBlock {
    std::unique_ptr<AutoGradMode> grad_mode;
    std::unique_ptr<AutocastGuard> autocast;
    std::unique_ptr<ScopedTrace> scope;
    std::unique_ptr<CompileRegion> region;
  };
  // A running function.
  struct Frame {
    size_t function = 0;
    uint32_t next = 0;  // place in its code
    size_t stack = 0;   // size of the stack below its values
    std::vector<Value> variables;
    std::vector<OpenBlock> blocks;
    std::vector<std::unique_ptr<ScopedFrame>> lines;  // of the current statement, and of captures around it
  };
  // A part of a captured block: what its last traces assigned.
  struct CapturedPart {
    struct Results {
      std::vector<uint32_t> tensors;                   // variables that are results of the captured function
      std::vector<std::pair<uint32_t, Value>> others;  // variables that are no tensors
      bool repeatable = true;                          // a replay gives the same values
    };
    std::unique_ptr<CapturedFunction> function;
    std::vector<uint64_t> state;                       // what the current call depends on
    std::map<std::vector<uint64_t>, Results> results;  // by state
    const Capture::Part* part = nullptr;
  };
  static constexpr size_t kMaxFrames = 64;
  static constexpr size_t kMaxBlocks = 1000;

  bool Error(SourceRange range, std::string message, std::string hint = "");
  bool Fail(SourceRange range, const absl::Status& status) {
    stopped_ = absl::IsAborted(status);
    return Error(range, std::string(status.message()));
  }
  // Reports pending errors of ops.
  bool CheckStatus(SourceRange range);
  bool CountStatement(SourceRange range);

  // ---- the machine ----
  // Runs until the frame at `depth` reaches `end`, or returns if `end` is beyond its code.
  bool Execute(size_t depth, uint32_t end);
  bool Step(const Instruction& i);
  bool StepStatement(const Instruction& i);
  bool Jump(const Instruction& i);
  Frame& frame() { return *frames_.back(); }
  const Function& function() { return program_.functions[frame().function]; }
  void Push(Value value) { stack_.push_back(std::move(value)); }
  Value Pop();
  // Removes the last `count` values.
  std::vector<Value> PopMany(size_t count);
  bool EnterFunction(size_t number, std::vector<Value> arguments, SourceRange range);
  bool Return(const Instruction& i);
  void LeaveFrame();
  bool Load(const Instruction& i);
  bool Store(const Instruction& i);
  bool IsTrue(const Value& value, SourceRange range, bool* result);
  bool BeginLoop(const Instruction& i);
  bool MakeList(const Instruction& i);
  bool MakeLiteral(const Instruction& i);
  bool MakeHash(const Instruction& i);
  absl::StatusOr<Shape> ShapeAt(SourceRange range);
  bool PushList(std::vector<Value> values, SourceRange range, bool results);

  // ---- operators ----
  bool Unary(const Instruction& i);
  bool Binary(const Instruction& i);
  bool Index(const Instruction& i);
  bool NumberOperator(Operator op, Scalar a, Scalar b, SourceRange range);
  bool TensorOperator(Operator op, const Value& a, const Value& b, bool in_place, SourceRange range);
  bool Item(const Value& value, SourceRange range);

  // ---- calls ----
  bool Call(const Instruction& i);
  bool CallOp(const CallSite& call, std::vector<Value> values);
  bool CallNative(const CallSite& call, std::vector<Value> values);
  bool CallFunction(const CallSite& call, std::vector<Value> values);
  bool CallModule(const CallSite& call, std::vector<Value> values);
  // Converts arguments to values of parameters. `optional_last`: of a variadic function.
  bool Bind(const Signature& signature, const CallSite& call, const std::vector<size_t>& places,
            std::vector<Value> values, std::vector<Value>* bound);
  bool RunOp(Op op, Args args, bool in_place, SourceRange range);
  // Calls an op of this name with values by position.
  bool CallNamed(std::string_view name, bool in_place, std::vector<Value> values, SourceRange range);

  // ---- statements ----
  bool Open(const Instruction& i);
  bool Close(const Instruction& i);
  bool RequiresGrad(const Instruction& i);
  bool Backward(const Instruction& i);
  bool ZeroGrad(const Instruction& i);
  bool StepOptimizers(const Instruction& i);
  bool Train(const Instruction& i);
  bool MarkStep(const Instruction& i);
  bool Wait(const Instruction& i);
  bool ManualSeed(const Instruction& i);
  bool Print(const Instruction& i);
  bool PrintItem(const Instruction& i);
  bool Dump(const Instruction& i);
  bool DumpText(std::string_view kind, const Tensors& tensors, SourceRange range);
  bool TensorsOf(const std::vector<Value>& values, SourceRange range, Tensors* tensors);
  std::string_view TextAt(SourceRange range) const { return source_.text().substr(range.offset, range.size); }

  // ---- captures ----
  bool RunCapture(const Instruction& i);
  bool RunPart(size_t capture, size_t part, SourceRange range);
  // Returns what a part depends on: values of variables other than tensors, and sizes.
  std::vector<uint64_t> StateOf(const Capture::Part& part, Tensors* arguments);
  Tensors TracePart(CapturedPart* part);
  std::string CaptureReport() const;

  const SourceBuffer& source_;
  const ScriptProgram& program_;
  Tracer& tracer_;
  const ProgramOptions& options_;
  TextWriter& out_;
  DiagnosticSink& sink_;
  RunContext context_;
  std::vector<Value> stack_;
  std::vector<std::unique_ptr<Frame>> frames_;
  bool stopped_ = false;
  int64_t statements_ = 0;                                                  // run so far
  std::map<std::string, std::unique_ptr<DynamicShapeDetector>> detectors_;  // of compile blocks, by name
  std::map<std::pair<size_t, size_t>, CapturedPart> captures_;              // by capture and part
  CapturedPart* tracing_ = nullptr;                                         // the part being traced
  std::vector<uint32_t> assigned_;                                          // variables, while a part is traced
  size_t tracing_frame_ = 0;                                                // number of frames at its start
};

}  // namespace hlokit::lazy::script

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_RUNNER_H_
