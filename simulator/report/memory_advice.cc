// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/memory_advice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "passes/core/pipeline.h"
#include "passes/rewrite/type_conversion.h"
#include "simulator/report/changed_program.h"
#include "simulator/report/device_report.h"
#include "simulator/report/more_partitions.h"
#include "simulator/report/number_text.h"
#include "simulator/timing/compile.h"

namespace hlokit::tpu {

namespace {

constexpr double kMinPeakReduction = 0.01;  // of the peak
constexpr int64_t kMaxPartitions = 1024;    // factor by which partitions are tried
constexpr int64_t kMaxBatchReduction = 64;  // factor by which smaller batches are tried

std::string Bytes(double bytes) { return FormatBytes(bytes); }

class MemoryAdviser {
 public:
  explicit MemoryAdviser(const ReportInput& input) : input_(input), source_(SourceModuleOf(input)) {}

  std::vector<MemoryAdvice> Collect() {
    Donate();
    if (!input_.memory.fits()) {
      Rematerialize();
      SmallerBatch();
      NarrowerTypes();
      MorePartitions();
      OtherTarget();
    }
    std::stable_sort(result_.begin(), result_.end(), [](const MemoryAdvice& a, const MemoryAdvice& b) {
      return a.fits() != b.fits() ? a.fits() : a.peak_bytes < b.peak_bytes;
    });
    return std::move(result_);
  }

 private:
  bool too_large() const { return !input_.memory.fits(); }
  double Excess() const { return static_cast<double>(input_.memory.peak_bytes) - input_.memory.limit_bytes; }

  // Adds a change that makes the program fit.
  bool AddIfFits(MemoryAdvice advice, const ChangedProgram& program) {
    advice.device_seconds = program.simulation.device_seconds;
    advice.peak_bytes = program.memory.peak_bytes;
    advice.limit_bytes = program.memory.limit_bytes;
    if (!advice.fits()) return false;
    result_.push_back(std::move(advice));
    return true;
  }

  // Returns the parameters that are arrays of the shape of a result and that this result depends on, without those that
  // the program donates already.
  std::vector<int64_t> UpdatedParameters() const {
    const Computation entry = source_.entry();
    absl::flat_hash_set<int64_t> donated;
    for (const InputOutputAlias& alias : source_.header().input_output_alias) donated.insert(alias.parameter);
    for (const BufferDonor& donor : source_.header().buffer_donor) donated.insert(donor.parameter);
    std::vector<Instruction> results;
    if (entry.root().opcode() == Opcode::kTuple) {
      for (Instruction result : entry.root().operands()) results.push_back(result);
    } else {
      results.push_back(entry.root());
    }
    // By shape, the results that no parameter has been found for.
    absl::flat_hash_map<uint32_t, std::vector<Instruction>> wanted;
    for (Instruction result : results) {
      if (result.shape().IsArray()) wanted[result.shape().WithoutLayout().id().value].push_back(result);
    }
    std::vector<int64_t> updated;
    size_t visited = 0;
    for (int64_t number = 0; number < entry.parameter_count(); ++number) {
      const Instruction parameter = entry.parameter(number);
      if (!parameter.shape().IsArray() || donated.contains(number)) continue;
      const auto found = wanted.find(parameter.shape().WithoutLayout().id().value);
      if (found == wanted.end() || found->second.empty()) continue;
      const absl::flat_hash_set<uint32_t> reached = DependentsOf(parameter);
      visited += reached.size();
      for (size_t k = 0; k < found->second.size(); ++k) {
        const Instruction result = found->second[k];
        if (result == parameter || !reached.contains(result.id().value)) continue;
        found->second.erase(found->second.begin() + static_cast<ptrdiff_t>(k));
        updated.push_back(number);
        break;
      }
      if (visited > kMaxVisited) break;
    }
    return updated;
  }

