// SPDX-License-Identifier: Apache-2.0
// Nodes as text, in MLIR's form.
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "ir/core/str_cat.h"
#include "ir/types/float_types.h"
#include "parser/mlir/node.h"

namespace hlokit::mlir {
namespace {

constexpr char kHexDigits[] = "0123456789ABCDEF";

void AppendHex(const std::byte* data, size_t size, bool big_endian, std::string* out) {
  for (size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<uint8_t>(data[big_endian ? size - 1 - i : i]);
    out->push_back(kHexDigits[byte >> 4]);
    out->push_back(kHexDigits[byte & 0xf]);
  }
}

bool IsBareName(std::string_view name) {
  if (name.empty() || !(std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_')) return false;
  for (char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '$' && c != '.') return false;
  }
  return true;
}

// Appends a finite value with the digits that its type needs, or returns false if that has no point.
bool AppendLongFloat(double value, int digits, std::string* out) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*e", digits - 1, std::fabs(value));
  std::string significand;
  const char* p = text;
  for (; *p != 'e'; ++p) {
    if (*p != '.') significand.push_back(*p);
  }
  int exponent = 0;
  ++p;
  if (*p == '+') ++p;
  std::from_chars(p, p + std::strlen(p), exponent);
  while (significand.size() > 1 && significand.back() == '0') significand.pop_back();
  const int count = static_cast<int>(significand.size());
  const int last = exponent - count + 1;  // decimal exponent of the last digit
  constexpr int kMaxPadding = 3;
  if (last >= 0 && (last <= kMaxPadding || count == 1)) return false;
  std::string result = std::signbit(value) ? "-" : "";
  if (last < 0 && exponent >= 0) {
    result += significand.substr(0, static_cast<size_t>(exponent + 1)) + "." +
              significand.substr(static_cast<size_t>(exponent + 1));
  } else if (last < 0 && -exponent <= kMaxPadding) {
    result += "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + significand;
  } else {
    result += significand.substr(0, 1);
    result += "." + (count > 1 ? significand.substr(1) : "0");
    StrAppend(&result, "E", exponent < 0 ? "-" : "+", std::abs(exponent));
  }
  out->append(result);
  return true;
}

template <typename T>
void AppendFloatElement(T value, std::string* out) {
  const double wide = static_cast<double>(value);
  if (std::isfinite(wide)) {
    char text[64];
    std::snprintf(text, sizeof(text), "%.6e", wide);
    double back = 0;
    std::from_chars(text, text + std::strlen(text), back);
    // A value that rounds up to the next power of ten is printed with all digits.
    char precise[64];
    std::snprintf(precise, sizeof(precise), "%.17e", wide);
    const bool carried = std::strcmp(std::strchr(text, 'e'), std::strchr(precise, 'e')) != 0;
    if (!carried && static_cast<double>(static_cast<T>(back)) == wide) {
      out->append(text);
      return;
    }
    constexpr int kDigits = 2 + std::numeric_limits<T>::digits * 59 / 196;
    if (AppendLongFloat(wide, kDigits, out)) return;
  }
  out->append("0x");
  AppendHex(reinterpret_cast<const std::byte*>(&value), sizeof(T), /*big_endian=*/true, out);
}

template <typename T>
void AppendElement(T value, std::string* out) {
  if constexpr (std::is_same_v<T, bool>) {
    out->append(value ? "true" : "false");
  } else if constexpr (std::is_integral_v<T>) {
    StrAppend(out, value);
  } else if constexpr (requires { value.value(); }) {
    StrAppend(out, static_cast<int>(value.value()));
  } else if constexpr (requires { value.imag(); }) {
    out->push_back('(');
    AppendFloatElement(value.real(), out);
    out->push_back(',');
    AppendFloatElement(value.imag(), out);
    out->push_back(')');
  } else {
    AppendFloatElement(value, out);
  }
}

void AppendDense(const NodeTable& nodes, NodeId id, std::string* out) {
  const NodeId type = nodes.child(id, 0);
  const ElementType element = *nodes.HloElementType(nodes.child(type, 0));
  const Blob blob = nodes.blob(id);
  out->append("dense<");
  VisitType(element, [&](auto identity) {
    using T = typename decltype(identity)::type;
    const auto at = [&](size_t i) {
      T value;
      std::memcpy(static_cast<void*>(&value), blob.data + i * sizeof(T), sizeof(T));
      return value;
    };
    const size_t count = blob.size / sizeof(T);
    constexpr size_t kMaxListed = 100;
    const bool splat = nodes.is_splat(id) && count != 0;
    if (splat || nodes.ints(type).empty()) {
      AppendElement(at(0), out);
      return;
    }
    if (count > kMaxListed) {
      out->append("\"0x");
      AppendHex(blob.data, blob.size, /*big_endian=*/false, out);
      out->push_back('"');
      return;
    }
    const absl::Span<const int64_t> sizes = nodes.ints(type);
    // Brackets open and close where an index is a multiple of the elements of a dimension.
    for (size_t i = 0; i < count; ++i) {
      size_t opened = 0, closed = 0;
      size_t stride = 1;
      for (size_t d = sizes.size(); d-- > 0;) {
        stride *= static_cast<size_t>(sizes[d]);
        opened += i % stride == 0;
        closed += (i + 1) % stride == 0;
      }
      if (i != 0) out->append(", ");
      out->append(opened, '[');
      AppendElement(at(i), out);
      out->append(closed, ']');
    }
  });
  out->append(">");
}

// Walks a tree: pieces of text and nodes that are still to be printed, the next one last.
class NodePrinter {
 public:
  // `names`: of the locations in the root, if it is one; may be null.
  NodePrinter(const NodeTable& nodes, std::string* out, const LocationNames* names = nullptr)
      : nodes_(nodes), out_(*out), names_(names) {}

