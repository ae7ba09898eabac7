// SPDX-License-Identifier: Apache-2.0
// PyTorch's type promotion. Tensors with dimensions take precedence over those of rank 0, and those over plain numbers;
// a later group matters only if its category (bool, integer, float) is higher.
#ifndef HLOKIT_TRACER_GRAPH_TYPE_PROMOTION_H_
#define HLOKIT_TRACER_GRAPH_TYPE_PROMOTION_H_

#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "ir/types/element_type.h"
#include "ir/types/shape.h"
#include "tracer/graph/scalar.h"

namespace hlokit::lazy {

inline constexpr ElementType kDefaultFloat = ElementType::kF32;

// Returns the smallest type that represents both.
ElementType Promote(ElementType a, ElementType b);
// Returns 0 for bool, 1 integer, 2 float, 3 complex.
int ScalarTypeCategory(ElementType t);
// Returns the default type of a number.
ElementType TypeOf(Scalar s);
// Returns torch's name in error messages: "Long".
std::string_view TorchTypeName(ElementType t);
std::optional<ElementType> TypeOfTorchName(std::string_view name);
// Returns torch's number of a type in dumps, -1 if it has none.
int TorchTypeNumber(ElementType t);
std::optional<ElementType> TypeOfTorchNumber(int number);
// Collects the operands of one op.
class ResultTypeState {
 public:
  void Add(Shape tensor) {
    std::optional<ElementType>& group = tensor.rank() == 0 ? rank0_ : dims_;
    group = group ? Promote(*group, tensor.element_type()) : tensor.element_type();
  }
  void Add(Scalar number) {
    const ElementType t = TypeOf(number);
    number_ = number_ ? Promote(*number_, t) : t;
  }
  ElementType result() const;

 private:
  std::optional<ElementType> dims_;
  std::optional<ElementType> rank0_;
  std::optional<ElementType> number_;
};

// Returns f32 for integers and bool, other types unchanged.
inline ElementType FloatingOf(ElementType t) { return ScalarTypeCategory(t) < 2 ? kDefaultFloat : t; }

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_TYPE_PROMOTION_H_
