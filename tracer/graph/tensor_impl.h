// SPDX-License-Identifier: Apache-2.0
// Implementation of Tensor. TensorData is the value, which a tensor and its detached aliases share; TensorImpl adds
// autograd and view state of one handle.
#ifndef HLOKIT_TRACER_GRAPH_TENSOR_IMPL_H_
#define HLOKIT_TRACER_GRAPH_TENSOR_IMPL_H_

#include <cstdint>
#include <memory>

#include "tracer/graph/graph.h"
#include "tracer/graph/graph_fwd.h"
#include "tracer/graph/object_pool.h"
#include "tracer/graph/ref_counted.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// A value: pending (a node of the graph), on the device (a buffer), or both. Registered with its device for its
// lifetime.
class TensorData : public RefCounted, public Pooled<TensorData> {
 public:
  TensorData(DeviceState* device, Shape shape);
  ~TensorData() override;

  DeviceState* device;
  Shape shape;
  NodeOutput ir;  // valid while ir_epoch is the graph's
  uint32_t ir_epoch = 0;
  uint32_t place = 0;                                  // index among the live values of the device
  std::shared_ptr<runtime::DeviceBuffer> buffer;       // set if the value is, or will be, on the device
  std::shared_ptr<runtime::DeviceBuffer> overwritten;  // buffer that a pending in-place write replaces: can be donated
  uint64_t id = 0;                                     // in order of creation
  uint32_t version = 0;                                // incremented by every in-place write
  ListId sharding;                                     // arguments of its device data (tiling.h); invalid: none
  bool follows_base = false;                           // a view with a value of its own
  bool dropped_base = false;                           // a view of a tensor that is no longer there
};

// Derivation of a view from its parent.
struct ViewInfo {
  Tensor parent;
  Op op;
  Args args;       // argument 0 is the parent
  int output = 0;  // for ops with several outputs
  int depth = 1;   // of the views between it and the base
};

class TensorImpl : public RefCounted, public Pooled<TensorImpl> {
 public:
  explicit TensorImpl(Ref<TensorData> d);
  ~TensorImpl() override;

  Ref<TensorData> data;
  // Views.
  std::unique_ptr<ViewInfo> view;
  uint32_t generation = 0;  // for views: the version of the base's value that it reflects
  // Autograd.
  uint32_t output_number : 31 = 0;  // of grad_fn
  uint32_t requires_grad : 1 = 0;   // as set, for leaves
  Ref<Node> grad_fn;
  Tensor grad;
  Ref<RefCounted> accumulator;  // this leaf's accumulator in autograd graphs
};
static_assert(sizeof(TensorImpl) == 64, "a handle is one line of the cache");

inline Tensor::Tensor(TensorImpl* impl) : impl_(impl) { impl_->AddRef(); }
inline TensorImpl* Tensor::impl() const { return static_cast<TensorImpl*>(impl_); }

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_TENSOR_IMPL_H_
