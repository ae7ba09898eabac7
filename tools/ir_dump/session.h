// SPDX-License-Identifier: Apache-2.0
// Output of ir-dump for an op or a model.
#ifndef HLOKIT_TOOLS_IR_DUMP_SESSION_H_
#define HLOKIT_TOOLS_IR_DUMP_SESSION_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/cache/persistent_cache.h"
#include "ir/core/source_buffer.h"
#include "ir/core/text_writer.h"
#include "ir/text/printer.h"
#include "tools/cli/cli.h"
#include "tools/ir_dump/model_flags.h"
#include "tracer/graph/value.h"
#include "tracer/models/model.h"
#include "tracer/step/tracer.h"
#include "tracer/text/record/op_test_case.h"

namespace hlokit {

// Selected output, in order of printing.
struct EmitOptions {
  bool params = false;
  bool lazy = false, dot = false, hlo = false, optimized = false, hash = false, key = false;  // of a graph
  bool values = false;
  bool metrics = false, graphs = false;  // of executions

  bool graph() const { return lazy || dot || hlo || optimized || hash || key; }
  bool any() const { return params || graph() || values || metrics || graphs; }
  int count() const { return params + lazy + dot + hlo + optimized + hash + key + values + metrics + graphs; }
  // Returns the names accepted in the list.
  static std::vector<std::string_view> Names();
  // Parses a comma-separated list. Returns an error for an unknown name.
  absl::Status Parse(std::string_view list);
};

class Session {
 public:
  Session(cli::DiagnosticReporter* diagnostics, TextWriter* out) : diagnostics_(*diagnostics), out_(*out) {}

  bool match_torch_xla = false;
  bool gradients = false;
  bool run_steps = false;                  // run the steps of a model even if no output needs them
  bool json = false;                       // one object with a member for each output
  std::string_view module_format = "hlo";  // another one: the output is one module in it, and nothing else
  PrintOptions print = PrintOptions::Lossless();
  lazy::TracerOptions options;  // from the environment and the flags
  EmitOptions emit;

  // Prints one step of a model, or trains it, or both. This function and those below return false after an error, which
  // is printed.
  bool RunModel(const ModelRequest& request);
  // Records a graph of a file of lazy graphs, or each, and prints the selected output. `number`: from 1; 0: all.
  // `arguments`: a file with a value for each parameter; empty: synthetic values.
  bool RunGraphs(std::shared_ptr<const SourceBuffer> source, size_t number, const SourceBuffer* arguments);
  // Runs one call and prints the selected output.
  bool RunOne(const std::string& label, const lazy::OpTestCase& c, bool check);
  // The devices that a run was traced for on one of them, since they are too many to run and nothing was executed; 0
  // for other runs.
  int64_t represented_devices() const { return represented_devices_; }
  // Writes the JSON object.
  void Finish();

 private:
  bool Fail(std::string_view label, const absl::Status& status);
  // Reduces the devices of `*tracing` to one that represents all of them if they are too many to run. Returns an error
  // if they have to run, since `reads_values` or executions are not deferred.
  absl::Status Represent(bool reads_values, lazy::TracerOptions* tracing);
  void Emit(const char* name, std::string text);
  bool EmitModule(const char* name, const Module& module);
  // `mesh`: that the program is annotated for; null: none.
  bool EmitGraph(lazy::Tracer& tracer, const lazy::Tensors& roots, const lazy::Mesh* mesh = nullptr);
  void EmitKey(const runtime::CompilationCacheKey& key);
  bool EmitValues(const lazy::Tensors& roots);
  static absl::StatusOr<std::string> ValuesText(const lazy::Tensors& roots);
  void EmitReports(lazy::Tracer& tracer);
  // Opens the files of examples, if there are any. Returns false after an error.
  bool OpenInputs(const ModelRequest& request, const lazy::models::Model& model,
                  std::shared_ptr<const lazy::models::Dataset>* inputs);
  bool FailInputs(const absl::Status& status);
  bool ShowModelStep(const ModelRequest& request, const lazy::models::ModelConfig& config);
  bool RunModelSteps(const ModelRequest& request, const lazy::models::ModelConfig& config);

  cli::DiagnosticReporter& diagnostics_;
  TextWriter& out_;
  int64_t represented_devices_ = 0;
  nlohmann::ordered_json object_ = nlohmann::ordered_json::object();
};

}  // namespace hlokit

#endif  // HLOKIT_TOOLS_IR_DUMP_SESSION_H_
