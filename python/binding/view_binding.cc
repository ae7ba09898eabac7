// SPDX-License-Identifier: Apache-2.0
// Pictures of graphs, for notebooks.
#include <pybind11/stl.h>

#include <string>

#include "ir/core/json_writer.h"
#include "passes/view/dot.h"
#include "passes/view/graph_document.h"
#include "passes/view/subgraph.h"
#include "python/binding/bindings.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

// Returns Graphviz's text of a computation, of what an instruction calls, or of its neighborhood.
py::str Dot(const ModulePtr& state, const std::string& name, int64_t hops, int64_t max_instructions) {
  if (hops < 0 || max_instructions < 0) throw py::value_error("hops and max_instructions are not negative");
  SubgraphOptions options;
  options.name = name;
  options.hops = hops;
  options.max_instructions = static_cast<size_t>(max_instructions);
  const absl::StatusOr<Subgraph> subgraph = SelectSubgraph(state->complete(), options);
  if (!subgraph.ok()) throw py::value_error(std::string(subgraph.status().message()));
  std::string text;
  {
    TextWriter out(&text);
    PrintDot(out, *subgraph);
  }
  return ToStr(text);
}

// Returns the data of the viewer's page: an array of one graph.
py::str GraphJson(const ModulePtr& state) {
  const Module& module = state->complete();
  if (!module.entry().valid()) throw py::value_error("the module has no entry computation");
  GraphDocumentOptions options;
  options.file = state->source() == nullptr ? std::string(module.name()) : std::string(state->source()->name());
  std::string text;
  {
    TextWriter out(&text);
    JsonWriter json(&out, JsonLayout::kCompact);
    json.BeginArray();
    WriteGraphDocument(module, options, &json);
    json.EndArray();
  }
  return ToStr(text);
}

}  // namespace

void BindView(py::module_& m) {
  m.def("_dot", &Dot, py::arg("module"), py::arg("name"), py::arg("hops"), py::arg("max_instructions"));
  m.def("_graph_json", &GraphJson, py::arg("module"));
}

}  // namespace hlokit::python
