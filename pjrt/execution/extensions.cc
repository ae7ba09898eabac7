// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/extensions.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "pjrt/client/buffer.h"
#include "pjrt/client/cross_host.h"
#include "pjrt/client/profiler.h"
#include "pjrt/execution/custom_partitioners.h"
#include "pjrt/execution/executable.h"
#include "pjrt/execution/simulation.h"
#include "pjrt/ffi/ffi_handlers.h"
#include "pjrt/trace/recorder.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/entry.h"
#include "pjrt/values/layout.h"

struct PJRT_Layouts_MemoryLayout {
  std::string text;
};
struct PJRT_Layouts_SerializedLayout {
  std::string bytes;
};
struct PJRT_MemoryDescription {
  std::string kind;
  int kind_id;
};

namespace hlokit::pjrt {
namespace {

absl::Status DestroyLayout(PJRT_Layouts_MemoryLayout_Destroy_Args* args) {
  delete args->layout;
  return absl::OkStatus();
}

absl::Status SerializeLayout(PJRT_Layouts_MemoryLayout_Serialize_Args* args) {
  using Args = PJRT_Layouts_MemoryLayout_Serialize_Args;
  auto* const held = new PJRT_Layouts_SerializedLayout{args->layout->text};
  SetText(args, &Args::serialized_bytes, &Args::serialized_bytes_size, held->bytes);
  args->serialized_layout = held;
  args->serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout* layout) { delete layout; };
  return absl::OkStatus();
}

template <typename Args>
absl::Status DefaultLayout(Args* args) {
  const absl::StatusOr<BufferSpec> spec = ReadBufferSpec(args->type, args->dims, args->num_dims);
  if (!spec.ok()) return spec.status();
  args->layout = new PJRT_Layouts_MemoryLayout{LayoutText({}, spec->dims.size())};
  return absl::OkStatus();
}

absl::Status BufferLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args) {
  const BufferSpec& spec = args->buffer->spec;
  args->layout = new PJRT_Layouts_MemoryLayout{LayoutText(spec.minor_to_major, spec.dims.size())};
  return absl::OkStatus();
}

absl::Status OutputLayouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* args) {
  const CompiledProgram& compiled = *args->executable->compiled;
  args->num_outputs = compiled.result_layouts.size();
  args->layouts = const_cast<PJRT_Layouts_MemoryLayout**>(compiled.result_layouts.data());
  return absl::OkStatus();
}

absl::Status ParameterLayouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args* args) {
  const CompiledProgram& compiled = *args->executable->compiled;
  args->num_parameters = compiled.parameter_layouts.size();
  args->layouts = const_cast<PJRT_Layouts_MemoryLayout**>(compiled.parameter_layouts.data());
  return absl::OkStatus();
}

absl::Status ParameterShardings(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args* args) {
  const CompiledProgram& compiled = *args->executable->compiled;
  args->num_parameters = compiled.parameter_shardings.size();
  args->shardings = compiled.parameter_shardings.data();
  args->sharding_sizes = compiled.parameter_sharding_sizes.data();
  return absl::OkStatus();
}

absl::Status OutputShardings(PJRT_Shardings_PJRT_Executable_OutputShardings_Args* args) {
  const CompiledProgram& compiled = *args->executable->compiled;
  args->num_outputs = compiled.result_shardings.size();
  args->shardings = compiled.result_shardings.data();
  args->sharding_sizes = compiled.result_sharding_sizes.data();
  return absl::OkStatus();
}

absl::Status MemoryDescriptions(PJRT_DeviceDescription_MemoryDescriptions_Args* args) {
  static const auto* const descriptions = [] {
    auto* const list = new std::vector<const PJRT_MemoryDescription*>();
    for (size_t i = 0; i < std::size(kMemoryKinds); ++i) {
      list->push_back(new PJRT_MemoryDescription{kMemoryKinds[i], static_cast<int>(i)});
    }
    return list;
  }();
  args->memory_descriptions = descriptions->data();
  args->num_memory_descriptions = descriptions->size();
  args->default_memory_index = 0;
  return absl::OkStatus();
}

