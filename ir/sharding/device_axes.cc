// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/device_axes.h"

#include <algorithm>
#include <numeric>

namespace hlokit {

int64_t SizeOf(absl::Span<const DeviceAxis> axes) {
  int64_t size = 1;
  for (const DeviceAxis& axis : axes) size *= axis.size;  // at most the number of devices
  return size;
}

void AppendAxis(AxisList* list, DeviceAxis axis) {
  if (axis.size == 1) return;
  if (!list->empty() && list->back().stride == axis.end()) {
    list->back() = {axis.stride, list->back().size * axis.size};
  } else {
    list->push_back(axis);
  }
}

void AppendAxes(AxisList* list, absl::Span<const DeviceAxis> axes) {
  for (const DeviceAxis& axis : axes) AppendAxis(list, axis);
}

std::optional<AxisList> TakeMajor(AxisList* list, int64_t size) {
  AxisList taken;
  size_t i = 0;
  for (; i < list->size() && size % (*list)[i].size == 0; ++i) {
    taken.push_back((*list)[i]);
    size /= (*list)[i].size;
  }
  if (size == 1) {
    list->erase(list->begin(), list->begin() + static_cast<std::ptrdiff_t>(i));
    return taken;
  }
  if (i == list->size() || (*list)[i].size % size != 0) return std::nullopt;
  const DeviceAxis axis = (*list)[i];
  const int64_t minor = axis.size / size;
  taken.push_back({axis.stride * minor, size});
  list->erase(list->begin(), list->begin() + static_cast<std::ptrdiff_t>(i));
  list->front() = {axis.stride, minor};
  return taken;
}

AxisList TakeMajorDivisor(AxisList* list, int64_t size) {
  AxisList taken;
  while (!list->empty() && size > 1) {
    const DeviceAxis axis = list->front();
    const int64_t part = std::gcd(axis.size, size);
    if (part == 1) break;
    const int64_t minor = axis.size / part;
    taken.push_back({axis.stride * minor, part});
    size /= part;
    if (minor == 1) {
      list->erase(list->begin());
    } else {
      list->front() = {axis.stride, minor};
      break;
    }
  }
  return taken;
}

bool IsPrefix(AxisList prefix, const AxisList& list) {
  size_t at = 0;
  DeviceAxis rest = list.empty() ? DeviceAxis() : list[0];
  for (const DeviceAxis& axis : prefix) {
    if (rest.size == 1) {
      if (++at >= list.size()) return false;
      rest = list[at];
    }
    if (axis.end() != rest.end()) return false;
    if (rest.size % axis.size != 0) return false;
    rest.size /= axis.size;
  }
  return true;
}

int64_t TileNumber(absl::Span<const DeviceAxis> axes, int64_t position) {
  int64_t tile = 0;
  for (const DeviceAxis& axis : axes) tile = tile * axis.size + position / axis.stride % axis.size;
  return tile;
}

std::optional<AxisList> Complement(absl::Span<const AxisList* const> lists, int64_t count) {
  AxisList used;
  for (const AxisList* list : lists) used.insert(used.end(), list->begin(), list->end());
  std::sort(used.begin(), used.end(), [](const DeviceAxis& a, const DeviceAxis& b) { return a.stride < b.stride; });
  AxisList free;  // minor first
  int64_t begin = 1;
  for (const DeviceAxis& axis : used) {
    if (axis.stride % begin != 0) return std::nullopt;
    if (axis.stride != begin) free.push_back({begin, axis.stride / begin});
    begin = axis.end();
  }
  if (count % begin != 0) return std::nullopt;
  if (count != begin) free.push_back({begin, count / begin});
  std::reverse(free.begin(), free.end());
  return free;
}

std::optional<AxisList> Subtract(const AxisList& axes, absl::Span<const DeviceAxis> used, int64_t count) {
  // Cut at the bounds of the used axes that lie within.
  AxisList left;
  for (const DeviceAxis& axis : axes) {
    std::vector<int64_t> cuts = {axis.stride, axis.end()};
    for (const DeviceAxis& u : used) {
      for (const int64_t cut : {u.stride, u.end()}) {
        if (cut > axis.stride && cut < axis.end()) cuts.push_back(cut);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    for (size_t i = cuts.size() - 1; i > 0; --i) {
      if (cuts[i] % cuts[i - 1] != 0) return std::nullopt;
      const DeviceAxis part{cuts[i - 1], cuts[i] / cuts[i - 1]};
      const bool taken = std::any_of(used.begin(), used.end(), [&](const DeviceAxis& u) {
        return u.stride <= part.stride && part.end() <= u.end();
      });
      if (!taken) AppendAxis(&left, part);
    }
  }
  if (count < 1) return std::nullopt;
  return left;
}

std::optional<AxisList> AxesOfPositions(absl::Span<const int64_t> positions) {
  if (positions.empty() || positions[0] != 0) return std::nullopt;
  AxisList minor_first;
  size_t period = 1;  // the axes so far count through the first `period` positions
  while (period < positions.size()) {
    const int64_t stride = positions[period];
    if (stride < 1 || positions.size() % period != 0) return std::nullopt;
    size_t size = 1;
    while ((size + 1) * period <= positions.size() && positions[size * period] == static_cast<int64_t>(size) * stride) {
      ++size;
    }
    if (size == 1) return std::nullopt;
    minor_first.push_back({stride, static_cast<int64_t>(size)});
    period *= size;
  }
  if (period != positions.size()) return std::nullopt;
  AxisList axes;
  for (size_t i = minor_first.size(); i-- > 0;) AppendAxis(&axes, minor_first[i]);
  // The axes are right for the positions at which each was found; compare the others.
  for (size_t i = 0; i < positions.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), position = 0;
    for (const DeviceAxis& axis : minor_first) {
      position += rest % axis.size * axis.stride;
      rest /= axis.size;
    }
    if (position != positions[i]) return std::nullopt;
  }
  // Of each position 0 … n-1.
  const std::optional<AxisList> rest = Complement({&axes}, static_cast<int64_t>(positions.size()));
  if (!rest || !rest->empty()) return std::nullopt;
  return axes;
}

}  // namespace hlokit
