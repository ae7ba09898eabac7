// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <string>
#include <utility>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit::lazy::nn {

LrSchedule ConstantLr(double base) {
  return [=](int64_t) { return Rates{base, {}}; };
}

LrSchedule StepLr(double base, int64_t step_size, double gamma) {
  return [=](int64_t step) { return Rates{base * std::pow(gamma, static_cast<double>(step / step_size)), {}}; };
}

LrSchedule MultiStepLr(double base, std::vector<int64_t> milestones, double gamma) {
  std::sort(milestones.begin(), milestones.end());
  return [=, milestones = std::move(milestones)](int64_t step) {
    const auto reached = std::upper_bound(milestones.begin(), milestones.end(), step) - milestones.begin();
    return Rates{base * std::pow(gamma, static_cast<double>(reached)), {}};
  };
}

LrSchedule ExponentialLr(double base, double gamma) {
  return [=](int64_t step) { return Rates{base * std::pow(gamma, static_cast<double>(step)), {}}; };
}

LrSchedule CosineAnnealingLr(double base, int64_t t_max, double eta_min) {
  return [=](int64_t step) {
    const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(t_max);
    return Rates{eta_min + (base - eta_min) * (1 + std::cos(angle)) / 2, {}};
  };
}

LrSchedule LinearLr(double base, double start_factor, double end_factor, int64_t total_iters) {
  return [=](int64_t step) {
    const double done = static_cast<double>(std::min(step, total_iters)) / static_cast<double>(total_iters);
    return Rates{base * (start_factor + (end_factor - start_factor) * done), {}};
  };
}

LrSchedule OneCycleLr(const OneCycleOptions& o) {
  return [=](int64_t step) {
    const double last = static_cast<double>(o.total_steps - 1);
    const double top = o.pct_start * static_cast<double>(o.total_steps) - 1;
    const double at = std::min(static_cast<double>(step), last);
    const auto between = [&](double from, double to, double part) {
      return o.cosine ? to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part)) : from + (to - from) * part;
    };
    const double initial = o.max_lr / o.div_factor;
    Rates rates;
    if (top > 0 && at <= top) {
      const double part = at / top;
      rates.lr = between(initial, o.max_lr, part);
      if (o.cycle_momentum) rates.momentum = between(o.max_momentum, o.base_momentum, part);
    } else {
      const double part = last > top ? (at - top) / (last - top) : 1;
      rates.lr = between(o.max_lr, initial / o.final_div_factor, part);
      if (o.cycle_momentum) rates.momentum = between(o.base_momentum, o.max_momentum, part);
    }
    return rates;
  };
}

LrSchedule WithWarmup(LrSchedule schedule, int64_t steps) {
  return [schedule = std::move(schedule), steps](int64_t step) {
    Rates rates = schedule(std::max<int64_t>(step - steps, 0));
    if (step < steps) rates.lr *= static_cast<double>(step) / static_cast<double>(steps);
    return rates;
  };
}

std::vector<std::string_view> LrScheduleNames() {
  return {"constant", "step", "multistep", "exponential", "cosine", "linear", "onecycle"};
}

