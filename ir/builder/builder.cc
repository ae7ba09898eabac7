// SPDX-License-Identifier: Apache-2.0
#include "ir/builder/builder.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "ir/core/str_cat.h"
#include "ir/graph/complete_attributes.h"
#include "ir/inference/shape_inference.h"

namespace hlokit {
namespace {

template <typename... Pieces>
absl::Status Error(const Pieces&... pieces) {
  return absl::InvalidArgumentError(StrCat(pieces...));
}

template <typename T>
Literal Scalar(ShapeTable& shapes, ElementType type, T value) {
  Literal literal = Literal::Zeros(shapes.Scalar(type));
  std::memcpy(literal.data(), &value, sizeof(value));
  return literal;
}

std::vector<InstructionId> Joined(Builder::Operands a, Builder::Operands b) {
  std::vector<InstructionId> joined(a.begin(), a.end());
  joined.insert(joined.end(), b.begin(), b.end());
  return joined;
}

}  // namespace

Builder& Builder::WithName(std::string_view base) {
  next_name_ = base;
  return *this;
}

void Builder::Place(InstructionId id) {
  assert(!position_.valid() || module_->record(position_).parent == computation_);  // not erased
  if (position_.valid()) module_->MoveBefore(id, position_);
  if (added_ != nullptr) added_->push_back(id);
}

InstructionId Builder::Insert(std::string_view name, Opcode opcode, Shape shape, Operands operands,
                              absl::Span<const AttrValue> attrs, uint32_t payload) {
  if (name.empty()) name = ToString(opcode);
  const StringId id_name = base_names_ ? context().strings.Intern(name) : module_->UniqueInstructionName(name);
  const InstructionId id = module_->AddInstruction(computation_, opcode, shape, id_name, operands, attrs, payload);
  if (metadata_.valid()) module_->SetMetadata(id, metadata_);
  Place(id);
  return id;
}

AttrValue Builder::CallsEach(Attr attr, absl::Span<const ComputationId> values) {
  std::vector<int64_t> ids;
  for (ComputationId value : values) ids.push_back(value.value);
  return List(attr, ids);
}

bool Builder::Exists(InstructionId id) const {
  return id.valid() && id.value < module_->instruction_id_bound() && module_->record(id).parent == computation_;
}

absl::Status Builder::CheckOperands(Operands operands) const {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!Exists(operands[i])) return Error("operand ", i, " is not an instruction of the computation being built");
  }
  return absl::OkStatus();
}

absl::Status Builder::CheckAttrs(Opcode opcode, absl::Span<const AttrValue> given) const {
  for (auto value = given.begin(); value != given.end(); ++value) {
    const AttrSpec* spec = FindAttrSpec(opcode, value->attr);
    if (spec == nullptr || spec->presence == AttrSpec::kLegacy) {
      return Error("unknown attribute `", ToString(value->attr), "` for ", ToString(opcode));
    }
    if (std::any_of(given.begin(), value, [&](const AttrValue& v) { return v.attr == value->attr; })) {
      return Error("duplicate attribute `", ToString(value->attr), "`");
    }
  }
  return absl::OkStatus();
}

Builder::Result Builder::Add(Opcode opcode, Operands operands, absl::Span<const AttrValue> attrs, Shape declared) {
  const std::string name = TakeName();
  if (HasTrait(opcode, kLeaf) || opcode == Opcode::kUnknown) {
    return Error(ToString(opcode), " cannot be built from its opcode alone");
  }
  if (absl::Status status = CheckOperands(operands); !status.ok()) return status;
  if (absl::Status status = CheckAttrs(opcode, attrs); !status.ok()) return status;
  std::vector<AttrValue> complete(attrs.begin(), attrs.end());
  NormalizeAttributes(module_, opcode, operands, 0, &complete);
  if (const std::optional<Attr> missing = CompleteAttributes(*module_, opcode, 0, &complete)) {
    return Error("missing attribute `", ToString(*missing), "` for ", ToString(opcode));
  }
  absl::InlinedVector<Shape, 4> shapes;
  for (InstructionId id : operands) shapes.push_back(shape_of(id));
  const InferenceRequest request{module_, opcode, shapes, complete, declared};
  Shape shape = declared;
  if (declared.valid()) {
    if (declared.leaf_count() > kMaxLeaves) return Error("the result has more than ", kMaxLeaves, " leaves");
    if (absl::Status status = CheckShape(request); !status.ok()) return status;
  } else {
    absl::StatusOr<Shape> inferred = InferShape(request);
    if (!inferred.ok()) return inferred.status();
    shape = *inferred;
  }
  return Insert(name, opcode, shape, operands, complete, 0);
}

// ---- values ----

