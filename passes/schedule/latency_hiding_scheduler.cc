// SPDX-License-Identifier: Apache-2.0
// The pass latency-hiding-scheduler: a schedule (schedule.h) with the latencies of the target.
#include "passes/core/pass_row.h"
#include "passes/schedule/memory_limit.h"
#include "passes/schedule/overlap_remarks.h"
#include "passes/schedule/schedule.h"
#include "passes/target/cost_model.h"
#include "passes/target/tpu_target.h"

namespace hlokit {
namespace {

class LatencyHidingScheduler : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    if (module.header().is_scheduled) return false;
    const tpu::TpuTarget target = tpu::TargetOf(*this, module);
    const std::vector<Latency> latencies = tpu::EstimateLatencies(module, target);
    ScheduleOptions schedule;
    schedule.memory_bytes = HbmBytes(*this, target);
    schedule.latencies = latencies;
    const absl::StatusOr<ScheduleCounts> counts = ScheduleModule(module, schedule);
    if (!counts.ok()) return counts.status();
    if (RemarkCollector* remarks = RemarksFor(context().remarks, RemarkCategory::kSchedule)) {
      AddOverlapRemarks(module, latencies, remarks);
    }
    Count("computations ordered", counts->computations);
    Count("bytes at the peak", counts->peak_bytes);
    return true;
  }
};

}  // namespace

HLOKIT_PASS(LatencyHidingScheduler) {
  return {.name = "latency-hiding-scheduler",
          .category = "schedule",
          .summary = "order the instructions to overlap communication with computation",
          .doc =
              "As `schedule`, with estimated latencies of instructions on a target: collectives and copies start as "
              "early as possible, and their done operations come when the work in between takes as long.",
          .options = {tpu::DeviceOption(), HbmBytesOption()},
          .create = MakePass<LatencyHidingScheduler>};
}

}  // namespace hlokit
