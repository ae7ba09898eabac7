// SPDX-License-Identifier: Apache-2.0
#include "parser/bytecode/node_writer.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "ir/core/str_cat.h"
#include "ir/types/float_types.h"
#include "ir/types/literal.h"
#include "parser/bytecode/vhlo_codes.h"

namespace hlokit::bytecode {

using mlir::NodeKind;

uint64_t NodeWriter::String(std::string_view text) {
  const auto [found, added] = string_index_.emplace(std::string(text), strings_.size());
  if (added) strings_.emplace_back(text);
  return found->second;
}

uint64_t NodeWriter::Add(Table* table, Dialect dialect, std::string bytes) {
  std::string key = StrCat(static_cast<int>(dialect), ":", bytes);
  const auto [found, added] = table->index.emplace(std::move(key), table->entries.size());
  if (added) table->entries.emplace_back(dialect, std::move(bytes));
  return found->second;
}

uint64_t NodeWriter::IndexOf(Item item) const {
  const auto found = written_.find(item.key());
  return found == written_.end() ? 0 : found->second;
}

void NodeWriter::Fail(NodeId id) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(StrCat("VHLO has no place for ", mlir::ToText(nodes_, id)));
}

uint64_t NodeWriter::Dictionary(const std::vector<std::pair<std::string_view, uint64_t>>& entries) {
  std::vector<uint64_t> names;
  for (const auto& [name, value] : entries) {
    ByteWriter string;
    string.VarInt(builtin::kString);
    string.VarInt(String(name));
    names.push_back(Add(&attributes_, kBuiltin, string.bytes()));
  }
  ByteWriter out;
  out.VarInt(builtin::kDictionary);
  out.VarInt(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    out.VarInt(names[i]);
    out.VarInt(entries[i].second);
  }
  return Add(&attributes_, kBuiltin, out.bytes());
}

bool NodeWriter::IsTooNew(NodeId type) {
  int64_t since = 0;
  const NodeKind kind = nodes_.kind(type);
  if (kind == NodeKind::kIntegerType && nodes_.ints(type)[0] == 2) since = 2;
  if (kind == NodeKind::kMemRefType) since = 13;
  if (kind == NodeKind::kFutureType) since = 15;
  if (kind == NodeKind::kFloatType) {
    static constexpr std::pair<std::string_view, int64_t> kSince[] = {
        {"tf32", 6}, {"f8E4M3", 7}, {"f8E3M4", 7}, {"f4E2M1FN", 8}, {"f6E2M3FN", 8}, {"f6E3M2FN", 8}, {"f8E8M0FNU", 8}};
    for (const auto& [name, minor] : kSince) {
      if (nodes_.text(type) == name) since = minor;
    }
  }
  if (since <= minor_) return false;
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(
        StrCat("the type ", mlir::ToText(nodes_, type), " is in StableHLO since 1.", since, ".0"));
  }
  return true;
}

// Children first, with an explicit stack.
uint64_t NodeWriter::Write(Item root) {
  std::vector<std::pair<Item, bool>> stack = {{root, false}};
  while (!stack.empty()) {
    const auto [item, expanded] = stack.back();
    if (written_.contains(item.key())) {
      stack.pop_back();
      continue;
    }
    if (!expanded) {
      stack.back().second = true;
      for (Item needed : Needs(item)) stack.push_back({needed, false});
      continue;
    }
    stack.pop_back();
    ByteWriter out;
    Encode(item, &out);
    written_[item.key()] = Add(item.is_type ? &types_ : &attributes_, item.dialect, out.bytes());
  }
  return IndexOf(root);
}

std::vector<NodeWriter::Item> NodeWriter::Needs(Item item) const {
  const NodeKind kind = nodes_.kind(item.id);
  std::vector<Item> needs;
  if (!item.is_type && nodes_.IsType(item.id)) return {{item.id, true, item.dialect}};
  for (NodeId child : nodes_.children(item.id)) {
    // The type of elements and numbers; the encoding of a tensor, which is an attribute.
    const bool is_type =
        nodes_.IsType(child) && (item.is_type || kind == NodeKind::kInteger || kind == NodeKind::kFloat ||
                                 kind == NodeKind::kDense || kind == NodeKind::kDenseArray);
    needs.push_back({child, is_type, item.dialect});
  }
  return needs;
}

