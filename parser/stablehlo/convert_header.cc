// SPDX-License-Identifier: Apache-2.0
// The header of the module, attributes of the arguments of main, and metadata from locations.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "parser/stablehlo/converter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

absl::Status Converter::ConvertHeader() {
  ModuleHeader& header = module_->header();
  std::string_view name = root_.valid() ? StringOf(program_.op(root_), "sym_name") : "";
  header.name = context().strings.Intern(name.empty() ? "main" : name);
  if (root_.valid()) {
    for (const mlir::Attribute& attribute : program_.attributes_of(program_.op(root_))) {
      const std::string_view key = nodes().str(attribute.name);
      const std::optional<int64_t> number = nodes().IntegerValue(attribute.value);
      if (key == "mhlo.num_partitions" && number) header.num_partitions = *number;
      if (key == "mhlo.num_replicas" && number) header.replica_count = *number;
      if (key == "mhlo.frontend_attributes" && nodes().kind(attribute.value) == NodeKind::kDictionary) {
        absl::StatusOr<ListId> list = FrontendAttributes(attribute.value);
        if (!list.ok()) return list.status();
        header.frontend_attributes = *list;
      }
    }
  }
  EntryLayout layout;
  const Computation entry = module_->entry();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) layout.parameters.push_back(entry.parameter(i).shape());
  layout.result = entry.root().shape();
  header.entry_layout = std::move(layout);
  return absl::OkStatus();
}

absl::Status Converter::ArgumentAttributes(const Op& function) {
  const NodeId list = Attribute(function, "arg_attrs");
  if (!list.valid() || nodes().kind(list) != NodeKind::kArray || options_.use_tuple_args) return absl::OkStatus();
  const bool main = frames_.size() == 1;
  const NodeId type = Attribute(function, "function_type");
  const size_t results = type.valid() ? nodes().child_count(type) - static_cast<size_t>(nodes().ints(type)[0]) : 0;
  for (size_t i = 0; i < nodes().child_count(list); ++i) {
    const NodeId attributes = nodes().child(list, i);
    if (static_cast<int64_t>(i) >= module_->computation(frame().computation).parameter_count()) break;
    const InstructionId parameter = module_->computation(frame().computation).parameter(static_cast<int64_t>(i)).id();
    const absl::Span<const int64_t> names = nodes().ints(attributes);
    for (size_t k = 0; k < names.size(); ++k) {
      const std::string_view key = nodes().str(StringId(static_cast<uint32_t>(names[k])));
      const NodeId value = nodes().child(attributes, k);
      absl::Status status;
      if (key == "mhlo.sharding" && nodes().kind(value) == NodeKind::kString) {
        status = SetSharding(parameter, nodes().text(value));
      } else if (key == "mhlo.frontend_attributes" && nodes().kind(value) == NodeKind::kDictionary) {
        status = SetFrontend(parameter, value);
      } else if (main && key == "tf.aliasing_output" && nodes().IntegerValue(value)) {
        InputOutputAlias alias;
        const int64_t output[] = {*nodes().IntegerValue(value)};
        alias.output_index = context().lists.Intern(
            results > 1 || options_.return_tuple ? absl::Span<const int64_t>(output) : absl::Span<const int64_t>());
        alias.parameter = static_cast<int64_t>(i);
        alias.parameter_index = context().lists.Intern({});
        module_->header().input_output_alias.push_back(alias);
      } else if (main && key == "jax.buffer_donor" && nodes().IntegerValue(value).value_or(0) != 0) {
        module_->header().buffer_donor.push_back({static_cast<int64_t>(i), context().lists.Intern({})});
      } else if (key == "mhlo.parameter_replication" && nodes().kind(value) == NodeKind::kArray) {
        if (const std::optional<Ints> flags = nodes().Integers(value)) {
          module_->SetAttr(parameter, Attr::kParameterReplication, module_->ListPayload(*flags));
        }
      }
      if (!status.ok()) return Error(function, StrCat("argument ", i, " ", std::string(status.message())));
    }
  }
  std::sort(module_->header().input_output_alias.begin(), module_->header().input_output_alias.end(),
            [&](const InputOutputAlias& a, const InputOutputAlias& c) {
              const absl::Span<const int64_t> x = context().list(a.output_index), y = context().list(c.output_index);
              return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
            });
  return absl::OkStatus();
}

// Names become the op_name, the file position of the innermost location the source.
MetadataId Converter::MetadataOf(NodeId location) {
  if (!location.valid()) return {};
  Metadata metadata;
  std::string op_name;
  std::vector<NodeId> pending = {location};
  constexpr size_t kMaxParts = 64;
  for (size_t parts = 0; !pending.empty() && parts < kMaxParts; ++parts) {
    const NodeId at = pending.back();
    pending.pop_back();
    switch (nodes().kind(at)) {
      case NodeKind::kNameLocation: {
        const std::string_view text = nodes().text(at).substr(0, nodes().text(at).find('@'));
        if (text.ends_with(':')) {
          metadata.op_type = context().strings.Intern(text.substr(0, text.size() - 1));
        } else if (!text.empty()) {
          StrAppend(&op_name, op_name.empty() ? "" : ";", text);
        }
        // The name of a function around a file position is part of a stack frame, not of the name of the operation.
        if (nodes().child_count(at) != 0) pending.push_back(nodes().child(at, 0));
        break;
      }
      case NodeKind::kFileLocation: {
        if (metadata.source_file.valid()) break;
        const absl::Span<const int64_t> position = nodes().ints(at);
        metadata.source_file = context().strings.Intern(nodes().text(at));
        metadata.source_line = position[0];
        metadata.source_column = position[1];
        metadata.source_end_line = position[2];
        metadata.source_end_column = position[3];
        break;
      }
      case NodeKind::kCallSiteLocation:
        pending.push_back(nodes().child(at, 0));
        break;
      case NodeKind::kFusedLocation: {
        const size_t first = nodes().ints(at)[0] != 0 ? 1 : 0;
        for (size_t i = nodes().child_count(at); i-- > first;) pending.push_back(nodes().child(at, i));
        break;
      }
      default:
        break;
    }
  }
  if (op_name.empty() && !metadata.op_type.valid() && !metadata.source_file.valid()) return {};
  if (!op_name.empty()) metadata.op_name = context().strings.Intern(op_name);
  return context().metadata.Intern(metadata);
}

}  // namespace hlokit::stablehlo
