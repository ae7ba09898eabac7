// SPDX-License-Identifier: Apache-2.0
// The PJRT plugin against the engine that it runs: executing a tiny program (goal: 10 us more than the engine alone),
// and moving a host array of 1 GiB in and out (goal: no copy, shown by the time and the resident memory).
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "bench/measure.h"
#include "interp/exact/evaluator.h"
#include "parser/formats/parser.h"
#include "pjrt/c_api/api.h"

namespace hlokit::bench {
namespace {

constexpr char kProgram[] = "HloModule tiny\nENTRY e { x = f32[4] parameter(0)\n ROOT y = f32[4] add(x, x) }\n";
constexpr char kStablehlo[] =
    "module { func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %y = stablehlo.add %x, %x : tensor<4xf32>\n  return %y : tensor<4xf32> } }";

template <typename Args>
Args ArgsOf() {
  Args args = {};
  args.struct_size = sizeof(args);
  return args;
}

void Check(const PJRT_Api* api, PJRT_Error* error) {
  if (error == nullptr) return;
  auto args = ArgsOf<PJRT_Error_Message_Args>();
  args.error = error;
  api->PJRT_Error_Message(&args);
  std::fprintf(stderr, "error: %s\n", args.message);
  std::exit(1);
}

const PJRT_Api* Plugin() {
  static const PJRT_Api* const api = [] {
    void* const library = dlopen(HLOKIT_PJRT_PLUGIN, RTLD_NOW);
    return library == nullptr ? nullptr : reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  }();
  return api;
}

struct Session {
  const PJRT_Api* api = Plugin();
  PJRT_Client* client = nullptr;
  PJRT_Device* device = nullptr;

