// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/host_rendezvous.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
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

bool HostRendezvous::Wait(std::unique_lock<std::mutex>& lock, const Round& round) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPoll(100);
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(std::min(timeout_seconds_, 1e9)));
  const auto over = [&] { return round.arrived == devices_ || ReasonToEnd(round) != nullptr; };
  while (!over()) {
    const auto now = Clock::now();
    if (now >= end) return false;
    if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) return true;
    changed_.wait_until(lock, cancel_ == nullptr ? end : std::min(end, now + kPoll), over);
  }
  return true;
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
  if (++round->arrived == devices_) {
    open_.erase(open_.find(tag));  // the tag may be used again
    changed_.notify_all();
  } else if (const bool in_time = Wait(lock, *round); !in_time || round->arrived != devices_) {
    const std::string* const why = ReasonToEnd(*round);
    round->payloads[device].reset();
    --round->arrived;
    if (why != nullptr) return absl::AbortedError(*why);
    if (in_time) return absl::CancelledError(StrCat("canceled while it waited at `", std::string(tag), "`"));
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
