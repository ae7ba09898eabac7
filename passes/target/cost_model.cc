// SPDX-License-Identifier: Apache-2.0
#include "passes/target/cost_model.h"

#include <algorithm>
#include <cmath>

#include "passes/analysis/call_graph.h"
#include "passes/analysis/trip_count.h"
#include "passes/target/aliases.h"
#include "passes/target/collective_cost.h"
#include "passes/target/op_class.h"
#include "passes/target/tiling.h"

namespace hlokit::tpu {
namespace {

constexpr double kSmall = 4096;         // bytes whose transfer is part of the kernel launch
constexpr double kMinHbmShare = 0.5;    // of the HBM rate that a kernel has, whatever collectives move
constexpr uint32_t kCopies = 1u << 31;  // the shared resource of copies, in addition to the links of axes and slices

size_t Index(Resource r) { return static_cast<size_t>(r); }

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

bool IsOnChip(const DeviceDescription& machine, Shape array) {
  const int64_t space = MemorySpaceOf(array);
  return space == kVectorMemorySpace || (space == kCommonMemorySpace && machine.cmem_size > 0);
}

double FractionInVmem(const DeviceDescription& machine, Shape shape) {
  if (shape.IsArray()) return IsOnChip(machine, shape) ? 1 : 0;
  double bytes = 0, in_vmem = 0;
  for (Shape leaf : Leaves(shape)) {
    if (!leaf.IsArray()) continue;
    const double size = static_cast<double>(PaddedBytes(machine, leaf));
    bytes += size;
    if (IsOnChip(machine, leaf)) in_vmem += size;
  }
  return bytes > 0 ? in_vmem / bytes : 0;
}

CostModel::CostModel(const Module& module, const TpuTarget& target)
    : target_(target), scale_(1 / target.parts), costs_(module), fused_(module) {}

double CostModel::Kernel(const KernelCost& work, const Placement& placement, OpTime* time) const {
  const DeviceDescription& machine = target_.machine;
  ResourceTimes times = work.times;
  double bytes = 0;
  double prefetchable = 0;
  double operands = 0;
  double host = 0;
  for (const MemoryAccess& access : work.reads) {
    if (access.on_host) {
      host += access.bytes;
      continue;
    }
    const double part = access.bytes * (1 - placement.in_vmem(access.value));
    bytes += part;
    operands += access.bytes;
    if (placement.prefetchable(access.value)) prefetchable += part;
  }
  const double in_hbm = operands > 0 ? bytes / operands : 1;  // share of the operands
  for (const MemoryAccess& access : work.writes) {
    if (access.on_host) {
      host += access.bytes;
    } else {
      bytes += access.bytes * (1 - placement.in_vmem(access.value));
    }
  }
  double waits = 0;  // of the matrix units for weights
  for (const MatmulShape& product : work.products) {
    const bool lhs = product.lhs_source.valid() && placement.in_vmem(product.lhs_source) == 1;
    const bool rhs = product.rhs_source.valid() && placement.in_vmem(product.rhs_source) == 1;
    const MatmulTime product_time = TimeOf(machine, product, lhs, rhs);
    times[Index(Resource::kMxu)] += product_time.mxu;
    waits += product_time.mxu - product_time.streaming;
    bytes += product_time.refetched_bytes;
  }
  bytes += work.refetched_bytes * in_hbm;
  bytes *= scale_;
  const double used = std::min(placement.prefetched, prefetchable * scale_);
  const double rate = target_.HbmRate();
  const double hbm = (bytes - used) / std::max(rate - placement.contended, rate * kMinHbmShare);
  times[Index(Resource::kHost)] += host / machine.host_rate;
  double compute = work.compute_seconds * scale_;
  for (double& t : times) {
    t *= scale_;
    compute = std::max(compute, t);
  }
  times[Index(Resource::kHbm)] = hbm;
  double overhead = 0;
  // Scalar operations run between kernels.
  const bool scalar_only = compute == times[Index(Resource::kScalar)] && bytes < kSmall;
  if (!scalar_only) overhead += machine.kernel_overhead;
  if (bytes - used > kSmall) overhead += machine.hbm_latency;
  if (work.lane_reduce) overhead += machine.xlu_drain_latency;
  overhead += work.launch_seconds;
  times[Index(Resource::kOverhead)] = overhead;
  const auto overlapped = [&](double a, double b) {
    const double larger = std::max(a, b), p = machine.overlap_exponent;
    return larger > 0 ? larger * std::pow(std::pow(a / larger, p) + std::pow(b / larger, p), 1 / p) : 0;
  };
  const double larger = std::max(compute, hbm);
  double both = overlapped(compute, hbm);
  if (waits > 0 && compute == times[Index(Resource::kMxu)]) {
    // Weights come from HBM at the pace at which they are pushed, or the push waits for them.
    both = std::max(compute, overlapped(compute - waits * scale_, hbm));
  }
  if (work.has_manual_pipeline) {
    // A block is read while the one before it is computed, which takes the latency of a transfer at least. That of a
    // kernel has two, of its first and its last block.
    both = std::max(larger, hbm + in_hbm * work.grid_steps * scale_ * machine.hbm_latency / 2);
  } else if (work.products.empty() && work.tiles > 1) {
    // A tile moves in while the one before it is computed: only the first and the last wait.
    both = larger + std::min(compute, hbm) / work.tiles;
  }
  time->times = times;
  time->duration = both + overhead;
  time->bound = BoundOf(times);
  time->flops = work.flops * scale_;
  time->hbm_bytes = bytes;
  return used;
}

void CostModel::Collective(Instruction i, OpTime* time) const {
  const DeviceDescription& machine = target_.machine;
  const FusedCollective& fused = fused_.Of(i);
  *time = OpTime();
  const auto add = [&](Instruction instruction, Instruction outside, bool scatters) {
    tpu::Collective collective = CollectiveOf(machine, target_.topology, AsyncWrappedInstruction(instruction));
    if (scatters) collective.kind = CollectiveKind::kReduceScatter;
    const CollectiveTime t = TimeOf(machine, collective.kind, collective.bytes, collective.span);
    time->times[Index(Resource::kIci)] += std::max(t.ici, t.latency);
    time->times[Index(Resource::kDcn)] += t.dcn;
    time->times[Index(Resource::kOverhead)] += machine.ici_launch_overhead;
    time->duration += t.total() + machine.ici_launch_overhead;
    time->wire_bytes += collective.bytes;
    if (FractionInVmem(machine, outside.operand_count() > 0 ? outside.operand(0).shape() : outside.shape()) == 0) {
      // What arrives is written, and read where it is sent on.
      time->hbm_bytes += 2 * ReceivedBytes(collective.kind, collective.bytes, collective.span);
    }
    time->ideal += IdealSeconds(machine, collective);
    for (const GroupSpan::Axis& axis : collective.span.axes) {
      time->link_mask |= static_cast<uint8_t>(1u << std::min<size_t>(axis.axis, kDcnLinkGroup - 1));
    }
    if (collective.span.slices > 1) time->link_mask |= 1u << kDcnLinkGroup;
  };
  if (fused.collectives.empty()) {
    add(i, i, false);
  } else {
    for (size_t k = 0; k < fused.collectives.size(); ++k) {
      add(i.module().instruction(fused.collectives[k]), i, k == 0 && fused.scatters);
    }
  }
  time->link_time = time->duration;
  time->bound = BoundOf(time->times);
}

void CostModel::AddKernel(const OpTime& kernel, OpTime* time) {
  // One launch for both.
  const size_t launch = Index(Resource::kOverhead);
  const double overhead = std::max(kernel.times[launch], time->times[launch]);
  AddTimes(kernel.times, 1, &time->times);
  time->times[launch] = overhead;
  time->duration = std::max(time->duration, kernel.duration);
  time->bound = BoundOf(time->times);
  time->flops += kernel.flops;
  time->hbm_bytes = std::max(time->hbm_bytes, kernel.hbm_bytes);
}

void CostModel::Copy(Instruction i, OpTime* time) const {
  const DeviceDescription& machine = target_.machine;
  double bytes = 0;
  bool host = i.opcode() != Opcode::kCopyStart;
  for (Shape leaf : Leaves(i.shape())) host = host || MemorySpaceOf(leaf) == kHostMemorySpace;
  for (Instruction operand : i.operands()) bytes += static_cast<double>(PaddedBytes(machine, operand.shape()));
  if (i.operand_count() == 0 || bytes == 0) bytes = static_cast<double>(PaddedBytes(machine, i.shape()));
  bytes *= scale_;
  const Resource resource = host ? Resource::kHost : Resource::kHbm;
  time->times[Index(resource)] = bytes / (host ? machine.host_rate : target_.HbmRate());
  time->times[Index(Resource::kOverhead)] = machine.hbm_latency;
  time->duration = time->times[Index(resource)] + machine.hbm_latency;
  time->bound = BoundOf(time->times);
  time->hbm_bytes = bytes;
}

namespace {

class LatencyEstimator {
 public:
  LatencyEstimator(const Module& module, const TpuTarget& target)
      : module_(module), model_(module, target), seconds_(module.computation_id_bound(), 0) {}