absl::StatusOr<LrSchedule> ParseLrSchedule(std::string_view text, double base) {
  const size_t colon = text.find(':');
  const std::string name(text.substr(0, colon));
  std::vector<double> numbers;      // separated by commas
  std::vector<int64_t> milestones;  // of the first, separated by semicolons
  if (colon != std::string_view::npos) {
    std::string rest(text.substr(colon + 1));
    for (char* at = rest.data(); true;) {
      char* end = nullptr;
      const double number = std::strtod(at, &end);
      if (end == at || !std::isfinite(number) || std::abs(number) > 1e15) {
        return absl::InvalidArgumentError(StrCat("expected numbers in the schedule `", text, "`"));
      }
      if (name == "multistep" && numbers.empty() && number != std::floor(number)) {
        return absl::InvalidArgumentError("milestones of a schedule are whole numbers");
      }
      if (numbers.empty()) milestones.push_back(static_cast<int64_t>(number));
      if (*end == ';' && numbers.empty()) {
        at = end + 1;
        continue;
      }
      numbers.push_back(number);
      if (*end == '\0') break;
      if (*end != ',')
        return absl::InvalidArgumentError(StrCat("expected `,` between the numbers of the schedule `", text, "`"));
      at = end + 1;
    }
  }
  const auto number = [&](size_t i, double absent) { return i < numbers.size() ? numbers[i] : absent; };
  const auto whole = [&](size_t i, double absent) { return static_cast<int64_t>(number(i, absent)); };
  const auto takes = [&](size_t least, size_t most) -> absl::Status {
    if (numbers.size() >= least && numbers.size() <= most) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat("expected ", least, " to ", most, " numbers for the schedule ", name));
  };
  const auto within = [&](double v, bool open, const char* what) {  // [0, 1], or (0, 1]
    return v <= 1 && (open ? v > 0 : v >= 0)
               ? absl::OkStatus()
               : absl::InvalidArgumentError(StrCat("expected ", what, " from 0 to 1 for the schedule ", name));
  };
  const auto positive = [&](int64_t v) {
    return v > 0 ? absl::OkStatus()
                 : absl::InvalidArgumentError(StrCat("expected a positive number of steps for the schedule ", name));
  };
  absl::Status status;
  if (name == "constant") {
    if (status = takes(0, 0); status.ok()) return ConstantLr(base);
  } else if (name == "step") {
    if (status = takes(1, 2); status.ok()) status = positive(whole(0, 0));
    if (status.ok()) return StepLr(base, whole(0, 0), number(1, 0.1));
  } else if (name == "multistep") {
    if (status = takes(1, 2); status.ok()) return MultiStepLr(base, milestones, number(1, 0.1));
  } else if (name == "exponential") {
    if (status = takes(1, 1); status.ok()) return ExponentialLr(base, number(0, 1));
  } else if (name == "cosine") {
    if (status = takes(1, 2); status.ok()) status = positive(whole(0, 0));
    if (status.ok()) return CosineAnnealingLr(base, whole(0, 0), number(1, 0));
  } else if (name == "linear") {
    if (status = takes(0, 3); status.ok()) status = positive(whole(2, 5));
    if (status.ok()) status = within(number(0, 1.0 / 3), /*open=*/true, "a factor to start with");
    if (status.ok()) status = within(number(1, 1), /*open=*/false, "a factor to end with");
    if (status.ok()) return LinearLr(base, number(0, 1.0 / 3), number(1, 1), whole(2, 5));
  } else if (name == "onecycle") {
    if (status = takes(2, 3); status.ok()) status = positive(whole(1, 0));
    if (status.ok()) status = within(number(2, 0.3), /*open=*/false, "a part of the steps that rises");
    OneCycleOptions options;
    options.max_lr = number(0, 0);
    options.total_steps = whole(1, 0);
    options.pct_start = number(2, 0.3);
    if (status.ok()) return OneCycleLr(options);
  } else {
    status =
        absl::InvalidArgumentError(StrCat("unknown schedule `", name, "`", DidYouMeanSuffix(name, LrScheduleNames())));
  }
  return status;
}

LrScheduler::LrScheduler(Optimizer* optimizer, std::vector<LrSchedule> schedules)
    : optimizer_(optimizer), schedules_(std::move(schedules)) {
  Apply();
}

void LrScheduler::Step() {
  ++steps_;
  Apply();
}

void LrScheduler::Apply() {
  for (size_t group = 0; group < optimizer_->group_count() && !schedules_.empty(); ++group) {
    const Rates rates = schedules_[std::min(group, schedules_.size() - 1)](steps_);
    optimizer_->set_lr(group, rates.lr);
    if (group == 0 && rates.momentum) optimizer_->set_momentum(*rates.momentum);
  }
}

}  // namespace hlokit::lazy::nn
