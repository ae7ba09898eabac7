// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/explanation.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/loops/inplace_input.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"

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

// Returns why an instruction has an exact kernel that no thunk declined.
std::string_view WhyExact(Instruction instruction) {
  bool is_complex = false, is_packed = false;
  int64_t elements = 0;
  const auto look = [&](Shape shape) {
    for (Shape leaf : Leaves(shape)) {
      if (!leaf.IsArray()) continue;
      is_complex |= IsComplex(leaf.element_type());
      is_packed |= leaf.element_type() != ElementType::kPred && BitsOf(leaf.element_type()) < 8;
      elements = std::max(elements, leaf.element_count());
    }
  };
  look(instruction.shape());
  for (Instruction operand : instruction.operands()) look(operand.shape());
  if (is_complex) return "complex numbers";
  if (is_packed) return "elements of less than a byte";
  if (HasTrait(instruction.opcode(), kControlFlow)) return "control flow, whose computations have steps of their own";
  if (HasTrait(instruction.opcode(), kCollective)) return "other devices take part";
  if (elements < GroupOptions().min_elements) return "few elements";
  const bool joins = HasTrait(instruction.opcode(), kElementwise) || instruction.opcode() == Opcode::kBroadcast ||
                     instruction.opcode() == Opcode::kReduce || IsInplaceInput(instruction);
  return joins ? "nothing to join it with saves enough" : "opcode";
}

// Returns one choice of each instruction: members of a group that was given up have two, the first with the reason.
std::vector<KernelChoice> ChoiceOfEach(const CompiledKernels& kernels) {
  std::vector<KernelChoice> choices;
  absl::flat_hash_map<uint32_t, size_t> at;
  for (const KernelChoice& choice : kernels.choices()) {
    const auto [it, is_new] = at.try_emplace(choice.instruction.value, choices.size());
    if (is_new) {
      choices.push_back(choice);
    } else if (choice.kind != KernelChoice::Kind::kExact) {
      choices[it->second] = choice;
    }
  }
  return choices;
}

}  // namespace

std::string Explain(const Module& module, const CompiledKernels& kernels, const PlannedMemory& memory) {
  const std::vector<KernelChoice> choices = ChoiceOfEach(kernels);
  int counts[5] = {};
  for (const KernelChoice& choice : choices) ++counts[static_cast<size_t>(choice.kind)];
  std::string text = StrCat("engine: ", Counted(counts[0], "instruction"), " in loops, ", Counted(counts[1], "product"),
                            ", ", Counted(counts[2], "convolution"), ", ", Counted(counts[3], "window"), ", ",
                            counts[4], " with kernels of the exact engine\n");
  const CodeStatistics& code = kernels.statistics();
  StrAppend(&text, "code: ", Counted(kernels.loops().size(), "loop"),
            absl::StrFormat(": %d compiled in %.3f s, %d loaded from disk, %d already in memory\n", code.compiled,
                            code.seconds, code.loaded, code.found));
  const double live = static_cast<double>(std::max<int64_t>(memory.live_bytes, 1));
  StrAppend(&text,
            absl::StrFormat("memory: %d bytes planned, %.3f of the %d bytes that are live at one time\n",
                            memory.planned_bytes, static_cast<double>(memory.planned_bytes) / live, memory.live_bytes));
  size_t width = 0;
  constexpr size_t kMaxWidth = 40;
  for (const KernelChoice& choice : choices) {
    width = std::max(width, std::min(kMaxWidth, module.instruction(choice.instruction).name().size()));
  }
  for (const KernelChoice& choice : choices) {
    const Instruction instruction = module.instruction(choice.instruction);
    StrAppend(&text, absl::StrFormat("  %-*s  %-20s  %s", static_cast<int>(width), std::string(instruction.name()),
                                     std::string(instruction.opcode_text()), std::string(KindText(choice.kind))));
    if (choice.kind == KernelChoice::Kind::kLoop) {
      StrAppend(&text, " of ", module.instruction(choice.loop).name());
    } else if (choice.kind == KernelChoice::Kind::kExact) {
      StrAppend(&text, ": ", choice.reason.empty() ? WhyExact(instruction) : std::string_view(choice.reason));
    }
    text += '\n';
  }
  return text;
}

std::map<uint32_t, std::vector<InstructionId>> LoopMembers(const CompiledKernels& kernels) {
  std::map<uint32_t, std::vector<InstructionId>> members;
  for (const KernelChoice& choice : kernels.choices()) {
    if (choice.kind == KernelChoice::Kind::kLoop) members[choice.loop.value].push_back(choice.instruction);
  }
  return members;
}

std::vector<std::string> KernelTexts(const Module& module, const CompiledKernels& kernels) {
  std::vector<std::string> texts(module.instruction_id_bound());
  for (const KernelChoice& choice : kernels.choices()) {
    if (choice.kind != KernelChoice::Kind::kLoop) texts[choice.instruction.value] = KindText(choice.kind);
  }
  for (const auto& [loop, members] : LoopMembers(kernels)) texts[loop] = StrCat("loop of ", members.size());
  return texts;
}

LoopTexts TextsOf(const Module& module, const CompiledKernels& kernels, const CompiledLoop& loop) {
  LoopTexts texts;
  texts.program = CanonicalText(loop.program);
  for (const KernelChoice& choice : kernels.choices()) {
    if (choice.kind != KernelChoice::Kind::kLoop || choice.loop != loop.root) continue;
    StrAppend(&texts.hlo, ToString(module.instruction(choice.instruction), PrintOptions::Lossless()), "\n");
  }
  const absl::StatusOr<CodeGenerator*>& generator = Generator();
  if (!generator.ok()) return texts;
  auto generated = (*generator)->Generate(loop.program, HostInstructionSet(), true);
  if (GeneratedCode* const code = std::get_if<GeneratedCode>(&generated)) {
    texts.ir = std::move(code->ir);
    texts.optimized_ir = std::move(code->optimized_ir);
    texts.assembly = std::move(code->assembly);
  }
  return texts;
}

}  // namespace hlokit::interp::compiled
