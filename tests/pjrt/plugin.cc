// SPDX-License-Identifier: Apache-2.0
#include "tests/pjrt/plugin.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace hlokit::pjrt_test {

const PJRT_Api& Api() {
  static const PJRT_Api* const api = [] {
    void* const library = dlopen(HLOKIT_PJRT_PLUGIN, RTLD_LAZY);
    if (library == nullptr) {
      fprintf(stderr, "%s\n", dlerror());
      abort();
    }
    const auto get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
    const PJRT_Api* const table = get();
    auto args = Zeroed<PJRT_Plugin_Initialize_Args>();
    EXPECT_EQ(table->PJRT_Plugin_Initialize(&args), nullptr);
    return table;
  }();
  return *api;
}

Result Take(PJRT_Error* error) {
  if (error == nullptr) return {};
  auto code = Garbage<PJRT_Error_GetCode_Args>();
  code.error = error;
  EXPECT_EQ(Api().PJRT_Error_GetCode(&code), nullptr);
  auto message = Garbage<PJRT_Error_Message_Args>();
  message.error = error;
  Api().PJRT_Error_Message(&message);
  Result result = {static_cast<int>(code.code), std::string(message.message, message.message_size)};
  auto destroy = Garbage<PJRT_Error_Destroy_Args>();
  destroy.error = error;
  Api().PJRT_Error_Destroy(&destroy);
  return result;
}

Result CreateClient(const Options& options, PJRT_Client** client) {
  std::vector<PJRT_NamedValue> values;
  const auto add = [&](const std::string& name, PJRT_NamedValue_Type type) -> PJRT_NamedValue& {
    PJRT_NamedValue value = {};
    value.struct_size = sizeof(value);
    value.name = name.data();
    value.name_size = name.size();
    value.type = type;
    value.value_size = 1;
    return values.emplace_back(value);
  };
  for (const auto& [name, value] : options.texts) {
    PJRT_NamedValue& added = add(name, PJRT_NamedValue_kString);
    added.string_value = value.data();
    added.value_size = value.size();
  }
  for (const auto& [name, value] : options.numbers) add(name, PJRT_NamedValue_kInt64).int64_value = value;
  auto args = Garbage<PJRT_Client_Create_Args>();
  args.create_options = values.data();
  args.num_options = values.size();
  Result result = Take(Api().PJRT_Client_Create(&args));
  if (result.ok()) *client = args.client;
  return result;
}

ClientScope::ClientScope(int64_t devices, Options options) {
  if (devices > 0) options.numbers.push_back({"num_devices", devices});
  const Result result = CreateClient(options, &client_);
  EXPECT_TRUE(result.ok()) << result.message;
}

ClientScope::~ClientScope() { Query(Api().PJRT_Client_Destroy, &PJRT_Client_Destroy_Args::client, client_); }

std::vector<PJRT_Device*> ClientScope::devices() const {
  const auto args = Query(Api().PJRT_Client_AddressableDevices, &PJRT_Client_AddressableDevices_Args::client, client_);
  return {args.addressable_devices, args.addressable_devices + args.num_addressable_devices};
}

namespace {

// Fields of a message in wire format. The library has messages of its own, which this program must not have too.
void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}
void AppendNumber(int field, int64_t value, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3, out);
  AppendVarint(static_cast<uint64_t>(value), out);
}
void AppendBytes(int field, const std::string& bytes, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  *out += bytes;
}

}  // namespace

std::string CompileOptionsOf(int64_t replicas, int64_t partitions, bool spmd, bool portable) {
  std::string build;
  AppendNumber(1, -1, &build);  // device_ordinal
  AppendNumber(4, replicas, &build);
  AppendNumber(5, partitions, &build);
  AppendNumber(6, spmd ? 1 : 0, &build);  // use_spmd_partitioning
  if (!portable) {
    std::string assignment;
    AppendNumber(1, replicas, &assignment);
    AppendNumber(2, partitions, &assignment);
    for (int64_t p = 0; p < partitions; ++p) {
      std::string devices;
      for (int64_t r = 0; r < replicas; ++r) AppendNumber(1, r * partitions + p, &devices);
      AppendBytes(3, devices, &assignment);
    }
    AppendBytes(9, assignment, &build);
  }
  if (spmd) AppendNumber(12, 1, &build);  // allow_spmd_sharding_propagation_to_output
  std::string options;
  AppendBytes(3, build, &options);
  if (portable) AppendNumber(4, 1, &options);
  return options;
}

