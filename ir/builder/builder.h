// SPDX-License-Identifier: Apache-2.0
// Adds instructions to a computation: infers shapes, brings attributes into canonical form, and makes names unique.
// Built modules print and verify like parsed ones.
//
//   Builder b(&module, module.AddComputation(name));
//   const absl::StatusOr<InstructionId> x = b.Parameter(0, shape, "x");
//   if (!x.ok()) return;
//   b.SetRoot(*b.Binary(Opcode::kAdd, *x, *x));
//
// Methods with a Result return the new instruction. They return an error, and add nothing, if the operands are
// incompatible. The Make methods are for rewriting verified modules: they take operands, shape and attributes as given,
// in canonical form.
//
// Instructions are added at the insertion point: at the end of a computation, or before an instruction.
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

  // Inserts before `position`, or at the end of the computation if it is invalid.
  explicit Builder(Module* module, ComputationId computation, InstructionId position = InstructionId())
      : module_(module), computation_(computation), position_(position) {}
  Builder(Module* module, InstructionId position) : Builder(module, module->record(position).parent, position) {}

  Module& module() const { return *module_; }
  Context& context() const { return module_->context(); }
  ShapeTable& shapes() const { return module_->context().shapes; }
  ComputationId computation() const { return computation_; }
  Shape shape_of(InstructionId id) const { return module_->instruction(id).shape(); }

  void SetRoot(InstructionId root) { module_->SetRoot(computation_, root); }

  // ---- insertion point ----
  // Sets the insertion point before `position`, which may be in another computation and must not be erased while it is
  // in use; if it is invalid, at the end of the current computation.
  void SetInsertionPoint(InstructionId position) {
    position_ = position;
    if (position.valid()) computation_ = module_->record(position).parent;
  }
  // Sets the insertion point before the successor of `instruction`.
  void SetInsertionPointAfter(InstructionId instruction) {
    computation_ = module_->record(instruction).parent;
    position_ = module_->record(instruction).next;
  }
  // Appends each instruction added from now on to `added`, which must outlive the builder.
  void RecordIn(std::vector<InstructionId>* added) { added_ = added; }

  // ---- names, metadata ----
  // Sets the base name of the next instruction; the default is the opcode.
  Builder& WithName(std::string_view base);
  // Gives subsequent instructions their base names as they are. The caller makes names unique (Module::SetName,
  // ForgetUniqueNames) when all are added.
  Builder& WithBaseNames() {
    base_names_ = true;
    return *this;
  }
  // Sets the metadata of subsequent instructions. Returns the previous one. MetadataScope sets it for a block.
  MetadataId SetMetadata(MetadataId metadata) {
    const MetadataId previous = metadata_;
    metadata_ = metadata;
    return previous;
  }

  // ---- unchecked ----
  // Adds any instruction. `payload` is the number of a parameter, the LiteralId of a constant.
  InstructionId Make(Opcode opcode, Shape shape, Operands operands, absl::Span<const AttrValue> attrs = {},
                     uint32_t payload = 0) {
    return Insert(TakeName(), opcode, shape, operands, attrs, payload);
  }
  // Adds an instruction with the inferred shape. Returns an invalid id if the operands are incompatible.
  InstructionId MakeInferred(Opcode opcode, Operands operands, absl::Span<const AttrValue> attrs = {});
  // Adds a clone of `source`, which may be in another computation, with its attributes and metadata. The name derives
  // from that of `source` unless WithName sets one.
  InstructionId MakeClone(InstructionId source, Operands operands);
  InstructionId MakeElement(InstructionId tuple, int64_t index);
  InstructionId MakeTuple(Operands elements);
  // Return the operand itself if it has the type or shape already.
  InstructionId MakeConvert(InstructionId operand, ElementType type);
  InstructionId MakeReshape(InstructionId operand, Shape shape);
  InstructionId MakeCopy(InstructionId operand, Shape shape);  // of another layout
  // Adds an instruction of the shape of the first operand.
  InstructionId MakeLike(Opcode opcode, Operands operands) { return Make(opcode, shape_of(operands[0]), operands); }
  InstructionId MakeCompare(ComparisonDirection direction, InstructionId a, InstructionId b);
  InstructionId MakeReduce(InstructionId operand, InstructionId init, Dims dimensions, ComputationId reducer);
  InstructionId MakeConstant(const Literal& value);
  // Adds the scalar constant `value`. Requires: `type` can represent it.
  InstructionId MakeScalarConstant(ElementType type, double value);
  // Adds a scalar constant from the bytes of one element.
  InstructionId MakeScalar(ElementType type, const std::byte* data);
  // Returns an array of `shape` with all elements equal to the scalar `value`.
  InstructionId MakeSplat(Shape shape, InstructionId value);
  // Adds a computation of two scalars of `type` that applies `opcode` to them.
  ComputationId MakeReducer(Opcode opcode, ElementType type);

  // ---- checked ----
  // Adds any instruction but a parameter or constant. `declared` supplies the parts that inference needs
  // (shape_inference.h), or the whole shape, which is then checked. Attributes come in any order; default values may be
  // omitted. They are normalized (NormalizeAttributes): a map has all dimensions, whatever is given.
  Result Add(Opcode opcode, Operands operands, absl::Span<const AttrValue> attrs = {}, Shape declared = Shape());

  // ---- attributes ----
  // Return attribute payloads.
  AttrValue Int(Attr attr, int64_t value) { return {attr, module_->EncodeInt64(value)}; }
  AttrValue List(Attr attr, Dims values) { return {attr, module_->ListPayload(values)}; }
  static AttrValue Bool(Attr attr, bool value) { return {attr, value}; }
  template <typename E>
  static AttrValue Enum(Attr attr, E value) {
    return {attr, static_cast<uint32_t>(value)};
  }
  static AttrValue Calls(Attr attr, ComputationId value) { return {attr, value.value}; }
  AttrValue CallsEach(Attr attr, absl::Span<const ComputationId> values);
  AttrValue String(Attr attr, std::string_view value) { return {attr, context().strings.Intern(value).value}; }
  // Returns the attribute of `source`, which must have it.
  static AttrValue SameAs(Instruction source, Attr attr) { return {attr, *source.payload(attr)}; }

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
  // Checks that `opcode` may have these attributes, each once.
  absl::Status CheckAttrs(Opcode opcode, absl::Span<const AttrValue> given) const;
  absl::Status CheckOperands(Operands operands) const;
  // Inserts at the insertion point, with a unique name derived from `name`, or from the opcode if it is empty.
  InstructionId Insert(std::string_view name, Opcode opcode, Shape shape, Operands operands,
                       absl::Span<const AttrValue> attrs, uint32_t payload);
  // Moves the last instruction of the computation to the insertion point.
  void Place(InstructionId id);
  // Returns an operand that is the result as it is. The name for a new instruction is dropped.
  InstructionId WithoutName(InstructionId operand) {
    TakeName();
    return operand;
  }
  // Returns the error of an instruction that is not made, whose name is dropped.
  Result Reject(absl::Status status) {
    TakeName();
    return status;
  }
  std::string TakeName() { return std::exchange(next_name_, std::string()); }
  // Returns an array shape with the element type of `a`; invalid if `a` is not an array or invalid.
  Shape ShapeLike(InstructionId a, Dims sizes);
  Result AddTyped(Opcode opcode, InstructionId a, ElementType type);
  bool Exists(InstructionId id) const;

  Module* module_;
  ComputationId computation_;
  InstructionId position_;
  std::string next_name_;
  MetadataId metadata_;
  std::vector<InstructionId>* added_ = nullptr;
  bool base_names_ = false;
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
