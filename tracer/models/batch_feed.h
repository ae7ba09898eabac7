// SPDX-License-Identifier: Apache-2.0
// The batches of a run of a model, one after another: made by the thread of the program, or by a loader ahead of it.
#ifndef HLOKIT_TRACER_MODELS_BATCH_FEED_H_
#define HLOKIT_TRACER_MODELS_BATCH_FEED_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracer/models/dataset.h"
#include "tracer/models/model.h"
#include "tracer/nn/device_loader.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy::models {

struct LoaderOptions {
  int64_t workers = 1;               // threads that make batches
  int64_t prefetch = 2;              // batches made and sent ahead; 0: the thread of the program makes and sends them
  std::chrono::nanoseconds cost{0};  // of a batch, in addition to the time that making it takes
};
// Parses "workers:2,prefetch:2,cost:40ms": any of these, times in ns, us, ms, s.
absl::StatusOr<LoaderOptions> ParseLoaderOptions(std::string_view text);
// Returns the keys of ParseLoaderOptions.
std::vector<std::string_view> LoaderOptionNames();

struct FeedOptions {
  std::optional<LoaderOptions> loader;     // none: the thread of the program makes each batch
  std::shared_ptr<const Dataset> dataset;  // null: the model's pseudo-random examples

  // Returns false if training repeats one batch.
  bool advances() const { return loader || dataset != nullptr; }
};

// The examples of a run.
struct FeedRange {
  int64_t first = 0;   // the first example
  int64_t stride = 0;  // examples from a batch to the next
  int64_t batches = std::numeric_limits<int64_t>::max();
  int64_t batches_per_step = 1;
};

class BatchFeed {
 public:
  // Requires: `device` is the current device of this thread, here and in Next.
  BatchFeed(Tracer* tracer, DeviceState* device, const Model& model, const FeedOptions& options,
            const FeedRange& range);

  // Returns the next batch. Requires: it is not beyond the last.
  absl::StatusOr<Batch> Next();
  // Marks a step. A loader does so as it returns the first batch of the next one.
  absl::Status EndStep();

 private:
  absl::StatusOr<std::vector<Literal>> Make(int64_t number) const;

  Tracer& tracer_;
  DeviceState* const device_;
  const std::vector<BatchArray> arrays_;
  const FeedOptions options_;
  const FeedRange range_;
  int64_t next_ = 0;
  std::optional<Tensors> taken_;              // by EndStep
  std::unique_ptr<nn::DeviceLoader> loader_;  // its threads use the members above
};

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_BATCH_FEED_H_
