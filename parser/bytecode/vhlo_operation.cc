// SPDX-License-Identifier: Apache-2.0
#include "parser/bytecode/vhlo_operation.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"

namespace hlokit::bytecode {
namespace {

using mlir::AttributeKind;
using mlir::NodeId;
using mlir::NodeKind;

std::vector<VhloOperation> ReadTable() {
  struct Row {
    std::string_view name;
    int64_t since;
    std::string_view attributes;
  };
  static constexpr Row kRows[] = {
#define VHLO(name, since, attributes) {name, since, attributes},
#include "parser/bytecode/vhlo_operations.def"
  };
  std::vector<VhloOperation> table;
  for (const Row& row : kRows) {
    VhloOperation operation{row.name, row.since, {}};
    for (std::string_view rest = row.attributes; !rest.empty();) {
      const size_t end = std::min(rest.find(' '), rest.size());
      operation.attributes.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    table.push_back(std::move(operation));
  }
  return table;
}

// Attributes that are parameters of one of StableHLO's, in the order in which it prints them.
struct FieldGroup {
  std::string_view attribute;
  std::string_view node;
  std::vector<std::pair<std::string_view, std::string_view>> fields;  // name in VHLO, in StableHLO
};

const std::vector<FieldGroup>& FieldGroups() {
  static const auto* const kGroups = new std::vector<FieldGroup>{
      {"dot_dimension_numbers",
       "stablehlo.dot",
       {{"lhs_batching_dimensions", "lhs_batching_dimensions"},
        {"rhs_batching_dimensions", "rhs_batching_dimensions"},
        {"lhs_contracting_dimensions", "lhs_contracting_dimensions"},
        {"rhs_contracting_dimensions", "rhs_contracting_dimensions"}}},
      {"algorithm",
       "stablehlo.dot_algorithm",
       {{"lhs_precision_type", "lhs_precision_type"},
        {"rhs_precision_type", "rhs_precision_type"},
        {"accumulation_type", "accumulation_type"},
        {"lhs_component_count", "lhs_component_count"},
        {"rhs_component_count", "rhs_component_count"},
        {"num_primitive_operations", "num_primitive_operations"},
        {"allow_imprecise_accumulation", "allow_imprecise_accumulation"}}},
      {"dimension_numbers",
       "stablehlo.gather",
       {{"offset_dims", "offset_dims"},
        {"collapsed_slice_dims", "collapsed_slice_dims"},
        {"operand_batching_dims", "operand_batching_dims"},
        {"start_indices_batching_dims", "start_indices_batching_dims"},
        {"start_index_map", "start_index_map"},
        {"index_vector_dim", "index_vector_dim"}}},
      {"scatter_dimension_numbers",
       "stablehlo.scatter",
       {{"update_window_dims", "update_window_dims"},
        {"inserted_window_dims", "inserted_window_dims"},
        {"input_batching_dims", "input_batching_dims"},
        {"scatter_dims_to_operand_dims", "scatter_dims_to_operand_dims"},
        {"scatter_indices_batching_dims", "scatter_indices_batching_dims"},
        {"index_vector_dim", "index_vector_dim"}}},
      {"channel_handle", "stablehlo.channel_handle", {{"channel_id", "handle"}, {"channel_type", "type"}}},
  };
  return *kGroups;
}

class AttributeConverter {
 public:
  AttributeConverter(const VhloOperation& operation, const mlir::OpDefinition& definition, mlir::NodeTable* nodes,
                     std::vector<mlir::Attribute>* attributes)
      : operation_(operation), definition_(definition), nodes_(*nodes), attributes_(*attributes) {}

  absl::Status Run() {
    for (const FieldGroup& group : FieldGroups()) {
      if (definition_.FindAttribute(group.attribute) == nullptr || !Find(group.fields[0].first).valid()) continue;
      if (absl::Status status = MakeFields(group); !status.ok()) return status;
    }
    if (Find("input_batch_dimension").valid()) {
      if (absl::Status status = MakeConvolution(); !status.ok()) return status;
    }
    if (operation_.name == "dynamic_conv_v1") {
      // Its padding was given twice; the operand counts.
      if (!HasOnly(Take("padding"), 0)) return Bad("padding", "beside the operand");
    }
    for (const mlir::AttributeDefinition& attribute : definition_.attributes) {
      if (absl::Status status = Convert(attribute); !status.ok()) return status;
    }
    for (const mlir::Attribute& a : attributes_) {
      const std::string_view name = nodes_.str(a.name);
      if (a.inherent && definition_.FindAttribute(name) == nullptr) {
        return absl::InvalidArgumentError(StrCat("the attribute `", name, "`, which StableHLO has not"));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Bad(std::string_view name, std::string_view what) const {
    return absl::InvalidArgumentError(StrCat("the attribute `", name, "` ", what));
  }
  std::vector<mlir::Attribute>::iterator Position(std::string_view name) {
    return std::find_if(attributes_.begin(), attributes_.end(),
                        [&](const mlir::Attribute& a) { return a.inherent && nodes_.str(a.name) == name; });
  }
  NodeId Find(std::string_view name) {
    const auto found = Position(name);
    return found == attributes_.end() ? NodeId() : found->value;
  }
  NodeId Take(std::string_view name) {
    const auto found = Position(name);
    if (found == attributes_.end()) return {};
    const NodeId value = found->value;
    attributes_.erase(found);
    return value;
  }
  void Add(std::string_view name, NodeId value) { attributes_.push_back({nodes_.strings().Intern(name), value, true}); }
  bool IsNone(NodeId value) const { return value.valid() && nodes_.kind(value) == NodeKind::kNoneType; }
  // True if all integers of the value are `number`, also if there are none.
  bool HasOnly(NodeId value, int64_t number) const {
    const std::optional<std::vector<int64_t>> values = nodes_.Integers(value);
    return values && std::all_of(values->begin(), values->end(), [&](int64_t v) { return v == number; });
  }
  NodeId IntegerArray(const std::vector<int64_t>& values) {
    std::vector<NodeId> elements;
    for (int64_t value : values) elements.push_back(nodes_.Integer(value, nodes_.IntegerType(64)));
    return nodes_.Make(NodeKind::kArray, "", {}, elements);
  }

  absl::Status MakeFields(const FieldGroup& group) {
    std::vector<int64_t> names;
    std::vector<NodeId> values;
    size_t none = 0;
    for (const auto& [vhlo_name, name] : group.fields) {
      NodeId value = Take(vhlo_name);
      if (group.attribute == "channel_handle" && !value.valid()) value = nodes_.Integer(0, nodes_.IntegerType(64));
      if (!value.valid()) continue;  // of a later version
      none += IsNone(value);
      if (name == "index_vector_dim" && nodes_.IntegerValue(value) == 0) continue;  // StableHLO's default
      if (nodes_.kind(value) == NodeKind::kDense) {
        const std::optional<std::vector<int64_t>> list = nodes_.Integers(value);
        if (!list) return Bad(vhlo_name, "is no list of integers");
        if (list->empty()) continue;
        value = IntegerArray(*list);
      }
      names.push_back(nodes_.strings().Intern(name).value);
      values.push_back(value);
    }
    if (group.attribute == "algorithm") {
      if (none == values.size()) return absl::OkStatus();
      if (none != 0) return Bad(group.attribute, "is incomplete");
    }
    // Operations that need no channel have the number 0.
    const mlir::AttributeDefinition& definition = *definition_.FindAttribute(group.attribute);
    if (group.attribute == "channel_handle" && definition.optional && nodes_.IntegerValue(values[0]) == 0) {
      return absl::OkStatus();
    }
    Add(group.attribute, nodes_.Make(NodeKind::kFields, group.node, names, values));
    return absl::OkStatus();
  }

  // The short form, [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f].
  absl::Status MakeConvolution() {
    std::string text = "#stablehlo.conv<";
    for (const auto& [prefix, first, a, second, b] : {std::tuple("input", "batch", 'b', "feature", 'f'),
                                                      std::tuple("kernel", "input_feature", 'i', "output_feature", 'o'),
                                                      std::tuple("output", "batch", 'b', "feature", 'f')}) {
      const std::optional<int64_t> at_first = nodes_.IntegerValue(Take(StrCat(prefix, "_", first, "_dimension")));
      const std::optional<int64_t> at_second = nodes_.IntegerValue(Take(StrCat(prefix, "_", second, "_dimension")));
      const std::optional<std::vector<int64_t>> spatial = nodes_.Integers(Take(StrCat(prefix, "_spatial_dimensions")));
      if (!at_first || !at_second || !spatial) return Bad("dimension_numbers", "is incomplete");
      std::vector<std::string> parts(spatial->size() + 2);
      const auto put = [&](int64_t at, std::string part) {
        if (at < 0 || at >= static_cast<int64_t>(parts.size()) || !parts[static_cast<size_t>(at)].empty()) return false;
        parts[static_cast<size_t>(at)] = std::move(part);
        return true;
      };
      bool good = put(*at_first, std::string(1, a)) && put(*at_second, std::string(1, b));
      for (size_t i = 0; i < spatial->size() && good; ++i) good = put((*spatial)[i], StrCat(i));
      if (!good) return Bad("dimension_numbers", "is no permutation of the dimensions");
      StrAppend(&text, prefix[0] == 'i' ? "" : prefix[0] == 'k' ? "x" : "->", "[");
      for (size_t i = 0; i < parts.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", parts[i]);
      text += "]";
    }
    Add("dimension_numbers", nodes_.Make(NodeKind::kVerbatim, text + ">", {}, {}));
    return absl::OkStatus();
  }

  absl::Status Convert(const mlir::AttributeDefinition& attribute) {
    const auto found = Position(attribute.name);
    if (found == attributes_.end()) {
      if (attribute.optional || attribute.has_default) return absl::OkStatus();
      return Bad(attribute.name, "is missing");
    }
    NodeId value = found->value;
    const NodeKind kind = nodes_.kind(value);
    if (attribute.kind == AttributeKind::kDims || attribute.kind == AttributeKind::kBools) {
      if (kind != NodeKind::kDense) return Bad(attribute.name, "is no list of numbers");
      const std::optional<std::vector<int64_t>> list = nodes_.Integers(value);
      if (!list) return Bad(attribute.name, "is no list of numbers");
      value = nodes_.DenseArray(*list, attribute.kind == AttributeKind::kDims ? 64 : 1);
    } else if (attribute.kind == AttributeKind::kUnit) {
      const std::optional<int64_t> number = nodes_.IntegerValue(value);
      if (!number) return Bad(attribute.name, "is no truth value");
      value = *number != 0 ? nodes_.Make(NodeKind::kUnit) : NodeId();
    } else if (attribute.kind == AttributeKind::kSymbol) {
      if (kind != NodeKind::kString) return Bad(attribute.name, "is no name");
      value = nodes_.Make(NodeKind::kSymbol, nodes_.text(value), {}, {});
    }
    if (attribute.name == "called_computations") {
      if (kind != NodeKind::kArray) return Bad(attribute.name, "is no list");
      std::vector<NodeId> symbols;
      for (NodeId name : nodes_.children(value)) {
        if (nodes_.kind(name) != NodeKind::kString) return Bad(attribute.name, "is no list of names");
        symbols.push_back(nodes_.Make(NodeKind::kSymbol, nodes_.text(name), {}, {}));
      }
      value = nodes_.Make(NodeKind::kArray, "", {}, symbols);
    }
    if (value.valid() && IsDefault(attribute, value)) value = {};
    if (value.valid()) {
      Position(attribute.name)->value = value;
    } else {
      Take(attribute.name);
    }
    return absl::OkStatus();
  }

  bool IsDefault(const mlir::AttributeDefinition& attribute, NodeId value) {
    const std::string_view name = attribute.name;
    const NodeKind kind = nodes_.kind(value);
    if (attribute.has_default) {
      if (!nodes_.IsShort(value)) return false;
      const std::string text = mlir::ToText(nodes_, value);
      return text == attribute.default_text || text.starts_with(StrCat(attribute.default_text, " : "));
    }
    if (!attribute.optional) return false;
    const auto is_empty = [&](NodeId list) {
      return list.valid() && nodes_.kind(list) == NodeKind::kArray && nodes_.child_count(list) == 0;
    };
    if (name == "operand_layouts" || name == "result_layouts") {
      // A custom call has both or none; the one that comes second decides with what is left of the first.
      return is_empty(value) && LayoutsAreEmpty();
    }
    if (name == "backend_config") {
      if (kind == NodeKind::kString) return nodes_.text(value).empty();
      return kind == NodeKind::kDictionary && nodes_.child_count(value) == 0;
    }
    if (name == "window_strides" || name.ends_with("_dilation") || name.ends_with("_dilations") ||
        name == "window_dimensions") {
      return HasOnly(value, 1);
    }
    if (name == "padding" || name == "window_reversal") return HasOnly(value, 0);
    if (name == "compare_type") return IsEnum(value, "NOTYPE");
    if (name == "result_accuracy") return IsEnum(nodes_.Entry(value, "mode"), "DEFAULT");
    if (name == "precision_config" && kind == NodeKind::kArray) {
      const std::vector<NodeId> values = nodes_.children(value);
      return std::all_of(values.begin(), values.end(), [&](NodeId v) { return IsEnum(v, "DEFAULT"); });
    }
    if (kind == NodeKind::kString) return nodes_.text(value).empty();  // the visibility of a function
    if (attribute.kind == AttributeKind::kDims || attribute.kind == AttributeKind::kElements) {
      const std::optional<std::vector<int64_t>> list = nodes_.Integers(value);
      return list && list->empty();
    }
    if (name == "arg_attrs" || name == "res_attrs") {
      const std::vector<NodeId> values = nodes_.children(value);
      return std::all_of(values.begin(), values.end(), [&](NodeId v) { return nodes_.child_count(v) == 0; });
    }
    return is_empty(value);
  }

  bool IsEnum(NodeId value, std::string_view text) const {
    return value.valid() && nodes_.kind(value) == NodeKind::kEnum &&
           nodes_.str(StringId(static_cast<uint32_t>(nodes_.ints(value)[0]))) == text;
  }
  bool LayoutsAreEmpty() {
    for (std::string_view name : {"operand_layouts", "result_layouts"}) {
      const NodeId value = Find(name);
      if (value.valid() && nodes_.child_count(value) != 0) return false;
    }
    return true;
  }

  const VhloOperation& operation_;
  const mlir::OpDefinition& definition_;
  mlir::NodeTable& nodes_;
  std::vector<mlir::Attribute>& attributes_;
};

}  // namespace

bool VhloOperation::HasAttribute(std::string_view attribute) const {
  return std::find(attributes.begin(), attributes.end(), attribute) != attributes.end();
}

const VhloOperation* FindVhloOperation(std::string_view name) {
  static const auto* const kIndex = [] {
    static const auto* const kTable = new std::vector<VhloOperation>(ReadTable());
    auto* index = new absl::flat_hash_map<std::string, const VhloOperation*>();
    for (const VhloOperation& operation : *kTable) index->emplace(std::string(operation.name), &operation);
    return index;
  }();
  const auto found = kIndex->find(std::string(name));
  return found == kIndex->end() ? nullptr : found->second;
}

std::string StablehloName(const VhloOperation& operation, bool in_function) {
  const std::string_view name = operation.name.substr(0, operation.name.rfind("_v"));
  const bool is_func = name == "func" || name == "call" || (name == "return" && in_function);
  return StrCat(is_func ? "func." : "stablehlo.", name);
}

absl::Status ConvertAttributes(const VhloOperation& operation, const mlir::OpDefinition& definition,
                               mlir::NodeTable* nodes, std::vector<mlir::Attribute>* attributes) {
  return AttributeConverter(operation, definition, nodes, attributes).Run();
}

}  // namespace hlokit::bytecode
