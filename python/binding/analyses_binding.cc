// SPDX-License-Identifier: Apache-2.0
// Cost, memory, differences, simulation.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "interp/tpu/memory/memory_plan.h"
#include "interp/tpu/program/kernel_plan.h"
#include "interp/tpu/report/report.h"
#include "interp/tpu/timing/compile.h"
#include "interp/tpu/timing/device_selection.h"
#include "interp/tpu/timing/simulator.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "parser/core/parser.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/memory.h"
#include "passes/diff/diff_text.h"
#include "passes/diff/module_diff.h"
#include "python/binding/bindings.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

py::object ToPython(const Cost& cost) {
  return Make("Cost", cost.flops, cost.transcendentals, cost.bytes_read, cost.bytes_written);
}

// Costs of the instructions of a module at the time of the analysis.
struct Costs {
  ModulePtr state;
  std::unique_ptr<CostAnalysis> analysis;
  size_t instructions;
  Cost total;  // the analysis refers to the module, which a pass replaces

  py::object Of(const InstructionHandle& i) const {
    const InstructionId id = IdIn(state, i);
    if (id.value >= instructions) throw py::key_error("the instruction was added after the analysis");
    return ToPython(analysis->Of(i.get()));
  }
};

py::object Memory(const ModulePtr& state) {
  const Module& module = state->read();
  const MemoryAnalysis analysis = ValueOrThrow(MemoryAnalysis::Create(module), "HloError");
  const MemoryUse& use = analysis.OfModule();
  py::list live;
  constexpr const char* kKinds[] = {"argument", "constant", "temporary", "result"};
  for (const LiveBuffer& b : analysis.LiveAtPeak(module)) {
    live.append(Make("LiveBuffer", py::cast(InstructionHandle{state, b.defining_instruction}), b.leaf, b.bytes,
                     kKinds[static_cast<size_t>(b.kind)]));
  }
  py::object at = py::none();
  if (static_cast<size_t>(use.peak_position) < use.order.size()) {
    at = py::cast(InstructionHandle{state, use.order[static_cast<size_t>(use.peak_position)]});
  }
  return Make("MemoryUse", use.peak_bytes, use.argument_bytes, use.result_bytes, use.constant_bytes, at, live);
}

std::string Simulated(const ModulePtr& state, const std::string& device, const std::string& pipeline,
                      int64_t trip_count, bool memory) {
  const Module& original = state->read();
  absl::StatusOr<tpu::SimulationOptions> options = tpu::OptionsForDevice(device, original);
  if (!options.ok()) throw py::value_error(StrCat("device: ", std::string(options.status().message())));
  options->default_trip_count = trip_count;
  Module compiled = original.Clone();
  absl::Status status;
  std::string json;
  {
    const WorkScope work(state, "a simulation");
    status = tpu::Compile(*options, pipeline, &compiled);
    if (status.ok()) {
      const tpu::KernelPlan plan(compiled);
      const tpu::Simulation simulation = tpu::Simulate(compiled, plan, *options);
      const tpu::MemoryPlan plan_of_memory =
          tpu::PlanMemory(options->machine, compiled, plan, simulation.implicit_partitions);
      json = tpu::ReportJson({compiled, *options, simulation, plan_of_memory, &original, pipeline}, memory);
    }
  }
  if (!status.ok()) Throw("PassError", status);
  return json;
}

// A module and its copy in another context, with instructions that correspond by name.
class Copy {
 public:
  Copy(const ModulePtr& state, const std::shared_ptr<Context>& context) : state_(state) {
    const Module& module = state->read();
    if (module.shared_context() == context) {
      clone_ = std::make_unique<Module>(module.Clone());
      return;
    }
    for (const Computation c : module.computations()) {
      for (const Instruction i : c.instructions()) ids_[i.name()] = i.id();
    }
    DiagnosticSink sink;
    const auto source = std::make_shared<const SourceBuffer>("<module>", ToString(module, PrintOptions::Lossless()));
    clone_ = ParseModule(source, {}, &sink, context);
    if (clone_ == nullptr) Throw("HloError", sink, *source);
  }
  const Module& module() const { return *clone_; }
  // Returns the instruction of the original.
  py::object Original(Instruction i) const {
    if (ids_.empty()) return py::cast(Handle(state_, i));
    const auto found = ids_.find(i.name());
    return found == ids_.end() ? py::object(py::none()) : py::cast(InstructionHandle{state_, found->second});
  }

 private:
  ModulePtr state_;
  std::unique_ptr<Module> clone_;
  absl::flat_hash_map<std::string_view, InstructionId> ids_;
};

py::object Diff(const ModulePtr& a, const ModulePtr& b) {
  const bool shared = a->read().shared_context() == b->read().shared_context();
  const std::shared_ptr<Context> context = shared ? a->read().shared_context() : std::make_shared<Context>();
  const Copy first(a, context), second(b, context);
  const ModuleDiff diff = CompareModules(first.module(), second.module());
  py::list changed, added, removed;
  for (const ChangedInstruction& c : diff.changed) {
    py::list aspects;
    for (size_t k = 0; k < kAspects; ++k) {
      if (c.aspects.Contains(static_cast<Aspect>(k))) aspects.append(ToStr(ToString(static_cast<Aspect>(k))));
    }
    changed.append(py::make_tuple(first.Original(c.a), second.Original(c.b), py::tuple(aspects)));
  }
  for (const Instruction i : diff.added) added.append(second.Original(i));
  for (const Instruction i : diff.removed) removed.append(first.Original(i));
  std::string text;
  {
    TextWriter out(&text);
    PrintDiff(out, first.module(), second.module(), diff, Summarize(first.module(), second.module(), diff), {});
  }
  return Make("Diff", diff.same(), changed, added, removed, ToStr(text));
}

}  // namespace

void BindAnalyses(py::module_& m) {
  py::class_<Costs>(m, "Costs", "Operations and bytes of each instruction, as XLA counts them.")
      .def("__getitem__", &Costs::Of, py::arg("instruction"))
      .def_property_readonly(
          "total", [](const Costs& c) { return ToPython(c.total); }, "Of one run of the entry.");
  auto type = py::reinterpret_borrow<py::class_<ModuleState, ModulePtr>>(m.attr("Module"));
  type.def(
          "costs",
          [](const ModulePtr& s) {
            const Module& module = s->read();
            auto analysis = std::make_unique<CostAnalysis>(module);
            const Cost total = analysis->OfModule();
            return Costs{s, std::move(analysis), module.instruction_id_bound(), total};
          },
          "Floating-point operations and bytes by instruction: m.costs()[i].flops, m.costs().total.")
      .def("memory", &Memory, "Peak of memory, and the buffers that are live then, largest first.");
  m.def("_simulate", &Simulated, py::arg("module"), py::arg("device"), py::arg("pipeline"), py::arg("trip_count"),
        py::arg("memory"));
  m.def("diff", &Diff, py::arg("a"), py::arg("b"),
        "What differs between two modules: instructions that correspond are matched whatever their names.");
}

}  // namespace hlokit::python
