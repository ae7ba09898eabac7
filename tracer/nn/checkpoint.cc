// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/checkpoint.h"

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "io/arrays/safetensors.h"
#include "ir/core/str_cat.h"
#include "tracer/nn/state_dict.h"

namespace hlokit::lazy::nn {
namespace {

constexpr std::string_view kFormat = "hlokit training checkpoint 1";
constexpr std::string_view kModel = "model.", kOptimizer = "optimizer.";

std::string DevicePrefix(size_t device) { return StrCat("device.", device, "."); }

// Returns the tensors of a device that are part of the file, without their prefix.
const std::vector<NamedTensor>& TensorsOf(const TrainingState& state, size_t device) {
  return device == 0 ? state.registry->state() : state.registry->buffers();
}

absl::Status Append(absl::Span<const NamedTensor> tensors, std::string_view prefix,
                    std::vector<interp::NamedValue>* values) {
  absl::StatusOr<std::vector<interp::NamedValue>> fetched = FetchState(tensors);
  if (!fetched.ok()) return fetched.status();
  for (interp::NamedValue& value : *fetched) values->push_back({StrCat(prefix, value.name), std::move(value.value)});
  return absl::OkStatus();
}

// Returns the values whose names begin with the prefix, without it.
std::vector<interp::NamedValue> Part(const std::vector<interp::NamedValue>& values, std::string_view prefix) {
  std::vector<interp::NamedValue> part;
  for (const interp::NamedValue& value : values) {
    if (value.name.starts_with(prefix)) part.push_back({value.name.substr(prefix.size()), value.value});
  }
  return part;
}

std::string_view Find(const interp::SafetensorsFile& file, std::string_view name) {
  for (const auto& [key, value] : file.metadata) {
    if (key == name) return value;
  }
  return {};
}

std::optional<int64_t> FindNumber(const interp::SafetensorsFile& file, std::string_view name) {
  const std::string_view text = Find(file, name);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

absl::Status SaveCheckpoint(const std::string& path, std::string_view optimizer,
                            absl::Span<const TrainingState> devices) {
  std::vector<interp::NamedValue> values;
  std::vector<std::pair<std::string, std::string>> metadata = {{"format", std::string(kFormat)},
                                                               {"optimizer", std::string(optimizer)},
                                                               {"steps", StrCat(devices[0].scheduler->steps())}};
  for (size_t d = 0; d < devices.size(); ++d) {
    const TrainingState& state = devices[d];
    const DeviceGuard guard(state.device);
    const std::string prefix = d == 0 ? std::string(kModel) : DevicePrefix(d);
    if (absl::Status s = Append(TensorsOf(state, d), prefix, &values); !s.ok()) return s;
    metadata.emplace_back(StrCat("seed.", d), StrCat(state.device->seed()));
  }
  const DeviceGuard guard(devices[0].device);
  if (absl::Status s = Append(devices[0].optimizer->State(), kOptimizer, &values); !s.ok()) return s;
  return interp::WriteSafetensors(path, values, metadata);
}

absl::Status LoadCheckpoint(const std::string& path, std::string_view optimizer,
                            absl::Span<const TrainingState> devices) {
  Context context;
  const absl::StatusOr<interp::SafetensorsFile> file = interp::ReadSafetensors(path, &context);
  if (!file.ok()) return file.status();
  const auto error = [&](const std::string& what) { return absl::InvalidArgumentError(StrCat(path, ": ", what)); };
  if (Find(*file, "format") != kFormat) return error("not a checkpoint of a training");
  if (const std::string_view saved = Find(*file, "optimizer"); saved != optimizer) {
    return error(StrCat("the checkpoint is of the optimizer ", saved, ", not ", optimizer));
  }
  const std::optional<int64_t> steps = FindNumber(*file, "steps");
  if (!steps || *steps < 0) return error("the checkpoint has no valid number of steps");
  if (!FindNumber(*file, StrCat("seed.", devices.size() - 1)) || FindNumber(*file, StrCat("seed.", devices.size()))) {
    return error(StrCat("the checkpoint is not of ", Counted(devices.size(), "device")));
  }
  const std::vector<interp::NamedValue> model = Part(file->tensors, kModel), state = Part(file->tensors, kOptimizer);
  for (size_t d = 0; d < devices.size(); ++d) {
    const TrainingState& to = devices[d];
    const DeviceGuard guard(to.device);
    if (absl::Status s = LoadState(to.registry->state(), model); !s.ok()) return error(std::string(s.message()));
    if (d > 0) {
      const std::vector<interp::NamedValue> own = Part(file->tensors, DevicePrefix(d));
      if (absl::Status s = LoadState(to.registry->buffers(), own); !s.ok()) return error(std::string(s.message()));
    }
    if (absl::Status s = to.optimizer->LoadState(state); !s.ok()) return error(std::string(s.message()));
    to.scheduler->set_steps(*steps);
    const std::optional<int64_t> seed = FindNumber(*file, StrCat("seed.", d));
    if (!seed) return error(StrCat("the checkpoint has no seed of device ", d));
    DeviceLock lock(to.device->mutex());
    to.device->SetSeed(*seed);
  }
  return absl::OkStatus();
}

}  // namespace hlokit::lazy::nn
