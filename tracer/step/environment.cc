// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/environment.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/stores/store_url.h"
#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "tracer/observe/save_graphs.h"

namespace hlokit::lazy {
namespace {

// Values of the variables before they are combined: some depend on others.
struct Settings {
  TracerOptions& options;
  bool debug = false;                    // PT_XLA_DEBUG
  std::optional<int64_t> debug_level{};  // PT_XLA_DEBUG_LEVEL
  std::string debug_file{};
  int64_t rank = 0;
};

// Kinds of variables: each parses a value, or returns the expected form.

// Off if empty, 0 or false.
struct Flag {
  absl::Status Read(std::string_view, std::string_view v, bool* to) const {
    *to = !v.empty() && v != "0" && v != "false" && v != "False";
    return absl::OkStatus();
  }
};
// One of several variables, any of which sets the option.
struct AnyFlag {
  absl::Status Read(std::string_view name, std::string_view v, bool* to) const {
    bool on = false;
    absl::Status status = Flag().Read(name, v, &on);
    *to |= on;
    return status;
  }
};
// Text with a suffix; with a suffix an empty value is ignored.
struct Text {
  explicit Text(std::string_view suffix = "") : suffix(suffix) {}
  std::string_view suffix;
  absl::Status Read(std::string_view, std::string_view v, std::string* to) const {
    if (!v.empty() || suffix.empty()) *to = StrCat(v, suffix);
    return absl::OkStatus();
  }
};
// A directory, or the address of a remote store.
struct StoreLocation {
  absl::Status Read(std::string_view name, std::string_view v, std::string* to) const {
    if (const absl::StatusOr<StoreUrl> url = ParseStoreUrl(v); !url.ok()) {
      return absl::InvalidArgumentError(StrCat(name, ": ", std::string(url.status().message())));
    }
    *to = v;
    return absl::OkStatus();
  }
};
struct Number {
  constexpr Number(int64_t least, int64_t most) : least(least), most(most) {}
  int64_t least, most;
  template <typename T>
  absl::Status Read(std::string_view name, std::string_view v, T* to) const {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), n);
    if (error != std::errc() || end != v.data() + v.size() || n < least || n > most) {
      return absl::InvalidArgumentError(
          StrCat(name, " must be a number from ", least, " to ", most, ", not `", v, "`"));
    }
    *to = static_cast<T>(n);
    return absl::OkStatus();
  }
};
struct OneOf {
  explicit OneOf(std::vector<std::string_view> choices) : choices(std::move(choices)) {}
  std::vector<std::string_view> choices;
  absl::Status Read(std::string_view name, std::string_view v, std::string* to) const {
    std::string all;
    for (std::string_view choice : choices) StrAppend(&all, all.empty() ? "" : ", ", choice);
    if (std::find(choices.begin(), choices.end(), v) == choices.end()) {
      return absl::InvalidArgumentError(StrCat(name, " must be one of ", all, ", not `", v, "`"));
    }
    *to = std::string(v);
    return absl::OkStatus();
  }
};
struct Fractions {
  absl::Status Read(std::string_view name, std::string_view v, std::vector<double>* to) const {
    to->clear();
    while (true) {
      const std::string part(v.substr(0, v.find(':')));
      char* end = nullptr;
      const double p = std::strtod(part.c_str(), &end);
      if (part.empty() || *end != '\0' || !(p >= 0 && p <= 1)) {
        return absl::InvalidArgumentError(
            StrCat(name, " must be fractions from 0 to 1 with colons between, not `", part, "`"));
      }
      to->push_back(p);
      if (part.size() == v.size()) return absl::OkStatus();
      v.remove_prefix(part.size() + 1);
    }
  }
};

struct Variable {
  std::string_view name;
  std::string_view help;
  absl::Status (*apply)(std::string_view value, Settings* s);  // null: ignored
};

#define IGNORED(name) {#name, "", nullptr},
#define SUPPORTED(name, kind, to, help) \
  {#name, help, [](std::string_view value, Settings* s) { return (kind).Read(#name, value, &s->to); }},
constexpr Variable kVariables[] = {
#include "tracer/step/environment.def"
};
#undef SUPPORTED
#undef IGNORED

// Returns true for names in PyTorch/XLA's namespace.
bool Reserved(std::string_view name) {
  return name.starts_with("XLA_") || name.starts_with("PT_XLA_") || name.starts_with("PJRT_");
}

}  // namespace

absl::Status ApplyEnvironment(const char* const* environment, TracerOptions* options) {
  Settings settings{*options};
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const size_t eq = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, eq);
    const std::string_view value = entry.substr(std::min(eq + 1, entry.size()));
    const Variable* const known =
        std::find_if(std::begin(kVariables), std::end(kVariables), [&](const Variable& v) { return v.name == name; });
    if (known != std::end(kVariables)) {
      if (known->apply == nullptr) continue;
      if (absl::Status s = known->apply(value, &settings); !s.ok()) return s;
      continue;
    }
    if (!Reserved(name)) continue;
    std::vector<std::string_view> names;
    for (const Variable& v : kVariables) names.push_back(v.name);
    return absl::InvalidArgumentError(
        StrCat("unknown environment variable `", name, "`", DidYouMeanSuffix(name, names)));
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
  for (const Variable& v : kVariables) width = v.apply == nullptr ? width : std::max(width, v.name.size());
  std::string out, others;
  for (const Variable& v : kVariables) {
    if (v.apply == nullptr) {
      StrAppend(&others, "  ", v.name, "\n");
    } else {
      StrAppend(&out, "  ", v.name, std::string(width - v.name.size() + 2, ' '), v.help, "\n");
    }
  }
  return StrCat("Variables of the environment that are honored:\n", out,
                "Variables that PyTorch/XLA reads and that change nothing here:\n", others);
}

}  // namespace hlokit::lazy
