// SPDX-License-Identifier: Apache-2.0
// Execution of scripts (script.h): variables and calls in script_calls.cc, statements in script_statements.cc, blocks
// in script.cc.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_RUNNER_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_RUNNER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tracer/autograd/node.h"
#include "tracer/capture/capture.h"
#include "tracer/capture/compile_region.h"
#include "tracer/dispatch/autocast.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/scope.h"
#include "tracer/script/script.h"
#include "tracer/step/dynamic_shape_detector.h"

namespace hlokit::lazy {

// Removes and returns the first word.
std::string_view TakeWord(std::string_view* s);

class ScriptRunner {
 public:
  ScriptRunner(const SourceBuffer& source, Tracer& tracer, const ProgramOptions& options, TextWriter& out,
               DiagnosticSink* sink)
      : source_(source), tracer_(tracer), options_(options), out_(out), sink_(*sink) {}

  bool Run(ProgramResult* result);

 private:
  struct Block {
    enum Kind { kNoGrad, kAutocast, kScope, kRepeat, kCompile } kind;
    size_t line = 0;   // of the statement that opened it
    int64_t left = 0;  // for repeat: iterations after this one
    std::unique_ptr<AutoGradMode> grad_mode;
    std::unique_ptr<AutocastGuard> autocast;
    std::unique_ptr<ScopedTrace> scope;
    std::unique_ptr<CompileRegion> region;
  };

  // A part of a capture block: variables that it reads and assigns, and the function of its lines.
  struct CaptureBlock {
    std::vector<std::string_view> arguments;
    std::vector<std::string> results;
    std::unique_ptr<CapturedFunction> function;
  };

  bool Error(std::string_view at, std::string message, std::string hint = "") {
    sink_.Error(DiagnosticKind::kEvaluation,
                {static_cast<uint32_t>(at.data() - source_.text().data()), static_cast<uint32_t>(at.size())},
                std::move(message), std::move(hint));
    return false;
  }
  bool Statement(std::string_view line);
  bool Assignment(std::string_view names, std::string_view value);
  bool CallOp(std::string_view call, Outputs* outputs);
  bool Variable(std::string_view name, Tensor* t);
  bool Variables(std::string_view names, Tensors* tensors);
  bool Argument(const ArgSpec& spec, std::string_view text, IValue* value);
  bool Dump(std::string_view kind, std::string_view names, std::string_view at);
  bool Open(std::string_view line, std::string_view word, std::string_view rest, size_t at);
  bool Close(std::string_view at, size_t* next);
  bool RunLines(size_t begin, size_t end);
  // Runs a capture block: its parts between graph breaks are captured functions.
  bool Capture(std::string_view line, std::string_view rest, size_t at, size_t* next);
  bool CapturePart(std::string_view line, size_t begin, size_t end, GraphCaptureOptions options);
  // Returns the statements of a capture block that need values, and may be run between parts of it.
  std::vector<size_t> GraphBreaks(size_t begin, size_t end) const;
  std::vector<std::string_view> ReadBeforeWritten(size_t begin, size_t end) const;
  std::string CaptureReport() const;
  void Assign(std::string_view name, Tensor t) {
    if (assigned_ != nullptr && std::find(assigned_->begin(), assigned_->end(), name) == assigned_->end()) {
      assigned_->emplace_back(name);
    }
    const auto [it, fresh] = index_.try_emplace(std::string(name), variables_.size());
    if (fresh) variables_.emplace_back(std::string(name), Tensor());
    variables_[it->second].second = std::move(t);
  }
  // Reports pending errors of ops at the statement.
  bool CheckStatus(std::string_view at) {
    const absl::Status s = tracer_.status();
    if (s.ok()) return true;
    tracer_.ClearStatus();
    return Error(at, std::string(s.message()));
  }

  const SourceBuffer& source_;
  Tracer& tracer_;
  const ProgramOptions& options_;
  TextWriter& out_;
  DiagnosticSink& sink_;
  std::vector<std::pair<std::string, Tensor>> variables_;
  absl::flat_hash_map<std::string, size_t> index_;
  std::vector<std::string_view> lines_;
  std::vector<Block> blocks_;
  int64_t statements_ = 0;                                                  // run so far
  std::map<std::string, std::unique_ptr<DynamicShapeDetector>> detectors_;  // of compile blocks, by name
  std::map<size_t, CaptureBlock> captures_;                                 // by first line
  std::vector<std::string>* assigned_ = nullptr;                            // names, while a capture block is traced
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_RUNNER_H_
