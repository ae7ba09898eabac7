// ir-dump: trace ops and programs, and show what the tracer makes of them.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/literal_text.h"
#include "ir/printer.h"
#include "ir/str_cat.h"
#include "passes/pipeline.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_file.h"
#include "tools/cli/profile_flags.h"
#include "tracer/autograd/function.h"
#include "tracer/device_state.h"
#include "tracer/environment.h"
#include "tracer/executor.h"
#include "tracer/models/model.h"
#include "tracer/models/training.h"
#include "tracer/nn/registry.h"
#include "tracer/nn/state_dict.h"
#include "tracer/op_case.h"
#include "tracer/program.h"
#include "tracer/text/dump_report.h"
#include "tracer/text/graph_diff.h"
#include "tracer/text/ir_reader.h"
#include "tracer/text/ir_text.h"
#include "tracer/tracer.h"

extern char** environ;

namespace hlokit {
namespace {

constexpr char kExamples[] =
    R"(A file of arguments has one value a line, the shape and the literal; `none` for a tensor that is absent:
  f32[2,2] { { 1, 2 }, { 3, 4 } }

Examples:
  ir-dump --op=aten::_softmax --attr dim=1 --attr half_to_float=false --args=x.txt --emit=lazy,hlo
                                            one op: its lazy IR and the HLO it lowers to
  ir-dump --op=aten::tanh --args=x.txt --grad
                                            its value and gradient
  ir-dump --program=step.prog --emit=metrics
                                            a script: what it prints and dumps, then the metrics
  ir-dump --model=bert-base --batch=8 --seq=128 --step=train --emit=hlo
                                            a training step of a model
  ir-dump --model=resnet18 --image=64 --classes=10 --steps=3 --emit=metrics
                                            three steps, and what was compiled
  ir-dump --model=mlp --steps=6 --device=v3:2x2 --replicas=8 --profile=log --report=report
                                            six steps of data-parallel training, profiled: the host as it is, the device
                                            simulated
  ir-dump --input=save.ir.0 --as=dedupe     which graphs of a dump are equal, and where the others differ
  ir-dump --input=save.ir.0 --diff=1,2      two of them compared
  ir-dump --case=softmax.case               run a recorded call and compare with what it should give
  ir-dump --case=a.case --case=b.case --summary
                                            the same for many, with counts by family)";

struct Emission {
  bool lazy = false, dot = false, hlo = false, optimized = false, hash = false, metrics = false, values = false;
  bool params = false;
};

struct ModelRequest {
  lazy::models::ModelConfig config;
  lazy::models::TrainingOptions training;
  std::string step = "train";
  double gain = 6;
  lazy::Formula formula = lazy::Formula::kHash;  // of parameters
  std::string expected;                          // figures to compare with; empty: none
  bool compare = false;
  std::string load, save;  // files of parameters and buffers; empty: none
};

class Session {
 public:
  Session(cli::Diagnostics* diagnostics, TextWriter* out) : diagnostics_(*diagnostics), out_(*out) {}

  bool quirks = false;
  bool debug = false;
  bool gradients = false;
  bool explain = false;
  bool train_only = false;          // a model trains though nothing is printed of it
  lazy::TracerOptions environment;  // what the environment and --cache say
  Emission emit;

  // Traces one step of a model and prints it, or trains and compares.
  bool RunModel(const ModelRequest& request);
  // Runs a program, then prints what was asked for of its variables.
  bool RunProgramFile(const SourceBuffer& source);
  // Runs one call and prints what was asked for. False after an error, which is shown.
  bool RunOne(const std::string& label, const lazy::OpCase& c, bool check);

 private:
  bool Emit(lazy::Tracer& tracer, const lazy::Tensors& roots);
  lazy::TracerOptions Options() const;

