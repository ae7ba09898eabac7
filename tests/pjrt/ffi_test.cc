// SPDX-License-Identifier: Apache-2.0
// Typed custom calls: handlers, their attributes, errors and data.
#include <algorithm>
#include <string>
#include <utility>

#include "pjrt/c_api/ffi_args.h"
#include "pjrt/c_api/xla_ffi.h"
#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

const PJRT_FFI_Extension* FfiExtension() {
  for (const PJRT_Extension_Base* e = Api().extension_start; e != nullptr; e = e->next) {
    if (e->type == PJRT_Extension_Type_FFI) return reinterpret_cast<const PJRT_FFI_Extension*>(e);
  }
  return nullptr;
}

int64_t user_type = 0;

XLA_FFI_Error* Fail(const XLA_FFI_CallFrame* frame, int code, const char* message) {
  XLA_FFI_Error_Create_Args args = {sizeof(args), nullptr, message, code};
  return frame->api->XLA_FFI_Error_Create(&args);
}

const void* Find(const XLA_FFI_Attrs& attrs, std::string_view name, XLA_FFI_AttrType type) {
  for (int64_t i = 0; i < attrs.size; ++i) {
    if (std::string_view(attrs.names[i]->ptr, attrs.names[i]->len) == name && attrs.types[i] == type) {
      return attrs.attrs[i];
    }
  }
  return nullptr;
}

bool IsMetadata(XLA_FFI_CallFrame* frame, int minor = XLA_FFI_API_MINOR) {
  if (frame->extension_start == nullptr) return false;
  XLA_FFI_Metadata* const metadata = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = minor;
  return true;
}

// a + b * scale, and the number of calls in the caller's counter. The attributes are those of kProgram.
extern "C" XLA_FFI_Error* AddScaled(XLA_FFI_CallFrame* frame) {
  if (IsMetadata(frame)) return nullptr;
  if (frame->stage != XLA_FFI_ExecutionStage_EXECUTE || frame->args.size != 2 || frame->rets.size != 1) {
    return Fail(frame, kInvalidArgument, "two arguments and one result");
  }
  const auto* const a = static_cast<const XLA_FFI_Buffer*>(frame->args.args[0]);
  const auto* const b = static_cast<const XLA_FFI_Buffer*>(frame->args.args[1]);
  auto* const result = static_cast<XLA_FFI_Buffer*>(frame->rets.rets[0]);
  if (a->dtype != kF32 || a->rank != 2 || a->dims[0] != 2 || a->dims[1] != 3) {
    return Fail(frame, kInvalidArgument, "f32[2,3]");
  }
  const auto* const scale = static_cast<const XLA_FFI_Scalar*>(Find(frame->attrs, "scale", XLA_FFI_AttrType_SCALAR));
  const auto* const mode = static_cast<const XLA_FFI_ByteSpan*>(Find(frame->attrs, "mode", XLA_FFI_AttrType_STRING));
  const auto* const list = static_cast<const XLA_FFI_Array*>(Find(frame->attrs, "list", XLA_FFI_AttrType_ARRAY));
  const auto* const more = static_cast<const XLA_FFI_Attrs*>(Find(frame->attrs, "more", XLA_FFI_AttrType_DICTIONARY));
  if (scale == nullptr || mode == nullptr || list == nullptr || more == nullptr || frame->attrs.size != 5) {
    return Fail(frame, kInvalidArgument, "an attribute is missing");
  }
  const auto* const half = static_cast<const XLA_FFI_Scalar*>(Find(*more, "half", XLA_FFI_AttrType_SCALAR));
  const auto* const table = static_cast<const XLA_FFI_Array*>(Find(frame->attrs, "table", XLA_FFI_AttrType_ARRAY));
  if (half == nullptr || *static_cast<const float*>(half->value) != 0.5F || table == nullptr || table->size != 4 ||
      static_cast<const int32_t*>(table->data)[3] != 7 || list->size != 2 ||
      static_cast<const int64_t*>(list->data)[1] != -2) {
    return Fail(frame, kInvalidArgument, "an attribute has another value");
  }
  if (std::string_view(mode->ptr, mode->len) == "fail") return Fail(frame, kFailedPrecondition, "the mode is fail");
  XLA_FFI_TypeId type = {user_type};
  XLA_FFI_ExecutionContext_Get_Args get = {sizeof(get), nullptr, frame->ctx, &type, nullptr};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_ExecutionContext_Get(&get)) return error;
  ++*static_cast<int*>(get.data);
  const auto factor = static_cast<float>(*static_cast<const int64_t*>(scale->value));
  for (int i = 0; i < 6; ++i) {
    static_cast<float*>(result->data)[i] =
        static_cast<const float*>(a->data)[i] + factor * static_cast<const float*>(b->data)[i];
  }
  return nullptr;
}

