// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/native_functions.h"

#include <map>
#include <utility>

#include "ir/types/literal.h"
#include "tracer/graph/deterministic_init.h"

namespace hlokit::lazy::script {

std::unique_ptr<nn::ParameterRegistry> RunContext::NewRegistry(ElementType type) {
  // As torch's layers: in +-1/sqrt(fan in). Modules continue the numbers of those before them.
  const nn::Initializer pattern = nn::PatternInitializer(InitPattern::kHash, 1);
  const size_t first = parameters;
  return std::make_unique<nn::ParameterRegistry>(tracer, type, [pattern, first](nn::ParameterSpec spec, Literal* out) {
    spec.number += first;
    pattern(spec, out);
  });
}

NativeFunction& AddRow(const NativeRow& row, std::vector<NativeFunction>* functions) {
  absl::StatusOr<Signature> signature = ParseSignature(row.signature);
  // A test parses all rows.
  functions->push_back({signature.ok() ? *std::move(signature) : Signature(), row.call, row.host});
  return functions->back();
}

const std::vector<NativeFunction>& NativeFunctions() {
  static const std::vector<NativeFunction>* const functions = [] {
    auto* all = new std::vector<NativeFunction>();
    AddModules(all);
    AddOptimizers(all);
    AddCollectives(all);
    AddBuiltins(all);
    return all;
  }();
  return *functions;
}

const NativeFunction* FindNative(std::string_view name) {
  static const auto* const index = [] {
    auto* map = new std::map<std::string_view, const NativeFunction*>();
    for (const NativeFunction& function : NativeFunctions()) map->emplace(function.signature.name, &function);
    return map;
  }();
  const auto found = index->find(name);
  return found == index->end() ? nullptr : found->second;
}

bool IsNativePrefix(std::string_view prefix) {
  for (const NativeFunction& function : NativeFunctions()) {
    const std::string_view name = function.signature.name;
    if (name.size() > prefix.size() && name.starts_with(prefix) && name.substr(prefix.size()).starts_with("::")) {
      return true;
    }
  }
  return false;
}

}  // namespace hlokit::lazy::script
