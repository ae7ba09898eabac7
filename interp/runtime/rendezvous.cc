#include "interp/runtime/rendezvous.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "ir/str_cat.h"

namespace hlokit::runtime {

std::string Rendezvous::Missing() const {
  std::string text;
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    if (!arrivals_[i].here) StrAppend(&text, text.empty() ? "" : ", ", i);
  }
  return text;
}

// Ends the meeting that gathers, and opens the next.
void Rendezvous::Conclude(const Program& run) {
  const std::shared_ptr<Outcome> outcome = std::exchange(outcome_, std::make_shared<Outcome>());
  const auto declined =
      std::find_if(arrivals_.begin(), arrivals_.end(), [](const Arrival& a) { return !a.status.ok(); });
  if (declined != arrivals_.end()) {
    outcome->status = declined->status;
  } else if (const std::string missing = Missing(); !missing.empty()) {
    outcome->status = absl::DeadlineExceededError(
        absl::StrFormat("a program with collectives waited %g s for device %s", patience_seconds_, missing));
  } else if (std::any_of(arrivals_.begin(), arrivals_.end(),
                         [&](const Arrival& a) { return a.program != arrivals_[0].program; })) {
    outcome->status = absl::FailedPreconditionError("devices came to a collective with different programs");
  } else {
    std::vector<const Literal*> all;
    for (const Arrival& a : arrivals_) all.insert(all.end(), a.arguments.begin(), a.arguments.end());
    absl::StatusOr<std::vector<Literal>> results = run(all);
    outcome->status = results.status();
    if (results.ok()) {
      const size_t each = results->size() / arrivals_.size();
      outcome->results.resize(arrivals_.size());
      for (size_t i = 0; i < results->size(); ++i) outcome->results[i / each].push_back(std::move((*results)[i]));
    }
  }
  for (Arrival& a : arrivals_) a = Arrival();
  outcome->done = true;
  changed_.notify_all();
}

absl::StatusOr<std::vector<Literal>> Rendezvous::Meet(size_t device, const Digest& program, const Program& run,
                                                      std::vector<const Literal*> arguments) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::shared_ptr<Outcome> outcome = outcome_;
  arrivals_[device] = {true, absl::OkStatus(), program, std::move(arguments)};
  if (Missing().empty()) {
    Conclude(run);
  } else if (!changed_.wait_for(lock, std::chrono::duration<double>(patience_seconds_),
                                [&] { return outcome->done; })) {
    Conclude(run);
  }
  if (!outcome->status.ok()) return outcome->status;
  return std::move(outcome->results[device]);
}

void Rendezvous::Decline(size_t device, absl::Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  arrivals_[device] = {true, std::move(status), Digest(), {}};
  if (Missing().empty()) Conclude(nullptr);
}

}  // namespace hlokit::runtime