  static absl::flat_hash_set<uint32_t> DependentsOf(Instruction value) {
    absl::flat_hash_set<uint32_t> reached;
    std::vector<Instruction> open = {value};
    while (!open.empty()) {
      const Instruction i = open.back();
      open.pop_back();
      for (const auto [user, index] : i.uses()) {
        if (reached.insert(user.id().value).second) open.push_back(user);
      }
    }
    return reached;
  }

  // Donates the parameters that results replace and whose memory they then use.
  void Donate() {
    if (input_.memory.result_bytes == 0) return;
    const std::vector<int64_t> updated = UpdatedParameters();
    if (updated.empty()) return;
    Module changed = source_.Clone();
    for (int64_t number : updated) {
      changed.header().buffer_donor.push_back({number, changed.context().lists.Intern({})});
    }
    if (!IsValid(changed)) return;
    const ChangedProgram program = CompileAndSimulate(input_, std::move(changed), input_.options);
    absl::flat_hash_set<int64_t> replaced;
    for (const AliasedResult& result : program.memory.aliased) {
      if (std::binary_search(updated.begin(), updated.end(), result.parameter)) replaced.insert(result.parameter);
    }
    const double before = static_cast<double>(input_.memory.peak_bytes);
    if (replaced.empty() || static_cast<double>(program.memory.peak_bytes) > (1 - kMinPeakReduction) * before) return;
    const int64_t count = static_cast<int64_t>(replaced.size());
    MemoryAdvice advice;
    advice.title = program.memory.fits() && too_large() ? "Make it fit: donate parameters"
                                                        : "Donate parameters that results replace";
    advice.evidence = StrCat(Counted(count, "result replaces a parameter", "results replace parameters"),
                             " of the same shape that the program does not donate: both are in HBM at once.");
    advice.action =
        "Donate the old values if nothing reads them after the step (donate_argnums in JAX; a full step in PyTorch/XLA "
        "does it by itself).";
    advice.changed = StrCat("the program with ", Counted(count, "parameter"), " donated");
    advice.device_seconds = program.simulation.device_seconds;
    advice.peak_bytes = program.memory.peak_bytes;
    advice.limit_bytes = program.memory.limit_bytes;
    result_.push_back(std::move(advice));
  }

  // Recomputes arrays of the compiled program instead of keeping them until the peak. The pass counts bytes without
  // padding, so that lower limits are tried too.
  void Rematerialize() {
    if (!input_.module.header().is_scheduled) return;
    for (double part : {1.0, 0.9, 0.8}) {
      Module changed = input_.module.Clone();
      const double limit = input_.memory.limit_bytes * part;
      if (limit >= 9e18) return;
      absl::StatusOr<Pipeline> pipeline =
          Pipeline::Parse(StrCat("rematerialization{hbm-bytes=", static_cast<int64_t>(limit), "}"));
      if (!pipeline.ok()) return;
      const absl::StatusOr<Pipeline::Result> run =
          pipeline->Run(changed, {.context = PassContextFor(input_.options, changed)});
      if (!run.ok() || !IsValid(changed)) return;
      const ChangedProgram program = CompileAndSimulate(input_, std::move(changed), input_.options);
      if (program.simulation.vmem_peak > input_.options.machine.VmemBytes()) continue;
      MemoryAdvice advice;
      advice.title = "Make it fit: rematerialize";
      advice.evidence =
          StrCat(Bytes(Excess()), " too much; arrays that are kept until the peak can be computed again.");
      advice.action = "Checkpoint layers (jax.checkpoint, torch_xla's checkpoint), or give the compiler a lower limit.";
      advice.changed = "the compiled program with arrays recomputed before their last uses";
      if (AddIfFits(std::move(advice), program)) return;
    }
  }

