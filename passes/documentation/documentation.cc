// SPDX-License-Identifier: Apache-2.0
#include "passes/documentation/documentation.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "parser/core/parser.h"
#include "passes/annotations/text.h"

namespace hlokit {
namespace {

// The bodies of the computations, callees first, without the header of the module.
std::string Bodies(const Module& module, bool layouts) {
  std::string text;
  {
    TextWriter out(&text);
    PrintOptions options = PrintOptions::ShortParsable();
    options.print_header = false;
    options.print_metadata = true;
    options.print_percent = false;
    options.print_program_shape = false;
    options.include_layout_in_shapes = layouts;
    PrintModule(out, module, options);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text + "\n";
}

// A long text without its middle.
std::string Shortened(std::string_view text) {
  constexpr size_t kMostLines = 100, kFirst = 30, kLast = 20;
  std::vector<size_t> ends;
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) ends.push_back(at + 1);
  if (ends.size() <= kMostLines) return std::string(text);
  return StrCat(text.substr(0, ends[kFirst - 1]), "  ... ", ends.size() - kFirst - kLast, " more lines ...\n",
                text.substr(ends[ends.size() - kLast - 1]));
}

std::string ExampleText(const PassInfo& info) {
  if (info.example.empty()) return "";
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(info.example);
  if (!module.ok()) return StrCat("The example does not parse: ", std::string(module.status().message()), "\n");
  std::string before[] = {Bodies(**module, false), Bodies(**module, true)};
  const std::unique_ptr<Pass> pass = PassRegistry::Make(info, PassOptions(info.options));
  const absl::StatusOr<bool> changed = pass->Run(**module);
  if (!changed.ok()) return StrCat("The example fails: ", std::string(changed.status().message()), "\n");
  WriteOrigins(**module);
  // Layouts are shown where memory spaces are what it is about.
  const bool layouts = Bodies(**module, true).find("S(1)") != std::string::npos;
  return StrCat("Before:\n\n```\n", before[layouts], "```\n\nAfter:\n\n```\n", Shortened(Bodies(**module, layouts)),
                "```\n\n");
}

std::string_view TypeText(OptionInfo::Type type) {
  switch (type) {
    case OptionInfo::Type::kBool:
      return "true or false";
    case OptionInfo::Type::kInt:
      return "a whole number";
    case OptionInfo::Type::kString:
      return "a word";
  }
  return "";
}

std::string Section(const PassInfo& info) {
  std::string text = StrCat("### ", info.name, "\n\n");
  std::string summary(info.summary);
  if (!summary.empty() && summary[0] >= 'a' && summary[0] <= 'z') summary[0] = static_cast<char>(summary[0] - 32);
  StrAppend(&text, summary, ".");
  if (!info.doc.empty()) StrAppend(&text, " ", info.doc);
  text += "\n\n";
  if (!info.needs.empty()) StrAppend(&text, "Needs: ", info.needs, "\n\n");
  if (!info.keeps.empty()) StrAppend(&text, "Keeps: ", info.keeps, "\n\n");
  if (info.tolerance > 0) {
    char number[32];
    std::snprintf(number, sizeof(number), "%g", info.tolerance);
    StrAppend(&text, "Rounding: floats may differ by ", number, " of the largest value of their array.\n\n");
  }
  if (!info.options.empty()) {
    text += "| option | default | |\n|---|---|---|\n";
    for (const OptionInfo& option : info.options) {
      StrAppend(&text, "| `", option.name, "` | `", option.default_text, "` | ", option.doc, " (");
      if (option.choices.empty()) {
        StrAppend(&text, TypeText(option.type));
        if (option.type == OptionInfo::Type::kInt) StrAppend(&text, " from ", option.min);
      }
      for (size_t i = 0; i < option.choices.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", option.choices[i]);
      text += ") |\n";
    }
    text += "\n";
  }
  return text + ExampleText(info);
}

}  // namespace

std::string PassesAsText(const PassRegistry& registry) {
  std::string text;
  for (const PassInfo* pass : registry.passes()) StrAppend(&text, pass->name, "\t", pass->summary, "\n");
  for (const NamedPipeline& named : registry.pipelines()) StrAppend(&text, named.name, "\t", named.summary, "\n");
  return text;
}

std::string PassesAsMarkdown(const PassRegistry& registry) {
  std::string text =
      "# Passes\n\n"
      "Made by `hlo-opt --list-passes=markdown` from what the passes say of themselves.\n\n"
      "    hlo-opt --passes='algsimp,cse,group(while-loop-simplifier,dce)*' module.hlo\n\n"
      "runs passes in order. `*` repeats a pass or group until it changes nothing; a pass takes options in braces, "
      "`name{option=value}`; a pipeline with a name stands like a pass.\n\n"
      "## Pipelines with a name\n\n| name | what | passes |\n|---|---|---|\n";
  for (const NamedPipeline& named : registry.pipelines()) {
    StrAppend(&text, "| `", named.name, "` | ", named.summary, " | `", named.text, "` |\n");
  }
  std::vector<std::string_view> rooms;
  for (const PassInfo* pass : registry.passes()) {
    if (std::find(rooms.begin(), rooms.end(), pass->room) == rooms.end()) rooms.push_back(pass->room);
  }
  std::sort(rooms.begin(), rooms.end());
  for (std::string_view room : rooms) {
    StrAppend(&text, "\n## ", room, "\n\n");
    for (const PassInfo* pass : registry.passes()) {
      if (pass->room == room) text += Section(*pass);
    }
    text.pop_back();
  }
  return text;
}

}  // namespace hlokit
