// SPDX-License-Identifier: Apache-2.0
#include "parser/bytecode/vhlo_defaults.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"

namespace hlokit::bytecode {
namespace {

using mlir::AttributeKind;
using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

class AttributeBuilder {
 public:
  AttributeBuilder(const mlir::Operation& op, const VhloOperation& row, mlir::Module* program)
      : op_(op), row_(row), m_(*program), n_(program->nodes) {}

  // As Run, but attributes of the newest form that the row lacks are lost without an error.
  absl::StatusOr<std::vector<NodeId>> Run(const VhloOperation& newest) {
    std::vector<NodeId> values;
    for (std::string_view name : row_.attributes) {
      const NodeId value = Value(name);
      if (!value.valid()) return absl::InvalidArgumentError(StrCat("the attribute `", name, "` has no form in VHLO"));
      values.push_back(value);
    }
    for (const mlir::Attribute& a : m_.attributes_of(op_)) {
      const std::string_view name = n_.str(a.name);
      if (a.inherent && !row_.HasAttribute(name) && !newest.HasAttribute(name) && !IsFieldGroup(name)) {
        return absl::InvalidArgumentError(StrCat("the attribute `", name, "` has no form in VHLO"));
      }
    }
    return values;
  }

  // The first attribute of the row that `older` lacks and that has another value than the default one; "" if there is
  // none.
  std::string_view FirstLost(const VhloOperation& older) {
    for (std::string_view name : row_.attributes) {
      if (older.HasAttribute(name) || IsNothing(Value(name))) continue;
      return op_.kind() == OpKind::kStablehloDotGeneral ? "algorithm" : name;
    }
    return "";
  }

 private:
  NodeId Attribute(std::string_view name) const { return m_.attribute(op_, name); }
  // A value that says nothing: false, no elements, no type, the default accuracy.
  bool IsNothing(NodeId value) const {
    if (!value.valid()) return true;
    const NodeKind kind = n_.kind(value);
    if (kind == NodeKind::kNoneType) return true;
    if (kind == NodeKind::kInteger) return n_.ints(value)[0] == 0;
    if (kind == NodeKind::kArray) return n_.child_count(value) == 0;
    if (kind == NodeKind::kFields) {
      const NodeId mode = n_.Entry(value, "mode");
      return mode.valid() && n_.kind(mode) == NodeKind::kEnum &&
             n_.str(StringId(static_cast<uint32_t>(n_.ints(mode)[0]))) == "DEFAULT";
    }
    const std::optional<std::vector<int64_t>> list = n_.Integers(value);
    return list && list->empty();
  }
  NodeId I64() { return n_.IntegerType(64); }
  // A tensor of i64, or of i1, in memory of the program.
  NodeId Tensor(const std::vector<int64_t>& values, int64_t width, std::vector<int64_t> sizes) {
    const NodeId type = n_.Tensor(sizes, n_.IntegerType(width));
    const size_t bytes = width == 1 ? 1 : sizeof(int64_t);
    auto* data = n_.arena().AllocateArray<std::byte>(values.size() * bytes);
    for (size_t i = 0; i < values.size(); ++i) std::memcpy(data + i * bytes, &values[i], bytes);
    return n_.MakeBlob(type, data, values.size() * bytes, values.size() == 1);
  }
  NodeId List(const std::vector<int64_t>& values, int64_t width = 64) {
    return Tensor(values, width, {static_cast<int64_t>(values.size())});
  }
  NodeId EmptyArray() { return n_.Make(NodeKind::kArray); }
  NodeId Enum(std::string_view name, std::string_view value) { return n_.Enum(StrCat("stablehlo.", name), value); }
  int64_t Rank(size_t operand) const {
    const NodeId type = m_.type(m_.operands_of(op_)[operand]);
    return n_.kind(type) == NodeKind::kTensorType ? static_cast<int64_t>(n_.ints(type).size()) : 0;
  }
  // The dimensions of the window of an operation.
  int64_t WindowRank() const {
    if (const auto sizes = n_.Integers(Attribute("window_dimensions"))) return static_cast<int64_t>(sizes->size());
    const bool convolution = n_.str(op_.name).find("conv") != std::string_view::npos;
    return op_.operand_count == 0 ? 0 : std::max<int64_t>(Rank(0) - (convolution ? 2 : 0), 0);
  }

  static bool IsFieldGroup(std::string_view name) {
    return name == "dot_dimension_numbers" || name == "dimension_numbers" || name == "scatter_dimension_numbers" ||
           name == "channel_handle" || name == "algorithm";
  }

