// SPDX-License-Identifier: Apache-2.0
// Learning rates by step, like torch.optim.lr_scheduler. A schedule is a function of the number of steps; torch's
// recursive forms give the same numbers up to rounding.
#ifndef HLOKIT_TRACER_NN_LR_SCHEDULE_H_
#define HLOKIT_TRACER_NN_LR_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tracer/nn/optimizer.h"

namespace hlokit::lazy::nn {

struct Rates {
  double lr = 0;
  std::optional<double> momentum;  // if the schedule cycles it: SGD's momentum, Adam's beta1
};
// `step`: updates made so far.
using LrSchedule = std::function<Rates(int64_t step)>;

LrSchedule ConstantLr(double base);
// Returns base gamma^floor(step / step_size).
LrSchedule StepLr(double base, int64_t step_size, double gamma = 0.1);
// Returns base gamma^(number of milestones reached).
LrSchedule MultiStepLr(double base, std::vector<int64_t> milestones, double gamma = 0.1);
LrSchedule ExponentialLr(double base, double gamma);
// Varies from base to eta_min in t_max steps along half a cosine, and back.
LrSchedule CosineAnnealingLr(double base, int64_t t_max, double eta_min = 0);
// Varies from base start_factor to base end_factor in total_iters steps, then constant: a warm-up.
LrSchedule LinearLr(double base, double start_factor = 1.0 / 3, double end_factor = 1, int64_t total_iters = 5);
struct OneCycleOptions {
  double max_lr = 0.01;
  int64_t total_steps = 1;
  double pct_start = 0.3;
  bool cosine = true;  // otherwise linear
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
};
// Rises to max_lr in pct_start of the steps, then falls; momentum is inverse. Steps beyond the last keep its rates.
LrSchedule OneCycleLr(const OneCycleOptions& options);

// Rises from 0 to the schedule's first rate in `steps` steps, then follows the schedule.
LrSchedule WithWarmup(LrSchedule schedule, int64_t steps);

// Parses step:SIZE[,GAMMA], multistep:M1;M2;...[,GAMMA], exponential:GAMMA, cosine:T_MAX[,ETA_MIN],
// linear[:START[,END[,TOTAL]]], onecycle:MAX_LR,TOTAL[,PCT_START], constant.
absl::StatusOr<LrSchedule> ParseLrSchedule(std::string_view text, double base);
// Returns the names of schedules.
std::vector<std::string_view> LrScheduleNames();

// Sets an optimizer's rates: those of step 0 at construction, of the next step at each call of Step. One schedule is
// for all groups of parameters; several are one for each group, and the first sets the momentum.
class LrScheduler {
 public:
  LrScheduler(Optimizer* optimizer, LrSchedule schedule)
      : LrScheduler(optimizer, std::vector<LrSchedule>{std::move(schedule)}) {}
  LrScheduler(Optimizer* optimizer, std::vector<LrSchedule> schedules);
  void Step();
  int64_t steps() const { return steps_; }
  // Continues a schedule: `steps` updates were made.
  void set_steps(int64_t steps) {
    steps_ = steps;
    Apply();
  }

 private:
  void Apply();

  Optimizer* optimizer_;
  std::vector<LrSchedule> schedules_;
  int64_t steps_ = 0;
};

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_LR_SCHEDULE_H_
