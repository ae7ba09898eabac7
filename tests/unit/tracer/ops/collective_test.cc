// SPDX-License-Identifier: Apache-2.0
// Collectives over four devices of a process, what they print, and the host's rendezvous.
#include "tracer/ops/collective.h"

#include <algorithm>
#include <thread>

#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "tests/unit/tracer/tracing.h"
#include "tracer/step/executor.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {
namespace {

constexpr int kDevices = 4;

TracerOptions FourDevices() {
  TracerOptions options;
  options.client.evaluator.num_threads = 1;
  options.client.num_devices = kDevices;
  options.client.collective_timeout_seconds = 10;
  return options;
}

class CollectivesTest : public TracingTest {
 protected:
  CollectivesTest() : TracingTest(FourDevices()) {}

  // Records on each device a function of [[10 d, 10 d + 1, ...]] of 2 rows and 4 columns; returns all results.
  std::vector<std::vector<double>> OnEach(const std::function<Tensor(const Tensor&)>& record) {
    Tensors results;
    for (int d = 0; d < kDevices; ++d) {
      const DeviceGuard on(tracer.device(d));
      std::vector<float> values(8);
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(10 * d) + static_cast<float>(i);
      results.push_back(record(F32({2, 4}, values)));
      EXPECT_TRUE(tracer.MarkStep(tracer.device(d)).ok()) << tracer.status().message();
    }
    const absl::Status done = tracer.Wait();
    EXPECT_TRUE(done.ok()) << done.message();
    std::vector<std::vector<double>> all;
    for (const Tensor& t : results) all.push_back(Values(t));
    return all;
  }
  std::string Hlo(const Tensors& roots) {
    const absl::StatusOr<std::unique_ptr<Module>> module =
        LowerSubgraph(*tracer.device(), CollectSubgraphOfTensors(roots), "step");
    EXPECT_TRUE(module.ok()) << module.status().message();
    DiagnosticSink sink;
    VerifyModule(**module, VerifierOptions(), &sink);
    EXPECT_FALSE(sink.has_errors());
    std::string text;
    TextWriter out(&text);
    PrintModule(out, **module);
    out.Flush();
    return text;
  }
};

using Rows = std::vector<double>;

TEST_F(CollectivesTest, AllGatherConcatenatesInTheOrderOfTheGroup) {
  const auto whole = OnEach([](const Tensor& x) { return Slice(AllGather(x, 1), 0, 0, 1); });
  for (const Rows& row : whole) {
    EXPECT_EQ(row, (Rows{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33}));
  }
  const auto pairs = OnEach([](const Tensor& x) { return Slice(AllGather(x, 0, {{2, 0}, {1, 3}}), 1, 0, 1); });
  EXPECT_EQ(pairs[0], (Rows{20, 24, 0, 4}));
  EXPECT_EQ(pairs[2], pairs[0]);
  EXPECT_EQ(pairs[3], (Rows{10, 14, 30, 34}));
}

TEST_F(CollectivesTest, ReduceScatterGivesEachItsPart) {
  const auto sums = OnEach([](const Tensor& x) { return ReduceScatter(ReduceType::kSum, x, 0.5, 1); });
  for (int d = 0; d < kDevices; ++d) EXPECT_EQ(sums[d], (Rows{30.0 + 2 * d, 38.0 + 2 * d}));
  const auto most = OnEach([](const Tensor& x) { return ReduceScatter(ReduceType::kMax, x, 1, 0, {{0, 1}, {2, 3}}); });
  EXPECT_EQ(most[0], (Rows{10, 11, 12, 13}));
  EXPECT_EQ(most[3], (Rows{34, 35, 36, 37}));
}

TEST_F(CollectivesTest, AllToAllMovesPartsBetweenDimensions) {
  const auto same = OnEach([](const Tensor& x) { return AllToAll(x, 1, 1, kDevices); });
  EXPECT_EQ(same[1], (Rows{1, 11, 21, 31, 5, 15, 25, 35}));
  const auto rows = OnEach([](const Tensor& x) { return AllToAll(x, 1, 0, kDevices); });  // [8, 1]
  EXPECT_EQ(rows[1], (Rows{1, 5, 11, 15, 21, 25, 31, 35}));
  const auto columns = OnEach([](const Tensor& x) { return AllToAll(x, 0, 1, 2, {{0, 1}, {2, 3}}); });  // [1, 8]
  EXPECT_EQ(columns[2], (Rows{20, 21, 22, 23, 30, 31, 32, 33}));
  EXPECT_EQ(columns[1], (Rows{4, 5, 6, 7, 14, 15, 16, 17}));
}

TEST_F(CollectivesTest, PermutedTensorsComeFromTheirSources) {
  const std::pair<int64_t, int64_t> ring[] = {{0, 1}, {1, 2}, {2, 0}};
  const auto moved = OnEach([&](const Tensor& x) { return Slice(CollectivePermute(x, ring), 0, 0, 1); });
  EXPECT_EQ(moved[0], (Rows{20, 21, 22, 23}));
  EXPECT_EQ(moved[1], (Rows{0, 1, 2, 3}));
  EXPECT_EQ(moved[3], (Rows{0, 0, 0, 0}));
}

TEST_F(CollectivesTest, BroadcastAndGroupsOfAllReduce) {
  const auto root = OnEach([](const Tensor& x) {
    CollectiveBroadcast({x}, 2);
    return Slice(x, 0, 0, 1);
  });
  for (const Rows& row : root) EXPECT_EQ(row, (Rows{20, 21, 22, 23}));
  const auto sums = OnEach([](const Tensor& x) {
    return Slice(AllReduce(ReduceType::kSum, {x}, 1, {{0, 3}, {1, 2}})[0], 0, 0, 1);
  });
  EXPECT_EQ(sums[3], (Rows{30, 32, 34, 36}));
  EXPECT_EQ(sums[1], sums[0]);
}

// Later collectives must not see NaN of earlier ones through the token.
TEST_F(CollectivesTest, TokensStayZero) {
  const auto results = OnEach([](const Tensor& x) {
    const Tensor undefined = AllGather(Log(x - Scalar(100)), 0);
    return Slice(AllGather(x, 0), 0, 6, 7) + Slice(ZerosLike(undefined), 0, 0, 1);
  });
  EXPECT_EQ(results[0], (Rows{30, 31, 32, 33}));
}

TEST_F(CollectivesTest, LazyIrAndHlo) {
  const Tensor x = F32({2, 4}, std::vector<float>(8));
  const Tensor y = AllGather(x, 1, {{0, 1}, {2, 3}});
  const std::string text = TensorsToString({y}, {});
  EXPECT_NE(text.find("xla::all_gather(%1, %0), num_outputs=2, xla_shape=(f32[2,8]{1,0}, f32[]), dim=1, shard_count=2, "
                      "groups=(0, 1, -1, 2, 3), pin_layout=1"),
            std::string::npos)
      << text;
  const Tensor z = ReduceScatter(ReduceType::kSum, y, 1, 1);
  const std::string hlo = Hlo({z});
  EXPECT_NE(hlo.find("all-gather(%add), replica_groups={{0,1},{2,3}}, dimensions={1}"), std::string::npos) << hlo;
  EXPECT_NE(hlo.find("reduce-scatter("), std::string::npos) << hlo;
  const std::pair<int64_t, int64_t> ring[] = {{0, 1}, {1, 0}};
  EXPECT_NE(Hlo({CollectivePermute(x, ring)}).find("source_target_pairs={{0,1},{1,0}}"), std::string::npos);
  EXPECT_NE(Hlo({AllToAll(x, 1, 0, 4)}).find("all-to-all("), std::string::npos);
}

TEST_F(CollectivesTest, WrongArgumentsAreErrors) {
  const Tensor x = F32({3, 4}, std::vector<float>(12));
  const auto message = [&](const Tensor& result) {
    EXPECT_FALSE(result.defined());
    const std::string text(tracer.status().message());
    tracer.ClearStatus();
    return text;
  };
  EXPECT_EQ(message(AllGather(x, 2)),
            "xla::all_gather: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  EXPECT_EQ(message(AllGather(x, 0, {{0, 1}, {2}})), "xla::all_gather: groups have different sizes");
  EXPECT_EQ(message(AllGather(x, 0, {{0, 0}})), "xla::all_gather: ordinal 0 is none of 4, or in several groups");
  EXPECT_EQ(message(ReduceScatter(ReduceType::kSum, x, 1, 0)),
            "xla::reduce_scatter: dimension 0 of size 3 is not divisible by 4 shards");
  EXPECT_EQ(message(AllToAll(x, 1, 0, 2)),
            "xla::all_to_all: cannot split dimension 1 of size 4 into 2 parts for groups of 4");
  const std::pair<int64_t, int64_t> beyond[] = {{0, 4}};
  EXPECT_EQ(message(CollectivePermute(x, beyond)), "xla::collective_permute: pair (0, 4) is beyond 4 ordinals");
}

TEST_F(CollectivesTest, ThreadsMeetAndExchangeTexts) {
  std::vector<std::vector<std::string>> payloads(kDevices);
  std::vector<std::thread> threads;
  for (int d = 0; d < kDevices; ++d) {
    threads.emplace_back([&, d] {
      DeviceState* const device = tracer.device(d);
      payloads[d] = *Rendezvous(device, "names", std::string(1, static_cast<char>('a' + d)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int d = 0; d < kDevices; ++d) {
    EXPECT_EQ(payloads[d], (std::vector<std::string>{"a", "b", "c", "d"}));
  }
}

TEST(RendezvousTest, ADeviceThatDoesNotComeIsNamed) {
  TracerOptions options = FourDevices();
  options.client.num_devices = 2;
  options.client.collective_timeout_seconds = 0.05;
  Tracer tracer(options);
  EXPECT_EQ(Rendezvous(tracer.device(0), "start").status().message(),
            "a rendezvous at `start` waited 0.05 s for device 1");
}

TEST_F(TracingTest, OneDeviceCommunicatesWithNobody) {
  const Tensor x = Vector({1, 2});
  EXPECT_TRUE(SameTensor(AllGather(x), x));
  EXPECT_EQ(Values(ReduceScatter(ReduceType::kSum, x, 2, 0)), (Rows{2, 4}));
  EXPECT_EQ(*Rendezvous(tracer.device(), "alone", "x"), std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace hlokit::lazy
