// SPDX-License-Identifier: Apache-2.0
// A program with bounded dynamic dimensions as the engines run it: its arrays have the sizes of their bounds, and the
// sizes are scalars. Values that go in and come out have the sizes themselves: for f32[<=8] an f32[5].
#ifndef HLOKIT_INTERP_DYNAMIC_SIZED_PROGRAM_H_
#define HLOKIT_INTERP_DYNAMIC_SIZED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

class SizedProgram {
 public:
  // Makes the program; `*out` stays null if no array of the module is dynamic. Returns false, with an error in the
  // sink, if the meaning of a dynamic dimension to an instruction is not known. The module, which is verified, must
  // outlive the program and its results: both use its context.
  static bool Make(const Module& module, DiagnosticSink* sink, std::unique_ptr<SizedProgram>* out);

  // The program that runs. Instructions that the original has have the same ids there, unless others replace them.
  const Module& module() const { return module_; }

  // Leaves of the original's parameters and root.
  const std::vector<Shape>& argument_shapes() const { return argument_shapes_; }
  const std::vector<Shape>& result_shapes() const { return result_shapes_; }

  // Returns the arguments of module() for arguments of the original, for each device in turn. They may refer to the
  // elements of `arguments`. Returns an error if one does not fit, or they would take more than `max_bytes`.
  absl::StatusOr<std::vector<Literal>> Arguments(absl::Span<const Literal* const> arguments, int64_t max_bytes) const;
  // Returns the results of the original from those of module(), for each device in turn.
  std::vector<Literal> Results(std::vector<Literal> results) const;

 private:
  explicit SizedProgram(const Module& module);

  Module module_;
  std::vector<Shape> argument_shapes_;
  std::vector<Shape> result_shapes_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_DYNAMIC_SIZED_PROGRAM_H_
