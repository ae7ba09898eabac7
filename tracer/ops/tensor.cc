// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/tensor.h"

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/graph/scope.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

TensorData::TensorData(DeviceState* d, Shape s) : device(d), shape(s) { device->Register(this); }
TensorData::~TensorData() { device->Unregister(this); }

TensorImpl::TensorImpl(Ref<TensorData> d) : data(std::move(d)) {}
TensorImpl::~TensorImpl() {
  if (AccumulateGrad* a = static_cast<AccumulateGrad*>(accumulator.get()); a != nullptr && a->leaf == this)
    a->leaf = nullptr;
}

namespace {

Shape ShapeOfUndefined() {
  static Context* const context = new Context();
  static const Shape shape = context->shapes.Scalar(ElementType::kF32);
  return shape;
}

}  // namespace

Shape Tensor::shape() const { return defined() ? impl()->data->shape : ShapeOfUndefined(); }
int64_t Tensor::size(int64_t dim) const {
  const absl::Span<const int64_t> dims = sizes();
  if (dim < 0) dim += static_cast<int64_t>(dims.size());
  return dim >= 0 && dim < static_cast<int64_t>(dims.size()) ? dims[dim] : 1;
}
DeviceState* Tensor::device() const { return defined() ? impl()->data->device : nullptr; }

bool Tensor::requires_grad() const { return ComputeRequiresGrad(*this); }
Tensor& Tensor::set_requires_grad(bool value) {
  if (defined()) impl()->requires_grad = value;
  return *this;
}
bool Tensor::is_leaf() const { return !defined() || !impl()->grad_fn; }
Tensor Tensor::grad() const { return defined() ? impl()->grad : Tensor(); }
void Tensor::set_grad(Tensor grad) const {
  if (defined()) impl()->grad = std::move(grad);
}

absl::Status Tensor::Backward(const std::source_location& location) const {
  return Backward(Tensor(), false, false, location);
}
absl::Status Tensor::Backward(Tensor gradient, bool retain_graph, bool create_graph,
                              const std::source_location& location) const {
  const ScopedSourceLocation site(location);
  return RunBackward({*this}, {std::move(gradient)}, {}, {retain_graph, create_graph}).status();
}

Tensor Tensor::Detach() const {
  if (!defined()) return Tensor();
  RefreshView(*this);
  return Tensor(new TensorImpl(impl()->data));
}

Tensor Tensor::to(ElementType type, const std::source_location& location) const {
  if (defined() && dtype() == type) return *this;
  return Dispatch({Op::to_copy, location}, Args{*this, type})[0];
}

absl::StatusOr<Literal> Tensor::ToLiteral(const std::source_location& location) const {
  const ScopedSourceLocation site(location);
  if (!defined()) return absl::InvalidArgumentError("an undefined tensor has no value");
  RefreshView(*this);
  return FetchTensor(*this);
}

absl::StatusOr<Literal> Tensor::ItemLiteral(const std::source_location& location) const {
  const ScopedSourceLocation site(location);
  if (!defined()) return absl::InvalidArgumentError("an undefined tensor has no value");
  if (numel() != 1) return absl::InvalidArgumentError("only one element tensors can be converted to Python scalars");
  RefreshView(*this);
  device()->tracer()->metrics().Add("aten::_local_scalar_dense");
  return FetchWithoutMaterializing(*this);
}

absl::StatusOr<Scalar> Tensor::Item(const std::source_location& location) const {
  const absl::StatusOr<Literal> value = ItemLiteral(location);
  if (!value.ok()) return value.status();
  if (dtype() == ElementType::kU64 && value->values<uint64_t>()[0] >> 63 != 0) {
    return absl::OutOfRangeError(
        StrCat("the element ", value->values<uint64_t>()[0], " of u64 is beyond the integers of numbers, 2^63 - 1"));
  }
  return LoadScalar(dtype(), value->data());
}

}  // namespace hlokit::lazy
