// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/recommendation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parser/formats/parser.h"
#include "simulator/report/breakdown.h"
#include "simulator/report/memory_advice.h"
#include "simulator/report/scope_time.h"

namespace hlokit::tpu {
namespace {

constexpr char kGradients[] = R"(
HloModule gradients, replica_count=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[2048,1024] parameter(0)
  w1 = f32[1024,1024] parameter(1)
  w2 = f32[1024,1024] parameter(2)
  h = f32[2048,1024] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}, metadata={op_name="step/forward/dot"}
  t = f32[2048,1024] tanh(h), metadata={op_name="step/forward/tanh"}
  y = f32[2048,1024] dot(t, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="step/forward/dot"}
  g1 = f32[1024,1024] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="step/backward/dot"}
  a1 = f32[1024,1024] all-reduce(g1), to_apply=sum, replica_groups={{0,1,2,3}}, metadata={op_name="step/backward/sum"}
  g2 = f32[1024,1024] dot(t, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="step/backward/dot"}
  a2 = f32[1024,1024] all-reduce(g2), to_apply=sum, replica_groups={{0,1,2,3}}, metadata={op_name="step/backward/sum"}
  u1 = f32[1024,1024] subtract(w1, a1), metadata={op_name="step/optimizer/sub"}
  u2 = f32[1024,1024] subtract(w2, a2), metadata={op_name="step/optimizer/sub"}
  ROOT out = (f32[1024,1024], f32[1024,1024]) tuple(u1, u2)
}
)";

class Case {
 public:
  explicit Case(const std::string& text, const std::string& host = "", PerformanceVariation variation = {}) {
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    EXPECT_TRUE(module.ok()) << module.status();
    module_ = *std::move(module);
    options_.machine = *BuiltinDeviceDescription("v5e");
    options_.topology = TopologyFor(options_.machine, 4);
    options_.variation = std::move(variation);
    plan_ = std::make_unique<KernelPlan>(*module_);
    simulation_ = Simulate(*module_, *plan_, options_);
    memory_ = PlanMemory(options_.machine, *module_, *plan_, simulation_.implicit_partitions);
    host_ = *ParseHostModel(host, 1e-6, options_.machine.host_rate);
  }
  ReportInput input() const { return {*module_, options_, simulation_, memory_}; }
  const KernelPlan& plan() const { return *plan_; }
  const HostModel& host() const { return host_; }
  const Simulation& simulation() const { return simulation_; }
  std::vector<Recommendation> Advices() const { return Recommend(input(), host_); }

 private:
  std::unique_ptr<Module> module_;
  SimulationOptions options_;
  std::unique_ptr<KernelPlan> plan_;
  Simulation simulation_;
  MemoryPlan memory_;
  HostModel host_;
};

const Recommendation* Find(const std::vector<Recommendation>& list, const std::string& part) {
  for (const Recommendation& advice : list) {
    if (advice.title.find(part) != std::string::npos) return &advice;
  }
  return nullptr;
}

TEST(Recommendation, GainsAreThoseOfAChangedProgram) {
  const std::vector<Recommendation> list = Case(kGradients).Advices();
  const Recommendation* precision = Find(list, "one bf16 pass");
  ASSERT_NE(precision, nullptr);
  std::string plain = kGradients;
  const std::string attribute = ", operand_precision={highest,highest}";
  plain.erase(plain.find(attribute), attribute.size());
  const Case changed(plain);
  EXPECT_NEAR(precision->after, SimulateHost(changed.host(), changed.simulation().device_seconds).step_seconds, 1e-12);
  EXPECT_EQ(Find(changed.Advices(), "one bf16 pass"), nullptr);
  EXPECT_NE(Find(list, "Compute in bf16"), nullptr);
}

TEST(Recommendation, DonationShowsInTheMemoryPlan) {
  const std::vector<Recommendation> list = Case(R"(
HloModule cache

ENTRY main {
  cache = f32[4096,1024] parameter(0)
  row = f32[1,1024] parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT next = f32[4096,1024] dynamic-update-slice(cache, row, at, zero)
}
)")
                                               .Advices();
  const Recommendation* donate = Find(list, "Donate parameters");
  ASSERT_NE(donate, nullptr);
  EXPECT_LT(donate->bytes_after, donate->bytes_before);
  EXPECT_EQ(donate->before, donate->after);
}

