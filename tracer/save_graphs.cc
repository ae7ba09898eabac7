#include "tracer/save_graphs.h"

#include <cstdio>
#include <memory>

#include "ir/printer.h"
#include "ir/str_cat.h"
#include "tracer/device_state.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {

absl::Status SaveGraph(DeviceState& device, const GraphSlice& slice, const SliceOptions& options,
                       const std::string& path, const std::string& format) {
  std::string graph;
  if (format == "dot") {
    graph = GraphDot(device, slice);
  } else if (format == "hlo") {
    absl::StatusOr<std::unique_ptr<Module>> module = LowerSlice(device, slice, "IrToHlo.1");
    if (!module.ok()) return module.status();
    graph = ToString(**module) + "\n";
  } else {
    graph = GraphText(device, slice);
  }
  std::string entry = "[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n";
  if (const Frame* frame = CurrentFrame()) {
    StrAppend(&entry, "  ", frame->function, " (", frame->file, ":", frame->line, ")\n");
  }
  // A root's hash is that of the graph which computes it alone.
  entry += "\nRoot Hashes: (";
  for (size_t i = 0; i < slice.roots.size(); ++i) {
    GraphSlice alone = slice;
    alone.roots = {slice.roots[i]};
    alone.order = device.graph().PostOrder(alone.roots);
    alone.donated.clear();
    StrAppend(&entry, i == 0 ? "" : ", ", ToString(HashOf(device, alone, {})));
  }
  device.graph().PostOrder(slice.roots);  // places are those of the whole again
  StrAppend(&entry, ")\n\n## BEGIN_GRAPH\n", graph, "\nGraph Hash: ", ToString(HashOf(device, slice, options)),
            "\n\n## END_GRAPH\n\n");
  FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) return absl::InternalError(StrCat("cannot append to ", path));
  const bool ok = std::fwrite(entry.data(), 1, entry.size(), file) == entry.size();
  return std::fclose(file) == 0 && ok ? absl::OkStatus() : absl::InternalError(StrCat("cannot append to ", path));
}

}  // namespace hlokit::lazy