absl::Status MemoryDescriptionKind(PJRT_MemoryDescription_Kind_Args* args) {
  using Args = PJRT_MemoryDescription_Kind_Args;
  SetText(args, &Args::kind, &Args::kind_size, args->memory_description->kind);
  args->kind_id = args->memory_description->kind_id;
  return absl::OkStatus();
}

absl::Status RegisterCallback(PJRT_Callback_RegisterCallback_Args* args) {
  if (args->callback == nullptr) return absl::InvalidArgumentError("the callback is null");
  if (args->type != PJRT_Callback_Type_Tpu_SliceBuilder && args->type != PJRT_Callback_Type_Prefatal) {
    return absl::UnimplementedError(StrCat("callbacks of the type ", static_cast<int>(args->type)));
  }
  std::lock_guard<std::mutex> lock(args->client->callbacks_mutex);
  args->client->callbacks.emplace(args->type, std::make_pair(args->callback, args->user_arg));
  return absl::OkStatus();
}

// In the order in which they were registered, without a lock.
absl::Status InvokeCallback(PJRT_Callback_InvokeCallback_Args* args) {
  std::vector<std::pair<PJRT_Callback_Function, void*>> called;
  {
    std::lock_guard<std::mutex> lock(args->client->callbacks_mutex);
    const auto [begin, end] = args->client->callbacks.equal_range(args->type);
    for (auto it = begin; it != end; ++it) called.push_back(it->second);
  }
  for (const auto& [callback, user_arg] : called) callback(args->args, user_arg);
  return absl::OkStatus();
}

