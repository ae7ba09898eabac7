// SPDX-License-Identifier: Apache-2.0
// Parses lazy IR text: dumps of PyTorch/XLA (old and new), of torch's TorchScript backend, and our own, single or many
// in one file with the surrounding text. Printing reproduces the input.
//
// A node is one line:  %ID = SHAPE OP(%A, %B.1), NAME=VALUE, ..., ROOT=N Shapes and values are kept as text, since the
// dialects spell them differently: f32[2]{0} and [Float[2]].
#ifndef HLOKIT_TRACER_TEXT_IR_READER_H_
#define HLOKIT_TRACER_TEXT_IR_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"

namespace hlokit::lazy {

struct TextOperand {
  uint32_t node = 0;    // index into TextGraph::nodes
  int32_t output = -1;  // -1: the node has a single output
};

struct TextNode {
  std::string_view id;  // as written, without %
  std::string_view shape;
  std::string_view op;
  std::vector<TextOperand> operands;
  std::vector<std::pair<std::string_view, std::string_view>> tags;  // including ROOT at its position
  uint32_t line_offset = 0;                                         // of the line in the source

  // Returns the value of a tag, or "".
  std::string_view tag(std::string_view name) const;
};

struct TextGraph {
  std::vector<TextNode> nodes;
  std::string_view before;  // lines since the previous graph, unchanged
  std::string_view name;    // of `Graph Name:`; may be empty
  std::string_view hash;    // of `Graph Hash:`; may be empty
  std::string_view frame;   // the innermost frame of its header; may be empty

  // Returns the roots by number.
  std::vector<TextOperand> Roots() const;
  // Returns the parameter number of each leaf with data, in the order of their first nodes, by node; -1: not a leaf.
  std::vector<int64_t> Parameters() const;
};

struct TextDump {
  std::shared_ptr<const SourceBuffer> source;  // owner of the texts
  std::vector<TextGraph> graphs;
  std::string_view after;  // text after the last graph
};

// Returns false after errors, which are in the sink.
bool ReadGraphs(std::shared_ptr<const SourceBuffer> source, TextDump* dump, DiagnosticSink* sink);

// Returns true for tags with the location of a node.
bool IsLocationTag(std::string_view name);

// Returns the line of the node at index `place`, without indentation.
std::string PrintNode(const TextGraph& graph, size_t place);
// Returns one graph, "IR {" to "}".
std::string PrintGraph(const TextGraph& graph);
// Returns the whole input.
std::string PrintDump(const TextDump& dump);
std::string PrintGraphDot(const TextGraph& graph);

// Returns the graph with canonical ids: roots by number, operands before users, the first operand first. Graphs that
// compute the same have the same text, independent of the order of nodes. `keep_locations`: includes location= and
// scope=.
std::string ToNormalizedString(const TextGraph& graph, bool keep_locations = false);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_IR_READER_H_
