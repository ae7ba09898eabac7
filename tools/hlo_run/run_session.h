// SPDX-License-Identifier: Apache-2.0
// One invocation of hlo-run, in steps: read the program, simulate it, lower and compile it, read arguments and what to
// compare with, run, write, compare.
#ifndef HLOKIT_TOOLS_HLO_RUN_RUN_SESSION_H_
#define HLOKIT_TOOLS_HLO_RUN_RUN_SESSION_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/arguments/snapshot.h"
#include "interp/interface/evaluator_options.h"
#include "interp/processes/mpi_session.h"
#include "interp/program/compile.h"
#include "interp/program/file_host_io.h"
#include "interp/program/sharded_arrays.h"
#include "parser/proto/proto_file.h"
#include "tools/cli/cli.h"
#include "tools/cli/crash/interrupt.h"
#include "tools/hlo_run/flags.h"
#include "tools/hlo_run/program.h"
#include "tools/hlo_run/reference.h"
#include "tools/hlo_run/run_observers.h"

namespace hlokit::run {

class RunSession {
 public:
  // `command`: the command line. `processes`: of --mpi, or null.
  RunSession(const Flags& flags, std::string command, interp::MpiSession* processes);
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  // Returns the exit code.
  int Run();

 private:
  // Steps return false if no other follows: after an error, which is printed, or if the flags ask for no more.
  bool ReadInput();
  bool Simulate();
  bool ChooseRunOptions();
  bool LowerAndCompile();
  bool ShowCode();
  bool ReadArguments();
  bool ReadReferenceValues();
  bool Execute();
  bool WriteFiles();
  void Compare();

  bool Usage(std::string_view message);
  bool HasArguments() const;
  bool CheckArgumentsOfRun();
  // Returns a copy of the module to simulate, for as many devices as the flags, the header or else the shardings say.
  // `warnings` may be null.
  std::unique_ptr<Module> ForDevices(const Module& module, DiagnosticSink* warnings) const;
  std::optional<std::vector<Literal>> RunReference();

  Flags flags_;
  const std::string command_;
  interp::MpiSession* const processes_;
  cli::DiagnosticReporter diagnostics_;
  std::optional<Program> program_;
  std::unique_ptr<ProtoFile> snapshot_;  // the input, if it is one with arguments that are used
  cli::ProgressLine progress_;
  interp::EvaluatorOptions options_;
  interp::EvaluatorOptions reference_options_;  // of the program to compare with, and of --isolate
  std::optional<interp::FileHostIo> host_;
  std::optional<RunObservers> observers_;
  interp::RunTimes times_;
  std::unique_ptr<interp::Executable> executable_;
  interp::SnapshotValues recorded_;
  std::vector<Literal> arguments_;
  Reference reference_;
  std::vector<Literal> results_;
};

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_RUN_SESSION_H_
