// SPDX-License-Identifier: Apache-2.0
// hlokit.Module and hlokit.Computation; parse, load and save.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/files/atomic_file_writer.h"
#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "ir/graph/entry_signature.h"
#include "ir/graph/traversal.h"
#include "ir/text/printer.h"
#include "ir/text/text_size.h"
#include "ir/verify/verifier.h"
#include "parser/formats/module_formats.h"
#include "parser/formats/parser.h"
#include "python/binding/bindings.h"
#include "python/binding/edit.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 32;

// Returns the sizes of a dictionary: {"b": 8, "arg0": (8, 4)}; none of None.
std::vector<std::string> SizesOf(const py::object& shape) {
  std::vector<std::string> sizes;
  if (shape.is_none()) return sizes;
  if (!py::isinstance<py::dict>(shape)) throw py::type_error("shape: expected a dictionary of sizes by name");
  for (const auto& [name, size] : shape.cast<py::dict>()) {
    std::string text;
    if (py::isinstance<py::int_>(size)) {
      text = StrCat(size.cast<int64_t>());
    } else {
      text = "[";
      for (const py::handle item : size) StrAppend(&text, text.size() == 1 ? "" : ",", item.cast<int64_t>());
      text += "]";
    }
    sizes.push_back(StrCat(name.cast<std::string>(), "=", text));
  }
  return sizes;
}

ModulePtr Parse(std::shared_ptr<const SourceBuffer> source, bool verify, bool allow_unknown, const std::string& entry,
                std::vector<std::string> sizes) {
  DiagnosticSink sink;
  std::unique_ptr<Module> module;
  bool valid = true;
  {
    const py::gil_scoped_release release;
    ParseOptions options;
    options.allow_unknown = allow_unknown;
    options.entry = entry;
    options.sizes = std::move(sizes);
    options.check_shapes_after_errors = true;
    options.verify_stablehlo = verify;
    module = ParseModule(source, options, &sink);
    if (module != nullptr && verify) {
      VerifyModule(*module, {}, &sink);
      valid = !sink.has_errors();
    }
  }
  if (module == nullptr) Throw("ParseError", sink, *source);
  if (!valid) Throw("VerifyError", sink, *source);
  auto state = std::make_shared<ModuleState>(std::move(module), std::move(source));
  if (verify) state->set_verified();
  return state;
}

ModulePtr ParseText(const py::object& text, const std::string& name, bool verify, bool allow_unknown,
                    const std::string& entry, const py::object& shape) {
  std::string bytes;
  if (py::isinstance<py::bytes>(text)) {
    bytes = text.cast<std::string>();
  } else if (py::isinstance<py::str>(text)) {
    bytes = text.attr("encode")("utf-8", "surrogateescape").cast<std::string>();
  } else {
    throw py::type_error("expected str or bytes");
  }
  if (bytes.find('\n') == std::string::npos && bytes.find(' ') == std::string::npos &&
      ModuleFormatOfPath(bytes) != nullptr) {
    Throw("ParseError", StrCat("`", bytes, "` is the name of a file: load reads it, parse takes its text"));
  }
  return Parse(std::make_shared<const SourceBuffer>(name, std::move(bytes)), verify, allow_unknown, entry,
               SizesOf(shape));
}

ModulePtr Load(const py::object& path, bool verify, bool allow_unknown, const std::string& entry,
               const py::object& shape) {
  const std::string name = py::module_::import("os").attr("fspath")(path).cast<std::string>();
  absl::StatusOr<std::shared_ptr<const SourceBuffer>> source;
  {
    const py::gil_scoped_release release;
    source = ReadFile(name, kMaxFileBytes);
  }
  if (!source.ok()) {
    const std::string message(source.status().message());
    PyErr_SetString(absl::IsNotFound(source.status()) ? PyExc_FileNotFoundError : PyExc_OSError, message.c_str());
    throw py::error_already_set();
  }
  return Parse(*std::move(source), verify, allow_unknown, entry, SizesOf(shape));
}

// Returns the options of the form: "default", "short", "canonical", "lossless", with toggles by name.
PrintOptions FormOf(const std::string& form) {
  if (form == "default") return PrintOptions::Default();
  if (form == "short") return PrintOptions::ShortParsable();
  if (form == "canonical") return PrintOptions::Canonical();
  if (form == "lossless") return PrintOptions::Lossless();
  throw py::value_error(StrCat("form: \"", form, "\" is none of default, short, canonical and lossless"));
}

std::string FormattedText(const ModulePtr& state, const std::string& form, std::optional<bool> metadata,
                          std::optional<bool> large_constants, std::optional<bool> layouts) {
  PrintOptions options = FormOf(form);
  if (metadata) options.print_metadata = *metadata;
  if (large_constants) options.print_large_constants = *large_constants;
  if (layouts) options.include_layout_in_shapes = *layouts;
  const Module& module = state->complete();
  if (const absl::Status s = CheckTextSize(module, options); !s.ok()) throw py::value_error(std::string(s.message()));
  return ToString(module, options);
}

