// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/ffi_buffers.h"

#include <algorithm>

#include "absl/types/span.h"
#include "ir/core/str_cat.h"
#include "ir/types/literal.h"
#include "pjrt/ffi/ffi_attributes.h"
#include "pjrt/values/host_array.h"
#include "pjrt/values/layout.h"

namespace hlokit::pjrt {
namespace {

bool IsPacked(Shape shape) {
  return shape.IsArray() && shape.element_type() != ElementType::kPred && BitsOf(shape.element_type()) < 8;
}

// Returns true if a handler gets the elements in another order than ours.
bool HasOtherOrder(Shape shape) {
  if (!shape.IsArray() || !shape.has_layout()) return false;
  const absl::Span<const int64_t> order = shape.layout()->minor_to_major;
  return static_cast<int64_t>(order.size()) == shape.rank() &&
         !CanonicalOrder(std::vector<int64_t>(order.begin(), order.end())).empty();
}

size_t BytesOfElements(Shape shape) {
  return static_cast<size_t>(shape.element_count()) * static_cast<size_t>(BytesOf(shape.element_type()));
}

// Copies elements between our order, row-major, and the order of the layout.
void CopyInOrder(Shape shape, const std::byte* from, std::byte* to, bool to_layout) {
  const ElementType type = shape.element_type();
  const std::vector<int64_t> ours = DenseStrides(type, shape.dims());
  const std::vector<int64_t> theirs =
      HasOtherOrder(shape) ? StridesOfOrder(shape.layout()->minor_to_major, type, shape.dims()) : ours;
  CopyStrided(from, to_layout ? ours : theirs, to, to_layout ? theirs : ours, shape.dims(), BytesOf(type));
}

}  // namespace

absl::Status FfiBuffers::Add(const interp::CustomCallOperand& operand) {
  const Shape shape = operand.shape;
  auto* data = const_cast<std::byte*>(operand.data);
  if (IsPacked(shape) || HasOtherOrder(shape)) {
    std::vector<std::byte>& copy = copies_.emplace_back(BytesOfElements(shape));
    CopyInOrder(shape, operand.data, copy.data(), /*to_layout=*/true);
    if (IsPacked(shape)) {
      // Of the same size: handlers take one byte an element for granted.
      std::vector<std::byte> packed = PackSubByte(copy, BitsOf(shape.element_type()));
      packed.resize(copy.size());
      copy = std::move(packed);
    }
    data = copy.data();
    copy_of_[operand.data] = &copy;
  }
  return AddBuffer(shape, data);
}

absl::Status FfiBuffers::Add(const interp::CustomCallResult& result, const FfiBuffers& operands) {
  const Shape shape = result.shape;
  std::byte* data = result.data;
  if (IsPacked(shape) || HasOtherOrder(shape)) {
    const auto shared = operands.copy_of_.find(result.data);
    const bool is_operand = shared != operands.copy_of_.end() && shared->second->size() == BytesOfElements(shape);
    std::vector<std::byte>& copy = is_operand ? *shared->second : copies_.emplace_back(BytesOfElements(shape));
    results_.push_back({shape, &copy, result.data});
    data = copy.data();
  }
  return AddBuffer(shape, data);
}

absl::Status FfiBuffers::AddBuffer(Shape shape, std::byte* data) {
  const XLA_FFI_DataType type = FfiTypeOf(shape.element_type());
  if (type == 0) {
    return absl::UnimplementedError(StrCat("handlers have no values of the type ", ToString(shape.element_type())));
  }
  std::vector<int64_t>& dims = dims_.emplace_back();
  if (shape.IsArray()) dims.assign(shape.dims().begin(), shape.dims().end());
  buffers_.push_back({sizeof(XLA_FFI_Buffer), nullptr, type, data, static_cast<int64_t>(dims.size()), dims.data()});
  pointers_.push_back(&buffers_.back());
  return absl::OkStatus();
}

void FfiBuffers::Store() {
  for (const Result& result : results_) {
    const ElementType type = result.shape.element_type();
    if (!IsPacked(result.shape)) {
      CopyInOrder(result.shape, result.from->data(), result.to,
                  /*to_layout=*/false);
      continue;
    }
    const std::vector<std::byte> unpacked =
        UnpackSubByte(*result.from, BitsOf(type), result.shape.element_count(), IsSigned(type));
    CopyInOrder(result.shape, unpacked.data(), result.to, /*to_layout=*/false);
  }
}

}  // namespace hlokit::pjrt
