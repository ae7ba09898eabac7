// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/empty_value.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit::cli {
namespace {

// Flags with a meaning for an empty value: a pipeline of no passes.
constexpr std::pair<std::string_view, std::string_view> kMayBeEmpty[] = {
    {"hlo-inspect", "--passes"}, {"hlo-opt", "--passes"},   {"hlo-reduce", "--passes"},
    {"hlo-run", "--passes"},     {"hlo-run", "--pipeline"}, {"ir-dump", "--pipeline"}};

// What is expected, by the name of the type in --help.
constexpr std::pair<std::string_view, std::string_view> kExpected[] = {
    {"DEVICE", "a target"}, {"DIR", "a directory"}, {"FILE", "a file name"}, {"PIPELINE", "passes"}};

std::string FindIn(const CLI::App& app, std::string_view tool) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // takes no value
    const std::vector<std::string>& values = option->results();
    if (std::find(values.begin(), values.end(), "") == values.end()) continue;
    const std::string name = option->get_name();
    const auto allowed = [&](const auto& row) { return row.first == tool && row.second == name; };
    if (std::any_of(std::begin(kMayBeEmpty), std::end(kMayBeEmpty), allowed)) continue;
    return EmptyValueError(*option);
  }
  return "";
}

}  // namespace

std::string EmptyValueError(const CLI::Option& option) {
  std::string_view expected = "a value";
  for (const auto& [type, noun] : kExpected) {
    if (option.get_type_name() == type) expected = noun;
  }
  return StrCat(option.get_name(), ": expected ", expected, ", found an empty text");
}

std::string FindEmptyValue(const CLI::App& app) {
  std::string error = FindIn(app, app.get_name());
  for (const CLI::App* command : app.get_subcommands()) {
    if (error.empty()) error = FindIn(*command, app.get_name());
  }
  return error;
}

}  // namespace hlokit::cli
