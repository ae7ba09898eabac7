// SPDX-License-Identifier: Apache-2.0
// Watches the nodes that a function records and says which op is the first to differ from earlier calls, once the calls
// make more different graphs than allowed: the sign of shapes that change.
//
// The graphs known of a function are a tree: a path from its root is the nodes of one graph in the order in which they
// were recorded, without leaves and constants.
#ifndef HLOKIT_TRACER_STEP_DYNAMIC_SHAPE_DETECTOR_H_
#define HLOKIT_TRACER_STEP_DYNAMIC_SHAPE_DETECTOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hlokit::lazy {

class DeviceState;

class DynamicShapeDetector {
 public:
  explicit DynamicShapeDetector(int64_t max_graphs) : max_graphs_(max_graphs) {}

  // A call begins.
  void Begin();
  // The call recorded `node`, under the device's mutex. An error, once a call, when that makes one graph too many.
  absl::Status Add(DeviceState& device, uint32_t node);
  // The call ends: an error if it ends where no known graph does and that is one too many.
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
  bool fresh_ = false;   // this call has left what was known
  bool failed_ = false;  // and was one too many
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_DYNAMIC_SHAPE_DETECTOR_H_
