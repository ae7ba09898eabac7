// SPDX-License-Identifier: Apache-2.0
// Shape rules of calls and control flow, of forwarding operations, of tuples, and of operations without operands.
#include <utility>
#include <vector>

#include "ir/inference/rules.h"

namespace hlokit::inference {
namespace {

absl::Status ExpectDeclared(const InferenceContext& in) {
  if (in.declared().valid()) return absl::OkStatus();
  return Error("the result shape of ", ToString(in.opcode()), " must be specified");
}

// Checks that operand `operand` can be passed as parameter `i` of the computation that `what` names.
absl::Status CheckArgument(const InferenceContext& in, int64_t operand, const Signature& called, int64_t i,
                           std::string_view what) {
  if (ShapesMatch(in.operand(operand), called.parameter(i), TypeMatch::kExact)) return absl::OkStatus();
  return Error("operand ", operand, " is ", Text(in.operand(operand)), ", but parameter ", i, " of ", what, " is ",
               Text(called.parameter(i)));
}

absl::Status InferFusion(const InferenceContext& in, InferredShape* out) {
  Signature fused;
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kCalls, "the fused computation", &fused));
  if (fused.parameter_count() > in.operand_count()) {
    return Error("the fused computation has ", fused.parameter_count(), " parameters, more than the ",
                 in.operand_count(), " operands");
  }
  for (int64_t i = 0; i < fused.parameter_count(); ++i) {
    HLOKIT_RETURN_IF_ERROR(CheckArgument(in, i, fused, i, "the fused computation"));
  }
  out->Set(fused.result());
  return absl::OkStatus();
}

// dynamic-reshape(array, size of each dimension of the result)
absl::Status InferDynamicReshape(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectDeclared(in));
  HLOKIT_RETURN_IF_ERROR(ExpectArrayOperand(in, 0));
  const Shape a = in.operand(0);
  const Shape result = in.declared();
  HLOKIT_RETURN_IF_ERROR(ExpectArray(result, "the result"));
  if (!SameElementTypeIgnoringFpPrecision(result, a)) {
    return Error("the result (", Text(result), ") must have the element type of operand 0 (", Text(a), ")");
  }
  if (a.element_count() != result.element_count()) {
    return Error("operand 0 (", Text(a), ") and the result (", Text(result), ") have different numbers of elements");
  }
  HLOKIT_RETURN_IF_ERROR(ExpectOperandCount(in, result.rank() + 1));
  for (int64_t i = 1; i < in.operand_count(); ++i) {
    if (in.operand(i).element_type() == ElementType::kS32) continue;
    return Error("operand ", i, " (a dimension size) must be s32[], found ", Text(in.operand(i)));
  }
  out->Set(result);
  return absl::OkStatus();
}

// Returns the shape that is dynamic where any of `shapes`, which match each other, is. Visits the leaves that differ,
// of which there are at most kMaxLeaves.
Shape MergeDynamism(const InferenceContext& in, std::vector<Shape> shapes) {
  struct Frame {
    std::vector<Shape> shapes;
    std::vector<Shape> done;
  };
  const auto all_same = [](const std::vector<Shape>& s) {
    for (Shape shape : s) {
      if (!Compatible(shape, s[0])) return false;
    }
    return true;
  };
  const auto leaf = [&](const std::vector<Shape>& s) {
    if (!s[0].IsArray()) return s[0];
    absl::InlinedVector<uint8_t, 8> dynamic(static_cast<size_t>(s[0].rank()), 0);
    for (Shape shape : s) {
      for (int64_t i = 0; i < s[0].rank(); ++i) dynamic[i] |= shape.is_dynamic(i);
    }
    return in.shapes().Array(s[0].element_type(), s[0].dims(), dynamic, s[0].layout());
  };
  if (all_same(shapes)) return shapes[0];
  if (!shapes[0].IsTuple()) return leaf(shapes);
  std::vector<Frame> stack;
  stack.push_back({std::move(shapes), {}});
  for (;;) {
    Frame& top = stack.back();
    const auto next = static_cast<int64_t>(top.done.size());
    if (next == top.shapes[0].tuple_size()) {
      const Shape built = in.shapes().Tuple(top.done);
      stack.pop_back();
      if (stack.empty()) return built;
      stack.back().done.push_back(built);
      continue;
    }
    std::vector<Shape> parts;
    for (Shape shape : top.shapes) parts.push_back(shape.element(next));
    if (all_same(parts)) {
      top.done.push_back(parts[0]);
    } else if (parts[0].IsTuple()) {
      stack.push_back({std::move(parts), {}});
    } else {
      top.done.push_back(leaf(parts));
    }
  }
}

}  // namespace

