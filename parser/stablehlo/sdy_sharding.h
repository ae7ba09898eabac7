// SPDX-License-Identifier: Apache-2.0
// Shardings of the sdy dialect in the form of HLO. A mesh names the axes of an array of devices; a sharding lists the
// axes that divide each dimension.
#ifndef HLOKIT_PARSER_STABLEHLO_SDY_SHARDING_H_
#define HLOKIT_PARSER_STABLEHLO_SDY_SHARDING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/sharding/sdy_mesh.h"
#include "parser/mlir/node.h"

namespace hlokit::stablehlo {

// Reads `<["data"=4, "model"=2], device_ids=[1, 0]>`; text in front of the bracket is ignored.
absl::StatusOr<SdyMesh> ReadSdyMeshText(std::string_view text);
// Reads `#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "data", size = 4>, ...], device_ids = dense<...>>`.
absl::StatusOr<SdyMesh> ReadStablehloMesh(const mlir::NodeTable& nodes, mlir::NodeId mesh);
// Reads `(2)4`, the part of size 4 after a major part of size 2. Returns false if it is none.
bool ReadSdySubAxis(std::string_view text, int64_t* before, int64_t* size);
// Returns the text of the HLO sharding that `#sdy.sharding<@mesh, [{"x"}, {}]>` stands for, or
// `#sdy.sharding_per_value<[<@mesh, ...>, ...]>`: of several values a tuple. A mesh may also stand in the sharding.
// `budget`: of devices that texts may list one by one, from which those of this text are subtracted.
absl::StatusOr<std::string> HloShardingOf(std::string_view sharding, const SdyMeshes& meshes, int64_t* budget);

// Likewise of each value of `sharding_per_value`.
absl::StatusOr<std::vector<std::string>> HloShardingsOf(std::string_view shardings, const SdyMeshes& meshes,
                                                        int64_t* budget);

// Returns the texts of the shardings in `#sdy.sharding_per_value<[<@mesh, [{"x"}]>, ...]>`, without what stands before
// the bracket of each.
std::vector<std::string> PartsOfShardings(std::string_view shardings);

// Returns true if a dimension of a sharding is open: `#sdy.sharding<@mesh, [{"x", ?}]>`.
bool HasOpenDimension(std::string_view sharding);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_SDY_SHARDING_H_
