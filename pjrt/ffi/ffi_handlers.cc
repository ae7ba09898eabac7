// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/ffi_handlers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "interp/custom_calls/custom_call_device.h"
#include "interp/custom_calls/matrix_calls.h"
#include "interp/custom_calls/process_calls.h"
#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"
#include "pjrt/ffi/ffi_attributes.h"
#include "pjrt/ffi/ffi_buffers.h"
#include "pjrt/ffi/ffi_calls.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/functions.h"

namespace hlokit::pjrt {
namespace {

thread_local FfiRun run_of_thread;

// What follows the attributes of a call that was instantiated: its number.
constexpr std::string_view kInstanceMark = "\n#hlokit.instance=";

// Calls that programs have instantiated, by number. Their owners keep them
// alive.
class FfiCalls {
 public:
  static FfiCalls& Get() {
    static auto* const calls = new FfiCalls();
    return *calls;
  }
  int64_t Add(const std::shared_ptr<FfiCall>& call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_[++last_] = call;
    return last_;
  }
  std::shared_ptr<FfiCall> Find(int64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = calls_.find(number);
    if (it == calls_.end()) return nullptr;
    std::shared_ptr<FfiCall> call = it->second.lock();
    if (call == nullptr) calls_.erase(it);
    return call;
  }

 private:
  std::mutex mutex_;
  int64_t last_ = 0;
  std::map<int64_t, std::weak_ptr<FfiCall>> calls_;
};

// The attributes of a call, and its number; 0: it was not instantiated.
std::pair<std::string_view, int64_t> SplitConfig(std::string_view config) {
  const size_t mark = config.rfind(kInstanceMark);
  int64_t number = 0;
  if (mark == config.npos || !absl::SimpleAtoi(std::string(config.substr(mark + kInstanceMark.size())), &number)) {
    return {config, 0};
  }
  return {config.substr(0, mark), number};
}

// Runs the stages before execution that the run has not run on this device.
absl::Status RunStages(FfiCall& call, FfiCall::OfDevice& of_device, int64_t run, XLA_FFI_CallFrame frame) {
  if (of_device.run == run) return absl::OkStatus();
  of_device.initialized.Reset();
  of_device.prepared.Reset();
  of_device.run = 0;
  for (const auto& [stage, handler] : {std::pair(XLA_FFI_ExecutionStage_PREPARE, call.bundle.prepare),
                                       std::pair(XLA_FFI_ExecutionStage_INITIALIZE, call.bundle.initialize)}) {
    if (handler == nullptr) continue;
    frame.stage = stage;
    if (absl::Status status = CallStage(handler, &frame); !status.ok()) return status;
  }
  of_device.run = run;
  return absl::OkStatus();
}

absl::Status CallHandler(const XLA_FFI_Handler_Bundle& bundle, absl::Span<const interp::CustomCallOperand> operands,
                         absl::Span<const interp::CustomCallResult> results, std::string_view config) {
  const auto [text, number] = SplitConfig(config);
  const absl::StatusOr<std::unique_ptr<FfiAttributes>> attributes = FfiAttributes::Parse(text);
  if (!attributes.ok()) return attributes.status();
  FfiBuffers arguments, outputs;
  for (const interp::CustomCallOperand& operand : operands) {
    if (absl::Status status = arguments.Add(operand); !status.ok()) return status;
  }
  for (const interp::CustomCallResult& result : results) {
    if (absl::Status status = outputs.Add(result, arguments); !status.ok()) return status;
  }
  std::vector<XLA_FFI_ArgType> argument_types(operands.size(), XLA_FFI_ArgType_BUFFER);
  std::vector<XLA_FFI_RetType> result_types(results.size(), XLA_FFI_RetType_BUFFER);
  XLA_FFI_ExecutionContext context;
  context.user_data = run_of_thread.user_data;
  context.run_id = run_of_thread.id;
  const auto position = static_cast<size_t>(run_of_thread.devices.size() == 1 ? 0 : interp::device_of_custom_call);
  if (position < run_of_thread.devices.size()) context.device = run_of_thread.devices[position];
  XLA_FFI_CallFrame frame = NewFrame(XLA_FFI_ExecutionStage_EXECUTE);
  frame.ctx = &context;
  frame.args = {sizeof(XLA_FFI_Args), nullptr, arguments.size(), argument_types.data(), arguments.pointers()};
  frame.rets = {sizeof(XLA_FFI_Rets), nullptr, outputs.size(), result_types.data(), outputs.pointers()};
  frame.attrs = (*attributes)->attrs();
  const std::shared_ptr<FfiCall> call = number == 0 ? nullptr : FfiCalls::Get().Find(number);
  if (number != 0 && call == nullptr) return absl::InternalError("a call of a program that is not loaded any more");
  if (call != nullptr) {
    const std::lock_guard<std::mutex> lock(call->mutex);
    context.call = call.get();
    context.of_device = &call->devices[context.device];
    if (absl::Status status = RunStages(*call, *context.of_device, context.run_id, frame); !status.ok()) return status;
  }
  if (absl::Status status = CallStage(bundle.execute, &frame); !status.ok()) return status;
  outputs.Store();
  return absl::OkStatus();
}

bool SameHandlers(const XLA_FFI_Handler_Bundle& a, const XLA_FFI_Handler_Bundle& b) {
  return a.instantiate == b.instantiate && a.prepare == b.prepare && a.initialize == b.initialize &&
         a.execute == b.execute;
}

bool HasStages(const XLA_FFI_Handler_Bundle& bundle) {
  return bundle.instantiate != nullptr || bundle.prepare != nullptr || bundle.initialize != nullptr;
}

// Handlers of all platforms, in the order of their registration.
struct Handlers {
  struct Handler {
    std::string platform, target;
    XLA_FFI_Handler_Bundle bundle;
  };
  struct Type {
    int64_t id = 0;
    void (*deleter)(void* object) = nullptr;
  };
  std::shared_mutex mutex;
  std::vector<Handler> all;
  std::map<std::string, interp::CustomCallRegistry> by_platform;
  std::mutex types_mutex;
  std::map<std::string, Type, std::less<>> types;  // by name