// Returns the text of a computation, and says if it has no root yet.
std::string TextOf(Computation computation) {
  if (computation.record().root.valid()) return ToString(computation);
  std::string text = StrCat("%", computation.name(), " {  // has no root yet\n");
  for (const Instruction i : computation.instructions()) StrAppend(&text, "  ", ToString(i), "\n");
  return text + "}\n";
}

std::string TextOf(const Module& module) {
  const std::vector<Computation> computations = module.computations();
  const auto complete = [](Computation c) { return c.record().root.valid(); };
  if (std::all_of(computations.begin(), computations.end(), complete)) return ToString(module);
  std::string text = StrCat("HloModule ", module.name(), "\n");
  for (const Computation c : computations) StrAppend(&text, "\n", TextOf(c));
  return text;
}

// Returns the name of the format that the suffix says. Throws ValueError for others.
std::string FormatOf(std::string_view path) {
  if (const ModuleFormat* format = ModuleFormatOfPath(path)) return std::string(format->name);
  std::string suffixes;
  for (const ModuleFormat& format : ModuleFormats()) {
    for (const std::string_view suffix : format.suffixes) StrAppend(&suffixes, suffixes.empty() ? "" : ", ", suffix);
  }
  throw py::value_error(
      StrCat("path: \"", path, "\" ends in none of ", suffixes, "; format= chooses a format whatever the name is"));
}

std::string Written(const ModulePtr& state, const std::string& format) {
  const ModuleFormat* const known = FindModuleFormat(format);
  if (known == nullptr) {
    std::string names;
    for (const ModuleFormat& other : ModuleFormats()) StrAppend(&names, names.empty() ? "" : ", ", other.name);
    throw py::value_error(StrCat("format: \"", format, "\" is none of ", names));
  }
  DiagnosticSink sink;
  std::optional<std::string> written =
      known->write(known->is_stablehlo ? state->valid() : state->complete(), nullptr, &sink);
  const SourceBuffer none("<module>", "");
  if (!written || sink.has_errors()) Throw("HloError", sink, state->source() == nullptr ? none : *state->source());
  return *std::move(written);
}

void Save(const ModulePtr& state, const py::object& path, const std::optional<std::string>& format) {
  const std::string name = py::module_::import("os").attr("fspath")(path).cast<std::string>();
  const std::string bytes = Written(state, format ? *format : FormatOf(name));
  absl::StatusOr<std::unique_ptr<AtomicFileWriter>> file = AtomicFileWriter::Open(name);
  absl::Status status = file.status();
  if (file.ok()) {
    (*file)->Write(bytes);
    status = (*file)->Commit();
  }
  if (!status.ok()) {
    PyErr_SetString(PyExc_OSError, std::string(status.message()).c_str());
    throw py::error_already_set();
  }
}

ModulePtr Clone(const ModulePtr& state) {
  return std::make_shared<ModuleState>(std::make_unique<Module>(state->read().Clone()), state->source(), state->use());
}

// The instructions of a computation at the time of iter(); those erased meanwhile are left out.
class InstructionIterator {
 public:
  InstructionIterator(ModulePtr state, std::vector<InstructionId> ids)
      : state_(std::move(state)), ids_(std::move(ids)) {}
  // Returns nullopt at the end.
  std::optional<InstructionHandle> Next() {
    const Module& module = state_->read();
    while (next_ < ids_.size()) {
      const InstructionId id = ids_[next_++];
      if (IsAlive(module, id)) return InstructionHandle{state_, id};
    }
    return std::nullopt;
  }
  size_t left() const { return ids_.size() - next_; }

 private:
  ModulePtr state_;
  std::vector<InstructionId> ids_;
  size_t next_ = 0;
};

// `next()` as the slot of the type: a loop calls it without the dispatch of methods, which takes longer than the work.
PyObject* NextSlot(PyObject* self) {
  auto* const iterator =
      static_cast<InstructionIterator*>(reinterpret_cast<py::detail::instance*>(self)->simple_value_holder[0]);
  try {
    std::optional<InstructionHandle> next = iterator->Next();
    return next ? py::cast(*std::move(next)).release().ptr() : nullptr;
  } catch (std::exception& exception) {
    return SetError(exception);
  }
}

std::vector<InstructionId> IdsOf(Computation c) {
  std::vector<InstructionId> ids;
  ids.reserve(static_cast<size_t>(c.instruction_count()));
  for (const Instruction i : c.instructions()) ids.push_back(i.id());
  return ids;
}