// The elements of the first argument and then those of the second, in the order in memory, as the two results.
extern "C" XLA_FFI_Error* CopyMemory(XLA_FFI_CallFrame* frame) {
  if (IsMetadata(frame)) return nullptr;
  // Handlers of jaxlib accept no other size.
  if (frame->struct_size != 168) return Fail(frame, kInvalidArgument, "size of the frame");
  XLA_FFI_CustomOptions_Get_Args options = {sizeof(options), nullptr, frame->ctx, nullptr};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_CustomOptions_Get(&options)) return error;
  if (options.attrs->size != 0) return Fail(frame, kInvalidArgument, "options");
  XLA_FFI_InvokeContext_FindExtension_Args find = {sizeof(find), nullptr, frame->ctx, 1, frame};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_InvokeContext_FindExtension(&find)) return error;
  if (find.extension != nullptr || frame->args.size != 2) return Fail(frame, kInvalidArgument, "an extension");
  for (int k = 0; k < 2; ++k) {
    const auto* const from = static_cast<const XLA_FFI_Buffer*>(frame->args.args[k]);
    std::copy_n(static_cast<const float*>(from->data), 6,
                static_cast<float*>(static_cast<XLA_FFI_Buffer*>(frame->rets.rets[k])->data));
  }
  return nullptr;
}

extern "C" XLA_FFI_Error* OfTheFuture(XLA_FFI_CallFrame* frame) {
  IsMetadata(frame, XLA_FFI_API_MINOR + 1);
  return nullptr;
}

Result Register(std::string_view target, XLA_FFI_Handler* handler, std::string_view platform) {
  PJRT_FFI_Register_Handler_Args args = {};
  args.struct_size = sizeof(args);
  args.target_name = target.data();
  args.target_name_size = target.size();
  args.handler = reinterpret_cast<void*>(handler);
  args.platform_name = platform.data();
  args.platform_name_size = platform.size();
  return Take(FfiExtension()->register_handler(&args));
}

std::string Program(std::string_view mode) {
  return R"(module { func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %z = stablehlo.custom_call @ffi_test_add_scaled(%x, %y) {api_version = 4 : i32, backend_config = {
        scale = 3 : i64, mode = ")" +
         std::string(mode) + R"(", list = array<i64: 1, -2>, more = {half = 5.0e-01 : f32},
        table = dense<7> : tensor<2x2xi32>}} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %z : tensor<2x3xf32> } })";
}

Result RunProgram(const ClientScope& client, PJRT_LoadedExecutable* executable, PJRT_ExecuteContext* context,
                  std::vector<float>* values) {
  PJRT_Device* const device = client.devices()[0];
  PJRT_Buffer* const arguments[] = {MakeBuffer<float>(client.get(), device, kF32, {1, 2, 3, 4, 5, 6}, {2, 3}),
                                    MakeBuffer<float>(client.get(), device, kF32, {1, 1, 1, 2, 2, 2}, {2, 3})};
  PJRT_Buffer* const* const lists[] = {arguments};
  PJRT_Buffer* output = nullptr;
  PJRT_Buffer** const outputs[] = {&output};
  PJRT_Event* done = nullptr;
  auto options = Zeroed<PJRT_ExecuteOptions>();
  options.context = context;
  auto args = Garbage<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = executable;
  args.options = &options;
  args.argument_lists = lists;
  args.num_devices = 1;
  args.num_args = 2;
  args.output_lists = outputs;
  args.device_complete_events = &done;
  args.execute_device = nullptr;
  Result result = Take(Api().PJRT_LoadedExecutable_Execute(&args));
  if (result.ok()) result = Await(done);
  if (result.ok()) result = ReadBuffer(output, values);
  if (output != nullptr) Destroy(output);
  for (PJRT_Buffer* argument : arguments) Destroy(argument);
  return result;
}

