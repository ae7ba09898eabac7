// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/memory_kinds.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"
#include "parser/stablehlo/kept_attributes.h"
#include "pjrt/client/topology.h"

namespace hlokit::pjrt {
namespace {

// Digits, one a leaf: positions in kMemoryKinds, of parameters before those of results.
constexpr std::string_view kAttribute = "hlokit.memory_kinds";
constexpr std::string_view kMlirName = "mhlo.memory_kind";
constexpr int64_t kHostMemorySpace = 5;

// Calls `element` with each element of a list or dictionary of MLIR, which begins with a bracket.
template <typename Element>
void ForEachElement(std::string_view text, const Element& element) {
  int64_t depth = 0;
  bool quoted = false;
  size_t begin = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      i += c == '\\' ? 1 : 0;
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    depth += c == '{' || c == '[' || c == '(' || c == '<' ? 1 : 0;
    const bool closes = c == '}' || c == ']' || c == ')' || (c == '>' && text[i - (i > 0 ? 1 : 0)] != '-');
    depth -= closes ? 1 : 0;
    if ((c == ',' && depth == 1) || (closes && depth == 0)) {
      while (begin < i && text[begin] == ' ') ++begin;
      if (begin < i) element(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
}

// Returns the kind that a dictionary of attributes names; "" if there is none.
std::string KindIn(std::string_view attributes) {
  std::string kind;
  ForEachElement(attributes, [&](std::string_view entry) {
    const size_t equals = entry.find(" = \"");
    if (equals == entry.npos || entry.substr(0, equals) != kMlirName) return;
    constexpr size_t kEquals = 4;
    const std::string_view value = entry.substr(equals + kEquals);
    kind = std::string(value.substr(0, value.find('"')));
  });
  return kind;
}

std::string_view Text(const Module& module, StringId id) { return id.valid() ? module.context().str(id) : ""; }

// Adds the kind of each leaf of a shape to `digits`: `kind`, or that of the leaf's memory space.
absl::Status AddLeaves(Shape shape, std::string_view kind, std::string* digits) {
  for (const Shape leaf : Leaves(shape)) {
    size_t number = 0;
    if (!kind.empty()) {
      while (number < std::size(kMemoryKinds) && kMemoryKinds[number] != kind) ++number;
      if (number == std::size(kMemoryKinds)) {
        return absl::InvalidArgumentError(
            StrCat("there is no memory kind `", kind, "`; there are device, pinned_host, unpinned_host"));
      }
    } else if (leaf.IsArray() && leaf.has_layout() && leaf.layout()->memory_space() == kHostMemorySpace) {
      number = 1;
    }
    digits->push_back(static_cast<char>('0' + number));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MarkMemoryKinds(Module* module) {
  const Computation entry = module->entry();
  std::string digits;
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    const std::string_view attributes =
        Text(*module, FindFrontendAttribute(entry.parameter(i), stablehlo::kMlirAttributes));
    absl::Status status = AddLeaves(entry.parameter(i).shape(), KindIn(attributes), &digits);
    if (!status.ok()) return status;
  }
  std::vector<std::string> of_results;
  ListId& header = module->header().frontend_attributes;
  ForEachElement(Text(*module, FindFrontendAttribute(module->context(), header, stablehlo::kMlirResultAttributes)),
                 [&](std::string_view attributes) { of_results.push_back(KindIn(attributes)); });
  const Shape result = entry.root().shape();
  const bool is_list = result.IsTuple() && static_cast<int64_t>(of_results.size()) == result.tuple_size();
  for (int64_t i = 0; i < (is_list ? result.tuple_size() : 1); ++i) {
    const bool has_kind = is_list || of_results.size() == 1;
    const std::string kind = has_kind ? of_results[static_cast<size_t>(i)] : std::string();
    absl::Status status = AddLeaves(is_list ? result.element(i) : result, kind, &digits);
    if (!status.ok()) return status;
  }
  if (digits.find_first_not_of('0') == digits.npos) return absl::OkStatus();
  header = WithFrontendAttribute(&module->context(), header, kAttribute, digits);
  return absl::OkStatus();
}

void ReadMemoryKinds(const Module& module, absl::Span<ProgramValue> parameters, absl::Span<ProgramValue> results) {
  const std::string_view digits =
      Text(module, FindFrontendAttribute(module.context(), module.header().frontend_attributes, kAttribute));
  if (digits.size() != parameters.size() + results.size()) return;
  for (size_t i = 0; i < digits.size(); ++i) {
    ProgramValue& value = i < parameters.size() ? parameters[i] : results[i - parameters.size()];
    const auto kind = static_cast<size_t>(digits[i] - '0');
    value.memory_kind = kind < std::size(kMemoryKinds) ? kind : 0;
  }
}

}  // namespace hlokit::pjrt
