// SPDX-License-Identifier: Apache-2.0
#include "tools/ir_dump/session.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/processes/world.h"
#include "ir/core/double_text.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/text/literal_text.h"
#include "ir/text/printer.h"
#include "tools/cli/module_file.h"
#include "tracer/autograd/node.h"
#include "tracer/graph/scope.h"
#include "tracer/models/inference.h"
#include "tracer/models/model_sharding.h"
#include "tracer/models/training.h"
#include "tracer/nn/parameter_registry.h"
#include "tracer/nn/state_dict.h"
#include "tracer/step/device_state.h"
#include "tracer/step/execution_log.h"
#include "tracer/step/executor.h"
#include "tracer/step/graph_key.h"
#include "tracer/text/ir_text.h"

namespace hlokit {
namespace {

using Json = nlohmann::ordered_json;

std::string ModuleToString(const Module& module, const PrintOptions& options) {
  std::string text;
  {
    TextWriter writer(&text);
    PrintModule(writer, module, options);
  }
  return text + "\n";
}

constexpr int64_t kMaxRunDevices = 1024;  // each has threads and parameters of its own

constexpr std::pair<std::string_view, bool EmitOptions::*> kEmissions[] = {
    {"lazy", &EmitOptions::lazy},     {"lazy-dot", &EmitOptions::dot},
    {"hlo", &EmitOptions::hlo},       {"optimized-hlo", &EmitOptions::optimized},
    {"hash", &EmitOptions::hash},     {"key", &EmitOptions::key},
    {"values", &EmitOptions::values}, {"metrics", &EmitOptions::metrics},
    {"graphs", &EmitOptions::graphs}, {"params", &EmitOptions::params}};

}  // namespace

std::vector<std::string_view> EmitOptions::Names() {
  std::vector<std::string_view> names;
  for (const auto& [name, member] : kEmissions) names.push_back(name);
  return names;
}

absl::Status EmitOptions::Parse(std::string_view list) {
  while (!list.empty()) {
    const std::string_view what = list.substr(0, list.find(','));
    list.remove_prefix(std::min(what.size() + 1, list.size()));
    const auto* const row = std::find_if(std::begin(kEmissions), std::end(kEmissions),
                                         [&](const auto& emission) { return emission.first == what; });
    if (row == std::end(kEmissions)) {
      return absl::InvalidArgumentError(StrCat("--emit: there is no `", what, "`", DidYouMeanSuffix(what, Names())));
    }
    this->*(row->second) = true;
  }
  return absl::OkStatus();
}

bool Session::Fail(std::string_view label, const absl::Status& status) {
  diagnostics_.ShowError(std::string(label), std::string(status.message()), cli::kRejected);
  return false;
}

absl::Status Session::Represent(bool reads_values, lazy::TracerOptions* tracing) {
  const int64_t devices = tracing->client.num_devices;
  if (devices <= kMaxRunDevices) return absl::OkStatus();
  if (reads_values || !tracing->client.defer_executions) {
    return absl::InvalidArgumentError(
        StrCat("--devices: at most ", kMaxRunDevices, " devices run in one process; for ", devices,
               " choose output that executes nothing: --report, --profile, --emit=graphs, or of a model "
               "--emit=params, lazy or hlo"));
  }
  diagnostics_.ShowWarning("--devices",
                           StrCat("one device is traced for all ", devices, ", of which at most ", kMaxRunDevices,
                                  " run in one process: values that the program reads are not those of all devices"));
  represented_devices_ = devices;
  tracing->replicas = devices;
  tracing->client.num_devices = 1;
  return absl::OkStatus();
}

void Session::Emit(const char* name, std::string text) {
  if (!json) {
    out_ << text;
    return;
  }
  Json& member = object_[name];
  member = member.is_null() ? text : member.get<std::string>() + text;
}

void Session::Finish() {
  if (!json) return;
  out_ << object_.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

bool Session::EmitModule(const char* name, const Module& module) {
  if (module_format == "hlo") {
    Emit(name, ModuleToString(module, print));
    return true;
  }
  const SourceBuffer none("ir-dump", "");
  const std::optional<std::string> text = cli::ModuleInFormat(module, module_format, none, &diagnostics_);
  if (text) out_ << *text;
  return text.has_value();
}

bool Session::EmitGraph(lazy::Tracer& tracer, const lazy::Tensors& roots, const lazy::Mesh* mesh) {
  const lazy::IrTextOptions text{match_torch_xla};
  if (emit.lazy) Emit("lazy", lazy::TensorsToString(roots, text));
  if (emit.dot) Emit("lazy-dot", lazy::TensorsDot(roots, text));
  if (!emit.hlo && !emit.optimized && !emit.hash && !emit.key) return true;
  lazy::DeviceState& device = *tracer.device();
  const lazy::PendingSubgraph slice = lazy::CollectSubgraphOfTensors(roots);
  if (emit.hlo || emit.optimized) {
    absl::StatusOr<std::unique_ptr<Module>> module = lazy::LowerSubgraph(device, slice, "IrToHlo.1");
    if (!module.ok()) return Fail("ir-dump", module.status());
    if (mesh != nullptr) lazy::models::SetPartitions(*mesh, module->get());
    const bool as_lowered = !tracer.options().dump_optimized;
    if (emit.hlo && as_lowered && !EmitModule("hlo", **module)) return false;
    if (emit.optimized || !as_lowered) {
      if (absl::Status s = tracer.client().Optimize(**module); !s.ok()) return Fail("ir-dump", s);
      if (emit.hlo && !as_lowered && !EmitModule("hlo", **module)) return false;
      if (emit.optimized && !EmitModule("optimized-hlo", **module)) return false;
    }
  }
  if (emit.hash)
    Emit("hash",
         json ? ToString(lazy::HashOf(device, slice, {})) : StrCat(ToString(lazy::HashOf(device, slice, {})), "\n"));
  if (emit.key) EmitKey(lazy::CompilationCacheKeyOf(device, slice, {}));
  return true;
}

void Session::EmitKey(const runtime::CompilationCacheKey& key) {
  Json list = Json::array();
  for (const auto& [name, digest] : runtime::KeyComponents(key)) {
    const auto setting = std::find_if(key.settings.begin(), key.settings.end(),
                                      [&name = name](const auto& s) { return s.first == name; });
    list.push_back({{"name", name}, {"digest", ToString(digest)}});
    if (setting != key.settings.end()) list.back()["value"] = setting->second;
    if (json) continue;
    out_ << ToString(digest) << " " << name;
    if (setting != key.settings.end()) out_ << "=" << setting->second;
    out_ << "\n";
  }
  if (json) object_["key"] = std::move(list);
}

absl::StatusOr<std::string> Session::ValuesText(const lazy::Tensors& roots) {
  const lazy::ScopedSyncReason reason(lazy::SyncReason::kTool);
  LiteralTextOptions options;
  options.with_shape = true;
  options.with_layout = false;
  std::string text;
  TextWriter writer(&text);
  for (const lazy::Tensor& t : roots) {
    if (!t.defined()) {
      writer << "none\n";
      continue;
    }
    absl::StatusOr<Literal> value = t.ToLiteral();
    if (!value.ok()) return value.status();
    PrintLiteral(writer, *value, options);
    writer << "\n";
  }
  writer.Flush();
  return text;
}

bool Session::EmitValues(const lazy::Tensors& roots) {
  if (!emit.values) return true;
  absl::StatusOr<std::string> text = ValuesText(roots);
  if (!text.ok()) return Fail("ir-dump", text.status());
  Emit("values", *std::move(text));
  return true;
}

void Session::EmitReports(lazy::Tracer& tracer) {
  for (const std::string& explanation : tracer.TakeExplanations()) Emit("explanations", explanation + "\n");
  if (emit.metrics) {
    tracer.PublishCounters();
    if (json) {
      object_["metrics"] = Json::parse(tracer.metrics().JsonReport());
    } else {
      out_ << tracer.metrics().Report();
    }
  }
  if (!emit.graphs) return;
  const std::vector<lazy::ExecutionRecord> executions = tracer.execution_log().executions();
  if (json) {
    object_["graphs"] = Json::parse(lazy::GraphReportJson(executions));
  } else {
    out_ << lazy::GraphReport(executions);
  }
}

bool Session::RunOne(const std::string& label, const lazy::OpTestCase& c, bool check) {
  lazy::Tracer tracer(options);
  const lazy::DeviceGuard guard(tracer.device());
  const lazy::ScopedSourceLocation none({});  // no line of a program
  absl::StatusOr<lazy::OpCall> call = lazy::CallOp(tracer, c, gradients);
  if (check && !c.error.empty()) {
    const absl::Status s = lazy::CheckError(c, call.status());
    return s.ok() || Fail(label, s);
  }
  if (!call.ok()) return Fail(label, call.status());
  lazy::Tensors roots = call->outputs;
  roots.insert(roots.end(), call->gradients.begin(), call->gradients.end());
  if (!EmitGraph(tracer, roots) || !EmitValues(roots)) return false;
  if (check) {
    if (absl::Status s = lazy::CheckOpCall(c, *call); !s.ok()) return Fail(label, s);
  }
  EmitReports(tracer);
  return true;
}

bool Session::RunModel(const ModelRequest& request) {
  absl::StatusOr<lazy::models::ModelConfig> config = lazy::models::Complete(request.config);
  if (!config.ok()) return Fail(request.config.name, config.status());
  const interp::World* const world = options.client.evaluator.world;
  config->batch /= request.devices * (world == nullptr ? 1 : world->size());
  // Records the graph in a separate session, so that metrics count executions only.
  if ((emit.params || emit.graph()) && !ShowModelStep(request, *config)) return false;
  if (!emit.metrics && !emit.graphs && !emit.values && !request.compare && !run_steps && request.save.empty() &&
      request.training.save_checkpoint.empty()) {
    return true;
  }
  return RunModelSteps(request, *config);
}

bool Session::OpenInputs(const ModelRequest& request, const lazy::models::Model& model,
                         std::shared_ptr<const lazy::models::Dataset>* inputs) {
  if (request.inputs.empty()) return true;
  absl::StatusOr<std::shared_ptr<const lazy::models::Dataset>> opened =
      lazy::models::Dataset::Open(request.inputs, model.BatchArrays(), options.client.evaluator.limits.max_bytes);
  if (opened.ok()) {
    *inputs = *std::move(opened);
    return true;
  }
  return FailInputs(opened.status());
}

bool Session::FailInputs(const absl::Status& status) {
  const bool unreadable = absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
  diagnostics_.ShowError("--inputs", std::string(status.message()), unreadable ? cli::kUsage : cli::kRejected);
  return false;
}

bool Session::ShowModelStep(const ModelRequest& request, const lazy::models::ModelConfig& config) {
  lazy::Tracer tracer(options);
  const lazy::DeviceGuard guard(tracer.device());
  lazy::nn::ParameterRegistry registry(&tracer, config.type, request.initializer);
  const std::unique_ptr<lazy::models::Model> model = lazy::models::MakeModel(config, &registry);
  if (!request.load.empty()) {
    if (absl::Status s = lazy::nn::LoadState(request.load, registry.state()); !s.ok()) return Fail(config.name, s);
  }
  if (emit.params) {
    Json list = Json::array();
    for (const lazy::nn::NamedTensor& p : registry.parameters()) {
      const std::string shape = ToString(p.tensor.shape(), false);
      list.push_back({{"name", p.name}, {"shape", shape}});
      if (!json) out_ << p.name << " " << shape << "\n";
    }
    if (json) object_["params"] = std::move(list);
  }
  if (!emit.graph()) return true;
  std::shared_ptr<const lazy::models::Dataset> inputs;
  if (!OpenInputs(request, *model, &inputs)) return false;
  lazy::Tensors roots;
  const lazy::Mesh* const mesh = request.mesh ? &*request.mesh : nullptr;
  if (mesh != nullptr) {
    if (absl::Status s = lazy::models::ShardParameters(*mesh, registry); !s.ok()) return Fail("--mesh", s);
    lazy::models::ShardActivations(*mesh, model.get());
  }
  const auto shard_batch = [&](const lazy::models::Batch& batch) {
    return mesh != nullptr ? lazy::models::ShardBatch(*mesh, batch) : absl::OkStatus();
  };
  if (request.step == "train") {
    const lazy::models::Replica replica = {tracer.device(), model.get(), &registry};
    lazy::models::TrainingOptions first_step = request.training;
    first_step.feed = {};  // the graph does not depend on the values of inputs
    absl::StatusOr<std::unique_ptr<lazy::models::TrainingStep>> step =
        lazy::models::TrainingStep::Create(&tracer, replica, first_step, request.devices);
    if (!step.ok()) return Fail(config.name, step.status());
    for (const lazy::models::Batch& batch : (*step)->batches()) {
      if (absl::Status s = shard_batch(batch); !s.ok()) return Fail("--mesh", s);
    }
    if (absl::Status s = (*step)->RecordWhole(); !s.ok()) return Fail(config.name, s);
    if (mesh != nullptr) {  // of what they are after the update
      if (absl::Status s = lazy::models::ShardParameters(*mesh, registry); !s.ok()) return Fail("--mesh", s);
    }
    roots.push_back((*step)->loss());
    for (const lazy::nn::NamedTensor& p : registry.parameters()) roots.push_back(p.tensor);
    for (const lazy::nn::NamedTensor& b : registry.buffers()) roots.push_back(b.tensor);
  } else {
    const lazy::NoGradGuard no_grad;
    if (request.step == "decode") {
      const std::unique_ptr<lazy::models::Decoder> decoder = model->MakeDecoder(tracer);
      if (decoder == nullptr)
        return Fail(config.name, absl::InvalidArgumentError("the model does not generate tokens"));
      // A prompt of one token has the graph of every further one.
      const Shape one = tracer.device()->ArrayShape(ElementType::kS64, {config.batch, 1});
      roots.push_back(decoder->Prefill(tracer.FromGenerator(one, [](Literal*) {})));
      roots.push_back(decoder->token());
    } else {
      const lazy::models::Batch batch = model->MakeBatch(tracer);
      if (absl::Status s = shard_batch(batch); !s.ok()) return Fail("--mesh", s);
      roots.push_back(model->Logits(batch, false));
    }
  }
  if (absl::Status s = tracer.status(); !s.ok()) return Fail(config.name, s);
  return EmitGraph(tracer, roots, mesh);
}

bool Session::RunModelSteps(const ModelRequest& request, const lazy::models::ModelConfig& config) {
  const bool reads_values = !options.client.defer_executions || emit.values || request.compare ||
                            !request.save.empty() || !request.training.save_checkpoint.empty();
  lazy::TracerOptions tracing = options;
  if (absl::Status s = Represent(reads_values, &tracing); !s.ok()) return Fail(config.name, s);
  const int64_t devices = represented_devices_ > 0 ? 1 : request.devices;
  lazy::Tracer tracer(tracing);
  const lazy::DeviceGuard guard(tracer.device());
  std::vector<std::unique_ptr<lazy::nn::ParameterRegistry>> registries;
  std::vector<std::unique_ptr<lazy::models::Model>> models;
  std::vector<lazy::models::Replica> replicas;
  const interp::World* const world = options.client.evaluator.world;
  const int64_t first_device = world == nullptr ? 0 : world->rank() * devices;
  for (int64_t d = 0; d < devices; ++d) {
    lazy::DeviceState* const device = tracer.device(static_cast<int>(d));
    const lazy::DeviceGuard on(device);
    registries.push_back(std::make_unique<lazy::nn::ParameterRegistry>(&tracer, config.type, request.initializer));
    models.push_back(lazy::models::MakeModel(config, registries.back().get()));
    if (!request.load.empty()) {
      const absl::Status loaded = lazy::nn::LoadState(request.load, registries.back()->state());
      if (!loaded.ok()) return Fail(config.name, loaded);
    }
    replicas.push_back({device, models.back().get(), registries.back().get(), (first_device + d) * config.batch});
  }
  const lazy::nn::ParameterRegistry& registry = *registries[0];
  const int64_t bytes = SaturatingMultiply(registry.ByteSize(), devices);
  if (const int64_t limit = options.client.evaluator.limits.max_bytes; reads_values && bytes > limit) {
    return Fail(config.name,
                absl::ResourceExhaustedError(
                    StrCat("the parameters take ", bytes, " bytes of memory to run the model; the limit is ", limit,
                           " bytes (--max-bytes): choose smaller sizes, --dtype=bf16, or --emit "
                           "that does not run it: params, lazy, hlo, hash, graphs")));
  }
  std::string captures;
  absl::StatusOr<std::vector<lazy::models::TrainingMetric>> metrics = std::vector<lazy::models::TrainingMetric>();
  if (request.training.steps > 0) {
    lazy::models::TrainingOptions training = request.training;
    if (!OpenInputs(request, *models[0], &training.feed.dataset)) return false;
    training.metrics = !options.client.defer_executions || emit.values || request.compare;
    const lazy::models::Model& model = *models[0];
    metrics = request.step == "train" ? lazy::models::Train(tracer, replicas, training, &captures)
              : request.step == "eval"
                  ? lazy::models::Evaluate(tracer, model, training.steps, training.metrics, training.feed)
              : request.step == "decode"
                  ? lazy::models::Generate(tracer, model, training.steps, training.metrics, training.feed)
                  : lazy::models::Infer(tracer, model, training.steps, training.metrics, training.feed);
  }
  if (!metrics.ok()) return Fail(config.name, metrics.status());
  if (emit.values) {
    Json list = Json::object();
    for (const lazy::models::TrainingMetric& metric : *metrics) {
      list[metric.key] = metric.value;
      if (!json) out_ << metric.key << " " << FormatDouble(metric.value, 9) << "\n";
    }
    if (json) object_["values"] = std::move(list);
  }
  EmitReports(tracer);
  if (emit.graphs && !captures.empty()) Emit("captures", captures);
  // All processes have the same parameters: the first one writes them.
  if (!request.save.empty() && (world == nullptr || world->rank() == 0)) {
    const lazy::ScopedSyncReason reason(lazy::SyncReason::kTool);
    if (absl::Status s = lazy::nn::SaveState(request.save, registry.state()); !s.ok()) return Fail(config.name, s);
  }
  if (!request.compare) return true;
  const lazy::models::Comparison c = lazy::models::CompareMetrics(*metrics, request.expected);
  Emit("comparison",
       StrCat(request.config.name, ": ", c.checked - c.failed, " of ", c.checked, " metrics within tolerance\n"));
  if (c.checked == 0) return Fail(config.name, absl::InvalidArgumentError("there are no expected metrics"));
  return c.failed == 0 || Fail(config.name, absl::InternalError(c.first_failure));
}

}  // namespace hlokit