  std::vector<Latency> Run() {
    std::vector<Latency> latencies(module_.instruction_id_bound());
    const CallGraph calls(module_);
    for (ComputationId id : calls.PostOrder()) {
      const Computation c = module_.computation(id);
      if (!calls.IsLive(c) || !calls.IsSequential(c)) continue;
      double core = 0;
      double links = 0;  // asynchronous operations, serialized on the links
      for (Instruction i : c.instructions()) {
        if (!GeneratesCode(i)) continue;
        Latency& latency = latencies[i.id().value];
        latency = LatencyOf(i);
        (HasTrait(i.opcode(), kStartsAsync) ? links : core) += latency.seconds;
      }
      seconds_[id.value] = std::max(core, links);
    }
    return latencies;
  }

 private:
  Latency LatencyOf(Instruction i) const {
    OpTime time;
    Latency latency;
    if (model_.fused().Of(i).role == CollectiveRole::kWhole) {
      model_.Collective(i, &time);
      OpTime kernel;
      SetKernelTime(i, &kernel);
      CostModel::AddKernel(kernel, &time);
      return {.seconds = time.duration, .links = time.link_mask};
    }
    switch (ClassOf(AsyncWrappedInstruction(i).opcode())) {
      case OpClass::kCollective:
        model_.Collective(i, &time);
        latency.links = time.link_mask;
        break;
      case OpClass::kAsyncCopy:
      case OpClass::kHost:
        model_.Copy(i, &time);
        latency.links = kCopies;
        break;
      case OpClass::kDone:
        break;
      case OpClass::kCall:
      case OpClass::kLoop:
        time.duration = SecondsOfCall(i);
        break;
      case OpClass::kNoWork:
      case OpClass::kAlias:
      case OpClass::kTuple:
      case OpClass::kGetTupleElement:
      case OpClass::kElementwise:
      case OpClass::kMovement:
      case OpClass::kUpdate:
      case OpClass::kReduce:
      case OpClass::kProduct:
      case OpClass::kStandalone:
      case OpClass::kScalar:
        SetKernelTime(i, &time);
        break;
    }
    latency.seconds = time.duration;
    return latency;
  }

