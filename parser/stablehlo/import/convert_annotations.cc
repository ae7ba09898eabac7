// SPDX-License-Identifier: Apache-2.0
// Shardings and frontend attributes.
#include "absl/strings/escaping.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/sharding/sharding.h"
#include "ir/text/frontend_attributes.h"
#include "parser/hlo/sharding_parser.h"
#include "parser/proto/sharding_proto.h"
#include "parser/stablehlo/import/converter.h"
#include "parser/stablehlo/kept_attributes.h"
#include "parser/text/text_cursor.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

absl::StatusOr<ListId> Converter::ReadShardingText(std::string_view text) {
  if (text.starts_with("#sdy.")) {
    if (const auto found = sdy_shardings_.find(std::string(text)); found != sdy_shardings_.end()) return found->second;
    absl::StatusOr<std::string> converted = HloShardingOf(text, meshes_, &device_budget_);
    if (!converted.ok()) return converted.status();
    absl::StatusOr<ListId> read = ReadShardingText(*converted);  // which begins with a brace
    if (read.ok()) sdy_shardings_.emplace(std::string(text), *read);
    return read;
  }
  if (!text.starts_with('{')) {
    // The bytes of an OpSharding, or these in base64.
    xla::OpSharding proto;
    std::string bytes;
    const bool good =
        proto.ParseFromArray(text.data(), static_cast<int>(text.size())) ||
        (absl::Base64Unescape(absl::string_view(text.data(), text.size()), &bytes) && proto.ParseFromString(bytes));
    if (!good) return Invalid("has a sharding that is neither text nor a serialized protocol buffer");
    return ReadSharding(
        proto, [](const xla::OpMetadata&) { return MetadataId(); }, &context());
  }
  // A NUL follows the text of a cursor, and the text stays with the context.
  const std::string_view stored = context().str(context().strings.Intern(StrCat(text, '\0')));
  DiagnosticSink sink;
  TextCursor in(stored.substr(0, stored.size() - 1), &sink);
  ListId sharding;
  if (!ParseSharding(in, &context(), &sharding) || !in.AtEnd()) {
    return Invalid(StrCat("has a malformed sharding: ",
                          sink.diagnostics().empty() ? "text after its end" : sink.diagnostics()[0].message));
  }
  return sharding;
}

absl::Status Converter::SetSharding(InstructionId id, std::string_view text) {
  absl::StatusOr<ListId> sharding = ReadShardingText(text);
  if (!sharding.ok()) return sharding.status();
  module_->SetAttr(id, Attr::kSharding, NormalizeForShape(&context(), *sharding, shape_of(id)).value);
  return absl::OkStatus();
}

ListId Converter::ShardingOf(InstructionId id) const {
  const std::optional<uint32_t> payload = module_->instruction(id).payload(Attr::kSharding);
  return payload ? ListId(*payload) : ListId();
}

InstructionId Converter::Element(InstructionId tuple, int64_t index) {
  const InstructionId made = b().MakeElement(tuple, index);
  const ListId sharding = ShardingOf(tuple);
  const Instruction element = module_->instruction(made);
  const bool fresh = element.opcode() == Opcode::kGetTupleElement && element.operand(0).id() == tuple;
  const std::optional<uint32_t> frontend = module_->instruction(tuple).payload(Attr::kFrontendAttributes);
  if (fresh && options_.as_xla && frontend) module_->SetAttr(made, Attr::kFrontendAttributes, *frontend);
  if (!fresh || !sharding.valid() || !IsTupleSharding(context(), sharding) || ShardingOf(made).valid()) return made;
  // Only of flat tuples is the i-th leaf the i-th element.
  const Shape shape = shape_of(tuple);
  if (shape.leaf_count() != shape.tuple_size()) return made;
  const Sharding all = DecodeSharding(context(), sharding);
  int64_t at = 0;
  for (const Sharding::Run& run : all.runs) {
    at += run.count;
    if (index >= at) continue;
    const ListId leaf = EncodeLeaf(&context(), run.leaf);
    module_->SetAttr(made, Attr::kSharding, NormalizeForShape(&context(), leaf, shape_of(made)).value);
    break;
  }
  return made;
}

InstructionId Converter::PickElement(InstructionId tuple, int64_t index) {
  const Result made =
      b().Add(Opcode::kGetTupleElement, {tuple}, {Int(Attr::kIndex, index)}, shape_of(tuple).element(index));
  return made.ok() ? *made : b().MakeElement(tuple, index);
}

void Converter::ShardTuple(InstructionId tuple, const std::vector<ListId>& leaves) {
  const Shape shape = shape_of(tuple);
  if (!shape.IsTuple() || shape.leaf_count() != static_cast<int64_t>(leaves.size()) ||
      shape.tuple_size() != shape.leaf_count()) {
    return;
  }
  std::vector<ListId> all;
  bool any = false;
  for (ListId leaf : leaves) {
    any = any || leaf.valid();
    all.push_back(leaf.valid() ? leaf : EncodeLeaf(&context(), ShardingLeaf()));
  }
  if (any) module_->SetAttr(tuple, Attr::kSharding, EncodeTupleSharding(&context(), all).value);
}

