// SPDX-License-Identifier: Apache-2.0
// The engines: the exact one, the plain evaluator that defines the values, and the fast one. An engine is a value of
// EngineKind, a row of this table, and a source that prepares modules.
#ifndef HLOKIT_INTERP_PROGRAM_ENGINE_TABLE_H_
#define HLOKIT_INTERP_PROGRAM_ENGINE_TABLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "interp/interface/engine.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

enum class EngineKind : uint8_t { kExact, kFast, kReference };

struct EngineRow {
  EngineKind kind;
  std::string_view name;     // in flags and options
  std::string_view summary;  // one clause, for help
  // Prepares a module of static shapes, which should be verified. Returns null after an error.
  std::unique_ptr<Engine> (*prepare)(const Module& module, const EvaluatorOptions& options, DiagnosticSink* sink);
  // The same for an instruction by itself, which is to have the code that it has in a program; null: `prepare`.
  std::unique_ptr<Engine> (*prepare_alone)(const Module& module, const EvaluatorOptions& options,
                                           DiagnosticSink* sink) = nullptr;
  // Returns the passes that a program goes through before the engine runs it; "": none. Null: none for any program.
  std::string (*passes)(const Module& module, MixedPrecisionMode mode) = nullptr;
  // The passes by which frameworks compile programs for it.
  std::string_view framework_passes = "default";
  // The engine that its values are compared with: of one that defines the values, an engine that is held to it.
  EngineKind compared_with;
  bool defines_values = false;
  bool generates_code = false;     // Engine::code, and a store of code on disk
  bool is_observable = false;      // observers see its values
  bool runs_in_processes = false;  // devices may be those of several processes
  bool is_for_frameworks = false;  // the PJRT plugin offers it
};

absl::Span<const EngineRow> Engines();
const EngineRow& RowOf(EngineKind kind);
std::optional<EngineKind> EngineKindOf(std::string_view name);
// Returns the names of engines, in the order of the table.
std::vector<std::string> EngineNames();
// Returns `exact or fast`: the engines of which this is true.
std::string EngineNamesWith(bool EngineRow::*property);
// Returns `engine: "NAME" is none of exact, fast and reference`, an error of an option `engine`.
std::string UnknownEngineMessage(std::string_view name);

// Prepares a module as it is: verified, partitioned and after its passes. Dynamic dimensions are those of
// sized_engine.h. Returns null after an error.
std::unique_ptr<Engine> PrepareEngine(EngineKind kind, const Module& module, const EvaluatorOptions& options,
                                      DiagnosticSink* sink);
// The same for the module of an instruction by itself.
std::unique_ptr<Engine> PrepareAlone(EngineKind kind, const Module& module, const EvaluatorOptions& options,
                                     DiagnosticSink* sink);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROGRAM_ENGINE_TABLE_H_
