// SPDX-License-Identifier: Apache-2.0
// Searching modules: find, match, extract.
#include <pybind11/stl.h>
#include <re2/re2.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/verify/verifier.h"
#include "passes/query/extract.h"
#include "passes/query/query.h"
#include "python/binding/bindings.h"
#include "python/binding/regex.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

query::Query ParseQuery(const std::string& pattern, const std::string& where) {
  DiagnosticSink sink;
  std::string_view wrong;
  std::optional<query::Query> parsed = query::Query::Parse(pattern, where, CompileRegex, &sink, &wrong);
  if (!parsed) {
    const bool in_pattern = wrong == query::Query::kMatch;
    Throw("QueryError", sink, SourceBuffer(in_pattern ? "pattern" : "where", in_pattern ? pattern : where));
  }
  return *std::move(parsed);
}

py::list Match(const ModulePtr& state, const std::string& pattern, const std::string& where) {
  const query::Query query = ParseQuery(pattern, where);
  py::list result;
  for (const query::Match& match : query.Find(state->complete())) {
    py::dict variables;
    for (size_t k = 0; k < match.variables.size(); ++k) {
      if (match.variables[k].valid()) {
        variables[ToStr(query.pattern.variables()[k])] = py::cast(Handle(state, match.variables[k]));
      }
    }
    result.append(Make("Match", py::cast(Handle(state, match.root)), variables));
  }
  return result;
}

py::list Find(const ModulePtr& state, const std::optional<std::string>& opcode, const std::optional<std::string>& name,
              const std::optional<std::string>& scope, const py::object& where) {
  const Module& module = state->read();
  TextPredicate named, scoped;
  if (name) named = ValueOrThrow(CompileRegex(*name), "QueryError");
  if (scope) scoped = ValueOrThrow(CompileRegex(*scope), "QueryError");
  const bool callable = PyCallable_Check(where.ptr()) != 0;
  std::vector<Instruction> found;
  if (!where.is_none() && !callable) {
    const query::Query query = ParseQuery(opcode.value_or("_"), where.cast<std::string>());
    for (const query::Match& match : query.Find(state->complete())) found.push_back(match.root);
  } else {
    for (const Computation c : module.computations()) {
      for (const Instruction i : c.instructions()) {
        if (!opcode || i.opcode_text() == *opcode) found.push_back(i);
      }
    }
  }
  if (found.empty() && opcode && !OpcodeFromText(*opcode)) {
    // Not one that a module could have, unless it was read with allow_unknown.
    bool exists = false;
    for (const Computation c : module.computations()) {
      for (const Instruction i : c.instructions()) exists |= i.opcode_text() == *opcode;
    }
    std::vector<std::string_view> names;
    for (size_t k = 0; k < kOpcodeCount; ++k) names.push_back(ToString(static_cast<Opcode>(k)));
    if (!exists) Throw("QueryError", StrCat("unknown opcode `", *opcode, "`", DidYouMeanSuffix(*opcode, names)));
  }
  py::list result;
  for (const Instruction i : found) {
    // `where` may have erased it, or changed what the texts are.
    const Module& now = state->read();
    if (!IsAlive(now, i.id())) continue;
    const Instruction at(&now, i.id());
    if (named && !named(at.name())) continue;
    if (scoped && !scoped(now.context().str(at.metadata().op_name))) continue;
    py::object handle = py::cast(Handle(state, at));
    if (!callable || where(handle).cast<bool>()) result.append(handle);
  }
  return result;
}

ModulePtr Extract(const ModulePtr& state, const py::object& instructions, std::optional<int64_t> depth,
                  const std::vector<InstructionHandle>& inputs) {
  std::vector<InstructionHandle> results;
  if (py::isinstance<InstructionHandle>(instructions)) {
    results.push_back(instructions.cast<InstructionHandle>());
  } else {
    for (const py::handle i : py::iter(instructions)) {
      if (!py::isinstance<InstructionHandle>(i)) {
        throw py::type_error("extract: expected an Instruction or a list of them, not " +
                             std::string(py::str(py::type::of(i))));
      }
      results.push_back(i.cast<InstructionHandle>());
    }
  }
  const Module& module = state->valid();
  std::vector<Instruction> taken;
  for (const InstructionHandle& h : results) taken.emplace_back(&module, IdIn(state, h));
  if (taken.empty()) throw py::value_error("extract: no instructions are given");
  query::ExtractOptions options;
  options.depth = depth.value_or(-1);
  for (const InstructionHandle& h : inputs) options.inputs.emplace_back(&module, IdIn(state, h));
  auto part = std::make_unique<Module>(ValueOrThrow(query::Extract(module, taken, options), "EditError"));
  DiagnosticSink sink;
  VerifyModule(*part, {}, &sink);
  if (sink.has_errors()) Throw("EditError", sink, SourceBuffer("<extract>", ""));
  auto use = part->shared_context() == module.shared_context() ? state->use() : std::make_shared<ContextUse>();
  return std::make_shared<ModuleState>(std::move(part), nullptr, std::move(use));
}

}  // namespace

absl::StatusOr<TextPredicate> CompileRegex(std::string_view expression) {
  const auto compiled =
      std::make_shared<const re2::RE2>(re2::StringPiece(expression.data(), expression.size()), re2::RE2::Quiet);
  if (!compiled->ok()) return absl::InvalidArgumentError(StrCat("bad regular expression: ", compiled->error()));
  return [compiled](std::string_view text) {
    return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled);
  };
}

void BindQuery(py::module_& m) {
  m.def(
      "_check_query", [](const std::string& pattern, const std::string& where) { ParseQuery(pattern, where); },
      py::arg("pattern"), py::arg("where"));
  auto type = py::reinterpret_borrow<py::class_<ModuleState, ModulePtr>>(m.attr("Module"));
  type.def("match", &Match, py::arg("pattern"), py::arg("where") = "",
           R"doc(The places where a pattern in HLO's words matches, as a list of Match.

m.match("dot(transpose(%x), convert(%y))", where='bytes>1e6 && scope~"attention"'); docs/queries.md has the language.)doc")
      .def(
          "find", &Find, py::kw_only(), py::arg("opcode") = py::none(), py::arg("name") = py::none(),
          py::arg("scope") = py::none(), py::arg("where") = py::none(),
          R"(Instructions with an opcode, whose name or scope (op_name) a regular expression is found in, and that a condition
holds for: a text such as "bytes>1e6", or a function of the instruction.)")
      .def("extract", &Extract, py::arg("instructions"), py::arg("depth") = py::none(),
           py::arg("inputs") = std::vector<InstructionHandle>(),
           R"(A module of its own that computes an instruction, or several of one computation, and can be run.

What is more than `depth` operands away, and `inputs`, become parameters. Raises EditError where the part cannot stand
alone, and VerifyError where the module is not valid.)");
}

}  // namespace hlokit::python
