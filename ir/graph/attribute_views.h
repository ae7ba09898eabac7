// SPDX-License-Identifier: Apache-2.0
// Typed views of encoded attributes (the encodings are in attribute.h). A view is constructed from an Instruction or
// from a module and attribute list, holds spans into the module's list pool, and is passed by value.
//
// Decoding never fails: a missing attribute yields an empty view, and a list whose size does not match its encoding an
// empty view whose ok() is false. Values are not checked against the operands: CheckShape does that.
#ifndef HLOKIT_IR_GRAPH_ATTRIBUTE_VIEWS_H_
#define HLOKIT_IR_GRAPH_ATTRIBUTE_VIEWS_H_

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/ops/attribute.h"

namespace hlokit {

// Reads the attributes of an instruction, or of one that does not exist yet. The accessors of Instruction use it.
class AttrReader {
 public:
  AttrReader(const Module& module, absl::Span<const AttrValue> attrs) : module_(&module), attrs_(attrs) {}
  AttrReader(Instruction instruction) : AttrReader(instruction.module(), instruction.attrs()) {}  // NOLINT: a view

  const Module& module() const { return *module_; }
  const AttrValue* Find(Attr attr) const {
    for (const AttrValue& value : attrs_) {
      if (value.attr == attr) return &value;
    }
    return nullptr;
  }
  bool has(Attr attr) const { return Find(attr) != nullptr; }

  bool bool_attr(Attr attr, bool absent = false) const {
    const AttrValue* value = Find(attr);
    return value == nullptr ? absent : value->payload != 0;
  }
  int64_t int_attr(Attr attr, int64_t absent = 0) const {
    const AttrValue* value = Find(attr);
    return value == nullptr ? absent : module_->DecodeInt64(value->payload);
  }
  float float_attr(Attr attr, float absent = 0) const {
    const AttrValue* value = Find(attr);
    return value == nullptr ? absent : std::bit_cast<float>(value->payload);
  }
  template <typename Enum>
  Enum enum_attr(Attr attr, Enum absent) const {
    const AttrValue* value = Find(attr);
    return value == nullptr ? absent : static_cast<Enum>(value->payload);
  }
  std::string_view string_attr(Attr attr) const {  // "" when absent
    const AttrValue* value = Find(attr);
    return value == nullptr ? std::string_view() : module_->context().str(StringId(value->payload));
  }
  absl::Span<const int64_t> list_attr(Attr attr) const {  // empty when absent
    const AttrValue* value = Find(attr);
    return value == nullptr ? absl::Span<const int64_t>() : module_->context().list(ListId(value->payload));
  }
  // Returns the list of an attribute with a codec of its own; the empty list when absent.
  ListId list_id(Attr attr) const {
    const AttrValue* value = Find(attr);
    return value == nullptr ? ListId(0) : ListId(value->payload);
  }
  // Returns the only element of a list-valued attribute; nullopt if it has another number of elements.
  std::optional<int64_t> only(Attr attr) const {
    const absl::Span<const int64_t> values = list_attr(attr);
    if (values.size() != 1) return std::nullopt;
    return values[0];
  }
  // Returns an invalid computation if the attribute is absent or the id refers to no live one.
  Computation live_computation(Attr attr) const {
    const AttrValue* value = Find(attr);
    return value == nullptr ? Computation() : Live(value->payload);
  }
  Computation Live(int64_t id) const;

 private:
  const Module* module_;
  absl::Span<const AttrValue> attrs_;
};

struct WindowDim {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t padding_low = 0;
  int64_t padding_high = 0;
  int64_t base_dilation = 1;    // lhs_dilate
  int64_t window_dilation = 1;  // rhs_dilate
  bool reversal = false;        // rhs_reversal
};

class WindowView {
 public:
  static constexpr int64_t kFields = 7;

  WindowView() = default;
  explicit WindowView(absl::Span<const int64_t> encoded) {
    ok_ = encoded.size() % kFields == 0;
    if (ok_) encoded_ = encoded;
  }
  static WindowView Of(const AttrReader& attrs) { return WindowView(attrs.list_attr(Attr::kWindow)); }

