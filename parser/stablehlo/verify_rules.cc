// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/verify_rules.h"

#include <algorithm>

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

bool Rules::CheckOperation() {
  const std::string_view name = n.str(op.name);
  struct Rule {
    std::string_view name;
    bool (Rules::*check)();
  };
  static constexpr Rule kRules[] = {
      {"stablehlo.reduce", &Rules::CheckReduce},
      {"stablehlo.reduce_window", &Rules::CheckReduceWindow},
      {"stablehlo.select_and_scatter", &Rules::CheckSelectAndScatter},
      {"stablehlo.scatter", &Rules::CheckScatter},
      {"stablehlo.while", &Rules::CheckWhile},
      {"stablehlo.dot_general", &Rules::CheckDotGeneral},
      {"stablehlo.dot", &Rules::CheckPrecision},
      {"stablehlo.convolution", &Rules::CheckConvolution},
      {"stablehlo.dynamic_conv", &Rules::CheckConvolution},
      {"stablehlo.all_reduce", &Rules::CheckCollective},
      {"stablehlo.reduce_scatter", &Rules::CheckReduceScatter},
      {"stablehlo.collective_reduce", &Rules::CheckCollective},
      {"stablehlo.all_gather", &Rules::CheckAllGather},
      {"stablehlo.all_to_all", &Rules::CheckGroups},
      {"stablehlo.collective_broadcast", &Rules::CheckCollective},
      {"stablehlo.collective_permute", &Rules::CheckPermute},
      {"stablehlo.send", &Rules::CheckChannelType},
      {"stablehlo.recv", &Rules::CheckChannelType},
      {"stablehlo.broadcast_in_dim", &Rules::CheckBroadcastInDim},
      {"stablehlo.dynamic_broadcast_in_dim", &Rules::CheckBroadcastInDim},
      {"stablehlo.bitcast_convert", &Rules::CheckBitcastConvert},
      {"stablehlo.reshape", &Rules::CheckReshape},
      {"stablehlo.reverse", &Rules::CheckReverse},
  };
  for (const Rule& rule : kRules) {
    if (rule.name == name) return (this->*rule.check)();
  }
  return CheckAccuracy();
}

bool Rules::IsStatic(NodeId type) const {
  return IsTensor(type) && std::find(sizes(type).begin(), sizes(type).end(), mlir::kDynamicSize) == sizes(type).end();
}

bool Rules::IsQuantized(NodeId type) const { return IsTensor(type) && n.kind(element(type)) == NodeKind::kDialectType; }

std::string Rules::ListText(absl::Span<const int64_t> values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) text += ", ";
    text += values[i] == mlir::kDynamicSize ? std::string("?") : StrCat(values[i]);
  }
  return text;
}

bool Rules::ShapesAgree(absl::Span<const int64_t> a, absl::Span<const int64_t> b) const {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), SizesAgree);
}

bool Rules::CompatibleElements(NodeId a, NodeId b) const {
  const bool quantized = n.kind(a) == NodeKind::kDialectType || n.kind(b) == NodeKind::kDialectType;
  return quantized || a == b;
}

bool Rules::Compatible(NodeId a, NodeId b) const {
  if (a == b) return true;
  if (!IsTensor(a) || !IsTensor(b)) return false;
  return CompatibleElements(element(a), element(b)) && ShapesAgree(sizes(a), sizes(b));
}

bool Rules::CheckAccuracy() {
  const NodeId value = m.attribute(op, "result_accuracy");
  if (!value.valid() || n.kind(value) != NodeKind::kFields) return true;
  const NodeId mode = n.Entry(value, "mode");
  if (!mode.valid() || n.kind(mode) != NodeKind::kEnum) return true;
  const std::string_view text = n.str(StringId(static_cast<uint32_t>(n.ints(mode)[0])));
  bool any = false;
  for (std::string_view name : {"atol", "rtol", "ulps"}) {
    const NodeId number = n.Entry(value, name);
    any = any || (number.valid() && !n.ints(number).empty() && n.ints(number)[0] != 0);
  }
  if (text != "TOLERANCE" && any) {
    return Fail(StrCat("Invalid tolerances for ResultAccuracyAttr with mode ", text, ", must be all zero."));
  }
  return true;
}

}  // namespace hlokit::stablehlo