Builder::Result Builder::Parameter(int64_t number, Shape shape, std::string_view name) {
  const std::string next_name = TakeName();
  const int64_t next = module_->computation(computation_).parameter_count();
  if (number != next) return Error("expected parameter number ", next, ", found ", number);
  if (!shape.valid()) return Error("the shape of a parameter must be specified");
  if (shape.leaf_count() > kMaxLeaves) return Error("the parameter has more than ", kMaxLeaves, " leaves");
  return Insert(name.empty() ? std::string_view(next_name) : name, Opcode::kParameter, shape, {}, {},
                static_cast<uint32_t>(number));
}

Builder::Result Builder::Constant(const Literal& value) {
  const std::string name = TakeName();
  if (!value.shape().valid()) return Error("expected a literal with a value");
  return Insert(name, Opcode::kConstant, value.shape(), {}, {}, context().literals.Add(value).value);
}

Builder::Result Builder::ConstantPred(bool value) {
  return Constant(Scalar(shapes(), ElementType::kPred, static_cast<uint8_t>(value)));
}

Builder::Result Builder::ConstantS32(int32_t value) { return Constant(Scalar(shapes(), ElementType::kS32, value)); }

Builder::Result Builder::ConstantF32(float value) { return Constant(Scalar(shapes(), ElementType::kF32, value)); }

Builder::Result Builder::Iota(Shape shape, int64_t dimension) {
  return Add(Opcode::kIota, {}, {Int(Attr::kIotaDimension, dimension)}, shape);
}

Builder::Result Builder::Tuple(Operands elements) { return Add(Opcode::kTuple, elements); }

Builder::Result Builder::GetTupleElement(InstructionId tuple, int64_t index) {
  return Add(Opcode::kGetTupleElement, {tuple}, {Int(Attr::kIndex, index)});
}

// ---- elementwise ----

Builder::Result Builder::Unary(Opcode opcode, InstructionId a) { return Add(opcode, {a}); }

Builder::Result Builder::Binary(Opcode opcode, InstructionId a, InstructionId b) { return Add(opcode, {a, b}); }

Builder::Result Builder::Compare(InstructionId a, InstructionId b, ComparisonDirection direction,
                                 std::optional<ComparisonType> type) {
  std::vector<AttrValue> attrs = {Enum(Attr::kDirection, direction)};
  if (type) attrs.push_back(Enum(Attr::kCompareType, *type));
  return Add(Opcode::kCompare, Operands({a, b}), attrs);
}

Builder::Result Builder::Select(InstructionId pred, InstructionId on_true, InstructionId on_false) {
  return Add(Opcode::kSelect, {pred, on_true, on_false});
}

Builder::Result Builder::Clamp(InstructionId min, InstructionId value, InstructionId max) {
  return Add(Opcode::kClamp, {min, value, max});
}

Builder::Result Builder::AddTyped(Opcode opcode, InstructionId a, ElementType type) {
  if (!Exists(a)) return Reject(Error("operand 0 is not an instruction of the computation being built"));
  // Inference takes the element type of the declared shape and infers the rest.
  const Shape operand = shape_of(a);
  const Shape typed = shapes().Scalar(type);
  absl::StatusOr<Shape> shape = InferShape({module_, opcode, absl::MakeConstSpan(&operand, 1), {}, typed});
  if (!shape.ok()) return Reject(shape.status());
  return Add(opcode, {a}, {}, *shape);
}

Builder::Result Builder::Convert(InstructionId a, ElementType type) { return AddTyped(Opcode::kConvert, a, type); }

Builder::Result Builder::BitcastConvert(InstructionId a, ElementType type) {
  return AddTyped(Opcode::kBitcastConvert, a, type);
}

// ---- data movement ----

Shape Builder::ShapeLike(InstructionId a, Dims sizes) {
  if (!Exists(a) || !shape_of(a).IsArray()) return Shape();
  for (int64_t size : sizes) {
    if (size < 0) return Shape();
  }
  return shapes().Array(shape_of(a).element_type(), sizes);
}

Builder::Result Builder::Broadcast(InstructionId a, Dims sizes, Dims dimensions) {
  return Add(Opcode::kBroadcast, {a}, {List(Attr::kDimensions, dimensions)}, ShapeLike(a, sizes));
}

Builder::Result Builder::Reshape(InstructionId a, Dims sizes) {
  return Add(Opcode::kReshape, {a}, {}, ShapeLike(a, sizes));
}

Builder::Result Builder::Transpose(InstructionId a, Dims permutation) {
  return Add(Opcode::kTranspose, {a}, {List(Attr::kDimensions, permutation)});
}

Builder::Result Builder::Reverse(InstructionId a, Dims dimensions) {
  return Add(Opcode::kReverse, {a}, {List(Attr::kDimensions, dimensions)});
}

