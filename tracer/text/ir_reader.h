// SPDX-License-Identifier: Apache-2.0
// Lazy IR as text, read back: dumps of PyTorch/XLA (old and new), of torch's TorchScript backend, and our own, alone or
// many in one file with what stands around them. What is read prints as it was.
//
// A node is one line:  %ID = SHAPE OP(%A, %B.1), NAME=VALUE, ..., ROOT=N
// Shapes and values are kept as text, since the dialects spell them differently: f32[2]{0} and [Float[2]].
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
  uint32_t node = 0;    // place in TextGraph::nodes
  int32_t output = -1;  // -1: the node has one
};

struct TextNode {
  std::string_view id;  // as written, without %
  std::string_view shape;
  std::string_view op;
  std::vector<TextOperand> operands;
  std::vector<std::pair<std::string_view, std::string_view>> tags;  // ROOT among them, where it stood
  uint32_t line_offset = 0;                                         // of the line in the source

  // Empty when there is no such tag.
  std::string_view tag(std::string_view name) const;
};

struct TextGraph {
  std::vector<TextNode> nodes;
  std::string_view before;  // lines since the graph before it, as they are
  std::string_view name;    // of `Graph Name:`; may be empty
  std::string_view hash;    // of `Graph Hash:`; may be empty
  std::string_view frame;   // the innermost frame of its header; may be empty

  // Places of roots, by root number.
  std::vector<uint32_t> Roots() const;
};

struct TextDump {
  std::shared_ptr<const SourceBuffer> source;  // which the texts point into
  std::vector<TextGraph> graphs;
  std::string_view after;  // what follows the last graph
};

// False after errors, which are in the sink.
bool ReadGraphs(std::shared_ptr<const SourceBuffer> source, TextDump* dump, DiagnosticSink* sink);

// True of tags that say where a node came from and not what it computes.
bool IsPlaceTag(std::string_view name);

// The line of the node at `place`, without what indents it.
std::string PrintNode(const TextGraph& graph, size_t place);
// One graph, "IR {" to "}".
std::string PrintGraph(const TextGraph& graph);
// Everything that was read.
std::string PrintDump(const TextDump& dump);
std::string PrintGraphDot(const TextGraph& graph);

// The graph with ids of a fixed order: roots by number, operands before users, the first operand first. Graphs that
// compute the same have the same text, whatever order their nodes were printed in. `keep_places`: with location= and
// scope=.
std::string NormalizedText(const TextGraph& graph, bool keep_places = false);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_IR_READER_H_
