// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/explanation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "interp/compiled/engine_modules.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp::compiled {
namespace {

std::string_view KindText(KernelChoice::Kind kind) {
  switch (kind) {
    case KernelChoice::Kind::kLoop:
      return "loop";
    case KernelChoice::Kind::kProduct:
      return "product";
    case KernelChoice::Kind::kConvolution:
      return "convolution";
    case KernelChoice::Kind::kWindow:
      return "window";
    case KernelChoice::Kind::kExact:
      return "exact";
  }
  return "";
}

}  // namespace

std::string Explain(const Module& module, const CompiledKernels& kernels) {
  int counts[5] = {};
  for (const KernelChoice& choice : kernels.choices()) ++counts[static_cast<size_t>(choice.kind)];
  std::string text =
      StrCat("engine: ", counts[0], " instructions in loops, ", counts[1], " products, ", counts[2], " convolutions, ",
             counts[3], " windows, ", counts[4], " with kernels of the exact engine\n");
  size_t width = 0;
  constexpr size_t kMaxWidth = 40;
  for (const KernelChoice& choice : kernels.choices()) {
    width = std::max(width, std::min(kMaxWidth, module.instruction(choice.instruction).name().size()));
  }
  for (const KernelChoice& choice : kernels.choices()) {
    const Instruction instruction = module.instruction(choice.instruction);
    StrAppend(&text, absl::StrFormat("  %-*s  %-20s  %s", static_cast<int>(width), std::string(instruction.name()),
                                     std::string(instruction.opcode_text()), std::string(KindText(choice.kind))));
    if (choice.kind == KernelChoice::Kind::kLoop) {
      StrAppend(&text, " of ", module.instruction(choice.loop).name());
    } else if (!choice.reason.empty() && choice.kind == KernelChoice::Kind::kExact) {
      StrAppend(&text, ": ", choice.reason);
    }
    text += '\n';
  }
  return text;
}

LoopTexts TextsOf(const CompiledLoop& loop) {
  LoopTexts texts;
  texts.program = CanonicalText(loop.program);
  GeneratedCode code;
  std::string ignored;
  CodeGenerator* const generator = Generator();
  if (generator != nullptr && generator->Generate(loop.program, HostInstructionSet(), true, &code, &ignored)) {
    texts.ir = std::move(code.ir);
    texts.assembly = std::move(code.assembly);
  }
  return texts;
}

}  // namespace hlokit::interp::compiled
