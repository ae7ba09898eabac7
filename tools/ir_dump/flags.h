// SPDX-License-Identifier: Apache-2.0
// The command line of ir-dump.
#ifndef HLOKIT_TOOLS_IR_DUMP_FLAGS_H_
#define HLOKIT_TOOLS_IR_DUMP_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

#include "interp/processes/mpi_session.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/engine_flags.h"
#include "tools/cli/flags/profile_flags.h"
#include "tools/ir_dump/model_flags.h"
#include "tools/ir_dump/output_form.h"
#include "tools/ir_dump/session.h"
#include "tools/ir_dump/show_graphs.h"
#include "tracer/step/tracer.h"

namespace CLI {
class App;
}

namespace hlokit {

struct IrDumpFlags {
  // What is traced or shown: an op, a file of graphs (form.path), a model, or files of recorded calls.
  std::string op;
  std::vector<std::string> attributes;  // of the op, NAME=VALUE
  InputForm form;
  ModelFlags model;
  std::vector<std::string> cases;

  std::string arguments, expected;  // files; empty: none
  bool gradients = false;
  bool summary = false;  // of the calls

  // What is printed, and where.
  std::string emit_list;
  EmitOptions emit;  // as Check reads the list
  OutputForm output;
  std::string compatible_with;  // the program whose lazy IR is imitated; empty: none
  bool list_variables = false, list_ops = false;

  // How it is traced and compiled.
  lazy::TracerOptions tracer;
  std::string cache, save_graphs;
  bool debug = false, explain = false, analysis = false;
  std::optional<std::string> pipeline;
  std::string engine;
  cli::EngineFlags engine_flags;
  bool mpi = false;
  double mpi_timeout = 30;
  cli::ProfileFlags profile;
  cli::InputOptions input;

  void AddTo(CLI::App* app);
  // Checks the flags, and completes the options of the tracer with them and the environment. `processes`: of --mpi, or
  // null. Returns an exit code after a usage error, which is printed.
  std::optional<int> Check(interp::MpiSession* processes);

  bool has_model() const { return !model.request.config.name.empty(); }
  // A simulated device is profiled, after the run or while it goes on.
  bool profiles() const { return profile.wanted() || profile.port >= 0; }

 private:
  void AddSourceFlags(CLI::App* app);
  void AddLimitFlags(CLI::App* app);
  void AddValueFlags(CLI::App* app);
  void AddOutputFlags(CLI::App* app);
  void AddCompilationFlags(CLI::App* app);
  std::optional<int> CheckUse();
  std::optional<int> ConfigureTracer();
  // Divides the devices of a training step among the processes.
  std::optional<int> Join(interp::MpiSession* processes);
};

}  // namespace hlokit

#endif  // HLOKIT_TOOLS_IR_DUMP_FLAGS_H_
