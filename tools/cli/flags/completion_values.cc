// SPDX-License-Identifier: Apache-2.0
// Completion of values that several tools have.
#include <algorithm>
#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "ir/ops/op_reference.h"
#include "ir/ops/opcode.h"
#include "passes/core/registry.h"
#include "passes/target/device_description.h"
#include "tools/cli/completion.h"
#include "tools/cli/flags/device_flag.h"

namespace hlokit::cli {
namespace {

// Offers a pass or pipeline after `before`, spelled with `_` if the typed text is. Offers aliases only for a nonempty
// prefix, so that the list of all passes has no duplicates.
void OfferPass(std::string_view name, std::string_view description, std::string_view before, std::string_view typed,
               Completion* out) {
  const bool underscores = typed.find('_') != std::string_view::npos;
  const auto offer = [&](std::string_view offered) {
    std::string text(offered);
    if (underscores) std::replace(text.begin(), text.end(), '-', '_');
    out->candidates.push_back({StrCat(before, text), std::string(description)});
  };
  offer(name);
  if (typed.empty()) return;
  for (const std::string_view alias : PassRegistry::AliasesOf(name)) offer(alias);
}

void CompletePass(std::string_view typed, Completion* out) {
  for (const PassInfo* pass : PassRegistry::Get().passes()) OfferPass(pass->name, pass->summary, "", typed, out);
}

// Offers "max-operands=" or, after it, the values, for the pass with open braces.
void CompletePassOption(const PassInfo& pass, std::string_view typed, size_t begin, Completion* out) {
  const std::string before(typed.substr(0, begin));
  const std::string_view item = typed.substr(begin);
  const size_t equal = item.find('=');
  for (const OptionInfo& option : pass.options) {
    if (equal == std::string_view::npos) {
      out->candidates.push_back({StrCat(before, option.name, "="), std::string(option.doc)});
    } else if (option.name == item.substr(0, equal)) {
      const std::string head = StrCat(before, option.name, "=");
      for (const std::string_view choice : option.choices) out->candidates.push_back({StrCat(head, choice), ""});
      if (option.type != OptionInfo::Type::kBool) continue;
      for (const std::string_view choice : {"true", "false"}) out->candidates.push_back({StrCat(head, choice), ""});
    }
  }
}

void CompletePipeline(std::string_view typed, Completion* out) {
  out->open = true;
  // Start of the typed name, and of the pass whose braces enclose it.
  size_t begin = 0;
  std::string_view pass_name;
  bool in_options = false;
  for (size_t k = 0; k < typed.size(); ++k) {
    const char c = typed[k];
    if (c == '{') {
      pass_name = typed.substr(begin, k - begin);
      in_options = true;
    }
    if (c == '}') in_options = false;
    if (c == ',' || c == '(' || c == '{' || c == ' ') begin = k + 1;
    if (c == ')' || c == '}' || c == '*') begin = std::string_view::npos;  // a comma must follow
  }
  if (begin == std::string_view::npos) return;
  const PassRegistry& registry = PassRegistry::Get();
  if (in_options) {
    if (const PassInfo* pass = registry.Find(pass_name)) CompletePassOption(*pass, typed, begin, out);
    return;
  }
  const std::string before(typed.substr(0, begin));
  for (const NamedPipeline& pipeline : registry.pipelines()) {
    OfferPass(pipeline.name, StrCat("pipeline: ", pipeline.summary), before, typed.substr(begin), out);
  }
  for (const PassInfo* pass : registry.passes()) {
    OfferPass(pass->name, pass->summary, before, typed.substr(begin), out);
  }
}

void CompleteDeviceDescription(std::string_view, Completion* out) {
  for (const std::string_view name : tpu::BuiltinDeviceDescriptions()) {
    const std::optional<tpu::DeviceDescription> machine = tpu::BuiltinDeviceDescription(name);
    out->candidates.push_back({std::string(name), machine ? DeviceSummary(*machine) : ""});
  }
}

// Offers a device, or the file of a description; chips may follow.
void CompleteDevice(std::string_view typed, Completion* out) {
  CompleteDeviceDescription(typed, out);
  out->paths = Completion::Paths::kFiles;
}

void CompleteOpcode(std::string_view, Completion* out) {
  for (size_t k = 0; k < kOpcodeCount; ++k) {
    const Opcode opcode = static_cast<Opcode>(k);
    out->candidates.push_back({std::string(ToString(opcode)), std::string(MeaningOf(opcode))});
  }
}

}  // namespace

std::vector<ValueKind> CommonValueKinds() {
  return {{"FILE", [](std::string_view, Completion* out) { out->paths = Completion::Paths::kFiles; }},
          {"DIR", [](std::string_view, Completion* out) { out->paths = Completion::Paths::kDirectories; }},
          {"PIPELINE", CompletePipeline},
          {"PASS", CompletePass},
          {"DEVICE", CompleteDevice},
          {"TARGET", CompleteDeviceDescription},
          {"OPCODE", CompleteOpcode}};
}

}  // namespace hlokit::cli
