// SPDX-License-Identifier: Apache-2.0
#include "passes/target/topology.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "ir/core/str_cat.h"

namespace hlokit::tpu {

namespace {

constexpr int64_t kMaxSlices = 4096;
constexpr size_t kMaxAxes = 3;  // of any target

bool TakeNumber(std::string_view* text, int64_t* value) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *value);
  if (error != std::errc() || *value < 1) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

// Returns the factorization of `chips` into `axes` factors that differ least, ascending.
std::vector<int64_t> NearlyCubic(int64_t chips, int64_t axes) {
  if (axes <= 1) return {chips};
  std::vector<int64_t> best = {1};
  const double ideal = std::pow(static_cast<double>(chips), 1.0 / static_cast<double>(axes));
  int64_t first = 1;
  for (int64_t f = 1; static_cast<double>(f) <= ideal + 1e-9; ++f) {
    if (chips % f == 0) first = f;
  }
  best = NearlyCubic(chips / first, axes - 1);
  best.insert(best.begin(), first);
  return best;
}

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("topology `", text, "`: ", why));
}

}  // namespace

int64_t Topology::ChipsPerSlice() const {
  int64_t chips = 1;
  for (int64_t n : axes) chips *= n;
  return chips;
}

bool Topology::Wraps(const DeviceDescription& machine, size_t axis) const {
  if (axis >= axes.size() || axes[axis] < 2) return false;
  if (machine.ici_wrap_at > 0) return static_cast<double>(axes[axis]) >= machine.ici_wrap_at;
  const int64_t cube = static_cast<int64_t>(machine.ici_wrap_cube);
  if (cube == 0 || static_cast<double>(axes.size()) < machine.ici_axes) return false;
  return std::all_of(axes.begin(), axes.end(), [cube](int64_t n) { return n % cube == 0; });
}

Topology TopologyFor(const DeviceDescription& machine, int64_t chips) {
  Topology result;
  const int64_t largest = static_cast<int64_t>(machine.max_chips);
  while (chips > largest && chips % (result.slices * 2) == 0 && chips / result.slices > largest) result.slices *= 2;
  result.axes = NearlyCubic(std::max<int64_t>(chips / result.slices, 1), static_cast<int64_t>(machine.ici_axes));
  return result;
}

absl::StatusOr<Topology> ParseTopology(const DeviceDescription& machine, std::string_view text) {
  Topology result;
  std::string_view rest = text;
  if (const size_t star = rest.find('*'); star != std::string_view::npos) {
    if (!TakeNumber(&rest, &result.slices) || rest.substr(0, 1) != "*" || result.slices > kMaxSlices) {
      return Bad(text, "expected a number of slices before `*`");
    }
    rest.remove_prefix(1);
  }
  int64_t chips = 1;
  while (true) {
    int64_t n = 0;
    if (!TakeNumber(&rest, &n)) return Bad(text, "expected numbers of chips, as in 4x4");
    // A product beyond the limit of every target need not be exact.
    constexpr int64_t kTooMany = int64_t{1} << 30;
    chips = n > kTooMany / chips ? kTooMany : chips * n;
    result.axes.push_back(n);
    if (rest.empty() || result.axes.size() > kMaxAxes) break;
    if (rest.front() != 'x') return Bad(text, "expected `x` between the axes");
    rest.remove_prefix(1);
  }
  if (static_cast<double>(result.axes.size()) > machine.ici_axes) {
    // The first of too many axes may be meant as a number of slices.
    const Topology rest_of_axes{{result.axes.begin() + 1, result.axes.end()}, result.axes[0]};
    const bool slices = result.slices == 1 && result.axes[0] <= kMaxSlices &&
                        static_cast<double>(rest_of_axes.axes.size()) <= machine.ici_axes;
    return Bad(text,
               StrCat("expected at most ", static_cast<int64_t>(machine.ici_axes), " axes for ", machine.name,
                      slices ? StrCat("; did you mean `", ToString(rest_of_axes), "`, ", result.axes[0], " slices?")
                             : std::string()));
  }
  if (static_cast<double>(chips) > machine.max_chips) {
    return Bad(text,
               StrCat("a slice of ", machine.name, " has at most ", static_cast<int64_t>(machine.max_chips), " chips"));
  }
  if (result.axes.size() == 1) {
    const int64_t slices = result.slices;
    result = TopologyFor(machine, result.axes[0]);
    result.slices = slices;
  }
  return result;
}

std::string ToString(const Topology& topology) {
  std::string out;
  if (topology.slices > 1) StrAppend(&out, topology.slices, "*");
  for (size_t i = 0; i < topology.axes.size(); ++i) {
    if (i > 0) out.push_back('x');
    StrAppend(&out, topology.axes[i]);
  }
  return out;
}

GroupSpan SpanOf(const DeviceDescription& machine, const Topology& topology, absl::Span<const int64_t> devices) {
  GroupSpan result;
  result.devices = static_cast<int64_t>(devices.size());
  const int64_t per_slice = topology.ChipsPerSlice();
  absl::flat_hash_set<int64_t> chips;
  absl::flat_hash_set<int64_t> slices;
  for (int64_t device : devices) {
    const int64_t chip = std::max<int64_t>(device, 0) / machine.devices_per_chip();
    chips.insert(chip % per_slice);
    slices.insert(chip / per_slice);
  }
  result.chips = std::max<int64_t>(static_cast<int64_t>(chips.size()), 1);
  result.slices = std::max<int64_t>(static_cast<int64_t>(slices.size()), 1);
  int64_t stride = 1;
  int64_t product = 1;
  for (size_t a = 0; a < topology.axes.size(); ++a) {
    absl::flat_hash_set<int64_t> places;
    int64_t low = topology.axes[a];
    int64_t high = 0;
    for (int64_t chip : chips) {
      const int64_t place = chip / stride % topology.axes[a];
      places.insert(place);
      low = std::min(low, place);
      high = std::max(high, place);
    }
    stride *= topology.axes[a];
    if (places.size() < 2) continue;
    GroupSpan::Axis axis;
    axis.axis = a;
    axis.chips = static_cast<int64_t>(places.size());
    axis.span = high - low + 1;
    // A ring closes only if the group has the whole axis, or every n-th chip of it.
    axis.wraps = topology.Wraps(machine, a) && topology.axes[a] % axis.chips == 0 &&
                 axis.span > topology.axes[a] - topology.axes[a] / axis.chips;
    product *= axis.chips;
    result.axes.push_back(axis);
  }
  result.regular = product == result.chips;
  return result;
}

GroupSpan SpanOfAll(const DeviceDescription& machine, const Topology& topology) {
  GroupSpan result;
  result.chips = topology.ChipsPerSlice();
  result.slices = topology.slices;
  result.devices = topology.Chips() * machine.devices_per_chip();
  for (size_t a = 0; a < topology.axes.size(); ++a) {
    if (topology.axes[a] < 2) continue;
    result.axes.push_back({topology.axes[a], topology.axes[a], topology.Wraps(machine, a), a});
  }
  return result;
}

}  // namespace hlokit::tpu