absl::Status InferExplicit(const InferenceContext& in, InferredShape* out) {
  if (in.opcode() == Opcode::kFusion) return InferFusion(in, out);
  if (in.opcode() == Opcode::kDynamicReshape) return InferDynamicReshape(in, out);
  HLOKIT_RETURN_IF_ERROR(ExpectDeclared(in));
  out->Set(in.declared());
  return absl::OkStatus();
}

absl::Status InferToken(const InferenceContext& in, InferredShape* out) {
  const Shape declared = in.declared();
  out->Set(declared.valid() && declared.IsToken() ? declared : in.shapes().Token());
  if (in.opcode() != Opcode::kOutfeed) return absl::OkStatus();
  HLOKIT_RETURN_IF_ERROR(ExpectTokenOperand(in, 1));
  const AttrValue* value = in.attrs.Find(Attr::kOutfeedShape);
  if (value != nullptr && value->payload < in.shapes().size()) {
    const Shape shape = in.shapes()[ShapeId(value->payload)];
    if (!ShapesMatch(shape, in.operand(0), TypeMatch::kExact)) {
      return Error("`outfeed_shape` is ", Text(shape), ", but operand 0 is ", Text(in.operand(0)));
    }
  }
  return absl::OkStatus();
}

absl::Status InferTuple(const InferenceContext& in, InferredShape* out) {
  out->SetTuple(in.operands());
  return absl::OkStatus();
}

absl::Status InferGetTupleElement(const InferenceContext& in, InferredShape* out) {
  const Shape tuple = in.operand(0);
  if (!tuple.IsTuple()) return Error("expected operand 0 to be a tuple, found ", Text(tuple));
  const int64_t index = in.attrs.int_attr(Attr::kIndex, -1);
  if (index < 0 || index >= tuple.tuple_size()) {
    return Error("`index` ", index, " is out of range: operand 0 has ", Counted(tuple.tuple_size(), "element"));
  }
  out->Set(tuple.element(index));
  return absl::OkStatus();
}

absl::Status InferCall(const InferenceContext& in, InferredShape* out) {
  Signature called;
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kToApply, "the called computation", &called));
  if (called.parameter_count() != in.operand_count()) {
    return Error("the called computation has ", called.parameter_count(), " parameters, but there are ",
                 in.operand_count(), " operands");
  }
  for (int64_t i = 0; i < in.operand_count(); ++i) {
    HLOKIT_RETURN_IF_ERROR(CheckArgument(in, i, called, i, "the called computation"));
  }
  out->Set(called.result());
  return absl::OkStatus();
}

absl::Status InferWhile(const InferenceContext& in, InferredShape* out) {
  Signature condition, body;
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kCondition, "the condition", &condition));
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kBody, "the body", &body));
  if (condition.parameter_count() != 1) {
    return Error("expected 1 parameter of the condition, found ", condition.parameter_count());
  }
  if (body.parameter_count() != 1) return Error("expected 1 parameter of the body, found ", body.parameter_count());
  HLOKIT_RETURN_IF_ERROR(CheckArgument(in, 0, condition, 0, "the condition"));
  HLOKIT_RETURN_IF_ERROR(CheckArgument(in, 0, body, 0, "the body"));
  if (!IsScalarOf(condition.result(), ElementType::kPred)) {
    return Error("expected the condition to return pred[], found ", Text(condition.result()));
  }
  if (!ShapesMatch(body.result(), in.operand(0), TypeMatch::kExact)) {
    return Error("the body returns ", Text(body.result()), ", but the initial value of the loop is ",
                 Text(in.operand(0)));
  }
  out->Set(in.operand(0));
  return absl::OkStatus();
}