InstructionIterator AllInstructions(const ModulePtr& state) {
  const Module& module = state->read();
  std::vector<InstructionId> ids;
  ids.reserve(module.instruction_count());
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) ids.push_back(i.id());
  }
  return {state, std::move(ids)};
}

// Returns operands before users, or users before operands.
py::list Ordered(const ComputationHandle& h, bool users_first) {
  const std::vector<InstructionId> order = PostOrder(h.get());
  py::list result(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    result[i] = py::cast(InstructionHandle{h.state, order[users_first ? order.size() - 1 - i : i]});
  }
  return result;
}

InstructionHandle Named(const ComputationHandle& h, std::string_view name) {
  for (const Instruction i : h.get().instructions()) {
    if (i.name() == name) return Handle(h.state, i);
  }
  throw py::key_error(StrCat("`", h.get().name(), "` has no instruction `", name, "`"));
}

// Returns the instruction or the computation with the name; `%` before it may be there.
py::object Named(const ModulePtr& state, std::string name) {
  if (name.starts_with('%')) name.erase(0, 1);
  const Module& module = state->read();
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (i.name() == name) return py::cast(Handle(state, i));
    }
  }
  for (const Computation c : module.computations()) {
    if (c.name() == name) return py::cast(Handle(state, c));
  }
  throw py::key_error(StrCat("the module has no instruction or computation `", name, "`"));
}

}  // namespace

void BindComputation(py::module_& m) {
  auto iterator = py::class_<InstructionIterator>(m, "_InstructionIterator", py::is_final());
  iterator.def("__iter__", [](InstructionIterator& it) -> InstructionIterator& { return it; })
      .def("__next__",
           [](InstructionIterator& it) {
             std::optional<InstructionHandle> next = it.Next();
             if (!next) throw py::stop_iteration();
             return *std::move(next);
           })
      .def("__length_hint__", &InstructionIterator::left);
  reinterpret_cast<PyTypeObject*>(iterator.ptr())->tp_iternext = NextSlot;

  py::class_<ComputationHandle>(m, "Computation", R"(A computation of a module: a graph of instructions with a root.

Iterating gives its instructions in the order of the text as it is when the iteration begins; instructions that are
erased meanwhile are left out, and those that are added do not come.)")
      .def_property_readonly(
          "name", [](const ComputationHandle& h) { return ToStr(h.get().name()); }, "Its name, without %.")
      .def_property_readonly(
          "root", [](const ComputationHandle& h) { return Handle(h.state, RootOf(h.get())); },
          "The instruction whose value it returns. Raises EditError while it has none: what is being built.")
      .def_property_readonly(
          "instructions",
          [](const ComputationHandle& h) {
            const std::vector<InstructionId> ids = IdsOf(h.get());
            py::list result(ids.size());
            for (size_t i = 0; i < ids.size(); ++i) result[i] = py::cast(InstructionHandle{h.state, ids[i]});
            return result;
          },
          "Its instructions, in the order of the text.")
      .def_property_readonly(
          "parameters",
          [](const ComputationHandle& h) {
            const Computation c = h.get();
            py::list result;
            for (int64_t i = 0; i < c.parameter_count(); ++i) {
              result.append(py::cast(Handle(h.state, c.parameter(i))));
            }
            return result;
          },
          "Its parameters, by number.")
      .def_property_readonly(
          "is_entry", [](const ComputationHandle& h) { return h.get().is_entry(); },
          "Whether the module's run begins here.")
      .def_property_readonly(
          "execution_thread", [](const ComputationHandle& h) { return ToStr(h.get().execution_thread()); },
          "The thread it runs on, such as \"host\"; \"\" for the main one.")
      .def_property_readonly(
          "module",
          [](const ComputationHandle& h) {
            h.get();
            return h.state;
          },
          "The module it is in.")
      .def(
          "post_order", [](const ComputationHandle& h) { return Ordered(h, false); },
          "Its instructions, operands before users.")
      .def(
          "pre_order", [](const ComputationHandle& h) { return Ordered(h, true); },
          "Its instructions, users before operands.")
      .def("set_root", &SetRoot, py::arg("root"),
           "Makes an instruction of it the root. Raises EditError for those of others, and for another shape than "
           "callers use.")
      .def(
          "__getitem__", [](const ComputationHandle& h, const std::string& name) { return Named(h, name); },
          py::arg("name"), "The instruction with this name. Raises KeyError.")
      .def("__len__", [](const ComputationHandle& h) { return h.get().instruction_count(); })
      .def("__iter__", [](const ComputationHandle& h) { return InstructionIterator(h.state, IdsOf(h.get())); })
      .def("__str__", [](const ComputationHandle& h) { return ToStr(TextOf(h.get())); })
      .def("__repr__",
           [](const ComputationHandle& h) {
             const Computation c = h.get();
             return ToStr(StrCat("<Computation ", c.name(), ": ", c.instruction_count(), " instructions>"));
           })
      .def("__eq__",
           [](const ComputationHandle& a, const py::object& b) {
             return py::isinstance<ComputationHandle>(b) && a == b.cast<const ComputationHandle&>();
           })
      .def("__hash__",
           [](const ComputationHandle& h) { return std::hash<const void*>()(h.state.get()) * 37 + h.id.value; });
}

