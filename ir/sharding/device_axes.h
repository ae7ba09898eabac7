// SPDX-License-Identifier: Apache-2.0
// Axes of an order of devices. An order of N devices is a mixed-radix number system: a position 0 … N-1 has digits, and
// an axis is one digit, or part of one. Axes belong to one factorization of N if their strides, sorted, divide each
// other. The tiles of a dimension are a list of axes, major first, of which the digits give the number of the tile.
//
// [4,2]<=[2,4]T(1,0) of 8 devices: dimension 0 has the axis of stride 1 and size 4, dimension 1 that of stride 4 and
// size 2.
#ifndef HLOKIT_IR_SHARDING_DEVICE_AXES_H_
#define HLOKIT_IR_SHARDING_DEVICE_AXES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace hlokit {

// The digit `position / stride % size`.
struct DeviceAxis {
  int64_t stride = 1;
  int64_t size = 1;

  // Returns the stride of the next more major axis.
  int64_t end() const { return stride * size; }
  friend bool operator==(const DeviceAxis&, const DeviceAxis&) = default;
};

// Axes, major first, none of size one, and none that continues the one before it: such are merged.
using AxisList = std::vector<DeviceAxis>;

// Returns the product of the sizes: the number of tiles.
int64_t SizeOf(absl::Span<const DeviceAxis> axes);

// Appends an axis, or the axes of a list, on the minor side.
void AppendAxis(AxisList* list, DeviceAxis axis);
void AppendAxes(AxisList* list, absl::Span<const DeviceAxis> axes);

// Removes the major axes of `list`, of the product `size`, and returns them; splits an axis where necessary. Returns
// nullopt, and leaves `list`, if no axes have that product.
std::optional<AxisList> TakeMajor(AxisList* list, int64_t size);

// As TakeMajor, with the largest divisor of `size` that major axes have. Of an axis that shares only a divisor, the
// major part is taken.
AxisList TakeMajorDivisor(AxisList* list, int64_t size);

// Returns true if `prefix` are the major axes of `list`.
bool IsPrefix(AxisList prefix, const AxisList& list);

// Returns the digit of `axes` in `position`: the number of a tile.
int64_t TileNumber(absl::Span<const DeviceAxis> axes, int64_t position);

// Returns the axes of 0 … count-1 that are in none of the lists, major first. Returns nullopt if axes overlap or do not
// belong to one factorization.
std::optional<AxisList> Complement(absl::Span<const AxisList* const> lists, int64_t count);

// Returns the parts of `axes` that share nothing with `used`. Returns nullopt unless all belong to one factorization.
std::optional<AxisList> Subtract(const AxisList& axes, absl::Span<const DeviceAxis> used, int64_t count);

// Returns the axes whose digits, major first, count through `positions`, a permutation of 0, 1, …; nullopt if there are
// none.
std::optional<AxisList> AxesOfPositions(absl::Span<const int64_t> positions);

}  // namespace hlokit

#endif  // HLOKIT_IR_SHARDING_DEVICE_AXES_H_
