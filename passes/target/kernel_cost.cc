// SPDX-License-Identifier: Apache-2.0
#include "passes/target/kernel_cost.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/saturating.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"
#include "passes/target/aliases.h"
#include "passes/target/custom_call_cost.h"
#include "passes/target/op_class.h"
#include "passes/target/tiling.h"

namespace hlokit::tpu {

namespace {

constexpr int kMaxSteps = 64;  // from an operand to its source array
// Share of a kernel's vector memory that a tile of one of its arrays takes: two operands, a result and an intermediate
// value, each twice, since tiles are moved while others are computed.
constexpr double kTileShare = 1.0 / 8;

class WorkCounter {
 public:
  WorkCounter(const DeviceDescription& machine, const CostAnalysis& costs, KernelCost* work)
      : machine_(machine), tile_(TileOf(machine)), costs_(costs), work_(*work) {
    const double positions = machine.lanes * machine.sublanes * static_cast<double>(machine.cores_per_device());
    vector_rate_ = positions * machine.vpu_alus * machine.vpu_efficiency * machine.clock;
    transcendental_rate_ = positions * machine.transcendental_rate * machine.clock;
    cross_rate_ = positions * machine.xlu_rate * machine.clock;
  }

  // Adds the operations of one instruction of a kernel.
  void Add(Instruction i) {
    const OpWork op = OpWorkOf(i.opcode());
    switch (op.op_class) {
      case OpClass::kElementwise:
        Elementwise(i, op);
        break;
      case OpClass::kMovement:
        Movement(i);
        break;
      case OpClass::kUpdate:
        Update(i);
        break;
      case OpClass::kReduce:
        Reduce(i);
        break;
      case OpClass::kProduct:
        Product(i);
        break;
      case OpClass::kStandalone:
        Alone(i, op);
        break;
      case OpClass::kScalar:
        Take(Resource::kScalar, machine_.scalar_op_latency);
        break;
      case OpClass::kNoWork:
      case OpClass::kAlias:
      case OpClass::kTuple:
      case OpClass::kGetTupleElement:
      case OpClass::kCollective:
      case OpClass::kAsyncCopy:
      case OpClass::kHost:
      case OpClass::kDone:
      case OpClass::kCall:
      case OpClass::kLoop:
        break;
    }
  }

  void Finish() {
    // A kernel whose arrays fit one tile moves it in, computes and moves it out; only several tiles overlap.
    work_.tiles = std::max(largest_bytes_ / (machine_.vmem_scoped * kTileShare), 1.0);
    if (largest_bytes_ > 0 && work_.tiles <= 1) {
      for (Resource r : {Resource::kVpu, Resource::kEup}) {
        work_.times[static_cast<size_t>(r)] *= 2;
      }
      narrow_ = 2;
    }
    work_.times[static_cast<size_t>(Resource::kVmem)] +=
        narrow_ * work_.vmem_bytes /
        (machine_.vmem_rate * machine_.vmem_efficiency * static_cast<double>(machine_.cores_per_device()));
  }

 private:
  void Take(Resource r, double seconds) { work_.times[static_cast<size_t>(r)] += seconds; }

  // Returns the elements with the padding of their registers.
  double Elements(Shape shape) {
    const double bits = static_cast<double>(StorageBits(shape));
    const double bytes = static_cast<double>(PaddedBytes(machine_, shape));
    largest_bytes_ = std::max(largest_bytes_, bytes);
    return bytes * 8 / bits;
  }
  // Returns the 32-bit vector operations per operation of a type.
  double WidthOf(ElementType type) const {
    const int bits = BitsOf(type);
    if (bits == 16 && machine_.vpu_bf16 != 0) return 0.5;
    if (bits == 64) return 8;
    if (IsComplex(type)) return 4;
    return 1;
  }
  void Vector(double operations) { Take(Resource::kVpu, operations / vector_rate_); }