  static bool Serves(const Handler& handler, std::string_view platform) {
    return handler.platform == platform || handler.platform == "cpu" || handler.platform == "host";
  }
  static void Register(const Handler& handler, interp::CustomCallRegistry* registry) {
    registry->Register(handler.target, [bundle = handler.bundle](auto operands, auto results, auto config) {
      return CallHandler(bundle, operands, results, config);
    });
  }
  // Returns the handlers that a platform runs for a target: those that were
  // registered last.
  std::optional<XLA_FFI_Handler_Bundle> Find(std::string_view platform, std::string_view target) {
    const std::shared_lock<std::shared_mutex> lock(mutex);
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
      if (it->target == target && Serves(*it, platform)) return it->bundle;
    }
    return std::nullopt;
  }
};

Handlers& AllHandlers() {
  static auto* const handlers = new Handlers();
  return *handlers;
}

bool IsTypedCall(Instruction i) {
  return i.opcode() == Opcode::kCustomCall &&
         i.payload(Attr::kApiVersion) == static_cast<uint32_t>(CustomCallApiVersion::kTypedFfi);
}

// Returns true for calls that run without a handler.
bool IsBuiltIn(Instruction call) {
  const std::string_view target = call.string_attr(Attr::kCustomCallTarget);
  return interp::IsMarkerTarget(target) || interp::IsNopTarget(target) || target == "TopK" ||
         interp::FindMatrixCall(target) != nullptr || interp::FunctionFor(call) != nullptr;
}

// Asks a handler what it is.
absl::StatusOr<XLA_FFI_Metadata> MetadataOf(std::string_view target, XLA_FFI_Handler* handler) {
  XLA_FFI_Metadata metadata = {};
  metadata.struct_size = sizeof(metadata);
  metadata.api_version.struct_size = sizeof(metadata.api_version);
  XLA_FFI_Metadata_Extension extension = {{sizeof(XLA_FFI_Metadata_Extension), XLA_FFI_Extension_Metadata, nullptr},
                                          &metadata};
  XLA_FFI_CallFrame frame = NewFrame(XLA_FFI_ExecutionStage_EXECUTE);
  frame.extension_start = &extension.extension_base;
  if (absl::Status status = CallStage(handler, &frame); !status.ok()) return status;
  if (metadata.api_version.major_version != XLA_FFI_API_MAJOR ||
      metadata.api_version.minor_version > XLA_FFI_API_MINOR) {
    return absl::InvalidArgumentError(
        StrCat("the handler ", target, " is of the version ", metadata.api_version.major_version, ".",
               metadata.api_version.minor_version, "; hlokit has ", XLA_FFI_API_MAJOR, ".", XLA_FFI_API_MINOR));
  }
  return metadata;
}

}  // namespace

