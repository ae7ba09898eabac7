// SPDX-License-Identifier: Apache-2.0
// ir-dump: traces ops and models, and shows the graphs that the tracer records.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "interp/processes/mpi_session.h"
#include "ir/core/str_cat.h"
#include "passes/core/pipeline.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/cache_flag.h"
#include "tools/cli/flags/engine_flags.h"
#include "tools/cli/flags/memory_flag.h"
#include "tools/cli/flags/mpi_flag.h"
#include "tools/cli/flags/print_flags.h"
#include "tools/cli/flags/profile_flags.h"
#include "tools/cli/help_format.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/output_file.h"
#include "tools/ir_dump/model_flags.h"
#include "tools/ir_dump/output_form.h"
#include "tools/ir_dump/session.h"
#include "tools/ir_dump/show_graphs.h"
#include "tools/ir_dump/value_kinds.h"
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

int RunProcess(int argc, char** argv, interp::MpiSession* processes) {
  CLI::App app("trace ops and models as PyTorch/XLA does and dump their IR at any stage", "ir-dump");
  std::string op, args_path, expect_path;
  std::string emit_list;
  std::vector<std::string> attrs, cases;
  std::string quirks;
  InputForm form;
  OutputForm output;
  std::string cache, save_graphs;
  std::optional<std::string> pipeline;
  bool gradients = false, summary = false, debug = false, explain = false, analysis = false;
  bool list_variables = false;
  bool list_ops = false;
  cli::InputOptions input;
  cli::ProfileFlags profile;
  CLI::Option* const op_option =
      app.add_option("--op", op, "an op, e.g. aten::softmax.int; without an overload, the first one")->type_name("OP");
  app.add_option("--attr", attrs, "an argument that is not a tensor, NAME=VALUE; may be repeated")
      ->type_name("NAME=VALUE")
      ->take_all()
      ->expected(1)
      ->needs(op_option);
  CLI::Option* const input_option =
      app.add_option("--input", form.path,
                     "a file of lazy graphs: dumps of PyTorch/XLA, of torch's lazy backend, of this tool")
          ->type_name("FILE");
  app.add_option("--as", form.form,
                 "with --input: list, json, dedupe (which are equal, and what differs first), print, normalize, dot")
      ->check(CLI::IsMember({"list", "json", "dedupe", "print", "normalize", "dot"}))
      ->needs(input_option);
  cli::AddNumber(&app, "--graph", &form.graph, "with --input: one graph, by its number from 1", 1)->needs(input_option);
  app.add_option("--diff", form.other, "with --input: compare two of its graphs, A,B; exit code 1 if they differ")
      ->type_name("A,B")
      ->needs(input_option);
  app.add_flag("--explain-recompiles", explain,
               "why each graph was compiled: the nearest known one and what differs first");
  cli::GroupOptions(&app, "Programs");
  ModelFlags model_flags;
  model_flags.AddTo(&app);
  cli::GroupOptions(&app, "Training");
  lazy::TracerOptions options;
  options.client.evaluator.num_threads = 1;
  interp::Limits& limits = options.client.evaluator.limits;
  limits.begin = std::chrono::steady_clock::now();
  cli::AddMaxBytes(&app, &limits);
  cli::AddNumber(&app, "--max-nodes", &options.max_pending_nodes,
                 "limit on the nodes that are recorded between two steps", 0)
      ->capture_default_str();
  cli::AddNumber(&app, "--max-seconds", &limits.max_seconds, "time limit of tracing and of running, together", 0);
  app.add_option("--args", args_path,
                 "file of tensor arguments, or with --input of the parameters; - is standard input")
      ->type_name("FILE");
  app.add_option("--expect", expect_path, "compare with this file of expected results (out:, grad:, tolerance: lines)")
      ->type_name("FILE");
  CLI::Option* const case_option =
      app.add_option("--test-case", cases, "file of a call and its expected results; may be repeated")
          ->type_name("FILE")
          ->take_all()
          ->expected(1);
  app.add_flag("--test-summary", summary, "with --test-case: one line a file, and counts by family at the end")
      ->needs(case_option);
  app.add_flag("--grad", gradients,
               "differentiate with respect to the args in requires_grad, or all floating-point args");
  app.add_option(
         "--emit", emit_list,
         "what to print, separated by commas: lazy, lazy-dot, hlo, optimized-hlo, hash, key (a digest of each "
         "ingredient of the compilation cache key), values (the default of an op), metrics, graphs (the graphs of "
         "each step and the causes of graph breaks; executed only as far as values are required, and in full "
         "with metrics); of a model also params")
      ->type_name("WHAT");
  app.add_flag("--json", output.json, "print one JSON object with a member for each of these");
  app.add_option("--compat", quirks, "torch_xla: omit op attributes from lazy IR, as PyTorch/XLA does")
      ->check(CLI::IsMember({"torch_xla"}));
  cli::AddCacheFlag(&app, &cache, "persistent compilation cache");
  app.add_option("--save-graphs", save_graphs, "append every executed graph to this file")->type_name("FILE");
  app.add_flag("--debug", debug, "record scopes and source lines on nodes and HLO");
  app.add_flag("--analysis,--pt-xla-debug", analysis,
               "as PT_XLA_DEBUG=1: the causes of compilations and executions, and recommendations after steps, on "
               "standard error");
  app.add_option("--pipeline", pipeline, "passes of compilation, as in hlo-opt --passes")
      ->type_name("PIPELINE")
      ->default_str("default; cpu with the fast engine");
  std::string engine;
  app.add_option("--engine", engine,
                 StrCat(cli::EngineHelp("what runs programs: "),
                        " (docs/engine.md). By default exact, and fast for training with --steps"))
      ->check(CLI::IsMember(interp::EngineNames()));
  cli::EngineFlags engine_flags;
  engine_flags.AddTo(&app);
  cli::AddNumber(&app, "--num-threads", &options.client.evaluator.num_threads,
                 "number of threads of each device; 0: one for each core; results do not depend on it", 0, 1024)
      ->capture_default_str();
  bool mpi = false;
  double mpi_timeout = 30;
  CLI::Option* const mpi_option = app.add_flag(
      "--mpi", mpi,
      "train a model as the processes of mpirun or srun, each on its shard of the batch; the first one prints");
  cli::AddNumber(&app, "--mpi-timeout", &mpi_timeout,
                 "seconds after which a silent process counts as dead, and data that do not come are an error", 0.1,
                 86400.0)
      ->capture_default_str()
      ->needs(mpi_option);
  app.add_flag("--list-variables", list_variables, "print the supported environment variables and exit");
  app.add_flag("--list-ops", list_ops, "print the schemas of the ops and exit");
  app.add_option(
         "-o,--output", output.path,
         "output file; - is standard output. Its suffix says the form: .json as --json, .dot as --emit=lazy-dot, "
         "and of --emit=hlo alone that of the module, as in hlo-translate; others are text")
      ->type_name("FILE")
      ->capture_default_str();
  input.AddFlags(&app);
  cli::GroupOptions(&app, "Values, compilation and output");
  profile.AddTo(&app);
  app.footer(kExamples);
  if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv, ValueKinds())) return *exit_code;
  if (list_variables) return cli::PrintText(lazy::DescribeEnvironment());
  if (list_ops) return cli::PrintText(lazy::OpList());
  if (!op.empty() + !cases.empty() + !form.path.empty() + !model_flags.request.config.name.empty() != 1) {
    return cli::UsageError("ir-dump", "expected one of --op, --model, --input and --test-case");
  }

  EmitOptions emit;
  if (absl::Status s = emit.Parse(emit_list); !s.ok()) return cli::UsageError("ir-dump", std::string(s.message()));
  if (!args_path.empty() && op.empty() && (form.path.empty() || !emit.any())) {
    return cli::UsageError("ir-dump", "--args requires --op, or --input and --emit");
  }
  if (emit.any() && (!form.form.empty() || !form.other.empty())) {
    return cli::UsageError("ir-dump", "--emit, which records the graphs again, cannot be used with --as and --diff");
  }
  if (emit.params && model_flags.request.config.name.empty())
    return cli::UsageError("ir-dump", "--emit=params requires --model");
  if (output.json && !form.path.empty() && !emit.any())
    return cli::UsageError("ir-dump", "--json cannot be used with --input; see --as=json");
  const bool more_text = explain || !expect_path.empty() || cases.size() > 1 || summary;
  if (const std::string error = ChooseBySuffix(more_text, &output, &emit, &form); !error.empty()) {
    return cli::UsageError("ir-dump", error);
  }
  if (absl::Status s = model_flags.Check(); !s.ok()) return cli::UsageError("ir-dump", std::string(s.message()));
  ModelRequest& model = model_flags.request;
  if (!model.inputs.empty() && model.config.name.empty()) {
    return cli::UsageError("ir-dump", "--inputs requires --model");
  }
  if (model.devices > 1 && model.config.name.empty()) {
    return cli::UsageError("ir-dump", "--devices requires --model and --step=train");
  }
  if (!op.empty() && !lazy::FindOp(op)) {
    return cli::UsageError("ir-dump", StrCat("unknown op `", op, "`", lazy::DidYouMeanOp(op)));
  }
  if (absl::Status s = lazy::ApplyEnvironment(environ, &options); !s.ok()) {
    return cli::UsageError("ir-dump", std::string(s.message()));
  }
  if (absl::StatusOr<Pipeline> parsed = Pipeline::Parse(pipeline.value_or("")); !parsed.ok()) {
    return cli::UsageError("ir-dump", StrCat("--pipeline: ", std::string(parsed.status().message())));
  }
  options.client.pipeline = pipeline;
  // The simulated TPU compiles programs as they were lowered, with its own pipeline.
  options.client.keep_lowered = profile.wanted() || profile.port >= 0;
  const bool trains = !model.config.name.empty() && model.step == "train" && model_flags.steps_given();
  if (engine.empty()) engine = trains ? "fast" : "exact";
  options.client.engine = interp::EngineKindOf(engine).value_or(interp::EngineKind::kExact);
  if (const std::optional<int> exit_code = engine_flags.Check("ir-dump", options.client.engine)) return *exit_code;
  if (model_flags.devices_given()) options.client.num_devices = static_cast<int>(model.devices);
  options.debug |= debug;
  options.explain_recompiles = explain;
  options.log_executions = emit.graphs;
  // The graphs, and what they take on the simulated device, are known without running them; metrics are not.
  options.client.defer_executions = (emit.graphs || profile.wanted()) && !emit.metrics && !analysis &&
                                    !options.auto_analysis && options.metrics_file.empty() && profile.port < 0;
  if (analysis) {
    options.debug_level = 100;
    options.auto_analysis = true;
  }
  if (!cache.empty()) options.persistent_cache.location = cache;
  if (!save_graphs.empty()) options.save_graphs_file = save_graphs;

  if (processes != nullptr) {
    if (!interp::RowOf(options.client.engine).runs_in_processes) {
      return cli::UsageError("ir-dump", StrCat("--mpi excludes --engine=", engine));
    }
    const int64_t devices = model.devices * processes->size();
    if (model.config.name.empty() || model.step != "train" || profile.wanted() || profile.port >= 0) {
      return cli::UsageError("ir-dump", "--mpi requires --model and --step=train, without a profile");
    }
    if (model.config.batch % devices != 0) {
      return cli::UsageError("ir-dump", StrCat("--mpi: a batch of ", model.config.batch, " is not divisible by ",
                                               devices, " devices, those of all processes"));
    }
    options.client.evaluator.world = processes;
    options.replicas = devices;
    if (processes->rank() != 0) output.path = "/dev/null";
    processes->EndSetup();
  }

  cli::DiagnosticReporter diagnostics(input);
  std::mutex programs_mutex;
  int64_t programs = 0;
  if (engine_flags.wanted()) {
    options.client.on_prepared = [&](const Module& module, const interp::Engine& prepared) {
      const std::lock_guard<std::mutex> lock(programs_mutex);
      const std::string number = StrCat(programs++);
      if (engine_flags.explain) {
        std::fprintf(stderr, "program %s, %s\n", number.c_str(), std::string(module.name()).c_str());
        cli::ExplainEngine(*prepared.code());
      }
      if (!engine_flags.dump.empty()) {
        cli::DumpEngine(StrCat(engine_flags.dump, "/", number), *prepared.code(), &diagnostics);
      }
    };
  }
  absl::StatusOr<std::unique_ptr<cli::OutputFile>> file = cli::OutputFile::Open(output.path);
  if (!file.ok()) {
    diagnostics.ShowOutputError(file.status());
    return diagnostics.exit_code();
  }
  TextWriter& out = (*file)->writer();
  Session session(&diagnostics, &out);
  session.match_torch_xla = !quirks.empty();
  session.json = output.json;
  session.module_format = output.module_format;
  session.options = options;
  session.emit = emit;
  if (!session.json) session.print = cli::PrintOptionsFor(output.path);
  if (emit_list.empty() && !op.empty() && expect_path.empty()) session.emit.values = true;
  if (profile.wanted() && profile.port >= 0) {
    return cli::UsageError("ir-dump", "--profiler-port cannot be used with --profile and --report");
  }
  if (!profile.Check(&diagnostics)) return diagnostics.exit_code();
  if (profile.replicas > 0 && model.devices > 1) {
    return cli::UsageError("ir-dump", "--replicas cannot be used with --devices: as many devices are simulated as run");
  }
  std::unique_ptr<runtime::ProfilerServer> server;
  if (profile.port >= 0) {
    if (model.config.name.empty()) {
      return cli::UsageError("ir-dump", "--profiler-port requires --model");
    }
    session.options.debug = true;
    session.options.replicas = std::max<int64_t>(profile.replicas, 1);
    server = cli::ServeProfiles(profile, &diagnostics);
    if (server == nullptr) return diagnostics.exit_code();
  }
  if (profile.wanted()) {
    if (model.config.name.empty()) {
      return cli::UsageError("ir-dump", "--profile and --report require --model");
    }
    // Scopes connect the host's spans with the programs.
    session.options.debug = true;
    session.options.replicas = std::max<int64_t>(profile.replicas, 1);
    profile.title = StrCat(model.config.name, ", batch ", model.config.batch);
    profile.names = cli::FlagNames(app);
    profile.command = "ir-dump";
    for (int a = 1; a < argc; ++a) StrAppend(&profile.command, " ", argv[a]);
    if (!cli::StartProfile(&diagnostics)) return diagnostics.exit_code();
  }

  Context context;
  const auto read = [&](const std::string& path, lazy::OpTestCase* c) {
    const std::vector<cli::InputPart> parts = diagnostics.Read(path);
    if (parts.empty()) return false;
    DiagnosticSink sink;
    const bool ok = lazy::ReadOpTestCase(*parts[0].source, &context, c, &sink);
    diagnostics.Show(sink, *parts[0].source);
    return ok;
  };

  if (!model.config.name.empty()) {
    if (!expect_path.empty()) {
      const std::vector<cli::InputPart> parts = diagnostics.Read(expect_path);
      if (parts.empty()) return diagnostics.exit_code();
      model.expected = std::string(parts[0].source->text());
      model.compare = true;
    }
    const bool shown = session.emit.metrics || session.emit.graphs || session.emit.values || model.compare ||
                       !model.save.empty() || !model.training.save_checkpoint.empty() || profile.wanted() ||
                       profile.port >= 0;
    if (model_flags.steps_given() && !shown && !session.emit.any()) session.emit.metrics = true;
    // Options that observe a run require running the model.
    session.run_steps = profile.wanted() || profile.port >= 0 || explain || engine_flags.wanted() ||
                        options.debug_level > 0 || !options.save_graphs_file.empty() || !options.metrics_file.empty();
    if (!shown && !session.emit.any() && !session.run_steps) {
      return cli::UsageError("ir-dump", "--model requires --emit, --steps, --expect, --save or --save-checkpoint");
    }
    session.RunModel(model);
  } else if (!form.path.empty()) {
    if (!form.other.empty() && !form.form.empty()) return cli::UsageError("ir-dump", "--as cannot be used with --diff");
    if (!form.other.empty()) form.form = "diff";
    if (form.form.empty()) form.form = form.graph != 0 ? "print" : "list";
    if (session.emit.any()) {
      const std::vector<cli::InputPart> parts = diagnostics.Read(form.path);
      std::vector<cli::InputPart> arguments;
      if (!parts.empty() && !args_path.empty()) arguments = diagnostics.Read(args_path);
      if (parts.empty() || (!args_path.empty() && arguments.empty())) return diagnostics.exit_code();
      session.RunGraphs(parts[0].source, form.graph, arguments.empty() ? nullptr : arguments[0].source.get());
    } else {
      ShowGraphs(form, &diagnostics, out);
    }
  } else if (!cases.empty()) {
    std::map<std::string, std::pair<int, int>> families;  // passed, total
    int passed = 0;
    session.gradients = true;
    for (const std::string& path : cases) {
      lazy::OpTestCase c;
      const bool ok = read(path, &c) && session.RunOne(path, c, /*check=*/true);
      passed += ok;
      ++families[c.family].second;
      families[c.family].first += ok;
      if (summary) out << (ok ? "PASS " : "FAIL ") << path << "\n";
    }
    if (summary) {
      for (const auto& [family, counts] : families) {
        out << family << ": " << counts.first << " of " << counts.second << "\n";
      }
      out << "all: " << passed << " of " << static_cast<int64_t>(cases.size()) << "\n";
    }
  } else {
    lazy::OpTestCase c;
    c.op = op;
    if (!args_path.empty() && !read(args_path, &c)) return diagnostics.exit_code();
    if (!expect_path.empty() && !read(expect_path, &c)) return diagnostics.exit_code();
    for (const std::string& attr : attrs) {
      const size_t eq = attr.find('=');
      if (eq == std::string::npos) return cli::UsageError("ir-dump", "--attr: expected NAME=VALUE");
      c.attrs.emplace_back(attr.substr(0, eq), attr.substr(eq + 1));
    }
    if (gradients && c.requires_grad.empty()) {
      for (size_t i = 0; i < c.args.size(); ++i) {
        if (c.args[i] && IsFloat(c.args[i]->shape().element_type())) c.requires_grad.push_back(i);
      }
    }
    session.gradients = gradients;
    session.RunOne(op, c, !expect_path.empty());
  }
  session.Finish();
  if (session.represented_devices() > 0) profile.replicas = session.represented_devices();
  if (profile.wanted() && diagnostics.exit_code() == cli::kOk) cli::FinishProfile(profile, &diagnostics);
  // After an error there is no module to write; text up to it is.
  if (output.module_format != "hlo" && diagnostics.exit_code() != cli::kOk) return diagnostics.exit_code();
  if (const absl::Status status = (*file)->Commit(); !status.ok()) {
    diagnostics.ShowOutputError(status);
  }
  return diagnostics.exit_code();
}

int Run(int argc, char** argv) {
  interp::MpiSessionOptions options;
  options.tool = "ir-dump";
  if (!cli::WantsMpi(argc, argv, &options.timeout_seconds)) return RunProcess(argc, argv, nullptr);
  absl::StatusOr<std::unique_ptr<interp::MpiSession>> started = interp::MpiSession::Start(options);
  if (!started.ok()) return cli::UsageError("ir-dump", StrCat("--mpi: ", std::string(started.status().message())));
  return (*started)->End(RunProcess(argc, argv, started->get()));
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
