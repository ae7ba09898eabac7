// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/profiler.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <new>
#include <optional>

#include "ir/core/str_cat.h"

namespace hlokit::runtime {

namespace {

// Current session: 0 for none, else a unique number.
std::atomic<uint64_t> current_session{0};

// An annotation in progress.
struct OpenAnnotation {
  TraceEvent event;
  uint64_t thread = 0;
  std::string thread_name;
};

struct Recorder {
  std::mutex mutex;
  uint64_t last_session = 0;
  ProfilerOptions options;
  Profile profile;
  std::map<uint64_t, uint32_t> numbers;            // number in this profile, by thread
  std::map<std::string, uint32_t> named;           // the same by name, of threads with names
  std::map<uint64_t, OpenAnnotation> annotations;  // in progress, by id
  uint64_t last_annotation = 0;
};

Recorder& TheRecorder() {
  static Recorder* const recorder = new Recorder;  // never destroyed: threads may outlive main
  return *recorder;
}

std::atomic<uint64_t> next_thread{1};
thread_local const uint64_t thread_identity = next_thread.fetch_add(1, std::memory_order_relaxed);
thread_local std::string thread_name;

std::atomic<std::string (*)()> source_provider{nullptr};

// Requires: the mutex is held.
uint32_t NumberOfThread(Recorder* recorder, uint64_t identity, const std::string& name) {
  const uint32_t next = static_cast<uint32_t>(recorder->profile.threads.size());
  const auto [place, fresh] = recorder->numbers.insert({identity, next});
  if (!fresh) return place->second;
  if (!name.empty()) {
    const auto [same, first] = recorder->named.insert({name, next});
    place->second = same->second;
    if (!first) return place->second;
  }
  recorder->profile.threads.push_back(name.empty() ? StrCat("thread ", identity) : name);
  return place->second;
}
uint32_t NumberOfThread(Recorder* recorder) { return NumberOfThread(recorder, thread_identity, thread_name); }

// Requires: the mutex is held.
void AddEvent(Recorder* recorder, TraceEvent event) {
  if (recorder->profile.events.size() >= recorder->options.max_events) {
    ++recorder->profile.dropped;
    return;
  }
  recorder->profile.events.push_back(std::move(event));
}

// Requires: the mutex is held.
void Reset(Recorder* recorder) {
  recorder->profile = Profile();
  recorder->numbers.clear();
  recorder->named.clear();
  recorder->profile.start_ns = ProfileClock();
  recorder->profile.start_unix_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  current_session.store(++recorder->last_session, std::memory_order_release);
}

std::string CurrentSource() {
  std::string (*const provider)() = source_provider.load(std::memory_order_relaxed);
  return provider == nullptr ? std::string() : provider();
}

}  // namespace

ThreadCounters ReadThreadCounters() {
  timespec now = {};
  ThreadCounters counters;
  counters.work = host_work;
  counters.thread = thread_identity;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0) {
    counters.cpu_ns = int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
  }
  return counters;
}

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
  Reset(&recorder);
  return absl::OkStatus();
}

void Profiler::Restart() {
  if (!active()) return;
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  if (active()) Reset(&recorder);
}

absl::StatusOr<Profile> Profiler::Stop() {
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  if (!active()) return absl::FailedPreconditionError("No profile started");
  current_session.store(0, std::memory_order_release);
  const int64_t stop = ProfileClock();
  for (const auto& [id, open] : recorder.annotations) {
    TraceEvent event = open.event;
    event.thread = NumberOfThread(&recorder, open.thread, open.thread_name);
    event.start_ns = std::max(event.start_ns, recorder.profile.start_ns);
    event.end_ns = stop;
    if (event.start_ns == recorder.profile.start_ns) event.at_start = ThreadCounters();
    AddEvent(&recorder, std::move(event));
  }
  Profile profile = std::exchange(recorder.profile, Profile());
  profile.stop_ns = stop;
  // Spans are recorded when they end; a span and its children may start in the same nanosecond.
  std::stable_sort(profile.events.begin(), profile.events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  return profile;
}

void Profiler::RecordExecution(std::shared_ptr<Executable> executable, int device, bool collective) {
  if (!active()) return;
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  if (!active()) return;
  ExecutionEvent event;
  event.executable = std::move(executable);
  event.device = device;
  event.thread = NumberOfThread(&recorder);
  event.called_ns = ProfileClock();
  event.at_call = ReadThreadCounters();
  event.collective = collective;
  recorder.profile.executions.push_back(std::move(event));
}

void Profiler::RecordCompilation(std::shared_ptr<Executable> executable) {
  if (!active()) return;
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  if (!active()) return;
  recorder.profile.compilations.push_back({std::move(executable), NumberOfThread(&recorder), ProfileClock()});
}

void Profiler::ExplainCompilation(const Executable* executable, std::string_view reason) {
  if (!active()) return;
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  std::vector<CompilationEvent>& compilations = recorder.profile.compilations;
  for (size_t k = compilations.size(); k-- > 0;) {
    if (compilations[k].executable.get() != executable) continue;
    compilations[k].reason = std::string(reason);
    return;
  }
}

void Profiler::SetThreadName(std::string_view name) { thread_name = std::string(name); }

void Profiler::SetSourceProvider(std::string (*provider)()) { source_provider.store(provider); }

TraceMe::TraceMe(std::string_view name) : session_(current_session.load(std::memory_order_acquire)) {
  if (session_ == 0) return;
  name_ = std::string(name);
  source_ = CurrentSource();
  start_ns_ = ProfileClock();
  at_start_ = ReadThreadCounters();
}

TraceMe::~TraceMe() {
  if (session_ == 0 || session_ != current_session.load(std::memory_order_acquire)) return;
  const int64_t end = ProfileClock();
  const ThreadCounters at_end = ReadThreadCounters();
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  if (session_ != current_session.load(std::memory_order_relaxed)) return;
  try {
    AddEvent(&recorder, {std::move(name_), NumberOfThread(&recorder), start_ns_, end, std::move(stats_), at_start_,
                         at_end, std::move(source_)});
  } catch (const std::bad_alloc&) {
    // The span may end because there is no memory; it is left out.
  }
}

void TraceMe::Add(std::string_view stat, int64_t value) {
  if (session_ != 0) stats_.emplace_back(std::string(stat), value);
}

int64_t TraceMe::NewFlow() {
  static std::atomic<int64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

AnnotationSpan::AnnotationSpan(std::string_view name, std::vector<std::pair<std::string, int64_t>> stats) {
  OpenAnnotation open;
  open.event.name = std::string(name);
  open.event.stats = std::move(stats);
  open.event.start_ns = ProfileClock();
  if (Profiler::active()) {
    open.event.source = CurrentSource();
    open.event.at_start = ReadThreadCounters();
  }
  open.thread = thread_identity;
  open.thread_name = thread_name;
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  id_ = ++recorder.last_annotation;
  recorder.annotations.emplace(id_, std::move(open));
}

AnnotationSpan::~AnnotationSpan() {
  const int64_t end = ProfileClock();
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  auto node = recorder.annotations.extract(id_);
  if (!Profiler::active()) return;
  TraceEvent event = std::move(node.mapped().event);
  event.thread = NumberOfThread(&recorder);
  event.end_ns = end;
  event.at_end = ReadThreadCounters();
  if (event.start_ns < recorder.profile.start_ns) {
    event.start_ns = recorder.profile.start_ns;
    event.at_start = ThreadCounters();
  }
  AddEvent(&recorder, std::move(event));
}

}  // namespace hlokit::runtime
