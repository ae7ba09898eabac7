// SPDX-License-Identifier: Apache-2.0
// Steps, caches and counters: recompilation, re-execution, sharing.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "ir/digest/digest.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tracer/tracing.h"
#include "tracer/observe/profiling.h"
#include "tracer/step/executor.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {
namespace {

using StepTest = TracingTest;

TEST_F(StepTest, EqualStepsCompileOnce) {
  Tensor x = Vector({1, 2, 3});
  for (int i = 0; i < 4; ++i) {
    x = x * Scalar(1.5) + Scalar(2.5);
    ASSERT_TRUE(tracer.MarkStep().ok());
  }
  EXPECT_EQ(Counter("UncachedCompile"), 1);
  EXPECT_EQ(Counter("CachedCompile"), 3);
  EXPECT_EQ(Counter("MarkStep"), 4);
}

TEST_F(StepTest, ALearningRateThatChangesDoesNotCompileAgain) {
  Tensor w = Vector({1, 2});
  for (double rate : {0.5, 0.25, 0.125, 0.0625, 0.03}) {
    w = w - Vector({1, 1}) * Scalar(rate);
    ASSERT_TRUE(tracer.MarkStep().ok());
  }
  EXPECT_EQ(Counter("UncachedCompile"), 1);
}

TEST_F(StepTest, ANumberThatBecomesOneCompilesAgain) {
  for (double factor : {2.0, 3.0, 1.0}) {
    const Tensor y = Vector({1, 2}) * Scalar(factor);
    ASSERT_TRUE(tracer.MarkStep().ok());
    EXPECT_EQ(Values(y)[1], 2 * factor);
  }
  EXPECT_EQ(Counter("UncachedCompile"), 2);
}

TEST_F(StepTest, FiveSizesMakeThreePrograms) {
  for (int64_t n : {3, 3, 4, 5, 4}) {
    const Tensor y = Relu(F32({n}, std::vector<float>(static_cast<size_t>(n), 1)));
    ASSERT_TRUE(tracer.MarkStep().ok());
  }
  EXPECT_EQ(Counter("UncachedCompile"), 3);
  EXPECT_EQ(Counter("CachedCompile"), 2);
}

// The same ops on the same shapes, but other operands: (a * b) + c and (a * c) + b after a, b and c were used in one
// order.
TEST_F(StepTest, GraphsThatDifferInWhichOperandIsWhichAreNotConfused) {
  const Tensor a = F32({2, 2}, {1, 2, 3, 4}), b = F32({2, 2}, {5, 6, 7, 8}), c = F32({2, 2}, {9, 1, 2, 3});
  const auto run = [&](const Tensor& y, const Tensor& z) {
    const Tensor ta = T(a), tb = T(b), tc = T(c);
    const Tensor result = a * y + z;
    EXPECT_TRUE(tracer.MarkStep().ok());
    return Values(result);
  };
  EXPECT_EQ(run(b, c), (std::vector<double>{14, 13, 23, 35}));
  EXPECT_EQ(run(c, b), (std::vector<double>{14, 8, 13, 20}));
  EXPECT_EQ(Counter("UncachedCompile"), 2);
}

TEST_F(StepTest, OneTensorTwiceIsAnotherProgramThanTwoTensors) {
  const Tensor a = Vector({1, 2}), b = Vector({3, 4});
  const Tensor twice = a + a;
  ASSERT_TRUE(tracer.MarkStep().ok());
  const Tensor both = a + b;
  ASSERT_TRUE(tracer.MarkStep().ok());
  EXPECT_EQ(Counter("UncachedCompile"), 2);
  EXPECT_EQ(Values(twice), (std::vector<double>{2, 4}));
  EXPECT_EQ(Values(both), (std::vector<double>{4, 6}));
}

TEST_F(StepTest, PrintingThreeTimesRunsOnce) {
  const Tensor y = Exp(Vector({0, 0}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Values(y), (std::vector<double>{1, 1}));
  EXPECT_EQ(Samples("ExecuteTime"), 1);
}

TEST_F(StepTest, AnItemIsComputedAgainByTheStep) {
  const Tensor y = Sum(Vector({1, 2, 3}));
  absl::StatusOr<Scalar> value = y.Item();
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->ToDouble(), 6);
  EXPECT_EQ(Counter("aten::_local_scalar_dense"), 1);
  ASSERT_TRUE(tracer.MarkStep(nullptr, /*wait=*/true).ok());
  EXPECT_EQ(Samples("ExecuteTime"), 2);
  // The fetch and the step are two programs: they differ in the buffers that they may reuse.
  EXPECT_EQ(Counter("UncachedCompile"), 2);
}

TEST_F(StepTest, NumbersAreUploadedOnce) {
  Tensor x = Vector({1, 2});
  ASSERT_TRUE(tracer.MarkStep().ok());
  const int64_t before = Samples("TransferToDeviceTime");
  for (int i = 0; i < 3; ++i) {
    x = x * Scalar(0.1);
    ASSERT_TRUE(tracer.MarkStep().ok());
  }
  EXPECT_EQ(Samples("TransferToDeviceTime"), before + 1);
}

TEST_F(StepTest, AWriteInPlaceGivesItsBufferAway) {
  const Tensor p = Vector({1, 2}), q = Vector({3, 4});
  WriteInPlace(p, p + Scalar(1));
  WriteInPlace(q, q + Scalar(1));
  const Tensor fresh = p + q;
  ASSERT_TRUE(tracer.MarkStep().ok());
  const std::optional<runtime::MetricData> m = tracer.metrics().metric("InputOutputAliasCount");
  ASSERT_TRUE(m.has_value());
  EXPECT_EQ(m->accumulator, 2);
  EXPECT_EQ(Values(fresh), (std::vector<double>{6, 8}));
}

TEST_F(StepTest, TextAfterAStepIsOneLeaf) {
  const Tensor y = Vector({1, 2}) + Vector({1, 2});
  ASSERT_TRUE(tracer.MarkStep().ok());
  EXPECT_EQ(TensorsToString({y}),
            "IR {\n  %0 = f32[2]{0} xla::device_data(), xla_shape=f32[2]{0}, device=CPU:0, ROOT=0\n}\n");
}

TEST_F(StepTest, TheLastOperandIsNumberedFirst) {
  const Tensor y = Add(Vector({1}), Vector({2}));
  EXPECT_EQ(TensorsToString({y}, {/*torch_xla_quirks=*/true}),
            "IR {\n"
            "  %0 = f32[] prim::Constant(), xla_shape=f32[]\n"
            "  %1 = f32[1]{0} xla::device_data(), xla_shape=f32[1]{0}\n"
            "  %2 = f32[1]{0} xla::device_data(), xla_shape=f32[1]{0}\n"
            "  %3 = f32[1]{0} aten::add(%2, %1, %0), xla_shape=f32[1]{0}, ROOT=0\n"
            "}\n");
}

TEST_F(StepTest, AStepTraceMarksTheStepAtItsEnd) {
  Tensor y;
  {
    const StepTrace trace(&tracer, "train", 0);
    y = Exp(Vector({0}));
    EXPECT_EQ(CurrentScope(), "train.1");
  }
  EXPECT_EQ(Counter("MarkStep"), 1);
  EXPECT_EQ(CurrentScope(), "");
  ASSERT_TRUE(tracer.status().ok()) << tracer.status().message();
  EXPECT_EQ(Values(y), std::vector<double>{1});
  EXPECT_EQ(Samples("ExecuteTime"), 1);
}

TEST_F(StepTest, ErrorsArePassedOnAndReportedOnce) {
  const Tensor bad = Vector({1, 2}) + Vector({1, 2, 3});
  EXPECT_FALSE(bad.defined());
  EXPECT_FALSE(Relu(bad).defined());
  const absl::Status status = tracer.MarkStep();
  EXPECT_NE(status.message().find("must match the size of tensor b"), std::string::npos) << status.message();
}

TEST_F(StepTest, AnOpenScopeIsAnErrorAtTheStep) {
  const ScopedTrace scope("conv1");
  EXPECT_EQ(tracer.MarkStep().message(), "Expecting scope to be empty but it is conv1.1");
}

TEST_F(StepTest, MemoryOfManyPendingNodesIsReleasedAtTheStep) {
  Tensor x = Vector({1});
  for (int i = 0; i < 100000; ++i) x = x + Scalar(1);
  EXPECT_EQ(Values(x)[0], 100001);
  ASSERT_TRUE(tracer.MarkStep().ok());
  EXPECT_EQ(tracer.device()->graph().size(), 0u);
}

TEST(PersistentCacheTest, TheSecondSessionLoadsWhatTheFirstCompiled) {
  const TemporaryFolder directory;
  for (int session = 0; session < 2; ++session) {
    TracerOptions options;
    options.client.evaluator.num_threads = 1;
    options.persistent_cache.location = directory.path().string();
    Tracer tracer(options);
    const DeviceGuard guard(tracer.device());
    const Tensor y = Sum(Full({3}, 0.5, ElementType::kF32) + Scalar(2.5));
    absl::StatusOr<Scalar> value = y.Item();
    ASSERT_TRUE(value.ok());
    EXPECT_EQ(value->ToDouble(), 9);
    EXPECT_EQ(tracer.metrics().counter("PersistentCacheHit").value_or(0), session);
    EXPECT_EQ(tracer.metrics().counter("PersistentCacheMiss").value_or(0), 1 - session);
    EXPECT_EQ(tracer.persistent_cache()->warning(), "");
  }
}

// Replaces the program of the one entry of a cache by another text, and the checksum with it.
void ReplaceProgram(const std::filesystem::path& directory, std::string_view text) {
  std::filesystem::path entry;
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory)) {
    if (file.is_regular_file()) entry = file.path();
  }
  std::ifstream in(entry, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  constexpr size_t kSizeOffset = 80;  // the last field of the header
  uint64_t size;
  std::memcpy(&size, bytes.data() + kSizeOffset, sizeof(size));
  bytes.resize(bytes.size() - sizeof(Digest) - size);
  bytes += text;
  size = text.size();
  std::memcpy(bytes.data() + kSizeOffset, &size, sizeof(size));
  const Digest sum = DigestOf(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  std::ofstream(entry, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(PersistentCacheTest, AProgramThatIsNotTheGraphsIsAMiss) {
  const TemporaryFolder directory;
  int session = 0;
  const auto run = [&](int64_t hits, std::string_view warning) {
    TracerOptions options;
    options.client.evaluator.num_threads = 1;
    options.persistent_cache.location = directory.path().string();
    options.persistent_cache.quiet = true;
    Tracer tracer(options);
    const DeviceGuard guard(tracer.device());
    const Tensor y = Full({4}, 0.5, ElementType::kF32) + Scalar(2.5);
    const absl::StatusOr<Literal> value = y.ToLiteral();
    ASSERT_TRUE(value.ok()) << value.status();
    ASSERT_EQ(value->element_count(), 4);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(LoadScalar(ElementType::kF32, value->data() + 4 * i).ToDouble(), 3) << "session " << session;
    }
    EXPECT_EQ(tracer.metrics().counter("PersistentCacheHit").value_or(0), hits) << "session " << session;
    EXPECT_EQ(tracer.metrics().counter("PersistentCacheMiss").value_or(0), 1 - hits) << "session " << session;
    const std::string found = tracer.persistent_cache()->warning();
    EXPECT_EQ(warning.empty(), found.empty()) << found;
    EXPECT_NE(found.find(warning), std::string::npos) << found;
    ++session;
  };
  run(0, "");
  run(1, "");
  const std::pair<std::string_view, std::string_view> programs[] = {
      {"no module", " is not used: "},
      {"HloModule m\nENTRY e { ROOT c = f64[400] iota(), iota_dimension=0 }", " is not used: "},
      {"HloModule m\nENTRY e {\n  c = f64[400] iota(), iota_dimension=0\n  ROOT t = (f64[400]) tuple(c)\n}",
       " is not used: "},
      {"HloModule m\nENTRY e {\n  c = f32[5] iota(), iota_dimension=0\n  ROOT t = (f32[5]) tuple(c)\n}",
       " is not used: "},
      {"HloModule m\nENTRY e {\n  c = f32[4] iota(), iota_dimension=0\n  ROOT t = (f32[4], f32[4]) tuple(c, c)\n}",
       " is not used: "},
      {"HloModule m\nENTRY e {\n  p = f32[7] parameter(0)\n  c = f32[4] iota(), iota_dimension=0\n  ROOT t = (f32[4]) "
       "tuple(c)\n}",
       " is not used: "},
      // It does not verify.
      {"HloModule m\nENTRY e {\n  c = f32[4] iota(), iota_dimension=3\n  ROOT t = (f32[4]) tuple(c)\n}",
       " is not used: "},
  };
  for (const auto& [program, warning] : programs) {
    ReplaceProgram(directory.path(), program);
    run(0, warning);
    run(1, "");  // written again
  }
}

TEST(LimitTest, NodesBytesAndTimeEndARecording) {
  const auto error_of = [](const std::function<void(TracerOptions*)>& set, bool mark_steps) {
    TracerOptions options;
    options.report = [](std::string_view) {};
    set(&options);
    Tracer tracer(options);
    const DeviceGuard guard(tracer.device());
    Tensor x = Full({2}, 1, ElementType::kF32);
    absl::Status status;
    for (int64_t i = 0; i < 1'000'000 && status.ok() && tracer.status().ok(); ++i) {
      x = x * Scalar(1.5) + Scalar(0.5);
      if (mark_steps) status = tracer.MarkStep();
    }
    if (status.ok()) status = tracer.status();
    return std::string(status.message());
  };
  const std::string of_nodes = error_of([](TracerOptions* o) { o->max_pending_nodes = 1000; }, false);
  EXPECT_NE(of_nodes.find("and no step was marked since step 0: the limit is 1000 nodes"), std::string::npos)
      << of_nodes;
  const std::string of_bytes =
      error_of([](TracerOptions* o) { o->client.evaluator.limits.max_bytes = 20'480'000; }, false);
  EXPECT_NE(of_bytes.find(" bytes; the limit is 20480000 bytes (--max-bytes)"), std::string::npos) << of_bytes;
  for (const bool mark_steps : {false, true}) {
    EXPECT_EQ(error_of([](TracerOptions* o) { o->client.evaluator.limits.max_seconds = 0.05; }, mark_steps),
              "the program exceeded the time limit of 0.05 s (--max-seconds)");
  }
}

// Four threads count up, each on a separate device or all on the first.
void CountInThreads(int devices) {
  TracerOptions options;
  options.client.num_devices = devices;
  options.client.evaluator.num_threads = 1;
  Tracer tracer(options);
  std::vector<double> results(4);
  std::vector<std::thread> threads;
  for (int d = 0; d < 4; ++d) {
    threads.emplace_back([&, d] {
      const DeviceGuard guard(tracer.device(d % devices));
      Tensor x = Full({}, d, ElementType::kF32);
      for (int i = 0; i < 20; ++i) {
        x = x + Scalar(1);
        if (i % 5 == 4) {
          EXPECT_TRUE(tracer.MarkStep().ok());
        }
      }
      absl::StatusOr<Scalar> value = x.Item();
      results[d] = value.ok() ? value->ToDouble() : -1;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(results, (std::vector<double>{20, 21, 22, 23}));
}

TEST(DevicesTest, ThreadsTraceOnOneDevice) { CountInThreads(1); }

TEST(DevicesTest, ThreadsTraceOnDevicesOfTheirOwn) { CountInThreads(4); }

TEST_F(StepTest, EqualNumbersOfAnAttributeAreOneProgram) {
  const Tensor x = Vector({-1, 2});
  EXPECT_EQ(Values(InvokeOp(Op::leaky_relu, x, 2)), (std::vector<double>{-2, 2}));
  EXPECT_EQ(Values(InvokeOp(Op::leaky_relu, x, 2.0)), (std::vector<double>{-2, 2}));
  EXPECT_EQ(Counter("UncachedCompile"), 1);
}

}  // namespace
}  // namespace hlokit::lazy
