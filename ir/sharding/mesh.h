// SPDX-License-Identifier: Apache-2.0
// Meshes of devices with named axes, `mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0))`, and references to axes or sub-axes,
// `'y':(2)2`, in named shardings and mesh replica groups.
#ifndef HLOKIT_IR_SHARDING_MESH_H_
#define HLOKIT_IR_SHARDING_MESH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/ids.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/sharding/tile_assignment.h"

namespace hlokit {

struct Mesh {
  std::vector<StringId> names;  // of the axes
  // The dimensions are the sizes of the axes. A maximal mesh has no axes and one listed device; a mesh without axes and
  // devices is empty.
  TileAssignment devices;

  int64_t rank() const { return static_cast<int64_t>(names.size()); }
  int64_t axis_size(int64_t axis) const { return devices.dims[static_cast<size_t>(axis)]; }
  bool maximal() const { return names.empty() && !devices.devices.empty(); }
  int64_t device_count() const { return maximal() ? 1 : devices.device_count(); }

  friend bool operator==(const Mesh&, const Mesh&) = default;
};

// An axis, or the sub-axis `size` of the axis as [pre_size, size, rest]: `'x':(pre_size)size`.
struct AxisRef {
  int64_t axis = 0;
  int64_t pre_size = 1;
  int64_t size = 0;  // 0: the whole axis

  bool whole() const { return size == 0; }
  int64_t end() const { return pre_size * size; }  // of a sub-axis: where the next one may begin
  int64_t SizeIn(const Mesh& mesh) const { return whole() ? mesh.axis_size(axis) : size; }
  friend bool operator==(const AxisRef&, const AxisRef&) = default;
};

// Returns the error of a mesh: duplicate or numeric names, sizes below one or whose product overflows int64, devices
// that are no permutation of 0, 1, ... Replaces an identity list of devices by an iota.
std::optional<std::string> CheckMesh(const Context& context, Mesh* mesh);

// Collects the axes that a sharding or group uses, and checks each further one.
class AxisUses {
 public:
  AxisUses(const Context& context, const Mesh& mesh)
      : context_(context), mesh_(mesh), uses_(static_cast<size_t>(mesh.rank())) {}

  // Adds axes. Returns an error unless the axes exist, sub-axes are proper and divide the axis, and no two uses
  // overlap. Adjacent sub-axes must be merged into one.
  std::optional<std::string> Add(absl::Span<const AxisRef> axes);
  // As Add, for a set, which must be sorted. `what` names it in messages.
  std::optional<std::string> AddSorted(absl::Span<const AxisRef> axes, std::string_view what);

 private:
  std::optional<std::string> AddOne(const AxisRef& ref);

  const Context& context_;
  const Mesh& mesh_;
  std::vector<std::vector<AxisRef>> uses_;  // by axis
};

// Returns true if `axes` are all axes of the mesh, whole and in order; those of size one may be missing.
bool CoversMesh(const Mesh& mesh, absl::Span<const AxisRef> axes);

// Returns the product of the sizes. Saturates at int64 max.
int64_t AxesSize(const Mesh& mesh, absl::Span<const AxisRef> axes);

void PrintMesh(TextWriter& out, const Context& context, const Mesh& mesh);
// Prints "'x':(1)2, 'y'".
void PrintAxes(TextWriter& out, const Context& context, const Mesh& mesh, absl::Span<const AxisRef> axes,
               std::string_view separator);

// Encodings, for the lists of shardings and replica groups. Decoders advance *at.
//   mesh: number of axes, name and size of each, then 0 for the identity order of devices, or 1 and an iota, or 2
//     and a list
//   iota: number of dimensions, dimensions, permutation
//   axes: number, then axis, pre_size, size of each
//   list: number, values
void EncodeMesh(const Mesh& mesh, std::vector<int64_t>* list);
void EncodeIotaTileAssignment(const IotaTileAssignment& order, std::vector<int64_t>* list);
void EncodeAxes(absl::Span<const AxisRef> axes, std::vector<int64_t>* list);
void EncodeList(absl::Span<const int64_t> values, std::vector<int64_t>* list);
Mesh DecodeMesh(absl::Span<const int64_t> list, size_t* at);
IotaTileAssignment DecodeIotaTileAssignment(absl::Span<const int64_t> list, size_t* at);
std::vector<AxisRef> DecodeAxes(absl::Span<const int64_t> list, size_t* at);
std::vector<int64_t> DecodeList(absl::Span<const int64_t> list, size_t* at);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_MESH_H_
