// SPDX-License-Identifier: Apache-2.0
// Shape rules of operations that start and end asynchronous work: copies, sends and receives, infeed, and async
// computations.
//
// The shape of async-start is ((operands), outputs, state...). Operands and outputs may be bound later: async-start has
// the first operands only, each async-update appends more, and outputs grow likewise, from () to all results of the
// computation. The bound ones are thus a prefix of the parameters or results of the computation.
#include <vector>

#include "ir/inference/rules.h"

namespace hlokit::inference {
namespace {

absl::Status ExpectTupleOperand(const InferenceContext& in, int64_t operand, int64_t min_elements) {
  const Shape shape = in.operand(operand);
  if (shape.IsTuple() && shape.tuple_size() >= min_elements) return absl::OkStatus();
  return Error("expected operand ", operand, " to be a tuple of at least ", Counted(min_elements, "element"),
               ", found ", Text(shape));
}

// Returns the first element of the declared tuple, which nothing else determines.
absl::Status DeclaredData(const InferenceContext& in, Shape* data) {
  const Shape declared = in.declared();
  if (!declared.valid()) return Error("the result shape of ", ToString(in.opcode()), " must be specified");
  if (!declared.IsTuple() || declared.tuple_size() == 0) {
    return Error("the result must be a tuple that begins with the data, found ", Text(declared));
  }
  *data = declared.element(0);
  return absl::OkStatus();
}

absl::Status ExpectAsyncShape(Shape shape, std::string_view what) {
  if (shape.IsTuple() && shape.tuple_size() >= 2 && shape.element(0).IsTuple()) return absl::OkStatus();
  return Error(what, " must be ((operands), outputs, state...), found ", Text(shape));
}

// Returns true if `bound` is a bound prefix of the outputs `all`: everything, nothing, or the first elements of a
// tuple.
bool IsBoundPart(Shape bound, Shape all) {
  if (ShapesMatch(bound, all, TypeMatch::kExact)) return true;
  if (!bound.IsTuple()) return false;
  if (bound.tuple_size() == 0) return true;
  if (!all.IsTuple() || bound.tuple_size() > all.tuple_size()) return false;
  for (int64_t i = 0; i < bound.tuple_size(); ++i) {
    if (!ShapesMatch(bound.element(i), all.element(i), TypeMatch::kExact)) return false;
  }
  return true;
}

// Checks that the bound operands and outputs of an async shape are prefixes of those of the computation.
absl::Status CheckBound(Shape async, const Signature& computation) {
  const Shape bound = async.element(0);
  if (bound.tuple_size() > computation.parameter_count()) {
    return Error("the async shape ", Text(async), " has ", bound.tuple_size(),
                 " operands at {0}, but the computation has ", computation.parameter_count(), " parameters");
  }
  for (int64_t i = 0; i < bound.tuple_size(); ++i) {
    if (ShapesMatch(bound.element(i), computation.parameter(i), TypeMatch::kExact)) continue;
    return Error("the async shape has ", Text(bound.element(i)), " at {0,", i, "}, but parameter ", i,
                 " of the computation is ", Text(computation.parameter(i)));
  }
  if (!IsBoundPart(async.element(1), computation.result())) {
    return Error("the async shape has ", Text(async.element(1)),
                 " at {1}, which is neither the result of the computation (", Text(computation.result()),
                 ") nor a prefix of it");
  }
  return absl::OkStatus();
}

// Checks that operands from `first_operand` on are bound as elements from `first_bound` on of {0}.
absl::Status CheckOperandsBound(const InferenceContext& in, int64_t first_operand, int64_t first_bound) {
  const Shape bound = in.declared().element(0);
  const int64_t count = in.operand_count() - first_operand;
  if (bound.tuple_size() != first_bound + count) {
    return Error("the async shape has ", bound.tuple_size(), " operands at {0}, but ", first_bound + count,
                 " are bound");
  }
  for (int64_t i = 0; i < count; ++i) {
    if (ShapesMatch(in.operand(first_operand + i), bound.element(first_bound + i), TypeMatch::kExact)) continue;
    return Error("operand ", first_operand + i, " is ", Text(in.operand(first_operand + i)),
                 ", but the async shape has ", Text(bound.element(first_bound + i)), " at {0,", first_bound + i, "}");
  }
  return absl::OkStatus();
}

}  // namespace

// (destination, source, context)
absl::Status InferCopyStart(const InferenceContext& in, InferredShape* out) {
  out->SetTuple();
  out->AddElement(in.operand(0));
  out->AddElement(in.operand(0));
  out->AddArrayElement(ElementType::kU32);
  return absl::OkStatus();
}

absl::Status InferCopyDone(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectTupleOperand(in, 0, 2));
  const Shape started = in.operand(0);
  if (!ShapesMatch(started.element(0), started.element(1), TypeMatch::kExact)) {
    return Error("operand 0 must hold destination and source of one shape, found ", Text(started));
  }
  out->Set(started.element(0));
  return absl::OkStatus();
}

