// SPDX-License-Identifier: Apache-2.0
// The attributes of a typed custom call: the dictionary in its backend_config, as its handler reads it.
#ifndef HLOKIT_PJRT_FFI_FFI_ATTRIBUTES_H_
#define HLOKIT_PJRT_FFI_FFI_ATTRIBUTES_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/types/element_type.h"
#include "parser/mlir/node.h"
#include "pjrt/c_api/xla_ffi.h"

namespace hlokit::pjrt {

// Returns XLA's number of a type; 0 for types that buffers and attributes do not have.
XLA_FFI_DataType FfiTypeOf(ElementType type);

class FfiAttributes {
 public:
  // Reads `{n = 3 : i64, s = "text"}`; an empty text is an empty dictionary. Returns UNIMPLEMENTED for attributes that
  // handlers have no form for.
  static absl::StatusOr<std::unique_ptr<FfiAttributes>> Parse(std::string_view text);

  const XLA_FFI_Attrs& attrs() const { return dictionaries_.front().attrs; }

 private:
  struct Dictionary {
    std::vector<XLA_FFI_AttrType> types;
    std::vector<XLA_FFI_ByteSpan> texts;
    std::vector<XLA_FFI_ByteSpan*> names;
    std::vector<void*> values;
    XLA_FFI_Attrs attrs = {};
  };
  // Nested dictionaries that are not filled yet.
  using Pending = std::vector<std::pair<mlir::NodeId, Dictionary*>>;

  absl::Status Fill(mlir::NodeId node, Dictionary* dictionary, Pending* pending);
  // Sets the kind of an attribute and its value.
  absl::Status Add(mlir::NodeId node, XLA_FFI_AttrType* type, void** value, Pending* pending);
  // Returns the numbers of an element type in memory; UNIMPLEMENTED for other types.
  absl::StatusOr<XLA_FFI_Array> Numbers(mlir::NodeId element, absl::Span<const int64_t> values);
  absl::StatusOr<XLA_FFI_Array> Tensor(mlir::NodeId dense);

  // Of objects that do not move.
  mlir::NodeTable nodes_;
  std::deque<Dictionary> dictionaries_;  // the first is the call's
  std::deque<XLA_FFI_Scalar> scalars_;
  std::deque<XLA_FFI_Array> arrays_;
  std::deque<XLA_FFI_ByteSpan> strings_;
  std::deque<std::vector<std::byte>> data_;
};

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_FFI_FFI_ATTRIBUTES_H_
