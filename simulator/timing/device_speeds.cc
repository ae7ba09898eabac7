// SPDX-License-Identifier: Apache-2.0
#include "simulator/timing/device_speeds.h"

#include <algorithm>
#include <utility>

namespace hlokit::tpu {

namespace {

// Returns the splitmix64 hash.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Returns an approximately normal sample with mean 0 and standard deviation 1: the sum of four uniform samples of 16
// bits.
double Normal(uint64_t bits) {
  double sum = 0;
  for (int k = 0; k < 4; ++k) sum += static_cast<double>(bits >> (16 * k) & 0xffff);
  return (sum / 65535 - 2) * 1.7320508075688772;
}

}  // namespace

DeviceSpeeds::DeviceSpeeds(const PerformanceVariation& variation, size_t devices)
    : jitter_(variation.jitter), seed_(variation.seed), speed_(devices, 1) {
  if (variation.stragglers.empty()) return;
  std::vector<std::pair<uint64_t, size_t>> draws;
  for (size_t d = 0; d < devices; ++d) draws.push_back({Mix(seed_ * 0x2545f4914f6cdd1du + d), d});
  std::sort(draws.begin(), draws.end());
  size_t drawn = 0;
  for (const Straggler& s : variation.stragglers) {
    if (s.device < 0 && drawn < devices) speed_[draws[drawn++].second] = s.factor;
    if (s.device >= 0 && static_cast<size_t>(s.device) < devices) speed_[static_cast<size_t>(s.device)] = s.factor;
  }
}

double DeviceSpeeds::Factor(size_t device, uint64_t draw) const {
  if (jitter_ == 0) return speed_[device];
  const double z = Normal(Mix(seed_ ^ Mix(static_cast<uint64_t>(device) << 40 ^ draw)));
  return speed_[device] * std::max(1 + jitter_ * z, 0.05);
}

}  // namespace hlokit::tpu
