// SPDX-License-Identifier: Apache-2.0
#include "runtime/client/rendezvous.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include "absl/strings/str_format.h"
#include "interp/processes/world.h"
#include "ir/core/cancelable_wait.h"
#include "ir/core/str_cat.h"

namespace hlokit::runtime {

std::string Rendezvous::Missing(const Round& round) {
  std::string text;
  for (size_t i = 0; i < round.arrivals.size(); ++i) {
    if (!round.arrivals[i].here) StrAppend(&text, text.empty() ? "" : ", ", i);
  }
  return text;
}

const absl::Status* Rendezvous::FindAborted(const Round& round) {
  for (const Arrival& a : round.arrivals) {
    if (!a.status.ok()) return &a.status;
  }
  return nullptr;
}

// Enters the device's next round of its session: its n-th one is also the n-th one of all others, though it may be done
// without the device.
std::shared_ptr<Rendezvous::Round> Rendezvous::Join(size_t device, const Arrival& arrival) {
  DeviceSession& state = states_[device];
  const int64_t number = state.rounds++;
  const auto is_next = [&](const std::shared_ptr<Round>& m) {
    return m->session == state.session && m->first <= number && number <= m->number;
  };
  auto at = std::find_if(rounds_.begin(), rounds_.end(), is_next);
  if (at == rounds_.end()) {
    LimitRounds();
    at = rounds_.insert(rounds_.end(), std::make_shared<Round>(devices_, state.session, number));
  }
  const std::shared_ptr<Round> round = *at;
  if (round->done) {
    DropRounds();
  } else {
    round->arrivals[device] = arrival;
  }
  return round;
}

void Rendezvous::DropRounds() {
  std::erase_if(rounds_, [&](const std::shared_ptr<Round>& round) {
    return round->done && std::none_of(states_.begin(), states_.end(), [&](const DeviceSession& state) {
             return state.session < round->session ||
                    (state.session == round->session && !state.left && state.rounds <= round->number);
           });
  });
}

// A device may abort any number of rounds before the others arrive. These can only end with its errors, so they end
// early; of the two oldest ones that are done, the later stands for both.
void Rendezvous::LimitRounds() {
  if (rounds_.size() < kMaxRounds) return;
  const std::deque<std::shared_ptr<Round>> open = rounds_;
  for (const std::shared_ptr<Round>& round : open) {
    if (!round->done && FindAborted(*round) != nullptr) CompleteRound(round, nullptr);
  }
  for (size_t i = 0; rounds_.size() >= kMaxRounds && i < rounds_.size(); ++i) {
    if (!rounds_[i]->done) continue;
    const auto next = std::find_if(rounds_.begin() + static_cast<std::ptrdiff_t>(i) + 1, rounds_.end(),
                                   [&](const auto& round) { return round->session == rounds_[i]->session; });
    if (next == rounds_.end() || !(*next)->done) continue;
    (*next)->first = rounds_[i]->first;
    rounds_.erase(rounds_.begin() + static_cast<std::ptrdiff_t>(i--));
  }
}

const std::string* Rendezvous::ReasonToEnd(const Round& round) const {
  for (size_t d = 0; d < devices_; ++d) {
    if (round.arrivals[d].here) continue;
    const DeviceSession& state = states_[d];
    if (state.session == round.session && state.left) return &*state.left;
    if (state.session > round.session) return &state.left_before;
  }
  return nullptr;
}

// Runs the program on the arguments of all devices.
absl::Status Rendezvous::RunFor(Round& round, const Program& program) {
  std::vector<const Literal*> arguments;
  interp::DonatedArguments together;
  for (const Arrival& a : round.arrivals) {
    arguments.insert(arguments.end(), a.arguments.begin(), a.arguments.end());
    together.donated.insert(together.donated.end(), a.donation->donated.begin(), a.donation->donated.end());
  }
  absl::StatusOr<std::vector<Literal>> results = program.run(arguments, &together);
  if (!results.ok()) return results.status();
  round.context = program.module->shared_context();
  const size_t devices = round.arrivals.size();
  const size_t each = results->size() / devices;
  round.results.resize(devices);
  for (size_t d = 0, first = 0; d < devices; first += round.arrivals[d++].arguments.size()) {
    std::vector<int64_t>& taken = round.arrivals[d].donation->aliased_argument;
    taken.clear();
    for (size_t i = d * each; i < (d + 1) * each; ++i) {
      round.results[d].push_back(std::move((*results)[i]));
      const int64_t from = together.aliased_argument[i];
      taken.push_back(from < 0 ? -1 : from - static_cast<int64_t>(first));
    }
  }
  return absl::OkStatus();
}

// Runs the program of each device. No donated argument is reused.
absl::Status Rendezvous::RunDifferent(Round& round, const Program& program) {
  std::vector<Digest> digests;
  std::vector<const Module*> modules;
  std::vector<CombinedProgram::Arguments> arguments;
  for (const Arrival& a : round.arrivals) {
    const auto equal = std::find(digests.begin(), digests.end(), a.program);
    modules.push_back(equal == digests.end() ? a.module : modules[static_cast<size_t>(equal - digests.begin())]);
    digests.push_back(a.program);
    arguments.push_back(a.arguments);
    a.donation->aliased_argument.clear();
  }
  auto found =
      std::find_if(combined_.begin(), combined_.end(), [&](const auto& entry) { return entry.first == digests; });
  if (found == combined_.end()) {
    absl::StatusOr<std::shared_ptr<CombinedProgram>> whole = program.combine(modules);
    if (!whole.ok()) return whole.status();
    if (combined_.size() == kMaxCombined) combined_.pop_front();
    found = combined_.insert(combined_.end(), {std::move(digests), *std::move(whole)});
  }
  absl::StatusOr<std::vector<std::vector<Literal>>> results = found->second->Run(arguments);
  if (!results.ok()) return results.status();
  round.results = *std::move(results);
  round.context = found->second->context();
  return absl::OkStatus();
}

// A round that ran out of memory ends with that: its arguments are those of devices that do not wait for ever.
absl::Status Rendezvous::RunTogether(Round& round, const Program& program, bool different) {
  try {
    return different ? RunDifferent(round, program) : RunFor(round, program);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("execution failed: out of memory");
  }
}

absl::Status Rendezvous::StatusOf(Round& round, const Program* program) {
  const std::vector<Arrival>& arrivals = round.arrivals;
  if (const absl::Status* aborted = FindAborted(round)) return *aborted;
  if (const std::string* why = ReasonToEnd(round)) return absl::AbortedError(*why);
  if (const std::string missing = Missing(round); !missing.empty()) {
    if (CancelFlag(cancel_)()) return absl::CancelledError(StrCat("canceled while it waited for device ", missing));
    return absl::DeadlineExceededError(
        absl::StrFormat("a program with collectives waited %g s for device %s", timeout_seconds_, missing));
  }
  const bool different =
      std::any_of(arrivals.begin(), arrivals.end(), [&](const Arrival& a) { return a.program != arrivals[0].program; });
  return RunTogether(round, *program, different);
}

// Of several processes, each has a round for its devices; the n-th ones of all are one.
void Rendezvous::CompleteRound(const std::shared_ptr<Round>& round, const Program* program) {
  if (world_ != nullptr) {
    const bool runs = program != nullptr && Missing(*round).empty() && FindAborted(*round) == nullptr;
    world_->BeginRun(runs ? program->number : 0, runs ? program->module->name() : std::string_view());
  }
  round->status = StatusOf(*round, program);
  if (world_ != nullptr) world_->EndRun(round->status);
  for (Arrival& a : round->arrivals) {
    a.module = nullptr;
    a.arguments = {};
    a.donation = nullptr;
  }
  round->done = true;
  DropRounds();
  changed_.notify_all();
}

absl::StatusOr<Rendezvous::Results> Rendezvous::ArriveAndWait(size_t device, const Program& program,
                                                              absl::Span<const Literal* const> arguments,
                                                              interp::DonatedArguments* donation) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::shared_ptr<Round> round =
      Join(device, {true, absl::OkStatus(), program.digest, program.module, arguments, donation});
  if (round->done) return round->status;  // with an error: the device was missing
  const auto done = [&] { return round->done; };
  if (Missing(*round).empty() || ReasonToEnd(*round) != nullptr ||
      CancelableWait(changed_, lock, timeout_seconds_, done, CancelFlag(cancel_)) != WaitResult::kDone) {
    CompleteRound(round, &program);
  }
  if (!round->status.ok()) return round->status;
  return Results{std::move(round->results[device]), round->context};
}