  void Elementwise(Instruction i, OpWork op) {
    if (!i.shape().IsArray()) return;
    if (i.shape().IsScalar()) {
      Take(Resource::kScalar, machine_.scalar_op_latency);
      return;
    }
    const double elements = Elements(i.shape());
    double operations = op.vector;
    if (i.opcode() == Opcode::kDivide && !IsFloat(i.shape().element_type())) operations = 20;
    if (i.opcode() == Opcode::kMap)
      operations = std::max(static_cast<double>(costs_.Of(i).flops) / std::max(elements, 1.0), 1.0);
    Vector(elements * operations * WidthOf(i.shape().element_type()));
    if (i.opcode() == Opcode::kCopy && HasTiles(i.shape()) && HasTiles(i.operand(0).shape()) &&
        MinorOf(tile_, i.shape()).column_dimension != MinorOf(tile_, i.operand(0).shape()).column_dimension) {
      Take(Resource::kXlu, elements * WidthOf(i.shape().element_type()) / cross_rate_);
    }
    Take(Resource::kEup, elements * op.transcendental / transcendental_rate_);
  }

  void Movement(Instruction i) {
    const Opcode opcode = i.opcode();
    if (opcode == Opcode::kDynamicSlice) Take(Resource::kScalar, machine_.scalar_op_latency);
    if (!i.shape().IsArray()) return;
    const double elements = Elements(i.shape());
    if (opcode == Opcode::kTranspose) {
      // If the minor dimension moves, elements cross lanes.
      const absl::Span<const int64_t> order = i.list_attr(Attr::kDimensions);
      const int64_t last = i.shape().rank() - 1;
      const bool tiled = HasTiles(i.shape()) && HasTiles(i.operand(0).shape());
      if (tiled ? KeepsLanes(i, order) : order.empty() || order[order.size() - 1] == last) return;
    }
    if (OpcodeSet{Opcode::kTranspose, Opcode::kReverse}.Contains(opcode)) {
      Take(Resource::kXlu, elements * WidthOf(i.shape().element_type()) / cross_rate_);
    }
    if (opcode == Opcode::kBroadcast) BroadcastAlongLanes(i);
    if (OpcodeSet{Opcode::kSlice, Opcode::kConcatenate}.Contains(opcode)) ShiftLanes(i);
    if (OpcodeSet{Opcode::kConcatenate, Opcode::kPad, Opcode::kIota}.Contains(opcode)) Vector(elements);
  }

  // Returns true if a transpose keeps the dimension along the lanes.
  bool KeepsLanes(Instruction i, absl::Span<const int64_t> permutation) const {
    const int64_t from = MinorOf(tile_, i.operand(0).shape()).column_dimension,
                  to = MinorOf(tile_, i.shape()).column_dimension;
    return to < 0 || to >= static_cast<int64_t>(permutation.size()) || permutation[static_cast<size_t>(to)] == from;
  }

  // Costs slices and concatenations whose rows start within a register and so move across lanes.
  void ShiftLanes(Instruction i) {
    const int64_t column = MinorOf(tile_, i.shape()).column_dimension;
    const int64_t lanes = static_cast<int64_t>(machine_.lanes);
    const double width = WidthOf(i.shape().element_type());
    if (column < 0) return;
    if (i.opcode() == Opcode::kSlice) {
      const SliceView slice = SliceView::Of(AttrReader(i));
      if (column < slice.rank() && slice.start(column) % lanes != 0) {
        Take(Resource::kXlu, Elements(i.shape()) * width / cross_rate_);
      }
      return;
    }
    const absl::Span<const int64_t> along = i.list_attr(Attr::kDimensions);
    if (along.empty() || along[0] != column) return;
    int64_t at = 0;
    for (Instruction operand : i.operands()) {
      if (!operand.shape().IsArray() || column >= operand.shape().rank()) return;
      if (at % lanes != 0) Take(Resource::kXlu, Elements(operand.shape()) * width / cross_rate_);
      at = SaturatingAdd(at, operand.shape().is_unbounded(column) ? 1 : operand.shape().dim(column));
    }
  }

