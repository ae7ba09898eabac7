// SPDX-License-Identifier: Apache-2.0
// What jax.export's `serialize()` returns: a FlatBuffers message around a portable artifact.
#ifndef HLOKIT_PARSER_BYTECODE_JAX_EXPORT_H_
#define HLOKIT_PARSER_BYTECODE_JAX_EXPORT_H_

#include <optional>
#include <string_view>

namespace hlokit::bytecode {

// Returns the artifact in `bytes`; nullopt if they are no such message.
std::optional<std::string_view> ArtifactOfJaxExport(std::string_view bytes);

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_JAX_EXPORT_H_