  // Returns sizes that may be the batch: the leading dimension of results that are no parameters, else that of most
  // parameters that the step does not update.
  std::vector<int64_t> BatchSizes() const {
    const Computation entry = source_.entry();
    std::vector<Shape> results;
    const Shape root = entry.root().shape();
    if (root.IsTuple()) {
      for (Shape element : root.elements()) results.push_back(element);
    } else {
      results.push_back(root);
    }
    const auto leads = [](Shape shape) { return shape.IsArray() && shape.rank() > 0 ? shape.dim(0) : 0; };
    absl::flat_hash_set<uint32_t> result_shapes, parameter_shapes;
    absl::flat_hash_set<int64_t> leading;
    for (Shape result : results) result_shapes.insert(result.WithoutLayout().id().value);
    std::map<int64_t, int64_t> count;
    bool updates = false;
    for (int64_t k = 0; k < entry.parameter_count(); ++k) {
      const Shape shape = entry.parameter(k).shape();
      parameter_shapes.insert(shape.WithoutLayout().id().value);
      leading.insert(leads(shape));
      const bool updated = result_shapes.contains(shape.WithoutLayout().id().value);
      updates |= updated;
      if (!updated && leads(shape) > 1) ++count[leads(shape)];
    }
    std::vector<int64_t> sizes;
    for (Shape result : results) {
      const int64_t size = leads(result);
      if (size > 1 && leading.contains(size) && !parameter_shapes.contains(result.WithoutLayout().id().value)) {
        sizes.push_back(size);
      }
    }
    if (updates && !count.empty()) {
      sizes.push_back(std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) {
                        return a.second < b.second;
                      })->first);
    }
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    if (sizes.size() > 2) sizes.resize(2);
    return sizes;
  }

  // Returns the program with a batch of `batch / factor`: also multiples of the batch, as of merged dimensions, that
  // are no sizes of other parameters.
  std::optional<Module> WithBatch(int64_t batch, int64_t factor) const {
    std::set<int64_t> fixed, multiples;
    for (int64_t k = 0; k < source_.entry().parameter_count(); ++k) {
      const Shape shape = source_.entry().parameter(k).shape();
      if (!shape.IsArray() || (shape.rank() > 0 && shape.dim(0) == batch)) continue;
      fixed.insert(shape.dims().begin(), shape.dims().end());
    }
    if (fixed.contains(batch)) return std::nullopt;
    for (Computation c : source_.computations()) {
      for (Instruction i : c.instructions()) {
        for (int64_t size : i.shape().IsArray() ? i.shape().dims() : absl::Span<const int64_t>()) {
          if (size > batch && size % batch == 0 && !fixed.contains(size)) multiples.insert(size);
        }
      }
    }
    for (const bool merged : {true, false}) {
      Module changed = source_.Clone();
      // In ascending order, so that a replaced size is none that follows.
      ReplaceDimensionSizes(&changed, batch, batch / factor);
      for (int64_t size : multiples) {
        if (merged) ReplaceDimensionSizes(&changed, size, size / factor);
      }
      if (IsValid(changed)) return changed;
    }
    return std::nullopt;
  }

  void SmallerBatch() {
    const double parameters = static_cast<double>(input_.memory.parameter_bytes);
    const double between = static_cast<double>(input_.memory.peak_bytes) - parameters;
    if (parameters >= input_.memory.limit_bytes) return;
    for (int64_t batch : BatchSizes()) {
      int64_t factor = 2;
      while (between / static_cast<double>(factor) > input_.memory.limit_bytes - parameters) {
        if (factor >= kMaxBatchReduction) return;
        factor *= 2;
      }
      for (int tries = 0; tries < 2 && factor <= kMaxBatchReduction && batch % factor == 0; ++tries, factor *= 2) {
        std::optional<Module> changed = WithBatch(batch, factor);
        if (!changed) break;
        const ChangedProgram program = CompileAndSimulate(input_, *std::move(changed), input_.options);
        MemoryAdvice advice;
        advice.title = StrCat("Make it fit: a batch of ", batch / factor, " instead of ", batch);
        advice.evidence = StrCat(Bytes(Excess()), " too much; ", Bytes(between), " are beyond the parameters.");
        advice.action = "Use a smaller batch, and accumulate gradients over several for the same effective one.";
        advice.changed = StrCat("the program with ", batch / factor, " for each dimension of ", batch);
        if (AddIfFits(std::move(advice), program)) return;
      }
    }
  }