Result Compile(PJRT_Client* client, std::string_view code, std::string_view format, const std::string& options,
               PJRT_LoadedExecutable** executable) {
  auto program = Zeroed<PJRT_Program>();
  program.code = const_cast<char*>(code.data());
  program.code_size = code.size();
  program.format = format.data();
  program.format_size = format.size();
  auto args = Garbage<PJRT_Client_Compile_Args>();
  args.client = client;
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  Result result = Take(Api().PJRT_Client_Compile(&args));
  if (result.ok()) *executable = args.executable;
  return result;
}

void Destroy(PJRT_LoadedExecutable* executable) {
  Query(Api().PJRT_LoadedExecutable_Destroy, &PJRT_LoadedExecutable_Destroy_Args::executable, executable);
}

void Destroy(PJRT_Buffer* buffer) { Query(Api().PJRT_Buffer_Destroy, &PJRT_Buffer_Destroy_Args::buffer, buffer); }

void Destroy(PJRT_Event* event) { Query(Api().PJRT_Event_Destroy, &PJRT_Event_Destroy_Args::event, event); }

Result Await(PJRT_Event* event) {
  auto args = Garbage<PJRT_Event_Await_Args>();
  args.event = event;
  Result result = Take(Api().PJRT_Event_Await(&args));
  Destroy(event);
  return result;
}

PJRT_Buffer* MakeRawBuffer(PJRT_Client* client, PJRT_Device* device, int type, const void* data,
                           const std::vector<int64_t>& dims) {
  auto args = Garbage<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client;
  args.data = data;
  args.type = static_cast<PJRT_Buffer_Type>(type);
  args.dims = dims.data();
  args.num_dims = dims.size();
  args.byte_strides = nullptr;
  args.num_byte_strides = 0;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = device;
  args.memory = nullptr;
  args.device_layout = nullptr;
  EXPECT_CALL_OK(Api().PJRT_Client_BufferFromHostBuffer(&args));
  EXPECT_TRUE(Await(args.done_with_host_buffer).ok());
  return args.buffer;
}

Result ReadRawBuffer(PJRT_Buffer* buffer, std::string* bytes) {
  auto args = Garbage<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer;
  args.host_layout = nullptr;
  args.dst = nullptr;
  if (Result result = Take(Api().PJRT_Buffer_ToHostBuffer(&args)); !result.ok()) return result;
  EXPECT_EQ(args.event, nullptr);
  bytes->resize(args.dst_size);
  args.dst = bytes->data();
  if (Result result = Take(Api().PJRT_Buffer_ToHostBuffer(&args)); !result.ok()) return result;
  return Await(args.event);
}

Result Execute(PJRT_LoadedExecutable* executable, const std::vector<std::vector<PJRT_Buffer*>>& arguments,
               std::vector<std::vector<PJRT_Buffer*>>* results, const std::vector<int64_t>& fixed,
               PJRT_Device* device) {
  const auto get = Query(Api().PJRT_LoadedExecutable_GetExecutable,
                         &PJRT_LoadedExecutable_GetExecutable_Args::loaded_executable, executable);
  const auto count =
      Query(Api().PJRT_Executable_NumOutputs, &PJRT_Executable_NumOutputs_Args::executable, get.executable);
  Query(Api().PJRT_Executable_Destroy, &PJRT_Executable_Destroy_Args::executable, get.executable);

  auto options = Zeroed<PJRT_ExecuteOptions>();
  options.non_donatable_input_indices = fixed.data();
  options.num_non_donatable_input_indices = fixed.size();
  std::vector<PJRT_Buffer* const*> argument_lists;
  std::vector<PJRT_Buffer**> output_lists;
  results->assign(arguments.size(), std::vector<PJRT_Buffer*>(count.num_outputs, nullptr));
  for (size_t d = 0; d < arguments.size(); ++d) {
    argument_lists.push_back(arguments[d].data());
    output_lists.push_back((*results)[d].data());
  }
  std::vector<PJRT_Event*> events(arguments.size());
  auto args = Garbage<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = executable;
  args.options = &options;
  args.argument_lists = argument_lists.data();
  args.num_devices = arguments.size();
  args.num_args = arguments.empty() ? 0 : arguments[0].size();
  args.output_lists = output_lists.data();
  args.device_complete_events = events.data();
  args.execute_device = device;
  if (Result result = Take(Api().PJRT_LoadedExecutable_Execute(&args)); !result.ok()) return result;
  Result all;
  for (PJRT_Event* event : events) {
    const Result result = Await(event);
    if (all.ok()) all = result;
  }
  return all;
}

bool IsDeleted(PJRT_Buffer* buffer) {
  const auto args = Query(Api().PJRT_Buffer_IsDeleted, &PJRT_Buffer_IsDeleted_Args::buffer, buffer);
  return args.is_deleted;
}

}  // namespace hlokit::pjrt_test
