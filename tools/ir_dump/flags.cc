// SPDX-License-Identifier: Apache-2.0
#include "tools/ir_dump/flags.h"

#include <CLI/CLI.hpp>
#include <chrono>

#include "interp/program/engine_table.h"
#include "ir/core/str_cat.h"
#include "passes/core/pipeline.h"
#include "tools/cli/flags/cache_flag.h"
#include "tools/cli/flags/memory_flag.h"
#include "tools/cli/help_format.h"
#include "tools/cli/number_flag.h"
#include "tracer/graph/op.h"
#include "tracer/step/environment.h"
#include "tracer/text/op_list.h"

extern char** environ;

namespace hlokit {
namespace {

constexpr char kExamples[] =
    R"(Values:
  A file of arguments has one value a line, the shape and the literal; `none`
  for a tensor that is absent:
    f32[2,2] { { 1, 2 }, { 3, 4 } }

Examples:
  ir-dump --op=aten::_softmax --attr dim=1 --attr half_to_float=false --args=x.txt --emit=lazy,hlo
                                            one op: its lazy IR and the HLO it lowers to
  ir-dump --op=aten::tanh --args=x.txt --grad
                                            its value and gradient
  ir-dump --model=bert-base --batch=8 --seq=128 --step=train --emit=hlo
                                            a training step of a model
  ir-dump --model=resnet18 --image=64 --classes=10 --steps=3 --emit=metrics
                                            three steps, and what was compiled
  ir-dump --model=mlp --steps=6 --device=v3:2x2 --replicas=8 --profile=log --report=report
                                            six steps of data-parallel training, profiled: the host as it is, the device
                                            simulated
  ir-dump --model=mlp --batch=8 --devices=4 --steps=3 --emit=hlo,values
                                            a step with its all-reduce, and three of them on four devices
  ir-dump --model=mlp --steps=3 --emit=graphs,metrics --json -o report.json
                                            the graphs of each step and the metrics, as JSON
  ir-dump --input=save.ir.0 --as=dedupe     which graphs of a dump are equal, and where the others differ
  ir-dump --input=save.ir.0 --diff=1,2      two of them compared
  ir-dump --input=save.ir.0 --graph=1 --emit=hlo,values
                                            a graph of a dump lowered and run on synthetic values
  ir-dump --test-case=softmax.case          run a recorded call and compare with its expected results
  ir-dump --test-case=a.case --test-case=b.case --test-summary
                                            the same for many, with counts by family)";

int IrDumpUsage(std::string_view message) { return cli::UsageError("ir-dump", message); }

}  // namespace

void IrDumpFlags::AddSourceFlags(CLI::App* app) {
  CLI::Option* const op_option =
      app->add_option("--op", op, "an op, e.g. aten::softmax.int; without an overload, the first one")->type_name("OP");
  app->add_option("--attr", attributes, "an argument that is not a tensor, NAME=VALUE; may be repeated")
      ->type_name("NAME=VALUE")
      ->take_all()
      ->expected(1)
      ->needs(op_option);
  CLI::Option* const input_option =
      app->add_option("--input", form.path,
                      "a file of lazy graphs: dumps of PyTorch/XLA, of torch's lazy backend, of this tool")
          ->type_name("FILE");
  app->add_option("--as", form.form,
                  "with --input: list, json, dedupe (which are equal, and what differs first), print, normalize, dot")
      ->check(CLI::IsMember({"list", "json", "dedupe", "print", "normalize", "dot"}))
      ->needs(input_option);
  cli::AddNumber(app, "--graph", &form.graph, "with --input: one graph, by its number from 1", 1)->needs(input_option);
  app->add_option("--diff", form.other, "with --input: compare two of its graphs, A,B; exit code 1 if they differ")
      ->type_name("A,B")
      ->needs(input_option);
  app->add_flag("--explain-recompiles", explain,
                "why each graph was compiled: the nearest known one and what differs first");
  cli::GroupOptions(app, "Programs");
  model.AddTo(app);
  cli::GroupOptions(app, "Training");
}

void IrDumpFlags::AddLimitFlags(CLI::App* app) {
  tracer.client.evaluator.num_threads = 1;
  interp::Limits& limits = tracer.client.evaluator.limits;
  limits.begin = std::chrono::steady_clock::now();
  cli::AddMaxBytes(app, &limits);
  cli::AddNumber(app, "--max-nodes", &tracer.max_pending_nodes,
                 "limit on the nodes that are recorded between two steps", 0)
      ->capture_default_str();
  cli::AddNumber(app, "--max-seconds", &limits.max_seconds, "time limit of tracing and of running, together", 0);
}

