// SPDX-License-Identifier: Apache-2.0
#include "tools/ir_dump/model_flags.h"

#include <charconv>
#include <utility>

#include "ir/core/str_cat.h"
#include "tools/cli/help_format.h"
#include "tools/cli/number_flag.h"
#include "tracer/models/initialization.h"
#include "tracer/models/model_sharding.h"
#include "tracer/nn/lr_schedule.h"

namespace hlokit {

void ModelFlags::AddTo(CLI::App* app) {
  app_ = app;
  app->add_option(
         "--model", request.config.name,
         "a model: mlp, lenet, alexnet, vgg16, squeezenet1_1, resnet18, resnet50, resnext50_32x4d, mobilenet_v2, "
         "mnasnet1_0, vit, bert, bert-base, bert-large, gpt2, llama, mixtral, t5, lstm, dlrm, unet")
      ->type_name("MODEL");
  cli::AddNumber(app, "--batch", &request.config.batch,
                 "examples in a batch, those of all devices together: divisible by --devices", 1)
      ->capture_default_str();
  cli::AddNumber(app, "--seq", &request.config.seq, "tokens in a sequence", 1);
  cli::AddNumber(app, "--image", &request.config.image, "height and width of an image", 1);
  cli::AddNumber(app, "--classes", &request.config.classes, "classes of an image model", 1);
  cli::AddNumber(app, "--vocab", &request.config.vocab, "size of the vocabulary", 1);
  cli::AddNumber(app, "--hidden", &request.config.hidden, "width of the model", 1);
  cli::AddNumber(app, "--layers", &request.config.layers, "number of blocks of a transformer", 1);
  cli::AddNumber(app, "--heads", &request.config.heads, "attention heads", 1);
  cli::AddNumber(app, "--kv-heads", &request.config.kv_heads, "key and value heads of llama", 1);
  cli::AddNumber(app, "--ff", &request.config.ffn_hidden, "width inside of a feed-forward layer", 1);
  cli::AddNumber(app, "--patch", &request.config.patch, "patch size of vit", 1);
  cli::AddNumber(app, "--experts", &request.config.experts, "experts of mixtral, of which each token has two", 1);
  app->add_option("--dtype", dtype_, "element type of parameters and inputs: f32, bf16 or f64")
      ->check(CLI::IsMember({"f32", "bf16", "f64"}));
  app->add_option("--attention", attention_,
                  "attention of llama and mixtral: plain (matmuls and a softmax), or splash, a kernel that can be "
                  "simulated but not executed")
      ->check(CLI::IsMember({"plain", "splash"}));
  app->add_option("--step", request.step,
                  "step of a model: train (forward, backward, update), infer, eval (loss and accuracy or perplexity of "
                  "--steps batches), or decode (llama, mixtral: --steps tokens after half a sequence)")
      ->check(CLI::IsMember({"train", "infer", "eval", "decode"}));
  app->add_option("--dropout", dropout_,
                  "dropout in training: a rate, or published for the model's own; without it, as in recorded metrics, "
                  "none")
      ->type_name("RATE");
  app->add_option("--autocast", autocast_, "compute the forward pass as under torch.autocast: bf16 or f16")
      ->check(CLI::IsMember({"bf16", "f16"}));
  app->add_option(
         "--capture", capture_,
         "capture training steps and replay them: full (one graph), fwd-bwd (forward, backward and update), or "
         "breaks:N (N graph breaks between stages of the model: N + 1 graphs forward, as many backward, and the "
         "update); --emit=graphs prints what was captured")
      ->type_name("CAPTURE");
  cli::GroupOptions(app, "Models");
  cli::AddNumber(app, "--label-smoothing", &request.training.label_smoothing,
                 "share of each label that is spread over all classes");
  cli::AddNumber(app, "--accumulate", &request.training.accumulate,
                 "batches whose gradients are averaged for an update", 1, 1 << 20);
  cli::AddNumber(app, "--warmup", &request.training.warmup, "updates in which the learning rate rises from 0", 0);
  devices_ = cli::AddNumber(
                 app, "--devices,--num-devices", &request.devices,
                 "number of devices in this process: they train a model, each on a shard of the batch with "
                 "gradients summed over them; at most 1024 run; of more, up to the largest slice of any TPU, graphs "
                 "are emitted, and reports, which execute nothing, trace one for all",
                 1, 18432)
                 ->capture_default_str();
  app->add_option("--mesh", mesh_,
                  "annotate the step that --emit=hlo prints with the usual shardings over a mesh of devices, AXIS:SIZE "
                  "separated by commas: data (the batch), fsdp (the batch, and parameters), model (layers of "
                  "transformers, embeddings), sequence (tokens); the first axis changes slowest")
      ->type_name("MESH");
  steps_ = cli::AddNumber(
      app, "--steps", &request.training.steps,
      "number of steps of a model to run, for metrics (printed unless --emit or other output is requested), "
      "graphs, values, --expect and --save",
      0);
  app->add_option("--optimizer", request.training.optimizer,
                  "optimizer: sgd, adam, adamw, rmsprop, adagrad, adafactor or lamb")
      ->check(CLI::IsMember(lazy::models::OptimizerNames()));
  cli::AddNumber(app, "--lr", &request.training.lr, "learning rate")->capture_default_str();
  momentum_ = cli::AddNumber(app, "--momentum", &request.training.momentum, "momentum of sgd")->capture_default_str();
  cli::AddNumber(app, "--weight-decay", &request.training.weight_decay, "weight decay of the optimizer")
      ->capture_default_str();
  cli::AddNumber(app, "--eps", &request.training.eps, "epsilon of the optimizer, its own by default");
  app->add_flag("--nesterov", request.training.nesterov, "Nesterov momentum of sgd");
  app->add_option("--lr-schedule", request.training.lr_schedule,
                  "step:SIZE[,GAMMA], multistep:M1;M2[,GAMMA], exponential:GAMMA, cosine:T_MAX[,ETA_MIN], "
                  "linear[:START[,END[,TOTAL]]] or onecycle:MAX_LR,TOTAL[,PCT_START]")
      ->type_name("SCHEDULE");
  cli::AddNumber(app, "--clip-norm", &request.training.clip_norm, "limit on the norm of all gradients");
  cli::AddNumber(app, "--clip-value", &request.training.clip_value, "limit on the elements of gradients");
  app->add_option("--loader", loader_,
                  "each step takes the next batch from a loader: workers:N (threads that make batches), prefetch:N "
                  "(batches made ahead; 0: none, the program makes them), cost:TIME (of a batch), separated by commas")
      ->type_name("LOADER");
  app->add_option("--inputs", request.inputs,
                  "files of examples, in the first dimension of arrays: .npy files of the inputs and the labels in the "
                  "model's order, or .npz and .safetensors files with arrays of their names, separated by commas; each "
                  "step takes the next batch")
      ->type_name("FILES")
      ->delimiter(',');
  app->add_option("--load", request.load, "safetensors file of parameters and buffers to start from")
      ->type_name("FILE");
  app->add_option("--save", request.save,
                  "safetensors file to write parameters and buffers to, after --steps steps; 0: the initial ones")
      ->type_name("FILE");
  app->add_option("--load-checkpoint", request.training.load_checkpoint,
                  "checkpoint to continue a training from: its steps are the same bits as without the interruption")
      ->type_name("FILE");
  app->add_option("--save-checkpoint", request.training.save_checkpoint,
                  "safetensors file to write after --steps steps: parameters, buffers, the optimizer's state, steps of "
                  "the schedule, seeds")
      ->type_name("FILE");
  app->add_option(
         "--init", init_,
         "initial values: hash or sine, pseudo-random and the same on every machine; published: drawn from the model's "
         "own distributions, by --init-seed")
      ->check(CLI::IsMember({"hash", "sine", "published"}));
  cli::AddNumber(app, "--init-seed", &seed_, "seed of --init=published", 0);
  cli::AddNumber(app, "--gain", &gain_, "initialize parameters of rank 2 and more in +-sqrt(gain / fan-in)")
      ->capture_default_str();
}

absl::Status ModelFlags::CheckUse() const {
  const char* const of_training[] = {"--optimizer", "--lr",          "--momentum",  "--weight-decay",    "--eps",
                                     "--nesterov",  "--lr-schedule", "--clip-norm", "--clip-value",      "--dropout",
                                     "--autocast",  "--accumulate",  "--warmup",    "--label-smoothing", "--capture"};
  for (const char* flag : of_training) {
    if (request.step != "train" && given(flag)) {
      return absl::InvalidArgumentError(StrCat(flag, " cannot be used with --step=", request.step));
    }
  }
  if (given("--eps") && (request.training.optimizer == "sgd" || request.training.optimizer == "adafactor")) {
    return absl::InvalidArgumentError(StrCat("--optimizer=", request.training.optimizer, " has no --eps"));
  }
  if (given("--label-smoothing") && request.config.classes == 0 && request.config.vocab == 0) {
    return absl::InvalidArgumentError(
        StrCat("--label-smoothing cannot be used with model `", request.config.name, "`, which predicts no classes"));
  }
  if (given("--init-seed") && init_ != "published") {
    return absl::InvalidArgumentError("--init-seed requires --init=published");
  }
  if (given("--gain") && init_ == "published") {
    return absl::InvalidArgumentError("--gain cannot be used with --init=published");
  }
  return absl::OkStatus();
}

absl::Status ModelFlags::CheckTraining() const {
  const lazy::models::TrainingOptions& o = request.training;
  const std::pair<const char*, double> numbers[] = {{"lr", o.lr},
                                                    {"momentum", o.momentum},
                                                    {"weight-decay", o.weight_decay},
                                                    {"eps", o.eps},
                                                    {"clip-norm", o.clip_norm},
                                                    {"clip-value", o.clip_value},
                                                    {"label-smoothing", o.label_smoothing}};
  for (const auto& [name, value] : numbers) {
    if (!(value >= 0)) return absl::InvalidArgumentError(StrCat("--", name, " cannot be negative"));
  }
  if (o.label_smoothing > 1) return absl::InvalidArgumentError("--label-smoothing cannot be greater than 1");
  if (o.optimizer != "sgd" && (o.nesterov || momentum_->count() > 0)) {
    return absl::InvalidArgumentError("--momentum and --nesterov require --optimizer=sgd");
  }
  if (o.nesterov && o.momentum == 0) return absl::InvalidArgumentError("--nesterov requires a momentum");
  if (!o.lr_schedule.empty()) {
    if (absl::Status s = lazy::nn::ParseLrSchedule(o.lr_schedule, o.lr).status(); !s.ok()) {
      return absl::InvalidArgumentError(StrCat("--lr-schedule: ", std::string(s.message())));
    }
  }
  return absl::OkStatus();
}

absl::Status ModelFlags::Check() {
  if (request.training.steps < (request.save.empty() ? 1 : 0)) {
    return absl::InvalidArgumentError("--steps: expected a number of at least 1, or 0 with --save");
  }
  const bool checkpoints = !request.training.load_checkpoint.empty() || !request.training.save_checkpoint.empty();
  if (checkpoints && (request.config.name.empty() || request.step != "train")) {
    return absl::InvalidArgumentError("checkpoints require --model and --step=train");
  }
  if (!request.training.load_checkpoint.empty() && !request.load.empty()) {
    return absl::InvalidArgumentError("--load cannot be used with --load-checkpoint, which has all values");
  }
  if (request.config.name.empty()) return absl::OkStatus();
  if (dtype_ == "bf16") request.config.type = ElementType::kBF16;
  if (dtype_ == "f64") request.config.type = ElementType::kF64;
  if (!autocast_.empty()) {
    if (dtype_ != "f32") return absl::InvalidArgumentError("--autocast requires parameters of f32");
    request.training.autocast = autocast_ == "bf16" ? ElementType::kBF16 : ElementType::kF16;
  }
  if (dropout_ == "published") {
    request.config.dropout = lazy::models::kPublishedDropout;
  } else if (!dropout_.empty()) {
    double& rate = request.config.dropout;
    const auto [end, error] = std::from_chars(dropout_.data(), dropout_.data() + dropout_.size(), rate);
    if (error != std::errc() || end != dropout_.data() + dropout_.size() || !(rate >= 0 && rate < 1)) {
      return absl::InvalidArgumentError(
          StrCat("--dropout: expected `published` or a rate of at least 0 and less than 1, found `", dropout_, "`"));
    }
  }
  if (given("--loader")) {
    if (request.step == "decode") return absl::InvalidArgumentError("--loader cannot be used with --step=decode");
    absl::StatusOr<lazy::models::LoaderOptions> loader = lazy::models::ParseLoaderOptions(loader_);
    if (!loader.ok()) return absl::InvalidArgumentError(StrCat("--loader: ", std::string(loader.status().message())));
    request.training.feed.loader = *loader;
  }
  if (given("--capture")) {
    if (request.step != "train" || request.devices > 1) {
      return absl::InvalidArgumentError("--capture requires --step=train on one device");
    }
    constexpr std::string_view kBreaks = "breaks:";
    const bool breaks = capture_.starts_with(kBreaks);
    if (breaks) {
      const char* const end = capture_.data() + capture_.size();
      const auto [at, error] = std::from_chars(capture_.data() + kBreaks.size(), end, request.training.graph_breaks);
      if (error != std::errc() || at != end || request.training.graph_breaks < 1) {
        return absl::InvalidArgumentError(StrCat("--capture: `", capture_, "`: expected a number of at least 1"));
      }
    } else if (capture_ != "full" && capture_ != "fwd-bwd") {
      return absl::InvalidArgumentError(
          StrCat("--capture: expected full, fwd-bwd or breaks:N, found `", capture_, "`"));
    }
    if (capture_ != "full" && request.training.accumulate > 1) {
      return absl::InvalidArgumentError(StrCat("--capture=", capture_, " cannot be used with --accumulate"));
    }
    request.training.capture =
        capture_ == "full" ? lazy::models::Capture::kFull : lazy::models::Capture::kForwardBackward;
  }
  absl::StatusOr<lazy::models::ModelConfig> config = lazy::models::Complete(request.config);
  if (!config.ok()) return config.status();
  request.config = *std::move(config);
  if (absl::Status s = CheckTraining(); !s.ok()) return s;
  if (absl::Status s = CheckUse(); !s.ok()) return s;
  request.initializer =
      init_ == "published"
          ? lazy::models::PublishedInitializer(request.config, static_cast<uint64_t>(seed_))
          : lazy::nn::PatternInitializer(init_ == "sine" ? lazy::InitPattern::kSine : lazy::InitPattern::kHash, gain_);
  if (attention_ == "splash") {
    if (request.config.name != "llama" && request.config.name != "mixtral") {
      return absl::InvalidArgumentError("--attention=splash requires --model=llama or mixtral");
    }
    if (request.step == "decode") {
      return absl::InvalidArgumentError("--attention=splash cannot be used with --step=decode");
    }
    request.config.fused_attention = true;
  }
  if (!mesh_.empty()) {
    absl::StatusOr<lazy::Mesh> mesh = lazy::models::ParseMesh(mesh_);
    if (!mesh.ok()) return absl::InvalidArgumentError(StrCat("--mesh: ", std::string(mesh.status().message())));
    if (request.devices > 1) return absl::InvalidArgumentError("--mesh cannot be used with --devices");
    for (const char* flag : {"--steps", "--report", "--profile", "--device"}) {
      const CLI::Option* const option = app_->get_option_no_throw(flag);
      if (option == nullptr || option->count() == 0) continue;
      return absl::InvalidArgumentError(
          StrCat("--mesh annotates the step that --emit=hlo prints, and cannot be used with ", flag,
                 ": print the step, and simulate it with hlo-run STEP --device=..."));
    }
    request.mesh = *std::move(mesh);
  }
  if (request.devices <= 1) return absl::OkStatus();
  if (request.step != "train") return absl::InvalidArgumentError("--devices requires --model and --step=train");
  if (request.config.batch % request.devices != 0) {
    const int64_t below = request.config.batch / request.devices * request.devices;
    return absl::InvalidArgumentError(
        StrCat("--devices: a batch of ", request.config.batch, " is not divisible by ", request.devices,
               " devices; --batch is that of all devices together: ",
               below > 0 ? StrCat(below, " and ", below + request.devices, " are") : StrCat(request.devices, " is")));
  }
  return absl::OkStatus();
}

}  // namespace hlokit
