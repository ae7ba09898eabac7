// SPDX-License-Identifier: Apache-2.0
// Checks that modules that are written as StableHLO and read again have the fingerprint that they had, but for what
// StableHLO has no place for: dead code, and whether several results are a tuple or packed into one.
//
//   stablehlo_round_trip [--list] [--minimum=N] PATH...
//
// Modules that StableHLO can't express are counted by the opcode of the message; --list names those that change. Exits
// with 1 if a text that was written is not read, or if fewer than N modules are the same.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "ir/digest/fingerprint.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "parser/mlir/printer.h"
#include "parser/stablehlo/export/export.h"
#include "passes/core/pipeline.h"
#include "tests/properties/hlo_files.h"

namespace hlokit {
namespace {

// Removes what StableHLO does not say.
bool Normalize(Module* module);

struct Counts {
  int same = 0, changed = 0, unread = 0, inexpressible = 0, invalid = 0;
  std::map<std::string, int> reasons;
};

void Check(const std::string& path, bool list, Counts* counts) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text.str());
  DiagnosticSink invalid;
  if (module.ok()) VerifyModule(**module, {}, &invalid);
  if (!module.ok() || invalid.has_errors() || !Normalize(module->get())) {
    ++counts->invalid;
    return;
  }
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> program = stablehlo::ExportToStablehlo(**module, &sink);
  if (program == nullptr) {
    ++counts->inexpressible;
    const std::string message = sink.diagnostics().empty() ? "?" : sink.diagnostics()[0].message;
    const size_t comma = message.find("`, ");
    ++counts->reasons[comma == std::string::npos ? message : message.substr(comma + 3)];
    return;
  }
  absl::StatusOr<std::unique_ptr<Module>> again = ParseModuleText(mlir::PrintMlir(*program));
  if (!again.ok() || !Normalize(again->get())) {
    ++counts->unread;
    std::printf("%s: %s\n", path.c_str(), again.ok() ? "?" : std::string(again.status().message()).c_str());
    return;
  }
  if (Fingerprint(**module) == Fingerprint(**again)) {
    ++counts->same;
    return;
  }
  ++counts->changed;
  if (list) std::printf("%s: changed\n", path.c_str());
}

bool Normalize(Module* module) {
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse("(tuple-simplifier,dce)*");
  return pipeline.ok() && pipeline->Run(*module).ok();
}

int Main(int argc, char** argv) {
  bool list = false;
  int minimum = 0;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    constexpr std::string_view kMinimum = "--minimum=";
    if (argument == "--list") {
      list = true;
    } else if (argument.starts_with(kMinimum)) {
      minimum = std::atoi(argv[i] + kMinimum.size());
    } else {
      paths.emplace_back(argument);
    }
  }
  Counts counts;
  for (const std::string& path : HloFiles(paths)) Check(path, list, &counts);
  for (const auto& [reason, count] : counts.reasons) std::printf("%5d  %s\n", count, reason.c_str());
  std::printf("%d same, %d changed, %d not expressible, %d not read again, %d invalid\n", counts.same, counts.changed,
              counts.inexpressible, counts.unread, counts.invalid);
  return counts.unread != 0 || counts.same < minimum ? 1 : 0;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Main(argc, argv); }
