// SPDX-License-Identifier: Apache-2.0
// Views and in-place writes by functionalization: a view is a separate tensor that records its derivation from its
// parent. A write through it computes new values for all its ancestors; other views of the base are recomputed on next
// use.
#include <algorithm>
#include <vector>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/step/device_state.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

// Returns the new value of the parent of `view`, after the view became `value`.
Tensor Undo(const ViewInfo& view, const Tensor& parent, const Tensor& value) {
  const auto number = [&](size_t i) { return view.args[i].get<Scalar>()->ToInt(); };
  switch (view.op) {
    case Op::select_int:
      return InvokeOp(Op::select_scatter, parent, value, view.args[1], view.args[2]);
    case Op::slice_Tensor:
      return InvokeOp(Op::slice_scatter, parent, value, view.args[1], view.args[2], view.args[3], view.args[4]);
    case Op::diagonal:
      return InvokeOp(Op::diagonal_scatter, parent, value, view.args[1], view.args[2], view.args[3]);
    case Op::as_strided:
      return InvokeOp(Op::as_strided_scatter, parent, value, view.args[1], view.args[2], view.args[3]);
    case Op::transpose_int:
      return InvokeOp(Op::transpose_copy_int, value, number(1), number(2));
    case Op::t:
      return InvokeOp(Op::t_copy, value);
    case Op::permute: {
      const IntList& dims = *view.args[1].get<IntList>();
      IntList inverse(dims.size());
      const int64_t rank = static_cast<int64_t>(dims.size());
      for (int64_t i = 0; i < rank; ++i) inverse[(dims[i] + rank) % rank] = i;
      return InvokeOp(Op::permute_copy, value, inverse);
    }
    case Op::unbind_int:
      return InvokeOp(Op::select_scatter, parent, value, view.args[1], int64_t{view.output});
    case Op::split_Tensor:
    case Op::split_with_sizes: {
      const int64_t dim = (number(2) + parent.dim()) % parent.dim();
      int64_t start = 0;
      if (view.op == Op::split_Tensor) {
        start = number(1) * view.output;
      } else {
        const IntList& sizes = *view.args[1].get<IntList>();
        for (int k = 0; k < view.output; ++k) start += sizes[k];
      }
      return InvokeOp(Op::slice_scatter, parent, value, dim, start, start + value.size(dim), int64_t{1});
    }
    case Op::real:
      if (!IsComplex(parent.dtype())) return value;
      return InvokeOp(Op::complex, value, InvokeOp(Op::imag, parent));
    case Op::imag:
      return InvokeOp(Op::complex, InvokeOp(Op::real, parent), value);
    case Op::view_as_real:
      return InvokeOp(Op::view_as_complex, value);
    case Op::view_as_complex:
      return InvokeOp(Op::view_as_real, value);
    case Op::unfold: {
      // Windows may overlap: the last write of an element counts.
      IntList strides(static_cast<size_t>(parent.dim()), 1);
      for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * parent.size(static_cast<int64_t>(d));
      const int64_t rank = std::max<int64_t>(parent.dim(), 1);
      const size_t dim = static_cast<size_t>((number(1) + rank) % rank);
      const int64_t stride = parent.dim() == 0 ? 1 : strides[dim];
      if (parent.dim() > 0) strides[dim] *= number(3);
      strides.push_back(stride);
      return InvokeOp(Op::as_strided_scatter, parent, value, IntList(value.sizes().begin(), value.sizes().end()),
                      strides, int64_t{0});
    }
    default:
      // All other views keep the elements in order.
      if (value.numel() == parent.numel())
        return InvokeOp(Op::view_copy, value, IntList(parent.sizes().begin(), parent.sizes().end()));
      parent.device()->tracer()->SetError(absl::UnimplementedError(
          StrCat("a write in place through a view made by ", SymbolOf(view.op), " is not supported")));
      return Tensor();
  }
}

// Moves the old value of `to` to separate data: the op that computes the new value has saved it.
void KeepOldValue(DeviceState& device, TensorData* to, Node* function) {
  for (SavedVariable& slot : function->slots) {
    if (slot.data.get() != to || slot.version != to->version) continue;
    Tensor old;
    if (to->buffer != nullptr) {
      to->buffer->read_only = true;
      old = device.NewTensor(to->buffer, to->shape);
    } else {
      old = device.NewTensor(device.ValueOf(to));
    }
    slot.data = old.impl()->data;
    slot.version = slot.data->version;
  }
}

// Sets the value of `t`, with its autograd history unless `keep_place`.
void Assign(const Tensor& t, const Tensor& value, bool keep_place = false) {
  TensorImpl* impl = t.impl();
  TensorData* to = impl->data.get();
  TensorData* from = value.impl()->data.get();
  DeviceState& device = *to->device;
  DeviceLock lock(device.mutex());
  if (to != from && value.impl()->grad_fn && !keep_place) KeepOldValue(device, to, value.impl()->grad_fn.get());
  if (to != from) {
    const NodeOutput ir = device.ValueOf(from);
    if (to->overwritten == nullptr) to->overwritten = std::move(to->buffer);
    to->buffer = from->buffer;
    if (to->buffer != nullptr) to->buffer->read_only = true;  // two values share it
    to->ir = ir;
    to->ir_epoch = device.graph().epoch();
    to->shape = from->shape;
    ++to->version;
  }
  if (keep_place) return;
  if (GradEnabled() && !value.impl()->grad_fn) impl->grad_fn = Ref<Node>();
  if (value.impl()->grad_fn) {
    impl->grad_fn = value.impl()->grad_fn;
    impl->output_number = value.impl()->output_number;
    // The data now belongs to this tensor: saved versions of the result must not appear older.
    for (OutputInfo& info : impl->grad_fn->outputs) {
      if (info.data.get() == from) {
        info.data = impl->data;
        info.version = to->version;
      }
    }
  }
}

}  // namespace