InstructionId Converter::MakeShardedTuple(const std::vector<InstructionId>& values) {
  const InstructionId tuple = b().MakeTuple(values);
  std::vector<ListId> leaves;
  for (InstructionId value : values) leaves.push_back(ShardingOf(value));
  const Instruction made = module_->instruction(tuple);
  if (made.opcode() == Opcode::kTuple && !ShardingOf(tuple).valid()) ShardTuple(tuple, leaves);
  return tuple;
}

std::vector<ListId> Converter::LeavesOf(const Op& op) {
  const std::string_view text = StringOf(op, "mhlo.sharding");
  std::vector<ListId> leaves;
  if (text.empty()) return leaves;
  const absl::StatusOr<ListId> sharding = ReadShardingText(text);
  if (!sharding.ok()) return leaves;  // reported where it is set
  const Sharding all = DecodeSharding(context(), *sharding);
  if (all.leaf_count() > kMaxLeaves) return leaves;
  for (const Sharding::Run& run : all.runs) {
    leaves.insert(leaves.end(), static_cast<size_t>(run.count), EncodeLeaf(&context(), run.leaf));
  }
  // One sharding that is no tuple's holds for every result.
  if (leaves.size() == 1 && op.result_count > 1 && !IsTupleSharding(context(), *sharding)) {
    leaves.resize(op.result_count, leaves[0]);
  }
  return leaves;
}

absl::StatusOr<ListId> Converter::FrontendAttributes(NodeId dictionary) {
  std::vector<FrontendAttribute> entries;
  const absl::Span<const int64_t> names = nodes().ints(dictionary);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string_view key = nodes().str(StringId(static_cast<uint32_t>(names[i])));
    const NodeId value = nodes().child(dictionary, i);
    const std::string text =
        nodes().kind(value) == NodeKind::kString ? std::string(nodes().text(value)) : mlir::ToText(nodes(), value);
    entries.push_back({context().strings.Intern(key), context().strings.Intern(text)});
  }
  return EncodeFrontendAttributes(&context(), std::move(entries));
}

absl::Status Converter::SetFrontend(InstructionId id, NodeId dictionary) {
  absl::StatusOr<ListId> list = FrontendAttributes(dictionary);
  if (!list.ok()) return list.status();
  for (const FrontendAttribute& entry : DecodeFrontendAttributes(context(), *list)) {
    const bool call = module_->instruction(id).opcode() == Opcode::kCall;
    if (call && context().str(entry.first) == "backend_config") continue;  // the call's own
    AddFrontend(id, context().str(entry.first), context().str(entry.second));
    if (context().str(entry.first) != kSdySharding || ShardingOf(id).valid()) continue;
    if (module_->instruction(id).opcode() != Opcode::kParameter) continue;  // those of others are only kept
    // Programs that went through HLO before have shardings of sdy here. HLO may have no place for one.
    SetSharding(id, context().str(entry.second)).IgnoreError();
  }
  return absl::OkStatus();
}

void Converter::AddFrontend(InstructionId id, std::string_view key, std::string_view value) {
  std::vector<FrontendAttribute> entries;
  if (const std::optional<uint32_t> list = module_->instruction(id).payload(Attr::kFrontendAttributes)) {
    entries = DecodeFrontendAttributes(context(), ListId(*list));
  }
  const StringId name = context().strings.Intern(key);
  for (const FrontendAttribute& entry : entries) {
    if (entry.first == name) return;
  }
  entries.push_back({name, context().strings.Intern(value)});
  module_->SetAttr(id, Attr::kFrontendAttributes, EncodeFrontendAttributes(&context(), std::move(entries)).value);
}

// ---- attributes of MLIR ----

void Converter::Keep(std::string_view name, NodeId value, KeptAttributes* kept) {
  if (name.find('.') == std::string_view::npos) return;
  kept->names.push_back(mutable_nodes().strings().Intern(name).value);
  kept->values.push_back(value);
}

std::string Converter::TextOf(const KeptAttributes& kept) {
  if (kept.names.empty()) return "";
  return mlir::ToText(nodes(), mutable_nodes().Make(NodeKind::kDictionary, "", kept.names, kept.values));
}

void Converter::AddModuleFrontend(std::string_view key, std::string_view value) {
  if (value.empty()) return;
  ListId& list = module_->header().frontend_attributes;
  std::vector<FrontendAttribute> entries;
  if (list.valid()) entries = DecodeFrontendAttributes(context(), list);
  const StringId name = context().strings.Intern(key);
  for (const FrontendAttribute& entry : entries) {
    if (entry.first == name) return;
  }
  entries.push_back({name, context().strings.Intern(value)});
  list = EncodeFrontendAttributes(&context(), std::move(entries));
}

absl::Status Converter::SetSdySharding(InstructionId id, std::string_view text) {
  AddFrontend(id, kSdySharding, text);
  return SetSharding(id, text);
}

// ---- sdy ----