TEST(FfiTest, HandlersRunWithArgumentsAttributesAndData) {
  ASSERT_NE(FfiExtension(), nullptr);
  auto type = Garbage<PJRT_FFI_Type_Register_Args>();
  constexpr std::string_view kType = "counter";
  PJRT_FFI_Type_Info info = {};
  type.type_name = kType.data();
  type.type_name_size = kType.size();
  type.type_id = 0;
  type.type_info = &info;
  ASSERT_CALL_OK(FfiExtension()->type_register(&type));
  EXPECT_NE(type.type_id, 0);
  user_type = type.type_id;
  ASSERT_TRUE(Register("ffi_test_add_scaled", AddScaled, "Host").ok());
  EXPECT_TRUE(Register("ffi_test_add_scaled", AddScaled, "Host").ok());
  EXPECT_EQ(Register("ffi_test_add_scaled", OfTheFuture, "cuda").code, kInvalidArgument);

  auto create = Garbage<PJRT_ExecuteContext_Create_Args>();
  ASSERT_CALL_OK(Api().PJRT_ExecuteContext_Create(&create));
  int calls = 0;
  auto add = Garbage<PJRT_FFI_UserData_Add_Args>();
  add.context = create.context;
  add.user_data = {user_type, &calls};
  ASSERT_CALL_OK(FfiExtension()->user_data_add(&add));
  EXPECT_FALSE(Take(FfiExtension()->user_data_add(&add)).ok());

  for (const char* const engine : {"exact", "fast"}) {
    const ClientScope client(1, {.texts = {{"engine", engine}}});
    PJRT_LoadedExecutable* executable = nullptr;
    const Result compiled = Compile(client.get(), Program("add"), "mlir", CompileOptionsOf(1, 1), &executable);
    ASSERT_TRUE(compiled.ok()) << compiled.message;
    std::vector<float> values;
    const int before = calls;
    const Result ran = RunProgram(client, executable, create.context, &values);
    EXPECT_TRUE(ran.ok()) << ran.message;
    EXPECT_EQ(values, (std::vector<float>{4, 5, 6, 10, 11, 12}));
    EXPECT_EQ(calls, before + 1);
    const Result without = RunProgram(client, executable, nullptr, &values);
    EXPECT_NE(without.message.find("the run has no data of the type"), std::string::npos) << without.message;
    Destroy(executable);

    ASSERT_TRUE(Compile(client.get(), Program("fail"), "mlir", CompileOptionsOf(1, 1), &executable).ok());
    const Result failed = RunProgram(client, executable, create.context, &values);
    EXPECT_FALSE(failed.ok());
    EXPECT_NE(failed.message.find("the mode is fail"), std::string::npos) << failed.message;
    Destroy(executable);
  }
  auto destroy = Garbage<PJRT_ExecuteContext_Destroy_Args>();
  destroy.context = create.context;
  EXPECT_CALL_OK(Api().PJRT_ExecuteContext_Destroy(&destroy));
}

TEST(FfiTest, HandlersSeeTheLayoutsOfTheCall) {
  ASSERT_TRUE(Register("ffi_test_copy_memory", CopyMemory, "cpu").ok());
  const std::string program = R"(module { func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<4x3xf32> {
    %z:2 = stablehlo.custom_call @ffi_test_copy_memory(%x, %y) {api_version = 4 : i32, mhlo.backend_config = {},
        operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>],
        result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>]}
        : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
    %c = stablehlo.concatenate %z#0, %z#1, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    return %c : tensor<4x3xf32> } })";
  for (const char* const engine : {"exact", "fast"}) {
    const ClientScope client(1, {.texts = {{"engine", engine}}});
    PJRT_LoadedExecutable* executable = nullptr;
    const Result compiled = Compile(client.get(), program, "mlir", CompileOptionsOf(1, 1), &executable);
    ASSERT_TRUE(compiled.ok()) << compiled.message;
    std::vector<float> values;
    const Result ran = RunProgram(client, executable, nullptr, &values);
    EXPECT_TRUE(ran.ok()) << ran.message;
    EXPECT_EQ(values, (std::vector<float>{1, 4, 2, 5, 3, 6, 1, 1, 2, 1, 2, 2}));
    Destroy(executable);
  }
}

// ---- stages ----

// What the handlers below have done.
struct Stages {
  int64_t instantiated = 0, prepared = 0, initialized = 0, executed = 0, alive = 0;
  int64_t run = 0, device = -1;
} stages;
int64_t state_type = 0;

