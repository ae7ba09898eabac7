// SPDX-License-Identifier: Apache-2.0
// Execution: checks all arguments before anything is enqueued or donated, then gives each device its part.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "ir/core/str_cat.h"
#include "pjrt/c_api/profiler_args.h"
#include "pjrt/client/buffer.h"
#include "pjrt/execution/executable.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/functions.h"
#include "runtime/observe/profiler.h"

namespace hlokit::pjrt {
namespace {

using runtime::DeviceBuffer;

// The part of one device.
struct DeviceCall {
  PJRT_Device* device;
  std::vector<PJRT_Buffer*> arguments;
  std::vector<std::shared_ptr<DeviceBuffer>> values;  // of the arguments
  std::vector<int64_t> donated;                       // arguments whose memory the program may reuse
  std::vector<int64_t> deleted;                       // arguments that are only deleted: their memory is a caller's
  DeviceCallbacks callbacks;
};

std::string SpecText(const BufferSpec& spec) {
  std::string text = StrCat(ToString(spec.type), "[");
  for (size_t i = 0; i < spec.dims.size(); ++i) StrAppend(&text, i == 0 ? "" : ",", spec.dims[i]);
  return StrCat(text, "]");
}

// Returns true if the buffer is what frameworks make of a token: pred[0].
bool IsTokenBuffer(const BufferSpec& spec) {
  return spec.type == ElementType::kPred && spec.dims == std::vector<int64_t>{0};
}

absl::Status CheckArgument(const PJRT_Buffer* buffer, const ProgramValue& parameter, const DeviceCall& call,
                           size_t number) {
  const auto error = [&](const std::string& text) {
    return absl::InvalidArgumentError(
        StrCat("argument ", static_cast<int64_t>(number), " of device ", call.device->description->id, ": ", text));
  };
  if (buffer == nullptr) return error("the buffer is null");
  if (buffer->device() != call.device)
    return error(StrCat("the buffer is on device ", buffer->device()->description->id));
  if (const std::string_view kind = kMemoryKinds[parameter.memory_kind]; buffer->memory->kind != kind) {
    return error(StrCat("the buffer is in ", buffer->memory->kind, " memory, the program takes it in ", kind));
  }
  if (parameter.spec.type == ElementType::kToken && IsTokenBuffer(buffer->spec)) return absl::OkStatus();
  if (buffer->spec.type != parameter.spec.type || buffer->spec.dims != parameter.spec.dims) {
    return error(StrCat("the buffer is ", SpecText(buffer->spec), ", the program takes ", SpecText(parameter.spec)));
  }
  // The program would take the padding of a dynamic dimension for values.
  const std::vector<size_t>& dynamic = parameter.spec.dynamic_dims;
  for (const size_t d : buffer->spec.dynamic_dims) {
    if (std::find(dynamic.begin(), dynamic.end(), d) != dynamic.end()) continue;
    return error(StrCat("dimension ", static_cast<int64_t>(d), " of the buffer is dynamic, the program takes ",
                        SpecText(parameter.spec), ", where it is static"));
  }
  return absl::OkStatus();
}

// Appends the sizes of dynamic parameters: those of their buffers, or the dimensions of arrays that have none.
absl::Status AddSizes(const std::vector<ProgramValue>& parameters, DeviceCall* call) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const PJRT_Buffer& buffer = *call->arguments[i];
    for (const size_t d : parameters[i].spec.dynamic_dims) {
      const std::vector<size_t>& dynamic = buffer.spec.dynamic_dims;
      const auto at = std::find(dynamic.begin(), dynamic.end(), d);
      if (at != dynamic.end()) {
        call->values.push_back(buffer.sizes[static_cast<size_t>(at - dynamic.begin())]);
        continue;
      }
      const auto [context, shape] = call->device->client->ShapeOf(ElementType::kS32, {});
      Literal size = Literal::Zeros(shape);
      size.values<int32_t>()[0] = static_cast<int32_t>(buffer.spec.dims[d]);
      call->values.push_back(std::make_shared<DeviceBuffer>(std::move(size), context));
    }
  }
  return absl::OkStatus();
}

