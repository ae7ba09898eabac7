// SPDX-License-Identifier: Apache-2.0
// Attributes of the dialect sdy (Shardy), whose codes are those of shardy/dialect/sdy/ir/bytecode.td. They become the
// text that MLIR prints for them, as when a program is read from text.
#include "ir/core/str_cat.h"
#include "parser/bytecode/node_reader.h"
#include "parser/bytecode/sdy_codes.h"

namespace hlokit::bytecode {

using mlir::NodeKind;

namespace {

// The text before and after the contents of an attribute.
struct SdyForm {
  std::string_view prefix, suffix;
};

SdyForm FormOf(sdy::AttributeCode code) {
  switch (code) {
    case sdy::kManualAxes:
      return {"#sdy<manual_axes", ">"};
    case sdy::kMeshAxis:
      return {"#sdy<mesh_axis", ">"};
    case sdy::kMesh:
      return {"#sdy.mesh", ""};
    case sdy::kSubAxis:
      return {"#sdy<sub_axis_info", ">"};
    case sdy::kAxis:
      return {"#sdy<axis_ref", ">"};
    case sdy::kDimension:
      return {"#sdy<dimension_sharding", ">"};
    case sdy::kSharding:
    case sdy::kShardingUnreduced:
    case sdy::kShardingReduction:
      return {"#sdy.sharding", ""};
    case sdy::kShardings:
    case sdy::kShardingsUnreduced:
      return {"#sdy.sharding_per_value", ""};
    case sdy::kDimensionMapping:
      return {"#sdy<dim_mapping ", ">"};
    case sdy::kTensorMapping:
      return {"#sdy<tensor_mapping", ">"};
    case sdy::kRule:
      return {"#sdy.op_sharding_rule", ""};
    case sdy::kAxes:
      return {"#sdy<axis_ref_list", ">"};
    case sdy::kAxesByDimension:
      return {"#sdy<list_of_axis_ref_lists", ">"};
    case sdy::kAllToAll:
      return {"#sdy<all_to_all_param", ">"};
    case sdy::kAllToAlls:
      return {"#sdy<all_to_all_param_list", ">"};
  }
  return {};
}

// i, j, ..., z, z_1, z_2, ...
std::string FactorName(int64_t factor) {
  constexpr int64_t kLast = 'z' - 'i';
  return factor <= kLast ? std::string(1, static_cast<char>('i' + factor)) : StrCat("z_", factor - kLast);
}

}  // namespace

std::string NodeReader::SdyPart(ByteCursor* in, int code) {
  const NodeId part = GetAttribute(in);
  if (!part.valid()) return "";
  const SdyForm form = FormOf(static_cast<sdy::AttributeCode>(code));
  const std::string_view text = nodes_.kind(part) == NodeKind::kVerbatim ? nodes_.text(part) : std::string_view();
  if (!text.starts_with(form.prefix) || text.size() < form.prefix.size() + form.suffix.size()) {
    in->Fail("an attribute of the dialect sdy with a part of another kind");
    return "";
  }
  return std::string(text.substr(form.prefix.size(), text.size() - form.prefix.size() - form.suffix.size()));
}

std::string NodeReader::SdyParts(ByteCursor* in, int code) {
  std::string all;
  const size_t count = in->Count();
  for (size_t i = 0; i < count && in->ok() && SpendSdyText(in, all.size()); ++i) {
    const std::string part = SdyPart(in, code);
    StrAppend(&all, i == 0 ? "" : ", ", part);
  }
  return all;
}

bool NodeReader::SpendSdyText(ByteCursor* in, size_t size) {
  if (size <= sdy_text_budget_) return true;
  in->Fail("attributes of the dialect sdy of too many parts");
  return false;
}

std::string NodeReader::SdyFactors(ByteCursor* in, std::string_view between) {
  std::string text;
  for (int64_t factor : Integers(in)) {
    if (factor < 0) in->Fail("a factor of a sharding rule is negative");
    StrAppend(&text, text.empty() ? "" : between, FactorName(factor));
  }
  return text;
}

// ([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}, custom
std::string NodeReader::SdyRule(ByteCursor* in) {
  const std::vector<int64_t> sizes = Integers(in);
  std::string text = StrCat("<(", SdyParts(in, sdy::kTensorMapping));
  StrAppend(&text, ")->(", SdyParts(in, sdy::kTensorMapping), ")");
  for (size_t i = 0; i < sizes.size(); ++i) {
    StrAppend(&text, i == 0 ? " {" : ", ", FactorName(static_cast<int64_t>(i)), "=", sizes[i]);
  }
  if (!sizes.empty()) text += "}";
  for (std::string_view kind : {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
    const std::string factors = SdyFactors(in, ", ");
    if (!factors.empty()) StrAppend(&text, " ", kind, "={", factors, "}");
  }
  return StrCat(text, in->Byte() != 0 ? ", custom>" : ">");
}

// <@mesh, [{"a"}, {?}], replicated={"b"}, unreduced=max{"c"}>
std::string NodeReader::SdySharding(ByteCursor* in, int code) {
  const NodeId mesh = GetAttribute(in);
  std::string text = "<";
  if (mesh.valid() && nodes_.kind(mesh) == NodeKind::kSymbol) {
    mlir::AppendSymbol(nodes_.text(mesh), &text);
  } else if (mesh.valid()) {
    const std::string_view inline_mesh = nodes_.kind(mesh) == NodeKind::kVerbatim ? nodes_.text(mesh) : "";
    const SdyForm form = FormOf(sdy::kMesh);
    if (!inline_mesh.starts_with(form.prefix)) in->Fail("a sharding whose mesh is none");
    if (!in->ok()) return "";
    StrAppend(&text, "mesh", inline_mesh.substr(form.prefix.size()));
  }
  StrAppend(&text, ", [", SdyParts(in, sdy::kDimension), "]");
  const std::string replicated = SdyParts(in, sdy::kAxis);
  if (!replicated.empty()) StrAppend(&text, ", replicated={", replicated, "}");
  if (code == sdy::kSharding) return text + ">";
  const std::string unreduced = SdyParts(in, sdy::kAxis);
  const int64_t reduction = code == sdy::kShardingReduction ? in->SignedVarInt() : 0;
  constexpr std::string_view kReductions[] = {"", "max", "min"};
  if (reduction < 0 || reduction >= static_cast<int64_t>(std::size(kReductions))) {
    in->Fail(StrCat("the reduction ", reduction, " of unreduced axes is unknown"));
    return "";
  }
  if (!unreduced.empty()) StrAppend(&text, ", unreduced=", kReductions[reduction], "{", unreduced, "}");
  return text + ">";
}

std::string NodeReader::SdyMesh(ByteCursor* in) {
  std::string text = StrCat("<[", SdyParts(in, sdy::kMeshAxis), "]");
  const std::vector<int64_t> ids = Integers(in);
  for (size_t i = 0; i < ids.size(); ++i) StrAppend(&text, i == 0 ? ", device_ids=[" : ", ", ids[i]);
  return text + (ids.empty() ? ">" : "]>");
}

std::string NodeReader::SdyDimension(ByteCursor* in) {
  const std::string axes = SdyParts(in, sdy::kAxis);
  const bool closed = in->Byte() != 0;
  std::string text = StrCat("{", axes, closed ? "" : axes.empty() ? "?" : ", ?", "}");
  bool has_priority = false;
  const uint64_t priority = in->VarIntWithFlag(&has_priority);
  if (has_priority) StrAppend(&text, "p", priority);
  return text;
}

std::string NodeReader::SdyAxis(ByteCursor* in) {
  std::string text;
  mlir::AppendQuoted(String(in), &text);
  bool has_part = false;
  const uint64_t part = in->VarIntWithFlag(&has_part);
  if (!has_part || !in->ok()) return text;
  const NodeId node = At(in, {false, part});
  if (!node.valid()) return "";
  const SdyForm form = FormOf(sdy::kSubAxis);
  const std::string_view found = nodes_.kind(node) == NodeKind::kVerbatim ? nodes_.text(node) : "";
  if (!found.starts_with(form.prefix)) in->Fail("an axis whose part is none");
  if (!in->ok()) return "";
  return StrCat(text, ":", found.substr(form.prefix.size(), found.size() - form.prefix.size() - form.suffix.size()));
}

std::string NodeReader::SdyContents(ByteCursor* in, int code) {
  std::string text;
  switch (static_cast<sdy::AttributeCode>(code)) {
    case sdy::kManualAxes: {
      const std::vector<NodeId> names = GetList(in, false);
      if (!Ready(*in)) return "";
      for (NodeId name : names) {
        if (nodes_.kind(name) != NodeKind::kString) in->Fail("a manual axis without a name");
        if (!in->ok()) return "";
        text += text.empty() ? "{" : ", ";
        mlir::AppendQuoted(nodes_.text(name), &text);
        if (!SpendSdyText(in, text.size())) return "";
      }
      return text.empty() ? "{}" : text + "}";
    }
    case sdy::kMeshAxis:
      mlir::AppendQuoted(String(in), &text);
      return StrCat(text, "=", in->SignedVarInt());
    case sdy::kMesh:
      return SdyMesh(in);
    case sdy::kSubAxis: {
      const int64_t before = in->SignedVarInt();
      return StrCat("(", before, ")", in->SignedVarInt());
    }
    case sdy::kAxis:
      return SdyAxis(in);
    case sdy::kDimension:
      return SdyDimension(in);
    case sdy::kSharding:
    case sdy::kShardingUnreduced:
    case sdy::kShardingReduction:
      return SdySharding(in, code);
    case sdy::kShardings:
    case sdy::kShardingsUnreduced:
      return StrCat("<[", SdyParts(in, sdy::kSharding), "]>");
    case sdy::kDimensionMapping:
      return SdyFactors(in, "");
    case sdy::kTensorMapping:
      return StrCat("[", SdyParts(in, sdy::kDimensionMapping), "]");
    case sdy::kRule:
      return SdyRule(in);
    case sdy::kAxes:
      return StrCat("{", SdyParts(in, sdy::kAxis), "}");
    case sdy::kAxesByDimension:
      return StrCat("[", SdyParts(in, sdy::kAxes), "]");
    case sdy::kAllToAll: {
      text = StrCat("{", SdyParts(in, sdy::kAxis), "}");
      const int64_t source = in->SignedVarInt();
      return StrCat(text, ": ", source, "->", in->SignedVarInt());
    }
    case sdy::kAllToAlls:
      return StrCat("[", SdyParts(in, sdy::kAllToAll), "]");
  }
  in->Fail(StrCat("the attribute ", code, " of the dialect sdy is unknown"));
  return "";
}

mlir::NodeId NodeReader::SdyAttribute(ByteCursor* in) {
  const uint64_t code = in->VarInt();
  if (!in->ok()) return {};
  if (code > sdy::kLastAttribute) return Fail(in, StrCat("the attribute ", code, " of the dialect sdy is unknown"));
  const std::string contents = SdyContents(in, static_cast<int>(code));
  if (!Ready(*in) || !SpendSdyText(in, contents.size())) return {};
  sdy_text_budget_ -= contents.size();
  const SdyForm form = FormOf(static_cast<sdy::AttributeCode>(code));
  return nodes_.Make(NodeKind::kVerbatim, StrCat(form.prefix, contents, form.suffix), {}, {});
}

}  // namespace hlokit::bytecode
