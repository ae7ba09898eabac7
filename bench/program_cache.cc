// SPDX-License-Identifier: Apache-2.0
// Time to find a compiled program: in memory, in the persistent compilation cache, and by compiling it.
//
//   hlokit_bench_program_cache [--rounds=N] [--layers=N]
//
// The program is a chain of layers with about 20,000 instructions. A hit in the persistent cache covers all work of a
// step on the tracing thread from the recorded graph to the handle of its program: the key, the contents that are
// compared byte by byte, reading, checksum, comparison. Deserialization comes later, on the device's thread, and is
// shown separately. Wall times, medians. Comparisons: compilation itself, which a hit saves, and a target of 1 ms.
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"
#include "tracer/step/graph_key.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

double Milliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Tensor Chain(int layers) {
  const NoGradGuard no_grad;
  Tensor x = Full({4, 4}, 0.25, ElementType::kF32);
  const Tensor w = Full({4, 4}, 0.125, ElementType::kF32);
  for (int i = 0; i < layers; ++i) x = Relu(Matmul(x, w)) + x;
  return x;
}

}  // namespace

int Measure(int argc, char** argv) {
  int rounds = 9, layers = 2500;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--rounds=")) rounds = std::max(1, std::atoi(argv[i] + 9));
    if (argument.starts_with("--layers=")) layers = std::max(1, std::atoi(argv[i] + 9));
  }
  std::string directory = (std::filesystem::temp_directory_path() / "hlokit-bench-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return 1;
  std::vector<double> key, stored, prepared, memory;
  double compiled = 0;
  int64_t instructions = 0;
  bool ok = true;
  for (int round = 0; ok && round < rounds + 1; ++round) {
    TracerOptions options;
    options.client.evaluator.num_threads = 1;
    options.persistent_cache.location = directory;
    options.warn_pending_nodes = int64_t{1} << 40;
    Tracer tracer(options);
    const DeviceGuard guard(tracer.device());
    const Tensor x = Chain(layers);
    DeviceState& device = *tracer.device();
    const SubgraphOptions slice_options{true, false};
    TensorData* const data = x.impl()->data.get();
    const double start = Milliseconds();
    const PendingSubgraph slice = CollectSubgraph(device, {data}, slice_options);
    absl::StatusOr<LaunchResult> launched = Launch(device, slice, slice_options, SyncReason::kStep);
    const double done = Milliseconds();
    ok = launched.ok() && tracer.Wait().ok();
    if (!ok) break;
    if (round == 0) {
      compiled = done - start;
      instructions = static_cast<int64_t>(launched->program->executable->module().instruction_count());
      continue;
    }
    stored.push_back(done - start);
    const double before_key = Milliseconds();
    const std::string contents = ContentsOf(device, slice, slice_options);
    key.push_back(Milliseconds() - before_key);
    const double before_memory = Milliseconds();
    absl::StatusOr<LaunchResult> again = Launch(device, slice, slice_options, SyncReason::kStep);
    memory.push_back(Milliseconds() - before_memory);
    const std::string text = tracer.client().Serialize(*launched->program->executable);
    const auto loaded = tracer.client().DeserializeExecutable(runtime::SerializedExecutable(text));
    const double before_prepare = Milliseconds();
    ok = loaded->Prepare().ok() && again.ok() && tracer.Wait().ok();
    prepared.push_back(Milliseconds() - before_prepare);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  if (!ok) return 1;
  std::printf(
      "%lld instructions   hit in memory %.3f ms   hit in the folder %.3f ms (target 1), its contents %.3f ms   "
      "ready to run %.1f ms later   compile %.0f ms, %.0f times a hit\n",
      static_cast<long long>(instructions), bench::Median(memory), bench::Median(stored), bench::Median(key),
      bench::Median(prepared), compiled, compiled / bench::Median(stored));
  return 0;
}

}  // namespace hlokit::lazy

int main(int argc, char** argv) { return hlokit::lazy::Measure(argc, argv); }