void NodeWriter::Encode(Item item, ByteWriter* out) {
  if (item.dialect == kBuiltin) {
    EncodeBuiltin(item.id, out);
  } else if (item.is_type) {
    EncodeType(item.id, out);
  } else if (nodes_.IsType(item.id)) {
    out->VarInt(vhlo::kType);
    out->VarInt(TypeIndex(item.id));
  } else {
    EncodeVhlo(item.id, out);
  }
}

// ---- types ----

void NodeWriter::EncodeType(NodeId id, ByteWriter* out) {
  const auto list = [&](size_t first, size_t last) {
    out->VarInt(last - first);
    for (size_t i = first; i < last; ++i) out->VarInt(TypeIndex(nodes_.child(id, i)));
  };
  if (IsTooNew(id)) return;
  switch (nodes_.kind(id)) {
    case NodeKind::kIntegerType: {
      const int64_t width = nodes_.ints(id)[0];
      const auto sign = static_cast<mlir::Signedness>(nodes_.ints(id)[1]);
      if (sign == mlir::Signedness::kSigned) return Fail(id);
      if (width == 1 && sign == mlir::Signedness::kSignless) return out->VarInt(vhlo::kBoolType);
      const bool is_unsigned = sign == mlir::Signedness::kUnsigned;
      if (width == 2) return out->VarInt(is_unsigned ? vhlo::kUnsigned2Type : vhlo::kSigned2Type);
      for (uint64_t i = 0; i < vhlo::kIntegerWidths; ++i) {
        if (width == int64_t{4} << i) return out->VarInt((is_unsigned ? vhlo::kFirstUnsigned : vhlo::kFirstSigned) + i);
      }
      return Fail(id);
    }
    case NodeKind::kFloatType: {
      const auto* const found = std::find(std::begin(vhlo::kFloatTypes), std::end(vhlo::kFloatTypes), nodes_.text(id));
      if (found == std::end(vhlo::kFloatTypes)) return Fail(id);
      return out->VarInt(static_cast<uint64_t>(found - std::begin(vhlo::kFloatTypes)));
    }
    case NodeKind::kIndexType:
      return out->VarInt(vhlo::kIndexType);
    case NodeKind::kNoneType:
      return out->VarInt(vhlo::kNoneType);
    case NodeKind::kComplexType:
    case NodeKind::kUnrankedTensorType:
      out->VarInt(nodes_.kind(id) == NodeKind::kComplexType ? vhlo::kComplexType : vhlo::kUnrankedTensorType);
      return out->VarInt(TypeIndex(nodes_.child(id, 0)));
    case NodeKind::kTensorType:
    case NodeKind::kMemRefType: {
      const bool tensor = nodes_.kind(id) == NodeKind::kTensorType;
      const bool encoding = nodes_.child_count(id) > 1;
      if (!tensor && encoding) return Fail(id);
      out->VarInt(!tensor ? vhlo::kBufferType : encoding ? vhlo::kTensorWithEncodingType : vhlo::kTensorType);
      if (encoding) out->VarInt(AttributeIndex(nodes_.child(id, 1), kVhlo));
      out->VarInt(nodes_.ints(id).size());
      for (int64_t size : nodes_.ints(id)) out->SignedVarInt(size);
      return out->VarInt(TypeIndex(nodes_.child(id, 0)));
    }
    case NodeKind::kTupleType:
    case NodeKind::kFutureType:
      out->VarInt(nodes_.kind(id) == NodeKind::kTupleType ? vhlo::kTupleType : vhlo::kFutureType);
      return list(0, nodes_.child_count(id));
    case NodeKind::kFunctionType: {
      const auto inputs = static_cast<size_t>(nodes_.ints(id)[0]);
      out->VarInt(vhlo::kFunctionType);
      list(0, inputs);
      return list(inputs, nodes_.child_count(id));
    }
    case NodeKind::kDialectType:
      if (nodes_.text(id) == "stablehlo.token") return out->VarInt(vhlo::kTokenType);
      if (nodes_.text(id) == "shape.witness") return out->VarInt(vhlo::kWitnessType);
      return Fail(id);
    default:
      return Fail(id);
  }
}

