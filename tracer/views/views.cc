// SPDX-License-Identifier: Apache-2.0
// Views and in-place writes by functionalization: a view is a separate tensor that records its derivation from its
// parent. A write through it computes new values for its ancestors; other views of the base are recomputed on next use.
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
#include "tracer/views/base_tensor.h"
#include "tracer/views/strided_place.h"

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
    case Op::unfold: {  // of windows that do not overlap
      StridedPlace place = PlaceOfAll(parent.sizes());
      FollowView(view, value.sizes(), &place);
      return InvokeOp(Op::as_strided_scatter, parent, value, place.sizes, place.strides, place.offset);
    }
    case Op::view_dtype:
      return InvokeOp(Op::view_copy_dtype, value, parent.dtype());
    default:
      // All other views keep the elements in order.
      if (value.numel() == parent.numel())
        return InvokeOp(Op::view_copy, value, IntList(parent.sizes().begin(), parent.sizes().end()));
      parent.device()->tracer()->SetError(absl::UnimplementedError(
          StrCat("a write in place through a view made by ", SymbolOf(view.op), " is not supported")));
      return Tensor();
  }
}

// Returns for each element of a view which element of the base it is, from the same of its parent; of elements of
// another width than the base's, in multiples of that width.
Tensor PlacesInView(const ViewInfo& view, ElementType type, const Tensor& places) {
  const int64_t from = BytesOf(view.parent.dtype()), to = BytesOf(type);
  switch (view.op) {
    case Op::real:
      return from == to ? places : places * Scalar(2);
    case Op::imag:
      return places * Scalar(2) + Scalar(1);
    case Op::view_as_real:
    case Op::view_as_complex:
    case Op::view_dtype:
      break;
    default: {
      Args args(view.args);
      args[0] = places;
      const Outputs outputs = Dispatch(view.op, std::move(args));
      return outputs.size() > static_cast<size_t>(view.output) ? outputs[view.output] : Tensor();
    }
  }
  if (from == to) return places;
  IntList sizes(places.sizes().begin(), places.sizes().end());
  if (from > to) {
    const Tensor parts = Unsqueeze(places, -1) * Scalar(from / to) + Arange(from / to);
    if (view.op == Op::view_as_real) return parts;
    sizes.back() *= from / to;
    return Reshape(parts, sizes);
  }
  sizes.back() /= to / from;
  sizes.push_back(to / from);
  return InvokeOp(Op::floor_divide_Scalar, InvokeOp(Op::select_copy_int, Reshape(places, sizes), -1, 0),
                  Scalar(to / from));
}

// Returns the value of an ancestor after `views`, from one of it to the last one's, became `value`: exactly the
// elements that the last one has are written.
Tensor ScatterThrough(const Tensor& ancestor, const std::vector<Tensor>& views, const Tensor& value) {
  if (value.numel() == 0) return ancestor;
  Tensor places = Reshape(Arange(ancestor.numel()), IntList(ancestor.sizes().begin(), ancestor.sizes().end()));
  for (const Tensor& view : views) places = PlacesInView(*view.impl()->view, view.dtype(), places);
  Tensor flat = Reshape(ancestor, {ancestor.numel()});
  const bool other = ancestor.dtype() != value.dtype();
  if (other) flat = InvokeOp(Op::view_copy_dtype, flat, value.dtype());
  const IntList count = {value.numel()};
  flat = InvokeOp(Op::index_copy, flat, 0, Reshape(places, count), Reshape(value, count));
  if (other) flat = InvokeOp(Op::view_copy_dtype, flat, ancestor.dtype());
  return Reshape(flat, IntList(ancestor.sizes().begin(), ancestor.sizes().end()));
}

// Returns the views from the base-most one whose elements may coincide, to `tensor`; none if there is none.
std::vector<Tensor> ViewsFromOverlap(const Tensor& tensor) {
  std::vector<Tensor> chain, found;
  for (Tensor at = tensor; at.impl()->view != nullptr; at = at.impl()->view->parent) {
    chain.push_back(at);
    if (MayOverlap(*at.impl()->view, at.sizes())) found = chain;
  }
  return {found.rbegin(), found.rend()};
}

// Makes a view, whose chain of views is long, one of the base-most tensor in whose elements it lies at strides.
void ShortenChain(const Tensor& tensor) {
  std::vector<Tensor> chain = {tensor};
  while (chain.back().impl()->view != nullptr) chain.push_back(chain.back().impl()->view->parent);
  Tensor base = chain.back();
  StridedPlace place = PlaceOfAll(base.sizes());
  for (size_t i = chain.size() - 1; i-- > 0;) {
    const ViewInfo& view = *chain[i].impl()->view;
    if ((view.op == Op::detach && GradEnabled()) || !FollowView(view, chain[i].sizes(), &place)) {
      base = chain[i];
      place = PlaceOfAll(base.sizes());
    }
  }
  if (SameTensor(base, tensor)) return;
  const int depth = base.impl()->view == nullptr ? 1 : base.impl()->view->depth + 1;
  Args args = {base, place.sizes, place.strides, place.offset};
  tensor.impl()->view = std::make_unique<ViewInfo>(ViewInfo{base, Op::as_strided, std::move(args), 0, depth});
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

void AttachViews(Op op, const Args& args, const Outputs& outputs) {
  constexpr int kMaxDepth = 8;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (SameTensor(outputs[k], *args[0].get<Tensor>())) continue;
    auto view = std::make_unique<ViewInfo>(ViewInfo{*args[0].get<Tensor>(), op, args, static_cast<int>(k), 1});
    while (!GradEnabled() && view->parent.impl()->view != nullptr && view->parent.impl()->view->op == Op::detach) {
      const Tensor parent = view->parent.impl()->view->parent;  // has the same value
      view->args[0] = parent;
      view->parent = parent;
    }
    TensorImpl* const parent = view->parent.impl();
    if (parent->view != nullptr) view->depth = parent->view->depth + 1;
    TensorImpl* const impl = outputs[k].impl();
    impl->generation = BaseOf(view->parent).impl()->data->version;
    impl->data->follows_base |= impl->data.get() != parent->data.get();
    const bool deep = view->depth > kMaxDepth;
    impl->view = std::move(view);
    if (deep && op != Op::detach) ShortenChain(outputs[k]);
  }
}

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
  std::vector<Tensor> overlap = ViewsFromOverlap(tensor);
  while (true) {
    writes.push_back({at, fresh, detached});
    if (at.impl()->view == nullptr) break;
    // Other views between the ancestor and this one are computed again on their next use.
    if (!overlap.empty()) at = overlap.front();
    const ViewInfo& view = *at.impl()->view;
    const Tensor parent = view.parent;
    RefreshView(parent);
    for (const Tensor& passed : overlap) detached |= passed.impl()->view->op == Op::detach;
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
    fresh = overlap.empty() ? Undo(view, parent, fresh) : ScatterThrough(parent, overlap, fresh);
    overlap.clear();
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
