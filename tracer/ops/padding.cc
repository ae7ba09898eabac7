// SPDX-License-Identifier: Apache-2.0
// Padding by elements of the tensor itself: reflection, replication, wrapping.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/ops/layer_arguments.h"

namespace hlokit::lazy::kernel {
namespace {

constexpr int64_t kMaxPadded = 1 << 20;  // each index is an element of a constant

// Replaces each dimension that is padded by its elements at place(p, size) for p from -low to size + high.
template <typename Place>
void PadByIndices(OpKernelContext& c, Place place) {
  const Dims pad = c.ints(1);
  Tensor t = c.tensor(0);
  const int64_t spatial = static_cast<int64_t>(pad.size()) / 2;
  if (pad.size() % 2 != 0 || t.dim() < spatial + 1 || t.dim() > spatial + 2) {
    return c.Fail(
        StrCat("a tensor of ", spatial + 1, " or ", spatial + 2, " dimensions is expected, but it has ", t.dim()));
  }
  for (size_t i = 0; i < pad.size() / 2 && t.defined(); ++i) {
    const int64_t dim = t.dim() - 1 - static_cast<int64_t>(i), size = t.size(dim);
    const int64_t low = pad[2 * i], high = pad[2 * i + 1];
    if (size > kMaxPadded || low > kMaxPadded || high > kMaxPadded || low < -kMaxPadded || high < -kMaxPadded ||
        size + low + high < 1) {
      return c.Fail("the padding is incompatible with the rank of the input");
    }
    std::vector<double> places;
    for (int64_t p = -low; p < size + high; ++p) {
      const int64_t at = place(p, size);
      if (at < 0 || at >= size) return c.Fail("the padding is incompatible with the rank of the input");
      places.push_back(static_cast<double>(at));
    }
    t = SelectPlaces(c, t, dim, places);
  }
  c.Return(t);
}

}  // namespace

void ReflectionPad(OpKernelContext& c) {
  PadByIndices(c, [](int64_t p, int64_t size) { return p < 0 ? -p : p >= size ? 2 * (size - 1) - p : p; });
}
void ReplicationPad(OpKernelContext& c) {
  PadByIndices(c, [](int64_t p, int64_t size) { return std::clamp<int64_t>(p, 0, size - 1); });
}
void CircularPad(OpKernelContext& c) {
  PadByIndices(c, [](int64_t p, int64_t size) { return p < 0 ? p + size : p >= size ? p - size : p; });
}

// self, pad, mode, value?
void PadByMode(OpKernelContext& c) {
  const std::string_view mode = c.str(2);
  if (c.ints(1).size() % 2 != 0) return c.Fail("Padding length must be divisible by 2");
  if (mode == "constant") {
    return c.Return(InvokeOp(Op::constant_pad_nd, c.tensor(0), c.ints(1), c.has(3) ? c.scalar(3) : Scalar(0)));
  }
  if (c.has(3) && !c.scalar(3).Is(0)) {
    return c.Fail(StrCat("Padding mode \"", mode, "\" doesn't take in value argument"));
  }
  const size_t spatial = c.ints(1).size() / 2;
  const int64_t rank = c.tensor(0).dim() - static_cast<int64_t>(spatial);
  if (spatial < 1 || spatial > 3 || rank < 1 || rank > 2) {
    return c.Fail("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
  }
  constexpr Op kReflection[] = {Op::reflection_pad1d, Op::reflection_pad2d, Op::reflection_pad3d};
  constexpr Op kReplication[] = {Op::replication_pad1d, Op::replication_pad2d, Op::replication_pad3d};
  if (mode == "reflect") return c.Return(InvokeOp(kReflection[spatial - 1], c.tensor(0), c.ints(1)));
  if (mode == "replicate") return c.Return(InvokeOp(kReplication[spatial - 1], c.tensor(0), c.ints(1)));
  if (mode == "circular") return c.Return(InvokeOp(Op::pad_circular, c.tensor(0), c.ints(1)));
  c.Fail(StrCat("Unrecognised padding mode ", mode));
}

}  // namespace hlokit::lazy::kernel