// ---- attributes of VHLO ----

void NodeWriter::Bits(NodeId number, ByteWriter* out) const {
  const NodeId type = nodes_.child(number, 0);
  uint64_t bits = static_cast<uint64_t>(nodes_.ints(number)[0]);
  int64_t width = 64;
  if (nodes_.kind(number) == NodeKind::kInteger) {
    if (nodes_.kind(type) == NodeKind::kIntegerType) width = nodes_.ints(type)[0];
  } else {
    const std::optional<ElementType> element = nodes_.HloElementType(type);
    if (!element) return;
    const double value = std::bit_cast<double>(bits);
    bits = 0;
    width = BitsOf(*element);
    VisitType(*element, [&]<typename T>(std::type_identity<T>) {
      if constexpr (std::is_constructible_v<T, double> && sizeof(T) <= sizeof(bits)) {
        const T number_of_type = static_cast<T>(value);
        std::memcpy(&bits, &number_of_type, sizeof(T));
      }
    });
  }
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  if (width <= 8) return out->Byte(static_cast<uint8_t>(bits));
  out->SignedVarInt(static_cast<int64_t>(bits));
}

void NodeWriter::EncodeElements(NodeId id, ByteWriter* out) {
  const NodeId type = nodes_.child(id, 0);
  out->VarInt(vhlo::kTensor);
  out->VarInt(TypeIndex(type));
  const std::optional<ElementType> element = nodes_.HloElementType(nodes_.child(type, 0));
  if (!element) return Fail(id);
  const mlir::Blob blob = nodes_.blob(id);
  const absl::Span<const int64_t> sizes = nodes_.ints(type);
  const bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();  // a splat has an element even then
  std::string bytes(reinterpret_cast<const char*>(blob.data), empty ? 0 : blob.size);
  if (*element == ElementType::kPred) {
    // A bit each; all bits are equal in that of a splat.
    std::string packed((bytes.size() + 7) / 8, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != '\0') packed[i / 8] = static_cast<char>(packed[i / 8] | 1 << (i % 8));
    }
    if (nodes_.is_splat(id) && !packed.empty() && packed[0] != '\0') packed[0] = '\xff';
    bytes = std::move(packed);
  } else if (BitsOf(*element) < 8) {
    for (char& byte : bytes) byte = static_cast<char>(byte & ((1 << BitsOf(*element)) - 1));
  }
  out->VarInt(bytes.size());
  out->Bytes(bytes);
}

