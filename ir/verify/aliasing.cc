// SPDX-License-Identifier: Apache-2.0
// Verifies output_to_operand_aliasing of fusions, custom calls and asynchronous instructions, and XLA's further rules
// for custom calls that it recognizes.
#include "ir/core/str_cat.h"
#include "ir/graph/operand_alias.h"
#include "ir/inference/shape_inference.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

constexpr DiagnosticKind kAliasingKind = DiagnosticKind::kAliasing;

// Compares storage. With `through_buffers`, a buffer counts as the array it holds.
bool SameStorage(VerifierContext& v, Shape a, Shape b, bool through_buffers) {
  if (through_buffers) {
    if (a.IsBuffer()) a = a.element(0);
    if (b.IsBuffer()) b = b.element(0);
  }
  return SameShapes(v, a, b);
}

void ReportDifferent(VerifierContext& v, Instruction i, const OperandAlias& alias, Shape output, Shape operand) {
  v.Report(
      i, kAliasingKind,
      StrCat("output ", IndexText(alias.output_index), " is ", ShapeText(output, true), ", which cannot alias operand ",
             alias.operand, " ", IndexText(alias.operand_index), ", ", ShapeText(operand, true)));
}

struct AliasedShapes {
  Shape output;
  Shape operand;
};

// Returns the two subshapes that `alias` names, if they exist. `operand` is the shape at its operand number, invalid if
// there is none.
std::optional<AliasedShapes> Resolve(VerifierContext& v, Instruction i, const OperandAlias& alias, Shape result,
                                     Shape operand) {
  if (!operand.valid()) {
    v.Report(i, kAliasingKind,
             StrCat("aliases operand ", alias.operand, ", but has ", Counted(i.operand_count(), "operand")));
    return std::nullopt;
  }
  const std::optional<Shape> from = SubshapeAt(operand, alias.operand_index);
  if (!from) {
    v.Report(i, kAliasingKind,
             StrCat("aliases operand ", alias.operand, " ", IndexText(alias.operand_index), "; that operand is ",
                    ShapeText(operand, true)));
    return std::nullopt;
  }
  const std::optional<Shape> to = SubshapeAt(result, alias.output_index);
  if (!to) {
    v.Report(i, kAliasingKind,
             StrCat("aliases output ", IndexText(alias.output_index), "; its shape is ", ShapeText(result, true)));
    return std::nullopt;
  }
  return AliasedShapes{*to, *from};
}

Shape OperandShape(Instruction i, int64_t n) {
  return n >= 0 && n < i.operand_count() ? i.operand(n).shape() : Shape();
}

void CheckAliases(VerifierContext& v, Instruction i, bool through_buffers, bool any_shapes) {
  absl::Span<const int64_t> encoded = i.list_attr(Attr::kOutputToOperandAliasing);
  while (const std::optional<OperandAlias> alias = NextOperandAlias(&encoded)) {
    const std::optional<AliasedShapes> shapes = Resolve(v, i, *alias, i.shape(), OperandShape(i, alias->operand));
    if (shapes && !any_shapes && !SameStorage(v, shapes->output, shapes->operand, through_buffers)) {
      ReportDifferent(v, i, *alias, shapes->output, shapes->operand);
    }
  }
}

// Returns true if every array in `shape` has a layout.
bool HasLayouts(VerifierContext& v, Shape shape) {
  std::vector<Shape> stack = {shape};
  while (!stack.empty()) {
    const Shape s = stack.back();
    stack.pop_back();
    if (s.IsArray() && !s.has_layout()) return false;
    if (--v.search_budget < 0) return true;
    stack.insert(stack.end(), s.elements().begin(), s.elements().end());
  }
  return true;
}