  void Print(NodeId root) {
    Push(root);
    while (!pending_.empty()) {
      const Item item = pending_.back();
      pending_.pop_back();
      if (item.nested && names_ != nullptr) {
        out_.append(names_->NameOf(item.node));
      } else if (item.nested) {
        VisitLocation(item.node);
      } else if (item.node.valid()) {
        Visit(item.node, item.bare);
      } else {
        out_.append(item.text);
      }
    }
  }

 private:
  struct Item {
    std::string text;
    NodeId node;
    bool nested = false;  // a location in a location, which has no `loc(`
    bool bare = false;    // a number in parameters, which has no type
  };
  void Push(NodeId node) { pending_.push_back({"", node}); }
  void Push(std::string text) { pending_.push_back({std::move(text), {}}); }
  void PushNested(NodeId location) { pending_.push_back({"", location, true}); }
  void PushBare(NodeId node) { pending_.push_back({"", node, false, true}); }
  // Pushes children from `first` to before `last`, separated by commas.
  void PushList(NodeId id, size_t first, size_t last) {
    for (size_t i = last; i-- > first;) {
      Push(nodes_.child(id, i));
      if (i != first) Push(", ");
    }
  }
  void PushAll(NodeId id) { PushList(id, 0, nodes_.child_count(id)); }

  void AppendSizes(NodeId id) {
    for (int64_t size : nodes_.ints(id)) {
      if (size == kDynamicSize) {
        out_.append("?x");
      } else {
        StrAppend(&out_, size, "x");
      }
    }
  }
  // Pushes `name = value` entries of a dictionary or fields.
  void PushEntries(NodeId id, bool units) {
    const absl::Span<const int64_t> names = nodes_.ints(id);
    for (size_t i = names.size(); i-- > 0;) {
      const std::string_view name = nodes_.str(StringId(static_cast<uint32_t>(names[i])));
      std::string text;
      if (IsBareName(name)) {
        text = name;
      } else {
        AppendQuoted(name, &text);
      }
      const NodeId value = nodes_.child(id, i);
      if (!units || nodes_.kind(value) != NodeKind::kUnit) {
        if (units) {
          Push(value);
        } else {
          PushBare(value);
        }
        text += " = ";
      }
      Push(std::move(text));
      if (i != 0) Push(", ");
    }
  }

  // Appends `open`; then follow the children and `>`.
  void VisitParameters(std::string_view open, NodeId id) {
    out_.append(open);
    Push(">");
    PushAll(id);
  }