  void NarrowerTypes() {
    Module changed = source_.Clone();
    ConvertFloatTypes(&changed, {ElementType::kF32}, ElementType::kBF16);
    if (!IsValid(changed)) return;
    const ChangedProgram program = CompileAndSimulate(input_, std::move(changed), input_.options);
    MemoryAdvice advice;
    advice.title = "Make it fit: bf16 instead of f32";
    advice.evidence = StrCat(Bytes(Excess()), " too much; bf16 takes half the bytes of f32.");
    advice.action = "Keep activations, and parameters where the accuracy allows it, in bf16.";
    advice.changed = "the program with every f32 array as bf16";
    AddIfFits(std::move(advice), program);
  }

  // Divides a program with shardings among more devices.
  void MorePartitions() {
    if (!AwaitsPartitioning(source_)) return;
    const SimulationOptions& now = input_.options;
    for (int64_t factor = 2; factor <= kMaxPartitions; factor *= 2) {
      const int64_t chips = DeviceUseOf(now, input_.simulation).used_chips * factor;
      if (chips > static_cast<int64_t>(now.machine.max_chips)) return;
      Module changed = source_.Clone();
      if (!MultiplyPartitions(&changed, factor)) return;
      SimulationOptions options = now;
      options.topology = TopologyFor(now.machine, chips);
      const ChangedProgram program = CompileAndSimulate(input_, std::move(changed), options);
      MemoryAdvice advice;
      advice.title = StrCat("Make it fit: partition it over ", chips, " chips");
      advice.evidence = "The arrays of the program are divided among its devices, and are too large for so few.";
      advice.action = "Shard parameters, optimizer state and activations over more devices.";
      advice.changed = StrCat("the program on ", ToString(options.topology), " chips");
      if (AddIfFits(std::move(advice), program)) return;
    }
  }

  // Takes the builtin target with the least HBM on which the program fits, on as many devices.
  void OtherTarget() {
    const int64_t devices = DeviceUseOf(input_.options, input_.simulation).used_devices;
    std::vector<DeviceDescription> targets;
    for (std::string_view name : BuiltinDeviceDescriptions()) {
      std::optional<DeviceDescription> machine = BuiltinDeviceDescription(name);
      if (machine && machine->HbmBytes() > input_.memory.limit_bytes) targets.push_back(*std::move(machine));
    }
    std::stable_sort(targets.begin(), targets.end(), [](const DeviceDescription& a, const DeviceDescription& b) {
      return a.HbmBytes() < b.HbmBytes();
    });
    for (DeviceDescription& machine : targets) {
      SimulationOptions options = input_.options;
      const int64_t per_chip = machine.devices_per_chip();
      options.topology = TopologyFor(machine, (devices + per_chip - 1) / per_chip);
      options.machine = std::move(machine);
      const ChangedProgram program = CompileAndSimulate(input_, source_.Clone(), options);
      MemoryAdvice advice;
      advice.title = StrCat("Make it fit: run it on ", options.machine.name);
      advice.evidence = StrCat(Bytes(Excess()), " too much; a device of ", options.machine.name, " has ",
                               Bytes(options.machine.HbmBytes()), ".");
      advice.action = "Use a target with more memory.";
      advice.changed = StrCat("the program on ", options.machine.name, ":", ToString(options.topology));
      if (AddIfFits(std::move(advice), program)) return;
    }
  }

  static constexpr size_t kMaxVisited = 10'000'000;  // instructions that depend on parameters

  const ReportInput& input_;
  const Module& source_;
  std::vector<MemoryAdvice> result_;
};

}  // namespace

std::vector<MemoryAdvice> MemoryAdvices(const ReportInput& input) { return MemoryAdviser(input).Collect(); }

}  // namespace hlokit::tpu