  // Costs broadcasts of one value per row to all lanes; the registers of the row share it.
  void BroadcastAlongLanes(Instruction i) {
    const Shape operand = i.operand(0).shape();
    if (!operand.IsArray() || operand.IsScalar()) return;
    const Minor minor = MinorOf(tile_, i.shape());
    for (int64_t d : i.list_attr(Attr::kDimensions)) {
      if (d == minor.column_dimension) return;
    }
    const double rows = std::max<double>(static_cast<double>(ElementsOf(operand)), machine_.sublanes);
    Take(Resource::kXlu, rows * machine_.lanes / cross_rate_);
  }

  void Update(Instruction i) {
    Take(Resource::kScalar, machine_.scalar_op_latency);
    if (i.opcode() != Opcode::kScatter || i.operand_count() < 3) {
      if (i.operand_count() > 1 && i.operand(1).shape().IsArray()) Vector(Elements(i.operand(1).shape()));
      return;
    }
    const Shape updates = i.operand(i.operand_count() / 2 + 1).shape();
    if (!updates.IsArray()) return;
    double slice = 1;
    for (int64_t d : i.list_attr(Attr::kUpdateWindowDims)) {
      if (d >= 0 && d < updates.rank() && !updates.is_unbounded(d)) slice *= static_cast<double>(updates.dim(d));
    }
    // Each row is read, combined and written.
    Take(Resource::kScalar,
         2 * machine_.gather_row_overhead * static_cast<double>(ElementsOf(updates)) / std::max(slice, 1.0));
    Vector(Elements(updates));
  }

  void Reduce(Instruction i) {
    const int64_t arrays = std::max<int64_t>(i.operand_count() / 2, 1);
    for (int64_t k = 0; k < arrays && k < i.operand_count(); ++k) {
      const Shape operand = i.operand(k).shape();
      if (!operand.IsArray()) continue;
      const double elements = Elements(operand);
      Vector(elements * static_cast<double>(arrays) * WidthOf(operand.element_type()));
      const Minor minor = MinorOf(tile_, operand);
      for (int64_t d : i.list_attr(Attr::kDimensions)) {
        // Registers accumulate first; the last one of each result is then reduced across lanes.
        if (d != minor.column_dimension) continue;
        const double rows = std::max<double>(static_cast<double>(ElementsOf(i.shape())), machine_.sublanes);
        Take(Resource::kXlu, rows * machine_.lanes / cross_rate_);
        work_.lane_reduce = true;
      }
    }
  }

  void Product(Instruction i) {
    work_.products.push_back(MatmulShapeOf(machine_, i));
    if (i.operand_count() < 2) return;
    work_.products.back().lhs_source = SourceOf(i.operand(0));
    work_.products.back().rhs_source = SourceOf(i.operand(1));
  }

  // Returns the largest array outside the kernel from which `value` is computed, following the largest operand.
  InstructionId SourceOf(Instruction value) const {
    for (int steps = 0; steps < kMaxSteps; ++steps) {
      value = ValueOf(value);
      if (fusion_.valid() && value.opcode() == Opcode::kParameter) {
        const int64_t number = value.parameter_number();
        return number < fusion_.operand_count() ? ValueOf(fusion_.operand(number)).id() : InstructionId();
      }
      if (!fusion_.valid()) return value.id();
      Instruction largest;
      for (Instruction operand : value.operands()) {
        if (!operand.shape().IsArray()) continue;
        if (!largest.valid() || ElementsOf(operand.shape()) > ElementsOf(largest.shape())) largest = operand;
      }
      if (!largest.valid()) return {};
      value = largest;
    }
    return {};
  }

