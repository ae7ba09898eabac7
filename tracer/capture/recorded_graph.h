// SPDX-License-Identifier: Apache-2.0
// A graph that was recorded once and is appended to graphs of devices as a unit, with other arguments: what a compiler
// captured of a program runs so as a part of the step around it. The nodes are those of a recording op by op.
#ifndef HLOKIT_TRACER_CAPTURE_RECORDED_GRAPH_H_
#define HLOKIT_TRACER_CAPTURE_RECORDED_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/types/element_type.h"
#include "tracer/graph/op.h"
#include "tracer/graph/scalar.h"
#include "tracer/graph/scope.h"
#include "tracer/graph/tensor.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy {

class RecordedGraph {
 public:
  struct Argument {
    std::shared_ptr<runtime::DeviceBuffer> buffer;
    ElementType type;
    std::vector<int64_t> dims;
  };
  // Takes what computes `results` from `arguments`, which are values on their device; other values that it reads are
  // numbers. `seed`: what stands for the seed of random numbers, which was the device's before the first node; the
  // device's is now that of after the last. Returns an error for a graph with collectives, or of values that the
  // program computes elsewhere.
  static absl::StatusOr<std::unique_ptr<RecordedGraph>> Make(DeviceState& device, const Tensors& results,
                                                             absl::Span<const Argument> arguments,
                                                             const std::shared_ptr<runtime::DeviceBuffer>& seed);

  // Appends the nodes to the graph of a device, and returns the results. `arguments`: tensors of the device with the
  // shapes of those of the recording.
  absl::StatusOr<Tensors> Append(DeviceState& device, const Tensors& arguments) const;

  size_t node_count() const { return nodes_.size(); }
  bool draws_random_numbers() const { return seed_after_.has_value(); }

 private:
  struct Leaf {
    enum class Kind : uint8_t { kArgument, kSeed, kNumber, kConstant } kind;
    uint32_t index = 0;  // of an argument, number or constant
  };
  struct Number {
    ElementType type;
    std::vector<int64_t> dims;
    std::vector<std::byte> bytes;
  };
  struct Constant {
    ElementType type;
    Scalar value;
  };
  struct ValueRef {
    uint32_t value = 0;  // the leaves, then the nodes
    uint32_t output = 0;
  };
  struct RecordedNode {
    Op op;
    uint32_t attrs;  // index into attrs_
    uint32_t operand_begin;
    uint32_t operand_count;
    uint32_t scope;  // index into scopes_ from 1; 0: none
    uint32_t frame;  // index into frames_ from 1; 0: none
  };
  // Lists and texts as numbers of a context.
  struct Interned {
    std::weak_ptr<Context> context;
    std::vector<ListId> attrs;
    std::vector<uint32_t> scopes;
  };
  class Recording;

  RecordedGraph() = default;
  std::shared_ptr<const Interned> InternedIn(DeviceState& device) const;
  absl::Status CheckArguments(DeviceState& device, const Tensors& arguments) const;
  NodeOutput LeafNode(DeviceState& device, const Leaf& leaf, const Tensors& arguments) const;

  std::vector<Leaf> leaves_;
  std::vector<Number> numbers_;
  std::vector<Constant> constants_;
  std::vector<RecordedNode> nodes_;
  std::vector<ValueRef> operands_;
  std::vector<std::vector<int64_t>> attrs_;
  std::vector<std::string> scopes_;
  std::vector<SourceFrame> frames_;
  std::vector<Number> arguments_;  // without bytes
  std::vector<ValueRef> results_;
  std::optional<ValueRef> seed_after_;  // of a graph that draws random numbers

  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Interned> interned_;  // in the last context
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_CAPTURE_RECORDED_GRAPH_H_
