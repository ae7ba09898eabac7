// SPDX-License-Identifier: Apache-2.0
#include "passes/remarks/remark_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "absl/status/status.h"
#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit {
namespace {

constexpr std::array<RemarkKind, 3> kKinds = {RemarkKind::kPassed, RemarkKind::kMissed, RemarkKind::kAnalysis};

RemarkCategory CategoryAt(int k) { return static_cast<RemarkCategory>(k); }

// Returns the bits of the names in a list. `what`: of the error.
absl::StatusOr<uint32_t> ParseBits(std::string_view list, std::string_view what,
                                   const std::vector<std::string_view>& names) {
  uint32_t bits = 0;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    const auto found = std::find(names.begin(), names.end(), word);
    if (word == "all") {
      bits |= (uint32_t{1} << names.size()) - 1;
    } else if (found != names.end()) {
      bits |= uint32_t{1} << (found - names.begin());
    } else {
      std::string all = "all";
      for (std::string_view name : names) StrAppend(&all, ", ", name);
      return absl::InvalidArgumentError(
          StrCat("unknown ", what, " `", Printable(word), "`", DidYouMeanSuffix(word, names), "; there are ", all));
    }
    if (comma == std::string_view::npos) return bits;
    list.remove_prefix(comma + 1);
  }
}

// The file and the line of "model.py:12".
struct Place {
  std::string_view file;
  int64_t line = 0;
};
Place PlaceOf(std::string_view source) {
  const size_t colon = source.rfind(':');
  Place place{source.substr(0, colon)};
  if (colon == std::string_view::npos) return place;
  std::from_chars(source.data() + colon + 1, source.data() + source.size(), place.line);
  return place;
}

// Writes a scalar in single quotes, as LLVM does; control characters, which these cannot hold, become blanks.
void WriteYamlString(std::string_view text, TextWriter* out) {
  *out << '\'';
  for (char c : text) {
    if (c == '\'') *out << '\'';
    *out << (static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c);
  }
  *out << '\'';
}

void WriteYamlPlace(std::string_view indent, std::string_view source, TextWriter* out) {
  if (source.empty()) return;
  const Place place = PlaceOf(source);
  *out << indent << "DebugLoc:        { File: ";
  WriteYamlString(place.file, out);
  *out << ", Line: " << place.line << ", Column: 0 }\n";
}

void WriteYamlArg(std::string_view key, std::string_view text, std::string_view source, TextWriter* out) {
  *out << "  - " << key << ':' << std::string(key.size() < 16 ? 16 - key.size() : 1, ' ');
  WriteYamlString(text, out);
  *out << '\n';
  WriteYamlPlace("    ", source, out);
}

}  // namespace

absl::StatusOr<uint32_t> ParseRemarkCategories(std::string_view list) {
  std::vector<std::string_view> names;
  for (int k = 0; k < kRemarkCategoryCount; ++k) names.push_back(ToString(CategoryAt(k)));
  return ParseBits(list, "kind of remarks", names);
}

absl::StatusOr<uint32_t> ParseRemarkKinds(std::string_view list) {
  std::vector<std::string_view> names;
  for (RemarkKind kind : kKinds) names.push_back(ToString(kind));
  return ParseBits(list, "remark", names);
}

std::string RemarkLine(const Remark& remark) {
  const RemarkRuleInfo& info = InfoOf(remark.rule);
  return Printable(StrCat(remark.source.empty() ? remark.function : remark.source, ": remark: ", remark.Message(), " [",
                          ToString(info.category), ", ", info.id, ", ", ToString(info.kind), "]"));
}

void WriteRemarksText(absl::Span<const Remark> remarks, TextWriter* out) {
  for (const Remark& remark : remarks) {
    *out << RemarkLine(remark) << '\n';
    if (!remark.op_name.empty()) *out << "    op_name: " << Printable(remark.op_name) << '\n';
    const std::string_view advice = InfoOf(remark.rule).advice;
    if (!advice.empty()) *out << "    to change it: " << advice << '\n';
  }
}

void WriteRemarksYaml(absl::Span<const Remark> remarks, TextWriter* out) {
  for (const Remark& remark : remarks) {
    const RemarkRuleInfo& info = InfoOf(remark.rule);
    constexpr std::string_view kTags[] = {"Passed", "Missed", "Analysis"};
    *out << "--- !" << kTags[static_cast<size_t>(info.kind)] << "\nPass:            ";
    WriteYamlString(remark.pass, out);
    *out << "\nName:            ";
    WriteYamlString(info.id, out);
    *out << '\n';
    WriteYamlPlace("", remark.source, out);
    *out << "Function:        ";
    WriteYamlString(remark.function, out);
    *out << "\nArgs:\n";
    WriteYamlArg("Instruction", remark.instruction, "", out);
    for (const RemarkArg& arg : remark.args) WriteYamlArg(arg.key, arg.text, arg.source, out);
    if (!info.advice.empty()) WriteYamlArg("Advice", StrCat("; to change it: ", info.advice), "", out);
    *out << "...\n";
  }
}

void WriteRemarksJson(absl::Span<const Remark> remarks, JsonWriter* json) {
  json->BeginArray();
  for (const Remark& remark : remarks) {
    const RemarkRuleInfo& info = InfoOf(remark.rule);
    json->BeginObject();
    json->Member("kind", ToString(info.kind)).Member("category", ToString(info.category));
    json->Member("rule", info.id).Member("pass", remark.pass);
    json->Member("computation", remark.function).Member("instruction", remark.instruction);
    json->Member("opcode", remark.opcode);
    if (!remark.related.empty()) json->Member("related", remark.related);
    if (!remark.source.empty()) json->Member("source", remark.source);
    if (!remark.op_name.empty()) json->Member("op_name", remark.op_name);
    json->Member("message", remark.Message());
    if (!info.advice.empty()) json->Member("advice", info.advice);
    bool any = false;
    for (const RemarkArg& arg : remark.args) {
      if (arg.kind != RemarkArg::Kind::kNumber) continue;
      if (!any) json->Key("numbers").BeginObject();
      any = true;
      int64_t value = 0;
      std::from_chars(arg.text.data(), arg.text.data() + arg.text.size(), value);
      json->Member(arg.key, value);
    }
    if (any) json->EndObject();
    json->EndObject();
  }
  json->EndArray();
}

std::string RemarkRulesAsMarkdown() {
  std::string text;
  for (int k = 0; k < kRemarkCategoryCount; ++k) {
    StrAppend(&text, k == 0 ? "" : "\n", "### ", ToString(CategoryAt(k)),
              "\n\n| rule | kind | what it says | to change it |\n", "|---|---|---|---|\n");
    for (const RemarkRuleInfo& info : RemarkRules()) {
      if (info.category != CategoryAt(k)) continue;
      StrAppend(&text, "| `", info.id, "` | ", ToString(info.kind), " | ", info.says, " | ",
                info.advice.empty() ? "–" : info.advice, " |\n");
    }
  }
  return text;
}

}  // namespace hlokit