void NodeWriter::EncodeVhlo(NodeId id, ByteWriter* out) {
  const auto code_of = [&](absl::Span<const std::string_view> values, uint64_t code) {
    const std::string_view value = nodes_.str(StringId(static_cast<uint32_t>(nodes_.ints(id)[0])));
    const auto found = std::find(values.begin(), values.end(), value);
    if (found == values.end()) return Fail(id);
    out->VarInt(code);
    out->VarInt(static_cast<uint64_t>(found - values.begin()));
  };
  switch (nodes_.kind(id)) {
    case NodeKind::kInteger: {
      const NodeId type = nodes_.child(id, 0);
      const bool is_bool = nodes_.kind(type) == NodeKind::kIntegerType && nodes_.ints(type)[0] == 1;
      out->VarInt(is_bool ? vhlo::kBool : vhlo::kInteger);
      if (is_bool) return out->VarInt(nodes_.ints(id)[0] != 0);
      out->VarInt(TypeIndex(type));
      return Bits(id, out);
    }
    case NodeKind::kFloat:
      if (!nodes_.HloElementType(nodes_.child(id, 0))) return Fail(id);
      out->VarInt(vhlo::kFloat);
      out->VarInt(TypeIndex(nodes_.child(id, 0)));
      return Bits(id, out);
    case NodeKind::kString:
    case NodeKind::kSymbol:
      if (nodes_.child_count(id) != 0 || (nodes_.kind(id) == NodeKind::kSymbol && !nodes_.ints(id).empty()))
        return Fail(id);
      out->VarInt(vhlo::kString);
      return out->VarInt(String(nodes_.text(id)));
    case NodeKind::kArray:
      out->VarInt(vhlo::kArray);
      out->VarInt(nodes_.child_count(id));
      for (NodeId child : nodes_.children(id)) out->VarInt(AttributeIndex(child, kVhlo));
      return;
    case NodeKind::kDictionary:
      out->VarInt(vhlo::kDictionary);
      out->VarInt(nodes_.child_count(id));
      for (size_t i = 0; i < nodes_.child_count(id); ++i) {
        ByteWriter name;
        name.VarInt(vhlo::kString);
        name.VarInt(String(nodes_.str(StringId(static_cast<uint32_t>(nodes_.ints(id)[i])))));
        out->VarInt(Add(&attributes_, kVhlo, name.bytes()));
        out->VarInt(AttributeIndex(nodes_.child(id, i), kVhlo));
      }
      return;
    case NodeKind::kDense:
      return EncodeElements(id, out);
    case NodeKind::kEnum:
      for (const vhlo::Enumeration& enumeration : vhlo::kEnumerations) {
        if (nodes_.text(id) == StrCat("stablehlo.", enumeration.name))
          return code_of(enumeration.values, enumeration.code);
      }
      return Fail(id);
    case NodeKind::kFields:
      return EncodeFields(id, out);
    case NodeKind::kVerbatim: {
      // #stablehlo.bounds<3, ?>
      constexpr std::string_view kBounds = "#stablehlo.bounds<";
      std::string_view text = nodes_.text(id);
      if (!text.starts_with(kBounds)) return Fail(id);
      text.remove_prefix(kBounds.size());
      std::vector<int64_t> bounds;
      while (!text.empty() && text != ">") {
        int64_t bound = mlir::kDynamicSize;
        if (text[0] == '?') {
          text.remove_prefix(1);
        } else {
          const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bound);
          if (error != std::errc()) return Fail(id);
          text.remove_prefix(static_cast<size_t>(end - text.data()));
        }
        bounds.push_back(bound);
        while (text.starts_with(',') || text.starts_with(' ')) text.remove_prefix(1);
      }
      out->VarInt(vhlo::kTypeExtensions);
      out->VarInt(bounds.size());
      for (int64_t bound : bounds) out->SignedVarInt(bound);
      return;
    }
    default:
      return Fail(id);
  }
}

void NodeWriter::EncodeFields(NodeId id, ByteWriter* out) {
  const std::string_view name = nodes_.text(id);
  const auto integers = [&](std::string_view field) {
    const std::vector<int64_t> values = nodes_.Integers(nodes_.Entry(id, field)).value_or(std::vector<int64_t>());
    out->VarInt(values.size());
    for (int64_t value : values) out->SignedVarInt(value);
  };
  if (name == "stablehlo.output_operand_alias") {
    out->VarInt(vhlo::kOutputOperandAlias);
    integers("output_tuple_indices");
    out->SignedVarInt(nodes_.IntegerValue(nodes_.Entry(id, "operand_index")).value_or(0));
    return integers("operand_tuple_indices");
  }
  if (name == "stablehlo.result_accuracy") {
    const auto number = [&](std::string_view field) {
      const NodeId value = nodes_.Entry(id, field);
      const bool known = value.valid() && nodes_.kind(value) == NodeKind::kFloat;
      out->SignedVarInt(known ? nodes_.ints(value)[0] : 0);
    };
    const NodeId mode = nodes_.Entry(id, "mode");
    if (!mode.valid()) return Fail(id);
    out->VarInt(vhlo::kAccuracy);
    number("atol");
    number("rtol");
    out->SignedVarInt(nodes_.IntegerValue(nodes_.Entry(id, "ulps")).value_or(0));
    return out->VarInt(AttributeIndex(mode, kVhlo));
  }
  Fail(id);
}

// ---- the builtin dialect ----

