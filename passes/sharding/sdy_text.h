// SPDX-License-Identifier: Apache-2.0
// Shardings of Shardy as HLO text has them, in frontend attributes:
//   xla.sdy.meshes             {mesh = #sdy.mesh<["a"=2, "b"=4], device_ids=[…]>}, in the header
//   xla.sdy.sharding           #sdy.sharding<@mesh, [{"a", ?}, {"b"}], replicated={"c"}>
//   …, in_, out_shardings      #sdy.sharding_per_value<[<@mesh, [{"a"}]>, <mesh<["a"=2]>, [{}]>]>
#ifndef HLOKIT_PASSES_SHARDING_SDY_TEXT_H_
#define HLOKIT_PASSES_SHARDING_SDY_TEXT_H_

#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"
#include "ir/sharding/tiling.h"

namespace hlokit::sharding {

// The custom-calls around a manual computation.
inline constexpr std::string_view kToLocal = "xla.sdy.GlobalToLocalShape";
inline constexpr std::string_view kToGlobal = "xla.sdy.LocalToGlobalShape";

struct SdySharding {
  Tiling tiling;
  std::vector<bool> open;  // by dimension: propagation may add axes
};

// Returns the shardings in `text`, of one value or of several, for values of these shapes. `meshes` is the text of the
// header's meshes. Returns nullopt if the text has another form.
std::optional<std::vector<SdySharding>> ParseSdyShardings(std::string_view text, std::string_view meshes,
                                                          absl::Span<const Shape> shapes);

// The axes along which a computation is manual, major first.
struct SdyManualAxes {
  AxisList axes;
  int64_t device_count = 0;
  std::vector<int64_t> order;  // of the devices, as in Tiling
};

// Returns the axes that a text such as `#sdy<manual_axes{"a", "b"}>` names, of the mesh of `shardings`, a text as
// ParseSdyShardings reads; if that is of no value, of the first mesh of the module.
std::optional<SdyManualAxes> ParseSdyManualAxes(std::string_view manual_axes, std::string_view shardings,
                                                std::string_view meshes);

// Returns the number of axes in a text such as `#sdy<manual_axes{"a", "b"}>`.
size_t CountSdyAxes(std::string_view text);

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_SDY_TEXT_H_
