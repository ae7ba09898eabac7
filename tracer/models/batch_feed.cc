// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/batch_feed.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <thread>
#include <utility>

#include "io/metrics/metrics.h"
#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "runtime/observe/profiler.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::models {
namespace {

constexpr int64_t kMaxWorkers = 256, kMaxPrefetch = 10000;
constexpr double kMaxCostSeconds = 3600;
constexpr std::string_view kLoaderKeys[] = {"workers", "prefetch", "cost"};
constexpr std::pair<std::string_view, double> kTimeUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

absl::Status SetLoaderKey(std::string_view key, std::string_view text, LoaderOptions* options) {
  const auto bad = [&](std::string_view expected) {
    return absl::InvalidArgumentError(StrCat("`", key, ":", text, "`: expected ", expected));
  };
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = error == std::errc() && value >= 0;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (key == "cost") {
    const auto* const row = std::find_if(std::begin(kTimeUnits), std::end(kTimeUnits),
                                         [&](const auto& time) { return time.first == unit; });
    const bool zero = unit.empty() && value == 0;
    if (!number || (row == std::end(kTimeUnits) && !zero)) return bad("a time such as 40ms");
    const double seconds = zero ? 0 : value * row->second;
    if (!(seconds <= kMaxCostSeconds)) return bad("a time of at most an hour");
    options->cost = std::chrono::nanoseconds(std::llround(seconds * 1e9));
    return absl::OkStatus();
  }
  if (std::find(std::begin(kLoaderKeys), std::end(kLoaderKeys), key) == std::end(kLoaderKeys)) {
    return absl::InvalidArgumentError(StrCat("unknown key `", key, "`", DidYouMeanSuffix(key, LoaderOptionNames())));
  }
  const bool workers = key == "workers";
  const int64_t least = workers ? 1 : 0, most = workers ? kMaxWorkers : kMaxPrefetch;
  if (!number || !unit.empty() || value != std::floor(value) || value < static_cast<double>(least) ||
      value > static_cast<double>(most)) {
    return bad(StrCat("an integer from ", least, " to ", most));
  }
  (workers ? options->workers : options->prefetch) = static_cast<int64_t>(value);
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string_view> LoaderOptionNames() { return {std::begin(kLoaderKeys), std::end(kLoaderKeys)}; }

absl::StatusOr<LoaderOptions> ParseLoaderOptions(std::string_view text) {
  LoaderOptions options;
  do {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const size_t colon = item.find(':');
    if (colon == std::string_view::npos) {
      return absl::InvalidArgumentError(StrCat("expected KEY:VALUE, found `", item, "`"));
    }
    if (absl::Status s = SetLoaderKey(item.substr(0, colon), item.substr(colon + 1), &options); !s.ok()) return s;
  } while (!text.empty());
  return options;
}

BatchFeed::BatchFeed(Tracer* tracer, DeviceState* device, const Model& model, const FeedOptions& options,
                     const FeedRange& range)
    : tracer_(*tracer), device_(device), arrays_(model.BatchArrays()), options_(options), range_(range) {
  if (!options_.loader || options_.loader->prefetch == 0) return;
  nn::DeviceLoaderOptions loader;
  loader.batches_per_execution = range_.batches_per_step;
  loader.workers = static_cast<int>(options_.loader->workers);
  loader.loader_prefetch = loader.device_prefetch = static_cast<size_t>(options_.loader->prefetch);
  loader.batches = range_.batches;
  loader.batch_cost = options_.loader->cost;
  loader_ = std::make_unique<nn::DeviceLoader>(
      tracer, device,
      [this](int64_t number) -> absl::StatusOr<std::optional<std::vector<Literal>>> {
        absl::StatusOr<std::vector<Literal>> batch = Make(number);
        if (!batch.ok()) return batch.status();
        return std::optional<std::vector<Literal>>(*std::move(batch));
      },
      loader);
}

absl::StatusOr<std::vector<Literal>> BatchFeed::Make(int64_t number) const {
  const int64_t first = range_.first + number * range_.stride;
  std::vector<Literal> batch;
  for (size_t i = 0; i < arrays_.size(); ++i) {
    batch.push_back(Literal::Zeros(arrays_[i].shape));
    if (options_.dataset == nullptr) {
      arrays_[i].fill(first, &batch.back());
    } else if (absl::Status s = options_.dataset->Read(i, first, &batch.back()); !s.ok()) {
      return s;
    }
  }
  return batch;
}

absl::StatusOr<Batch> BatchFeed::Next() {
  if (loader_ != nullptr) {
    if (!taken_) {
      absl::StatusOr<std::optional<Tensors>> batch = loader_->Next();
      if (!batch.ok()) return batch.status();
      taken_ = *std::move(batch);
    }
    Batch batch = BatchOf(*std::move(taken_));
    taken_.reset();
    return batch;
  }
  const int64_t number = next_++;
  Tensors tensors;
  if (!options_.advances()) {
    for (const BatchArray& array : arrays_) {
      const int64_t first = range_.first + number * range_.stride;
      tensors.push_back(
          tracer_.FromGenerator(array.shape, [fill = array.fill, first](Literal* out) { fill(first, out); }));
    }
    return BatchOf(std::move(tensors));
  }
  absl::StatusOr<std::vector<Literal>> batch = std::vector<Literal>();
  {
    runtime::TraceMe span("cpu_loader.next");
    if (options_.loader && options_.loader->cost.count() > 0) span.SetCost(options_.loader->cost.count());
    const runtime::TimedSection timed(&tracer_.metrics(), "LoaderBatchTime");
    batch = Make(number);
    const bool waits = !tracer_.client().options().defer_executions;
    if (options_.loader && waits) std::this_thread::sleep_for(options_.loader->cost);
  }
  if (!batch.ok()) return batch.status();
  for (Literal& array : *batch) tensors.push_back(tracer_.FromLiteral(std::move(array)));
  return BatchOf(std::move(tensors));
}

absl::Status BatchFeed::EndStep() {
  if (loader_ == nullptr) return tracer_.MarkStep(device_);
  absl::StatusOr<std::optional<Tensors>> batch = loader_->Next();
  if (!batch.ok()) return batch.status();
  taken_ = *std::move(batch);
  return absl::OkStatus();
}

}  // namespace hlokit::lazy::models
