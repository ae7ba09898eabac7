// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/state_dict.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy::nn {
namespace {

std::string Quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) StrAppend(&text, text.empty() ? "\"" : ", \"", name, "\"");
  return text;
}

}  // namespace

absl::StatusOr<std::vector<interp::NamedValue>> FetchState(absl::Span<const NamedTensor> tensors) {
  std::vector<interp::NamedValue> values;
  if (tensors.empty()) return values;
  Tensors all;
  for (const NamedTensor& t : tensors) {
    RefreshView(t.tensor);
    all.push_back(t.tensor);
  }
  if (absl::Status status = SyncTensors(*all[0].device(), all, /*wait=*/true); !status.ok()) return status;
  for (const NamedTensor& t : tensors) {
    absl::StatusOr<Literal> value = t.tensor.ToLiteral();
    if (!value.ok()) return value.status();
    values.push_back({t.name, *std::move(value)});
  }
  return values;
}

absl::Status LoadState(absl::Span<const NamedTensor> tensors, absl::Span<const interp::NamedValue> values,
                       bool strict) {
  absl::flat_hash_map<std::string, const interp::NamedValue*> by_name;
  for (const interp::NamedValue& value : values) by_name.emplace(value.name, &value);
  std::vector<std::string> missing, unexpected, errors;
  for (const NamedTensor& t : tensors) {
    const auto it = by_name.find(t.name);
    if (it == by_name.end()) {
      missing.push_back(t.name);
      continue;
    }
    const absl::Span<const int64_t> sizes = it->second->value.shape().dims();
    if (sizes != t.tensor.sizes()) {
      errors.push_back(StrCat("size mismatch for ", t.name, ": copying a param with shape ", SizeToString(sizes),
                              " from checkpoint, the shape in current model is ", SizeToString(t.tensor.sizes()), "."));
    }
  }
  if (strict) {
    absl::flat_hash_map<std::string, bool> known;
    for (const NamedTensor& t : tensors) known.emplace(t.name, true);
    for (const interp::NamedValue& value : values) {
      if (!known.contains(value.name)) unexpected.push_back(value.name);
    }
    if (!unexpected.empty()) {
      errors.insert(errors.begin(), StrCat("Unexpected key(s) in state_dict: ", Quoted(unexpected), ". "));
    }
    if (!missing.empty()) {
      errors.insert(errors.begin(), StrCat("Missing key(s) in state_dict: ", Quoted(missing), ". "));
    }
  }
  if (!errors.empty()) {
    std::string text = "Error(s) in loading state_dict:";
    for (const std::string& error : errors) StrAppend(&text, "\n\t", error);
    return absl::InvalidArgumentError(text);
  }
  const NoGradGuard no_grad;
  for (const NamedTensor& t : tensors) {
    const auto it = by_name.find(t.name);
    if (it == by_name.end()) continue;
    DeviceState* const device = t.tensor.device();
    const DeviceGuard guard(device);
    WriteInPlace(t.tensor, device->tracer()->FromLiteral(Converted(it->second->value, t.tensor.shape())));
  }
  return absl::OkStatus();
}

absl::Status SaveState(const std::string& path, absl::Span<const NamedTensor> tensors, bool master_only) {
  absl::StatusOr<std::vector<interp::NamedValue>> values = FetchState(tensors);
  if (!values.ok()) return values.status();
  const bool master = tensors.empty() || tensors[0].tensor.device()->device()->ordinal() == 0;
  return master || !master_only ? interp::WriteSafetensors(path, *values) : absl::OkStatus();
}

absl::Status LoadState(const std::string& path, absl::Span<const NamedTensor> tensors, bool strict) {
  Context context;
  absl::StatusOr<interp::SafetensorsFile> file = interp::ReadSafetensors(path, &context);
  if (!file.ok()) return file.status();
  return LoadState(tensors, file->tensors, strict);
}

}  // namespace hlokit::lazy::nn
