// The passes of this room.
#include "passes/rooms.h"
#include "passes/schedule/copy_insertion.h"
#include "passes/schedule/schedule.h"

namespace hlokit {
namespace {

class Schedule : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    if (module.header().is_scheduled) return false;
    const absl::StatusOr<ScheduleCounts> counts = ScheduleModule(module, {options().Bool("overlap")});
    if (!counts.ok()) return counts.status();
    Count("computations ordered", counts->computations);
    Count("bytes at the peak", counts->peak_bytes);
    Count("bytes at the peak of the post-order", counts->post_order_peak_bytes);
    return true;
  }
};

class CopyInsertion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> copies = InsertCopies(module);
    if (!copies.ok()) return copies.status();
    if (*copies > 0) Count("copies added", *copies);
    return *copies > 0;
  }
};

constexpr char kOverlap[] = R"(HloModule overlap

ENTRY main {
  x = f32[64,64]{1,0} parameter(0)
  w = f32[64,64]{1,0} parameter(1)
  start = (f32[64,64]{1,0}, f32[128,64]{1,0}) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}
  done = f32[128,64]{1,0} all-gather-done(start)
  d = f32[64,64]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[128,64]{1,0}, f32[64,64]{1,0}) tuple(done, d)
}
)";

constexpr char kSwap[] = R"(HloModule swap

cond {
  p = (f32[8]{0}, f32[8]{0}) parameter(0)
  ROOT c = pred[] constant(false)
}

body {
  p = (f32[8]{0}, f32[8]{0}) parameter(0)
  a = f32[8]{0} get-tuple-element(p), index=0
  b = f32[8]{0} get-tuple-element(p), index=1
  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(b, a)
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  t = (f32[8]{0}, f32[8]{0}) tuple(x, x)
  ROOT w = (f32[8]{0}, f32[8]{0}) while(t), condition=cond, body=body
}
)";

}  // namespace

void RegisterSchedulePasses(PassRegistry* registry) {
  registry->Add(
      {.name = "schedule",
       .room = "schedule",
       .summary = "order the instructions so that they need little memory and overlap communication",
       .doc = "A list schedule that prefers instructions which free more than they make, or the post-order where "
              "that needs less. Asynchronous operations start as soon as they can and are waited for when what "
              "ran meanwhile moved as many bytes. The module is marked as scheduled, and its text is in the "
              "order of the schedule.",
       .example = kOverlap,
       .options = {{.name = "overlap",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "true",
                    .doc = "keep asynchronous operations going beside others"}},
       .make = MakePass<Schedule>});
  registry->Add(
      {.name = "copy-insertion",
       .room = "schedule",
       .summary = "copy values that would otherwise be written over while they are needed",
       .doc = "So that each array of a loop's state can stay where it is, updates in place write over nothing that "
              "is read elsewhere, and results do not share memory with parameters or each other.",
       .example = kSwap,
       .needs = "No schedule: a module that has one is left alone.",
       .make = MakePass<CopyInsertion>});
}

}  // namespace hlokit