bool HasTypedCalls(const Module& module) {
  for (const Computation computation : module.computations()) {
    for (const Instruction i : computation.instructions()) {
      if (IsTypedCall(i)) return true;
    }
  }
  return false;
}

std::shared_mutex& FfiHandlersMutex() { return AllHandlers().mutex; }

const interp::CustomCallRegistry* FfiHandlersOf(std::string_view platform) {
  Handlers& handlers = AllHandlers();
  const std::unique_lock<std::shared_mutex> lock(handlers.mutex);
  const auto [it, added] = handlers.by_platform.try_emplace(absl::AsciiStrToLower(std::string(platform)));
  if (added) {
    for (const Handlers::Handler& handler : handlers.all) {
      if (Handlers::Serves(handler, it->first)) Handlers::Register(handler, &it->second);
    }
  }
  return &it->second;
}

absl::StatusOr<std::vector<std::shared_ptr<FfiCall>>> InstantiateFfiCalls(std::string_view platform, Module* module) {
  std::vector<std::shared_ptr<FfiCall>> calls;
  const std::string lower = absl::AsciiStrToLower(std::string(platform));
  for (const Computation computation : module->computations()) {
    for (const Instruction i : computation.instructions()) {
      if (!IsTypedCall(i)) continue;
      const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
      const std::optional<XLA_FFI_Handler_Bundle> bundle = AllHandlers().Find(lower, target);
      if (!bundle && !IsBuiltIn(i)) {
        return absl::NotFoundError(StrCat("No FFI handler registered for ", target, " on a platform ", platform));
      }
      if (!bundle || !HasStages(*bundle)) continue;
      const std::string config(i.string_attr(Attr::kBackendConfig));
      auto call = std::make_shared<FfiCall>(*bundle);
      if (bundle->instantiate != nullptr) {
        const absl::StatusOr<std::unique_ptr<FfiAttributes>> attributes = FfiAttributes::Parse(config);
        if (!attributes.ok()) return attributes.status();
        XLA_FFI_ExecutionContext context;
        context.call = call.get();
        XLA_FFI_CallFrame frame = NewFrame(XLA_FFI_ExecutionStage_INSTANTIATE);
        frame.ctx = &context;
        frame.attrs = (*attributes)->attrs();
        if (absl::Status status = CallStage(bundle->instantiate, &frame); !status.ok()) return status;
      }
      const std::string marked = StrCat(config, kInstanceMark, FfiCalls::Get().Add(call));
      module->SetAttr(i.id(), Attr::kBackendConfig, module->context().strings.Intern(marked).value);
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

void SetFfiRun(FfiRun run) { run_of_thread = std::move(run); }

absl::Status RegisterFfiHandler(std::string_view target, std::string_view platform,
                                const XLA_FFI_Handler_Bundle& bundle) {
  Handlers::Handler handler = {absl::AsciiStrToLower(std::string(platform)), std::string(target), bundle};
  handler.bundle.record = nullptr;
  if (target.empty()) return absl::InvalidArgumentError("the handler has no name");
  if (bundle.execute == nullptr) {
    return absl::InvalidArgumentError(StrCat("the handler ", target, " has no stage of execution"));
  }
  bool state = false;
  for (XLA_FFI_Handler* const stage : {bundle.instantiate, bundle.prepare, bundle.initialize, bundle.execute}) {
    if (stage == nullptr) continue;
    const absl::StatusOr<XLA_FFI_Metadata> metadata = MetadataOf(target, stage);
    if (!metadata.ok()) return metadata.status();
    state = state || metadata->state_type_id.type_id != 0;
  }
  if (state && bundle.instantiate == nullptr) {
    return absl::InvalidArgumentError(StrCat("the handler ", target, " has a state, and no stage that makes it"));
  }
  Handlers& handlers = AllHandlers();
  const std::unique_lock<std::shared_mutex> lock(handlers.mutex);
  for (const Handlers::Handler& other : handlers.all) {
    if (other.platform != handler.platform || other.target != handler.target) continue;
    if (SameHandlers(other.bundle, handler.bundle)) return absl::OkStatus();
    return absl::AlreadyExistsError(StrCat("there is a handler ", target, " for ", handler.platform));
  }
  for (auto& [name, registry] : handlers.by_platform) {
    if (Handlers::Serves(handler, name)) Handlers::Register(handler, &registry);
  }
  handlers.all.push_back(std::move(handler));
  return absl::OkStatus();
}

absl::Status RegisterFfiType(std::string_view name, void (*deleter)(void* object), int64_t* id) {
  Handlers& handlers = AllHandlers();
  const std::lock_guard<std::mutex> lock(handlers.types_mutex);
  const auto known = handlers.types.find(name);
  if (known != handlers.types.end()) {
    if (*id != 0 && *id != known->second.id) {
      return absl::InvalidArgumentError(StrCat("the type ", name, " has the id ", known->second.id));
    }
    *id = known->second.id;
    if (deleter != nullptr) known->second.deleter = deleter;
    return absl::OkStatus();
  }
  int64_t next = 1;
  for (const auto& [other, type] : handlers.types) {
    if (*id == type.id) return absl::InvalidArgumentError(StrCat("the type ", other, " has the id ", type.id));
    next = std::max(next, type.id + 1);
  }
  if (*id == 0) *id = next;
  handlers.types[std::string(name)] = {*id, deleter};
  return absl::OkStatus();
}

void (*FfiDeleterOf(int64_t type_id))(void* object) {
  Handlers& handlers = AllHandlers();
  const std::lock_guard<std::mutex> lock(handlers.types_mutex);
  for (const auto& [name, type] : handlers.types) {
    if (type.id == type_id) return type.deleter;
  }
  return nullptr;
}

absl::Status FfiTypeRegister(PJRT_FFI_Type_Register_Args* args) {
  const auto deleter = args->type_info == nullptr ? nullptr : args->type_info->deleter;
  return RegisterFfiType(TextOf(args->type_name, args->type_name_size), deleter, &args->type_id);
}

absl::Status FfiUserDataAdd(PJRT_FFI_UserData_Add_Args* args) {
  FfiUserData& user = *args->context->user_data;
  const std::lock_guard<std::mutex> lock(user.mutex);
  if (!user.data.emplace(args->user_data.type_id, args->user_data.data).second) {
    return absl::AlreadyExistsError(StrCat("the context has data of the type ", args->user_data.type_id));
  }
  return absl::OkStatus();
}

absl::Status FfiRegisterHandler(PJRT_FFI_Register_Handler_Args* args) {
  XLA_FFI_Handler_Bundle bundle = {};
  bundle.execute = reinterpret_cast<XLA_FFI_Handler*>(args->handler);
  return RegisterFfiHandler(TextOf(args->target_name, args->target_name_size),
                            TextOf(args->platform_name, args->platform_name_size), bundle);
}

absl::Status ExecuteContext_Create(PJRT_ExecuteContext_Create_Args* args) {
  args->context = new PJRT_ExecuteContext{std::make_shared<FfiUserData>()};
  return absl::OkStatus();
}

absl::Status ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args* args) {
  delete args->context;
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
