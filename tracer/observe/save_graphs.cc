// SPDX-License-Identifier: Apache-2.0
#include "tracer/observe/save_graphs.h"

#include <cstdio>
#include <memory>

#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "tracer/step/device_state.h"
#include "tracer/step/graph_key.h"
#include "tracer/step/tracer.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {

absl::Status AppendToFile(const std::string& path, std::string_view text) {
  FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) return absl::InternalError(StrCat("cannot append to ", path));
  const bool ok = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && ok ? absl::OkStatus() : absl::InternalError(StrCat("cannot append to ", path));
}

absl::Status SaveGraph(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options,
                       const std::string& path, const std::string& format) {
  std::string graph;
  if (format == "dot") {
    graph = GraphDot(device, slice);
  } else if (format == "hlo") {
    absl::StatusOr<std::unique_ptr<Module>> module = LowerSubgraph(device, slice, "IrToHlo.1");
    if (!module.ok()) return module.status();
    if (device.tracer()->options().dump_optimized) {
      if (absl::Status s = device.tracer()->client().Optimize(**module); !s.ok()) return s;
    }
    graph = ToString(**module) + "\n";
  } else {
    graph = GraphToString(device, slice);
  }
  std::string entry = "[ScheduleSyncTensorsGraph]\n";
  if (!device.graph_name.empty()) StrAppend(&entry, "Graph Name: ", device.graph_name, "\n");
  entry += "TensorsGraphInfo:\n";
  for (const SourceFrame& frame : CurrentFrames()) {
    StrAppend(&entry, "  ", frame.function, " (", frame.file, ":", frame.line, ")\n");
  }
  // The hash of a root is that of the graph which computes it alone.
  entry += "\nRoot Hashes: (";
  for (size_t i = 0; i < slice.roots.size(); ++i) {
    PendingSubgraph alone = slice;
    alone.roots = {slice.roots[i]};
    alone.order = device.graph().PostOrder(alone.roots);
    alone.donated.clear();
    StrAppend(&entry, i == 0 ? "" : ", ", ToString(HashOf(device, alone, {})));
  }
  device.graph().PostOrder(slice.roots);  // restores the positions of the whole graph
  StrAppend(&entry, ")\n\n## BEGIN_GRAPH\n", graph, "\nGraph Hash: ", ToString(HashOf(device, slice, options)),
            "\n\n## END_GRAPH\n\n");
  return AppendToFile(path, entry);
}

}  // namespace hlokit::lazy