  void Alone(Instruction i, OpWork op) {
    using Add = void (WorkCounter::*)(Instruction);
    static constexpr OpcodeRow<Add> kRows[] = {
        {Opcode::kFusion, &WorkCounter::Fusion},
        {Opcode::kCustomCall, &WorkCounter::CustomCall},
        {Opcode::kGather, &WorkCounter::Gather},
        {Opcode::kSort, &WorkCounter::Sort},
        {Opcode::kTopK, &WorkCounter::Sort},
        {Opcode::kCholesky, &WorkCounter::Factorization},
        {Opcode::kTriangularSolve, &WorkCounter::Factorization},
    };
    static constexpr auto kWork = MakeOpcodeHandlers<Add>(kRows);
    if (const Add add = kWork[static_cast<size_t>(i.opcode())]; add != nullptr) return (this->*add)(i);
    const Cost& cost = costs_.Of(i);
    double elements = 0;
    for (Shape leaf : Leaves(i.shape())) {
      if (leaf.IsArray()) elements += Elements(leaf);
    }
    Vector(std::max<double>(elements * op.vector, static_cast<double>(cost.flops)));
    Take(Resource::kEup, static_cast<double>(cost.transcendentals) / transcendental_rate_);
  }

  // Column by column; the matmuls of a block column run on the matrix unit.
  void Factorization(Instruction i) {
    const Shape a = i.operand(0).shape();
    const double n = a.rank() > 0 ? static_cast<double>(MinorOf(tile_, a).columns) : 1;
    Take(Resource::kScalar, n * 64 * machine_.scalar_op_latency);
    Vector(static_cast<double>(costs_.Of(i).flops));
  }

  void Gather(Instruction i) {
    double slice = 1;
    for (int64_t size : i.list_attr(Attr::kSliceSizes)) slice *= static_cast<double>(std::max<int64_t>(size, 1));
    const double rows = static_cast<double>(ElementsOf(i.shape())) / slice;
    Take(Resource::kScalar, machine_.gather_row_overhead * rows);
    Vector(Elements(i.shape()));
  }

  void Sort(Instruction i) {
    const Shape keys = i.operand(0).shape();
    if (!keys.IsArray() || keys.rank() == 0) return;
    int64_t dimension = keys.rank() - 1;
    if (!i.list_attr(Attr::kDimensions).empty()) dimension = i.list_attr(Attr::kDimensions)[0];
    const bool in_range = dimension >= 0 && dimension < keys.rank() && !keys.is_unbounded(dimension);
    const double length = in_range ? std::max<double>(static_cast<double>(keys.dim(dimension)), 2) : 2;
    const double steps = std::log2(length) * (std::log2(length) + 1) / 2;  // of a bitonic network
    const double operands = static_cast<double>(i.operand_count());
    const double elements = Elements(keys);
    Vector(elements * steps * (2 + operands));
    if (dimension == keys.rank() - 1) Take(Resource::kXlu, elements * operands * steps / cross_rate_ / 4);
    work_.vmem_bytes += steps * operands * elements * 4;
  }

  void Fusion(Instruction i) {
    const Computation body = i.computation_attr(Attr::kCalls);
    if (!body.valid()) return;
    // Fusions rarely nest; a worklist bounds the recursion.
    std::vector<Computation> open = {body};
    absl::flat_hash_set<uint32_t> seen;
    fusion_ = i;
    while (!open.empty()) {
      const Computation c = open.back();
      open.pop_back();
      if (!seen.insert(c.id().value).second) continue;
      for (Instruction inner : c.instructions()) {
        if (inner.opcode() == Opcode::kFusion) {
          open.push_back(inner.computation_attr(Attr::kCalls));
        } else if (!IsAlias(inner)) {
          Add(inner);
        }
      }
    }
    fusion_ = {};
  }

  void CustomCall(Instruction i) {
    const CustomCallWork known = WorkOfCustomCall(machine_, i);
    work_.opaque = !known.known;
    Take(Resource::kMxu, known.matrix_seconds);
    // The matrix unit stalls at the start of each sequence.
    Take(known.matrix_seconds > 0 ? Resource::kMxu : Resource::kScalar, known.sequence_seconds);
    Take(Resource::kVpu, known.vector_seconds);
    Vector(known.vector_operations);
    work_.compute_seconds = known.compute_seconds;
    work_.launch_seconds = known.launch_seconds;
    work_.grid_steps = known.grid_steps;
    work_.refetched_bytes = known.refetched_bytes;
    work_.has_manual_pipeline = known.own_pipeline;
    Take(Resource::kEup, known.transcendentals / transcendental_rate_);
    work_.flops += known.flops;
  }

