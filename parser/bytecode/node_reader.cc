// SPDX-License-Identifier: Apache-2.0
#include "parser/bytecode/node_reader.h"

#include <bit>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "parser/mlir/cursor.h"
#include "parser/mlir/dense_parser.h"
#include "parser/mlir/node_parser.h"

namespace hlokit::bytecode {

using mlir::NodeKind;

namespace {

// Bits of the float types of MLIR by name.
int64_t FloatWidth(std::string_view name) {
  if (name == "f64") return 64;
  if (name == "f32") return 32;
  if (name == "tf32") return 19;
  if (name == "f16" || name == "bf16") return 16;
  if (name.starts_with("f8")) return 8;
  if (name.starts_with("f6")) return 6;
  if (name.starts_with("f4")) return 4;
  return 0;
}

}  // namespace

absl::StatusOr<mlir::NodeId> NodeReader::Read(Reference root) {
  if (!Exists(root)) {
    return absl::InvalidArgumentError(StrCat("there is no ", root.is_type ? "type " : "attribute ", root.index));
  }
  std::vector<Reference> stack = {root};
  while (!stack.empty()) {
    const Reference at = stack.back();
    if (slot(at).node.valid()) {
      stack.pop_back();
      continue;
    }
    missing_.clear();
    ByteCursor in(entry(at).data);
    const NodeId node = Decode(at, &in);
    if (!in.ok()) return in.status();
    if (missing_.empty()) {
      if (!in.AtEnd()) return ErrorAt(in.offset(), "data after the end of an attribute or type");
      if (!nodes_.IsPrintable(node)) return ErrorAt(entry(at).data.offset, "an attribute or type of too many parts");
      slot(at) = {node, false};
      stack.pop_back();
      continue;
    }
    slot(at).open = true;
    for (Reference needed : missing_) {
      if (slot(needed).open) return ErrorAt(entry(at).data.offset, "an attribute or type that contains itself");
    }
    stack.insert(stack.end(), missing_.begin(), missing_.end());
  }
  return slot(root).node;
}

mlir::NodeId NodeReader::Decode(Reference reference, ByteCursor* in) {
  const Entry& e = entry(reference);
  if (!e.custom && !reference.is_type) return TextAttribute(in);
  if (!e.custom) return Fail(in, StrCat("a type as text, of the dialect ", e.dialect));
  if (e.dialect == "builtin") return reference.is_type ? BuiltinType(in) : BuiltinAttribute(in);
  if (e.dialect == "vhlo") return reference.is_type ? VhloType(in) : VhloAttribute(in);
  if (e.dialect == "sdy" && !reference.is_type) return SdyAttribute(in);
  if (e.dialect == "stablehlo" && reference.is_type) return StablehloType(in);
  return Fail(in, StrCat("an attribute or type of the dialect ", e.dialect));
}

// Attributes that their dialect does not encode are the text that MLIR prints for them, with a zero at the end.
mlir::NodeId NodeReader::TextAttribute(ByteCursor* in) {
  const std::string_view text = in->ZeroTerminated();
  if (!in->ok()) return {};
  // A NUL follows, as the parser requires.
  DiagnosticSink sink;
  mlir::Cursor cursor(text, &sink);
  mlir::NodeParser parser(&cursor, &nodes_, {.literal_bytes = &literal_bytes_});
  const NodeId node = parser.ParseAttribute();
  if (node.valid() && cursor.AtEnd()) return node;
  return Fail(in, StrCat("the text of an attribute is none: ", text.substr(0, 64)));
}

// Operations of the dialect sdy have types of this dialect, which others have as those of vhlo. It encodes one.
mlir::NodeId NodeReader::StablehloType(ByteCursor* in) {
  constexpr uint64_t kToken = 0;
  const uint64_t code = in->VarInt();
  if (!in->ok()) return {};
  if (code == kToken) return nodes_.Make(NodeKind::kDialectType, "stablehlo.token", {}, {});
  return Fail(in, StrCat("the type ", code, " of the dialect stablehlo, which artifacts do not hold"));
}

mlir::NodeId NodeReader::At(ByteCursor* in, Reference reference) {
  if (!in->ok()) return {};
  if (!Exists(reference)) {
    return Fail(in, StrCat("there is no ", reference.is_type ? "type " : "attribute ", reference.index));
  }
  const Slot& found = slot(reference);
  if (!found.node.valid()) {
    missing_.push_back(reference);
    return {};
  }
  return found.node;
}

std::vector<mlir::NodeId> NodeReader::GetList(ByteCursor* in, bool is_type) {
  std::vector<NodeId> list;
  const size_t count = in->Count();
  for (size_t i = 0; i < count && in->ok(); ++i) list.push_back(Get(in, is_type));
  return list;
}

std::string_view NodeReader::String(ByteCursor* in) {
  const uint64_t index = in->VarInt();
  if (index < file_.strings.size()) return file_.strings[static_cast<size_t>(index)];
  in->Fail(StrCat("there is no string ", index));
  return {};
}

mlir::NodeId NodeReader::Dictionary(ByteCursor* in) {
  std::vector<int64_t> names;
  std::vector<NodeId> values;
  const size_t count = in->Count();
  for (size_t i = 0; i < count && in->ok(); ++i) {
    const NodeId name = GetAttribute(in);
    if (name.valid() && nodes_.kind(name) != NodeKind::kString) return Fail(in, "a name that is no string");
    if (name.valid()) names.push_back(nodes_.strings().Intern(nodes_.text(name)).value);
    values.push_back(GetAttribute(in));
  }
  return Ready(*in) ? nodes_.Make(NodeKind::kDictionary, "", names, values) : NodeId();
}

mlir::NodeId NodeReader::Function(ByteCursor* in) {
  std::vector<NodeId> types = GetList(in, true);
  const auto inputs = static_cast<int64_t>(types.size());
  const std::vector<NodeId> results = GetList(in, true);
  types.insert(types.end(), results.begin(), results.end());
  return Ready(*in) ? nodes_.Make(NodeKind::kFunctionType, "", {&inputs, 1}, types) : NodeId();
}

mlir::NodeId NodeReader::Shaped(ByteCursor* in, NodeKind kind, NodeId encoding) {
  const std::vector<int64_t> sizes = Integers(in);
  const NodeId element = GetType(in);
  if (!Ready(*in)) return {};
  for (int64_t size : sizes) {
    if (size < 0 && size != mlir::kDynamicSize) return Fail(in, StrCat("a dimension of size ", size));
  }
  std::vector<NodeId> children = {element};
  if (encoding.valid()) children.push_back(encoding);
  return nodes_.Make(kind, "", sizes, children);
}

int64_t NodeReader::IntegerWidth(NodeId type) const {
  if (nodes_.kind(type) == NodeKind::kIndexType) return 64;
  return nodes_.kind(type) == NodeKind::kIntegerType ? nodes_.ints(type)[0] : 0;
}

// Up to eight bits are a byte, up to 64 a signed number; larger ones occur in no program.
uint64_t NodeReader::Bits(ByteCursor* in, int64_t width) {
  if (width <= 0 || width > 64) {
    in->Fail(StrCat("a number of ", width, " bits"));
    return 0;
  }
  const uint64_t bits = width <= 8 ? in->Byte() : static_cast<uint64_t>(in->SignedVarInt());
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

double NodeReader::Double(ByteCursor* in) { return std::bit_cast<double>(Bits(in, 64)); }

mlir::NodeId NodeReader::Integer(ByteCursor* in) {
  const NodeId type = GetType(in);
  if (!Ready(*in)) return {};
  const int64_t width = IntegerWidth(type);
  if (width == 0) return Fail(in, "an integer whose type is none");
  const uint64_t bits = Bits(in, width);
  if (!in->ok()) return {};
  const bool is_unsigned = nodes_.kind(type) == NodeKind::kIntegerType &&
                           nodes_.ints(type)[1] == static_cast<int64_t>(mlir::Signedness::kUnsigned);
  const int unused = width == 1 || is_unsigned ? 0 : 64 - static_cast<int>(width);
  return nodes_.Integer(static_cast<int64_t>(bits << unused) >> unused, type);
}

mlir::NodeId NodeReader::Float(ByteCursor* in) {
  const NodeId type = GetType(in);
  if (!Ready(*in)) return {};
  if (nodes_.kind(type) != NodeKind::kFloatType) return Fail(in, "a floating-point number whose type is none");
  const uint64_t bits = Bits(in, FloatWidth(nodes_.text(type)));
  double value = 0;
  if (in->ok() && !mlir::FloatFromBits(nodes_.text(type), bits, &value)) {
    return Fail(in, StrCat("a number of the type ", nodes_.text(type)));
  }
  const int64_t ints[] = {std::bit_cast<int64_t>(value)};
  return nodes_.Make(NodeKind::kFloat, "", ints, {&type, 1});
}

mlir::NodeId NodeReader::Dense(ByteCursor* in) {
  const NodeId type = GetType(in);
  const ByteSpan data = in->Bytes(in->VarInt());
  if (!Ready(*in)) return {};
  if (nodes_.kind(type) != NodeKind::kTensorType && nodes_.kind(type) != NodeKind::kVectorType) {
    return Fail(in, "elements whose type is no tensor");
  }
  // An i1 takes a byte in memory. Here it takes a bit, or a byte in some old files; one byte can be that of a splat.
  const bool is_bool = IntegerWidth(nodes_.child(type, 0)) == 1;
  constexpr size_t kBitsPerByte = 8;
  const size_t size = data.bytes.size();
  if (!literal_bytes_.Take(size * (is_bool ? kBitsPerByte : 1))) return Fail(in, literal_bytes_.Message());
  std::string unpacked;
  uint64_t count = 1;
  for (int64_t n : nodes_.ints(type)) {
    if (n < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(n), &count)) count = ~uint64_t{0};
  }
  const bool packed = is_bool && size != count && size == count / kBitsPerByte + (count % kBitsPerByte != 0);
  const bool all_equal = size == 1 && (data.bytes[0] == '\0' || data.bytes[0] == '\xff');
  if (packed && !all_equal) {
    for (size_t i = 0; i < count; ++i) {
      const auto byte = static_cast<unsigned char>(data.bytes[i / kBitsPerByte]);
      unpacked.push_back(static_cast<char>(byte >> (i % kBitsPerByte) & 1));
    }
  }
  const NodeId elements = mlir::DenseFromBytes(unpacked.empty() ? data.bytes : unpacked, type, &nodes_);
  if (elements.valid()) return elements;
  return Fail(in, StrCat(size, " bytes are not the elements of ", mlir::ToText(nodes_, type)));
}

mlir::NodeId NodeReader::EnumOf(ByteCursor* in, std::string_view name, absl::Span<const std::string_view> values) {
  const uint64_t value = in->VarInt();
  if (!in->ok()) return {};
  if (value < values.size() && !values[static_cast<size_t>(value)].empty()) {
    return nodes_.Enum(StrCat("stablehlo.", name), values[static_cast<size_t>(value)]);
  }
  return Fail(in, StrCat("the ", name, " ", value, " is unknown"));
}

std::vector<int64_t> NodeReader::Integers(ByteCursor* in) {
  std::vector<int64_t> values;
  const size_t count = in->Count();
  for (size_t i = 0; i < count && in->ok(); ++i) values.push_back(in->SignedVarInt());
  return values;
}

mlir::NodeId NodeReader::IntegerArray(absl::Span<const int64_t> values) {
  const NodeId type = nodes_.IntegerType(64);
  std::vector<NodeId> elements;
  for (int64_t value : values) elements.push_back(nodes_.Integer(value, type));
  return nodes_.Make(NodeKind::kArray, "", {}, elements);
}

mlir::NodeId NodeReader::Fields(std::string_view name, absl::Span<const std::string_view> names,
                                absl::Span<const NodeId> values) {
  std::vector<int64_t> ids;
  for (std::string_view field : names) ids.push_back(nodes_.strings().Intern(field).value);
  return nodes_.Make(NodeKind::kFields, name, ids, values);
}

}  // namespace hlokit::bytecode