  // ---- parameters of attributes of StableHLO ----
  NodeId Field(std::string_view attribute, std::string_view field) {
    const NodeId fields = Attribute(attribute);
    return fields.valid() && n_.kind(fields) == NodeKind::kFields ? n_.Entry(fields, field) : NodeId();
  }
  NodeId FieldOf(std::string_view name) {
    if (name == "channel_id" || name == "channel_type") {
      const NodeId value = Field("channel_handle", name == "channel_id" ? "handle" : "type");
      return n_.Integer(n_.IntegerValue(value).value_or(0), I64());
    }
    if (row_.HasAttribute("accumulation_type") && op_.kind() == OpKind::kStablehloDotGeneral) {
      const bool of_algorithm = name.ends_with("_precision_type") || name.ends_with("_component_count") ||
                                name == "accumulation_type" || name == "num_primitive_operations" ||
                                name == "allow_imprecise_accumulation";
      if (of_algorithm) {
        if (!Attribute("algorithm").valid()) return n_.Make(NodeKind::kNoneType);
        return Field("algorithm", name);
      }
    }
    for (std::string_view group : {"dot_dimension_numbers", "dimension_numbers", "scatter_dimension_numbers"}) {
      const NodeId attribute = Attribute(group);
      if (!attribute.valid() || n_.kind(attribute) != NodeKind::kFields) continue;
      const NodeId value = n_.Entry(attribute, name);
      if (name == "index_vector_dim") return n_.Integer(n_.IntegerValue(value).value_or(0), I64());
      if (name.ends_with("_dims") || name.ends_with("_dimensions") || name == "start_index_map" ||
          name == "scatter_dims_to_operand_dims") {
        return List(n_.Integers(value).value_or(std::vector<int64_t>()));
      }
    }
    return {};
  }

  // [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
  NodeId ConvolutionNumber(std::string_view name) {
    const NodeId attribute = Attribute("dimension_numbers");
    if (!attribute.valid() || n_.kind(attribute) != NodeKind::kVerbatim) return {};
    const size_t part = name.starts_with("input_") ? 0 : name.starts_with("kernel_") ? 1 : 2;
    std::string_view text = n_.text(attribute);
    for (size_t i = 0; i <= part; ++i) {
      const size_t open = text.find('[');
      if (open == std::string_view::npos) return {};
      text.remove_prefix(open + 1);
    }
    text = text.substr(0, text.find(']'));
    const char letter = name == "kernel_input_feature_dimension"    ? 'i'
                        : name == "kernel_output_feature_dimension" ? 'o'
                        : name.ends_with("_feature_dimension")      ? 'f'
                                                                    : 'b';
    std::vector<int64_t> spatial;
    for (int64_t at = 0; !text.empty(); ++at) {
      while (text.starts_with(' ')) text.remove_prefix(1);
      const std::string_view word = text.substr(0, std::min(text.find_first_of(", "), text.size()));
      text.remove_prefix(
          std::min(text.find(',') == std::string_view::npos ? text.size() : text.find(',') + 1, text.size()));
      if (word.size() == 1 && word[0] == letter && !name.ends_with("_spatial_dimensions")) return n_.Integer(at, I64());
      size_t index = 0;
      if (std::from_chars(word.data(), word.data() + word.size(), index).ec != std::errc()) continue;
      constexpr size_t kMaxRank = 1 << 10;
      if (index >= kMaxRank) return {};
      if (index >= spatial.size()) spatial.resize(index + 1, -1);
      spatial[index] = at;
    }
    if (!name.ends_with("_spatial_dimensions")) return {};
    return std::count(spatial.begin(), spatial.end(), -1) == 0 ? List(spatial) : NodeId();
  }

  // ---- one attribute ----
  NodeId Value(std::string_view name) {
    const NodeId given = Attribute(name);
    const mlir::AttributeDefinition* const definition = op_.definition->FindAttribute(name);
    if (definition == nullptr) {
      if (name.ends_with("_dimension") || name.ends_with("_spatial_dimensions")) {
        if (const NodeId number = ConvolutionNumber(name); number.valid()) return number;
      }
      return FieldOf(name);
    }
    if (definition->kind == AttributeKind::kUnit) return n_.Bool(given.valid());
    if (!given.valid()) return Default(*definition);
    if (n_.kind(given) == NodeKind::kDenseArray) {
      return List(*n_.Integers(given), definition->kind == AttributeKind::kBools ? 1 : 64);
    }
    // Enumerated by VHLO, a number in StableHLO.
    if (name == "api_version") return ApiVersion(n_.IntegerValue(given).value_or(-1));
    return given;
  }

