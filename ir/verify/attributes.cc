// SPDX-License-Identifier: Apache-2.0
// Verifies attribute values that shape inference does not depend on.
#include "ir/core/str_cat.h"
#include "ir/graph/complete_attributes.h"
#include "ir/inference/shape_inference.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {

void CheckBroadcast(VerifierContext& v, Instruction i) {
  if (!v.options.verify_broadcast_dimensions_order) return;
  const absl::Span<const int64_t> dims = i.list_attr(Attr::kDimensions);
  for (size_t n = 1; n < dims.size(); ++n) {
    if (dims[n - 1] < dims[n]) continue;
    v.Report(i, DiagnosticKind::kAttributeValue,
             StrCat("dimensions ", IndexText(dims), " are not in increasing order"));
    return;
  }
}

void CheckCompare(VerifierContext& v, Instruction i) {
  const std::optional<uint32_t> given = i.payload(Attr::kCompareType);
  if (!given) return;
  const ElementType element = i.operand(1).shape().element_type();
  const auto type = static_cast<ComparisonType>(*given);
  const ComparisonType fits = DefaultComparison(element);
  if (type == fits || (IsFloat(element) && type == ComparisonType::kTotalOrder)) return;
  const auto text = [](ComparisonType t) { return EnumTexts(EnumType::kComparisonType)[static_cast<size_t>(t)]; };
  v.Report(i, DiagnosticKind::kAttributeValue,
           StrCat("compares ", ToString(element), " as ", text(type), "; expected ", text(fits)));
}

void CheckConstant(VerifierContext& v, Instruction i) {
  if (i.literal_id().value >= v.module.context().literals.size()) {
    v.Report(i, DiagnosticKind::kAttributeValue, "has no literal");
    return;
  }
  const Shape value = i.literal().shape;
  if (CompatibleIgnoringDynamism(value, i.shape())) return;
  v.Report(i, DiagnosticKind::kInference, StrCat("is ", ShapeText(i.shape()), "; its literal is ", ShapeText(value)));
}

void CheckParameter(VerifierContext& v, Instruction i) {
  if (!i.has(Attr::kParameterReplication)) return;
  const int64_t values = static_cast<int64_t>(i.list_attr(Attr::kParameterReplication).size());
  if (values == i.shape().leaf_count()) return;
  v.Report(i, DiagnosticKind::kAttributeValue,
           StrCat("parameter_replication has ", values, " values; expected ", i.shape().leaf_count(),
                  ", one for each leaf of the shape"));
}

}  // namespace hlokit::verify_internal
