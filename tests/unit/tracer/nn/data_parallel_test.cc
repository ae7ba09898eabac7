// SPDX-License-Identifier: Apache-2.0
// Several devices of one process: all-reduce, data-parallel training, loaders.
#include "tracer/nn/data_parallel.h"

#include <future>
#include <mutex>
#include <thread>

#include "tests/unit/temporary_folder.h"
#include "tests/unit/tracer/tracing.h"
#include "tracer/models/model.h"
#include "tracer/models/training.h"
#include "tracer/nn/device_loader.h"
#include "tracer/nn/state_dict.h"
#include "tracer/ops/collective.h"
#include "tracer/step/executor.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {
namespace {

TracerOptions Devices(int count) {
  TracerOptions options;
  options.client.evaluator.num_threads = 1;
  options.client.num_devices = count;
  return options;
}

class TwoDevicesTest : public TracingTest {
 protected:
  TwoDevicesTest() : TracingTest(Devices(2)) {}
};

TEST_F(TwoDevicesTest, AnAllReduceGivesEachDeviceTheSum) {
  std::vector<Tensors> sums;
  for (int d = 0; d < 2; ++d) {
    const DeviceGuard on(tracer.device(d));
    const Tensor x = Vector({1.0f + static_cast<float>(d), 10});
    sums.push_back(AllReduce(ReduceType::kSum, {x, x * Scalar(3)}, 0.5));
    ASSERT_TRUE(tracer.MarkStep(tracer.device(d)).ok());
  }
  ASSERT_TRUE(tracer.Wait().ok());
  for (const Tensors& sum : sums) {
    EXPECT_EQ(Values(sum[0]), (std::vector<double>{1.5, 10}));
    EXPECT_EQ(Values(sum[1]), (std::vector<double>{4.5, 30}));
  }
  EXPECT_EQ(Counter("ExecuteReplicated"), 2);
}

TEST_F(TwoDevicesTest, ItsLazyIrAndHlo) {
  const Tensor x = Vector({1, 2});
  const Tensors first = AllReduce(ReduceType::kSum, {x}, 0.5), second = AllReduce(ReduceType::kMax, {first[0]});
  EXPECT_EQ(TensorsToString({second[0]}, {}),
            "IR {\n"
            "  %0 = f32[] xla::device_data(), xla_shape=f32[], device=CPU:0\n"
            "  %1 = f32[2]{0} xla::device_data(), xla_shape=f32[2]{0}, device=CPU:0\n"
            "  %2 = (f32[2]{0}, f32[]) xla::cross_replica_sum(%1, %0), num_outputs=2, xla_shape=(f32[2]{0}, f32[]), "
            "reduce_type=0, scale=0.5, pin_layout=1, groups=()\n"
            "  %3 = (f32[2]{0}, f32[]) xla::cross_replica_sum(%2.0, %2.1), num_outputs=2, xla_shape=(f32[2]{0}, "
            "f32[]), reduce_type=5, scale=1, pin_layout=1, groups=(), ROOT=0\n"
            "}\n");
}

TEST_F(TwoDevicesTest, AStepWithACollectiveWritesIntoTheBuffersItOverwrites) {
  constexpr int64_t kCount = 4096;
  Tensors w, g;
  std::vector<const std::byte*> bytes;
  for (int d = 0; d < 2; ++d) {
    const DeviceGuard on(tracer.device(d));
    w.push_back(F32({kCount}, std::vector<float>(kCount, 100)));
    g.push_back(F32({kCount}, std::vector<float>(kCount, 1.0f + static_cast<float>(d))));
    bytes.push_back(w[d].impl()->data->buffer->literal().data());
  }
  for (int step = 0; step < 3; ++step) {
    for (int d = 0; d < 2; ++d) {
      const DeviceGuard on(tracer.device(d));
      WriteInPlace(w[d], w[d] - AllReduce(ReduceType::kSum, {g[d]})[0]);
      ASSERT_TRUE(tracer.MarkStep(tracer.device(d)).ok());
    }
  }
  ASSERT_TRUE(tracer.Wait().ok());
  for (int d = 0; d < 2; ++d) {
    EXPECT_EQ(w[d].impl()->data->buffer->literal().data(), bytes[d]);
    EXPECT_EQ(Values(w[d])[kCount - 1], 91);
    EXPECT_EQ(Values(g[d])[0], 1 + d);
  }
}

TEST_F(TwoDevicesTest, ProgramsThatDifferBetweenCollectivesMeetAtThem) {
  Tensors sums;
  for (int d = 0; d < 2; ++d) {
    const DeviceGuard on(tracer.device(d));
    const Tensor x = Vector({1, 2});
    sums.push_back(AllReduce(ReduceType::kSum, {d == 0 ? x : x + x})[0]);
    if (d == 0) sums[0] = sums[0] * Scalar(10.0);
    ASSERT_TRUE(tracer.MarkStep(tracer.device(d)).ok());
  }
  ASSERT_TRUE(tracer.Wait().ok());
  EXPECT_EQ(Values(sums[0]), (std::vector<double>{30, 60}));
  EXPECT_EQ(Values(sums[1]), (std::vector<double>{3, 6}));
}

TEST_F(TwoDevicesTest, DifferentCollectivesAreAnError) {
  for (int d = 0; d < 2; ++d) {
    const DeviceGuard on(tracer.device(d));
    const Tensor x = Vector({1, 2});
    const Tensors sum = AllReduce(d == 0 ? ReduceType::kSum : ReduceType::kMax, {x});
    ASSERT_TRUE(tracer.MarkStep(tracer.device(d)).ok());
  }
  const std::string message(tracer.Wait().message());
  EXPECT_TRUE(message.starts_with(
      "devices entered a collective with different programs: collective 1 of device 0 is all-reduce of"))
      << message;
}

TEST(CollectiveTest, ADeviceThatDoesNotComeIsNamed) {
  TracerOptions options = Devices(3);
  options.client.collective_timeout_seconds = 0.5;
  Tracer tracer(options);
  for (int d : {0, 2}) {
    const DeviceGuard on(tracer.device(d));
    const Tensors sum = AllReduce(ReduceType::kSum, {Full({2}, 3, ElementType::kF32)});
    ASSERT_TRUE(tracer.MarkStep(tracer.device(d)).ok());
  }
  EXPECT_EQ(tracer.Wait().message(), "a program with collectives waited 0.5 s for device 1");
}

TEST(CollectiveTest, ProgramsWithCollectivesAreKeptInTheFolder) {
  TracerOptions options = Devices(2);
  const TemporaryFolder directory;
  options.persistent_cache.location = directory.path().string();
  for (const int hits : {0, 1}) {  // the second device has the program of the first
    Tracer tracer(options);
    std::vector<Tensor> sums;
    for (int d = 0; d < 2; ++d) {
      const DeviceGuard on(tracer.device(d));
      const Tensor x = Full({2}, 3 + d, ElementType::kF32);
      sums.push_back(AllReduce(ReduceType::kSum, {x})[0]);
      ASSERT_TRUE(tracer.MarkStep(tracer.device(d)).ok());
    }
    const absl::Status done = tracer.Wait();
    ASSERT_TRUE(done.ok()) << done.message();
    for (const Tensor& sum : sums) EXPECT_EQ(LoadScalar(ElementType::kF32, sum.ToLiteral()->data()).ToDouble(), 7);
    EXPECT_EQ(tracer.metrics().counter("PersistentCacheHit").value_or(0), hits);
    EXPECT_EQ(tracer.metrics().counter("ExecuteReplicated").value_or(0), 2);
  }
}

// ---- data-parallel training ----

class DataParallelTest : public ::testing::Test {
 protected:
  static constexpr int64_t kBatch = 8;

