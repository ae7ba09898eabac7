// SPDX-License-Identifier: Apache-2.0
// Cost, memory, annotations, differences.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/digest/fingerprint_diff.h"
#include "ir/sharding/unpartitioned.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/memory.h"
#include "passes/analysis/memory_table.h"
#include "passes/annotations/coverage.h"
#include "passes/annotations/text.h"
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
  const Module& module = state->valid();
  const MemoryAnalysis analysis = ValueOrThrow(MemoryAnalysis::Create(module), "HloError");
  const MemoryUse& use = analysis.OfModule();
  py::list live;
  for (const LiveBuffer& b : analysis.LiveAtPeak(module)) {
    live.append(Make("LiveBuffer", py::cast(InstructionHandle{state, b.defining_instruction}), b.leaf, b.bytes,
                     ToStr(ToString(b.kind))));
  }
  const Instruction peak = PeakInstruction(module, use);
  const py::object at = peak.valid() ? py::cast(InstructionHandle{state, peak.id()}) : py::object(py::none());
  return Make("MemoryUse", use.peak_bytes, use.argument_bytes, use.result_bytes, use.constant_bytes, at, live,
              DevicesOfWholeProgram(module));
}

// Returns what hlo-inspect annotations counts, of the module as it is.
py::object Annotations(const ModulePtr& state) {
  Module module = state->valid().Clone();
  ReadMetadataSources(module);
  const AnnotationCounts counts = CountAnnotations(module);
  py::list scopes, missing;
  std::vector<std::string> path;
  for (const ScopeNode& node : ScopeTree(module)) {
    const auto depth = static_cast<size_t>(std::max(node.depth - 1, 0));
    path.resize(std::min(path.size(), depth));
    if (node.depth > 0) path.push_back(node.name);
    std::string name;
    for (const std::string& part : path) StrAppend(&name, name.empty() ? "" : "/", part);
    scopes.append(Make("Scope", ToStr(name), node.depth, node.instructions, node.cost.flops, node.cost.bytes()));
  }
  for (const MissingMetadata& i : InstructionsMissingMetadata(module)) {
    // Reading the sources moves no instruction: ids are those of the module.
    missing.append(py::make_tuple(py::cast(InstructionHandle{state, i.id}), ToStr(ToString(i.reason))));
  }
  return Make("Annotations", counts.annotations, counts.instructions, counts.without, scopes, missing);
}

FingerprintOptions OptionsOf(bool layout, bool sharding, bool metadata, bool frontend_attributes, bool schedule) {
  return {layout, sharding, metadata, frontend_attributes, schedule};
}

py::object FingerprintDifference(const ModulePtr& a, const ModulePtr& b, bool layout, bool sharding, bool metadata,
                                 bool frontend_attributes, bool schedule) {
  const FingerprintOptions options = OptionsOf(layout, sharding, metadata, frontend_attributes, schedule);
  const FingerprintTable first(a->complete(), options), second(b->complete(), options);
  const FingerprintedModule of_a{&a->read(), &first, a->source().get()}, of_b{&b->read(), &second, b->source().get()};
  const FingerprintDiff diff = CompareFingerprints(of_a, of_b);
  const auto texts = [](const std::vector<std::string>& lines) {
    py::list result;
    for (const std::string& line : lines) result.append(ToStr(line));
    return result;
  };
  const auto handle = [](const ModulePtr& state, Instruction i) {
    return i.valid() ? py::cast(Handle(state, i)) : py::object(py::none());
  };
  py::list path;
  for (const FingerprintStep& step : diff.path) {
    path.append(py::make_tuple(handle(a, step.a), handle(b, step.b), ToStr(RenderStep(step))));
  }
  return Make("FingerprintDiff", diff.same, texts(diff.ignored_differences), texts(diff.header), path,
              texts(diff.differences), ToStr(RenderText(diff, of_a, of_b)));
}

// A module and its copy in another context, with instructions that correspond by name.
class Copy {
 public:
  Copy(const ModulePtr& state, const std::shared_ptr<Context>& context) : state_(state) {
    const Module& module = state->valid();
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
            const Module& module = s->valid();
            auto analysis = std::make_unique<CostAnalysis>(module);
            const Cost total = analysis->OfModule();
            return Costs{s, std::move(analysis), module.instruction_id_bound(), total};
          },
          "Floating-point operations and bytes by instruction: m.costs()[i].flops, m.costs().total.")
      .def("memory", &Memory,
           "Memory of a run as XLA's buffers, in bytes: the peak, and the buffers that are live then, largest first. "
           "Raises HloError.")
      .def("annotations", &Annotations,
           "The scopes that instructions are attributed to by their metadata, with instructions, operations and bytes, "
           "and the instructions without metadata.")
      .def(
          "fingerprint",
          [](const ModuleState& s, bool layout, bool sharding, bool metadata, bool frontend_attributes, bool schedule) {
            return ToString(
                Fingerprint(s.complete(), OptionsOf(layout, sharding, metadata, frontend_attributes, schedule)));
          },
          py::kw_only(), py::arg("layout") = false, py::arg("sharding") = false, py::arg("metadata") = false,
          py::arg("frontend_attributes") = false, py::arg("schedule") = false,
          "A digest that names, ids, comments and the order of the text have no influence on, as 32 hexadecimal "
          "digits. "
          "Layouts, shardings, metadata, frontend attributes and the schedule count where they are asked for.");
  m.def("fingerprint_diff", &FingerprintDifference, py::arg("a"), py::arg("b"), py::kw_only(),
        py::arg("layout") = false, py::arg("sharding") = false, py::arg("metadata") = false,
        py::arg("frontend_attributes") = false, py::arg("schedule") = false,
        "Why the fingerprints of two modules differ: the first instructions that differ on the way from the root; or, "
        "where they are equal, which differences they ignore. The options are those of Module.fingerprint.");
  m.def("diff", &Diff, py::arg("a"), py::arg("b"),
        "What differs between two modules: instructions that correspond are matched whatever their names.");
}

}  // namespace hlokit::python
