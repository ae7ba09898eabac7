// SPDX-License-Identifier: Apache-2.0
// Runs whose instructions are compared one by one: in two engines, of two modules, with recorded values.
#ifndef HLOKIT_CHECK_ISOLATION_ISOLATED_RUN_H_
#define HLOKIT_CHECK_ISOLATION_ISOLATED_RUN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "check/isolation/isolation.h"
#include "check/isolation/replay.h"
#include "check/isolation/value_directory.h"
#include "interp/program/engine_table.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// What was compared with what, and what differs.
struct IsolatedRun {
  std::string_view mode;             // engines, modules, replay
  std::string actual, expected;      // labels of the two values
  const Module* recorded = nullptr;  // another module, if its instructions are the counterparts; must outlive this
  Counterparts counterparts;         // in `recorded`
  IsolationResult result;

  // Returns the name of the counterpart of an instruction if it is another one; "" otherwise.
  std::string_view CounterpartName(Instruction instruction) const;
};

// These return an error if there is no result; of a run that failed, what is wrong is in the sink.

// Runs the module on the arguments, and each of its instructions in the other engine too.
absl::StatusOr<IsolatedRun> IsolateInEngines(const Module& module, EngineKind engine, const IsolationOptions& options,
                                             absl::Span<const Literal> arguments, DiagnosticSink* sink);

// Runs the module on the arguments, and each instruction of `other`, a module of the same context, on the values of its
// counterparts in that run.
absl::StatusOr<IsolatedRun> IsolateInModules(const Module& module, const Module& other, EngineKind engine,
                                             const IsolationOptions& options, absl::Span<const Literal> arguments,
                                             DiagnosticSink* sink);

// Runs each instruction of the module on the values in the directory.
absl::StatusOr<IsolatedRun> IsolateRecorded(const Module& module, const ValueDirectory& directory, EngineKind engine,
                                            const IsolationOptions& options);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ISOLATION_ISOLATED_RUN_H_
