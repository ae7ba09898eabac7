// SPDX-License-Identifier: Apache-2.0
#include "interp/runtime/observe/profiler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>

#include "ir/core/str_cat.h"

namespace hlokit::runtime {

namespace {

// Current session: 0 for none, else a unique number.
std::atomic<uint64_t> current_session{0};

struct Recorder {
  std::mutex mutex;
  uint64_t last_session = 0;
  ProfilerOptions options;
  Profile profile;
  std::map<uint64_t, uint32_t> numbers;  // number in this profile, by thread
};

Recorder& TheRecorder() {
  static Recorder* const recorder = new Recorder;  // never destroyed: threads may outlive main
  return *recorder;
}

std::atomic<uint64_t> next_thread{1};
thread_local const uint64_t thread_identity = next_thread.fetch_add(1, std::memory_order_relaxed);
thread_local std::string thread_name;

// Requires: the mutex is held.
uint32_t NumberOfThread(Recorder* recorder) {
  const auto [place, fresh] =
      recorder->numbers.insert({thread_identity, static_cast<uint32_t>(recorder->profile.threads.size())});
  if (fresh) {
    recorder->profile.threads.push_back(thread_name.empty() ? StrCat("thread ", thread_identity) : thread_name);
  }
  return place->second;
}

}  // namespace

int64_t ProfileClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool Profiler::active() { return current_session.load(std::memory_order_relaxed) != 0; }

absl::Status Profiler::Start(const ProfilerOptions& options) {
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  if (active()) {
    return absl::FailedPreconditionError("Profile has already been started. Only one profile may be run at a time.");
  }
  recorder.options = options;
  recorder.profile = Profile();
  recorder.numbers.clear();
  recorder.profile.start_ns = ProfileClock();
  recorder.profile.start_unix_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  current_session.store(++recorder.last_session, std::memory_order_release);
  return absl::OkStatus();
}

absl::StatusOr<Profile> Profiler::Stop() {
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  if (!active()) return absl::FailedPreconditionError("No profile started");
  current_session.store(0, std::memory_order_release);
  Profile profile = std::exchange(recorder.profile, Profile());
  profile.stop_ns = ProfileClock();
  // Spans are recorded when they end; a span and its children may start in the same nanosecond.
  std::stable_sort(profile.events.begin(), profile.events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  return profile;
}

void Profiler::RecordExecution(std::shared_ptr<Executable> executable, int device) {
  if (!active()) return;
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  if (!active()) return;
  ExecutionEvent event;
  event.executable = std::move(executable);
  event.device = device;
  event.thread = NumberOfThread(&recorder);
  event.called_ns = ProfileClock();
  recorder.profile.executions.push_back(std::move(event));
}

void Profiler::SetThreadName(std::string_view name) { thread_name = std::string(name); }

TraceMe::TraceMe(std::string_view name) : session_(current_session.load(std::memory_order_acquire)) {
  if (session_ == 0) return;
  name_ = std::string(name);
  start_ns_ = ProfileClock();
}

TraceMe::~TraceMe() {
  if (session_ == 0 || session_ != current_session.load(std::memory_order_acquire)) return;
  const int64_t end = ProfileClock();
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  if (session_ != current_session.load(std::memory_order_relaxed)) return;
  if (recorder.profile.events.size() >= recorder.options.max_events) {
    ++recorder.profile.dropped;
    return;
  }
  recorder.profile.events.push_back({std::move(name_), NumberOfThread(&recorder), start_ns_, end, std::move(stats_)});
}

void TraceMe::Add(std::string_view stat, int64_t value) {
  if (session_ != 0) stats_.emplace_back(std::string(stat), value);
}

}  // namespace hlokit::runtime
