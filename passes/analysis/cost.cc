// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/cost.h"

#include <algorithm>

#include "ir/core/saturating.h"
#include "ir/graph/potential_callers.h"
#include "passes/analysis/cost_counter.h"

namespace hlokit {
namespace {

constexpr int64_t kPointerBytes = 8;

}  // namespace

int64_t Cost::bytes() const { return SaturatingAdd(bytes_read, bytes_written); }

void Cost::Add(const Cost& other) {
  flops = SaturatingAdd(flops, other.flops);
  transcendentals = SaturatingAdd(transcendentals, other.transcendentals);
  bytes_read = SaturatingAdd(bytes_read, other.bytes_read);
  bytes_written = SaturatingAdd(bytes_written, other.bytes_written);
}

void Cost::Add(const Cost& other, int64_t times) {
  flops = SaturatingAdd(flops, SaturatingMultiply(other.flops, times));
  transcendentals = SaturatingAdd(transcendentals, SaturatingMultiply(other.transcendentals, times));
  bytes_read = SaturatingAdd(bytes_read, SaturatingMultiply(other.bytes_read, times));
  bytes_written = SaturatingAdd(bytes_written, SaturatingMultiply(other.bytes_written, times));
}

void Cost::TakeMaximum(const Cost& other) {
  flops = std::max(flops, other.flops);
  transcendentals = std::max(transcendentals, other.transcendentals);
  // Bytes read and written are both of the branch with the larger sum.
  if (other.bytes() > bytes()) {
    bytes_read = other.bytes_read;
    bytes_written = other.bytes_written;
  }
}

int64_t BufferBytes(Shape shape) {
  if (shape.IsTuple()) return kPointerBytes * shape.tuple_size();
  if (shape.IsBuffer()) shape = shape.element(0);
  if (shape.IsOpaque()) return kPointerBytes;
  if (!shape.IsArray()) return 0;
  const int64_t elements = std::max<int64_t>(0, shape.element_count());
  const LayoutRecord* layout = shape.layout();
  if (layout == nullptr || layout->extras == nullptr || layout->extras->element_size_in_bits <= 0) {
    return SaturatingMultiply(elements, BytesOf(shape.element_type()));
  }
  const int64_t bits = SaturatingMultiply(elements, layout->extras->element_size_in_bits);
  return bits / 8 + (bits % 8 != 0);
}

int64_t CostAnalysis::ParameterBytesRead(Computation fused, int64_t number) const {
  const std::vector<int64_t>& reads = parameter_reads_[fused.id().value];
  return number >= 0 && number < static_cast<int64_t>(reads.size()) ? reads[number] : 0;
}

CostAnalysis::CostAnalysis(const Module& module)
    : module_(&module),
      instructions_(module.instruction_id_bound()),
      computations_(module.computation_id_bound()),
      sums_(module.computation_id_bound()),
      parameter_reads_(module.computation_id_bound()) {
  const PotentialCallers callers(module);
  std::vector<uint8_t> fused(module.computation_id_bound(), 0);
  for (InstructionId caller : callers.all()) {
    if (module.record(caller).opcode != Opcode::kFusion) continue;
    const Computation body = module.instruction(caller).computation_attr(Attr::kCalls);
    if (body.valid()) fused[body.id().value] = 1;
  }
  CostCounter counter(this);
  for (ComputationId id : ComputationPostOrder(module, callers)) {
    counter.Count(module.computation(id), fused[id.value] != 0);
  }
}

}  // namespace hlokit