// Returns the error for a buffer that is donated and another argument, too: XLA's text, which names the argument that
// it finds second.
absl::Status DonationClash(const CompiledProgram& compiled, absl::Span<PJRT_Buffer* const> arguments,
                           absl::Span<const int64_t> fixed, size_t position) {
  const auto is_donated = [&](size_t i) {
    const auto has = [i](absl::Span<const int64_t> list) {
      return std::find(list.begin(), list.end(), static_cast<int64_t>(i)) != list.end();
    };
    return has(compiled.donatable) && !has(fixed);
  };
  const int64_t partitions = compiled.program.options.num_partitions;
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (size_t first = 0; first < i; ++first) {
      if (arguments[first] != arguments[i] || (!is_donated(first) && !is_donated(i))) continue;
      const bool both = is_donated(first) && is_donated(i);
      const char* const what = both            ? "Attempt to donate the same buffer twice in Execute()"
                               : is_donated(i) ? "Attempt to donate a buffer which is also used by the same call to "
                                                 "Execute()"
                                               : "Attempt to use a buffer that was previously donated in the same call "
                                                 "to Execute()";
      const char* const example = both            ? "f(donate(a), donate(a))"
                                  : is_donated(i) ? "f(a, donate(a))"
                                                  : "f(donate(a), a)";
      return absl::InvalidArgumentError(StrCat(
          what, " (flattened argument ", static_cast<int64_t>(i), ", replica ",
          static_cast<int64_t>(position) / partitions, ", partition ", static_cast<int64_t>(position) % partitions,
          ", first use: ", static_cast<int64_t>(first), "). Toy example for this bug: `", example, "`."));
    }
  }
  return absl::InternalError("a buffer is an argument twice");
}

// Reads the arguments of the device at `position`. `fixed`: arguments that the caller forbids to donate.
absl::Status ReadArguments(const CompiledProgram& compiled, PJRT_Buffer* const* given, absl::Span<const int64_t> fixed,
                           size_t position, DeviceCall* call) {
  const std::vector<ProgramValue>& parameters = compiled.program.parameters;
  if (given == nullptr && !parameters.empty()) return absl::InvalidArgumentError("a list of arguments is null");
  for (size_t i = 0; i < parameters.size(); ++i) {
    absl::Status status = CheckArgument(given[i], parameters[i], *call, i);
    if (!status.ok()) return status;
    absl::StatusOr<std::shared_ptr<DeviceBuffer>> value = given[i]->value();
    if (!value.ok()) {
      return absl::InvalidArgumentError(StrCat("argument ", static_cast<int64_t>(i), " of device ",
                                               call->device->description->id, ": ",
                                               std::string(value.status().message())));
    }
    call->arguments.push_back(given[i]);
    const bool token = parameters[i].spec.type == ElementType::kToken && given[i]->spec.type != ElementType::kToken;
    call->values.push_back(token ? TokenOf(*given[i]) : *std::move(value));
  }
  if (absl::Status status = AddSizes(parameters, call); !status.ok()) return status;
  if (compiled.donatable.empty()) return absl::OkStatus();
  std::vector<PJRT_Buffer*> sorted = call->arguments;
  std::sort(sorted.begin(), sorted.end());
  for (const int64_t i : compiled.donatable) {
    if (std::find(fixed.begin(), fixed.end(), i) != fixed.end()) continue;
    PJRT_Buffer* const buffer = call->arguments[static_cast<size_t>(i)];
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), buffer);
    if (last - first > 1) return DonationClash(compiled, call->arguments, fixed, position);
    const bool writable = !buffer->borrowed && !buffer->HasExternalReferences();
    (writable ? call->donated : call->deleted).push_back(i);
  }
  return absl::OkStatus();
}

