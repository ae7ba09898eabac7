#include "tracer/environment.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/str_cat.h"

namespace hlokit::lazy {
namespace {

// What PyTorch/XLA reads.
constexpr std::string_view kKnown[] = {
    "PJRT_CPU_ASYNC_CLIENT",
    "PJRT_DEVICE",
    "PJRT_LOCAL_PROCESS_COUNT",
    "PJRT_LOCAL_PROCESS_RANK",
    "PJRT_SELECT_DEFAULT_DEVICE",
    "PT_XLA_DEBUG",
    "PT_XLA_DEBUG_FILE",
    "PT_XLA_DEBUG_LEVEL",
    "PT_XLA_DEBUG_MAX_FRAME",
    "XLA_ALWAYS_ALLREDUCE",
    "XLA_AUTO_SPMD",
    "XLA_AUTO_SPMD_MESH",
    "XLA_COMPILATION_CACHE_SIZE",
    "XLA_DENSE_GATHER_FACTOR",
    "XLA_DENSE_SCATTER_FACTOR",
    "XLA_DISABLE_FUNCTIONALIZATION",
    "XLA_DOWNCAST_BF16",
    "XLA_DUMP_FATAL_STACK",
    "XLA_DUMP_HLO_GRAPH",
    "XLA_DUMP_POST_OPTIMIZATIONS",
    "XLA_DYNAMO_DEBUG",
    "XLA_DYNAMO_INPUT_SHARDING_CHECK_THRESHOLD",
    "XLA_EMIT_STEPLOG",
    "XLA_ENABLE_PARAM_ALIASING",
    "XLA_EXPERIMENTAL",
    "XLA_FLAGS",
    "XLA_FNTRACKER_FILE",
    "XLA_FNTRACKER_LEVEL",
    "XLA_FNTRACKER_LIST",
    "XLA_HLO_DEBUG",
    "XLA_IR_DEBUG",
    "XLA_IR_SHAPE_CACHE_SIZE",
    "XLA_LAYOUTS",
    "XLA_METRICS_FILE",
    "XLA_METRICS_PERCENTILES",
    "XLA_METRICS_SAMPLES",
    "XLA_NO_SPECIAL_SCALARS",
    "XLA_PARAMETER_WRAPPING_THREADSHOLD",
    "XLA_PERSISTENT_CACHE_PATH",
    "XLA_PERSISTENT_CACHE_READ_ONLY",
    "XLA_RNG_BIT_GENERATOR",
    "XLA_SAVE_HLO_FILE",
    "XLA_SAVE_TENSORS_FILE",
    "XLA_SAVE_TENSORS_FMT",
    "XLA_STABLEHLO_COMPILE",
    "XLA_SYNC_WAIT",
    "XLA_TEST_DUMP_GRAPHS",
    "XLA_TPU_MAX_INFLIGHT_COMPUTATIONS",
    "XLA_USE_32BIT_LONG",
    "XLA_USE_BF16",
    "XLA_USE_EAGER_DEBUG_MODE",
    "XLA_USE_IFRT",
    "XLA_USE_SPMD",
};

bool IsTrue(std::string_view v) { return !v.empty() && v != "0" && v != "false" && v != "False"; }

absl::Status Number(std::string_view name, std::string_view value, int64_t least, int64_t most, int64_t* to) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (error != std::errc() || end != value.data() + value.size() || n < least || n > most) {
    return absl::InvalidArgumentError(
        StrCat(name, " must be a number from ", least, " to ", most, ", not `", value, "`"));
  }
  *to = n;
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyEnvironment(const char* const* environment, TracerOptions* options) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const size_t eq = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, eq);
    const std::string_view value = entry.substr(std::min(eq + 1, entry.size()));
    if (name == "CPU_NUM_DEVICES") {
      int64_t n = 1;
      if (absl::Status s = Number(name, value, 1, 1024, &n); !s.ok()) return s;
      options->client.num_devices = static_cast<int>(n);
      continue;
    }
    if (!name.starts_with("XLA_") && !name.starts_with("PT_XLA_") && !name.starts_with("PJRT_")) continue;
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
      const std::string_view near = Nearest(name, std::vector<std::string_view>(std::begin(kKnown), std::end(kKnown)));
      return absl::InvalidArgumentError(
          StrCat("there is no environment variable ", name, near.empty() ? "" : StrCat("; did you mean ", near, "?")));
    }
    if (name == "XLA_IR_DEBUG" || name == "XLA_HLO_DEBUG") options->debug = options->debug || IsTrue(value);
    if (name == "XLA_NO_SPECIAL_SCALARS") options->no_special_scalars = IsTrue(value);
    if (name == "XLA_ENABLE_PARAM_ALIASING") options->donate = IsTrue(value);
    if (name == "XLA_COMPILATION_CACHE_SIZE") {
      if (absl::Status s = Number(name, value, 1, int64_t{1} << 30, &options->cache_entries); !s.ok()) return s;
    }
    if (name == "XLA_PERSISTENT_CACHE_PATH") options->persistent_cache.folder = std::string(value);
    if (name == "XLA_PERSISTENT_CACHE_READ_ONLY") options->persistent_cache.read_only = IsTrue(value);
    if (name == "XLA_SAVE_TENSORS_FILE" && !value.empty()) options->save_graphs_file = StrCat(value, ".0");
    if (name == "XLA_SAVE_TENSORS_FMT") {
      if (value != "text" && value != "dot" && value != "hlo") {
        return absl::InvalidArgumentError(StrCat("XLA_SAVE_TENSORS_FMT must be text, dot or hlo, not `", value, "`"));
      }
      options->save_graphs_format = std::string(value);
    }
  }
  return absl::OkStatus();
}

}  // namespace hlokit::lazy