// Returns a C function for `function`, whose field `handle` must not be null.
#define HLOKIT_EXTENSION_ENTRY(args, function, handle)                           \
  +[](args* a) -> PJRT_Error* {                                                  \
    constexpr std::string_view kName = #args;                                    \
    return CallRecorded(                                                         \
        kName.substr(0, kName.size() - std::string_view("_Args").size()), a,     \
        +[](args* b) { return CallEntry(#args, b, &args::handle, &function); }); \
  }

template <typename Extension>
PJRT_Extension_Base Base(PJRT_Extension_Type type, PJRT_Extension_Base* next) {
  return {sizeof(Extension), type, next};
}

}  // namespace

PJRT_Layouts_MemoryLayout* SharedLayout(const BufferSpec& spec) {
  static std::mutex mutex;
  static auto* const layouts = new std::map<std::string, PJRT_Layouts_MemoryLayout*>();
  std::string text = LayoutText(spec.minor_to_major, spec.dims.size());
  std::lock_guard<std::mutex> lock(mutex);
  PJRT_Layouts_MemoryLayout*& layout = (*layouts)[text];
  if (layout == nullptr) layout = new PJRT_Layouts_MemoryLayout{std::move(text)};
  return layout;
}

PJRT_Extension_Base* Extensions() {
  static PJRT_Profiler_Extension profiler = {Base<PJRT_Profiler_Extension>(PJRT_Extension_Type_Profiler, nullptr),
                                             ProfilerApi(), 0};
  // Not recorded: nothing of a client takes part.
  static HlokitSimulation_Extension simulation = {
      Base<HlokitSimulation_Extension>(PJRT_Extension_Type_HlokitSimulation, &profiler.base),
      [](HlokitSimulation_Create_Args* args) {
        return CallEntry("HlokitSimulation_Create", args, &HlokitSimulation_Create_Args::program, &CreateSimulation);
      },
      [](HlokitSimulation_Destroy_Args* args) {
        return CallEntry("HlokitSimulation_Destroy", args, &HlokitSimulation_Destroy_Args::simulation,
                         &DestroySimulation);
      },
  };
  static PJRT_FFI_Extension ffi = {
      Base<PJRT_FFI_Extension>(PJRT_Extension_Type_FFI, &simulation.base),
      HLOKIT_EXTENSION_ENTRY(PJRT_FFI_Type_Register_Args, FfiTypeRegister, type_name),
      HLOKIT_EXTENSION_ENTRY(PJRT_FFI_UserData_Add_Args, FfiUserDataAdd, context),
      HLOKIT_EXTENSION_ENTRY(PJRT_FFI_Register_Handler_Args, FfiRegisterHandler, handler),
  };
  static PJRT_Custom_Partitioner_Extension partitioners = {
      Base<PJRT_Custom_Partitioner_Extension>(PJRT_Extension_Type_Custom_Partitioner, &ffi.base),
      HLOKIT_EXTENSION_ENTRY(PJRT_Register_Custom_Partitioner_Args, RegisterCustomPartitioner, callbacks),
      HLOKIT_EXTENSION_ENTRY(PJRT_Register_Batch_Partitionable_Args, RegisterBatchPartitionable, name),
  };
  static PJRT_CrossHostTransfers_Extension transfers = {
      Base<PJRT_CrossHostTransfers_Extension>(PJRT_Extension_Type_CrossHostTransfers, &partitioners.base),
      HLOKIT_EXTENSION_ENTRY(PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args, MakeCrossHostReceiveBuffers,
                             client),
      CopyToRemoteDevice,
      HLOKIT_EXTENSION_ENTRY(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args, CrossHostReceiveBuffers, client),
      HLOKIT_EXTENSION_ENTRY(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args, CrossHostSendBuffers, client),
  };
  static PJRT_Callback_Extension callbacks = {
      Base<PJRT_Callback_Extension>(PJRT_Extension_Type_Callback, &transfers.base),
      HLOKIT_EXTENSION_ENTRY(PJRT_Callback_RegisterCallback_Args, RegisterCallback, client),
      HLOKIT_EXTENSION_ENTRY(PJRT_Callback_InvokeCallback_Args, InvokeCallback, client),
  };
  static PJRT_MemoryDescriptions_Extension memories = {
      Base<PJRT_MemoryDescriptions_Extension>(PJRT_Extension_Type_MemoryDescriptions, &callbacks.base),
      HLOKIT_EXTENSION_ENTRY(PJRT_DeviceDescription_MemoryDescriptions_Args, MemoryDescriptions, device_description),
      HLOKIT_EXTENSION_ENTRY(PJRT_MemoryDescription_Kind_Args, MemoryDescriptionKind, memory_description),
  };
  static PJRT_Shardings_Extension shardings = {
      Base<PJRT_Shardings_Extension>(PJRT_Extension_Type_Shardings, &memories.base),
      HLOKIT_EXTENSION_ENTRY(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, ParameterShardings, executable),
      HLOKIT_EXTENSION_ENTRY(PJRT_Shardings_PJRT_Executable_OutputShardings_Args, OutputShardings, executable),
  };
  static PJRT_Layouts_Extension layouts = {
      Base<PJRT_Layouts_Extension>(PJRT_Extension_Type_Layouts, &shardings.base),
      HLOKIT_EXTENSION_ENTRY(PJRT_Layouts_MemoryLayout_Destroy_Args, DestroyLayout, struct_size),
      HLOKIT_EXTENSION_ENTRY(PJRT_Layouts_MemoryLayout_Serialize_Args, SerializeLayout, layout),
      HLOKIT_EXTENSION_ENTRY(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args,
                             DefaultLayout<PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args>, client),
      HLOKIT_EXTENSION_ENTRY(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, BufferLayout, buffer),
      HLOKIT_EXTENSION_ENTRY(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args,
                             DefaultLayout<PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args>, topology_description),
      HLOKIT_EXTENSION_ENTRY(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, OutputLayouts, executable),
      HLOKIT_EXTENSION_ENTRY(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, ParameterLayouts, executable),
  };
  return &layouts.base;
}

}  // namespace hlokit::pjrt
