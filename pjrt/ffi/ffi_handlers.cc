// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/ffi_handlers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "ir/core/str_cat.h"
#include "pjrt/c_api/xla_ffi.h"
#include "pjrt/ffi/ffi_attributes.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/functions.h"
#include "pjrt/values/host_array.h"

struct XLA_FFI_Error {
  absl::Status status;
  std::string message;
};

struct XLA_FFI_ExecutionContext {
  std::shared_ptr<hlokit::pjrt::FfiUserData> user_data;
};

namespace hlokit::pjrt {
namespace {

thread_local std::shared_ptr<FfiUserData> user_data_of_run;

XLA_FFI_Error* NewFfiError(absl::Status status) {
  std::string message(status.message());
  return new XLA_FFI_Error{std::move(status), std::move(message)};
}

XLA_FFI_Error* CreateError(XLA_FFI_Error_Create_Args* args) {
  const bool known = args->errc > 0 && args->errc <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return NewFfiError(absl::Status(known ? static_cast<absl::StatusCode>(args->errc) : absl::StatusCode::kUnknown,
                                  args->message == nullptr ? "" : args->message));
}

void GetErrorDetails(XLA_FFI_Error_GetDetails_Args* args) {
  args->message = args->error->message.c_str();
  if (args->struct_size >= offsetof(XLA_FFI_Error_GetDetails_Args, errc) + sizeof(args->errc)) {
    args->errc = static_cast<XLA_FFI_Error_Code>(args->error->status.code());
  }
}

void DestroyFfiError(XLA_FFI_Error_Destroy_Args* args) { delete args->error; }

XLA_FFI_Error* GetUserData(XLA_FFI_ExecutionContext_Get_Args* args) {
  if (args->ctx == nullptr || args->type_id == nullptr) {
    return NewFfiError(absl::InvalidArgumentError("XLA_FFI_ExecutionContext_Get: the context or the type is null"));
  }
  if (args->ctx->user_data != nullptr) {
    FfiUserData& user = *args->ctx->user_data;
    const std::lock_guard<std::mutex> lock(user.mutex);
    if (const auto it = user.data.find(args->type_id->type_id); it != user.data.end()) {
      args->data = it->second;
      return nullptr;
    }
  }
  return NewFfiError(absl::NotFoundError(StrCat("the run has no data of the type ", args->type_id->type_id)));
}

XLA_FFI_Error* FindExtension(XLA_FFI_InvokeContext_FindExtension_Args* args) {
  args->extension = nullptr;
  return nullptr;
}

XLA_FFI_Error* GetCustomOptions(XLA_FFI_CustomOptions_Get_Args* args) {
  static const XLA_FFI_Attrs none = {sizeof(XLA_FFI_Attrs), nullptr, 0, nullptr, nullptr, nullptr};
  args->attrs = &none;
  return nullptr;
}

XLA_FFI_Error* Unimplemented(void*) {
  return NewFfiError(absl::UnimplementedError("hlokit does not implement this function for handlers of custom calls"));
}

const XLA_FFI_Api* FfiApi() {
  static const XLA_FFI_Api api = {
      .struct_size = sizeof(XLA_FFI_Api),
      .extension_start = nullptr,
      .api_version = {sizeof(XLA_FFI_Api_Version), nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR},
      .internal_api = nullptr,
      .XLA_FFI_Error_Create = CreateError,
      .XLA_FFI_Error_GetDetails = GetErrorDetails,
      .XLA_FFI_Error_Destroy = DestroyFfiError,
      .XLA_FFI_Handler_Register = Unimplemented,
      .XLA_FFI_Stream_Get = Unimplemented,
      .XLA_FFI_Type_Register = Unimplemented,
      .XLA_FFI_ExecutionContext_Get = GetUserData,
      .XLA_FFI_State_Set = Unimplemented,
      .XLA_FFI_State_Get = Unimplemented,
      .XLA_FFI_DeviceMemory_Allocate = Unimplemented,
      .XLA_FFI_DeviceMemory_Free = Unimplemented,
      .XLA_FFI_ThreadPool_Schedule = Unimplemented,
      .XLA_FFI_ThreadPool_NumThreads = Unimplemented,
      .XLA_FFI_Future_Create = Unimplemented,
      .XLA_FFI_Future_SetAvailable = Unimplemented,
      .XLA_FFI_Future_SetError = Unimplemented,
      .XLA_FFI_RunId_Get = Unimplemented,
      .XLA_FFI_DeviceOrdinal_Get = Unimplemented,
      .XLA_FFI_InvokeContext_FindExtension = FindExtension,
      .XLA_FFI_CustomOptions_Get = GetCustomOptions,
  };
  return &api;
}

XLA_FFI_CallFrame NewFrame() {
  XLA_FFI_CallFrame frame = {};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
  frame.api = FfiApi();
  frame.stage = XLA_FFI_ExecutionStage_EXECUTE;
  frame.args.struct_size = sizeof(frame.args);
  frame.rets.struct_size = sizeof(frame.rets);
  frame.attrs.struct_size = sizeof(frame.attrs);
  return frame;
}

absl::Status Call(XLA_FFI_Handler* handler, XLA_FFI_CallFrame* frame) {
  XLA_FFI_Error* error = nullptr;
  try {
    error = handler(frame);
  } catch (const std::exception& e) {
    return absl::InternalError(StrCat("an exception of a handler: ", e.what()));
  } catch (...) {
    return absl::InternalError("an exception of a handler");
  }
  if (error == nullptr) return absl::OkStatus();
  const std::unique_ptr<XLA_FFI_Error> owned(error);
  return owned->status.ok() ? absl::UnknownError("the handler failed") : owned->status;
}

// Returns true if a handler gets the elements in another order than ours.
bool HasOtherOrder(Shape shape) {
  if (!shape.IsArray() || !shape.has_layout()) return false;
  const absl::Span<const int64_t> order = shape.layout()->minor_to_major;
  if (static_cast<int64_t>(order.size()) != shape.rank()) return false;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (order[static_cast<size_t>(i)] != shape.rank() - 1 - i) return true;
  }
  return false;
}

// Copies elements between our order, row-major, and the order of the layout.
void CopyInOrder(Shape shape, const std::byte* from, std::byte* to, bool to_layout) {
  const ElementType type = shape.element_type();
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < shape.rank(); ++d) dims.push_back(shape.dim(d));
  const std::vector<int64_t> ours = DenseStrides(type, dims);
  std::vector<int64_t> theirs(dims.size());
  int64_t stride = BytesOf(type);
  for (const int64_t d : shape.layout()->minor_to_major) {
    theirs[static_cast<size_t>(d)] = stride;
    stride *= shape.dim(d);
  }
  CopyStrided(from, to_layout ? ours : theirs, to, to_layout ? theirs : ours, dims, BytesOf(type));
}

