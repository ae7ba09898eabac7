// SPDX-License-Identifier: Apache-2.0
// scope-flops FILE: prints the FLOPs of each part of a model, by the first two names of its scopes.
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "io/files/read_file.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/analysis/cost.h"

namespace {

// Reads and verifies a module. Returns null after printing what is wrong with it.
std::unique_ptr<hlokit::Module> ReadModule(const std::string& path) {
  const auto source = hlokit::ReadFile(path);
  if (!source.ok()) {
    std::cerr << source.status().message() << "\n";
    return nullptr;
  }
  hlokit::DiagnosticSink sink;
  std::unique_ptr<hlokit::Module> module = hlokit::ParseModule(*source, {}, &sink);
  if (module != nullptr) hlokit::VerifyModule(*module, {}, &sink);
  std::cerr << hlokit::RenderText(sink, **source);
  return sink.has_errors() ? nullptr : std::move(module);
}

// "train_step/forward" of "train_step/forward/hidden".
std::string_view ScopeOf(std::string_view op_name) {
  const size_t first = op_name.find('/');
  return first == std::string_view::npos ? "" : op_name.substr(0, op_name.find('/', first + 1));
}

}  // namespace

int main(int argc, char** argv) {
  const std::unique_ptr<hlokit::Module> module = argc == 2 ? ReadModule(argv[1]) : nullptr;
  if (module == nullptr) return 1;

  const hlokit::CostAnalysis cost(*module);
  std::map<std::string_view, int64_t> flops;
  for (hlokit::Instruction i : module->entry().instructions()) {
    flops[ScopeOf(module->context().str(i.metadata().op_name))] += cost.Of(i).flops;
  }
  for (const auto& [scope, count] : flops) {
    if (count > 0) std::cout << count << "\t" << (scope.empty() ? "(no scope)" : scope) << "\n";
  }
}
