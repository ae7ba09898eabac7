// SPDX-License-Identifier: Apache-2.0
// torch.optim, torch.optim.lr_scheduler and gradient clipping for scripts.
#include <algorithm>
#include <memory>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/nn/adaptive_optimizers.h"
#include "tracer/nn/data_parallel.h"
#include "tracer/nn/lr_schedule.h"
#include "tracer/script/native_functions.h"
#include "tracer/script/script_objects.h"

namespace hlokit::lazy::script {
namespace {

// Returns the parameters of modules, and tensors: of one, or of a list of them.
absl::StatusOr<Tensors> ParametersIn(const Value& value) {
  Tensors parameters;
  std::vector<const Value*> open = {&value};
  while (!open.empty()) {
    const Value& v = *open.back();
    open.pop_back();
    if (const Tensor* t = v.get<Tensor>()) {
      if (!t->is_leaf()) return absl::InvalidArgumentError("can't optimize a non-leaf Tensor");
      parameters.push_back(*t);
    } else if (const std::shared_ptr<Module> module = v.object<Module>()) {
      for (const nn::NamedTensor& p : module->Parameters()) parameters.push_back(p.tensor);
    } else if (v.list() != nullptr) {
      const std::vector<Value>& members = v.list()->values;
      for (size_t i = members.size(); i-- > 0;) open.push_back(&members[i]);
    } else {
      return absl::InvalidArgumentError(
          StrCat("expected parameters: a module, a tensor, or a list of them, found ", v.KindName()));
    }
  }
  if (parameters.empty()) return absl::InvalidArgumentError("optimizer got an empty parameter list");
  return parameters;
}

absl::Status CheckRate(std::string_view name, double value) {
  if (value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("`", name, "` cannot be negative"));
}

template <typename T, typename Options>
absl::StatusOr<Value> Finish(const Value& parameters, const Options& options) {
  if (absl::Status s = CheckRate("lr", options.lr); !s.ok()) return s;
  if (absl::Status s = CheckRate("weight_decay", options.weight_decay); !s.ok()) return s;
  absl::StatusOr<Tensors> tensors = ParametersIn(parameters);
  if (!tensors.ok()) return tensors.status();
  return Value(std::static_pointer_cast<Object>(
      std::make_shared<OptimizerObject>(std::make_unique<T>(*std::move(tensors), options))));
}

absl::StatusOr<Value> MakeSgd(RunContext&, const Arguments& a) {
  const nn::SgdOptions options = {.lr = a.real(1),
                                  .momentum = a.real(2),
                                  .dampening = a.real(3),
                                  .weight_decay = a.real(4),
                                  .nesterov = a.boolean(5)};
  if (absl::Status s = CheckRate("momentum", options.momentum); !s.ok()) return s;
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    return absl::InvalidArgumentError("Nesterov momentum requires a momentum and zero dampening");
  }
  return Finish<nn::Sgd>(a[0], options);
}

absl::Status ReadBetas(const std::vector<double>& betas, double* beta1, double* beta2) {
  if (betas.size() != 2 || !(betas[0] >= 0 && betas[0] < 1 && betas[1] >= 0 && betas[1] < 1)) {
    return absl::InvalidArgumentError("`betas` are two numbers of at least 0 and less than 1");
  }
  *beta1 = betas[0];
  *beta2 = betas[1];
  return absl::OkStatus();
}

template <bool kDecoupled>
absl::StatusOr<Value> MakeAdam(RunContext&, const Arguments& a) {
  nn::AdamOptions options = {.lr = a.real(1),
                             .eps = a.real(3),
                             .weight_decay = a.real(4),
                             .decoupled = kDecoupled,
                             .capturable = a.boolean(5)};
  if (absl::Status s = ReadBetas(a.reals(2), &options.beta1, &options.beta2); !s.ok()) return s;
  return Finish<nn::Adam>(a[0], options);
}

absl::StatusOr<Value> MakeRmsProp(RunContext&, const Arguments& a) {
  return Finish<nn::RmsProp>(a[0], nn::RmsPropOptions{.lr = a.real(1),
                                                      .alpha = a.real(2),
                                                      .eps = a.real(3),
                                                      .weight_decay = a.real(4),
                                                      .momentum = a.real(5),
                                                      .centered = a.boolean(6)});
}

absl::StatusOr<Value> MakeAdagrad(RunContext&, const Arguments& a) {
  return Finish<nn::Adagrad>(a[0], nn::AdagradOptions{.lr = a.real(1),
                                                      .lr_decay = a.real(2),
                                                      .weight_decay = a.real(3),
                                                      .initial_accumulator_value = a.real(4),
                                                      .eps = a.real(5)});
}

absl::StatusOr<Value> MakeAdafactor(RunContext&, const Arguments& a) {
  nn::AdafactorOptions options = {.lr = a.real(1), .beta2_decay = a.real(2), .d = a.real(4), .weight_decay = a.real(5)};
  const List* const eps = a[3].list();
  const Scalar* const second = eps == nullptr || eps->values.size() != 2 ? nullptr : eps->values[1].get<Scalar>();
  if (second == nullptr || (!eps->values[0].none() && eps->values[0].get<Scalar>() == nullptr)) {
    return absl::InvalidArgumentError("`eps` is a list of none or a number, and a number");
  }
  if (!eps->values[0].none()) options.eps1 = eps->values[0].get<Scalar>()->ToDouble();
  options.eps2 = second->ToDouble();
  return Finish<nn::Adafactor>(a[0], options);
}

absl::StatusOr<Value> MakeLamb(RunContext&, const Arguments& a) {
  nn::LambOptions options = {.lr = a.real(1), .eps = a.real(3), .weight_decay = a.real(4)};
  if (absl::Status s = ReadBetas(a.reals(2), &options.beta1, &options.beta2); !s.ok()) return s;
  return Finish<nn::Lamb>(a[0], options);
}

absl::StatusOr<Value> MakeSchedule(const Arguments& a, const std::function<nn::LrSchedule(double base)>& schedule_of) {
  std::shared_ptr<OptimizerObject> optimizer = a[0].object<OptimizerObject>();
  nn::LrSchedule schedule = schedule_of(optimizer->optimizer->lr());
  return Value(
      std::static_pointer_cast<Object>(std::make_shared<SchedulerObject>(std::move(optimizer), std::move(schedule))));
}

absl::Status CheckSteps(std::string_view name, int64_t steps) {
  if (steps >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("`", name, "` must be at least 1"));
}

absl::StatusOr<Value> StepLr(RunContext&, const Arguments& a) {
  if (absl::Status s = CheckSteps("step_size", a.integer(1)); !s.ok()) return s;
  return MakeSchedule(a, [&](double base) { return nn::StepLr(base, a.integer(1), a.real(2)); });
}
absl::StatusOr<Value> MultiStepLr(RunContext&, const Arguments& a) {
  return MakeSchedule(a, [&](double base) { return nn::MultiStepLr(base, a.integers(1), a.real(2)); });
}
absl::StatusOr<Value> ExponentialLr(RunContext&, const Arguments& a) {
  return MakeSchedule(a, [&](double base) { return nn::ExponentialLr(base, a.real(1)); });
}
absl::StatusOr<Value> CosineAnnealingLr(RunContext&, const Arguments& a) {
  if (absl::Status s = CheckSteps("T_max", a.integer(1)); !s.ok()) return s;
  return MakeSchedule(a, [&](double base) { return nn::CosineAnnealingLr(base, a.integer(1), a.real(2)); });
}
absl::StatusOr<Value> LinearLr(RunContext&, const Arguments& a) {
  if (absl::Status s = CheckSteps("total_iters", a.integer(3)); !s.ok()) return s;
  return MakeSchedule(a, [&](double base) { return nn::LinearLr(base, a.real(1), a.real(2), a.integer(3)); });
}
absl::StatusOr<Value> OneCycleLr(RunContext&, const Arguments& a) {
  if (absl::Status s = CheckSteps("total_steps", a.integer(2)); !s.ok()) return s;
  if (!(a.real(3) >= 0 && a.real(3) <= 1)) return absl::InvalidArgumentError("`pct_start` must be from 0 to 1");
  return MakeSchedule(a, [&](double) {
    return nn::OneCycleLr({.max_lr = a.real(1), .total_steps = a.integer(2), .pct_start = a.real(3)});
  });
}

absl::StatusOr<Value> GetLr(RunContext&, const Arguments& a) {
  return Value(a[0].object<OptimizerObject>()->optimizer->lr());
}
absl::StatusOr<Value> SetLr(RunContext&, const Arguments& a) {
  if (absl::Status s = CheckRate("lr", a.real(1)); !s.ok()) return s;
  a[0].object<OptimizerObject>()->optimizer->set_lr(a.real(1));
  return Value(Value::None());
}

absl::StatusOr<Value> ClipGradNorm(RunContext&, const Arguments& a) {
  absl::StatusOr<Tensors> parameters = ParametersIn(a[0]);
  if (!parameters.ok()) return parameters.status();
  const NoGradGuard no_grad;
  Tensor norm = nn::ClipGradNorm(*parameters, a.real(1), a.real(2));
  return norm.defined() ? Value(std::move(norm)) : Value(Value::None());
}
absl::StatusOr<Value> ClipGradValue(RunContext&, const Arguments& a) {
  absl::StatusOr<Tensors> parameters = ParametersIn(a[0]);
  if (!parameters.ok()) return parameters.status();
  const NoGradGuard no_grad;
  nn::ClipGradValue(*parameters, a.real(1));
  return Value(Value::None());
}

absl::StatusOr<Value> ReduceGradients(RunContext&, const Arguments& a) {
  nn::ReduceGradients(*a[0].object<OptimizerObject>()->optimizer);
  return Value(Value::None());
}
absl::StatusOr<Value> OptimizerStep(RunContext& c, const Arguments& a) {
  nn::Optimizer& optimizer = *a[0].object<OptimizerObject>()->optimizer;
  if (absl::Status s = nn::OptimizerStep(&optimizer, false); !s.ok()) return s;
  if (!a.boolean(1)) return Value(Value::None());
  const OthersRun others(c);
  if (absl::Status s = c.tracer->MarkStep(c.device); !s.ok()) return s;
  return Value(Value::None());
}

constexpr NativeRow kOptimizers[] = {
    {"optim::SGD(any params, float lr=0.001, float momentum=0, float dampening=0, float weight_decay=0, bool "
     "nesterov=false)",
     MakeSgd},
    {"optim::Adam(any params, float lr=0.001, float[] betas=[0.9, 0.999], float eps=1e-8, float weight_decay=0, bool "
     "capturable=false)",
     MakeAdam<false>},
    {"optim::AdamW(any params, float lr=0.001, float[] betas=[0.9, 0.999], float eps=1e-8, float weight_decay=0.01, "
     "bool capturable=false)",
     MakeAdam<true>},
    {"optim::RMSprop(any params, float lr=0.01, float alpha=0.99, float eps=1e-8, float weight_decay=0, float "
     "momentum=0, bool centered=false)",
     MakeRmsProp},
    {"optim::Adagrad(any params, float lr=0.01, float lr_decay=0, float weight_decay=0, float "
     "initial_accumulator_value=0, float eps=1e-10)",
     MakeAdagrad},
    {"optim::Adafactor(any params, float lr=0.01, float beta2_decay=-0.8, any eps=[none, 0.001], float d=1, float "
     "weight_decay=0)",
     MakeAdafactor},
    {"optim::LAMB(any params, float lr=0.001, float[] betas=[0.9, 0.999], float eps=1e-6, float weight_decay=0)",
     MakeLamb},
    {"optim::lr(Optimizer optimizer)", GetLr},
    {"optim::set_lr(Optimizer optimizer, float lr)", SetLr},
    {"lr_scheduler::StepLR(Optimizer optimizer, int step_size, float gamma=0.1)", StepLr},
    {"lr_scheduler::MultiStepLR(Optimizer optimizer, int[] milestones, float gamma=0.1)", MultiStepLr},
    {"lr_scheduler::ExponentialLR(Optimizer optimizer, float gamma)", ExponentialLr},
    {"lr_scheduler::CosineAnnealingLR(Optimizer optimizer, int T_max, float eta_min=0)", CosineAnnealingLr},
    {"lr_scheduler::LinearLR(Optimizer optimizer, float start_factor=0.3333333333333333, float end_factor=1, int "
     "total_iters=5)",
     LinearLr},
    {"lr_scheduler::OneCycleLR(Optimizer optimizer, float max_lr, int total_steps, float pct_start=0.3)", OneCycleLr},
    {"nn::clip_grad_norm_(any parameters, float max_norm, float norm_type=2)", ClipGradNorm},
    {"nn::clip_grad_value_(any parameters, float clip_value)", ClipGradValue},
    {"xm::reduce_gradients(Optimizer optimizer)", ReduceGradients},
    {"xm::optimizer_step(Optimizer optimizer, bool barrier=false)", OptimizerStep},
};

}  // namespace

void AddOptimizers(std::vector<NativeFunction>* functions) {
  for (const NativeRow& row : kOptimizers) AddRow(row, functions);
}

}  // namespace hlokit::lazy::script
