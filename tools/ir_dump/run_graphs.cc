// SPDX-License-Identifier: Apache-2.0
// Output of ir-dump for a file of lazy graphs that it records again.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "tools/ir_dump/session.h"
#include "tracer/step/device_state.h"
#include "tracer/text/ir_reader.h"
#include "tracer/text/record/ir_builder.h"
#include "tracer/text/record/op_test_case.h"

namespace hlokit {

bool Session::RunGraphs(std::shared_ptr<const SourceBuffer> source, size_t number, const SourceBuffer* arguments) {
  lazy::TextDump dump;
  DiagnosticSink sink;
  const bool read = lazy::ReadGraphs(source, &dump, &sink);
  diagnostics_.Show(sink, *source);
  if (!read) return false;
  if (number > dump.graphs.size()) {
    diagnostics_.ShowError("--graph", StrCat("the file has ", dump.graphs.size(), " graphs"), cli::kUsage);
    return false;
  }
  if ((json || module_format != "hlo") && number == 0 && dump.graphs.size() > 1) {
    diagnostics_.ShowError(json ? "--json" : "--output", "takes one graph of the file: specify --graph", cli::kUsage);
    return false;
  }
  Context context;
  lazy::OpTestCase given;
  if (arguments != nullptr) {
    DiagnosticSink errors;
    const bool ok = lazy::ReadOpTestCase(*arguments, &context, &given, &errors);
    diagnostics_.Show(errors, *arguments);
    if (!ok) return false;
  }
  for (size_t k = 0; k < dump.graphs.size(); ++k) {
    if (number != 0 && number != k + 1) continue;
    if (number == 0 && dump.graphs.size() > 1) out_ << "graph " << static_cast<int64_t>(k + 1) << ":\n";
    lazy::Tracer tracer(options);
    const lazy::DeviceGuard guard(tracer.device());
    DiagnosticSink errors;
    const auto parameter = [&](int64_t p, Shape shape, SourceRange where) {
      if (arguments == nullptr) return lazy::SyntheticParameter(tracer, p, shape);
      const auto i = static_cast<size_t>(p);
      if (i >= given.args.size() || !given.args[i] || !SameShape(given.args[i]->shape(), shape, true)) {
        errors.Error(DiagnosticKind::kShapeMismatch, where,
                     StrCat("parameter ", p, " needs a value of ", ToString(shape, false), " in the arguments"));
        return lazy::Tensor();
      }
      return tracer.FromLiteral(*given.args[i]);
    };
    lazy::Tensors roots;
    const bool built = lazy::BuildGraph(dump, dump.graphs[k], tracer, parameter, &roots, &errors);
    diagnostics_.Show(errors, *source);
    if (!built || !EmitGraph(tracer, roots) || !EmitValues(roots)) return false;
    EmitReports(tracer);
  }
  return true;
}

}  // namespace hlokit