// The arguments or results of a call.
class Buffers {
 public:
  template <typename T>
  absl::Status Add(const T& value) {
    const Shape shape = value.shape;
    const XLA_FFI_DataType type = FfiTypeOf(shape.element_type());
    if (type == 0) {
      return absl::UnimplementedError(StrCat("handlers have no values of the type ", ToString(shape.element_type())));
    }
    std::vector<int64_t>& dims = dims_.emplace_back();
    for (int64_t i = 0; shape.IsArray() && i < shape.rank(); ++i) dims.push_back(shape.dim(i));
    auto* data = const_cast<std::byte*>(value.data);
    if (HasOtherOrder(shape)) {
      std::vector<std::byte>& copy = copies_.emplace_back(static_cast<size_t>(shape.element_count()) *
                                                          static_cast<size_t>(BytesOf(shape.element_type())));
      if constexpr (std::is_same_v<T, interp::CustomCallOperand>) {
        CopyInOrder(shape, value.data, copy.data(), /*to_layout=*/true);
      } else {
        results_.push_back({shape, copy.data(), value.data});
      }
      data = copy.data();
    }
    buffers_.push_back({sizeof(XLA_FFI_Buffer), nullptr, type, data, static_cast<int64_t>(dims.size()), dims.data()});
    pointers_.push_back(&buffers_.back());
    return absl::OkStatus();
  }
  // Stores the results that a handler has written in another order.
  void Store() const {
    for (const Result& result : results_) CopyInOrder(result.shape, result.from, result.to, /*to_layout=*/false);
  }
  void** pointers() { return pointers_.data(); }
  int64_t size() const { return static_cast<int64_t>(pointers_.size()); }

 private:
  struct Result {
    Shape shape;
    const std::byte* from;
    std::byte* to;
  };
  std::deque<std::vector<int64_t>> dims_;
  std::deque<std::vector<std::byte>> copies_;
  std::vector<Result> results_;
  std::deque<XLA_FFI_Buffer> buffers_;
  std::vector<void*> pointers_;
};

absl::Status CallHandler(XLA_FFI_Handler* handler, absl::Span<const interp::CustomCallOperand> operands,
                         absl::Span<const interp::CustomCallResult> results, std::string_view config) {
  const absl::StatusOr<std::unique_ptr<FfiAttributes>> attributes = FfiAttributes::Parse(config);
  if (!attributes.ok()) return attributes.status();
  Buffers arguments, outputs;
  for (const interp::CustomCallOperand& operand : operands) {
    if (absl::Status status = arguments.Add(operand); !status.ok()) return status;
  }
  for (const interp::CustomCallResult& result : results) {
    if (absl::Status status = outputs.Add(result); !status.ok()) return status;
  }
  std::vector<XLA_FFI_ArgType> argument_types(operands.size(), XLA_FFI_ArgType_BUFFER);
  std::vector<XLA_FFI_RetType> result_types(results.size(), XLA_FFI_RetType_BUFFER);
  XLA_FFI_ExecutionContext context = {user_data_of_run};
  XLA_FFI_CallFrame frame = NewFrame();
  frame.ctx = &context;
  frame.args = {sizeof(XLA_FFI_Args), nullptr, arguments.size(), argument_types.data(), arguments.pointers()};
  frame.rets = {sizeof(XLA_FFI_Rets), nullptr, outputs.size(), result_types.data(), outputs.pointers()};
  frame.attrs = (*attributes)->attrs();
  if (absl::Status status = Call(handler, &frame); !status.ok()) return status;
  outputs.Store();
  return absl::OkStatus();
}