absl::Status Converter::FindMeshes() {
  std::string text;
  for (const Op& op : program_.operations) {
    if (op.kind() != OpKind::kSdyMesh) continue;
    const std::string mesh = mlir::ToText(nodes(), Attribute(op, "mesh"));
    absl::StatusOr<SdyMesh> read = ReadSdyMeshText(mesh);
    if (!read.ok()) return Error(op, std::string(read.status().message()));
    const std::string_view name = StringOf(op, "sym_name");
    meshes_.emplace(std::string(name), *std::move(read));
    StrAppend(&text, text.empty() ? "" : ", ", name, " = ", mesh);
  }
  if (text.empty()) return FindRoundTripMeshes();
  // As XLA keeps them on the way through HLO.
  const FrontendAttribute entry = {context().strings.Intern("xla.sdy.meshes"),
                                   context().strings.Intern(StrCat("{", text, "}"))};
  module_->header().frontend_attributes = EncodeFrontendAttributes(&context(), {entry});
  return absl::OkStatus();
}

// Of a program that went through HLO before: xla.sdy.meshes = "{mesh = #sdy.mesh<...>}".
absl::Status Converter::FindRoundTripMeshes() {
  const NodeId frontend = root_.valid() ? Attribute(program_.op(root_), "mhlo.frontend_attributes") : NodeId();
  if (!frontend.valid() || nodes().kind(frontend) != NodeKind::kDictionary) return absl::OkStatus();
  const NodeId meshes = nodes().Entry(frontend, "xla.sdy.meshes");
  if (!meshes.valid() || nodes().kind(meshes) != NodeKind::kString) return absl::OkStatus();
  absl::StatusOr<SdyMeshes> read = ReadSdyMeshes(nodes().text(meshes));
  if (read.ok()) meshes_ = *std::move(read);  // otherwise it is an attribute as any other
  return absl::OkStatus();
}

absl::Status Converter::ConvertNothing(const Op& op) {
  for (size_t i = 0; i < op.result_count; ++i) Bind(program_.result(op, i), operand(op, i));
  return absl::OkStatus();
}

void Converter::WarnOfAttribute(const Op& op, std::string_view name) {
  if (warned_of_attributes_) return;
  warned_of_attributes_ = true;
  std::vector<std::string_view> known;
  if (op.kind() != OpKind::kUnregistered) {
    for (const mlir::AttributeDefinition& attribute : mlir::DefinitionOf(op.kind()).attributes) {
      known.push_back(attribute.name);
    }
  }
  const std::string_view near = FindNearest(name, known);
  sink_->Warning(DiagnosticKind::kUnknownAttribute, program_.range(op),
                 StrCat("'", nodes().str(op.name), "' op has no attribute `", name, "`, which has no effect"),
                 near.empty() ? "further ones of this file are not reported" : StrCat("did you mean `", near, "`?"));
}

absl::Status Converter::Annotate(const Op& op, InstructionId id) {
  SetNamedAttributes(op, id);
  SetKeptAttributes(op, id);
  KeptAttributes kept;
  const bool custom_call = op.kind() == OpKind::kStablehloCustomCall;
  for (const mlir::Attribute& attribute : program_.attributes_of(op)) {
    if (attribute.inherent) continue;
    if (module_->instruction(id).has(Attr::kSharding) && nodes().str(attribute.name).ends_with(".sharding")) continue;
    const std::string_view name = nodes().str(attribute.name);
    const NodeKind kind = nodes().kind(attribute.value);
    absl::Status status;
    if (name == "mhlo.sharding" && kind == NodeKind::kString) {
      status = SetSharding(id, nodes().text(attribute.value));
    } else if (name == "sdy.sharding" && kind == NodeKind::kVerbatim) {
      status = SetSdySharding(id, nodes().text(attribute.value));
    } else if (name == "sdy.sharding_rule" && kind == NodeKind::kVerbatim && custom_call && !options_.as_xla) {
      AddFrontend(id, kSdyShardingRule, nodes().text(attribute.value));
    } else if (name == "mhlo.frontend_attributes" && kind == NodeKind::kDictionary) {
      status = SetFrontend(id, attribute.value);
    } else if (name == kBackendConfig && kind == NodeKind::kString) {
      module_->SetAttr(id, Attr::kBackendConfig, context().strings.Intern(nodes().text(attribute.value)).value);
    } else if (name.starts_with("hlokit.") || name == "xla_shape") {
      RememberControl(name, attribute.value, id);  // others are taken by the conversion
    } else if (custom_call && nodes().Integers(attribute.value) &&
               (name == kOperandMemorySpaces || name == kResultMemorySpaces)) {
      // Taken by the conversion.
    } else if (custom_call || (name != "mhlo.attributes" && name != "mhlo.version")) {
      if (name.find('.') == std::string_view::npos) WarnOfAttribute(op, name);
      Keep(name, attribute.value, &kept);
    }
    if (!status.ok()) return status;
  }
  if (!kept.names.empty()) AddFrontend(id, kMlirAttributes, TextOf(kept));
  return absl::OkStatus();
}

}  // namespace hlokit::stablehlo