void IrDumpFlags::AddValueFlags(CLI::App* app) {
  app->add_option("--args", arguments,
                  "file of tensor arguments, or with --input of the parameters; - is standard input")
      ->type_name("FILE");
  app->add_option("--expect", expected, "compare with this file of expected results (out:, grad:, tolerance: lines)")
      ->type_name("FILE");
  CLI::Option* const case_option =
      app->add_option("--test-case", cases, "file of a call and its expected results; may be repeated")
          ->type_name("FILE")
          ->take_all()
          ->expected(1);
  app->add_flag("--test-summary", summary, "with --test-case: one line a file, and counts by family at the end")
      ->needs(case_option);
  app->add_flag("--grad", gradients,
                "differentiate with respect to the args in requires_grad, or all floating-point args");
}

void IrDumpFlags::AddOutputFlags(CLI::App* app) {
  app->add_option(
         "--emit", emit_list,
         "what to print, separated by commas: lazy, lazy-dot, hlo, optimized-hlo, hash, key (a digest of each "
         "ingredient of the compilation cache key), values (the default of an op), metrics, graphs (the graphs of "
         "each step and the causes of graph breaks; executed only as far as values are required, and in full "
         "with metrics); of a model also params")
      ->type_name("WHAT");
  app->add_flag("--json", output.json, "print one JSON object with a member for each of these");
  app->add_option("--compat", compatible_with, "torch_xla: omit op attributes from lazy IR, as PyTorch/XLA does")
      ->check(CLI::IsMember({"torch_xla"}));
}

void IrDumpFlags::AddCompilationFlags(CLI::App* app) {
  cli::AddCacheFlag(app, &cache, "persistent compilation cache");
  app->add_option("--save-graphs", save_graphs, "append every executed graph to this file")->type_name("FILE");
  app->add_flag("--debug", debug, "record scopes and source lines on nodes and HLO");
  app->add_flag("--analysis,--pt-xla-debug", analysis,
                "as PT_XLA_DEBUG=1: the causes of compilations and executions, and recommendations after steps, on "
                "standard error");
  app->add_option("--pipeline", pipeline, "passes of compilation, as in hlo-opt --passes")
      ->type_name("PIPELINE")
      ->default_str("default; cpu with the fast engine");
  app->add_option("--engine", engine,
                  StrCat(cli::EngineHelp("what runs programs: "),
                         " (docs/engine.md). By default exact, and fast for training with --steps"))
      ->check(CLI::IsMember(interp::EngineNames()));
  engine_flags.AddTo(app);
  cli::AddNumber(app, "--num-threads", &tracer.client.evaluator.num_threads,
                 "number of threads of each device; 0: one for each core; results do not depend on it", 0, 1024)
      ->capture_default_str();
  CLI::Option* const mpi_option = app->add_flag(
      "--mpi", mpi,
      "train a model as the processes of mpirun or srun, each on its shard of the batch; the first one prints");
  cli::AddNumber(app, "--mpi-timeout", &mpi_timeout,
                 "seconds after which a silent process counts as dead, and data that do not come are an error", 0.1,
                 86400.0)
      ->capture_default_str()
      ->needs(mpi_option);
}

void IrDumpFlags::AddTo(CLI::App* app) {
  AddSourceFlags(app);
  AddLimitFlags(app);
  AddValueFlags(app);
  AddOutputFlags(app);
  AddCompilationFlags(app);
  app->add_flag("--list-variables", list_variables, "print the supported environment variables and exit");
  app->add_flag("--list-ops", list_ops, "print the schemas of the ops and exit");
  app->add_option(
         "-o,--output", output.path,
         "output file; - is standard output. Its suffix says the form: .json as --json, .dot as --emit=lazy-dot, "
         "and of --emit=hlo alone that of the module, as in hlo-translate; others are text")
      ->type_name("FILE")
      ->capture_default_str();
  input.AddFlags(app);
  cli::GroupOptions(app, "Values, compilation and output");
  profile.AddTo(app);
  app->footer(kExamples);
}