XLA_FFI_Error* SetState(XLA_FFI_CallFrame* frame, XLA_FFI_ExecutionStage stage, int64_t value) {
  XLA_FFI_TypeId type = {state_type};
  ++stages.alive;
  XLA_FFI_State_Args args = {sizeof(args), nullptr, frame->ctx, stage, &type, new int64_t(value)};
  return frame->api->XLA_FFI_State_Set(&args);
}

XLA_FFI_Error* GetState(XLA_FFI_CallFrame* frame, XLA_FFI_ExecutionStage stage, int64_t* value) {
  XLA_FFI_TypeId type = {state_type};
  XLA_FFI_State_Args args = {sizeof(args), nullptr, frame->ctx, stage, &type, nullptr};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_State_Get(&args)) return error;
  *value = *static_cast<int64_t*>(args.state);
  return nullptr;
}

extern "C" XLA_FFI_Error* InstantiateStages(XLA_FFI_CallFrame* frame) {
  if (IsMetadata(frame)) {
    reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata->state_type_id.type_id = state_type;
    return nullptr;
  }
  ++stages.instantiated;
  const auto* const start = static_cast<const XLA_FFI_Scalar*>(Find(frame->attrs, "start", XLA_FFI_AttrType_SCALAR));
  if (start == nullptr || frame->args.size != 0) return Fail(frame, kInvalidArgument, "the call has no start");
  return SetState(frame, XLA_FFI_ExecutionStage_INSTANTIATE, *static_cast<const int64_t*>(start->value));
}

extern "C" XLA_FFI_Error* PrepareStages(XLA_FFI_CallFrame* frame) {
  if (IsMetadata(frame)) return nullptr;
  return SetState(frame, XLA_FFI_ExecutionStage_PREPARE, 100 * ++stages.prepared);
}

extern "C" XLA_FFI_Error* InitializeStages(XLA_FFI_CallFrame* frame) {
  if (IsMetadata(frame)) return nullptr;
  return SetState(frame, XLA_FFI_ExecutionStage_INITIALIZE, 1000 * ++stages.initialized);
}

// The sum of the states, asynchronously: by a task that ends a future.
struct Task {
  const XLA_FFI_Api* api;
  XLA_FFI_Future* future;
  float* result;
  float value;
  XLA_FFI_Error* error;
};

void RunTask(void* data) {
  const std::unique_ptr<Task> task(static_cast<Task*>(data));
  if (task->error != nullptr) {
    XLA_FFI_Future_SetError_Args failed = {sizeof(failed), nullptr, task->future, task->error};
    task->api->XLA_FFI_Future_SetError(&failed);
    return;
  }
  for (int i = 0; i < 6; ++i) task->result[i] = task->value;
  XLA_FFI_Future_SetAvailable_Args done = {sizeof(done), nullptr, task->future};
  task->api->XLA_FFI_Future_SetAvailable(&done);
}

extern "C" XLA_FFI_Error* ExecuteStages(XLA_FFI_CallFrame* frame) {
  if (IsMetadata(frame)) return nullptr;
  ++stages.executed;
  int64_t a = 0, b = 0, c = 0, threads = 0;
  if (XLA_FFI_Error* error = GetState(frame, XLA_FFI_ExecutionStage_INSTANTIATE, &a)) return error;
  if (XLA_FFI_Error* error = GetState(frame, XLA_FFI_ExecutionStage_PREPARE, &b)) return error;
  if (XLA_FFI_Error* error = GetState(frame, XLA_FFI_ExecutionStage_INITIALIZE, &c)) return error;
  XLA_FFI_RunId_Get_Args run = {sizeof(run), nullptr, frame->ctx, 0};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_RunId_Get(&run)) return error;
  stages.run = run.run_id;
  XLA_FFI_DeviceOrdinal_Get_Args device = {sizeof(device), nullptr, frame->ctx, -1};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_DeviceOrdinal_Get(&device)) return error;
  stages.device = device.device_ordinal;
  XLA_FFI_ThreadPool_NumThreads_Args count = {sizeof(count), nullptr, frame->ctx, &threads};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_ThreadPool_NumThreads(&count)) return error;
  if (threads < 1) return Fail(frame, kInvalidArgument, "no threads");
  XLA_FFI_Future_Create_Args create = {sizeof(create), nullptr, nullptr};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_Future_Create(&create)) return error;
  frame->future = create.future;
  auto* const result = static_cast<float*>(static_cast<XLA_FFI_Buffer*>(frame->rets.rets[0])->data);
  XLA_FFI_Error* const error = a < 0 ? Fail(frame, kFailedPrecondition, "the start is negative") : nullptr;
  auto* const task = new Task{frame->api, create.future, result, static_cast<float>(a + b + c), error};
  XLA_FFI_ThreadPool_Schedule_Args schedule = {sizeof(schedule), nullptr, frame->ctx, RunTask, task};
  return frame->api->XLA_FFI_ThreadPool_Schedule(&schedule);
}