  cli::Diagnostics& diagnostics_;
  TextWriter& out_;
};

lazy::TracerOptions Session::Options() const {
  lazy::TracerOptions options = environment;
  options.debug = options.debug || debug;
  options.explain_recompiles = explain;
  options.client.evaluator.num_threads = 1;
  return options;
}

bool Session::Emit(lazy::Tracer& tracer, const lazy::Tensors& roots) {
  const lazy::IrTextOptions text{quirks};
  if (emit.lazy) out_ << lazy::TensorsText(roots, text);
  if (emit.dot) out_ << lazy::TensorsDot(roots, text);
  if (emit.hlo || emit.optimized || emit.hash) {
    lazy::DeviceState& device = *tracer.device();
    const lazy::GraphSlice slice = lazy::SliceOfTensors(roots);
    if (emit.hash) out_ << ToString(lazy::HashOf(device, slice, {})) << "\n";
    if (emit.hlo || emit.optimized) {
      absl::StatusOr<std::unique_ptr<Module>> module = lazy::LowerSlice(device, slice, "IrToHlo.1");
      if (!module.ok()) {
        diagnostics_.ShowError("ir-dump", std::string(module.status().message()), cli::kRejected);
        return false;
      }
      if (emit.hlo) {
        PrintModule(out_, **module);
        out_ << "\n";
      }
      if (emit.optimized) {
        absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(tracer.options().client.pipeline);
        const absl::Status run = pipeline.ok() ? pipeline->Run(**module).status() : pipeline.status();
        if (!run.ok()) {
          diagnostics_.ShowError("ir-dump", std::string(run.message()), cli::kRejected);
          return false;
        }
        PrintModule(out_, **module);
        out_ << "\n";
      }
    }
  }
  if (emit.values) {
    for (const lazy::Tensor& t : roots) {
      if (!t.defined()) {
        out_ << "none\n";
        continue;
      }
      absl::StatusOr<Literal> value = t.ToLiteral();
      if (!value.ok()) {
        diagnostics_.ShowError("ir-dump", std::string(value.status().message()), cli::kRejected);
        return false;
      }
      LiteralTextOptions options;
      options.with_shape = true;
      options.with_layout = false;
      PrintLiteral(out_, *value, options);
      out_ << "\n";
    }
  }
  if (emit.metrics) {
    tracer.PublishCounters();
    out_ << tracer.metrics().Report();
  }
  return true;
}

bool Session::RunOne(const std::string& label, const lazy::OpCase& c, bool check) {
  lazy::Tracer tracer(Options());
  const lazy::DeviceGuard guard(tracer.device());
  absl::StatusOr<lazy::OpCall> call = lazy::CallOp(tracer, c, gradients);
  if (!call.ok()) {
    diagnostics_.ShowError(label, std::string(call.status().message()), cli::kRejected);
    return false;
  }
  lazy::Tensors roots = call->outputs;
  roots.insert(roots.end(), call->gradients.begin(), call->gradients.end());
  if (!Emit(tracer, roots)) return false;
  if (check) {
    if (absl::Status s = lazy::CheckOpCall(c, *call); !s.ok()) {
      diagnostics_.ShowError(label, std::string(s.message()), cli::kRejected);
      return false;
    }
  }
  return true;
}

bool Session::RunModel(const ModelRequest& request) {
  lazy::Tracer tracer(Options());
  const lazy::DeviceGuard guard(tracer.device());
  const auto fail = [&](const absl::Status& status) {
    diagnostics_.ShowError(request.config.name, std::string(status.message()), cli::kRejected);
    return false;
  };
  absl::StatusOr<lazy::models::ModelConfig> config = lazy::models::Complete(request.config);
  if (!config.ok()) return fail(config.status());
  lazy::nn::Registry registry(&tracer, config->type, lazy::nn::FormulaInitializer(request.formula, request.gain));
  const std::unique_ptr<lazy::models::Model> model = lazy::models::MakeModel(*config, &registry);
  if (!request.load.empty()) {
    if (absl::Status s = lazy::nn::LoadState(request.load, registry.state()); !s.ok()) return fail(s);
  }
  if (emit.params) {
    for (const lazy::nn::NamedTensor& p : registry.parameters()) {
      out_ << p.name << " " << ToString(p.tensor.shape(), false) << "\n";
    }
  }
  if (emit.lazy || emit.dot || emit.hlo || emit.optimized || emit.hash) {
    const bool train = request.step == "train";
    const lazy::models::Batch batch = model->MakeBatch(tracer);
    lazy::Tensors roots;
    if (train) {
      const lazy::Tensor loss = model->Loss(model->Logits(batch, true), batch);
      if (absl::Status s = tracer.status(); !s.ok()) return fail(s);
      if (absl::Status s = loss.Backward(); !s.ok()) return fail(s);
      roots.push_back(loss);
      const std::unique_ptr<lazy::nn::Optimizer> optimizer = lazy::models::MakeOptimizer(request.training, registry);
      optimizer->Step();
      for (const lazy::nn::NamedTensor& p : registry.parameters()) roots.push_back(p.tensor);
      for (const lazy::nn::NamedTensor& b : registry.buffers()) roots.push_back(b.tensor);
    } else {
      const lazy::NoGradGuard no_grad;
      roots.push_back(model->Logits(batch, false));
    }
    if (absl::Status s = tracer.status(); !s.ok()) return fail(s);
    return Emit(tracer, roots);
  }
  if (emit.metrics || emit.values || request.compare || train_only ||
      (!request.save.empty() && request.training.steps > 0)) {
    absl::StatusOr<std::vector<lazy::models::Figure>> figures =
        request.step == "train" ? lazy::models::Train(tracer, *model, registry, request.training)
                                : lazy::models::Infer(tracer, *model, request.training.steps);
    if (!figures.ok()) return fail(figures.status());
    if (emit.values) {
      for (const lazy::models::Figure& figure : *figures) {
        char number[40];
        std::snprintf(number, sizeof(number), "%.9g", figure.value);
        out_ << figure.key << " " << number << "\n";
      }
    }
    for (const std::string& explanation : tracer.TakeExplanations()) out_ << explanation << "\n";
    if (emit.metrics) {
      tracer.PublishCounters();
      out_ << tracer.metrics().Report();
    }
    if (request.compare) {
      const lazy::models::Comparison c = lazy::models::CompareFigures(*figures, request.expected);
      out_ << request.config.name << ": " << c.checked - c.failed << " of " << c.checked
           << " figures within tolerance\n";
      if (c.failed > 0) return fail(absl::InternalError(c.first_failure));
    }
  }
  if (!request.save.empty()) {
    if (absl::Status s = lazy::nn::SaveState(request.save, registry.state()); !s.ok()) return fail(s);
  }
  return true;
}

bool Session::RunProgramFile(const SourceBuffer& source) {
  lazy::Tracer tracer(Options());
  const lazy::DeviceGuard guard(tracer.device());
  lazy::ProgramOptions options;
  options.text.torch_xla_quirks = quirks;
  lazy::ProgramResult result;
  DiagnosticSink sink;
  const bool ok = lazy::RunProgram(source, tracer, options, out_, &result, &sink);
  for (const std::string& explanation : tracer.TakeExplanations()) out_ << explanation << "\n";
  diagnostics_.Show(sink, source);
  if (!ok) return false;
  lazy::Tensors roots;
  for (const auto& variable : result.variables) {
    if (variable.second.defined()) roots.push_back(variable.second);
  }
  return Emit(tracer, roots);
}

struct InputForm {
  std::string path;
  std::string form;   // list, json, dedupe, print, normalize, dot, diff
  size_t graph = 0;   // from 1; 0: all
  std::string other;  // of diff: two numbers, "1,2"
};

// Reads a file of lazy graphs and prints it in the form asked for.
void ShowGraphs(const InputForm& form, cli::Diagnostics* diagnostics, TextWriter& out) {
  const std::vector<cli::InputPart> parts = diagnostics->Read(form.path);
  if (parts.empty()) return;
  lazy::TextDump dump;
  DiagnosticSink sink;
  const bool ok = lazy::ReadGraphs(parts[0].source, &dump, &sink);
  diagnostics->Show(sink, *parts[0].source);
  if (!ok) return;
  if (form.form == "list") out << lazy::ListGraphs(dump);
  if (form.form == "json") out << lazy::ListGraphsJson(dump);
  if (form.form == "dedupe") out << lazy::DeduplicationReport(dump);
  if (form.form == "print" && form.graph == 0) out << lazy::PrintDump(dump);
  if (form.form == "diff") {
    size_t a = 0, b = 0;
    if (std::sscanf(form.other.c_str(), "%zu,%zu", &a, &b) != 2 || a < 1 || b < 1 || a > dump.graphs.size() ||
        b > dump.graphs.size()) {
      diagnostics->ShowError("--diff", StrCat("takes the numbers of two of the ", dump.graphs.size(), " graphs, A,B"),
                             cli::kUsage);
      return;
    }
    const lazy::GraphDiff diff = lazy::DiffGraphs(dump.graphs[a - 1], dump.graphs[b - 1]);
    if (diff.equal) return;
    out << diff.first << "\n" << diff.text;
    diagnostics->Fail(cli::kRejected);
    return;
  }
  if (form.graph > dump.graphs.size()) {
    diagnostics->ShowError("--graph", StrCat("there are ", dump.graphs.size(), " graphs"), cli::kUsage);
    return;
  }
  for (size_t i = 0; i < dump.graphs.size(); ++i) {
    if (form.graph != 0 && i + 1 != form.graph) continue;
    if (form.form == "print" && form.graph != 0) out << lazy::PrintGraph(dump.graphs[i]);
    if (form.form == "normalize") out << lazy::NormalizedText(dump.graphs[i]);
    if (form.form == "dot") out << lazy::PrintGraphDot(dump.graphs[i]);
  }
}

int Run(int argc, char** argv) {
  CLI::App app("Traces ops and programs as PyTorch/XLA does and dumps their IR at any stage.", "ir-dump");
  std::string op, program, args_path, expect_path, output = "-";
  std::string emit_list;
  std::vector<std::string> attrs, cases;
  std::string quirks;
  InputForm form;
  ModelRequest model;
  std::string dtype = "f32", init = "hash", cache, save_graphs;
  bool gradients = false, summary = false, debug = false, explain = false;
  cli::InputOptions input;
  app.add_option("--op", op, "an op, e.g. aten::softmax.int; without overload the first that there is");
  app.add_option("--attr", attrs, "an argument that is no tensor, NAME=VALUE; may be repeated")
      ->take_all()
      ->expected(1);
  app.add_option("--program", program, "a script of ops, one statement a line (docs/tracer.md); - is standard input");
  app.add_option("--input", form.path,
                 "a file of lazy graphs: dumps of PyTorch/XLA, of torch's lazy backend, of this tool");
  app.add_option("--as", form.form,
                 "with --input: list, json, dedupe (which are equal, and what differs first), print, normalize, dot")
      ->check(CLI::IsMember({"list", "json", "dedupe", "print", "normalize", "dot"}));
  app.add_option("--graph", form.graph, "with --input: one graph, by its number from 1");
  app.add_option("--diff", form.other, "with --input: compare two of its graphs, A,B; exit code 1 if they differ");
  app.add_flag("--explain-recompiles", explain,
               "with --program: why each graph was compiled, after the program's output");
  app.add_option(
      "--model", model.config.name,
      "a model: mlp, lenet, alexnet, vgg16, squeezenet1_1, resnet18, resnet50, resnext50_32x4d, mobilenet_v2, "
      "mnasnet1_0, vit, bert, bert-base, bert-large, gpt2, llama");
  app.add_option("--batch", model.config.batch, "examples in a batch")->capture_default_str();
  app.add_option("--seq", model.config.seq, "tokens in a sequence");
  app.add_option("--image", model.config.image, "height and width of an image");
  app.add_option("--classes", model.config.classes, "classes of an image model");
  app.add_option("--vocab", model.config.vocab, "size of the vocabulary");
  app.add_option("--hidden", model.config.hidden, "width of the model");
  app.add_option("--layers", model.config.layers, "number of blocks of a transformer");
  app.add_option("--heads", model.config.heads, "attention heads");
  app.add_option("--kv-heads", model.config.kv_heads, "key and value heads of llama");
  app.add_option("--ff", model.config.ff, "width inside of a feed-forward layer");
  app.add_option("--patch", model.config.patch, "patch size of vit");
  app.add_option("--dtype", dtype, "of parameters and inputs: f32, bf16 or f64")
      ->check(CLI::IsMember({"f32", "bf16", "f64"}));
  app.add_option("--step", model.step, "what --emit=lazy,hlo,... of a model shows: train (with the update) or infer")
      ->check(CLI::IsMember({"train", "infer"}));
  app.add_option("--steps", model.training.steps, "steps to run, for metrics, values, --expect and --save");
  app.add_option("--optimizer", model.training.optimizer, "sgd, adam or adamw")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}));
  app.add_option("--lr", model.training.lr, "learning rate")->capture_default_str();
  app.add_option("--momentum", model.training.momentum, "of sgd")->capture_default_str();
  app.add_option("--weight-decay", model.training.weight_decay, "of the optimizer")->capture_default_str();
  app.add_option("--eps", model.training.eps, "of adam")->capture_default_str();
  app.add_flag("--nesterov", model.training.nesterov, "of sgd");
  app.add_option("--lr-schedule", model.training.lr_schedule,
                 "step:SIZE[,GAMMA], multistep:M1;M2[,GAMMA], exponential:GAMMA, cosine:T_MAX[,ETA_MIN], "
                 "linear[:START[,END[,TOTAL]]] or onecycle:MAX_LR,TOTAL[,PCT_START]");
  app.add_option("--clip-norm", model.training.clip_norm, "the most that the norm of all gradients may be");
  app.add_option("--clip-value", model.training.clip_value, "the most that an element of a gradient may be");
  app.add_option("--load", model.load, "safetensors file of parameters and buffers to start from");
  app.add_option("--save", model.save,
                 "safetensors file to write parameters and buffers to, after --steps steps; 0: as they start");
  app.add_option("--init", init, "the formula of initial numbers: hash or sine")
      ->check(CLI::IsMember({"hash", "sine"}));
  app.add_option("--gain", model.gain, "parameters of rank 2 and more start in +-sqrt(gain / fan-in)")
      ->capture_default_str();
  app.add_option("--args", args_path, "file of tensor arguments; - is standard input");
  app.add_option("--expect", expect_path, "file of expected results (out:, grad:, tolerance: lines); compare");
  app.add_option("--case", cases, "file of a call and what it should give; may be repeated")->take_all()->expected(1);
  app.add_flag("--summary", summary, "with --case: one line a file, and counts by family at the end");
  app.add_flag("--grad", gradients, "differentiate: by the args that requires_grad names, or all that are floats");
  app.add_option(
      "--emit", emit_list,
      "what to print, separated by commas: lazy, lazy-dot, hlo, optimized-hlo, hash, values (the default of an op), "
      "metrics; of a model also params");
  app.add_option("--quirks", quirks, "torch_xla: leave op attributes out of lazy IR, as PyTorch/XLA does")
      ->check(CLI::IsMember({"torch_xla"}));
  app.add_option("--cache", cache, "folder of compiled programs that outlives the run");
  app.add_option("--save-graphs", save_graphs, "file to which every graph that runs is appended");
  app.add_flag("--debug", debug, "scopes and source lines on nodes and HLO");
  cli::ProfileFlags profile;
  profile.AddTo(&app);
  app.add_option("-o,--output", output, "where the result goes; - is standard output")->capture_default_str();
  input.AddFlags(&app);
  app.footer(kExamples);
  if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;
  if (!op.empty() + !program.empty() + !cases.empty() + !form.path.empty() + !model.config.name.empty() != 1) {
    return cli::UsageError("ir-dump", "give one of --op, --program, --model, --input and --case");
  }

  cli::Diagnostics diagnostics(input);
  absl::StatusOr<std::unique_ptr<cli::OutputFile>> file = cli::OutputFile::Open(output);
  if (!file.ok()) {
    diagnostics.ShowError(output, std::string(file.status().message()), cli::kUsage);
    return diagnostics.exit_code();
  }
  TextWriter& out = (*file)->writer();
  Session session(&diagnostics, &out);
  session.quirks = !quirks.empty();
  session.debug = debug;
  session.explain = explain;
  if (absl::Status s = lazy::ApplyEnvironment(environ, &session.environment); !s.ok()) {
    return cli::UsageError("ir-dump", std::string(s.message()));
  }
  if (!cache.empty()) session.environment.persistent_cache.folder = cache;
  if (!save_graphs.empty()) session.environment.save_graphs_file = save_graphs;
  for (size_t begin = 0; begin < emit_list.size();) {
    const size_t end = std::min(emit_list.find(',', begin), emit_list.size());
    const std::string what = emit_list.substr(begin, end - begin);
    begin = end + 1;
    Emission& e = session.emit;
    bool* const flag = what == "lazy"            ? &e.lazy
                       : what == "lazy-dot"      ? &e.dot
                       : what == "hlo"           ? &e.hlo
                       : what == "hash"          ? &e.hash
                       : what == "values"        ? &e.values
                       : what == "metrics"       ? &e.metrics
                       : what == "params"        ? &e.params
                       : what == "optimized-hlo" ? &e.optimized
                                                 : nullptr;
    if (flag == nullptr) return cli::UsageError("ir-dump", StrCat("--emit: there is no `", what, "`"));
    *flag = true;
  }
  if (emit_list.empty() && !op.empty() && expect_path.empty()) session.emit.values = true;
  if (profile.wanted() && profile.port >= 0) {
    return cli::UsageError("ir-dump", "one profile at a time: give --profiler-port, or --profile and --report");
  }
  std::unique_ptr<runtime::ProfilerServer> server;
  if (profile.port >= 0) {
    if (model.config.name.empty() && program.empty()) {
      return cli::UsageError("ir-dump", "--profiler-port is of a run: give --model or --program");
    }
    session.debug = true;
    session.train_only = emit_list.empty();
    model.training.data_parallel = profile.replicas > 1;
    server = cli::ServeProfiles(profile, &diagnostics);
    if (server == nullptr) return diagnostics.exit_code();
  }
  if (profile.wanted()) {
    if (model.config.name.empty() && program.empty()) {
      return cli::UsageError("ir-dump", "--profile and --report are of a run: give --model or --program");
    }
    // Scopes on the host and in the programs are what ties the two together.
    session.debug = true;
    session.train_only = emit_list.empty();
    model.training.data_parallel = profile.replicas > 1;
    profile.command = "ir-dump";
    for (int a = 1; a < argc; ++a) StrAppend(&profile.command, " ", argv[a]);
    if (!cli::StartProfile(&diagnostics)) return diagnostics.exit_code();
  }

  Context context;
  const auto read = [&](const std::string& path, lazy::OpCase* c) {
    const std::vector<cli::InputPart> parts = diagnostics.Read(path);
    if (parts.empty()) return false;
    DiagnosticSink sink;
    const bool ok = lazy::ReadOpCase(*parts[0].source, &context, c, &sink);
    diagnostics.Show(sink, *parts[0].source);
    return ok;
  };

  if (!model.config.name.empty()) {
    if (init == "sine") model.formula = lazy::Formula::kSine;
    if (dtype == "bf16") model.config.type = ElementType::kBF16;
    if (dtype == "f64") model.config.type = ElementType::kF64;
    if (!expect_path.empty()) {
      const std::vector<cli::InputPart> parts = diagnostics.Read(expect_path);
      if (parts.empty()) return diagnostics.exit_code();
      model.expected = std::string(parts[0].source->text());
      model.compare = true;
    }
    session.RunModel(model);
  } else if (!form.path.empty()) {
    if (!form.other.empty()) form.form = "diff";
    if (form.form.empty()) form.form = "list";
    ShowGraphs(form, &diagnostics, out);
  } else if (!program.empty()) {
    const std::vector<cli::InputPart> parts = diagnostics.Read(program);
    if (parts.empty()) return diagnostics.exit_code();
    session.RunProgramFile(*parts[0].source);
  } else if (!cases.empty()) {
    std::map<std::string, std::pair<int, int>> families;  // passed, all
    int passed = 0;
    session.gradients = true;
    for (const std::string& path : cases) {
      lazy::OpCase c;
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
    lazy::OpCase c;
    c.op = op;
    if (!args_path.empty() && !read(args_path, &c)) return diagnostics.exit_code();
    if (!expect_path.empty() && !read(expect_path, &c)) return diagnostics.exit_code();
    for (const std::string& attr : attrs) {
      const size_t eq = attr.find('=');
      if (eq == std::string::npos) return cli::UsageError("ir-dump", "--attr takes NAME=VALUE");
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
  if (profile.wanted() && diagnostics.exit_code() == cli::kOk) cli::FinishProfile(profile, &diagnostics);
  if (const absl::Status status = (*file)->Commit(); !status.ok()) {
    diagnostics.ShowError(output, std::string(status.message()), cli::kUsage);
  }
  return diagnostics.exit_code();
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