  const DeviceDescription& machine_;
  const VectorTile tile_;
  const CostAnalysis& costs_;
  KernelCost& work_;
  Instruction fusion_;  // the fusion whose body is counted
  double vector_rate_ = 1;
  double transcendental_rate_ = 1;
  double cross_rate_ = 1;
  double largest_bytes_ = 0;  // of the arrays that vector operations compute
  double narrow_ = 1;
};

// Returns true if each element of the result is computed from one element of an operand with as many.
bool KeepsElements(Instruction i, Shape operand) {
  const Opcode opcode = i.opcode();
  return (HasTrait(opcode, kElementwise) ||
          OpcodeSet{Opcode::kReshape, Opcode::kTranspose, Opcode::kReverse}.Contains(opcode)) &&
         i.shape().IsArray() && ElementsOf(i.shape()) == ElementsOf(operand);
}

// Returns the bytes that a fusion reads of a parameter of its body: of slices and gathers their results, of updates the
// updated part, and otherwise the whole array, once. A loop nest computes only the elements that are read: a slice of
// what is computed element by element reads a slice.
double BytesReadWithin(const DeviceDescription& machine, Instruction parameter) {
  const double whole = static_cast<double>(PaddedBytes(machine, parameter.shape()));
  if (!parameter.shape().IsArray()) return whole;
  const double bits = static_cast<double>(StorageBits(parameter.shape()));
  double bytes = 0;
  struct Name {
    Instruction value;
    bool updated = false;  // in place
  };
  std::vector<Name> open = {{parameter}};  // names of the array
  absl::flat_hash_set<uint32_t> seen = {parameter.id().value};
  while (!open.empty() && bytes < whole) {
    const Name name = open.back();
    open.pop_back();
    if (name.value.is_root() && !name.updated) return whole;
    for (const auto [user, index] : name.value.uses()) {
      Name next = {user, name.updated};
      const Opcode opcode = user.opcode();
      if (HasTrait(opcode, kReadsPart) && index == 0) {
        bytes += static_cast<double>(PaddedBytes(machine, user.shape())) * bits /
                 static_cast<double>(StorageBits(user.shape()));
        continue;
      }
      if (opcode == Opcode::kDynamicUpdateSlice && index == 0) {
        next.updated = true;
      } else if (opcode == Opcode::kScatter && index < user.operand_count() / 2 && user.shape().IsArray()) {
        bytes += static_cast<double>(PaddedBytes(machine, user.operand(user.operand_count() / 2 + 1).shape()));
        next.updated = true;
      } else if (opcode == Opcode::kFusion) {
        const Computation body = user.computation_attr(Attr::kCalls);
        if (!body.valid() || index >= body.parameter_count()) return whole;
        next.value = body.parameter(index);
      } else if (opcode == Opcode::kTuple && name.updated && user.is_root()) {
        continue;
      } else if (!IsAlias(user) && (name.updated || !KeepsElements(user, parameter.shape()))) {
        return whole;
      }
      if (seen.insert(next.value.id().value).second) open.push_back(next);
    }
  }
  return std::min(bytes, whole);
}

// Returns the bytes that a member reads of an operand.
MemoryAccess ReadOf(const DeviceDescription& machine, const CostAnalysis& costs, Instruction member, int64_t index,
                    Instruction value) {
  const Shape shape = member.operand(index).shape();
  MemoryAccess access{value.id(), static_cast<double>(PaddedBytes(machine, shape))};
  const auto part_of = [&](Shape result) {
    const double part = static_cast<double>(PaddedBytes(machine, result));
    if (part < access.bytes) access = {value.id(), part};
  };
  const Opcode opcode = member.opcode();
  if (HasTrait(opcode, kReadsPart) && index == 0) {
    part_of(member.shape());
  } else if (opcode == Opcode::kDynamicUpdateSlice && index == 0) {
    access = {value.id(), 0};
  } else if (opcode == Opcode::kScatter && index < member.operand_count() / 2 && member.operand_count() > 2) {
    part_of(member.operand(member.operand_count() / 2 + 1).shape());
  } else if (opcode == Opcode::kFusion) {
    const Computation body = member.computation_attr(Attr::kCalls);
    const double plain = static_cast<double>(BufferBytes(shape));
    if (body.valid() && plain > 0 && shape.IsArray()) {
      const double read = static_cast<double>(costs.ParameterBytesRead(body, index));
      if (read < plain) access = {value.id(), access.bytes * read / plain};
      if (index < body.parameter_count() && body.parameter(index).valid()) {
        const double within = BytesReadWithin(machine, body.parameter(index));
        if (within < access.bytes) access = {value.id(), within};
      }
    }
  }
  return access;
}

// Returns the update of an in-place update, and other values as they are.
Instruction Written(Instruction value) {
  if (value.opcode() == Opcode::kDynamicUpdateSlice) return value.operand(1);
  if (value.opcode() == Opcode::kScatter && value.operand_count() > 2) {
    return value.operand(value.operand_count() / 2 + 1);
  }
  return value;
}

double WrittenBytes(const DeviceDescription& machine, Instruction value) {
  Instruction root = value;
  if (root.opcode() == Opcode::kFusion) {
    const Computation body = root.computation_attr(Attr::kCalls);
    if (!body.valid()) return static_cast<double>(PaddedBytes(machine, value.shape()));
    root = body.root();
    if (root.opcode() == Opcode::kTuple) {
      double bytes = 0;
      for (Instruction element : root.operands()) {
        bytes += static_cast<double>(PaddedBytes(machine, Written(ValueOf(element)).shape()));
      }
      return bytes;
    }
    root = ValueOf(root);
  }
  return static_cast<double>(PaddedBytes(machine, Written(root).shape()));
}

bool IsOnHost(Instruction array) { return array.shape().IsArray() && MemorySpaceOf(array.shape()) == kHostMemorySpace; }

}  // namespace

std::string_view ToString(Resource resource) {
  switch (resource) {
    case Resource::kMxu:
      return "mxu";
    case Resource::kVpu:
      return "vpu";
    case Resource::kEup:
      return "transcendental";
    case Resource::kXlu:
      return "xlu";
    case Resource::kVmem:
      return "vmem";
    case Resource::kScalar:
      return "scalar";
    case Resource::kHbm:
      return "hbm";
    case Resource::kIci:
      return "ici";
    case Resource::kDcn:
      return "dcn";
    case Resource::kHost:
      return "host";
    case Resource::kOverhead:
      return "overhead";
  }
  return "";
}

KernelCost KernelCostOf(const DeviceDescription& machine, const CostAnalysis& costs, Instruction kernel) {
  KernelCost work;
  WorkCounter counter(machine, costs, &work);
  counter.Add(kernel);
  work.flops += static_cast<double>(costs.Of(kernel).flops);
  absl::flat_hash_map<uint32_t, size_t> read;  // value -> index in work.reads
  for (int64_t k = 0; k < kernel.operand_count(); ++k) {
    const Instruction value = ValueOf(kernel.operand(k));
    if (value.opcode() == Opcode::kTuple || (value.opcode() == Opcode::kConstant && value.shape().IsScalar())) continue;
    MemoryAccess access = ReadOf(machine, costs, kernel, k, value);
    access.on_host = IsOnHost(value);
    work.vmem_bytes += access.bytes;
    const auto [place, fresh] = read.insert({value.id().value, work.reads.size()});
    if (fresh) {
      work.reads.push_back(access);
    } else if (work.reads[place->second].bytes < access.bytes) {
      work.reads[place->second] = access;
    }
  }
  work.writes.push_back({kernel.id(), WrittenBytes(machine, kernel), IsOnHost(kernel)});
  work.vmem_bytes += work.writes.back().bytes;
  if (work.opaque) work.vmem_bytes = 0;
  counter.Finish();
  return work;
}

}  // namespace hlokit::tpu
