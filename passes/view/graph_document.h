// SPDX-License-Identifier: Apache-2.0
// A module as a JSON document for viewers: columns of numbers by instruction, and tables of strings. docs/hlo-view.md
// has its schema.
#ifndef HLOKIT_PASSES_VIEW_GRAPH_DOCUMENT_H_
#define HLOKIT_PASSES_VIEW_GRAPH_DOCUMENT_H_

#include <string>
#include <string_view>
#include <vector>

#include "ir/core/json_writer.h"
#include "ir/graph/module.h"

namespace hlokit {

// How an instruction differs from another module.
enum class DiffStatus : uint8_t { kSame, kChanged, kAdded, kRemoved };

struct GraphDocumentOptions {
  std::string file;                  // where the module was read
  std::string device;                // the device of `seconds`
  std::vector<double> seconds;       // by InstructionId, over one execution; empty: no times
  std::vector<std::string> remarks;  // by InstructionId: lines (remark_lines.h); empty: no remarks
  std::vector<std::string>
      causes;  // of the differences from the module before, a line each (passes/diff/diff_causes.h)
  // By InstructionId; empty: not compared with another module.
  std::vector<DiffStatus> status;
  std::vector<std::string> differences;     // lines
  std::vector<InstructionId> counterparts;  // in `other`; invalid: none
  const Module* other = nullptr;
};

// Writes one JSON object. Requires: the module has an entry computation. Long texts (attributes, literals) are cut.
void WriteGraphDocument(const Module& module, const GraphDocumentOptions& options, JsonWriter* json);

// A module, and what the document says of it.
struct GraphSource {
  const Module* module = nullptr;
  GraphDocumentOptions options;
};
// Returns the data of a page: an array of these graphs.
std::string GraphsJson(const std::vector<GraphSource>& graphs);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_VIEW_GRAPH_DOCUMENT_H_