// Registers the stages by the function that handlers have for it, and the type of their states.
extern "C" XLA_FFI_Error* RegisterStages(XLA_FFI_CallFrame* frame) {
  XLA_FFI_TypeId type = {0};
  XLA_FFI_TypeInfo info = {sizeof(info), nullptr, [](void* state) {
                             --stages.alive;
                             delete static_cast<int64_t*>(state);
                           }};
  XLA_FFI_Type_Register_Args of_type = {sizeof(of_type), nullptr, {"ffi_test_state", 14}, &type, &info};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_Type_Register(&of_type)) return error;
  state_type = type.type_id;
  XLA_FFI_Handler_Register_Args args = {};
  args.struct_size = sizeof(args);
  args.name = {"ffi_test_stages", 15};
  args.platform = {"cpu", 3};
  args.bundle = {InstantiateStages, PrepareStages, InitializeStages, ExecuteStages, nullptr};
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_Handler_Register(&args)) return error;
  return Fail(frame, kFailedPrecondition, "registered");
}

std::string ProgramOfStages(int start) {
  const std::string call =
      R"(stablehlo.custom_call @ffi_test_stages(%x) {api_version = 4 : i32, backend_config = {start = )" +
      std::to_string(start) + " : i64}} : (tensor<2x3xf32>) -> tensor<2x3xf32>";
  return "module { func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {\n%a = " + call +
         "\n%b = " + call + "\n%c = stablehlo.add %a, %b : tensor<2x3xf32>\nreturn %c : tensor<2x3xf32> } }";
}

TEST(FfiTest, StagesHaveStatesAndFutures) {
  EXPECT_EQ(Register("ffi_test_none", RegisterStages, "cpu").message, "registered");
  {
    const ClientScope client(1);
    PJRT_LoadedExecutable* executable = nullptr;
    const Result compiled = Compile(client.get(), ProgramOfStages(1), "mlir", CompileOptionsOf(1, 1), &executable);
    ASSERT_TRUE(compiled.ok()) << compiled.message;
    EXPECT_EQ(stages.instantiated, 2);
    EXPECT_EQ(stages.prepared, 0);
    std::vector<float> values;
    const Result ran = RunProgram(client, executable, nullptr, &values);
    ASSERT_TRUE(ran.ok()) << ran.message;
    // Of each call: its start, and the states of both stages of the run.
    EXPECT_EQ(values[0], (1 + 100 + 1000) + (1 + 200 + 2000));
    const int64_t run = stages.run;
    EXPECT_EQ(stages.device, 0);
    ASSERT_TRUE(RunProgram(client, executable, nullptr, &values).ok());
    EXPECT_EQ(stages.instantiated, 2);
    EXPECT_EQ(stages.prepared, 4);
    EXPECT_EQ(stages.initialized, 4);
    EXPECT_EQ(stages.executed, 4);
    EXPECT_NE(stages.run, run);
    Destroy(executable);

    ASSERT_TRUE(Compile(client.get(), ProgramOfStages(-1), "mlir", CompileOptionsOf(1, 1), &executable).ok());
    const Result failed = RunProgram(client, executable, nullptr, &values);
    EXPECT_NE(failed.message.find("the start is negative"), std::string::npos) << failed.message;
    Destroy(executable);

    const std::string without =
        R"(module { func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
        %z = stablehlo.custom_call @ffi_test_stages(%x) {api_version = 4 : i32, backend_config = {}} :
            (tensor<2x3xf32>) -> tensor<2x3xf32>
        return %z : tensor<2x3xf32> } })";
    const Result refused = Compile(client.get(), without, "mlir", CompileOptionsOf(1, 1), &executable);
    EXPECT_NE(refused.message.find("the call has no start"), std::string::npos) << refused.message;
  }
  EXPECT_EQ(stages.alive, 0);
}

