// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/entry_attributes.h"

#include <cstdint>
#include <utility>

#include "ir/text/frontend_attributes.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::pjrt {
namespace {

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

// Returns the string that a dictionary of attributes has for `name`; "" if there is none.
std::string ValueIn(std::string_view attributes, std::string_view name) {
  std::string found;
  ForEachElement(attributes, [&](std::string_view entry) {
    const size_t equals = entry.find(" = \"");
    if (equals == entry.npos || entry.substr(0, equals) != name) return;
    constexpr size_t kEquals = 4;
    const std::string_view value = entry.substr(equals + kEquals);
    found = std::string(value.substr(0, value.find('"')));
  });
  return found;
}

std::string_view Text(const Module& module, StringId id) { return id.valid() ? module.context().str(id) : ""; }

}  // namespace

std::vector<EntryLeaf> EntryLeaves(const Module& module, std::string_view name) {
  const Computation entry = module.entry();
  std::vector<EntryLeaf> leaves;
  const auto add = [&leaves](Shape shape, const std::string& value) {
    for (const Shape leaf : Leaves(shape)) leaves.push_back({leaf, value});
  };
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    const Instruction parameter = entry.parameter(i);
    add(parameter.shape(), ValueIn(Text(module, FindFrontendAttribute(parameter, stablehlo::kMlirAttributes)), name));
  }
  std::vector<std::string> of_results;
  ForEachElement(HeaderAttribute(module, stablehlo::kMlirResultAttributes),
                 [&](std::string_view attributes) { of_results.push_back(ValueIn(attributes, name)); });
  const Shape result = entry.root().shape();
  if (result.IsTuple() && static_cast<int64_t>(of_results.size()) == result.tuple_size()) {
    for (size_t i = 0; i < of_results.size(); ++i) add(result.element(static_cast<int64_t>(i)), of_results[i]);
  } else {
    add(result, of_results.size() == 1 ? of_results[0] : std::string());
  }
  return leaves;
}

std::string_view HeaderAttribute(const Module& module, std::string_view name) {
  return Text(module, FindFrontendAttribute(module.context(), module.header().frontend_attributes, name));
}

void SetHeaderAttribute(Module* module, std::string_view name, std::string_view value) {
  ListId& attributes = module->header().frontend_attributes;
  attributes = WithFrontendAttribute(&module->context(), attributes, name, value);
}

}  // namespace hlokit::pjrt
