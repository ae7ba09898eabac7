// SPDX-License-Identifier: Apache-2.0
// Observes the nodes that a function records and reports the first op that differs from earlier calls, once calls
// produce more different graphs than allowed: a sign of dynamic shapes.
//
// The known graphs of a function form a trie: a path from its root is the nodes of one graph in recording order,
// without leaves and constants.
#ifndef HLOKIT_TRACER_STEP_DYNAMIC_SHAPE_DETECTOR_H_
#define HLOKIT_TRACER_STEP_DYNAMIC_SHAPE_DETECTOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tracer/graph/graph_fwd.h"

namespace hlokit::lazy {

class DynamicShapeDetector {
 public:
  explicit DynamicShapeDetector(int64_t max_graphs) : max_graphs_(max_graphs) {}

  // Begins a call.
  void Begin();
  // Adds a recorded node. Requires: the device's mutex. Returns an error, at most once per call, if the graph exceeds
  // the limit.
  absl::Status Add(DeviceState& device, uint32_t node);
  // Ends the call. Returns an error if it ends within the known graphs as a new one that exceeds the limit.
  absl::Status End();

  int64_t graphs() const { return graphs_; }

 private:
  struct TrieNode {
    std::string text;  // of the node
    std::map<std::string, uint32_t> next;
    bool ends = false;  // a graph ends here
  };
  absl::Status TooMany(const std::string& got) const;

  const int64_t max_graphs_;
  int64_t graphs_ = 0;
  std::vector<TrieNode> nodes_ = {TrieNode()};
  uint32_t at_ = 0;
  bool fresh_ = false;   // this call has left the known graphs
  bool failed_ = false;  // the call exceeded the limit
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_DYNAMIC_SHAPE_DETECTOR_H_
