// SPDX-License-Identifier: Apache-2.0
// A lazy tensor: a handle to a value that is recorded and possibly not yet computed. Copies of a handle refer to the
// same tensor. Ops append to the graph of the tensors' device (functions.h, dispatch.h); Tracer::MarkStep or a fetch
// computes values.
//
// Errors do not throw: a failed op returns an undefined tensor, ops on undefined tensors are undefined too, and
// Tracer::status() returns the first error.
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
#include "tracer/graph/graph_fwd.h"
#include "tracer/graph/ref_counted.h"
#include "tracer/graph/scalar.h"

namespace hlokit::lazy {

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

  // Returns the shape, an array in the device's shape table. An undefined tensor has f32[], so that code after an error
  // completes; it has no device (null) and no gradient.
  Shape shape() const;
  absl::Span<const int64_t> sizes() const { return shape().dims(); }
  int64_t size(int64_t dim) const;  // negative: counted from the end
  int64_t dim() const { return shape().rank(); }
  int64_t numel() const { return shape().element_count(); }
  ElementType dtype() const { return shape().element_type(); }
  DeviceState* device() const;

  // ---- autograd ----
  bool requires_grad() const;  // true for leaves so marked, and for results that depend on one
  Tensor& set_requires_grad(bool value);
  bool is_leaf() const;
  Tensor grad() const;
  void set_grad(Tensor grad) const;
  // Adds d(this)/d(leaf) to the grad of every leaf. `gradient`: initial gradient, 1 for a scalar.
  absl::Status Backward(const std::source_location& location = std::source_location::current()) const;
  absl::Status Backward(Tensor gradient, bool retain_graph = false, bool create_graph = false,
                        const std::source_location& location = std::source_location::current()) const;
  // Returns the same value without autograd history.
  Tensor Detach() const;

  // ---- values ---- Returns the value, as print() and .cpu() do: materializes the tensor.
  absl::StatusOr<Literal> ToLiteral(const std::source_location& location = std::source_location::current()) const;
  // Returns the number in a tensor of one element, as .item() does: computes it and keeps the graph, so that the next
  // step computes it again.
  // Returns OUT_OF_RANGE for an integer of u64 that is beyond s64.
  absl::StatusOr<Scalar> Item(const std::source_location& location = std::source_location::current()) const;

  // Returns the same as a literal, of any element type.
  absl::StatusOr<Literal> ItemLiteral(const std::source_location& location = std::source_location::current()) const;

  // ---- ops that torch has as methods ---- Rows of aten_ops.def, with the arguments of the schema in order; a name
  // that ends in `_` writes the result to this tensor.
#ifndef HLOKIT_WITHOUT_TENSOR_METHODS  // the program that writes them
#include "tracer/graph/tensor_methods.inc"
#endif
  // Returns the tensor itself if it has the type.
  Tensor to(ElementType type, const std::source_location& location = std::source_location::current()) const;

 private:
  RefCounted* impl_;  // a TensorImpl, whose definition few files need
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_TENSOR_H_