void BindModule(py::module_& m) {
  py::class_<ModuleState, ModulePtr>(m, "Module", R"(An HLO module.

m.entry, m.computations and m["name"] give computations and instructions; str(m) is its HLO text.)")
      .def_property_readonly(
          "name", [](const ModuleState& s) { return ToStr(s.read().name()); }, "Its name.")
      .def_property_readonly(
          "entry", [](const ModulePtr& s) { return Handle(s, s->read().entry()); },
          "The computation that a run begins with.")
      .def_property_readonly(
          "computations",
          [](const ModulePtr& s) {
            py::list result;
            for (const Computation c : s->read().computations()) result.append(py::cast(Handle(s, c)));
            return result;
          },
          "The computations, in the order of the text.")
      .def("instructions", &AllInstructions,
           "An iterator over the instructions of all computations, in the order of the text.")
      .def_property_readonly(
          "instruction_count", [](const ModuleState& s) { return s.read().instruction_count(); },
          "Number of instructions of all computations.")
      .def_property_readonly(
          "num_partitions", [](const ModuleState& s) { return s.read().header().num_partitions; },
          "Partitions of each replica that the header asks for.")
      .def_property_readonly(
          "num_replicas", [](const ModuleState& s) { return s.read().header().replica_count; },
          "Replicas that the header asks for.")
      .def("text", &FormattedText, py::arg("form") = "default", py::kw_only(), py::arg("metadata") = py::none(),
           py::arg("large_constants") = py::none(), py::arg("layouts") = py::none(),
           "HLO text: form \"default\" as XLA prints, \"short\", \"canonical\", or \"lossless\", which parses to the "
           "same "
           "module; metadata, large_constants and layouts override whether it has these. Raises EditError for "
           "modules that are not complete, ValueError.")
      .def(
          "to_format", [](const ModulePtr& s, const std::string& format) { return py::bytes(Written(s, format)); },
          py::arg("format"),
          "The bytes of the module in a format: \"hlo\", \"stablehlo\", \"artifact\", \"proto\", \"textproto\", "
          "\"json\", "
          "\"proto-json\", \"snapshot\". Raises ValueError for others, HloError where the format cannot express the "
          "module.")
      .def(
          "save", &Save, py::arg("path"), py::arg("format") = py::none(),
          "Writes a file, whole or not at all, in the format of its suffix (.hlo, .mlir, .mlir.bc, .pb, .pbtxt, .json, "
          "...), or another format of to_format. Raises ValueError for unknown suffixes and formats, OSError, "
          "HloError.")
      .def("verify", &Verify, "Raises VerifyError with all violations of HLO's rules.")
      .def("clone", &Clone, "A copy, whose instructions have the same names; handles stay those of this module.")
      .def(
          "__getitem__", [](const ModulePtr& s, const std::string& name) { return Named(s, name); }, py::arg("name"),
          "The instruction of this name, or else the computation; % before it may be there. Takes time in proportion "
          "to the module. Raises KeyError.")
      .def("__copy__", &Clone)
      .def("__deepcopy__", [](const ModulePtr& s, const py::dict&) { return Clone(s); })
      .def("__str__", [](const ModuleState& s) { return ToStr(TextOf(s.read())); })
      .def("__repr__", [](const ModuleState& s) {
        const Module& module = s.read();
        return ToStr(StrCat("<Module ", module.name(), ": ", module.computation_count(), " computations, ",
                            module.instruction_count(), " instructions>"));
      });

  m.def("parse", &ParseText, py::arg("text"), py::arg("name") = "<string>", py::kw_only(), py::arg("verify") = true,
        py::arg("allow_unknown") = false, py::arg("entry") = "", py::arg("shape") = py::none(),
        R"(Parses a module: HLO text, StableHLO, JSON, or one of XLA's protocol buffers.

`entry` names the function of a StableHLO program that is its entry computation, @main by default. `shape`
gives sizes that it leaves open, as jax.export with symbolic dimensions does: {"b": 8} of a dimension variable, or
{"arg0": (8, 4)} of an argument. Raises ParseError, or
VerifyError unless verify is False; both have .diagnostics.)");
  m.def("load", &Load, py::arg("path"), py::kw_only(), py::arg("verify") = true, py::arg("allow_unknown") = false,
        py::arg("entry") = "", py::arg("shape") = py::none(),
        "Reads a file in any format that parse takes; compressed ones too.");
}

}  // namespace hlokit::python
