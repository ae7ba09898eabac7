// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/host_rendezvous.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "ir/core/cancelable_wait.h"
#include "ir/core/str_cat.h"

namespace hlokit::lazy {

const std::string* HostRendezvous::ReasonToEnd(const Round& round) const {
  for (size_t d = 0; d < devices_; ++d) {
    if (!round.payloads[d].has_value() && left_[d]) return &*left_[d];
  }
  return nullptr;
}

void HostRendezvous::Leave(size_t device, std::string why) {
  std::lock_guard<std::mutex> lock(mutex_);
  left_[device] = std::move(why);
  changed_.notify_all();
}

void HostRendezvous::NextSession() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::fill(left_.begin(), left_.end(), std::nullopt);
  open_.clear();
}

absl::StatusOr<std::vector<std::string>> HostRendezvous::Meet(size_t device, std::string_view tag,
                                                              std::string payload) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::shared_ptr<Round>& open = open_[std::string(tag)];
  if (open == nullptr) {
    open = std::make_shared<Round>();
    open->payloads.resize(devices_);
  }
  const std::shared_ptr<Round> round = open;
  if (round->payloads[device].has_value()) {
    return absl::FailedPreconditionError(
        StrCat("device ", static_cast<int64_t>(device), " arrived twice at `", tag, "` before the others"));
  }
  round->payloads[device] = std::move(payload);
  ++round->arrived;
  const auto over = [&] { return round->arrived == devices_ || ReasonToEnd(*round) != nullptr; };
  if (round->arrived == devices_) {
    open_.erase(open_.find(tag));  // the tag may be used again
    changed_.notify_all();
  } else if (const WaitResult waited = CancelableWait(changed_, lock, timeout_seconds_, over, CancelFlag(cancel_));
             round->arrived != devices_) {
    const std::string* const why = ReasonToEnd(*round);
    round->payloads[device].reset();
    --round->arrived;
    if (why != nullptr) return absl::AbortedError(*why);
    if (waited == WaitResult::kCanceled) {
      return absl::CancelledError(StrCat("canceled while it waited at `", std::string(tag), "`"));
    }
    std::string missing;
    for (size_t d = 0; d < devices_; ++d) {
      if (d != device && !round->payloads[d].has_value())
        StrAppend(&missing, missing.empty() ? "" : ", ", static_cast<int64_t>(d));
    }
    return absl::DeadlineExceededError(
        absl::StrFormat("a rendezvous at `%s` waited %g s for device %s", std::string(tag), timeout_seconds_, missing));
  }
  std::vector<std::string> all;
  for (const std::optional<std::string>& one : round->payloads) all.push_back(*one);
  return all;
}

}  // namespace hlokit::lazy