void CheckLayoutConstraints(VerifierContext& v, Instruction i) {
  const absl::Span<const int64_t> constraints = i.list_attr(Attr::kOperandLayoutConstraints);
  if (!HasLayouts(v, i.shape())) {
    v.Report(i, DiagnosticKind::kLayout, "has operand_layout_constraints, but its result has no layout");
  }
  if (static_cast<int64_t>(constraints.size()) != i.operand_count()) {
    v.Report(i, DiagnosticKind::kLayout,
             StrCat("has ", Counted(i.operand_count(), "operand"), " and ",
                    Counted(constraints.size(), "layout constraint")));
    return;
  }
  for (int64_t n = 0; n < i.operand_count(); ++n) {
    const Shape wanted = v.module.context().shape(ShapeId(static_cast<uint32_t>(constraints[n])));
    if (!CompatibleIgnoringDynamism(i.operand(n).shape(), wanted)) {
      v.Report(i, DiagnosticKind::kLayout,
               StrCat("operand ", n, " is ", ShapeText(i.operand(n).shape()), "; its layout constraint is ",
                      ShapeText(wanted, true)));
    } else if (!HasLayouts(v, wanted)) {
      v.Report(i, DiagnosticKind::kLayout, StrCat("the layout constraint of operand ", n, " has no layout"));
    }
  }
}

void CheckGetRngSeed(VerifierContext& v, Instruction i) {
  if (i.operand_count() != 0) {
    v.Report(i, DiagnosticKind::kOperandCount,
             StrCat("expected no operands for GetRngSeed, found ", i.operand_count()));
  }
  if (!i.shape().IsScalar() || i.shape().element_type() != ElementType::kU64) {
    v.Report(i, DiagnosticKind::kInference,
             StrCat("expected u64[] as the result of GetRngSeed, found ", ShapeText(i.shape())));
  }
}

}  // namespace

void CheckFusionAliasing(VerifierContext& v, Instruction i) {
  CheckAliases(v, i, /*through_buffers=*/false, /*any_shapes=*/false);
}

void CheckCustomCall(VerifierContext& v, Instruction i) {
  const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
  if (i.has(Attr::kOperandLayoutConstraints) && target != "LayoutConstraint" && target != "control_dep") {
    CheckLayoutConstraints(v, i);
  }
  CheckAliases(v, i, target == "Pin" || target == "Unpin",
               FrontendAttribute(i, "xla_skip_custom_call_alias_shape_check").has_value());
  if (target == "GetRngSeed") CheckGetRngSeed(v, i);
  if (target == "Pin" || target == "Unpin" || target == "CreateBuffer") v.has_buffer_calls = true;
}

// An async-start may bind its operands later, so aliases refer to the parameters and the result of its computation;
// output indices are those of the whole asynchronous tuple.
void CheckAsyncStartAliasing(VerifierContext& v, Instruction i) {
  const Computation called = i.computation_attr(Attr::kCalls);
  absl::Span<const int64_t> encoded = i.list_attr(Attr::kOutputToOperandAliasing);
  while (const std::optional<OperandAlias> alias = NextOperandAlias(&encoded)) {
    const bool exists = alias->operand >= 0 && alias->operand < called.parameter_count();
    const Shape operand = exists ? called.parameter(alias->operand).shape() : Shape();
    OperandAlias inner = *alias;
    Shape whole = i.shape();
    if (!alias->output_index.empty() && alias->output_index[0] == 1) {
      whole = called.root().shape();
      inner.output_index.remove_prefix(1);
    } else if (!alias->output_index.empty() && alias->output_index[0] == 0) {
      // Operands are among the outputs too, each under its number.
      const absl::Span<const int64_t> index = alias->output_index;
      if (index.size() > 1 && index[1] >= 0 && index[1] < called.parameter_count()) {
        whole = called.parameter(index[1]).shape();
        inner.output_index.remove_prefix(2);
      }
    }
    if (alias->output_index.empty()) {
      v.Report(i, kAliasingKind, "aliases its whole output; only elements of an async tuple can be aliased");
      continue;
    }
    const std::optional<AliasedShapes> shapes = Resolve(v, i, inner, whole, operand);
    if (shapes && !SameStorage(v, shapes->output, shapes->operand, /*through_buffers=*/true)) {
      ReportDifferent(v, i, *alias, shapes->output, shapes->operand);
    }
  }
}

void CheckAsyncUpdateAliasing(VerifierContext& v, Instruction i) {
  CheckAliases(v, i, /*through_buffers=*/true, /*any_shapes=*/false);
}

}  // namespace hlokit::verify_internal
