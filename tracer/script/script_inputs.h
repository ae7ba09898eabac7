// SPDX-License-Identifier: Apache-2.0
// Arrays that a script reads by name, from files that its user names: a script itself names no files.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_INPUTS_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_INPUTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/arrays/array_file.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"

namespace hlokit::lazy::script {

class ScriptInputs {
 public:
  // Opens .npy files, whose arrays have the names of the files without suffix, .npz and safetensors files. Returns an
  // error if two arrays have the same name. Reads headers only.
  static absl::StatusOr<std::unique_ptr<const ScriptInputs>> Open(absl::Span<const std::string> paths);

  // Reads an array, or `count` indices of its first dimension from `first` on, with the type that the file states, as
  // an array of `context`. Returns an error for an unknown name, which lists the nearest one, indices that the array
  // does not have, and more than `max_bytes`. Thread-safe, with a context for each thread.
  absl::StatusOr<Literal> Read(std::string_view name, int64_t first, std::optional<int64_t> count, int64_t max_bytes,
                               Context* context) const;

 private:
  struct Place {
    size_t file = 0, array = 0;
  };

  ScriptInputs() = default;

  std::vector<interp::ArrayFile> files_;
  std::map<std::string, Place, std::less<>> arrays_;  // by name
};

}  // namespace hlokit::lazy::script

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_INPUTS_H_
