// SPDX-License-Identifier: Apache-2.0
#include "passes/target/matrix_cost.h"

#include <algorithm>
#include <cmath>

#include "ir/graph/attribute_views.h"
#include "passes/analysis/cost_counter.h"
#include "passes/target/tiling.h"

namespace hlokit::tpu {

namespace {

double SizeOrOne(Shape shape, int64_t dimension) {
  if (dimension < 0 || dimension >= shape.rank() || shape.is_unbounded(dimension)) return 1;
  return static_cast<double>(std::max<int64_t>(shape.dim(dimension), 1));
}

double RoundUpTo(double value, double unit) { return std::ceil(value / unit) * unit; }

double SpeedupOf(const DeviceDescription& machine, ElementType a, ElementType b) {
  const int bits = std::max(BitsOf(a), BitsOf(b));
  if (IsInteger(a) && IsInteger(b)) {
    if (bits <= 4) return machine.mxu_int4_speedup;
    if (bits <= 8) return machine.mxu_int8_speedup;
  }
  if (IsFloat(a) && IsFloat(b) && bits <= 8) return machine.mxu_fp8_speedup;
  return 1;
}

// Returns the number of bf16 passes that the operand types and precision require.
double PassesOf(Instruction i) {
  const ElementType type = i.operand(0).shape().element_type();
  double passes = 1;
  if (BitsOf(type) > 16 || IsComplex(type)) {
    for (int64_t precision : i.list_attr(Attr::kOperandPrecision)) {
      if (precision == static_cast<int64_t>(Precision::kHigh)) passes = std::max(passes, 3.0);
      if (precision == static_cast<int64_t>(Precision::kHighest)) passes = std::max(passes, 6.0);
    }
  }
  if (IsComplex(type)) passes *= 4;
  if (BitsOf(ComponentType(type)) == 64) passes *= 9;
  return passes;
}

void DotSizes(Instruction i, MatmulShape* p) {
  const DotDims dims = DotDims::Of(i);
  const Shape lhs = i.operand(0).shape();
  const Shape rhs = i.operand(1).shape();
  for (int64_t d : dims.lhs_batch) p->batch *= SizeOrOne(lhs, d);
  for (int64_t d : dims.lhs_contracting) p->k *= SizeOrOne(lhs, d);
  p->m = std::max(static_cast<double>(ElementsOf(lhs)) / (p->batch * p->k), 1.0);
  double rhs_contracting = 1;
  double rhs_batch = 1;
  for (int64_t d : dims.rhs_batch) rhs_batch *= SizeOrOne(rhs, d);
  for (int64_t d : dims.rhs_contracting) rhs_contracting *= SizeOrOne(rhs, d);
  p->n = std::max(static_cast<double>(ElementsOf(rhs)) / (rhs_batch * rhs_contracting), 1.0);
  // The groups of a ragged dot partition its rows.
  if (i.opcode() == Opcode::kRaggedDot && rhs.rank() == 3 && rhs_batch == 1 && lhs.rank() == 2) {
    p->n = std::max(p->n / SizeOrOne(rhs, 0), 1.0);
  }
}

void ConvolutionSizes(Instruction i, MatmulShape* p) {
  const ConvolutionDims dims = ConvolutionDims::Of(i);
  const Shape kernel = i.operand(1).shape();
  const double groups = static_cast<double>(
      std::max<int64_t>({i.int_attr(Attr::kFeatureGroupCount, 1), i.int_attr(Attr::kBatchGroupCount, 1), 1}));
  p->batch = groups;
  if (dims.ok()) {
    for (int64_t d : dims.kernel_spatial) p->k *= SizeOrOne(kernel, d);
    p->k *= SizeOrOne(kernel, dims.kernel_input_feature);
    p->n = std::max(SizeOrOne(kernel, dims.kernel_output_feature) / groups, 1.0);
  }
  const double products = static_cast<double>(ConvolutionFlops(i)) / 2;
  p->m = std::max(products / (groups * p->n * p->k), 1.0);
}

// Returns the cycles on one unit with [k, n] stationary in the array and m rows streamed through it.
MatmulCycleCount Cycles(const DeviceDescription& machine, double m, double k, double n, double batch, double units) {
  const double size = machine.mxu_size;
  const double tiles = std::ceil(k / size) * std::ceil(n / size);
  // Weights are pushed while rows stream, so a pass takes at least as long as the push of its k rows.
  const double push = std::min(RoundUpTo(k, machine.sublanes), size);
  const double rows = RoundUpTo(m, machine.sublanes);
  const double passes = std::ceil(tiles * batch / units) / machine.mxu_rows_per_cycle;
  return {.total = passes * std::max(rows, push), .streaming = passes * rows};
}

// Bytes of vector memory for each element of an output tile: its accumulator, and the result of the tile before it,
// which is written meanwhile.
constexpr double kOutputBytes = 4 + 2;
// Bytes for each row and each column of a tile: blocks of an operand as deep as the array, one of which is read while
// the other is multiplied.
double PanelBytes(const DeviceDescription& machine) { return 2 * 2 * machine.mxu_size; }

// Returns the bytes that are read again: a kernel's tiles fill its share of vector memory, and each operand is read
// once for each tile along the other's side.
double RereadBytes(const DeviceDescription& machine, const MatmulShape& p, bool lhs_in_vmem, bool rhs_in_vmem) {
  const double capacity = machine.vmem_scoped * static_cast<double>(machine.cores_per_device());
  const double lhs = p.lhs_bytes / p.batch;
  const double rhs = p.rhs_bytes / p.batch;
  // If one operand fits, both are read once: the other one streams past it.
  if (lhs <= capacity / 2 || rhs <= capacity / 2) return 0;
  double best = -1;
  for (double tm = 256; tm <= 16384; tm *= 2) {
    for (double tn = 256; tn <= 16384; tn *= 2) {
      const double rows = std::min(tm, p.m);
      const double columns = std::min(tn, p.n);
      if (rows * columns * kOutputBytes + (rows + columns) * PanelBytes(machine) > capacity) continue;
      const double again = (lhs_in_vmem ? 0 : lhs * (std::ceil(p.n / columns) - 1)) +
                           (rhs_in_vmem ? 0 : rhs * (std::ceil(p.m / rows) - 1));
      if (best < 0 || again < best) best = again;
    }
  }
  return std::max(best, 0.0) * p.batch;
}

}  // namespace

MatmulShape MatmulShapeOf(const DeviceDescription& machine, Instruction i) {
  MatmulShape p;
  if (i.operand_count() < 2 || !i.operand(0).shape().IsArray() || !i.operand(1).shape().IsArray()) return p;
  if (i.opcode() == Opcode::kConvolution) {
    ConvolutionSizes(i, &p);
  } else {
    DotSizes(i, &p);
  }
  p.lhs_bytes = static_cast<double>(PaddedBytes(machine, i.operand(0).shape()));
  p.rhs_bytes = static_cast<double>(PaddedBytes(machine, i.operand(1).shape()));
  p.passes = PassesOf(i);
  p.speedup = SpeedupOf(machine, i.operand(0).shape().element_type(), i.operand(1).shape().element_type());
  return p;
}

MatmulCycleCount MatmulCycles(const DeviceDescription& machine, const MatmulShape& p) {
  const double units = machine.mxu_count * static_cast<double>(machine.cores_per_device());
  const MatmulCycleCount rows = Cycles(machine, p.m, p.k, p.n, p.batch, units),
                         columns = Cycles(machine, p.n, p.k, p.m, p.batch, units);
  return columns.total < rows.total ? columns : rows;
}

MatmulTime TimeOf(const DeviceDescription& machine, const MatmulShape& p, bool lhs_in_vmem, bool rhs_in_vmem) {
  MatmulTime time;
  const MatmulCycleCount cycles = MatmulCycles(machine, p);
  const double per_cycle = p.passes / p.speedup / machine.clock / machine.mxu_efficiency;
  const double overhead = machine.mxu_overhead +
                          (p.batch - 1) * machine.mxu_batch_overhead / static_cast<double>(machine.cores_per_device());
  time.mxu = cycles.total * per_cycle + overhead;
  // Few rows or columns run on the vector unit if that is faster, for example depthwise convolutions.
  const double vector_rate = machine.lanes * machine.sublanes * machine.vpu_alus * machine.vpu_efficiency *
                             machine.clock * static_cast<double>(machine.cores_per_device());
  const double flops = 2 * p.batch * p.m * p.n * p.k;
  time.mxu = std::min(time.mxu, flops * 2 / vector_rate + machine.mxu_overhead);
  time.streaming = std::min(time.mxu, cycles.streaming * per_cycle + overhead);
  time.refetched_bytes = RereadBytes(machine, p, lhs_in_vmem, rhs_in_vmem);
  return time;
}

}  // namespace hlokit::tpu