absl::Status InferConditional(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectAnyOperand(in));
  const Shape index = in.operand(0);
  const bool by_pred = IsScalarOf(index, ElementType::kPred);
  if (!by_pred && !IsScalarOf(index, ElementType::kS32)) {
    return Error("operand 0 must be pred[] or s32[], found ", Text(index));
  }
  absl::InlinedVector<Signature, 4> branches;
  if (in.attrs.has(Attr::kBranchComputations)) {
    for (int64_t id : in.attrs.list_attr(Attr::kBranchComputations)) {
      const Computation computation = in.attrs.Live(id);
      if (!computation.valid()) return Error("missing branch computation ", branches.size());
      HLOKIT_RETURN_IF_ERROR(Signature::Read(computation, "the branch", &branches.emplace_back()));
    }
  } else {
    HLOKIT_RETURN_IF_ERROR(
        Signature::Read(in, Attr::kTrueComputation, "the true computation", &branches.emplace_back()));
    HLOKIT_RETURN_IF_ERROR(
        Signature::Read(in, Attr::kFalseComputation, "the false computation", &branches.emplace_back()));
  }
  const auto count = static_cast<int64_t>(branches.size());
  if (by_pred ? count != 2 : count == 0) {
    return Error("expected ", by_pred ? "two branches" : "at least one branch", " for a conditional on ", Text(index),
                 ", found ", count);
  }
  HLOKIT_RETURN_IF_ERROR(ExpectOperandCount(in, count + 1));
  bool same = true;
  for (int64_t i = 0; i < count; ++i) {
    if (branches[i].parameter_count() != 1) {
      return Error("expected 1 parameter of branch ", i, ", found ", branches[i].parameter_count());
    }
    HLOKIT_RETURN_IF_ERROR(CheckArgument(in, i + 1, branches[i], 0, StrCat("branch ", i)));
    if (!ShapesMatch(branches[i].result(), branches[0].result(), TypeMatch::kExact)) {
      return Error("branch 0 returns ", Text(branches[0].result()), ", but branch ", i, " returns ",
                   Text(branches[i].result()));
    }
    same &= Compatible(branches[i].result(), branches[0].result());
  }
  if (same || !in.layouts) {
    out->Set(branches[0].result());
    return absl::OkStatus();
  }
  std::vector<Shape> results;
  for (const Signature& branch : branches) results.push_back(branch.result());
  out->Set(MergeDynamism(in, std::move(results)));
  return absl::OkStatus();
}

absl::Status InferReplicaId(const InferenceContext&, InferredShape* out) {
  out->SetArray(ElementType::kU32);
  return absl::OkStatus();
}

absl::Status InferRng(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectOperandCount(in, 2));
  HLOKIT_RETURN_IF_ERROR(ExpectDeclared(in));
  const Shape a = in.operand(0);
  const Shape b = in.operand(1);
  for (int64_t i = 0; i < 2; ++i) {
    if (!in.operand(i).IsScalar()) return Error("operand ", i, " must be a scalar, found ", Text(in.operand(i)));
  }
  if (a.element_type() != b.element_type()) {
    return Error("operands must have the same element type, found ", Text(a), " and ", Text(b));
  }
  const bool normal = in.attrs.enum_attr(Attr::kDistribution, RngDistribution::kUniform) == RngDistribution::kNormal;
  if (normal ? !IsFloat(a.element_type()) : IsComplex(a.element_type())) {
    return Error("unsupported element type ", ToString(a.element_type()), " for distribution ",
                 normal ? "rng_normal" : "rng_uniform");
  }
  HLOKIT_RETURN_IF_ERROR(ExpectArray(in.declared(), "the result"));
  out->SetRetyped(in.declared(), a.element_type());
  return absl::OkStatus();
}

// (state, bits), or the bits alone.
absl::Status InferRngBitGenerator(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectDeclared(in));
  const Shape result = in.declared();
  out->Set(result);
  if (!result.IsTuple()) return absl::OkStatus();
  if (result.tuple_size() != 2) return Error("the result must be a state and an array of bits, found ", Text(result));
  out->SetTuple();
  out->AddElement(in.operand(0));
  out->AddElement(result.element(1));
  return absl::OkStatus();
}

absl::Status InferRngGetAndUpdateState(const InferenceContext&, InferredShape* out) {
  out->SetArray(ElementType::kU64);
  out->AddDim(2);
  return absl::OkStatus();
}

}  // namespace hlokit::inference
