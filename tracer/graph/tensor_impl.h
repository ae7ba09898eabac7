// SPDX-License-Identifier: Apache-2.0
// What stands behind a Tensor. TensorData is the value, which a tensor and its detached twins share; TensorImpl adds
// what autograd and views know of one handle.
#ifndef HLOKIT_TRACER_GRAPH_TENSOR_IMPL_H_
#define HLOKIT_TRACER_GRAPH_TENSOR_IMPL_H_

#include <cstdint>
#include <memory>

#include "tracer/graph/graph.h"
#include "tracer/graph/object_pool.h"
#include "tracer/graph/ref_counted.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

class Node;

// A value: pending (a node of the graph), on the device (a buffer), or both. Registered with its device while it lives.
class TensorData : public RefCounted, public Pooled<TensorData> {
 public:
  TensorData(DeviceState* device, Shape shape);
  ~TensorData() override;

  DeviceState* device;
  Shape shape;
  NodeOutput ir;  // valid while ir_epoch is the graph's
  uint32_t ir_epoch = 0;
  uint32_t place = 0;                                  // among the values of the device that live
  std::shared_ptr<runtime::DeviceBuffer> buffer;       // when the value is, or will be, on the device
  std::shared_ptr<runtime::DeviceBuffer> overwritten;  // what a pending write in place replaces: may be donated
  uint64_t id = 0;                                     // in order of creation
  uint32_t version = 0;                                // goes up with every write in place
  bool follows_base = false;                           // of a view that has a value of its own
};

// How a view follows from the tensor it looks at.
struct ViewInfo {
  Tensor parent;
  Op op;
  Args args;       // argument 0 is the parent
  int output = 0;  // of an op with several
};

class TensorImpl : public RefCounted, public Pooled<TensorImpl> {
 public:
  explicit TensorImpl(Ref<TensorData> d);
  ~TensorImpl() override;

  Ref<TensorData> data;
  // views
  std::unique_ptr<ViewInfo> view;
  uint32_t generation = 0;  // of a view: the version of its base's value that it shows
  // autograd
  uint32_t output_number : 31 = 0;  // of grad_fn
  uint32_t requires_grad : 1 = 0;   // as told, for leaves
  Ref<Node> grad_fn;
  Tensor grad;
  Ref<RefCounted> accumulator;  // the place of this leaf in graphs of derivatives
};
static_assert(sizeof(TensorImpl) == 64, "a handle is one line of the cache");

inline Tensor::Tensor(TensorImpl* impl) : impl_(impl) { impl_->AddRef(); }
inline TensorImpl* Tensor::impl() const { return static_cast<TensorImpl*>(impl_); }

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_TENSOR_IMPL_H_
