// SPDX-License-Identifier: Apache-2.0
#include "interp/interface/engine.h"

namespace hlokit::interp {

std::optional<std::vector<Literal>> Engine::Run(absl::Span<const Literal> arguments, DiagnosticSink* sink) {
  std::vector<const Literal*> pointers;
  pointers.reserve(arguments.size());
  for (const Literal& argument : arguments) pointers.push_back(&argument);
  return RunPointers(pointers, sink);
}

}  // namespace hlokit::interp