  Session() {
    if (api == nullptr) {
      std::fprintf(stderr, "error: %s\n", dlerror());
      std::exit(1);
    }
    auto create = ArgsOf<PJRT_Client_Create_Args>();
    Check(api, api->PJRT_Client_Create(&create));
    client = create.client;
    auto devices = ArgsOf<PJRT_Client_AddressableDevices_Args>();
    devices.client = client;
    Check(api, api->PJRT_Client_AddressableDevices(&devices));
    device = devices.addressable_devices[0];
  }
  ~Session() {
    auto destroy = ArgsOf<PJRT_Client_Destroy_Args>();
    destroy.client = client;
    Check(api, api->PJRT_Client_Destroy(&destroy));
  }
  PJRT_Buffer* MakeBuffer(const void* data, const std::vector<int64_t>& dims, PJRT_Event** done) const {
    auto args = ArgsOf<PJRT_Client_BufferFromHostBuffer_Args>();
    args.client = client;
    args.data = data;
    args.type = static_cast<PJRT_Buffer_Type>(11);  // f32
    args.dims = dims.data();
    args.num_dims = dims.size();
    args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
    args.device = device;
    Check(api, api->PJRT_Client_BufferFromHostBuffer(&args));
    *done = args.done_with_host_buffer;
    return args.buffer;
  }
  void Await(PJRT_Event* event) const {
    auto await = ArgsOf<PJRT_Event_Await_Args>();
    await.event = event;
    Check(api, api->PJRT_Event_Await(&await));
    auto destroy = ArgsOf<PJRT_Event_Destroy_Args>();
    destroy.event = event;
    Check(api, api->PJRT_Event_Destroy(&destroy));
  }
  void Destroy(PJRT_Buffer* buffer) const {
    auto args = ArgsOf<PJRT_Buffer_Destroy_Args>();
    args.buffer = buffer;
    Check(api, api->PJRT_Buffer_Destroy(&args));
  }
};

double Microseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

// Medians of the two in turns: 200 rounds of 50 calls each.
void TinyProgram(benchmark::State& state) {
  const Session session;
  auto program = ArgsOf<PJRT_Program>();
  program.code = const_cast<char*>(kStablehlo);
  program.code_size = sizeof(kStablehlo) - 1;
  program.format = "mlir";
  program.format_size = 4;
  auto compile = ArgsOf<PJRT_Client_Compile_Args>();
  compile.client = session.client;
  compile.program = &program;
  Check(session.api, session.api->PJRT_Client_Compile(&compile));
  const float values[4] = {1, 2, 3, 4};
  PJRT_Event* done = nullptr;
  PJRT_Buffer* const x = session.MakeBuffer(values, {4}, &done);
  session.Await(done);

  const std::unique_ptr<Module> module = *ParseModuleText(kProgram);
  DiagnosticSink sink;
  const std::unique_ptr<interp::Evaluator> evaluator = interp::Evaluator::Prepare(*module, {}, &sink);
  std::vector<Literal> arguments;
  arguments.push_back(Literal::Zeros(module->entry().parameter(0).shape()));

  const auto execute = [&] {
    auto options = ArgsOf<PJRT_ExecuteOptions>();
    PJRT_Buffer* const list[] = {x};
    PJRT_Buffer* const* const lists[] = {list};
    PJRT_Buffer* outputs[1];
    PJRT_Buffer** const output_lists[] = {outputs};
    PJRT_Event* events[1];
    auto args = ArgsOf<PJRT_LoadedExecutable_Execute_Args>();
    args.executable = compile.executable;
    args.options = &options;
    args.argument_lists = lists;
    args.num_devices = 1;
    args.num_args = 1;
    args.output_lists = output_lists;
    args.device_complete_events = events;
    Check(session.api, session.api->PJRT_LoadedExecutable_Execute(&args));
    session.Await(events[0]);
    session.Destroy(outputs[0]);
  };
  std::vector<double> plugin, engine;
  for (auto _ : state) {
    constexpr int kCalls = 50;
    plugin.push_back(Microseconds([&] {
                       for (int i = 0; i < kCalls; ++i) execute();
                     }) /
                     kCalls);
    engine.push_back(Microseconds([&] {
                       for (int i = 0; i < kCalls; ++i) benchmark::DoNotOptimize(evaluator->Run(arguments, &sink));
                     }) /
                     kCalls);
  }
  state.counters["plugin_us"] = Median(plugin);
  state.counters["engine_us"] = Median(engine);
  state.counters["overhead_us"] = Median(plugin) - Median(engine);
  session.Destroy(x);
  auto destroy = ArgsOf<PJRT_LoadedExecutable_Destroy_Args>();
  destroy.executable = compile.executable;
  Check(session.api, session.api->PJRT_LoadedExecutable_Destroy(&destroy));
}
BENCHMARK(TinyProgram)->Iterations(200)->UseRealTime();

// 1 GiB in, and a pointer to it out, as frameworks do for arrays in the memory of the process.
void LargeArray(benchmark::State& state) {
  const Session session;
  constexpr int64_t kElements = int64_t{1} << 28;
  std::vector<float> host(kElements, 1.0F);
  std::vector<float> other(kElements);
  std::vector<double> moved, copied;
  for (auto _ : state) {
    moved.push_back(Microseconds([&] {
      PJRT_Event* done = nullptr;
      PJRT_Buffer* const buffer = session.MakeBuffer(host.data(), {kElements}, &done);
      auto pointer = ArgsOf<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>();
      pointer.buffer = buffer;
      Check(session.api, session.api->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&pointer));
      if (pointer.device_memory_ptr != host.data()) state.SkipWithError("the array was copied");
      session.Destroy(buffer);
      session.Await(done);
    }));
    copied.push_back(Microseconds([&] { std::memcpy(other.data(), host.data(), kElements * sizeof(float)); }));
  }
  state.counters["in_and_out_us"] = Median(moved);
  state.counters["copy_us"] = Median(copied);
  state.counters["share_of_copy"] = Median(moved) / Median(copied);
}
BENCHMARK(LargeArray)->Iterations(5)->UseRealTime();

}  // namespace
}  // namespace hlokit::bench
