// SPDX-License-Identifier: Apache-2.0
#include "tracer/lowering/lowering_context.h"

#include <memory>

#include "ir/core/str_cat.h"
#include "tracer/lowering/argument_checks.h"

namespace hlokit::lazy {

void lower::None(LoweringContext& n) {
  n.emitter().Fail(absl::InternalError(StrCat(SymbolOf(n.op()), " has no lowering")));
}

absl::StatusOr<std::vector<Shape>> InferShapesByLowering(Op op, absl::Span<const int64_t> attrs,
                                                         absl::Span<const Shape> operands,
                                                         const std::shared_ptr<Context>& context) {
  Module module(context);
  const ComputationId entry = module.AddComputation(context->strings.Intern("trial"));
  XlaEmitter e(&module, entry);
  std::vector<InstructionId> ids;
  for (size_t i = 0; i < operands.size(); ++i) {
    const XlaOp p = e.Take(e.builder().Parameter(static_cast<int64_t>(i), operands[i]));
    if (!p.ok()) return e.status();
    ids.push_back(p.id());
  }
  const EncodedArgs args = DecodeArgs(attrs);
  LoweringContext n(&e, op, args, ids);
  const OpInfo& info = InfoOf(op);
  if (CheckArguments(n)) (info.lower == nullptr ? &lower::None : info.lower)(n);
  if (!e.status().ok()) {
    return absl::Status(e.status().code(),
                        absl::string_view(StrCat(SymbolOf(op), ": ", std::string(e.status().message()))));
  }
  std::vector<Shape> shapes;
  for (const XlaOp& result : n.results()) {
    const Shape shape = result.shape();
    if (shape.element_count() < 0) {
      return absl::InvalidArgumentError(
          StrCat(SymbolOf(op), ": Storage size calculation overflowed with a result of ", ToString(shape, false)));
    }
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace hlokit::lazy