  struct Replica {
    explicit Replica(Tracer* tracer)
        : registry(tracer, ElementType::kF32, nn::PatternInitializer(InitPattern::kHash, 6)),
          model(models::MakeModel(
              *models::Complete({.name = "mlp", .batch = kBatch, .image = 4, .classes = 5, .hidden = 16}), &registry)),
          all(model->MakeBatch(*tracer)) {
      Tensors parameters;
      for (const nn::NamedTensor& p : registry.parameters()) parameters.push_back(p.tensor);
      optimizer = std::make_unique<nn::Sgd>(parameters, nn::SgdOptions{.lr = 0.1, .momentum = 0.9});
    }
    // Each device's shard is data, not part of its program.
    Tensor Part(const Tensor& t, int64_t begin, int64_t end) {
      return registry.tracer()->FromLiteral(*Slice(t, 0, begin, end).ToLiteral());
    }
    // Runs a step on examples [begin, end).
    absl::Status Step(int64_t begin, int64_t end) {
      optimizer->ZeroGrad();
      const models::Batch part = {{Part(all.inputs[0], begin, end)}, Part(all.labels, begin, end)};
      if (absl::Status s = model->Loss(model->Logits(part, true), part).Backward(); !s.ok()) return s;
      nn::ReduceGradients(*optimizer);
      optimizer->Step();
      return registry.tracer()->MarkStep(optimizer->parameters()[0].device());
    }

