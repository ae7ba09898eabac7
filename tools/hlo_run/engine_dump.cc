// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/engine_dump.h"

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "interp/compiled/explanation.h"
#include "tools/cli/output_file.h"

namespace hlokit::run {

bool DumpEngine(const std::string& directory, const Module& module, const Engine& engine,
                cli::DiagnosticReporter* diagnostics) {
  if (!cli::CreateDirectories(directory, diagnostics)) return false;
  const auto write = [&](const std::string& name, const std::string& text) {
    return cli::WriteOutputFile(directory + "/" + name, diagnostics, [&](TextWriter& out) { out << text; });
  };
  const interp::compiled::CompiledKernels& kernels = *engine.compiled();
  const std::vector<std::string> texts_of = interp::compiled::KernelTexts(module, kernels);
  const std::string plan = engine.exact()->PlanText([&](InstructionId id) { return texts_of[id.value]; });
  if (!write("plan.txt", plan)) return false;
  for (size_t n = 0; n < kernels.loops().size(); ++n) {
    const interp::compiled::LoopTexts texts = interp::compiled::TextsOf(module, kernels, kernels.loops()[n]);
    const std::pair<const char*, const std::string*> files[] = {{".hlo", &texts.hlo},
                                                                {".loop", &texts.program},
                                                                {".ll", &texts.ir},
                                                                {".opt.ll", &texts.optimized_ir},
                                                                {".s", &texts.assembly}};
    for (const auto& [extension, text] : files) {
      if (!write(absl::StrFormat("%03d%s", n, extension), *text)) return false;
    }
  }
  return true;
}

}  // namespace hlokit::run
