// SPDX-License-Identifier: Apache-2.0
// The parts of the import of Shardy's export (shardy_import.h):
//   shardy_import.cc        the regions of the computations, and the walk over them
//   shardy_conversions.cc   the conversions at the borders of manual computations, and the axes that they make manual
//   shardy_marks.cc         constraints, results, groups, barriers and shardings of instructions
#ifndef HLOKIT_PASSES_SHARDING_SHARDY_IMPORTER_H_
#define HLOKIT_PASSES_SHARDING_SHARDY_IMPORTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module.h"
#include "ir/sharding/tiling.h"
#include "passes/core/pass_error.h"
#include "passes/sharding/manual_region.h"

namespace hlokit::sharding {

inline constexpr std::string_view kSdySharding = "xla.sdy.sharding";

// A sharding of one array, and which of its dimensions propagation may divide further.
struct OpenSharding {
  Tiling tiling;
  std::vector<int64_t> open;
};

using OpenShardings = absl::StatusOr<std::optional<std::vector<OpenSharding>>>;  // by leaf; none: there is no sharding

// Any total order.
struct RegionOrder {
  bool operator()(const ManualRegion& a, const ManualRegion& b) const;
};

class ShardyImporter {
 public:
  explicit ShardyImporter(Module& module) : module_(module), first_bound_(module.instruction_id_bound()) {}

  absl::StatusOr<int64_t> Run();

 private:
  bool IsNeeded() const;
  absl::Status FindRegions();
  absl::Status VisitCaller(Instruction i, const ManualRegion& region);
  // Returns the computation that is `callee` in the region: itself or its clone.
  ComputationId InRegionOf(ComputationId callee, const ManualRegion* region);
  // Regions within regions can be exponentially many.
  bool HasTooManyClones() const { return module_.instruction_id_bound() - first_bound_ > kMaxCloned; }
  // Returns the axes that a conversion, or the call between two conversions, makes manual; none for other calls.
  absl::StatusOr<ManualRegion> AxesOfConversion(Instruction conversion);
  absl::StatusOr<ManualRegion> AxesOfCall(Instruction call);
  absl::StatusOr<ManualRegion> Within(Instruction i, const ManualRegion& outer, const ManualRegion& inner) const;
  absl::Status Rewrite(Computation c, const ManualRegion& region);
  // Returns an error unless a conversion has one array for each operand, of its type and rank.
  absl::Status CheckConversion(Instruction i) const;
  absl::Status ConvertToLocal(Instruction i, const ManualRegion& region);
  absl::Status ConvertToGlobal(Instruction i, const ManualRegion& region);
  absl::Status ReadConstraint(Instruction i, const ManualRegion& region);
  absl::Status ReadSharding(Instruction i, const ManualRegion& region);
  absl::Status ReadResult(Instruction i, const ManualRegion& region);
  void ReadGroup(Instruction i);
  absl::Status ReadBarrier(Instruction i);
  void SetRootSharding();
  absl::Status RemoveMarksOf(Computation c);
  // Returns an error unless the value of a mark has the shape of its operand, by which it is replaced.
  absl::Status CheckPassesOperand(Instruction i) const;

  OpenShardings FromSdy(Instruction i, std::string_view key, absl::Span<const Shape> shapes);
  OpenShardings FromAttribute(Instruction i);
  void SetSharding(InstructionId id, absl::Span<const Tiling> leaves);
  void SetOpen(InstructionId id, absl::Span<const int64_t> open);
  void DropSdy(Instruction i, std::string_view key);
  InstructionId AddCall(Builder* b, std::string_view target, InstructionId operand, Shape shape, const Tiling& tiling,
                        absl::Span<const int64_t> open);
  // Replaces an instruction by its elements: get-tuple-elements of it directly.
  void ReplaceByElements(Instruction i, absl::Span<const InstructionId> elements);
  // Returns an error if a sharding is for another number of devices than those before.
  absl::Status CheckDevices(Instruction i, const Tiling& tiling) {
    if (!tiling.tiled()) return absl::OkStatus();
    if (devices_ == 0) devices_ = tiling.device_count;
    if (devices_ == tiling.device_count) return absl::OkStatus();
    return Error(i, StrCat("the sharding is for ", tiling.device_count, " devices, not for ", devices_));
  }
  absl::Status Error(Instruction i, std::string_view text) const { return ErrorAt(i, text); }

  static constexpr size_t kMaxCloned = size_t{1} << 20;  // instructions

  Module& module_;
  size_t first_bound_ = 0;  // of the instructions before clones
  std::string meshes_;
  std::set<ManualRegion, RegionOrder> interned_;
  std::map<uint32_t, const ManualRegion*> regions_;  // of the computations that control flow reaches: interned
  std::vector<ComputationId> order_;
  absl::flat_hash_map<uint32_t, ComputationId> origins_;  // by clone: the computation of the text
  absl::flat_hash_map<std::pair<uint32_t, const ManualRegion*>, ComputationId> clones_;  // by origin and region
  absl::flat_hash_map<uint32_t, ManualRegion> axes_of_;       // by conversion: what it makes manual
  absl::flat_hash_map<uint32_t, std::vector<int64_t>> open_;  // by constraint: its open dimensions
  absl::flat_hash_map<uint32_t, Tiling> result_of_;           // by instruction: what a FuncResultSharding said of it
  int64_t devices_ = 0;                                       // of all shardings
  int64_t count_ = 0;
};

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_SHARDY_IMPORTER_H_
