// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/timing/step_timer.h"

#include <algorithm>
#include <cmath>

#include "interp/tpu/devices/tiling.h"

namespace hlokit::tpu {

namespace {

size_t Index(Resource r) { return static_cast<size_t>(r); }

constexpr int64_t kHostMemorySpace = 5;
constexpr double kSmall = 4096;  // bytes that come with the kernel's start

}  // namespace

Resource BoundOf(const ResourceTimes& times) {
  size_t best = Index(Resource::kOverhead);
  for (size_t r = 0; r < kResourceCount; ++r) {
    if (times[r] > times[best]) best = r;
  }
  return static_cast<Resource>(best);
}

void AddTimes(const ResourceTimes& from, double scale, ResourceTimes* to) {
  for (size_t r = 0; r < kResourceCount; ++r) (*to)[r] += from[r] * scale;
}

bool IsOffCore(const Step& step, Instruction name) {
  return step.kind == StepKind::kCollective || step.kind == StepKind::kCopy || step.kind == StepKind::kHost ||
         step.kind == StepKind::kDone || (step.kind == StepKind::kCall && name.opcode() == Opcode::kAsyncStart);
}

double StepTimer::Kernel(const KernelWork& work, const Step& step, const Residency& residency, double prefetched,
                         StepTime* time) const {
  ResourceTimes times = work.times;
  double bytes = 0;
  double prefetchable = 0;
  for (const Access& access : work.reads) {
    const double part = access.bytes * (1 - residency.PartOf(access.value));
    bytes += part;
    if (IsEarly(access.value, step)) prefetchable += part;
  }
  for (const Access& access : work.writes) bytes += access.bytes * (1 - residency.PartOf(access.value));
  for (const Product& product : work.products) {
    const bool lhs = product.lhs_source.valid() && residency.PartOf(product.lhs_source) == 1;
    const bool rhs = product.rhs_source.valid() && residency.PartOf(product.rhs_source) == 1;
    const ProductTime product_time = TimeOf(machine_, product, lhs, rhs);
    times[Index(Resource::kMxu)] += product_time.mxu;
    bytes += product_time.reread;
  }
  bytes *= scale_;
  const double used = std::min(prefetched, prefetchable * scale_);
  const double hbm =
      (bytes - used) / (work.own_pipeline ? machine_.HbmRate() * machine_.attention_hbm_efficiency : HbmRate());
  double compute = 0;
  for (double& t : times) {
    t *= scale_;
    compute = std::max(compute, t);
  }
  times[Index(Resource::kHbm)] = hbm;
  double overhead = 0;
  // Scalars run between kernels.
  const bool scalar_only = compute == times[Index(Resource::kScalar)] && bytes < kSmall;
  if (!scalar_only) overhead += machine_.kernel_overhead;
  if (bytes - used > kSmall) overhead += machine_.hbm_latency;
  if (work.lane_reduce) overhead += machine_.xlu_drain_latency;
  times[Index(Resource::kOverhead)] = overhead;
  const double p = machine_.overlap_exponent;
  const double larger = std::max(compute, hbm);
  double both = larger > 0 ? larger * std::pow(std::pow(compute / larger, p) + std::pow(hbm / larger, p), 1 / p) : 0;
  if (work.own_pipeline) both = larger;
  time->times = times;
  time->duration = both + overhead;
  time->bound = BoundOf(times);
  time->flops = work.flops * scale_;
  time->hbm_bytes = bytes;
  return used;
}

// There long enough before the step to have been fetched meanwhile.
bool StepTimer::IsEarly(InstructionId value, const Step& step) const {
  Instruction v = module_.instruction(value);
  if (v.opcode() == Opcode::kGetTupleElement) v = ValueOf(v.operand(0));
  const uint32_t maker = plan_.StepOf(v.id());
  if (maker == ComputationPlan::kNoStep) return true;
  const uint32_t own = plan_.StepOf(step.members.back());
  return maker + 2 < own;
}

void StepTimer::Collective(Instruction i, StepTime* time) const {
  const tpu::Collective collective = CollectiveOf(machine_, options_.topology, Unwrapped(i));
  const CollectiveTime t = TimeOf(machine_, collective.kind, collective.bytes, collective.span);
  time->times[Index(Resource::kIci)] = std::max(t.ici, t.latency);
  time->times[Index(Resource::kDcn)] = t.dcn;
  time->times[Index(Resource::kOverhead)] = machine_.ici_launch_overhead;
  time->duration = t.total() + machine_.ici_launch_overhead;
  time->bound = BoundOf(time->times);
  time->wire_bytes = collective.bytes;
  time->ideal = IdealSeconds(machine_, collective);
  time->on_core = false;
  time->lanes = 0;
  for (const GroupSpan::Axis& axis : collective.span.axes) {
    time->lanes |= static_cast<uint8_t>(1u << std::min<size_t>(axis.axis, kDcnLane - 1));
  }
  if (collective.span.slices > 1) time->lanes |= 1u << kDcnLane;
}

void StepTimer::Copy(Instruction i, StepTime* time) const {
  double bytes = 0;
  bool host = i.opcode() != Opcode::kCopyStart;
  for (Shape leaf : Leaves(i.shape())) {
    if (leaf.IsArray() && leaf.layout() != nullptr && leaf.layout()->memory_space() == kHostMemorySpace) host = true;
  }
  for (Instruction operand : i.operands()) bytes += static_cast<double>(PaddedBytes(machine_, operand.shape()));
  if (i.operand_count() == 0 || bytes == 0) bytes = static_cast<double>(PaddedBytes(machine_, i.shape()));
  bytes *= scale_;
  const Resource resource = host ? Resource::kHost : Resource::kHbm;
  time->times[Index(resource)] = bytes / (host ? machine_.host_rate : HbmRate());
  time->times[Index(Resource::kOverhead)] = machine_.hbm_latency;
  time->duration = time->times[Index(resource)] + machine_.hbm_latency;
  time->bound = BoundOf(time->times);
  time->hbm_bytes = bytes;
  time->on_core = false;
}

}  // namespace hlokit::tpu
