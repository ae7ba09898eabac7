// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/client_config.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "interp/interface/evaluator_options.h"
#include "interp/program/engine_table.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/named_values.h"

namespace hlokit::pjrt {
namespace {

struct Option {
  std::string_view name;  // of the caller's option
  const char* variable;   // of the environment; null: none
  std::string ClientConfig::*text = nullptr;
  int64_t ClientConfig::*number = nullptr;
};

constexpr Option kOptions[] = {
    {"callback_seconds", "HLOKIT_CALLBACK_SECONDS", nullptr, &ClientConfig::callback_seconds},
    {"collective_seconds", "HLOKIT_COLLECTIVE_SECONDS", nullptr, &ClientConfig::collective_seconds},
    {"device", "HLOKIT_DEVICE", &ClientConfig::device},
    {"dump_to", "HLOKIT_DUMP_TO", &ClientConfig::dump_to},
    {"engine", "HLOKIT_ENGINE", &ClientConfig::engine},
    {"max_bytes", "HLOKIT_MAX_BYTES", nullptr, &ClientConfig::max_bytes},
    {"max_seconds", "HLOKIT_MAX_SECONDS", nullptr, &ClientConfig::max_seconds},
    {"node_id", nullptr, nullptr, &ClientConfig::node_id},
    {"num_devices", "HLOKIT_NUM_DEVICES", nullptr, &ClientConfig::num_devices},
    {"num_nodes", nullptr, nullptr, &ClientConfig::num_nodes},
    {"num_threads", "HLOKIT_NUM_THREADS", nullptr, &ClientConfig::num_threads},
    {"partition_index", nullptr, nullptr, &ClientConfig::partition_index},
    {"platform_name", "HLOKIT_PLATFORM", &ClientConfig::platform},
    {"report", "HLOKIT_REPORT", &ClientConfig::report},
};

// What frameworks say of themselves to every plugin.
constexpr std::string_view kIgnored[] = {"ml_framework_name", "ml_framework_version"};

absl::Status SetOption(const Option& option, std::string_view called, const std::string& value, ClientConfig* config) {
  if (option.text != nullptr) {
    if (value.empty()) return absl::InvalidArgumentError(StrCat(called, " is empty"));
    config->*option.text = value;
    return absl::OkStatus();
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < 0) {
    return absl::InvalidArgumentError(StrCat(called, ": expected a number that is not negative, found `", value, "`"));
  }
  config->*option.number = number;
  return absl::OkStatus();
}

absl::Status UnknownOption(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Option& option : kOptions) known.push_back(option.name);
  std::string message = StrCat("unknown option `", name, "` of the client");
  if (const std::string_view near = FindNearest(name, known); !near.empty()) {
    StrAppend(&message, "; did you mean `", near, "`?");
  } else {
    StrAppend(&message, ".");
  }
  for (size_t i = 0; i < known.size(); ++i) StrAppend(&message, i == 0 ? " The options are " : ", ", known[i]);
  return absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<ClientConfig> ReadClientConfig(absl::Span<const PJRT_NamedValue> options) {
  ClientConfig config;
  for (const Option& option : kOptions) {
    if (option.variable == nullptr) continue;
    const char* const value = std::getenv(option.variable);
    if (value == nullptr || *value == '\0') continue;
    if (absl::Status status = SetOption(option, option.variable, value, &config); !status.ok()) return status;
  }
  for (const PJRT_NamedValue& value : options) {
    const std::string_view name = TextOf(value.name, value.name_size);
    if (std::find(std::begin(kIgnored), std::end(kIgnored), name) != std::end(kIgnored)) continue;
    const auto option =
        std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option& o) { return o.name == name; });
    if (option == std::end(kOptions)) return UnknownOption(name);
    const absl::StatusOr<std::string> text = TextOfValue(value);
    if (!text.ok()) return text.status();
    if (absl::Status status = SetOption(*option, name, *text, &config); !status.ok()) return status;
  }
  const std::optional<interp::EngineKind> engine = interp::EngineKindOf(config.engine);
  if (!engine || !interp::RowOf(*engine).is_for_frameworks) {
    return absl::InvalidArgumentError(StrCat("engine: expected ",
                                             interp::EngineNamesWith(&interp::EngineRow::is_for_frameworks),
                                             ", found `", config.engine, "`"));
  }
  if (config.num_nodes < 1 || config.node_id >= config.num_nodes) {
    return absl::InvalidArgumentError(
        StrCat("node_id: there is no process ", config.node_id, " of ", config.num_nodes));
  }
  if (config.num_devices > interp::EvaluatorOptions::kMaxDevices) {
    return absl::InvalidArgumentError(
        StrCat("num_devices: ", config.num_devices, " exceeds the limit of ", interp::EvaluatorOptions::kMaxDevices));
  }
  return config;
}

}  // namespace hlokit::pjrt