// Handlers of all platforms, in the order of their registration.
struct Handlers {
  struct Handler {
    std::string platform, target;
    XLA_FFI_Handler* function;
  };
  std::shared_mutex mutex;
  std::vector<Handler> all;
  std::map<std::string, interp::CustomCallRegistry> by_platform;
  std::map<std::string, int64_t, std::less<>> types;  // ids by name

  static bool Serves(const Handler& handler, std::string_view platform) {
    return handler.platform == platform || handler.platform == "cpu" || handler.platform == "host";
  }
  static void Register(const Handler& handler, interp::CustomCallRegistry* registry) {
    registry->Register(handler.target, [function = handler.function](auto operands, auto results, auto config) {
      return CallHandler(function, operands, results, config);
    });
  }
};

Handlers& AllHandlers() {
  static auto* const handlers = new Handlers();
  return *handlers;
}

}  // namespace

bool HasTypedCalls(const Module& module) {
  for (const Computation computation : module.computations()) {
    for (const Instruction i : computation.instructions()) {
      if (i.opcode() == Opcode::kCustomCall &&
          i.payload(Attr::kApiVersion) == static_cast<uint32_t>(CustomCallApiVersion::kTypedFfi)) {
        return true;
      }
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

void SetFfiUserData(std::shared_ptr<FfiUserData> data) { user_data_of_run = std::move(data); }

absl::Status FfiTypeRegister(PJRT_FFI_Type_Register_Args* args) {
  const std::string name(TextOf(args->type_name, args->type_name_size));
  Handlers& handlers = AllHandlers();
  const std::unique_lock<std::shared_mutex> lock(handlers.mutex);
  const auto known = handlers.types.find(name);
  if (known != handlers.types.end()) {
    if (args->type_id != 0 && args->type_id != known->second) {
      return absl::InvalidArgumentError(StrCat("the type ", name, " has the id ", known->second));
    }
    args->type_id = known->second;
    return absl::OkStatus();
  }
  int64_t next = 1;
  for (const auto& [other, id] : handlers.types) {
    if (args->type_id == id) return absl::InvalidArgumentError(StrCat("the type ", other, " has the id ", id));
    next = std::max(next, id + 1);
  }
  if (args->type_id == 0) args->type_id = next;
  handlers.types[name] = args->type_id;
  return absl::OkStatus();
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
  Handlers::Handler handler = {
      absl::AsciiStrToLower(std::string(TextOf(args->platform_name, args->platform_name_size))),
      std::string(TextOf(args->target_name, args->target_name_size)),
      reinterpret_cast<XLA_FFI_Handler*>(args->handler)};
  if (handler.target.empty()) return absl::InvalidArgumentError("the handler has no name");
  XLA_FFI_Metadata metadata = {};
  metadata.struct_size = sizeof(metadata);
  metadata.api_version.struct_size = sizeof(metadata.api_version);
  XLA_FFI_Metadata_Extension extension = {{sizeof(XLA_FFI_Metadata_Extension), XLA_FFI_Extension_Metadata, nullptr},
                                          &metadata};
  XLA_FFI_CallFrame frame = NewFrame();
  frame.extension_start = &extension.extension_base;
  if (absl::Status status = Call(handler.function, &frame); !status.ok()) return status;
  if (metadata.api_version.major_version != XLA_FFI_API_MAJOR ||
      metadata.api_version.minor_version > XLA_FFI_API_MINOR) {
    return absl::InvalidArgumentError(
        StrCat("the handler ", handler.target, " is of the version ", metadata.api_version.major_version, ".",
               metadata.api_version.minor_version, "; hlokit has ", XLA_FFI_API_MAJOR, ".", XLA_FFI_API_MINOR));
  }
  if (metadata.state_type_id.type_id != 0) {
    return absl::UnimplementedError(StrCat("the handler ", handler.target, " has a state"));
  }
  Handlers& handlers = AllHandlers();
  const std::unique_lock<std::shared_mutex> lock(handlers.mutex);
  for (const Handlers::Handler& other : handlers.all) {
    if (other.platform != handler.platform || other.target != handler.target) continue;
    if (other.function == handler.function) return absl::OkStatus();
    return absl::AlreadyExistsError(StrCat("there is a handler ", handler.target, " for ", handler.platform));
  }
  for (auto& [platform, registry] : handlers.by_platform) {
    if (Handlers::Serves(handler, platform)) Handlers::Register(handler, &registry);
  }
  handlers.all.push_back(std::move(handler));
  return absl::OkStatus();
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