Builder::Result Builder::Slice(InstructionId a, Dims starts, Dims limits, Dims strides) {
  if (limits.size() != starts.size() || (!strides.empty() && strides.size() != starts.size())) {
    return Reject(Error("a slice must have as many starts as limits and strides"));
  }
  std::vector<int64_t> ranges;
  for (size_t i = 0; i < starts.size(); ++i) {
    ranges.insert(ranges.end(), {starts[i], limits[i], strides.empty() ? 1 : strides[i]});
  }
  return Add(Opcode::kSlice, {a}, {List(Attr::kSlice, ranges)});
}

Builder::Result Builder::DynamicSlice(InstructionId a, Operands starts, Dims sizes) {
  return Add(Opcode::kDynamicSlice, Joined({a}, starts), {List(Attr::kDynamicSliceSizes, sizes)});
}

Builder::Result Builder::DynamicUpdateSlice(InstructionId a, InstructionId update, Operands starts) {
  return Add(Opcode::kDynamicUpdateSlice, Joined({a, update}, starts));
}

Builder::Result Builder::Concatenate(Operands arrays, int64_t dimension) {
  return Add(Opcode::kConcatenate, arrays, {List(Attr::kDimensions, {dimension})});
}

Builder::Result Builder::Pad(InstructionId a, InstructionId value, Dims low, Dims high, Dims interior) {
  if (high.size() != low.size() || (!interior.empty() && interior.size() != low.size())) {
    return Reject(Error("padding must have as many low as high and interior sizes"));
  }
  std::vector<int64_t> padding;
  for (size_t i = 0; i < low.size(); ++i) {
    padding.insert(padding.end(), {low[i], high[i], interior.empty() ? 0 : interior[i]});
  }
  return Add(Opcode::kPad, {a, value}, {List(Attr::kPadding, padding)});
}

// ---- combining ----

Builder::Result Builder::Reduce(Operands arrays, Operands inits, Dims dimensions, ComputationId reducer) {
  return Add(Opcode::kReduce, Joined(arrays, inits),
             {List(Attr::kDimensions, dimensions), Calls(Attr::kToApply, reducer)});
}

Builder::Result Builder::Sort(Operands arrays, int64_t dimension, ComputationId comparison, bool is_stable) {
  return Add(
      Opcode::kSort, arrays,
      {List(Attr::kDimensions, {dimension}), Bool(Attr::kIsStable, is_stable), Calls(Attr::kToApply, comparison)});
}

Builder::Result Builder::Dot(InstructionId lhs, InstructionId rhs, const DotNumbers& dims,
                             std::optional<ElementType> type) {
  const AttrValue attrs[] = {
      List(Attr::kLhsBatchDims, dims.lhs_batch), List(Attr::kLhsContractingDims, dims.lhs_contracting),
      List(Attr::kRhsBatchDims, dims.rhs_batch), List(Attr::kRhsContractingDims, dims.rhs_contracting)};
  const InstructionId operands[] = {lhs, rhs};
  if (!type) return Add(Opcode::kDot, operands, attrs);
  if (absl::Status status = CheckOperands(operands); !status.ok()) return Reject(std::move(status));
  const Shape shapes_of[] = {shape_of(lhs), shape_of(rhs)};
  absl::StatusOr<Shape> shape = InferShape({module_, Opcode::kDot, shapes_of, attrs, shapes().Scalar(*type)});
  if (!shape.ok()) return Reject(shape.status());
  return Add(Opcode::kDot, operands, attrs, *shape);
}

// ---- control flow ----

Builder::Result Builder::Call(ComputationId called, Operands arguments) {
  return Add(Opcode::kCall, arguments, {Calls(Attr::kToApply, called)});
}

Builder::Result Builder::While(ComputationId condition, ComputationId body, InstructionId init) {
  return Add(Opcode::kWhile, {init}, {Calls(Attr::kCondition, condition), Calls(Attr::kBody, body)});
}

Builder::Result Builder::Conditional(InstructionId index, absl::Span<const ComputationId> branches,
                                     Operands arguments) {
  const std::vector<InstructionId> operands = Joined({index}, arguments);
  if (Exists(index) && shape_of(index).element_type() == ElementType::kPred) {
    if (branches.size() != 2) {
      return Reject(Error("expected two branches in a conditional on a pred, found ", branches.size()));
    }
    return Add(Opcode::kConditional, operands,
               {Calls(Attr::kTrueComputation, branches[0]), Calls(Attr::kFalseComputation, branches[1])});
  }
  return Add(Opcode::kConditional, operands, {CallsEach(Attr::kBranchComputations, branches)});
}

}  // namespace hlokit