TEST(Recommendation, DonationIsNotAdvisedWhereItDoesNotHelp) {
  // The old value is read after the new one exists; the other result does not depend on the parameter of its shape.
  const Case later(R"(
HloModule later

ENTRY main {
  x = f32[4096,1024] parameter(0)
  y = f32[4096,1024] negate(x)
  z = f32[1024,4096] transpose(y), dimensions={1,0}
  d = f32[4096,4096] dot(x, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = (f32[4096,1024], f32[4096,4096]) tuple(y, d)
}
)");
  EXPECT_EQ(Find(later.Advices(), "onate"), nullptr);
  const Case unrelated(R"(
HloModule unrelated

ENTRY main {
  x = f32[4096,1024] parameter(0)
  w = f32[1024,1024] parameter(1)
  v = f32[1024,1024] parameter(2)
  y = f32[1024,1024] custom-call(w), custom_call_target="work"
  s = f32[4096,1024] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = (f32[4096], f32[1024,1024]) custom-call(s, y), custom_call_target="work"
}
)");
  EXPECT_EQ(Find(unrelated.Advices(), "onate"), nullptr);
}

TEST(Recommendation, EveryWayToFitWasSimulatedAndHelps) {
  const Case large(R"(
HloModule train

ENTRY main {
  x = f32[1024,65536] parameter(0)
  w = f32[65536,32768] parameter(1)
  h = f32[1024,32768] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[1024,32768] tanh(h)
  g = f32[65536,32768] dot(x, t), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT v = f32[65536,32768] subtract(w, g)
}
)");
  ASSERT_FALSE(large.input().memory.fits());
  const std::vector<MemoryAdvice> ways = MemoryAdvices(large.input());
  ASSERT_GE(ways.size(), 2u);
  for (const MemoryAdvice& way : ways) {
    EXPECT_TRUE(way.fits()) << way.title;
    const bool other_target = way.title.find("run it on") != std::string::npos;
    EXPECT_TRUE(other_target || way.peak_bytes < large.input().memory.peak_bytes) << way.title;
    EXPECT_GT(way.device_seconds, 0) << way.title;
  }
}

TEST(Recommendation, ASmallerBatchIsAProgramThatVerifies) {
  const Case large(R"(
HloModule batch

ENTRY main {
  x = f32[4096,64,128] parameter(0)
  w = f32[128,32768] parameter(1)
  flat = f32[262144,128] reshape(x)
  h = f32[262144,32768] dot(flat, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  back = f32[4096,64,32768] reshape(h)
  ROOT y = f32[4096,64] custom-call(back), custom_call_target="head"
}
)");
  ASSERT_FALSE(large.input().memory.fits());
  const std::vector<Recommendation> advices = large.Advices();
  const Recommendation* batch = Find(advices, "a batch of 512 instead of 4096");
  ASSERT_NE(batch, nullptr);
  EXPECT_TRUE(batch->fits_after);
  EXPECT_LT(batch->bytes_after, batch->bytes_before / 3);
}

TEST(Recommendation, SpeaksOfTheHostOnlyWhereTheDeviceWaitsForIt) {
  const std::vector<Recommendation> hidden = Case(kGradients, "trace=1us").Advices();
  EXPECT_EQ(Find(hidden, "Record the step once"), nullptr);
  const Case slow(kGradients, "trace=50ms");
  const std::vector<Recommendation> waits = slow.Advices();
  const Recommendation* record = Find(waits, "Record the step once");
  ASSERT_NE(record, nullptr);
  EXPECT_NEAR(record->before, 50e-3 + 1e-6, 1e-9);
  EXPECT_NEAR(record->after, slow.simulation().device_seconds, 1e-5);
}

TEST(Recommendation, FetchingCostsTheOverlapToo) {
  // The copy itself takes almost no time; the cost of the wait is that recording and device alternate.
  const Case c(kGradients, "steps=6,trace=200us,execute=1us,fetch_every=1,fetch=1us");
  const double device = c.simulation().device_seconds;
  const Recommendation* fetch = nullptr;
  const std::vector<Recommendation> list = c.Advices();
  ASSERT_NE(fetch = Find(list, "Fetch values less often"), nullptr);
  EXPECT_NEAR(fetch->before, device + 202e-6, 1e-9);
  // By hand: nine of ten steps hide the recording or the device, whichever is shorter, and one does not.
  const double hidden = std::max(device, 201e-6);
  EXPECT_NEAR(fetch->after, (9 * hidden + device + 202e-6) / 10, 2e-6);
  EXPECT_EQ(Find(Case(kGradients, "trace=200us").Advices(), "Fetch values less often"), nullptr);
}

TEST(Recommendation, SizesAboveATileAreNamed) {
  const auto program = [](int size) {
    std::string text = R"(
HloModule m

ENTRY main {
  x = bf16[4096,SIZE] parameter(0)
  w1 = bf16[SIZE,SIZE] parameter(1)
  w2 = bf16[SIZE,SIZE] parameter(2)
  h = bf16[4096,SIZE] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = bf16[4096,SIZE] dot(h, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
    for (size_t at = text.find("SIZE"); at != std::string::npos; at = text.find("SIZE")) {
      text.replace(at, 4, std::to_string(size));
    }
    return text;
  };
  const std::vector<Recommendation> list = Case(program(1032)).Advices();
  const Recommendation* choose = Find(list, "Choose 1024 instead of 1032");
  ASSERT_NE(choose, nullptr);
  const Case tiled(program(1024));
  EXPECT_NEAR(choose->after, SimulateHost(tiled.host(), tiled.simulation().device_seconds).step_seconds, 1e-12);
  // The gain exceeds the reduction of the work.
  EXPECT_LT(choose->after, choose->before * 1024 / 1032);
  EXPECT_EQ(Find(tiled.Advices(), "Choose"), nullptr);
  // Most of the last tile is used: nothing to gain.
  EXPECT_EQ(Find(Case(program(1144)).Advices(), "Choose"), nullptr);
}

TEST(Recommendation, AStragglerIsWorthReplacing) {
  PerformanceVariation slow;
  slow.stragglers.push_back({2, 2.0});
  const Case c(kGradients, "", slow);
  const std::vector<Recommendation> list = c.Advices();
  const Recommendation* replace = Find(list, "Replace the slow device");
  ASSERT_NE(replace, nullptr);
  EXPECT_NEAR(replace->after, Case(kGradients).simulation().device_seconds, 1e-5);
  EXPECT_EQ(Find(Case(kGradients).Advices(), "Replace"), nullptr);
}

TEST(Recommendation, EveryEntryIsAGainWithItsEvidence) {
  for (const char* host :
       {"", "trace=5ms", "input=9ms,prefetch=0", "fetch_every=1,fetch=1ms", "graphs=4,execute=2ms"}) {
    for (const Recommendation& advice : Case(kGradients, host).Advices()) {
      EXPECT_TRUE(advice.after < 0.99 * advice.before || advice.bytes_after < advice.bytes_before) << advice.title;
      EXPECT_FALSE(advice.evidence.empty() || advice.action.empty() || advice.changed.empty()) << advice.title;
    }
  }
}

TEST(Recommendation, OneResourceTwiceAsFastNeverSlowsTheStep) {
  const Case c(kGradients);
  const double now = SimulateHost(c.host(), c.simulation().device_seconds).step_seconds;
  for (const Sensitivity& s : SensitivityAnalysis(c.input(), c.host()))
    EXPECT_LE(s.seconds, now * (1 + 1e-9)) << s.resource;
}

TEST(Breakdown, PartsAddUpToTheDeviceTime) {
  const Case c(kGradients);
  double sum = 0;
  for (const TimeShare& share : DeviceBreakdown(c.input(), c.plan())) sum += share.seconds;
  EXPECT_NEAR(sum, c.simulation().device_seconds, 1e-9 * c.simulation().device_seconds);
}

TEST(Breakdown, WaitsAreForWhatEndedLast) {
  const Case c(kGradients);
  bool collective = false;
  for (const CoreStall& wait : CoreStalls(c.input(), c.plan())) {
    EXPECT_GT(wait.seconds, 0);
    collective |= wait.kind == ScheduleUnitKind::kCollective;
  }
  EXPECT_TRUE(collective);
}

TEST(ScopeTime, SharesOfAllScopesAreTheTimeOfAllSteps) {
  const Case c(kGradients);
  double sum = 0;
  double core = 0;
  for (const AttributedTime& scope : ScopeTimes(c.input(), c.plan())) {
    EXPECT_FALSE(scope.name.empty());
    EXPECT_LE(scope.mixed_kernel_seconds, scope.seconds * (1 + 1e-9));
    sum += scope.seconds + scope.concurrent_seconds;
    core += scope.seconds;
  }
  EXPECT_LE(core, c.simulation().device_seconds * (1 + 1e-9));
  double rows = 0;
  for (const OpRow& row : c.simulation().rows) rows += row.seconds;
  EXPECT_NEAR(sum, rows, 1e-9 * rows);
}

}  // namespace
}  // namespace hlokit::tpu