  NodeId ApiVersion(int64_t version) {
    const int64_t ints[] = {n_.strings().Intern(StrCat(version)).value};
    return n_.Make(NodeKind::kEnum, "stablehlo.api_version", ints, {});
  }

  NodeId Default(const mlir::AttributeDefinition& attribute) {
    const std::string_view name = attribute.name, text = attribute.default_text;
    if (attribute.has_default) {
      if (text == "true" || text == "false") return n_.Bool(text == "true");
      if (text == "[]") return EmptyArray();
      if (text == "{}") return n_.Make(NodeKind::kDictionary);
      if (text == "\"\"") return n_.String("");
      int64_t value = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return {};
      if (name == "api_version") return ApiVersion(value);
      return n_.Integer(value, n_.IntegerType(attribute.kind == AttributeKind::kI32 ? 32 : 64));
    }
    if (!attribute.optional) return {};
    const auto rank = static_cast<size_t>(WindowRank());
    if (name == "window_strides" || name.ends_with("_dilation") || name.ends_with("_dilations") ||
        name == "window_dimensions") {
      return List(std::vector<int64_t>(rank, 1));
    }
    if (name == "window_reversal") return List(std::vector<int64_t>(rank, 0), 1);
    if (name == "padding") return Tensor(std::vector<int64_t>(rank * 2, 0), 64, {static_cast<int64_t>(rank), 2});
    if (name == "compare_type") return Enum("comparison_type", "NOTYPE");
    if (name == "precision_config") {
      const NodeId precision = Enum("precision", "DEFAULT");
      return n_.Make(NodeKind::kArray, "", {}, std::vector<NodeId>{precision, precision});
    }
    if (name == "result_accuracy") {
      const int64_t names[] = {n_.strings().Intern("mode").value};
      const NodeId mode = Enum("result_accuracy_mode", "DEFAULT");
      return n_.Make(NodeKind::kFields, "stablehlo.result_accuracy", names, {&mode, 1});
    }
    if (name == "backend_config") {
      constexpr int64_t kTypedFfi = 4;
      const bool dictionary = n_.IntegerValue(Attribute("api_version")).value_or(0) == kTypedFfi;
      return dictionary ? n_.Make(NodeKind::kDictionary) : n_.String("");
    }
    if (name == "sym_visibility") return n_.String("");
    if (attribute.kind == AttributeKind::kDims || name == "source_target_pairs") return List({});
    if (attribute.kind == AttributeKind::kArray) return EmptyArray();
    return {};
  }

  const mlir::Operation& op_;
  const VhloOperation& row_;
  mlir::Module& m_;
  mlir::NodeTable& n_;
};

}  // namespace

const VhloOperation* VhloOperationFor(std::string_view name, int64_t minor) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const std::string_view dialect = name.substr(0, dot), own = name.substr(dot + 1);
  const bool is_func = own == "func" || own == "call" || own == "return";
  if (dialect != (is_func ? "func" : "stablehlo") && !(dialect == "stablehlo" && own == "return")) return nullptr;
  constexpr int kNewest = 2;
  for (int version = kNewest; version > 0; --version) {
    const VhloOperation* const row = FindVhloOperation(StrCat(own, "_v", version));
    if (row != nullptr && row->since <= minor) return row;
  }
  return nullptr;
}

absl::StatusOr<std::vector<NodeId>> VhloAttributes(const mlir::Operation& op, const VhloOperation& newest,
                                                   const VhloOperation& row, mlir::Module* program) {
  return AttributeBuilder(op, row, program).Run(newest);
}

std::string LostInOlder(const mlir::Operation& op, const VhloOperation& newest, const VhloOperation& older,
                        mlir::Module* program) {
  const std::string since = StrCat("in StableHLO since 1.", newest.since, ".0");
  const std::string_view lost = AttributeBuilder(op, newest, program).FirstLost(older);
  if (!lost.empty()) return StrCat("its attribute `", lost, "` is ", since);
  // Collectives of several arrays, and composites with regions, differ in these alone.
  const OpKind kind = op.kind();
  const bool collective = kind == OpKind::kStablehloAllGather || kind == OpKind::kStablehloAllReduce ||
                          kind == OpKind::kStablehloAllToAll || kind == OpKind::kStablehloCollectiveBroadcast;
  if (collective && op.operand_count != 1) return StrCat("several operands are ", since);
  if (kind == OpKind::kStablehloComposite && op.region_count != 0) return StrCat("its regions are ", since);
  return "";
}

}  // namespace hlokit::bytecode
