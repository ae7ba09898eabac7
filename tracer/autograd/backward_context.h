// SPDX-License-Identifier: Apache-2.0
// A call being differentiated: its arguments, its results and their gradients; the derivative sets gradients of its
// arguments.
//
// Gradients may have the shape and type of a broadcast result: they are summed to the argument's shape and converted to
// its type afterwards.
//
// The gradient of a complex argument is torch's: the derivative by the real part plus i times that by the imaginary
// one. For a holomorphic f it is g conj(f'(z)). Therefore complex arguments and results appear as their conjugates, so
// that formulas for real numbers hold; others use Conjugate again.
#ifndef HLOKIT_TRACER_AUTOGRAD_BACKWARD_CONTEXT_H_
#define HLOKIT_TRACER_AUTOGRAD_BACKWARD_CONTEXT_H_

#include <string_view>
#include <utility>
#include <vector>

#include "tracer/graph/grad_function.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

class BackwardContext {
 public:
  BackwardContext(const Node* function, const Outputs* gradients);

  Op op() const { return function_.op; }
  bool has(size_t i) const { return !function_.args[i].none(); }
  // Returns a tensor argument with its value at the call, conjugated. An in-place write since then is an error.
  const Tensor& in(size_t i);
  Tensors list(size_t i);
  Scalar scalar(size_t i) const {
    const Scalar* s = function_.args[i].get<Scalar>();
    return s == nullptr ? Scalar() : *s;
  }
  int64_t int_arg(size_t k) const { return scalar(k).ToInt(); }
  double float_arg(size_t k) const { return scalar(k).ToDouble(); }
  bool bool_arg(size_t k) const { return scalar(k).ToBool(); }
  Dims ints(size_t i) const {
    const IntList* l = function_.args[i].get<IntList>();
    return l == nullptr ? Dims() : Dims(*l);
  }
  std::string_view str(size_t i) const {
    const std::string* s = function_.args[i].get<std::string>();
    return s == nullptr ? std::string_view() : *s;
  }
  // Returns the shape of a tensor argument (of member k of a list).
  Shape shape(size_t i, size_t k = 0) const { return function_.slots[slots_[i] + k].shape; }
  size_t list_size(size_t i) const { return function_.args[i].get<Tensors>()->size(); }
  // Returns a result of the call, conjugated.
  Tensor out(size_t k = 0);
  Shape out_shape(size_t k = 0) const { return function_.outputs[k].shape; }
  size_t output_count() const { return function_.outputs.size(); }
  // Returns the gradient of a result. Undefined if nothing depends on it, except for the only result of a call.
  const Tensor& grad_output(size_t k = 0) const { return gradients_[k]; }
  // Returns the gradient of a result, or zeros if undefined.
  Tensor grad_output_or_zeros(size_t k);

  bool needs(size_t i, size_t k = 0) const { return function_.slots[slots_[i] + k].edge.valid(); }
  void set(size_t i, Tensor gradient, size_t k = 0) {
    if (needs(i, k)) results_[slots_[i] + k] = std::move(gradient);
  }
  Tensor TakeResult(size_t slot) { return std::move(results_[slot]); }
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const absl::Status& status() const { return status_; }

 private:
  // Returns the tensor argument of a slot, reconstructed from its saved value.
  const Tensor& Saved(size_t slot);

  const Node& function_;
  const Outputs& gradients_;
  absl::InlinedVector<uint32_t, 12> slots_;  // by argument: its first slot
  Outputs saved_;                            // by slot, created on demand
  Outputs results_;
  absl::Status status_;
};

// Returns the conjugate of a complex tensor, others unchanged.
Tensor Conjugate(const Tensor& t);
// Returns false, with an error, for complex matrices in argument 0.
bool HasRealMatrices(BackwardContext& c);

namespace derivative {
inline IntList Sizes(Shape s) { return IntList(s.dims().begin(), s.dims().end()); }

#define ATEN_OP(id, schema, ir, kernel, lower, derivative_name, ...) void derivative_name(BackwardContext&);
#include "tracer/graph/aten_ops.def"
}  // namespace derivative

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_AUTOGRAD_BACKWARD_CONTEXT_H_