    nn::ParameterRegistry registry;
    std::unique_ptr<models::Model> model;
    models::Batch all;
    std::unique_ptr<nn::Sgd> optimizer;
  };

  // Returns the parameters of device 0 after four steps on a number of devices, each in a separate thread or in turn.
  static std::vector<interp::NamedValue> Train(int devices, bool threads, Context* context) {
    Tracer tracer(Devices(devices));
    std::vector<std::unique_ptr<Replica>> replicas;
    for (int d = 0; d < devices; ++d) {
      const DeviceGuard on(tracer.device(d));
      replicas.push_back(std::make_unique<Replica>(&tracer));
    }
    const auto steps = [&](int d, int count) {
      const DeviceGuard on(tracer.device(d));
      const int64_t share = kBatch / devices;
      for (int i = 0; i < count; ++i) EXPECT_TRUE(replicas[d]->Step(d * share, (d + 1) * share).ok());
    };
    if (threads) {
      std::vector<std::thread> running;
      for (int d = 0; d < devices; ++d) running.emplace_back(steps, d, 4);
      for (std::thread& t : running) t.join();
    } else {
      for (int i = 0; i < 4; ++i) {
        for (int d = 0; d < devices; ++d) steps(d, 1);
      }
    }
    const absl::Status done = tracer.Wait();
    EXPECT_TRUE(done.ok()) << done.message();
    // Replicas stay equal, bit by bit.
    const std::vector<interp::NamedValue> first = *nn::FetchState(replicas[0]->registry.state());
    for (int d = 1; d < devices; ++d) {
      const std::vector<interp::NamedValue> other = *nn::FetchState(replicas[d]->registry.state());
      for (size_t i = 0; i < first.size(); ++i) {
        EXPECT_EQ(std::memcmp(first[i].value.data(), other[i].value.data(), first[i].value.size_bytes()), 0);
      }
    }
    absl::StatusOr<interp::SafetensorsFile> own = interp::DecodeSafetensors(*interp::EncodeSafetensors(first), context);
    return std::move(own->tensors);
  }
};

TEST_F(DataParallelTest, TrainingOnSeveralDevicesIsTrainingOnTheWholeBatch) {
  Context context;
  const std::vector<interp::NamedValue> one = Train(1, false, &context);
  for (int devices : {2, 4}) {
    for (bool threads : {false, true}) {
      const std::vector<interp::NamedValue> many = Train(devices, threads, &context);
      ASSERT_EQ(one.size(), many.size());
      for (size_t i = 0; i < one.size(); ++i) {
        for (size_t k = 0; k < one[i].value.values<float>().size(); ++k) {
          EXPECT_NEAR(one[i].value.values<float>()[k], many[i].value.values<float>()[k], 2e-6) << one[i].name;
        }
      }
    }
  }
}

TEST(ReplicasTest, FiguresOfATrainingOnSeveralDevicesAreThoseOfOne) {
  std::vector<std::vector<models::TrainingMetric>> figures;
  for (const int devices : {1, 4}) {
    Tracer tracer(Devices(devices));
    std::vector<std::unique_ptr<nn::ParameterRegistry>> registries;
    std::vector<std::unique_ptr<models::Model>> made;
    std::vector<models::Replica> replicas;
    for (int d = 0; d < devices; ++d) {
      const DeviceGuard on(tracer.device(d));
      registries.push_back(std::make_unique<nn::ParameterRegistry>(&tracer, ElementType::kF32,
                                                                   nn::PatternInitializer(InitPattern::kHash, 6)));
      models::ModelConfig config = *models::Complete({.name = "mlp", .image = 4, .classes = 5, .hidden = 16});
      config.batch = 8 / devices;
      made.push_back(models::MakeModel(config, registries.back().get()));
      replicas.push_back({tracer.device(d), made.back().get(), registries.back().get(), d * config.batch});
    }
    models::TrainingOptions training;
    training.steps = 3;
    training.lr = 0.1;
    absl::StatusOr<std::vector<models::TrainingMetric>> trained = models::Train(tracer, replicas, training);
    ASSERT_TRUE(trained.ok()) << trained.status().message();
    figures.push_back(*std::move(trained));
  }
  ASSERT_EQ(figures[0].size(), figures[1].size());
  for (size_t i = 0; i < figures[0].size(); ++i) {
    EXPECT_EQ(figures[0][i].key, figures[1][i].key);
    // Sums of logits cover only device 0's shard.
    if (figures[0][i].key.starts_with("logit")) continue;
    EXPECT_NEAR(figures[0][i].value, figures[1][i].value, 1e-5) << figures[0][i].key;
  }
}

// ---- loaders ----

class DeviceLoaderTest : public TracingTest {
 protected:
  // Returns batches of one number, 0 to count - 1; then, with `fails`, an error.
  nn::DeviceLoader::Source Count(int count, bool fails = false) {
    return [this, count, fails](int64_t number) -> absl::StatusOr<std::optional<std::vector<Literal>>> {
      ++made_;
      if (number == count && fails) return absl::DataLossError("batch 3 is damaged");
      if (number >= count) return std::optional<std::vector<Literal>>();
      std::vector<Literal> batch;
      std::lock_guard<std::mutex> lock(mutex_);
      batch.push_back(FilledLiteral(context_.shapes.Array(ElementType::kF32, {1}), static_cast<double>(number)));
      return std::optional<std::vector<Literal>>(std::move(batch));
    };
  }