std::optional<int> IrDumpFlags::CheckUse() {
  if (!op.empty() + !cases.empty() + !form.path.empty() + has_model() != 1) {
    return IrDumpUsage("expected one of --op, --model, --input and --test-case");
  }
  if (absl::Status s = emit.Parse(emit_list); !s.ok()) return IrDumpUsage(std::string(s.message()));
  if (!arguments.empty() && op.empty() && (form.path.empty() || !emit.any())) {
    return IrDumpUsage("--args requires --op, or --input and --emit");
  }
  if (emit.any() && (!form.form.empty() || !form.other.empty())) {
    return IrDumpUsage("--emit, which records the graphs again, cannot be used with --as and --diff");
  }
  if (emit.params && !has_model()) return IrDumpUsage("--emit=params requires --model");
  if (output.json && !form.path.empty() && !emit.any()) {
    return IrDumpUsage("--json cannot be used with --input; see --as=json");
  }
  const bool more_text = explain || !expected.empty() || cases.size() > 1 || summary;
  if (const std::string error = ChooseBySuffix(more_text, &output, &emit, &form); !error.empty()) {
    return IrDumpUsage(error);
  }
  if (absl::Status s = model.Check(); !s.ok()) return IrDumpUsage(std::string(s.message()));
  if (!model.request.inputs.empty() && !has_model()) return IrDumpUsage("--inputs requires --model");
  if (model.request.devices > 1 && !has_model()) return IrDumpUsage("--devices requires --model and --step=train");
  if (!op.empty() && !lazy::FindOp(op)) return IrDumpUsage(StrCat("unknown op `", op, "`", lazy::DidYouMeanOp(op)));
  return std::nullopt;
}

std::optional<int> IrDumpFlags::ConfigureTracer() {
  if (absl::Status s = lazy::ApplyEnvironment(environ, &tracer); !s.ok()) return IrDumpUsage(std::string(s.message()));
  if (absl::StatusOr<Pipeline> parsed = Pipeline::Parse(pipeline.value_or("")); !parsed.ok()) {
    return IrDumpUsage(StrCat("--pipeline: ", std::string(parsed.status().message())));
  }
  tracer.client.pipeline = pipeline;
  // The simulated TPU compiles programs as they were lowered, with its own pipeline.
  tracer.client.keep_lowered = profiles();
  const bool trains = has_model() && model.request.step == "train" && model.steps_given();
  if (engine.empty()) engine = trains ? "fast" : "exact";
  tracer.client.engine = interp::EngineKindOf(engine).value_or(interp::EngineKind::kExact);
  if (const std::optional<int> exit_code = engine_flags.Check("ir-dump", tracer.client.engine)) return exit_code;
  if (model.devices_given()) tracer.client.num_devices = static_cast<int>(model.request.devices);
  tracer.debug |= debug;
  tracer.explain_recompiles = explain;
  tracer.log_executions = emit.graphs;
  // The graphs, and what they take on the simulated device, are known without running them; metrics are not.
  tracer.client.defer_executions = (emit.graphs || profile.wanted()) && !emit.metrics && !analysis &&
                                   !tracer.auto_analysis && tracer.metrics_file.empty() && profile.port < 0;
  if (analysis) {
    tracer.debug_level = 100;
    tracer.auto_analysis = true;
  }
  if (!cache.empty()) tracer.persistent_cache.location = cache;
  if (!save_graphs.empty()) tracer.save_graphs_file = save_graphs;
  return std::nullopt;
}

std::optional<int> IrDumpFlags::Join(interp::MpiSession* processes) {
  if (!interp::RowOf(tracer.client.engine).runs_in_processes) {
    return IrDumpUsage(StrCat("--mpi excludes --engine=", engine));
  }
  const int64_t devices = model.request.devices * processes->size();
  if (!has_model() || model.request.step != "train" || profiles()) {
    return IrDumpUsage("--mpi requires --model and --step=train, without a profile");
  }
  if (model.request.config.batch % devices != 0) {
    return IrDumpUsage(StrCat("--mpi: a batch of ", model.request.config.batch, " is not divisible by ", devices,
                              " devices, those of all processes"));
  }
  tracer.client.evaluator.world = processes;
  tracer.replicas = devices;
  if (processes->rank() != 0) output.path = "/dev/null";
  processes->EndSetup();
  return std::nullopt;
}

std::optional<int> IrDumpFlags::Check(interp::MpiSession* processes) {
  std::optional<int> exit_code = CheckUse();
  if (!exit_code) exit_code = ConfigureTracer();
  if (!exit_code && processes != nullptr) exit_code = Join(processes);
  return exit_code;
}

}  // namespace hlokit