  // Each appends what the node begins with, and pushes what is to follow.
  void Visit(NodeId id, bool bare);
  void VisitIntegerType(NodeId id);
  void VisitShapedType(NodeId id);
  void VisitFunctionType(NodeId id);
  void VisitInteger(NodeId id, bool bare);
  void VisitFloat(NodeId id, bool bare);
  void VisitString(NodeId id);
  void VisitArray(NodeId id, bool bare);
  void VisitSymbol(NodeId id);
  void VisitDenseArray(NodeId id);
  void VisitEnum(NodeId id);
  void VisitLocation(NodeId id);

  const NodeTable& nodes_;
  std::string& out_;
  const LocationNames* names_;
  std::vector<Item> pending_;
};

void NodePrinter::Visit(NodeId id, bool bare) {
  switch (nodes_.kind(id)) {
    case NodeKind::kIntegerType:
      return VisitIntegerType(id);
    case NodeKind::kFloatType:
      out_.append(nodes_.text(id));
      return;
    case NodeKind::kIndexType:
      out_.append("index");
      return;
    case NodeKind::kNoneType:
      out_.append("none");
      return;
    case NodeKind::kComplexType:
      return VisitParameters("complex<", id);
    case NodeKind::kTensorType:
    case NodeKind::kMemRefType:
    case NodeKind::kVectorType:
      return VisitShapedType(id);
    case NodeKind::kUnrankedTensorType:
      return VisitParameters("tensor<*x", id);
    case NodeKind::kTupleType:
      return VisitParameters("tuple<", id);
    case NodeKind::kFutureType:
      return VisitParameters("!stablehlo.future<", id);
    case NodeKind::kFunctionType:
      return VisitFunctionType(id);
    case NodeKind::kDialectType:
      StrAppend(&out_, "!", nodes_.text(id));
      return;
    case NodeKind::kUnit:
      out_.append("unit");
      return;
    case NodeKind::kInteger:
      return VisitInteger(id, bare);
    case NodeKind::kFloat:
      return VisitFloat(id, bare);
    case NodeKind::kString:
      return VisitString(id);
    case NodeKind::kArray:
      return VisitArray(id, bare);
    case NodeKind::kDictionary:
      out_.push_back('{');
      Push("}");
      PushEntries(id, /*units=*/true);
      return;
    case NodeKind::kFields:
      // Convolutions have a short form too, without names.
      StrAppend(&out_, "#", nodes_.text(id), nodes_.text(id).ends_with(".conv") ? "<raw " : "<");
      Push(">");
      PushEntries(id, /*units=*/false);
      return;
    case NodeKind::kSymbol:
      return VisitSymbol(id);
    case NodeKind::kDenseArray:
      return VisitDenseArray(id);
    case NodeKind::kDense:
      AppendDense(nodes_, id, &out_);
      out_.append(" : ");
      PushAll(id);
      return;
    case NodeKind::kDenseText:
      StrAppend(&out_, "dense<", nodes_.text(id), "> : ");
      PushAll(id);
      return;
    case NodeKind::kDenseResource:
      StrAppend(&out_, "dense_resource<", nodes_.text(id), "> : ");
      PushAll(id);
      return;
    case NodeKind::kEnum:
      return VisitEnum(id);
    case NodeKind::kVerbatim:
      out_.append(nodes_.text(id));
      return;
    case NodeKind::kAlias:
      StrAppend(&out_, "#", nodes_.text(id));
      return;
    case NodeKind::kUnknownLocation:
    case NodeKind::kFileLocation:
    case NodeKind::kNameLocation:
    case NodeKind::kCallSiteLocation:
    case NodeKind::kFusedLocation:
      out_.append("loc(");
      Push(")");
      VisitLocation(id);
      return;
  }
}

void NodePrinter::VisitIntegerType(NodeId id) {
  const auto sign = static_cast<Signedness>(nodes_.ints(id)[1]);
  StrAppend(&out_, sign == Signedness::kSignless ? "i" : sign == Signedness::kSigned ? "si" : "ui", nodes_.ints(id)[0]);
}

void NodePrinter::VisitShapedType(NodeId id) {
  out_.append(nodes_.kind(id) == NodeKind::kTensorType   ? "tensor<"
              : nodes_.kind(id) == NodeKind::kMemRefType ? "memref<"
                                                         : "vector<");
  AppendSizes(id);
  Push(">");
  PushAll(id);
}

void NodePrinter::VisitFunctionType(NodeId id) {
  const auto inputs = static_cast<size_t>(nodes_.ints(id)[0]);
  const size_t count = nodes_.child_count(id);
  out_.push_back('(');
  const bool single = count - inputs == 1 && nodes_.kind(nodes_.child(id, inputs)) != NodeKind::kFunctionType;
  if (!single) Push(")");
  PushList(id, inputs, count);
  Push(single ? ") -> " : ") -> (");
  PushList(id, 0, inputs);
}

void NodePrinter::VisitInteger(NodeId id, bool bare) {
  const NodeId type = nodes_.child(id, 0);
  const bool is_integer = nodes_.kind(type) == NodeKind::kIntegerType;
  if (is_integer && nodes_.ints(type)[0] == 1) {
    out_.append(nodes_.ints(id)[0] != 0 ? "true" : "false");
    return;
  }
  if (bare) {
    StrAppend(&out_, nodes_.ints(id)[0]);
    return;
  }
  if (is_integer && nodes_.ints(type)[1] == static_cast<int64_t>(Signedness::kUnsigned)) {
    StrAppend(&out_, static_cast<uint64_t>(nodes_.ints(id)[0]), " : ");
  } else {
    StrAppend(&out_, nodes_.ints(id)[0], " : ");
  }
  Push(type);
}

void NodePrinter::VisitFloat(NodeId id, bool bare) {
  const NodeId type = nodes_.child(id, 0);
  AppendFloat(std::bit_cast<double>(nodes_.ints(id)[0]), nodes_.text(type), &out_);
  if (bare || nodes_.text(type) == "f64") return;
  out_.append(" : ");
  Push(type);
}

void NodePrinter::VisitString(NodeId id) {
  AppendQuoted(nodes_.text(id), &out_);
  if (nodes_.child_count(id) == 0) return;
  out_.append(" : ");
  PushAll(id);
}

void NodePrinter::VisitArray(NodeId id, bool bare) {
  out_.push_back('[');
  Push("]");
  for (size_t i = nodes_.child_count(id); i-- > 0;) {
    if (bare) {
      PushBare(nodes_.child(id, i));
    } else {
      Push(nodes_.child(id, i));
    }
    if (i != 0) Push(", ");
  }
}

void NodePrinter::VisitSymbol(NodeId id) {
  AppendSymbol(nodes_.text(id), &out_);
  for (int64_t nested : nodes_.ints(id)) {
    out_.append("::");
    AppendSymbol(nodes_.str(StringId(static_cast<uint32_t>(nested))), &out_);
  }
}

void NodePrinter::VisitDenseArray(NodeId id) {
  const NodeId type = nodes_.child(id, 0);
  out_.append("array<");
  AppendText(nodes_, type, &out_);
  bool first = true;
  for (int64_t value : nodes_.ints(id)) {
    out_.append(first ? ": " : ", ");
    first = false;
    if (nodes_.kind(type) == NodeKind::kFloatType) {
      AppendFloat(std::bit_cast<double>(value), nodes_.text(type), &out_);
    } else if (nodes_.ints(type)[0] == 1) {
      out_.append(value != 0 ? "true" : "false");
    } else {
      StrAppend(&out_, value);
    }
  }
  out_.push_back('>');
}

void NodePrinter::VisitEnum(NodeId id) {
  const std::string_view name = nodes_.text(id);
  const std::string_view value = nodes_.str(StringId(static_cast<uint32_t>(nodes_.ints(id)[0])));
  if (name.ends_with("result_accuracy_mode")) {
    StrAppend(&out_, "#", name, "<", value, ">");
    return;
  }
  const size_t dot = name.find('.');
  StrAppend(&out_, "#", name.substr(0, dot), "<", name.substr(dot + 1), " ", value, ">");
}

void NodePrinter::VisitLocation(NodeId id) {
  switch (nodes_.kind(id)) {
    case NodeKind::kFileLocation: {
      const absl::Span<const int64_t> at = nodes_.ints(id);
      AppendQuoted(nodes_.text(id), &out_);
      StrAppend(&out_, ":", at[0], ":", at[1]);
      if (at[2] != at[0]) {
        StrAppend(&out_, " to ", at[2], ":", at[3]);
      } else if (at[3] != at[1]) {
        StrAppend(&out_, " to :", at[3]);
      }
      return;
    }
    case NodeKind::kNameLocation:
      AppendQuoted(nodes_.text(id), &out_);
      if (nodes_.child_count(id) != 0) {
        out_.push_back('(');
        Push(")");
        PushNested(nodes_.child(id, 0));
      }
      return;
    case NodeKind::kCallSiteLocation:
      out_.append("callsite(");
      Push(")");
      PushNested(nodes_.child(id, 1));
      Push(" at ");
      PushNested(nodes_.child(id, 0));
      return;
    case NodeKind::kFusedLocation: {
      const bool metadata = nodes_.ints(id)[0] != 0;
      out_.append("fused");
      Push("]");
      const size_t first = metadata ? 1 : 0;
      for (size_t i = nodes_.child_count(id); i-- > first;) {
        PushNested(nodes_.child(id, i));
        if (i != first) Push(", ");
      }
      if (metadata) {
        Push(">[");
        Push(nodes_.child(id, 0));
        Push("<");
      } else {
        Push("[");
      }
      return;
    }
    case NodeKind::kAlias:
      StrAppend(&out_, "#", nodes_.text(id));
      return;
    default:
      out_.append("unknown");
  }
}

}  // namespace

void AppendText(const NodeTable& nodes, NodeId id, std::string* out) { NodePrinter(nodes, out).Print(id); }

void LocationNames::AppendUse(NodeId location, std::string* out) {
  std::vector<std::pair<NodeId, bool>> pending = {{location, false}};
  while (!pending.empty()) {
    const auto [at, leaving] = pending.back();
    pending.pop_back();
    if (nodes_.kind(at) == NodeKind::kUnknownLocation || numbers_.contains(at.value)) continue;
    if (leaving) {
      numbers_[at.value] = named_.size();
      named_.push_back(at);
      continue;
    }
    pending.push_back({at, true});
    for (size_t i = nodes_.child_count(at); i-- > 0;) {
      // The other child is the metadata of a fused location.
      if (nodes_.IsLocation(nodes_.child(at, i))) pending.push_back({nodes_.child(at, i), false});
    }
  }
  StrAppend(out, "loc(", NameOf(location), ")");
}

void LocationNames::AppendDefinitions(std::string* out) const {
  for (NodeId location : named_) {
    StrAppend(out, NameOf(location), " = ");
    NodePrinter(nodes_, out, this).Print(location);
    out->push_back('\n');
  }
}

std::string LocationNames::NameOf(NodeId location) const {
  const auto found = numbers_.find(location.value);
  if (found == numbers_.end()) return "unknown";
  return found->second == 0 ? "#loc" : StrCat("#loc", found->second);
}

std::string ToText(const NodeTable& nodes, NodeId id) {
  std::string text;
  AppendText(nodes, id, &text);
  return text;
}

void AppendQuoted(std::string_view text, std::string* out) {
  out->push_back('"');
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      out->append("\\\\");
    } else if (byte >= 0x20 && byte < 0x7f && c != '"') {
      out->push_back(c);
    } else {
      out->push_back('\\');
      out->push_back(kHexDigits[byte >> 4]);
      out->push_back(kHexDigits[byte & 0xf]);
    }
  }
  out->push_back('"');
}

void AppendSymbol(std::string_view name, std::string* out) {
  out->push_back('@');
  if (!name.empty() && IsBareName(name)) {
    out->append(name);
  } else {
    AppendQuoted(name, out);
  }
}

void AppendFloat(double value, std::string_view type, std::string* out) {
  std::string lower(type);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  const std::optional<ElementType> element = ElementTypeFromText(lower);
  if (!element || !IsFloat(*element)) {
    AppendFloatElement(value, out);
    return;
  }
  VisitType(*element, [&](auto identity) {
    using T = typename decltype(identity)::type;
    if constexpr (std::is_floating_point_v<T> || SoftFloat<T>) AppendFloatElement(static_cast<T>(value), out);
  });
}

}  // namespace hlokit::mlir
