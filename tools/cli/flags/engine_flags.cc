// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/engine_flags.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ir/core/str_cat.h"
#include "tools/cli/output_file.h"

namespace hlokit::cli {

std::string EngineHelp(std::string_view what) {
  std::string text(what);
  std::string_view separator;
  for (const interp::EngineRow& row : interp::Engines()) {
    StrAppend(&text, std::exchange(separator, "; "), row.summary);
  }
  return text;
}

void EngineFlags::AddTo(CLI::App* app) {
  app->add_flag(
      "--explain-engine", explain,
      "print, on standard error, what runs each instruction in the fast engine, and why that is a kernel of the "
      "exact engine");
  app->add_option(
         "--dump-compiled", dump,
         "write the plan of the fast engine to this directory, plan.txt: steps with kernels and buffers; and of each "
         "loop, in the order of --explain-engine, its instructions, program, LLVM code before and after LLVM's passes, "
         "and assembly: 000.hlo, 000.loop, 000.ll, 000.opt.ll, 000.s, ...")
      ->type_name("DIR");
}

std::optional<int> EngineFlags::Check(std::string_view tool, interp::EngineKind engine) const {
  if (interp::RowOf(engine).generates_code) return std::nullopt;
  const std::string names = interp::EngineNamesWith(&interp::EngineRow::generates_code);
  for (const auto& [flag, given] : {std::pair("--explain-engine", explain), {"--dump-compiled", !dump.empty()}}) {
    if (given) return UsageError(tool, StrCat(flag, " requires --engine=", names));
  }
  return std::nullopt;
}

bool DumpEngine(const std::string& directory, const interp::CodeInspection& code, DiagnosticReporter* diagnostics) {
  if (!CreateDirectories(directory, diagnostics)) return false;
  const auto write = [&](const std::string& name, const std::string& text) {
    return WriteOutputFile(directory + "/" + name, diagnostics, [&](TextWriter& out) { out << text; });
  };
  if (!write("plan.txt", code.Plan())) return false;
  for (size_t n = 0; n < code.loops(); ++n) {
    const std::vector<std::string> stages = code.StagesOfLoop(n);
    for (size_t s = 0; s < stages.size(); ++s) {
      if (!write(absl::StrFormat("%03d%s", n, code.stage_extensions()[s]), stages[s])) return false;
    }
  }
  // Of an earlier program with more loops.
  bool is_left = true;
  for (size_t n = code.loops(); is_left; ++n) {
    is_left = false;
    for (const std::string_view extension : code.stage_extensions()) {
      std::error_code ignored;
      is_left |= std::filesystem::remove(absl::StrFormat("%s/%03d%s", directory, n, extension), ignored);
    }
  }
  return true;
}

void ExplainEngine(const interp::CodeInspection& code) {
  const std::string text = code.Explain();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace hlokit::cli