  bool ok() const { return ok_; }
  int64_t rank() const { return static_cast<int64_t>(encoded_.size()) / kFields; }
  WindowDim operator[](int64_t i) const {
    const int64_t* e = encoded_.data() + i * kFields;
    return {e[0], e[1], e[2], e[3], e[4], e[5], e[6] != 0};
  }

 private:
  absl::Span<const int64_t> encoded_;
  bool ok_ = true;
};

// Dimension numbers of a convolution. Without the attribute all are 0 and ok() is false.
class ConvolutionDims {
 public:
  ConvolutionDims() = default;
  explicit ConvolutionDims(absl::Span<const int64_t> encoded);
  static ConvolutionDims Of(const AttrReader& attrs) { return ConvolutionDims(attrs.list_attr(Attr::kDimLabels)); }

  bool ok() const { return ok_; }
  // Returns true if each of input, kernel and output names each dimension of rank() once.
  bool IsPermutation() const;
  int64_t spatial_rank() const { return static_cast<int64_t>(input_spatial.size()); }
  int64_t rank() const { return spatial_rank() + 2; }

  int64_t input_batch = 0;
  int64_t input_feature = 0;
  absl::Span<const int64_t> input_spatial;
  int64_t kernel_input_feature = 0;
  int64_t kernel_output_feature = 0;
  absl::Span<const int64_t> kernel_spatial;
  int64_t output_batch = 0;
  int64_t output_feature = 0;
  absl::Span<const int64_t> output_spatial;

 private:
  bool ok_ = false;
};

struct DotDims {
  static DotDims Of(const AttrReader& attrs);

  absl::Span<const int64_t> lhs_batch;
  absl::Span<const int64_t> lhs_contracting;
  absl::Span<const int64_t> rhs_batch;
  absl::Span<const int64_t> rhs_contracting;
};

struct GatherDims {
  static GatherDims Of(const AttrReader& attrs);

  absl::Span<const int64_t> offset_dims;
  absl::Span<const int64_t> collapsed_slice_dims;
  absl::Span<const int64_t> start_index_map;
  absl::Span<const int64_t> operand_batching_dims;
  absl::Span<const int64_t> start_indices_batching_dims;
  int64_t index_vector_dim = 0;
  absl::Span<const int64_t> slice_sizes;
};

struct ScatterDims {
  static ScatterDims Of(const AttrReader& attrs);

  absl::Span<const int64_t> update_window_dims;
  absl::Span<const int64_t> inserted_window_dims;
  absl::Span<const int64_t> scatter_dims_to_operand_dims;
  absl::Span<const int64_t> input_batching_dims;
  absl::Span<const int64_t> scatter_indices_batching_dims;
  int64_t index_vector_dim = 0;
};

// A view of triples of int64, one for each dimension.
class TripleView {
 public:
  TripleView() = default;
  explicit TripleView(absl::Span<const int64_t> encoded) {
    ok_ = encoded.size() % 3 == 0;
    if (ok_) encoded_ = encoded;
  }

  bool ok() const { return ok_; }
  int64_t rank() const { return static_cast<int64_t>(encoded_.size()) / 3; }

 protected:
  int64_t at(int64_t dim, int64_t field) const { return encoded_[dim * 3 + field]; }

 private:
  absl::Span<const int64_t> encoded_;
  bool ok_ = true;
};

class PaddingView : public TripleView {
 public:
  using TripleView::TripleView;
  static PaddingView Of(const AttrReader& attrs) { return PaddingView(attrs.list_attr(Attr::kPadding)); }

  int64_t low(int64_t i) const { return at(i, 0); }
  int64_t high(int64_t i) const { return at(i, 1); }
  int64_t interior(int64_t i) const { return at(i, 2); }
};

class SliceView : public TripleView {
 public:
  using TripleView::TripleView;
  static SliceView Of(const AttrReader& attrs) { return SliceView(attrs.list_attr(Attr::kSlice)); }

  int64_t start(int64_t i) const { return at(i, 0); }
  int64_t limit(int64_t i) const { return at(i, 1); }
  int64_t stride(int64_t i) const { return at(i, 2); }
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_ATTRIBUTE_VIEWS_H_
