// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/engine_flags.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "interp/compiled/explanation.h"
#include "ir/core/str_cat.h"
#include "tools/cli/output_file.h"

namespace hlokit::cli {

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
  for (const auto& [flag, given] : {std::pair("--explain-engine", explain), {"--dump-compiled", !dump.empty()}}) {
    if (given && engine != interp::EngineKind::kFast) return UsageError(tool, StrCat(flag, " requires --engine=fast"));
  }
  return std::nullopt;
}

bool DumpEngine(const std::string& directory, const interp::Engine& engine, DiagnosticReporter* diagnostics) {
  if (!CreateDirectories(directory, diagnostics)) return false;
  const auto write = [&](const std::string& name, const std::string& text) {
    return WriteOutputFile(directory + "/" + name, diagnostics, [&](TextWriter& out) { out << text; });
  };
  const interp::compiled::CompiledKernels& kernels = *engine.compiled();
  const Module& module = engine.exact()->program_module();
  const std::vector<std::string> texts_of = interp::compiled::KernelTexts(module, kernels);
  const std::string plan = engine.exact()->PlanText([&](InstructionId id) { return texts_of[id.value]; });
  if (!write("plan.txt", plan)) return false;
  constexpr const char* kExtensions[] = {".hlo", ".loop", ".ll", ".opt.ll", ".s"};
  for (size_t n = 0; n < kernels.loops().size(); ++n) {
    const interp::compiled::LoopTexts texts = interp::compiled::TextsOf(module, kernels, kernels.loops()[n]);
    const std::string* const stages[] = {&texts.hlo, &texts.program, &texts.ir, &texts.optimized_ir, &texts.assembly};
    for (size_t i = 0; i < std::size(stages); ++i) {
      if (!write(absl::StrFormat("%03d%s", n, kExtensions[i]), *stages[i])) return false;
    }
  }
  // Of an earlier program with more loops.
  bool is_left = true;
  for (size_t n = kernels.loops().size(); is_left; ++n) {
    is_left = false;
    for (const char* const extension : kExtensions) {
      std::error_code ignored;
      is_left |= std::filesystem::remove(absl::StrFormat("%s/%03d%s", directory, n, extension), ignored);
    }
  }
  return true;
}

void ExplainEngine(const interp::Engine& engine) {
  const interp::Evaluator& evaluator = *engine.exact();
  const std::string text =
      interp::compiled::Explain(evaluator.program_module(), *engine.compiled(), evaluator.planned_memory());
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace hlokit::cli