// Returns the devices that this call runs the program on.
absl::StatusOr<std::vector<PJRT_Device*>> DevicesOfCall(const PJRT_LoadedExecutable& executable,
                                                        PJRT_Device* execute_device, size_t num_devices) {
  if (execute_device == nullptr) {
    if (executable.portable)
      return absl::InvalidArgumentError("a portable program runs on a device that the call names");
    if (num_devices != executable.devices.size()) {
      return absl::InvalidArgumentError(StrCat("the program runs on ", static_cast<int64_t>(executable.devices.size()),
                                               " devices; there are arguments for ",
                                               static_cast<int64_t>(num_devices)));
    }
    return executable.devices;
  }
  if (num_devices != 1) {
    return absl::InvalidArgumentError(
        StrCat("a call for one device has arguments for ", static_cast<int64_t>(num_devices)));
  }
  const std::vector<PJRT_Device*>& all =
      executable.portable ? executable.client->addressable_devices : executable.devices;
  if (std::find(all.begin(), all.end(), execute_device) == all.end()) {
    return absl::InvalidArgumentError("the program was not compiled for the device that the call names");
  }
  return std::vector<PJRT_Device*>{execute_device};
}

// Returns the number of a device of the program; of the client, if any device runs it.
size_t PositionOf(const PJRT_LoadedExecutable& executable, const PJRT_Device* device) {
  if (executable.portable) return static_cast<size_t>(device->description->local_id);
  const std::vector<PJRT_Device*>& all = executable.all_devices;
  return static_cast<size_t>(std::find(all.begin(), all.end(), device) - all.begin());
}

// Enqueues the part of one device, or runs it, and returns its results.
std::vector<PJRT_Buffer*> Enqueue(const PJRT_LoadedExecutable& executable, DeviceCall& call,
                                  const std::shared_ptr<Event>& done, runtime::ExecuteThread thread) {
  std::vector<PJRT_Buffer*> outputs;
  std::vector<std::shared_ptr<DeviceBuffer>> results, all_sizes;
  for (const ProgramValue& result : executable.compiled->program.results) {
    results.push_back(call.device->runtime->CreatePendingBuffer());
    std::vector<std::shared_ptr<DeviceBuffer>> sizes;
    for (size_t d = 0; d < result.spec.dynamic_dims.size(); ++d) {
      sizes.push_back(call.device->runtime->CreatePendingBuffer());
    }
    all_sizes.insert(all_sizes.end(), sizes.begin(), sizes.end());
    outputs.push_back(new PJRT_Buffer(call.device->memories[result.memory_kind], result.spec, results.back(), done,
                                      /*borrowed=*/false, std::move(sizes)));
  }
  results.insert(results.end(), all_sizes.begin(), all_sizes.end());
  const std::shared_ptr<HostCallbacks>& callbacks = executable.callbacks;
  const size_t position = callbacks == nullptr ? 0 : PositionOf(executable, call.device);
  if (callbacks != nullptr) callbacks->Push(position, std::move(call.callbacks));
  executable.client->runtime->Execute(
      call.device->runtime, executable.runtime, std::move(call.values), std::move(results), call.donated,
      [done, callbacks, position](const absl::Status& status) {
        if (callbacks != nullptr) callbacks->Pop(position);
        done->Set(status);
      },
      thread);
  return outputs;
}

// Returns the number that the framework's profiler gave to the call, or 0.
int64_t NumberOfFrameworkCall(const PJRT_Extension_Base* extension) {
  for (; extension != nullptr; extension = extension->next) {
    if (extension->type != PJRT_Extension_Type_Profiler) continue;
    constexpr size_t kEnd = offsetof(PJRT_Profiler_Extension, traceme_context_id) + sizeof(int64_t);
    if (extension->struct_size < kEnd) return 0;
    return reinterpret_cast<const PJRT_Profiler_Extension*>(extension)->traceme_context_id;
  }
  return 0;
}

// Waits for the run of one device. Returns its error, and then there are no results.
absl::Status WaitForRun(const Event& done, size_t num_results, PJRT_LoadedExecutable_Execute_Args* args) {
  const absl::Status status = done.Wait();
  if (status.ok()) return status;
  for (size_t i = 0; i < num_results; ++i) delete std::exchange(args->output_lists[0][i], nullptr);
  if (args->device_complete_events != nullptr) delete std::exchange(args->device_complete_events[0], nullptr);
  return status;
}

}  // namespace