  Context context_;
  std::mutex mutex_;
  std::atomic<int> made_{0};
};

TEST_F(DeviceLoaderTest, BatchesComeInOrderAndEachIsAStep) {
  for (int threads : {1, 3}) {
    nn::DeviceLoader loader(&tracer, tracer.device(), Count(10), {.workers = threads, .transfer_threads = threads});
    Tensor sum = Vector({0});
    int count = 0;
    const int64_t steps = Counter("MarkStep");
    while (true) {
      absl::StatusOr<std::optional<Tensors>> batch = loader.Next();
      ASSERT_TRUE(batch.ok());
      if (!*batch) break;
      EXPECT_EQ(Counter("MarkStep") - steps, count);
      sum = sum * Scalar(2) + (**batch)[0];
      ++count;
    }
    EXPECT_EQ(count, 10);
    EXPECT_EQ(Counter("MarkStep") - steps, 10);
    EXPECT_EQ(Values(sum), (std::vector<double>{1013}));  // 2^9 * 0 + 2^8 * 1 + ... + 9
  }
}

TEST_F(DeviceLoaderTest, SeveralBatchesMayShareAStep) {
  nn::DeviceLoader loader(&tracer, tracer.device(), Count(7), {.batches_per_execution = 3});
  while (loader.Next()->has_value()) {
  }
  EXPECT_EQ(Counter("MarkStep"), 3);
}

TEST_F(DeviceLoaderTest, UploadAndTracingGoOnWhileTheDeviceIsBusy) {
  // The first execution blocks the device.
  std::promise<void> go;
  tracer.device()->device()->Enqueue([wait = go.get_future().share()] {
    wait.wait();
    return absl::OkStatus();
  });
  nn::DeviceLoader loader(&tracer, tracer.device(), Count(6));
  Tensors results;
  for (int i = 0; i < 6; ++i) {
    absl::StatusOr<std::optional<Tensors>> batch = loader.Next();
    ASSERT_TRUE(batch.ok() && *batch);
    results.push_back((**batch)[0] * Scalar(10));
  }
  ASSERT_FALSE((*loader.Next()).has_value());
  EXPECT_EQ(Counter("MarkStep"), 6);     // all steps are traced and pending
  EXPECT_EQ(Samples("ExecuteTime"), 0);  // none has run
  go.set_value();
  EXPECT_EQ(Values(results[5]), (std::vector<double>{50}));
}

TEST_F(DeviceLoaderTest, ItMakesOnlySoManyBatchesAhead) {
  nn::DeviceLoader loader(&tracer, tracer.device(), Count(100),
                          {.workers = 2, .loader_prefetch = 5, .device_prefetch = 3});
  ASSERT_TRUE(loader.Next().ok());
  for (int i = 0; made_ < 1 + 5 && i < 6000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(made_, 1 + 5);          // returned, ahead
  ASSERT_TRUE(loader.Next().ok());  // destroying the loader stops it midway
}

TEST_F(DeviceLoaderTest, AnErrorComesInItsPlace) {
  nn::DeviceLoader loader(&tracer, tracer.device(), Count(3, /*fails=*/true));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(loader.Next().ok());
  EXPECT_EQ(loader.Next().status().message(), "batch 3 is damaged");
  EXPECT_FALSE((*loader.Next()).has_value());
}

}  // namespace
}  // namespace hlokit::lazy
