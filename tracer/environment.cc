#include "tracer/environment.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/str_cat.h"
#include "ir/suggest.h"
#include "tracer/save_graphs.h"

namespace hlokit::lazy {
namespace {

// What the variables say before it is put together: some depend on others.
struct Settings {
  TracerOptions* options;
  bool debug = false;                  // PT_XLA_DEBUG
  std::optional<int64_t> debug_level;  // PT_XLA_DEBUG_LEVEL
  std::string debug_file;
  int64_t rank = 0;
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

absl::Status Choice(std::string_view name, std::string_view value, const std::vector<std::string_view>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return absl::OkStatus();
  std::string all;
  for (std::string_view choice : choices) StrAppend(&all, all.empty() ? "" : ", ", choice);
  return absl::InvalidArgumentError(StrCat(name, " must be one of ", all, ", not `", value, "`"));
}

absl::Status Percentiles(std::string_view name, std::string_view value, std::vector<double>* to) {
  to->clear();
  while (true) {
    const std::string part(value.substr(0, value.find(':')));
    char* end = nullptr;
    const double p = std::strtod(part.c_str(), &end);
    if (part.empty() || *end != '\0' || !(p >= 0 && p <= 1)) {
      return absl::InvalidArgumentError(
          StrCat(name, " must be fractions from 0 to 1 with colons between, not `", part, "`"));
    }
    to->push_back(p);
    if (part.size() == value.size()) return absl::OkStatus();
    value.remove_prefix(part.size() + 1);
  }
}

struct Variable {
  std::string_view name;
  std::string_view meaning;  // empty: PyTorch/XLA reads it, and it means nothing here
  absl::Status (*apply)(std::string_view name, std::string_view value, Settings* s) = nullptr;
};

#define APPLY [](std::string_view name, std::string_view value, Settings * s) -> absl::Status
#define SET(statement)       \
  APPLY {                    \
    (void)name, (void)value; \
    statement;               \
    return absl::OkStatus(); \
  }

// What PyTorch/XLA reads, in the order of the names.
const std::vector<Variable>& Variables() {
  static const std::vector<Variable> variables = {{"ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB", ""},
                                                  {"CPU_NUM_DEVICES", "number of devices", APPLY{int64_t n = 1;
  if (absl::Status status = Number(name, value, 1, 1024, &n); !status.ok()) return status;
  s->options->client.num_devices = static_cast<int>(n);
  return absl::OkStatus();
}
}  // namespace
, {"PJRT_CPU_ASYNC_CLIENT", ""},
    {"PJRT_DEVICE", "the kind of device that dumps show: CPU or TPU",
     APPLY{if (absl::Status status = Choice(name, value, {"CPU", "TPU"}); !status.ok()) return status;
s->options->client.platform = std::string(value);
return absl::OkStatus();
}  // namespace hlokit::lazy
}
, {"PJRT_LOCAL_PROCESS_COUNT", ""},
    {"PJRT_LOCAL_PROCESS_RANK", "only the process of rank 0 prints analyses",
     APPLY{return Number(name, value, 0, int64_t{1} << 30, &s->rank);
}
}
, {"PJRT_SELECT_DEFAULT_DEVICE", ""},
    {"PT_XLA_DEBUG", "1: why graphs are compiled and run, and advice after steps, on standard error",
     SET(s->debug = IsTrue(value))},
    {"PT_XLA_DEBUG_FILE", "file to which that is appended instead", SET(s->debug_file = std::string(value))},
    {"PT_XLA_DEBUG_LEVEL", "1: compilations only; 2 and more: executions too; 0: neither", APPLY{int64_t level = 0;
if (absl::Status status = Number(name, value, -1, 1000, &level); !status.ok()) return status;
s->debug_level = level;
return absl::OkStatus();
}
}
, {"PT_XLA_DEBUG_MAX_FRAME", "lines of the program shown there", APPLY{int64_t n = 0;
if (absl::Status status = Number(name, value, 0, 1000000, &n); !status.ok()) return status;
s->options->debug_max_frames = static_cast<int>(n);
return absl::OkStatus();
}
}
, {"XLA_ALWAYS_ALLREDUCE", ""}, {"XLA_AUTO_SPMD", ""}, {"XLA_AUTO_SPMD_MESH", ""},
    {"XLA_COMPILATION_CACHE_SIZE", "compiled programs kept in memory",
     APPLY{return Number(name, value, 1, int64_t{1} << 30, &s->options->cache_entries);
}
}
, {"XLA_DENSE_GATHER_FACTOR", ""}, {"XLA_DENSE_SCATTER_FACTOR", ""}, {"XLA_DISABLE_FUNCTIONALIZATION", ""},
    {"XLA_DOWNCAST_BF16", ""}, {"XLA_DUMP_FATAL_STACK", ""}, {"XLA_DUMP_HLO_GRAPH", ""},
    {"XLA_DUMP_POST_OPTIMIZATIONS", "1: HLO that is dumped is what the passes leave of it",
     SET(s->options->dump_optimized = IsTrue(value))},
    {"XLA_DYNAMO_DEBUG", ""}, {"XLA_DYNAMO_INPUT_SHARDING_CHECK_THRESHOLD", ""},
    {"XLA_EMIT_STEPLOG", "1: each step says `torch_xla.torch_xla::sync` on standard error",
     SET(s->options->step_log = IsTrue(value))},
    {"XLA_ENABLE_PARAM_ALIASING", "0: steps do not reuse the buffers of what they overwrite",
     SET(s->options->donate = IsTrue(value))},
    {"XLA_EXPERIMENTAL", ""}, {"XLA_FLAGS", ""}, {"XLA_FNTRACKER_FILE", ""}, {"XLA_FNTRACKER_LEVEL", ""},
    {"XLA_FNTRACKER_LIST", ""},
    {"XLA_HLO_DEBUG", "1: scopes and source lines on nodes and on HLO", SET(s->options->debug |= IsTrue(value))},
    {"XLA_IR_DEBUG", "the same", SET(s->options->debug |= IsTrue(value))}, {"XLA_IR_SHAPE_CACHE_SIZE", ""},
    {"XLA_LAYOUTS", ""},
    {"XLA_METRICS_FILE", "file to which the metrics are appended after each step, or STDOUT or STDERR",
     SET(s->options->metrics_file = std::string(value))},
    {"XLA_METRICS_PERCENTILES", "percentiles of the report, as 0.5:0.9",
     APPLY{return Percentiles(name, value, &s->options->metrics.percentiles);
}
}
, {"XLA_METRICS_SAMPLES", "samples kept of each metric", APPLY{int64_t n = 0;
if (absl::Status status = Number(name, value, 1, int64_t{1} << 30, &n); !status.ok()) return status;
s->options->metrics.max_samples = static_cast<size_t>(n);
return absl::OkStatus();
}
}
,
    {"XLA_NO_SPECIAL_SCALARS", "1: the numbers 0, 1 and -1 are parameters too",
     SET(s->options->no_special_scalars = IsTrue(value))},
    {"XLA_PARAMETER_WRAPPING_THREADSHOLD", "programs with so many parameters take them as one tuple",
     APPLY{return Number(name, value, 1, int64_t{1} << 40, &s->options->wrap_parameters);
}
}
,
    {"XLA_PERSISTENT_CACHE_PATH", "folder of compiled programs that outlives the process",
     SET(s->options->persistent_cache.folder = std::string(value))},
    {"XLA_PERSISTENT_CACHE_READ_ONLY", "1: nothing is written there",
     SET(s->options->persistent_cache.read_only = IsTrue(value))},
    {"XLA_RNG_BIT_GENERATOR", ""}, {"XLA_SAVE_HLO_FILE", ""}, {
  "XLA_SAVE_TENSORS_FILE", "file (with .0 after it) to which every graph that runs is appended",
      SET(if (!value.empty()) s->options->save_graphs_file = StrCat(value, ".0"))
}
, {"XLA_SAVE_TENSORS_FMT", "its form: text, dot or hlo",
   APPLY{if (absl::Status status = Choice(name, value, {"text", "dot", "hlo"}); !status.ok()) return status;
s->options->save_graphs_format = std::string(value);
return absl::OkStatus();
}
}
, {"XLA_STABLEHLO_COMPILE", ""},
    {"XLA_SYNC_WAIT", "1: steps wait until they have run", SET(s->options->sync_wait = IsTrue(value))},
    {"XLA_TEST_DUMP_GRAPHS", ""}, {"XLA_TPU_MAX_INFLIGHT_COMPUTATIONS", ""}, {"XLA_USE_32BIT_LONG", ""},
    {"XLA_USE_BF16", ""}, {"XLA_USE_EAGER_DEBUG_MODE", ""}, {"XLA_USE_IFRT", ""}, {"XLA_USE_SPMD", ""},
}
;
return variables;
}

#undef SET
#undef APPLY

// Whether a name stands where only names of the table do.
bool Reserved(std::string_view name) {
  return name.starts_with("XLA_") || name.starts_with("PT_XLA_") || name.starts_with("PJRT_");
}

}  // namespace

absl::Status ApplyEnvironment(const char* const* environment, TracerOptions* options) {
  Settings settings;
  settings.options = options;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const size_t eq = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, eq);
    const std::string_view value = entry.substr(std::min(eq + 1, entry.size()));
    const std::vector<Variable>& known = Variables();
    const auto it = std::find_if(known.begin(), known.end(), [&](const Variable& v) { return v.name == name; });
    if (it != known.end()) {
      if (it->apply == nullptr) continue;
      if (absl::Status s = it->apply(name, value, &settings); !s.ok()) return s;
      continue;
    }
    if (!Reserved(name)) continue;
    std::vector<std::string_view> names;
    for (const Variable& v : known) names.push_back(v.name);
    return absl::InvalidArgumentError(StrCat("there is no environment variable ", name, Suggested(name, names)));
  }
  if (settings.rank != 0) return absl::OkStatus();
  if (settings.debug) options->auto_analysis = true;
  if (settings.debug || settings.debug_level) {
    options->debug_level = static_cast<int>(settings.debug_level.value_or(100));
  }
  if (!settings.debug_file.empty()) {
    options->report = [path = settings.debug_file](std::string_view text) {
      (void)AppendToFile(path, StrCat(text, "\n"));
    };
  }
  return absl::OkStatus();
}

std::string DescribeEnvironment() {
  size_t width = 0;
  for (const Variable& v : Variables()) width = v.meaning.empty() ? width : std::max(width, v.name.size());
  std::string out, others;
  for (const Variable& v : Variables()) {
    if (v.meaning.empty()) {
      StrAppend(&others, "  ", v.name, "\n");
    } else {
      StrAppend(&out, "  ", v.name, std::string(width - v.name.size() + 2, ' '), v.meaning, "\n");
    }
  }
  return StrCat("Variables of the environment that are honoured:\n", out,
                "Variables that PyTorch/XLA reads and that change nothing here:\n", others);
}

}  // namespace hlokit::lazy
