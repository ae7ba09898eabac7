// SPDX-License-Identifier: Apache-2.0
// Adds instructions to a computation: infers shapes, brings attributes into canonical form, and makes names unique.
// Built modules print and verify like parsed ones.
//
//   Builder b(&module, module.AddComputation(name));
//   const absl::StatusOr<InstructionId> x = b.Parameter(0, shape, "x");
//   ...
//   b.SetRoot(*b.Binary(Opcode::kAdd, *x, *x));
//
// Methods return the new instruction. They return an error, and add nothing, if the operands are incompatible.
#ifndef HLOKIT_IR_BUILDER_BUILDER_H_
#define HLOKIT_IR_BUILDER_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/ops/attribute.h"
#include "ir/ops/opcode.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"

namespace hlokit {

class Builder {
 public:
  using Result = absl::StatusOr<InstructionId>;
  using Operands = absl::Span<const InstructionId>;
  using Dims = absl::Span<const int64_t>;

  Builder(Module* module, ComputationId computation) : module_(module), computation_(computation) {}

  Module& module() const { return *module_; }
  Context& context() const { return module_->context(); }
  ShapeTable& shapes() const { return module_->context().shapes; }
  ComputationId computation() const { return computation_; }
  Shape shape_of(InstructionId id) const { return module_->instruction(id).shape(); }

  void SetRoot(InstructionId root) { module_->SetRoot(computation_, root); }

  // Sets the base name of the next instruction; the default is the opcode.
  Builder& WithName(std::string_view base) {
    next_name_ = base;
    return *this;
  }
  // Sets the metadata of subsequent instructions. Returns the previous one. MetadataScope sets it for a block.
  MetadataId SetMetadata(MetadataId metadata) {
    const MetadataId previous = metadata_;
    metadata_ = metadata;
    return previous;
  }

  // Adds any instruction but a parameter or constant. `declared` supplies the parts that inference needs
  // (shape_inference.h), or the whole shape, which is then checked. Attributes come in any order; default values may be
  // omitted.
  Result Add(Opcode opcode, Operands operands, absl::Span<const AttrValue> attrs = {}, Shape declared = Shape());

  // Return attribute payloads.
  AttrValue Int(Attr attr, int64_t value) { return {attr, module_->EncodeInt64(value)}; }
  AttrValue List(Attr attr, Dims values) { return {attr, module_->ListPayload(values)}; }
  static AttrValue Bool(Attr attr, bool value) { return {attr, value}; }
  template <typename E>
  static AttrValue Enum(Attr attr, E value) {
    return {attr, static_cast<uint32_t>(value)};
  }
  static AttrValue Calls(Attr attr, ComputationId value) { return {attr, value.value}; }
  AttrValue String(Attr attr, std::string_view value) { return {attr, context().strings.Intern(value).value}; }

  // ---- values ----
  // Adds parameters in the order of their numbers.
  Result Parameter(int64_t number, Shape shape, std::string_view name = "");
  Result Constant(const Literal& value);
  Result ConstantPred(bool value);
  Result ConstantS32(int32_t value);
  Result ConstantF32(float value);
  Result Iota(Shape shape, int64_t dimension);
  Result Tuple(Operands elements);
  Result GetTupleElement(InstructionId tuple, int64_t index);

  // ---- elementwise ----
  Result Unary(Opcode opcode, InstructionId a);
  Result Binary(Opcode opcode, InstructionId a, InstructionId b);
  Result Compare(InstructionId a, InstructionId b, ComparisonDirection direction,
                 std::optional<ComparisonType> type = std::nullopt);
  Result Select(InstructionId pred, InstructionId on_true, InstructionId on_false);
  Result Clamp(InstructionId min, InstructionId value, InstructionId max);
  Result Convert(InstructionId a, ElementType type);
  Result BitcastConvert(InstructionId a, ElementType type);

  // ---- data movement ----
  // Dimension i of `a` becomes dimension dimensions[i] of an array of `sizes`.
  Result Broadcast(InstructionId a, Dims sizes, Dims dimensions);
  Result Reshape(InstructionId a, Dims sizes);
  Result Transpose(InstructionId a, Dims permutation);
  Result Reverse(InstructionId a, Dims dimensions);
  Result Slice(InstructionId a, Dims starts, Dims limits, Dims strides = {});
  Result DynamicSlice(InstructionId a, Operands starts, Dims sizes);
  Result DynamicUpdateSlice(InstructionId a, InstructionId update, Operands starts);
  Result Concatenate(Operands arrays, int64_t dimension);
  Result Pad(InstructionId a, InstructionId value, Dims low, Dims high, Dims interior = {});

  // ---- combining ----
  Result Reduce(Operands arrays, Operands inits, Dims dimensions, ComputationId reducer);
  Result Sort(Operands arrays, int64_t dimension, ComputationId comparison, bool is_stable = false);
  struct DotNumbers {
    std::vector<int64_t> lhs_batch = {};
    std::vector<int64_t> lhs_contracting = {};
    std::vector<int64_t> rhs_batch = {};
    std::vector<int64_t> rhs_contracting = {};
  };
  // `type`: element type of the result, if not that of the operands.
  Result Dot(InstructionId lhs, InstructionId rhs, const DotNumbers& dims,
             std::optional<ElementType> type = std::nullopt);

  // ---- control flow ----
  Result Call(ComputationId called, Operands arguments);
  Result While(ComputationId condition, ComputationId body, InstructionId init);
  // Branches on a pred (two branches: true, false) or an s32 (by index).
  Result Conditional(InstructionId index, absl::Span<const ComputationId> branches, Operands arguments);

 private:
  // Checks, completes and canonicalizes the attributes of `opcode`.
  absl::Status CompleteAttrs(Opcode opcode, absl::Span<const AttrValue> given, std::vector<AttrValue>* attrs);
  bool IsElided(AttrValue value) const;
  absl::Status CheckOperands(Operands operands) const;
  Result Append(std::string_view name, Opcode opcode, Shape shape, Operands operands, absl::Span<const AttrValue> attrs,
                uint32_t payload);
  std::string TakeName() { return std::exchange(next_name_, std::string()); }
  // Returns an array shape with the element type of `a`; invalid if `a` is not an array or invalid.
  Shape ShapeLike(InstructionId a, Dims sizes);
  Result AddTyped(Opcode opcode, InstructionId a, ElementType type);
  bool Exists(InstructionId id) const;

  Module* module_;
  ComputationId computation_;
  std::string next_name_;
  MetadataId metadata_;
};

// Sets the metadata of a builder during its lifetime.
class MetadataScope {
 public:
  MetadataScope(Builder* builder, MetadataId metadata) : builder_(builder), previous_(builder->SetMetadata(metadata)) {}
  ~MetadataScope() { builder_->SetMetadata(previous_); }
  MetadataScope(const MetadataScope&) = delete;
  MetadataScope& operator=(const MetadataScope&) = delete;

 private:
  Builder* builder_;
  MetadataId previous_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_BUILDER_BUILDER_H_
