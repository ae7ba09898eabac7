// SPDX-License-Identifier: Apache-2.0
// Collectives of several processes: the bits of one process, the operations of the transport that they take, errors.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "interp/exact/evaluator.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"
#include "tests/unit/interp/processes/fake_transport.h"

namespace hlokit::interp {
namespace {

using Calls = std::map<std::string, int>;

struct ProcessesRun {
  std::vector<std::string> results;  // bytes, of each device in turn
  std::vector<std::string> errors;   // of each process, in order; of one, if alike
  Calls calls;                       // of the data, not of the messages that begin operations
};

// Runs the text of a module on devices of several processes.
ProcessesRun RunOn(const std::vector<std::string>& texts, int64_t devices, int processes, bool world_waits = false) {
  ProcessesRun run;
  FakeNetwork network(processes);
  std::mutex mutex;
  std::map<int, std::vector<std::string>> results;
  std::map<int, std::string> errors;
  RunProcesses(
      &network,
      [&](FakeWorld& world) {
        world.all_wait = world_waits;
        const std::string& text = texts[static_cast<size_t>(world.rank()) % texts.size()];
        DiagnosticSink sink;
        const auto source = std::make_shared<const SourceBuffer>("test.hlo", text);
        const std::unique_ptr<Module> module = ParseModule(source, ParseOptions(), &sink);
        EvaluatorOptions options;
        options.num_replicas = devices;
        options.num_threads = 1;
        options.limits.max_seconds = 60;
        options.world = &world;
        const std::unique_ptr<Evaluator> evaluator =
            module == nullptr ? nullptr : Evaluator::Prepare(*module, options, &sink);
        std::optional<std::vector<Literal>> values;
        if (evaluator != nullptr) values = evaluator->Run({}, &sink);
        const std::lock_guard<std::mutex> lock(mutex);
        for (const Diagnostic& d : sink.diagnostics()) errors[world.rank()] += d.message;
        for (size_t i = 0; values && i < values->size(); ++i) {
          results[world.rank()].emplace_back(reinterpret_cast<const char*>((*values)[i].data()),
                                             (*values)[i].size_bytes());
        }
      },
      /*timeout_seconds=*/0.1);
  for (auto& [rank, values] : results) run.results.insert(run.results.end(), values.begin(), values.end());
  for (auto& [rank, error] : errors) {
    if (run.errors.empty() || run.errors.back() != error) run.errors.push_back(error);
  }
  run.calls = network.calls;
  run.calls.erase("Allgather");
  return run;
}

// A module whose `x` differs between devices; `elements` of it are not exact in sums.
std::string WithInput(const std::string& type, int64_t elements, const std::string& body) {
  return StrCat("HloModule m\nadd {\n  a = ", type, "[] parameter(0)\n  b = ", type,
                "[] parameter(1)\n  ROOT c = ", type,
                "[] add(a, b)\n}\nENTRY e {\n  id = u32[] replica-id()\n  one = ", type, "[] constant(1)\n  n = ", type,
                "[] convert(id)\n  m = ", type, "[] add(n, one)\n  k = ", type, "[] constant(",
                type[0] == 'f' ? "0.1" : "7", ")\n  scale = ", type, "[] multiply(m, k)\n  i = ", type, "[", elements,
                "] iota(), iota_dimension=0\n  s = ", type, "[", elements,
                "] broadcast(scale), dimensions={}\n  x = ", type, "[", elements, "] multiply(i, s)\n", body, "}\n");
}

// Expects the bytes of one process on 2, 3 and 4 processes, and, on as many as devices, these operations.
void ExpectSame(const std::string& text, const Calls& calls) {
  const ProcessesRun one = RunOn({text}, 6, 1);
  ASSERT_TRUE(one.errors.empty()) << one.errors[0];
  ASSERT_FALSE(one.results.empty());
  for (int processes : {2, 3, 4, 6}) {
    const ProcessesRun run = RunOn({text}, 6, processes);
    ASSERT_TRUE(run.errors.empty()) << processes << ": " << run.errors[0];
    EXPECT_EQ(run.results, one.results) << processes << " processes";
    if (processes == 6) {
      EXPECT_EQ(run.calls, calls);
    }
  }
}

// Every process first learns that all run the same program, by an Allgatherv.
Calls WithCheck(Calls calls) {
  ++calls["Allgatherv"];
  return calls;
}

TEST(DistributedCollectivesTest, SmallReductionIsInItsFirstMessage) {
  ExpectSame(WithInput("f32", 2, "  ROOT r = f32[2] all-reduce(x), replica_groups={}, to_apply=add\n"), WithCheck({}));
}

TEST(DistributedCollectivesTest, ReductionOfAFewKilobytesGathersOperands) {
  ExpectSame(WithInput("f32", 500, "  ROOT r = f32[500] all-reduce(x), replica_groups={}, to_apply=add\n"),
             WithCheck({{"Allgatherv", 1}}));
}

TEST(DistributedCollectivesTest, LargeReductionOfFloatsExchangesChunks) {
  ExpectSame(WithInput("f32", 10007, "  ROOT r = f32[10007] all-reduce(x), replica_groups={}, to_apply=add\n"),
             WithCheck({{"Exchange", 1}, {"Allgatherv", 1}}));
}

TEST(DistributedCollectivesTest, LargeReductionOfIntegersIsOneOfTheLibrary) {
  ExpectSame(WithInput("s32", 10007, "  ROOT r = s32[10007] all-reduce(x), replica_groups={}, to_apply=add\n"),
             WithCheck({{"Allreduce", 1}}));
}

TEST(DistributedCollectivesTest, ReduceScatter) {
  ExpectSame(WithInput("f32", 12000,
                       "  ROOT r = f32[2000] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=add\n"),
             WithCheck({{"Exchange", 1}}));
  ExpectSame(WithInput("s32", 12000,
                       "  ROOT r = s32[2000] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=add\n"),
             WithCheck({{"ReduceScatter", 1}}));
}

TEST(DistributedCollectivesTest, GathersAndExchanges) {
  ExpectSame(WithInput("f32", 6, "  ROOT r = f32[36] all-gather(x), replica_groups={}, dimensions={0}\n"),
             WithCheck({{"Allgatherv", 1}}));
  ExpectSame(WithInput("f32", 6, "  ROOT r = f32[6] all-to-all(x), replica_groups={}, dimensions={0}\n"),
             WithCheck({{"Exchange", 1}}));
  ExpectSame(
      WithInput("f32", 6, "  ROOT r = f32[6] collective-permute(x), source_target_pairs={{0,1},{1,5},{5,0},{2,3}}\n"),
      WithCheck({{"Exchange neighbors", 1}}));
}

// A reduction as any; which device keeps its result each one knows.
TEST(DistributedCollectivesTest, CollectiveReduce) {
  ExpectSame(WithInput("f32", 10007, "  ROOT r = f32[10007] collective-reduce(x), replica_groups={}, to_apply=add\n"),
             WithCheck({{"Exchange", 1}, {"Allgatherv", 1}}));
  ExpectSame(WithInput("s32", 10007,
                       "  root = s32[1] constant({4})\n"
                       "  ROOT r = s32[10007] collective-reduce(x, root), replica_groups={}, has_dynamic_root=true, "
                       "to_apply=add\n"),
             WithCheck({{"Allreduce", 1}}));
}

TEST(DistributedCollectivesTest, GroupsAcrossProcesses) {
  ExpectSame(
      WithInput("f32", 5000, "  ROOT r = f32[5000] all-reduce(x), replica_groups={{5,0,3},{1,4,2}}, to_apply=add\n"),
      WithCheck({{"Exchange", 2}, {"Allgatherv", 2}}));
}

// Two operations of the same processes are always in flight.
TEST(DistributedCollectivesTest, OperationsInFlightKeepApart) {
  const std::string text = R"(HloModule flight
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
condition {
  s = (s32[], f32[3], f32[9000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(64)
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[3], f32[9000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[3] get-tuple-element(s), index=1
  y = f32[9000] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  a = f32[9000] all-reduce-start(y), replica_groups={}, to_apply=add
  b = f32[3] all-reduce-start(x), replica_groups={}, to_apply=add
  bd = f32[3] all-reduce-done(b)
  ad = f32[9000] all-reduce-done(a)
  sixth = f32[] constant(0.16)
  sb = f32[3] broadcast(sixth), dimensions={}
  sa = f32[9000] broadcast(sixth), dimensions={}
  nb = f32[3] multiply(bd, sb)
  na = f32[9000] multiply(ad, sa)
  ROOT t = (s32[], f32[3], f32[9000]) tuple(next, nb, na)
}
ENTRY e {
  id = u32[] replica-id()
  f = f32[] convert(id)
  x = f32[3] broadcast(f), dimensions={}
  i = f32[9000] iota(), iota_dimension=0
  g = f32[9000] broadcast(f), dimensions={}
  y = f32[9000] add(i, g)
  zero = s32[] constant(0)
  t = (s32[], f32[3], f32[9000]) tuple(zero, x, y)
  w = (s32[], f32[3], f32[9000]) while(t), condition=condition, body=body
  r = f32[3] get-tuple-element(w), index=1
  q = f32[9000] get-tuple-element(w), index=2
  ROOT both = (f32[3], f32[9000]) tuple(r, q)
}
)";
  ExpectSame(text, WithCheck({{"Exchange", 64}, {"Allgatherv", 64}}));
}

TEST(DistributedCollectivesTest, OtherProgramIsAnErrorInAll) {
  const ProcessesRun run =
      RunOn({WithInput("f32", 4, "  ROOT r = f32[4] all-reduce(x), replica_groups={}, to_apply=add\n"),
             WithInput("f32", 5, "  ROOT r = f32[5] all-reduce(x), replica_groups={}, to_apply=add\n")},
            2, 2);
  EXPECT_TRUE(run.results.empty());
  ASSERT_EQ(run.errors.size(), 2u);
  EXPECT_NE(run.errors[0].find("process 1 runs another program"), std::string::npos) << run.errors[0];
}

TEST(DistributedCollectivesTest, DeviceThatDoesNotReachACollectiveIsADeadlock) {
  const std::string text = R"(HloModule branch
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
yes {
  x = f32[] parameter(0)
  ROOT r = f32[] all-reduce(x), replica_groups={}, to_apply=add
}
no {
  ROOT x = f32[] parameter(0)
}
ENTRY e {
  id = u32[] replica-id()
  zero = u32[] constant(0)
  first = pred[] compare(id, zero), direction=EQ
  x = f32[] constant(1)
  ROOT r = f32[] conditional(first, x, x), true_computation=yes, false_computation=no
}
)";
  const ProcessesRun run = RunOn({text}, 2, 2, /*world_waits=*/true);
  ASSERT_EQ(run.errors.size(), 1u);
  EXPECT_NE(run.errors[0].find("deadlock: waiting for devices that do not reach this collective"), std::string::npos)
      << run.errors[0];
}

}  // namespace
}  // namespace hlokit::interp
