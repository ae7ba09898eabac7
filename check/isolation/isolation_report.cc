// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/isolation_report.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "interp/observers/value_summary.h"
#include "ir/core/double_text.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/graph/source_line.h"
#include "ir/graph/text_lines.h"

namespace hlokit::interp {
namespace {

// Rows of the text; the JSON has all.
constexpr size_t kMaxListed = 50;

std::string ElementOf(const IsolatedDifference& d) {
  const std::vector<Shape> leaves = Leaves(d.instruction.shape());
  const Shape leaf = leaves[d.worst.leaf];
  std::string text = leaves.size() > 1 ? StrCat("leaf ", d.worst.leaf, leaf.rank() > 0 ? ", " : "") : "";
  if (leaf.rank() > 0) StrAppend(&text, "element ", IndexToString(leaf, d.worst.element));
  return text.empty() ? "value" : text;
}

std::string DistanceOf(const IsolatedDifference& d) {
  if (!(d.worst.absolute < std::numeric_limits<double>::infinity())) return "no finite distance";
  return StrCat(FormatDouble(d.worst.ulp, 4), " ulp, ", FormatDouble(d.worst.absolute, 4));
}

void PrintRow(const IsolatedRun& run, const SourceBuffer& source, const TextLines& lines, const IsolatedDifference& d,
              TextWriter* out) {
  const Instruction i = d.instruction;
  *out << i.name() << " = " << ToString(i.shape(), /*with_layout=*/false) << " " << i.opcode_text();
  if (const int64_t line = lines.Of(i); line > 0) *out << ", " << source.name() << ":" << line;
  if (const std::string_view name = run.CounterpartName(i); !name.empty()) *out << ", " << run.expected << ": " << name;
  *out << "\n  ";
  if (!d.error.empty()) {
    *out << "error: " << d.error;
  } else {
    *out << ElementOf(d) << ": " << run.actual << " " << d.worst.actual << ", " << run.expected << " "
         << d.worst.expected << " (" << DistanceOf(d) << ")";
    if (d.worst.elements > 1) *out << "; " << d.worst.different << " of " << d.worst.elements << " elements";
  }
  if (d.executions > 1) {
    *out << "; in execution " << d.worst_execution << "; " << d.different << " of " << d.executions
         << " executions differ";
  }
  *out << "\n";
  const std::string written = SourceLineOf(i);
  const std::string_view scope = OpNameOf(i);
  if (written.empty() && scope.empty()) return;
  *out << "  " << written << (written.empty() || scope.empty() ? "" : ", ") << (scope.empty() ? "" : "scope ") << scope
       << "\n";
}

void WriteRow(const IsolatedRun& run, const TextLines& lines, const IsolatedDifference& d, JsonWriter* json) {
  const Instruction i = d.instruction;
  json->BeginObject()
      .Member("instruction", i.name())
      .Member("computation", i.parent().name())
      .Member("opcode", i.opcode_text())
      .Member("shape", ToString(i.shape(), /*with_layout=*/false))
      .Member("line", lines.Of(i))
      .Member("source", SourceLineOf(i))
      .Member("scope", OpNameOf(i));
  if (const std::string_view name = run.CounterpartName(i); !name.empty()) json->Member("counterpart", name);
  json->Member("executions", d.executions)
      .Member("different_executions", d.different)
      .Member("worst_execution", d.worst_execution);
  if (!d.error.empty()) {
    json->Member("error", d.error).EndObject();
    return;
  }
  json->Member("elements", d.worst.elements)
      .Member("different_elements", d.worst.different)
      .Member("leaf", static_cast<int64_t>(d.worst.leaf))
      .Member("element", d.worst.element)
      .Member("actual", d.worst.actual)
      .Member("expected", d.worst.expected)
      .Member("ulps", d.worst.ulp)
      .Member("absolute", d.worst.absolute)
      .Member("relative", d.worst.relative)
      .EndObject();
}

}  // namespace

void PrintIsolation(const IsolatedRun& run, const SourceBuffer& source, TextWriter* out) {
  const IsolationResult& result = run.result;
  const std::string found = !result.equal()          ? StrCat(result.differences.size(), " differ")
                            : result.executions == 0 ? "nothing was compared"
                                                     : "none differs";
  *out << Counted(result.instructions, "instruction") << " ran in " << Counted(result.executions, "execution") << ", "
       << run.actual << " against " << run.expected << ": " << found << "\n";
  std::string omitted;
  for (size_t k = 0; k < kOmissions; ++k) {
    if (result.omitted[k] == 0) continue;
    StrAppend(&omitted, omitted.empty() ? "not run: " : "; ", result.omitted[k], " (",
              ToString(static_cast<Omission>(k)), ")");
  }
  if (!omitted.empty()) *out << omitted << "\n";
  if (result.intermediate > 0) {
    *out << Counted(result.intermediate, "intermediate value") << " differ, but not what is computed from them\n";
  }
  const TextLines lines(source.text());
  for (size_t k = 0; k < std::min(result.differences.size(), kMaxListed); ++k) {
    PrintRow(run, source, lines, result.differences[k], out);
  }
  if (result.differences.size() > kMaxListed) {
    *out << "(" << static_cast<int64_t>(result.differences.size() - kMaxListed) << " more)\n";
  }
}

void WriteIsolationJson(const IsolatedRun& run, const Module& module, const SourceBuffer& source, TextWriter* out) {
  const IsolationResult& result = run.result;
  JsonWriter json(out);
  json.BeginObject()
      .Member("module", module.name())
      .Member("mode", run.mode)
      .Member("actual", run.actual)
      .Member("expected", run.expected)
      .Member("instructions", result.instructions)
      .Member("executions", result.executions)
      .Member("intermediate", result.intermediate);
  json.Key("omitted").BeginArray();
  for (size_t k = 0; k < kOmissions; ++k) {
    if (result.omitted[k] == 0) continue;
    json.BeginObject()
        .Member("reason", ToString(static_cast<Omission>(k)))
        .Member("instructions", result.omitted[k])
        .EndObject();
  }
  json.EndArray();
  json.Key("differences").BeginArray();
  const TextLines lines(source.text());
  for (const IsolatedDifference& d : result.differences) WriteRow(run, lines, d, &json);
  json.EndArray().EndObject();
}

}  // namespace hlokit::interp
