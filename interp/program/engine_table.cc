// SPDX-License-Identifier: Apache-2.0
#include "interp/program/engine_table.h"

#include "interp/compiled/fast_engine.h"
#include "interp/dynamic/sized_engine.h"
#include "interp/exact/evaluator.h"
#include "interp/reference/evaluator.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

template <typename E>
std::unique_ptr<Engine> Prepare(const Module& module, const EvaluatorOptions& options, DiagnosticSink* sink) {
  return E::Prepare(module, options, sink);
}

// In the order of EngineKind. The fast engine divides programs into loops itself; fusions would divide them for a TPU.
constexpr EngineRow kEngines[] = {
    {.kind = EngineKind::kExact,
     .name = "exact",
     .summary = "exact rounds after each instruction",
     .prepare = Prepare<Evaluator>,
     .compared_with = EngineKind::kReference,
     .is_observable = true,
     .runs_in_processes = true,
     .is_for_frameworks = true},
    {.kind = EngineKind::kFast,
     .name = "fast",
     .summary = "fast has compiled loops and oneDNN's products, with bounded differences",
     .prepare = compiled::PrepareFastEngine,
     .prepare_alone = compiled::PrepareSingleLoops,
     .passes = compiled::PassesForFastEngine,
     .framework_passes = "cpu",
     .compared_with = EngineKind::kExact,
     .generates_code = true,
     .is_observable = true,
     .runs_in_processes = true,
     .is_for_frameworks = true},
    {.kind = EngineKind::kReference,
     .name = "reference",
     .summary = "reference is the plain evaluator, slow, that defines the values",
     .prepare = Prepare<reference::Evaluator>,
     .compared_with = EngineKind::kExact,
     .defines_values = true},
};

constexpr bool IsInOrder() {
  for (size_t i = 0; i < std::size(kEngines); ++i) {
    if (static_cast<size_t>(kEngines[i].kind) != i) return false;
  }
  return true;
}
static_assert(IsInOrder());

}  // namespace

absl::Span<const EngineRow> Engines() { return kEngines; }

const EngineRow& RowOf(EngineKind kind) { return kEngines[static_cast<size_t>(kind)]; }

std::optional<EngineKind> EngineKindOf(std::string_view name) {
  for (const EngineRow& row : kEngines) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

std::vector<std::string> EngineNames() {
  std::vector<std::string> names;
  for (const EngineRow& row : kEngines) names.emplace_back(row.name);
  return names;
}

std::string EngineNamesWith(bool EngineRow::*property) {
  std::string text;
  for (const EngineRow& row : kEngines) {
    if (row.*property) StrAppend(&text, text.empty() ? "" : " or ", row.name);
  }
  return text;
}

std::string UnknownEngineMessage(std::string_view name) {
  std::string text = StrCat("engine: \"", name, "\" is none of ");
  for (size_t i = 0; i < std::size(kEngines); ++i) {
    StrAppend(&text, i == 0 ? "" : i + 1 < std::size(kEngines) ? ", " : " and ", kEngines[i].name);
  }
  return text;
}

std::unique_ptr<Engine> PrepareEngine(EngineKind kind, const Module& module, const EvaluatorOptions& options,
                                      DiagnosticSink* sink) {
  return PrepareSized(*RowOf(kind).prepare, module, options, sink);
}

std::unique_ptr<Engine> PrepareAlone(EngineKind kind, const Module& module, const EvaluatorOptions& options,
                                     DiagnosticSink* sink) {
  const EngineRow& row = RowOf(kind);
  return PrepareSized(row.prepare_alone != nullptr ? *row.prepare_alone : *row.prepare, module, options, sink);
}

}  // namespace hlokit::interp
