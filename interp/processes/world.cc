// SPDX-License-Identifier: Apache-2.0
#include "interp/processes/world.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "ir/core/double_text.h"
#include "ir/core/hashing.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"

namespace hlokit::interp {
namespace {

constexpr int kValuesTag = 2;

}  // namespace

void PauseBetweenPolls(int64_t polls) {
  constexpr int64_t kBusy = 2000, kYielding = 4000;
  constexpr useconds_t kPause = 50;
  if (polls < kBusy) return;
  if (polls < kYielding) {
    sched_yield();
  } else {
    usleep(kPause);
  }
}

int World::ProcessOf(int64_t device, int64_t devices) const {
  int rank = static_cast<int>(device * size() / devices);
  while (rank > 0 && FirstDevice(devices, rank) > device) --rank;
  while (rank + 1 < size() && FirstDevice(devices, rank + 1) <= device) ++rank;
  return rank;
}

std::vector<int64_t> World::OwnDevices(int64_t devices) const {
  std::vector<int64_t> own;
  for (int64_t d = FirstDevice(devices, rank()); d < FirstDevice(devices, rank() + 1); ++d) own.push_back(d);
  return own;
}

void World::ResetOperations() {
  for (auto& [devices, processes] : groups_) processes.operations = processes.waits_in = 0;
}

absl::StatusOr<ProcessGroup*> World::GroupOf(absl::Span<const int64_t> group, int64_t devices) {
  const auto [at, is_new] = groups_.try_emplace({std::vector<int64_t>(group.begin(), group.end()), devices});
  ProcessGroup& processes = at->second;
  if (!is_new) return &processes;
  for (int64_t device : group) processes.ranks.push_back(ProcessOf(device, devices));
  std::sort(processes.ranks.begin(), processes.ranks.end());
  processes.ranks.erase(std::unique(processes.ranks.begin(), processes.ranks.end()), processes.ranks.end());
  const auto self = std::find(processes.ranks.begin(), processes.ranks.end(), rank());
  processes.self = static_cast<size_t>(self - processes.ranks.begin());
  processes.members_of.resize(processes.ranks.size());
  for (size_t m = 0; m < group.size(); ++m) {
    const auto process = std::lower_bound(processes.ranks.begin(), processes.ranks.end(), ProcessOf(group[m], devices));
    processes.process_of.push_back(static_cast<size_t>(process - processes.ranks.begin()));
    processes.members_of[processes.process_of.back()].push_back(m);
  }
  if (processes.ranks.size() == 1) return &processes;
  std::string named(reinterpret_cast<const char*>(&devices), sizeof(devices));
  named.append(reinterpret_cast<const char*>(group.data()), group.size() * sizeof(int64_t));
  BeginCall("a communicator of the processes of a group");
  processes.communicator = transport_->CreateCommunicator(processes.ranks.data(),
                                                          static_cast<int>(processes.ranks.size()), HashBytes(named));
  EndCall();
  if (processes.communicator >= 0) return &processes;
  groups_.erase(at);
  return Error();
}

double World::LimitOf(int64_t bytes) const {
  // Of the slowest network: more than 10 Mb/s.
  constexpr double kSecondsPerByte = 1e-6;
  return timeout_seconds_ + static_cast<double>(bytes) * kSecondsPerByte;
}

World::Waiting::~Waiting() {
  if (reported_) world_.ReportProgress({});
}

absl::Status World::Waiting::Pause() {
  constexpr int64_t kPollsPerLook = 64;
  PauseBetweenPolls(polls_);
  if (++polls_ % kPollsPerLook != 0) return absl::OkStatus();
  const Clock::time_point now = Clock::now();
  const auto seconds_since = [&](Clock::time_point then) { return std::chrono::duration<double>(now - then).count(); };
  if (polls_ == kPollsPerLook) reported_at_ = now;
  if (seconds_since(reported_at_) < kIdleSeconds) return absl::OkStatus();
  reported_at_ = now;
  reported_ = true;
  world_.ReportIdle({});
  std::vector<DeviceState> states;
  if (!world_.AllWait(&states)) return absl::OkStatus();
  // Told again and again while it lasts.
  constexpr double kMaxSecondsBetween = 10;
  if (seconds_since(all_wait_at_) > kMaxSecondsBetween) all_wait_since_ = now;
  all_wait_at_ = now;
  if (seconds_since(all_wait_since_) < world_.LimitOf(bytes_)) return absl::OkStatus();
  return absl::DeadlineExceededError(StrCat("all processes wait, and this one for ", bytes_,
                                            " bytes that have not come within ", FormatDouble(world_.LimitOf(bytes_)),
                                            " s"));
}

absl::Status World::Wait(Transport::Request request, int64_t bytes) {
  if (request < 0) return Error();
  Waiting waiting(this, bytes);
  for (;;) {
    const int done = transport_->Test(request);
    if (done < 0) return Error();
    if (done > 0) return absl::OkStatus();
    if (absl::Status s = waiting.Pause(); !s.ok()) return s;
  }
}

absl::StatusOr<std::string> World::ReceiveFrom(int rank, int tag) {
  int source = rank;
  int64_t bytes = -1;
  {
    Waiting waiting(this, 0);
    while ((bytes = transport_->Probe(rank, tag, &source)) < 0) {
      if (absl::Status s = waiting.Pause(); !s.ok()) return s;
    }
  }
  std::string message(static_cast<size_t>(bytes), '\0');
  if (absl::Status s = Wait(transport_->Receive(source, tag, message.data(), bytes), bytes); !s.ok()) return s;
  return message;
}

absl::Status World::Flush() {
  Waiting waiting(this, 0);
  for (;;) {
    const int done = transport_->TestSent();
    if (done < 0) return Error();
    if (done > 0) return absl::OkStatus();
    if (absl::Status s = waiting.Pause(); !s.ok()) return s;
  }
}

uint64_t World::ProgramOf(const Module& module) const { return Fingerprint(module).low; }

absl::Status World::CheckProgram(uint64_t program) {
  const absl::StatusOr<std::vector<std::string>> all =
      AllGatherBytes(std::string(reinterpret_cast<const char*>(&program), sizeof(program)));
  if (!all.ok()) return all.status();
  for (size_t r = 0; r < all->size(); ++r) {
    if ((*all)[r] != (*all)[static_cast<size_t>(rank())]) {
      return absl::FailedPreconditionError(StrCat("process ", r, " runs another program"));
    }
  }
  return absl::OkStatus();
}

absl::Status World::GatherValues(int64_t devices, size_t each, absl::Span<const Shape> shapes,
                                 std::vector<Literal>* values) {
  if (rank() != 0) {
    for (const Literal& value : *values) {
      const auto bytes = static_cast<int64_t>(value.size_bytes());
      if (bytes > 0 && !transport_->Send(0, kValuesTag, value.data(), bytes)) return Error();
    }
    return absl::OkStatus();
  }
  for (int r = 1; r < size(); ++r) {
    const auto count = static_cast<size_t>(FirstDevice(devices, r + 1) - FirstDevice(devices, r)) * each;
    for (size_t i = 0; i < count; ++i) {
      Literal value = Literal::Zeros(shapes[i % each]);
      if (value.size_bytes() > 0) {
        const absl::StatusOr<std::string> bytes = ReceiveFrom(r, kValuesTag);
        if (!bytes.ok()) return bytes.status();
        if (bytes->size() != value.size_bytes()) return absl::InternalError("a value of another size than its shape");
        std::memcpy(value.data(), bytes->data(), bytes->size());
      }
      values->push_back(std::move(value));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> World::AllGatherBytes(const std::string& bytes) {
  const auto count = static_cast<size_t>(size());
  const auto own = static_cast<int64_t>(bytes.size());
  std::vector<int64_t> sizes(count);
  if (absl::Status s = Wait(transport_->Allgather(Transport::kAll, &own, sizeof(own), sizes.data()), sizeof(own));
      !s.ok())
    return s;
  std::vector<Transport::Range> from(count);
  int64_t total = 0;
  for (size_t r = 0; r < count; ++r) {
    from[r] = {total, sizes[r]};
    total += sizes[r];
  }
  std::string together(static_cast<size_t>(total), '\0');
  absl::Status status =
      Wait(transport_->Allgatherv(Transport::kAll, bytes.data(), together.data(), from.data(), total), total);
  if (!status.ok()) return status;
  std::vector<std::string> all;
  for (const Transport::Range& r : from) {
    all.push_back(together.substr(static_cast<size_t>(r.begin), static_cast<size_t>(r.bytes)));
  }
  return all;
}

}  // namespace hlokit::interp