  void SetKernelTime(Instruction i, OpTime* time) const {
    model_.Kernel(model_.KernelCostOf(i),
                  {.in_vmem =
                       [&](InstructionId value) {
                         return FractionInVmem(model_.target().machine, module_.instruction(value).shape());
                       },
                   .prefetchable = [](InstructionId) { return false; }},
                  time);
  }

  double SecondsOfCall(Instruction i) const {
    const auto seconds = [&](Computation callee) { return callee.valid() ? seconds_[callee.id().value] : 0; };
    const std::vector<Computation> callees = i.called_computations();
    if (i.opcode() == Opcode::kConditional) {
      const int64_t longest = LongestBranch(callees, seconds);
      return longest < 0 ? 0 : seconds(callees[static_cast<size_t>(longest)]);
    }
    if (i.opcode() == Opcode::kWhile) {
      const double trip_count = static_cast<double>(std::max<int64_t>(TripCount(i).value_or(1), 0));
      return seconds(i.computation_attr(Attr::kBody)) * trip_count +
             seconds(i.computation_attr(Attr::kCondition)) * (trip_count + 1);
    }
    double sum = 0;
    for (Computation callee : callees) sum += seconds(callee);
    return sum;
  }

  const Module& module_;
  const CostModel model_;
  std::vector<double> seconds_;  // by ComputationId, computed on demand
};

}  // namespace

std::vector<Latency> EstimateLatencies(const Module& module, const TpuTarget& target) {
  return LatencyEstimator(module, target).Run();
}

}  // namespace hlokit::tpu