void NodeWriter::EncodeBuiltin(NodeId id, ByteWriter* out) {
  const auto string = [&](std::string_view text) {
    ByteWriter attribute;
    attribute.VarInt(builtin::kString);
    attribute.VarInt(String(text));
    return Add(&attributes_, kBuiltin, attribute.bytes());
  };
  const auto list = [&](size_t first) {
    out->VarInt(nodes_.child_count(id) - first);
    for (size_t i = first; i < nodes_.child_count(id); ++i) out->VarInt(AttributeIndex(nodes_.child(id, i), kBuiltin));
  };
  switch (nodes_.kind(id)) {
    case NodeKind::kIntegerType:
      out->VarInt(builtin::kIntegerType);
      return out->VarInt(static_cast<uint64_t>(nodes_.ints(id)[0]) << 2 | static_cast<uint64_t>(nodes_.ints(id)[1]));
    case NodeKind::kInteger:
      if (nodes_.kind(nodes_.child(id, 0)) != NodeKind::kIntegerType) return Fail(id);
      out->VarInt(builtin::kInteger);
      out->VarInt(IndexOf({nodes_.child(id, 0), true, kBuiltin}));
      return Bits(id, out);
    case NodeKind::kString:
      if (nodes_.child_count(id) != 0) return Fail(id);
      out->VarInt(builtin::kString);
      return out->VarInt(String(nodes_.text(id)));
    case NodeKind::kUnit:
      return out->VarInt(builtin::kUnit);
    case NodeKind::kArray:
      out->VarInt(builtin::kArray);
      return list(0);
    case NodeKind::kDictionary: {
      std::vector<uint64_t> names;
      for (int64_t name : nodes_.ints(id)) names.push_back(string(nodes_.str(StringId(static_cast<uint32_t>(name)))));
      out->VarInt(builtin::kDictionary);
      out->VarInt(names.size());
      for (size_t i = 0; i < names.size(); ++i) {
        out->VarInt(names[i]);
        out->VarInt(AttributeIndex(nodes_.child(id, i), kBuiltin));
      }
      return;
    }
    case NodeKind::kUnknownLocation:
      return out->VarInt(builtin::kUnknownLocation);
    case NodeKind::kFileLocation: {
      const uint64_t file = string(nodes_.text(id));
      out->VarInt(builtin::kFileLocation);
      out->VarInt(file);
      out->VarInt(static_cast<uint64_t>(nodes_.ints(id)[0]));
      return out->VarInt(static_cast<uint64_t>(nodes_.ints(id)[1]));
    }
    case NodeKind::kNameLocation: {
      const uint64_t name = string(nodes_.text(id));
      ByteWriter unknown;
      unknown.VarInt(builtin::kUnknownLocation);
      const uint64_t child = nodes_.child_count(id) != 0 ? AttributeIndex(nodes_.child(id, 0), kBuiltin)
                                                         : Add(&attributes_, kBuiltin, unknown.bytes());
      out->VarInt(builtin::kNameLocation);
      out->VarInt(name);
      return out->VarInt(child);
    }
    case NodeKind::kCallSiteLocation:
      out->VarInt(builtin::kCallSiteLocation);
      out->VarInt(AttributeIndex(nodes_.child(id, 0), kBuiltin));
      return out->VarInt(AttributeIndex(nodes_.child(id, 1), kBuiltin));
    case NodeKind::kFusedLocation:
      if (nodes_.ints(id)[0] != 0) return Fail(id);
      out->VarInt(builtin::kFusedLocation);
      return list(0);
    default:
      return Fail(id);
  }
}

// ---- sections ----

std::string NodeWriter::Strings() const {
  ByteWriter out;
  out.VarInt(strings_.size());
  for (size_t i = strings_.size(); i-- > 0;) out.VarInt(strings_[i].size() + 1);
  for (const std::string& string : strings_) {
    out.Bytes(string);
    out.Byte(0);
  }
  return out.bytes();
}

std::string NodeWriter::Encodings() const {
  std::string bytes;
  for (const Table* table : {&attributes_, &types_}) {
    for (const auto& [dialect, encoding] : table->entries) bytes += encoding;
  }
  return bytes;
}

std::string NodeWriter::Sizes() const {
  ByteWriter out;
  out.VarInt(attributes_.entries.size());
  out.VarInt(types_.entries.size());
  for (const Table* table : {&attributes_, &types_}) {
    const auto& entries = table->entries;
    for (size_t first = 0; first < entries.size();) {
      size_t last = first;
      while (last < entries.size() && entries[last].first == entries[first].first) ++last;
      out.VarInt(entries[first].first);
      out.VarInt(last - first);
      for (; first < last; ++first) out.VarIntWithFlag(entries[first].second.size(), true);
    }
  }
  return out.bytes();
}

}  // namespace hlokit::bytecode
