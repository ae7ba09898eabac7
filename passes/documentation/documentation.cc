// SPDX-License-Identifier: Apache-2.0
#include "passes/documentation/documentation.h"

#include <algorithm>
#include <vector>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "passes/annotations/text.h"

namespace hlokit {
namespace {

// Returns the bodies of the computations, callees first, without the module header.
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

// Returns a long text without its middle.
std::string Shortened(std::string_view text) {
  constexpr size_t kMaxLines = 100, kFirst = 30, kLast = 20;
  std::vector<size_t> ends;
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) ends.push_back(at + 1);
  if (ends.size() <= kMaxLines) return std::string(text);
  return StrCat(text.substr(0, ends[kFirst - 1]), "  ... ", ends.size() - kFirst - kLast, " more lines ...\n",
                text.substr(ends[ends.size() - kLast - 1]));
}

std::string ExampleToString(const PassInfo& info) {
  if (info.example.empty()) return "";
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(info.example);
  if (!module.ok()) return StrCat("The example does not parse: ", std::string(module.status().message()), "\n");
  std::string before[] = {Bodies(**module, false), Bodies(**module, true)};
  const std::unique_ptr<Pass> pass = PassRegistry::Make(info, PassOptions(info.options));
  const absl::StatusOr<bool> changed = pass->Run(**module);
  if (!changed.ok()) return StrCat("The example fails: ", std::string(changed.status().message()), "\n");
  WriteMetadataSources(**module);
  // Print layouts if the example is about memory spaces.
  const bool layouts = Bodies(**module, true).find("S(1)") != std::string::npos;
  return StrCat("Before:\n\n```\n", before[layouts], "```\n\nAfter:\n\n```\n", Shortened(Bodies(**module, layouts)),
                "```\n\n");
}

std::string_view TypeName(OptionInfo::Type type) {
  switch (type) {
    case OptionInfo::Type::kBool:
      return "true or false";
    case OptionInfo::Type::kInt:
      return "an integer";
    case OptionInfo::Type::kString:
      return "a word";
  }
  return "";
}

// Returns " (also NAME, NAME)", or "" if the pass or pipeline has only one name.
std::string AliasesToString(std::string_view name, std::string_view quote) {
  std::string text;
  for (const std::string_view alias : PassRegistry::AliasesOf(name)) {
    StrAppend(&text, text.empty() ? " (also " : ", ", quote, alias, quote);
  }
  return text.empty() ? text : text + ")";
}

std::string Section(const PassInfo& info) {
  std::string text = StrCat("### ", info.name, "\n\n");
  std::string summary(info.summary);
  if (!summary.empty() && summary[0] >= 'a' && summary[0] <= 'z') summary[0] = static_cast<char>(summary[0] - 32);
  StrAppend(&text, summary, AliasesToString(info.name, "`"), ".");
  if (!info.doc.empty()) StrAppend(&text, " ", info.doc);
  text += "\n\n";
  if (!info.preconditions.empty()) StrAppend(&text, "Needs: ", info.preconditions, "\n\n");
  if (!info.preserves.empty()) StrAppend(&text, "Keeps: ", info.preserves, "\n\n");
  if (info.tolerance > 0) {
    StrAppend(&text, "Rounding: floats may differ by ", FormatDouble(info.tolerance, 6),
              ", relative to their value or absolute.\n\n");
  }
  if (!info.options.empty()) {
    text += "| option | default | |\n|---|---|---|\n";
    for (const OptionInfo& option : info.options) {
      StrAppend(&text, "| `", option.name, "` | `", option.default_text, "` | ", option.doc, " (");
      if (option.choices.empty()) {
        StrAppend(&text, TypeName(option.type));
        if (option.type == OptionInfo::Type::kInt) StrAppend(&text, " from ", option.min);
      }
      if (!option.choices_text.empty()) {
        text += option.choices_text;
      } else {
        for (size_t i = 0; i < option.choices.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", option.choices[i]);
      }
      text += ") |\n";
    }
    text += "\n";
  }
  return text + ExampleToString(info);
}

}  // namespace

std::string PassesAsText(const PassRegistry& registry) {
  std::string text;
  for (const PassInfo* pass : registry.passes())
    StrAppend(&text, pass->name, "\t", pass->summary, AliasesToString(pass->name, ""), "\n");
  for (const NamedPipeline& named : registry.pipelines())
    StrAppend(&text, named.name, "\t", named.summary, AliasesToString(named.name, ""), "\n");
  return text;
}

std::string PassesAsMarkdown(const PassRegistry& registry) {
  std::string text =
      "# Passes\n\n"
      "Generated by `hlo-opt --list-passes=markdown` from the descriptions of the passes.\n\n"
      "    hlo-opt --passes='algsimp,cse,group(while-loop-simplifier,dce)*' module.hlo\n\n"
      "runs passes in order. `*` repeats a pass or group until it changes nothing; a pass takes options in braces, "
      "`name{option=value}`; a named pipeline is used like a pass. XLA's names of passes are accepted too, and in all "
      "names `_` for `-`.\n\n"
      "## Named pipelines\n\n| name | what | passes |\n|---|---|---|\n";
  for (const NamedPipeline& named : registry.pipelines()) {
    StrAppend(&text, "| `", named.name, "` | ", named.summary, AliasesToString(named.name, "`"), " | `", named.text,
              "` |\n");
  }
  std::vector<std::string_view> categories;
  for (const PassInfo* pass : registry.passes()) {
    if (std::find(categories.begin(), categories.end(), pass->category) == categories.end())
      categories.push_back(pass->category);
  }
  std::sort(categories.begin(), categories.end());
  for (std::string_view category : categories) {
    StrAppend(&text, "\n## ", category, "\n\n");
    for (const PassInfo* pass : registry.passes()) {
      if (pass->category == category) text += Section(*pass);
    }
    text.pop_back();
  }
  return text;
}

}  // namespace hlokit