void Rendezvous::Abort(size_t device, absl::Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  const absl::Status named(status.code(), StrCat("device ", device, " failed: ", std::string(status.message())));
  const std::shared_ptr<Round> round = Join(device, {true, named, Digest(), nullptr, {}, nullptr});
  if (round->done) return;
  if (Missing(*round).empty() || ReasonToEnd(*round) != nullptr) CompleteRound(round, nullptr);
}

// Ends the rounds of a session that wait for a device that will not come.
void Rendezvous::EndRoundsWithout(size_t device, int64_t session) {
  const std::deque<std::shared_ptr<Round>> open = rounds_;
  for (const std::shared_ptr<Round>& round : open) {
    if (!round->done && round->session == session && !round->arrivals[device].here) CompleteRound(round, nullptr);
  }
  DropRounds();
}

void Rendezvous::Leave(size_t device, std::string why) {
  std::lock_guard<std::mutex> lock(mutex_);
  DeviceSession& state = states_[device];
  state.left = std::move(why);
  EndRoundsWithout(device, state.session);
}

void Rendezvous::NextSession(size_t device) {
  std::lock_guard<std::mutex> lock(mutex_);
  DeviceSession& state = states_[device];
  ++state.session;
  state.rounds = 0;
  state.left_before = state.left ? std::move(*state.left) : StrCat("device ", device, " has ended");
  state.left.reset();
  EndRoundsWithout(device, state.session - 1);
}

}  // namespace hlokit::runtime