void WriteInPlace(const LocatedTensor& located, Tensor value) {
  const ScopedSourceLocation site(located.location);
  const Tensor& tensor = located.tensor;
  if (!tensor.defined() || !value.defined()) return;
  TensorImpl* impl = tensor.impl();
  Tracer* tracer = tensor.device()->tracer();
  if (GradEnabled() && !impl->grad_fn && impl->requires_grad) {
    tracer->SetError(
        absl::FailedPreconditionError("a leaf Variable that requires grad is being used in an in-place operation."));
    return;
  }
  if (value.sizes() != tensor.sizes()) {
    tracer->SetError(absl::InvalidArgumentError("a write in place has other sizes than the tensor"));
    return;
  }
  // Floats are not implicitly converted to integers, nor integers to bool.
  if (ScalarTypeCategory(value.dtype()) > ScalarTypeCategory(tensor.dtype())) {
    tracer->SetError(
        absl::InvalidArgumentError(StrCat("result type ", ToString(value.dtype()),
                                          " can't be cast to the desired output type ", ToString(tensor.dtype()))));
    return;
  }
  if (value.dtype() != tensor.dtype()) value = To(value, tensor.dtype());
  if (!value.defined()) return;
  if (impl->view == nullptr) {
    Assign(tensor, value);
    return;
  }
  RefreshView(tensor);
  struct Write {
    Tensor tensor, value;
    bool detached;  // the write is through a detached tensor: not differentiated
  };
  std::vector<Write> writes;
  Tensor at = tensor;
  Tensor fresh = value;
  bool detached = false;
  while (true) {
    writes.push_back({at, fresh, detached});
    if (at.impl()->view == nullptr) break;
    const ViewInfo& view = *at.impl()->view;
    const Tensor parent = view.parent;
    RefreshView(parent);
    if (view.op == Op::detach) {  // shares its parent's value
      detached = true;
      at = parent;
      continue;
    }
    const AutoGradMode mode(GradEnabled() && !detached);
    if (GradEnabled() && parent.impl()->view == nullptr && !parent.impl()->grad_fn && parent.impl()->requires_grad) {
      tracer->SetError(absl::FailedPreconditionError(
          "a view of a leaf Variable that requires grad is being used in an in-place operation."));
      return;
    }
    fresh = Undo(view, parent, fresh);
    if (!fresh.defined()) return;
    at = parent;
  }
  const TensorImpl* done = nullptr;
  for (const Write& write : writes) {
    TensorImpl* const target = write.tensor.impl();
    if (done == nullptr || target->data.get() != done->data.get()) {
      Assign(write.tensor, write.value, write.detached);
      done = target;
    } else if (!write.detached) {  // an alias: same value and history
      target->grad_fn = done->grad_fn;
      target->output_number = done->output_number;
    }
  }
  for (const Write& write : writes) write.tensor.impl()->generation = at.impl()->data->version;
}

void kernel::ResizeInPlace(OpKernelContext& c) {
  const Tensor& t = c.tensor(0);
  if (t.requires_grad()) return c.Fail("cannot resize variables that require grad");
  int64_t elements = 1;
  for (int64_t size : c.ints(1)) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) {
      return c.Fail(StrCat("Trying to create tensor with negative dimension: ", ListToString(c.ints(1))));
    }
  }
  if (elements == t.numel() && c.ints(1) == t.sizes()) return c.Return(t);
  if (t.impl()->view != nullptr) return c.Fail("a view cannot be resized");
  // The first elements stay; torch leaves new ones undefined.
  Tensor flat = Reshape(t, {t.numel()});
  flat = elements <= t.numel() ? Slice(flat, 0, 0, elements)
                               : InvokeOp(Op::constant_pad_nd, flat, IntList{0, elements - t.numel()}, 0);
  const Tensor resized = Reshape(flat, c.ints(1));
  if (!resized.defined()) return;
  Assign(t, resized);
  c.Return(t);
}

void RefreshView(const Tensor& tensor) {
  if (!tensor.defined() || tensor.impl()->view == nullptr) return;
  // Outdated views, from the base to this view.
  std::vector<Tensor> chain = {tensor};
  while (chain.back().impl()->view != nullptr) chain.push_back(chain.back().impl()->view->parent);
  const uint32_t generation = chain.back().impl()->data->version;
  for (size_t i = chain.size() - 1; i-- > 0;) {
    TensorImpl* impl = chain[i].impl();
    if (impl->generation == generation) continue;
    impl->generation = generation;
    if (impl->view->op == Op::detach) continue;                    // shares its parent's value
    const std::unique_ptr<ViewInfo> view = std::move(impl->view);  // avoids being an argument of its own op
    Outputs outputs = Dispatch(view->op, Args(view->args));
    Tensor fresh = outputs.size() > static_cast<size_t>(view->output) ? outputs[view->output] : Tensor();
    impl->view = std::make_unique<ViewInfo>(*view);
    if (!fresh.defined()) continue;
    fresh.impl()->view = nullptr;
    Assign(chain[i], fresh);
  }
}

}  // namespace hlokit::lazy
