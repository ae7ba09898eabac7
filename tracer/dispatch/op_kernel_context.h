// SPDX-License-Identifier: Apache-2.0
// A call of an op for its kernel: arguments by position in the schema, and results to set.
#ifndef HLOKIT_TRACER_DISPATCH_OP_KERNEL_CONTEXT_H_
#define HLOKIT_TRACER_DISPATCH_OP_KERNEL_CONTEXT_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "tracer/graph/op.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/value.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

class OpKernelContext {
 public:
  // Results are added to `outputs`, which is empty.
  OpKernelContext(Op op, Args* args, DeviceState* device, Outputs* outputs)
      : op_(op), args_(*args), device_(device), outputs_(*outputs) {}

  Op op() const { return op_; }
  Args& args() { return args_; }
  DeviceState* device() const { return device_; }

  bool has(size_t i) const { return !args_[i].none(); }
  const Tensor& tensor(size_t i) const {  // undefined if the argument is None
    static const Tensor undefined;
    const Tensor* t = args_[i].get<Tensor>();
    return t == nullptr ? undefined : *t;
  }
  const Tensors& list(size_t i) const {
    static const Tensors empty;
    const Tensors* t = args_[i].get<Tensors>();
    return t == nullptr ? empty : *t;
  }
  Scalar scalar(size_t i) const {
    const Scalar* s = args_[i].get<Scalar>();
    return s == nullptr ? Scalar() : *s;
  }
  int64_t int_arg(size_t k) const { return scalar(k).ToInt(); }
  double float_arg(size_t k) const { return scalar(k).ToDouble(); }
  bool bool_arg(size_t k) const { return scalar(k).ToBool(); }
  Dims ints(size_t i) const {
    const IntList* l = args_[i].get<IntList>();
    return l == nullptr ? Dims() : Dims(*l);
  }
  std::string_view str(size_t i) const {
    const std::string* s = args_[i].get<std::string>();
    return s == nullptr ? std::string_view() : *s;
  }
  ElementType dtype(size_t i, ElementType none) const {
    const ElementType* t = args_[i].get<ElementType>();
    return t == nullptr ? none : *t;
  }

  // Returns a dimension, with negative ones counted from the end; out of range is an error.
  int64_t Dim(int64_t dim, int64_t rank);

  void Return(Tensor t) { outputs_.push_back(std::move(t)); }
  void Return(Tensor a, Tensor b) {
    Return(std::move(a));
    Return(std::move(b));
  }
  void Return(Tensor a, Tensor b, Tensor c) {
    Return(std::move(a), std::move(b));
    Return(std::move(c));
  }
  void Return(Outputs o) { outputs_ = std::move(o); }
  void Fail(std::string_view message);
  bool failed() const { return failed_; }
  Outputs& outputs() { return outputs_; }

 private:
  Op op_;
  Args& args_;
  DeviceState* device_;
  Outputs& outputs_;
  bool failed_ = false;
};

// Makes a node of `op` from unmodified arguments; numbers become operands unless they are attributes of the op.
Outputs Record(DeviceState* device, Op op, absl::Span<const IValue> args);
void RecordInto(DeviceState* device, Op op, absl::Span<const IValue> args, Outputs* outputs);

namespace kernel {
inline IntList Sizes(const Tensor& t) { return IntList(t.sizes().begin(), t.sizes().end()); }

#define ATEN_OP(id, schema, ir, kernel_name, lower, derivative, ...) void kernel_name(OpKernelContext&);
#include "tracer/graph/aten_ops.def"
}  // namespace kernel

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_DISPATCH_OP_KERNEL_CONTEXT_H_