absl::Status InferSend(const InferenceContext& in, InferredShape* out) {
  out->SetTuple();
  out->AddElement(in.operand(0));
  out->AddArrayElement(ElementType::kU32);
  out->AddElement(in.shapes().Token());
  return absl::OkStatus();
}

absl::Status InferRecv(const InferenceContext& in, InferredShape* out) {
  Shape data;
  HLOKIT_RETURN_IF_ERROR(DeclaredData(in, &data));
  out->SetTuple();
  out->AddElement(data);
  out->AddArrayElement(ElementType::kU32);
  out->AddElement(in.shapes().Token());
  return absl::OkStatus();
}

absl::Status InferRecvDone(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectTupleOperand(in, 0, 1));
  out->SetTuple();
  out->AddElement(in.operand(0).element(0));
  out->AddElement(in.shapes().Token());
  return absl::OkStatus();
}

absl::Status InferInfeed(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectTokenOperand(in, 0));
  Shape data;
  HLOKIT_RETURN_IF_ERROR(DeclaredData(in, &data));
  out->SetTuple();
  out->AddElement(data);
  out->AddElement(in.shapes().Token());
  return absl::OkStatus();
}

absl::Status InferAsyncStart(const InferenceContext& in, InferredShape* out) {
  Signature computation;
  HLOKIT_RETURN_IF_ERROR(Signature::Read(in, Attr::kCalls, "the asynchronous computation", &computation));
  if (!in.declared().valid()) {
    ShapeTable& shapes = in.shapes();
    const Shape async =
        shapes.Tuple({shapes.Tuple(in.operands()), computation.result(), shapes.Scalar(ElementType::kU32)});
    out->Set(async);
    return CheckBound(async, computation);
  }
  HLOKIT_RETURN_IF_ERROR(ExpectAsyncShape(in.declared(), "the result"));
  HLOKIT_RETURN_IF_ERROR(CheckOperandsBound(in, 0, 0));
  HLOKIT_RETURN_IF_ERROR(CheckBound(in.declared(), computation));
  out->Set(in.declared());
  return absl::OkStatus();
}

// Only the start names the computation of the chain, so this checks what the previous member has bound.
absl::Status InferAsyncUpdate(const InferenceContext& in, InferredShape* out) {
  HLOKIT_RETURN_IF_ERROR(ExpectAnyOperand(in));
  const Shape previous = in.operand(0);
  HLOKIT_RETURN_IF_ERROR(ExpectAsyncShape(previous, "operand 0"));
  const Shape before = previous.element(0);
  if (!in.declared().valid()) {
    std::vector<Shape> bound(before.elements().begin(), before.elements().end());
    bound.insert(bound.end(), in.operands().begin() + 1, in.operands().end());
    out->SetTuple();
    out->AddElement(in.shapes().Tuple(bound));
    for (Shape rest : previous.elements().subspan(1)) out->AddElement(rest);
    return absl::OkStatus();
  }
  const Shape declared = in.declared();
  HLOKIT_RETURN_IF_ERROR(ExpectAsyncShape(declared, "the result"));
  HLOKIT_RETURN_IF_ERROR(CheckOperandsBound(in, 1, before.tuple_size()));
  if (!IsBoundPart(before, declared.element(0)) || !IsBoundPart(previous.element(1), declared.element(1))) {
    return Error("the result must preserve the operands bound by operand 0: result ", Text(declared), ", operand 0 ",
                 Text(previous));
  }
  out->Set(declared);
  return absl::OkStatus();
}

absl::Status InferAsyncDone(const InferenceContext& in, InferredShape* out) {
  const Shape previous = in.operand(0);
  HLOKIT_RETURN_IF_ERROR(ExpectAsyncShape(previous, "operand 0"));
  // Remaining outputs are bound at the end; only the computation determines their shapes.
  const Shape declared = in.declared();
  out->Set(declared.valid() && IsBoundPart(previous.element(1), declared) ? declared : previous.element(1));
  return absl::OkStatus();
}

}  // namespace hlokit::inference
