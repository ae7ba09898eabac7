// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/pages/graph_page.h"

#include "ir/core/json_writer.h"

namespace hlokit::cli {

std::string GraphJson(const std::vector<GraphSource>& graphs) {
  std::string text;
  TextWriter out(&text);
  JsonWriter json(&out, JsonLayout::kCompact);
  json.BeginArray();
  for (const GraphSource& graph : graphs) WriteGraphDocument(*graph.module, graph.options, &json);
  json.EndArray();
  out.Flush();
  return text;
}

}  // namespace hlokit::cli
