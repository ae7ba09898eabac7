// SPDX-License-Identifier: Apache-2.0
// Attributes and types of the builtin dialect. The codes are the positions in the lists at the end of
// mlir/IR/BuiltinDialectBytecode.td. What portable artifacts do not hold (affine maps, sparse elements, resources, ...)
// is an error.
#include <bit>

#include "ir/core/str_cat.h"
#include "parser/bytecode/node_reader.h"
#include "parser/bytecode/vhlo_codes.h"

namespace hlokit::bytecode {

using mlir::NodeKind;

mlir::NodeId NodeReader::BuiltinAttribute(ByteCursor* in) {
  using enum builtin::AttributeCode;
  const uint64_t code = in->VarInt();
  if (!in->ok()) return {};
  const auto text_of = [&](NodeId string) {
    if (nodes_.kind(string) == NodeKind::kString) return nodes_.text(string);
    in->Fail("expected a string");
    return std::string_view();
  };
  const auto check_location = [&](NodeId id) {
    if (!nodes_.IsLocation(id)) in->Fail("expected a location");
  };
  switch (code) {
    case kArray: {
      const std::vector<NodeId> elements = GetList(in, false);
      return Ready(*in) ? nodes_.Make(NodeKind::kArray, "", {}, elements) : NodeId();
    }
    case kDictionary:
      return Dictionary(in);
    case kString: {
      const std::string_view text = String(in);
      return in->ok() ? nodes_.String(text) : NodeId();
    }
    case kFlatSymbol: {
      const NodeId name = GetAttribute(in);
      return Ready(*in) ? nodes_.Make(NodeKind::kSymbol, text_of(name), {}, {}) : NodeId();
    }
    case kType:
      return GetType(in);
    case kUnit:
      return nodes_.Make(NodeKind::kUnit);
    case kInteger:
      return Integer(in);
    case kFloat:
      return Float(in);
    case kDense:
      return Dense(in);
    case kCallSiteLocation: {
      const NodeId callee = GetAttribute(in), caller = GetAttribute(in);
      if (!Ready(*in)) return {};
      check_location(callee);
      check_location(caller);
      return nodes_.Make(NodeKind::kCallSiteLocation, "", {}, std::vector<NodeId>{callee, caller});
    }
    case kFileLocation:
    case kFileRange: {
      const NodeId name = GetAttribute(in);
      // Of a range only the start has one meaning in all releases.
      const size_t count = code == kFileLocation ? 2 : in->Count();
      uint64_t at[2] = {};
      for (size_t i = 0; i < count && in->ok(); ++i) {
        const uint64_t number = in->VarInt();
        if (i < std::size(at)) at[i] = number;
      }
      if (!Ready(*in)) return {};
      const auto line = static_cast<int64_t>(at[0]), column = static_cast<int64_t>(at[1]);
      return nodes_.Make(NodeKind::kFileLocation, text_of(name), std::vector<int64_t>{line, column, line, column}, {});
    }
    case kFusedLocation:
    case kFusedLocationWithMetadata: {
      std::vector<NodeId> children = GetList(in, false);
      const int64_t has_metadata = code == kFusedLocationWithMetadata;
      if (has_metadata != 0) children.insert(children.begin(), GetAttribute(in));
      if (!Ready(*in)) return {};
      for (size_t i = static_cast<size_t>(has_metadata); i < children.size(); ++i) check_location(children[i]);
      return nodes_.Make(NodeKind::kFusedLocation, "", {&has_metadata, 1}, children);
    }
    case kNameLocation: {
      const NodeId name = GetAttribute(in), child = GetAttribute(in);
      if (!Ready(*in)) return {};
      check_location(child);
      const bool known = nodes_.kind(child) != NodeKind::kUnknownLocation;
      return nodes_.Make(NodeKind::kNameLocation, text_of(name), {}, {&child, known ? size_t{1} : 0});
    }
    case kUnknownLocation:
      return nodes_.Make(NodeKind::kUnknownLocation);
    default:
      return Fail(in, StrCat("the attribute ", code, " of the builtin dialect, which artifacts do not hold"));
  }
}

mlir::NodeId NodeReader::BuiltinType(ByteCursor* in) {
  using enum builtin::TypeCode;
  const uint64_t code = in->VarInt();
  if (!in->ok()) return {};
  if (code >= kFirstFloat && code - kFirstFloat < std::size(builtin::kFloatTypes)) {
    return nodes_.Make(NodeKind::kFloatType, builtin::kFloatTypes[code - kFirstFloat], {}, {});
  }
  if (code >= kFirstSmallFloat && code - kFirstSmallFloat < std::size(builtin::kSmallFloatTypes)) {
    return nodes_.Make(NodeKind::kFloatType, builtin::kSmallFloatTypes[code - kFirstSmallFloat], {}, {});
  }
  switch (code) {
    case kIntegerType: {
      const uint64_t value = in->VarInt();
      const uint64_t width = value >> 2, signedness = value & 3;
      constexpr uint64_t kMaxWidth = (1 << 24) - 1;
      if (width == 0 || width > kMaxWidth || signedness > 2) return Fail(in, "an integer type with a bad width");
      return nodes_.IntegerType(static_cast<int64_t>(width), static_cast<mlir::Signedness>(signedness));
    }
    case kIndexType:
      return nodes_.Make(NodeKind::kIndexType);
    case kComplexType: {
      const NodeId part = GetType(in);
      return Ready(*in) ? nodes_.Make(NodeKind::kComplexType, "", {}, {&part, 1}) : NodeId();
    }
    case kNoneType:
      return nodes_.Make(NodeKind::kNoneType);
    case kFunctionType:
      return Function(in);
    case kTensorType:
      return Shaped(in, NodeKind::kTensorType, NodeId());
    default:
      return Fail(in, StrCat("the type ", code, " of the builtin dialect, which artifacts do not hold"));
  }
}

}  // namespace hlokit::bytecode
