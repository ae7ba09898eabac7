// SPDX-License-Identifier: Apache-2.0
// A lazy tensor: a handle to a value that has been described and maybe not computed yet. Copies of a handle are the
// same tensor. Ops on tensors append to the graph of their device (functions.h, dispatch.h); values are computed by
// Tracer::MarkStep or when they are fetched.
//
// Errors do not throw: an op that cannot be done gives an undefined tensor, whatever uses that is undefined too, and
// Tracer::status() has the first error.
#ifndef HLOKIT_TRACER_GRAPH_TENSOR_H_
#define HLOKIT_TRACER_GRAPH_TENSOR_H_

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/types/element_type.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"
#include "tracer/graph/dim_list.h"
#include "tracer/graph/ref_counted.h"
#include "tracer/graph/scalar.h"

namespace hlokit::lazy {

class DeviceState;
class Tensor;
class TensorImpl;

using Tensors = std::vector<Tensor>;

class Tensor {
 public:
  Tensor() : impl_(nullptr) {}
  inline explicit Tensor(TensorImpl* impl);  // takes a reference; tensor_impl.h
  Tensor(const Tensor& o) : impl_(o.impl_) {
    if (impl_ != nullptr) impl_->AddRef();
  }
  Tensor(Tensor&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Tensor() {
    if (impl_ != nullptr) impl_->Release();
  }

  bool defined() const { return impl_ != nullptr; }
  inline TensorImpl* impl() const;  // tensor_impl.h
  friend bool SameTensor(const Tensor& a, const Tensor& b) { return a.impl_ == b.impl_; }

  // Of the device's shape table; an array. An undefined tensor has that of a number, f32[], so that code which follows
  // an error comes to its end; it is on no device (null), and has no gradient.
  Shape shape() const;
  absl::Span<const int64_t> sizes() const { return shape().dims(); }
  int64_t size(int64_t dim) const;  // negative: from the end
  int64_t dim() const { return shape().rank(); }
  int64_t numel() const { return shape().element_count(); }
  ElementType dtype() const { return shape().element_type(); }
  DeviceState* device() const;

  // ---- autograd ----
  bool requires_grad() const;  // a leaf that was told so, or a result that depends on one
  Tensor& set_requires_grad(bool value);
  bool is_leaf() const;
  Tensor grad() const;
  void set_grad(Tensor grad) const;
  // Adds d(this)/d(leaf) into the grad of every leaf. `gradient`: what to start from, 1 for a scalar.
  absl::Status Backward() const;
  absl::Status Backward(Tensor gradient, bool retain_graph = false, bool create_graph = false) const;
  // The same value, cut off from the graph of derivatives.
  Tensor Detach() const;

  // ---- values ----
  // The value, as print() and .cpu() get it: the tensor is computed and stays computed.
  absl::StatusOr<Literal> ToLiteral(const std::source_location& location = std::source_location::current()) const;
  // The number in a tensor of one element, as .item() gets it: what it needs is computed and the graph is kept, so the
  // next step computes it again.
  absl::StatusOr<Scalar> Item(const std::source_location& location = std::source_location::current()) const;

  // ---- ops, as torch has them as methods ----
  // Of the rows of aten_ops.def. Arguments are those of the schema in its order; a name with `_` at its end writes the
  // result over this tensor.
#include "tracer/graph/tensor_methods.def"
  // The tensor itself if it has the type.
  Tensor to(ElementType type) const;

 private:
  RefCounted* impl_;  // a TensorImpl, whose definition few need
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_TENSOR_H_