absl::Status LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args* args) {
  using Options = PJRT_ExecuteOptions;
  const PJRT_LoadedExecutable& executable = *args->executable;
  if (executable.deleted) return absl::InvalidArgumentError("the executable has been deleted");
  absl::Span<const int64_t> fixed;
  if (const Options* options = args->options; options != nullptr) {
    fixed = absl::MakeConstSpan(options->non_donatable_input_indices, options->num_non_donatable_input_indices);
  }
  const CompiledProgram& compiled = *executable.compiled;
  // A process that has none of the devices gives no arguments.
  if (args->num_devices != 0 && args->num_args != compiled.program.parameters.size()) {
    return absl::InvalidArgumentError(StrCat("the program takes ",
                                             static_cast<int64_t>(compiled.program.parameters.size()), " arguments, ",
                                             static_cast<int64_t>(args->num_args), " are given"));
  }
  const absl::StatusOr<std::vector<PJRT_Device*>> devices =
      DevicesOfCall(executable, args->execute_device, args->num_devices);
  if (!devices.ok()) return devices.status();
  if (args->output_lists == nullptr && !compiled.program.results.empty() && !devices->empty()) {
    return absl::InvalidArgumentError("the lists of results are null");
  }
  std::vector<DeviceCall> calls;
  for (size_t d = 0; d < devices->size(); ++d) {
    DeviceCall& call = calls.emplace_back();
    call.device = (*devices)[d];
    if (absl::Status status = HostCallbacks::CheckMayRun(call.device, executable.callbacks.get()); !status.ok()) {
      return status;
    }
    if (executable.callbacks != nullptr) call.callbacks = CallbacksOf(args->options, d);
    PJRT_Buffer* const* const given = args->argument_lists == nullptr ? nullptr : args->argument_lists[d];
    const size_t position = executable.portable ? 0 : PositionOf(executable, call.device);
    if (absl::Status status = ReadArguments(compiled, given, fixed, position, &call); !status.ok()) return status;
  }
  runtime::TraceMe trace("PJRT_LoadedExecutable_Execute");
  if (const int64_t number = NumberOfFrameworkCall(args->extension_start); number != 0) {
    trace.Add("framework_call", number);
  }
  // A call for one device of several is a part of a run, which the first one counts.
  if (executable.client->simulation_log != nullptr && !calls.empty() &&
      (executable.portable || calls[0].device == executable.devices[0])) {
    executable.client->simulation_log->AddRun(executable.logged);
  }
  std::shared_ptr<Event> last;
  {
    // The devices of a program synchronize in the order of their queues, which must be the same for all, as must that
    // of the callbacks of its runs.
    std::unique_lock<std::mutex> lock(executable.client->execute_mutex, std::defer_lock);
    const bool alone = calls.size() == 1;
    if (!alone || executable.callbacks != nullptr) lock.lock();
    const runtime::ExecuteThread thread =
        alone ? runtime::ExecuteThread::kCallerIfShort : runtime::ExecuteThread::kDevice;
    for (size_t d = 0; d < calls.size(); ++d) {
      auto done = std::make_shared<Event>();
      const std::vector<PJRT_Buffer*> outputs = Enqueue(executable, calls[d], done, thread);
      std::copy(outputs.begin(), outputs.end(), args->output_lists == nullptr ? nullptr : args->output_lists[d]);
      if (args->device_complete_events != nullptr) args->device_complete_events[d] = NewEvent(done);
      last = std::move(done);
    }
  }
  // Without the lock: the owner of borrowed memory is told.
  for (const DeviceCall& call : calls) {
    for (const int64_t i : call.deleted) call.arguments[static_cast<size_t>(i)]->Delete();
  }
  if (last != nullptr && executable.waits && !HostCallbacks::IsInCallback())
    return WaitForRun(*last, compiled.program.results.size(), args);
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
