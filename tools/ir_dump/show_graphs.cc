// SPDX-License-Identifier: Apache-2.0
#include "tools/ir_dump/show_graphs.h"

#include <cstdio>
#include <vector>

#include "ir/core/str_cat.h"
#include "tracer/text/dump_report.h"
#include "tracer/text/graph_diff.h"
#include "tracer/text/ir_reader.h"

namespace hlokit {

void ShowGraphs(const InputForm& form, cli::DiagnosticReporter* diagnostics, TextWriter& out) {
  const std::vector<cli::InputPart> parts = diagnostics->Read(form.path);
  if (parts.empty()) return;
  lazy::TextDump dump;
  DiagnosticSink sink;
  const bool ok = lazy::ReadGraphs(parts[0].source, &dump, &sink);
  diagnostics->Show(sink, *parts[0].source);
  if (!ok) return;
  if (form.graph != 0 && form.form != "print" && form.form != "normalize" && form.form != "dot") {
    diagnostics->ShowError("--graph", "is of --as=print, normalize and dot", cli::kUsage);
    return;
  }
  if (form.form == "list") out << lazy::ListGraphs(dump);
  if (form.form == "json") out << lazy::ListGraphsJson(dump);
  if (form.form == "dedupe") out << lazy::DeduplicationReport(dump);
  if (form.form == "print" && form.graph == 0) out << lazy::PrintDump(dump);
  if (form.form == "diff") {
    size_t a = 0, b = 0;
    int read = 0;
    if (std::sscanf(form.other.c_str(), "%zu,%zu%n", &a, &b, &read) != 2 || form.other[read] != '\0' || a < 1 ||
        b < 1 || a > dump.graphs.size() || b > dump.graphs.size()) {
      diagnostics->ShowError("--diff", StrCat("takes the numbers of two of the ", dump.graphs.size(), " graphs, A,B"),
                             cli::kUsage);
      return;
    }
    const lazy::GraphDiff diff = lazy::DiffGraphs(dump.graphs[a - 1], dump.graphs[b - 1]);
    if (diff.equal) return;
    out << diff.first << "\n" << diff.text;
    diagnostics->Fail(cli::kRejected);
    return;
  }
  if (form.graph > dump.graphs.size()) {
    diagnostics->ShowError("--graph", StrCat("there are ", dump.graphs.size(), " graphs"), cli::kUsage);
    return;
  }
  for (size_t i = 0; i < dump.graphs.size(); ++i) {
    if (form.graph != 0 && i + 1 != form.graph) continue;
    if (form.form == "print" && form.graph != 0) out << lazy::PrintGraph(dump.graphs[i]);
    if (form.form == "normalize") out << lazy::ToNormalizedString(dump.graphs[i]);
    if (form.form == "dot") out << lazy::PrintGraphDot(dump.graphs[i]);
  }
}

}  // namespace hlokit