TEST(FfiTest, ACallWithoutAHandlerIsAnErrorOfTheCompilation) {
  const ClientScope client(1);
  const std::string program = R"(module { func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %z = stablehlo.custom_call @ffi_test_unknown(%x) {api_version = 4 : i32, backend_config = {}} :
          (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %z : tensor<2x3xf32> } })";
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client.get(), program, "mlir", CompileOptionsOf(1, 1), &executable);
  EXPECT_EQ(compiled.message, "No FFI handler registered for ffi_test_unknown on a platform hlokit");
}

// The bytes of an argument of s4 as they are, and those of a result.
extern "C" XLA_FFI_Error* CopyPacked(XLA_FFI_CallFrame* frame) {
  if (IsMetadata(frame)) return nullptr;
  const auto* const from = static_cast<const XLA_FFI_Buffer*>(frame->args.args[0]);
  const auto* const bytes = static_cast<const uint8_t*>(from->data);
  if (from->dtype != kS4 || bytes[0] != 0x21 || bytes[1] != 0xf3) return Fail(frame, kInvalidArgument, "bytes");
  auto* const to = static_cast<uint8_t*>(static_cast<XLA_FFI_Buffer*>(frame->rets.rets[0])->data);
  to[0] = bytes[1];
  to[1] = bytes[0];
  return nullptr;
}

TEST(FfiTest, HandlersSeeNarrowTypesPacked) {
  ASSERT_TRUE(Register("ffi_test_packed", CopyPacked, "cpu").ok());
  const ClientScope client(1);
  const std::string program = R"(module { func.func @main(%x: tensor<4xi4>) -> tensor<4xi4> {
      %z = stablehlo.custom_call @ffi_test_packed(%x) {api_version = 4 : i32, backend_config = {}} :
          (tensor<4xi4>) -> tensor<4xi4>
      return %z : tensor<4xi4> } })";
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client.get(), program, "mlir", CompileOptionsOf(1, 1), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  PJRT_Buffer* const x = MakeBuffer<int8_t>(client.get(), client.devices()[0], kS4, {1, 2, 3, -1}, {4});
  std::vector<std::vector<PJRT_Buffer*>> outputs;
  const Result ran = Execute(executable, {{x}}, &outputs);
  ASSERT_TRUE(ran.ok()) << ran.message;
  std::vector<int8_t> values;
  EXPECT_TRUE(ReadBuffer(outputs[0][0], &values).ok());
  EXPECT_EQ(values, (std::vector<int8_t>{3, -1, 1, 2}));
  Destroy(outputs[0][0]);
  Destroy(x);
  Destroy(executable);
}

TEST(FfiTest, AttributesWithoutAFormAreErrorsOfTheRun) {
  ASSERT_TRUE(Register("ffi_test_attributes", AddScaled, "cpu").ok());
  EXPECT_EQ(Register("ffi_test_attributes", OfTheFuture, "cpu").code, kInvalidArgument);
  EXPECT_EQ(Register("", AddScaled, "cpu").code, kInvalidArgument);
  const ClientScope client(1);
  const std::pair<const char*, const char*> cases[] = {
      {"{a = [1 : i64]}", "attribute a: handlers take numbers"},
      {"{d = {b = 1.0 : bf16}}", "attribute b: numbers of this type"},
      {"{}", "an attribute is missing"},
  };
  for (const auto& [config, message] : cases) {
    const std::string program =
        std::string(R"(module { func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
        %z = stablehlo.custom_call @ffi_test_attributes(%x, %y) {api_version = 4 : i32, backend_config = )") +
        config + R"(} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        return %z : tensor<2x3xf32> } })";
    PJRT_LoadedExecutable* executable = nullptr;
    const Result compiled = Compile(client.get(), program, "mlir", CompileOptionsOf(1, 1), &executable);
    ASSERT_TRUE(compiled.ok()) << compiled.message;
    std::vector<float> values;
    const Result ran = RunProgram(client, executable, nullptr, &values);
    EXPECT_FALSE(ran.ok());
    EXPECT_NE(ran.message.find(message), std::string::npos) << ran.message;
    Destroy(executable);
  }
}

}  // namespace
}  // namespace hlokit::pjrt_test
