// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/profiler.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/profiler_server.h"
#include "simulator/export/profile_simulation.h"
#include "simulator/export/xplane.h"
#include "simulator/timing/device_selection.h"

struct PLUGIN_Profiler_Error {
  absl::Status status;
  std::string message;
};

struct PLUGIN_Profiler {
  bool started = false;
  std::optional<std::string> space;  // serialized, once stopped
};

namespace hlokit::pjrt {
namespace {

struct ProfiledDevice {
  std::mutex mutex;
  std::string name = "cpu";
};

ProfiledDevice& TheDevice() {
  static auto* const device = new ProfiledDevice();
  return *device;
}

// The threads of the host, as they were.
tpu::ProfileSpace HostSpace(const runtime::Profile& profile) {
  constexpr double kSecondsPerNanosecond = 1e-9;
  tpu::ProfileSpace space;
  space.devices = 0;
  space.start_unix_ns = profile.start_unix_ns;
  space.seconds = static_cast<double>(profile.stop_ns - profile.start_ns) * kSecondsPerNanosecond;
  for (const std::string& name : profile.threads) space.threads.push_back({.name = name, .spans = {}});
  for (const runtime::TraceEvent& event : profile.events) {
    tpu::HostSpan span;
    span.name = event.name;
    span.start = static_cast<double>(event.start_ns - profile.start_ns) * kSecondsPerNanosecond;
    span.duration = static_cast<double>(event.end_ns - event.start_ns) * kSecondsPerNanosecond;
    span.source = event.source;
    if (event.thread < space.threads.size()) space.threads[event.thread].spans.push_back(std::move(span));
  }
  return space;
}

absl::StatusOr<std::string> SpaceOf(const runtime::Profile& profile, const std::string& device) {
  constexpr int64_t kPlanes = 8;  // devices with planes
  constexpr size_t kMaxEvents = 200000;
  tpu::ProfileSpace space;
  std::unique_ptr<tpu::ProfileSimulation> simulation;  // that `space` points into
  if (device.starts_with("cpu") || profile.executions.empty()) {
    space = HostSpace(profile);
  } else {
    tpu::ProfileSimulation::Options options;
    options.times = tpu::HostTimes::kMeasured;
    options.machine = [&](const Module& module) { return tpu::OptionsForDevice(device, module); };
    absl::StatusOr<std::unique_ptr<tpu::ProfileSimulation>> simulated =
        tpu::ProfileSimulation::Create(profile, options);
    if (!simulated.ok()) return simulated.status();
    simulation = *std::move(simulated);
    space = simulation->ToSpace(kPlanes, kMaxEvents);
  }
  space.hostname = runtime::ProfileHostName();
  space.of_plugin = true;
  return tpu::XSpaceBytes(space);
}

absl::Status Create(PLUGIN_Profiler_Create_Args* args) {
  args->profiler = new PLUGIN_Profiler();
  return absl::OkStatus();
}

absl::Status Stop(PLUGIN_Profiler_Stop_Args* args) {
  PLUGIN_Profiler& profiler = *args->profiler;
  if (!profiler.started) return absl::FailedPreconditionError("the profiler has not been started");
  profiler.started = false;
  const absl::StatusOr<runtime::Profile> profile = runtime::Profiler::Stop();
  if (!profile.ok()) return profile.status();
  std::string device;
  {
    std::lock_guard<std::mutex> lock(TheDevice().mutex);
    device = TheDevice().name;
  }
  absl::StatusOr<std::string> space = SpaceOf(*profile, device);
  if (!space.ok()) return space.status();
  profiler.space = *std::move(space);
  return absl::OkStatus();
}

absl::Status Destroy(PLUGIN_Profiler_Destroy_Args* args) {
  const std::unique_ptr<PLUGIN_Profiler> profiler(args->profiler);
  if (profiler->started) return runtime::Profiler::Stop().status();
  return absl::OkStatus();
}

absl::Status Start(PLUGIN_Profiler_Start_Args* args) {
  if (args->profiler->started) return absl::FailedPreconditionError("the profiler has been started");
  const absl::Status status = runtime::Profiler::Start();
  args->profiler->started = status.ok();
  return status;
}

// Frameworks call once, without a buffer, and read the profiler's own; older ones then call again with one of theirs.
absl::Status CollectData(PLUGIN_Profiler_CollectData_Args* args) {
  if (!args->profiler->space) return absl::FailedPreconditionError("the profiler has not recorded a profile");
  std::string& space = *args->profiler->space;
  uint8_t* const own = reinterpret_cast<uint8_t*>(space.data());
  if (args->buffer == nullptr || args->buffer == own) {
    args->buffer = own;
    args->buffer_size_in_bytes = space.size();
    return absl::OkStatus();
  }
  if (args->buffer_size_in_bytes < space.size()) return absl::InvalidArgumentError("the buffer is too small");
  std::memcpy(args->buffer, space.data(), space.size());
  args->buffer_size_in_bytes = space.size();
  return absl::OkStatus();
}

PLUGIN_Profiler_Error* NewProfilerError(absl::Status status) {
  if (status.ok()) return nullptr;
  std::string message(status.message());
  return new PLUGIN_Profiler_Error{std::move(status), std::move(message)};
}

// A C function for `function`; arguments and the profiler among them must not be null.
template <auto function, typename Args>
PLUGIN_Profiler_Error* Entry(Args* args) {
  try {
    if (args == nullptr) return NewProfilerError(absl::InvalidArgumentError("the arguments are null"));
    if constexpr (!std::is_same_v<Args, PLUGIN_Profiler_Create_Args>) {
      if (args->profiler == nullptr) return NewProfilerError(absl::InvalidArgumentError("the profiler is null"));
    }
    return NewProfilerError(function(args));
  } catch (const std::exception& e) {
    return NewProfilerError(absl::InternalError(e.what()));
  }
}

void DestroyError(PLUGIN_Profiler_Error_Destroy_Args* args) { delete args->error; }

void MessageOfError(PLUGIN_Profiler_Error_Message_Args* args) {
  args->message = args->error->message.c_str();
  args->message_size = args->error->message.size();
}

PLUGIN_Profiler_Error* CodeOfError(PLUGIN_Profiler_Error_GetCode_Args* args) {
  args->code = static_cast<int>(args->error->status.code());
  return nullptr;
}

}  // namespace

void SetProfiledDevice(const std::string& device) {
  std::lock_guard<std::mutex> lock(TheDevice().mutex);
  TheDevice().name = device;
}

PLUGIN_Profiler_Api* ProfilerApi() {
  static PLUGIN_Profiler_Api api = {
      .struct_size = sizeof(PLUGIN_Profiler_Api),
      .priv = nullptr,
      .error_destroy = DestroyError,
      .error_message = MessageOfError,
      .error_get_code = CodeOfError,
      .create = Entry<Create, PLUGIN_Profiler_Create_Args>,
      .destroy = Entry<Destroy, PLUGIN_Profiler_Destroy_Args>,
      .start = Entry<Start, PLUGIN_Profiler_Start_Args>,
      .stop = Entry<Stop, PLUGIN_Profiler_Stop_Args>,
      .collect_data = Entry<CollectData, PLUGIN_Profiler_CollectData_Args>,
  };
  return &api;
}

}  // namespace hlokit::pjrt
