// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/span_names.h"

#include <algorithm>
#include <iterator>

namespace hlokit::tpu {

namespace {

struct NamedPhase {
  std::string_view text;
  HostPhase phase;
};
// Phases by prefix of a span name.
constexpr NamedPhase kPhases[] = {
    {kCompileSpan, HostPhase::kCompile},
    {kTransferSpan, HostPhase::kTransfer},
    {kTransferToServer, HostPhase::kTransfer},
    {"PjRtComputationClient::TransferFromDevice", HostPhase::kFetch},
    {"PjRtComputationClient::Execute", HostPhase::kExecute},
    {"PJRT_LoadedExecutable_Execute", HostPhase::kExecute},
    {kTpuExecute, HostPhase::kExecute},
    {kRunExecutable, HostPhase::kExecute},
    {"XLAGraphExecutor::Compile", HostPhase::kCompile},
    {"WaitForDevice", HostPhase::kFetch},
    {"WaitForQueue", HostPhase::kExecute},
    {"WaitForBatch", HostPhase::kInput},
    {"WaitForReplicas", HostPhase::kOther},
    {"StartReplicas", HostPhase::kOther},
    {"DeviceBarrier", HostPhase::kFetch},
    {"cpu_loader.next", HostPhase::kInput},
    {"get_batch_from_cpu_queue", HostPhase::kInput},
    {"cpu_data_to_xla_device", HostPhase::kTransfer},
    {kStepMarker, HostPhase::kMarker},
    {"SyncLiveTensorsGraph", HostPhase::kMarker},
    {"SyncTensorsGraph", HostPhase::kMarker},
    {"CollectSyncTensors", HostPhase::kMarker},
    {"RunPostOrder", HostPhase::kMarker},
    {"ScheduleSyncTensorsGraph", HostPhase::kMarker},
    {"SetTensorData", HostPhase::kMarker},
};

// Phases by substring, for names without a known prefix: spans of PJRT clients, JAX and input pipelines. Earlier rows
// take precedence.
constexpr NamedPhase kPartsOfNames[] = {
    {"BlockHostUntilReady", HostPhase::kFetch}, {"block_until_ready", HostPhase::kFetch},
    {"::Compile", HostPhase::kCompile},         {"backend_compile", HostPhase::kCompile},
    {"XlaCompile", HostPhase::kCompile},        {"compile_or_get_cached", HostPhase::kCompile},
    {"::Execute", HostPhase::kExecute},         {"ExecuteReplicated", HostPhase::kExecute},
    {"ExecuteSharded", HostPhase::kExecute},    {"TpuExecute", HostPhase::kExecute},
    {"PjitFunction", HostPhase::kExecute},      {"BufferFromHost", HostPhase::kTransfer},
    {"TransferToDevice", HostPhase::kTransfer}, {"TransferLiteralTo", HostPhase::kTransfer},
    {"device_put", HostPhase::kTransfer},       {"TransferFromDevice", HostPhase::kFetch},
    {"TransferLiteralFrom", HostPhase::kFetch}, {"ToLiteral", HostPhase::kFetch},
    {"CopyToHost", HostPhase::kFetch},          {"Iterator::", HostPhase::kInput},
    {"IteratorGetNext", HostPhase::kInput},
};
constexpr std::string_view kDeviceWaits[] = {"WaitForDevice", "BlockHostUntilReady", "block_until_ready"};
constexpr std::string_view kQueueWait = "WaitForQueue";
constexpr std::string_view kBatchWait = "WaitForBatch";
// Waits for other threads of the program.
constexpr std::string_view kThreadWaits[] = {"WaitForReplicas", "WaitForSlot"};
constexpr std::string_view kProgram = "program";  // work outside of any span

}  // namespace

HostPhase PhaseOfSpan(std::string_view name) {
  // Python functions, as JAX's profiler records them.
  if (name == kProgram || (name.substr(0, 1) == "$" && !IsDeviceWait(name))) return HostPhase::kOther;
  for (const NamedPhase& p : kPhases) {
    if (name.substr(0, p.text.size()) == p.text) return p.phase;
  }
  for (const NamedPhase& p : kPartsOfNames) {
    if (name.find(p.text) != std::string_view::npos) return p.phase;
  }
  return HostPhase::kTrace;
}

bool IsDeviceWait(std::string_view name) {
  return std::any_of(std::begin(kDeviceWaits), std::end(kDeviceWaits),
                     [name](std::string_view wait) { return name.find(wait) != std::string_view::npos; });
}

bool IsWait(std::string_view name) {
  return name == kQueueWait || name == kBatchWait || IsDeviceWait(name) ||
         std::find(std::begin(kThreadWaits), std::end(kThreadWaits), name) != std::end(kThreadWaits);
}

std::string_view SpanNameOf(HostPhase phase, bool wait) {
  if (wait) {
    return phase == HostPhase::kFetch ? kDeviceWaits[0] : phase == HostPhase::kExecute ? kQueueWait : kBatchWait;
  }
  switch (phase) {
    case HostPhase::kInput:
      return "cpu_loader.next";
    case HostPhase::kTransfer:
      return kTransferSpan;
    case HostPhase::kTrace:
      return "IR generation";
    case HostPhase::kMarker:
      return kStepMarker;
    case HostPhase::kCompile:
      return "XLAGraphExecutor::Compile";
    case HostPhase::kExecute:
      return "PjRtComputationClient::ExecuteComputation";
    case HostPhase::kFetch:
      return "PjRtComputationClient::TransferFromDevice";
    case HostPhase::kOther:
      return kProgram;
  }
  return "";
}

}  // namespace hlokit::tpu
