// SPDX-License-Identifier: Apache-2.0
// Registers the layout passes.
#include "passes/core/register_passes.h"
#include "passes/layout/layout_assignment.h"
#include "passes/target/tpu_target.h"

namespace hlokit {
namespace {

class LayoutAssignment : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    std::optional<tpu::VectorTile> tile;
    if (options().String("target") == "tpu") {
      tile = tpu::TileOf(tpu::TargetOf(*this, module).machine);
    }
    const absl::StatusOr<LayoutCounts> counts = AssignLayouts(module, tile);
    if (!counts.ok()) return counts.status();
    const int64_t changes = counts->shapes + counts->copies;
    if (changes > 0) Count("layouts changed", counts->shapes);
    if (counts->copies > 0) Count("copies added", counts->copies);
    if (counts->bitcasts > 0) Count("transposes that move nothing", counts->bitcasts);
    return changes > 0;
  }
};

constexpr char kLayoutExample[] = R"(HloModule product

ENTRY main {
  x = bf16[256,512]{1,0} parameter(0)
  w = bf16[256,128]{1,0} parameter(1)
  t = bf16[512,256]{1,0} transpose(x), dimensions={1,0}
  ROOT d = bf16[512,128]{1,0} dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";

}  // namespace

void RegisterLayoutPasses(PassRegistry* registry) {
  registry->Add(
      {.name = "layout-assignment",
       .category = "layout",
       .summary = "assign a layout to every array",
       .doc = "The last dimension is minor, except for parameters and results of the entry, which keep the caller's "
              "order and are copied if it differs, and for transposes that only dots and convolutions read, which "
              "become bitcasts. Target `tpu` adds the tiles of a TPU's memory and chooses the minor dimensions that "
              "they pad: connected arrays (through elementwise operations, slices, transposes, loops and calls) share "
              "the order that moves the fewest bytes, including padding, copies at the entry's boundary, reshapes and "
              "preferences: convolutions prefer batch and features minor, dots no batch dimension minor.",
       .example = kLayoutExample,
       .options = {{.name = "target",
                    .type = OptionInfo::Type::kString,
                    .default_text = "plain",
                    .doc = "`plain`, or `tpu` for tiled layouts",
                    .choices = {"plain", "tpu"}},
                   tpu::DeviceOption()},
       .preconditions = "No schedule: a module that has one is left alone.",
       .create = MakePass<LayoutAssignment>});
}

}  // namespace hlokit
