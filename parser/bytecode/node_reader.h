// SPDX-License-Identifier: Apache-2.0
// Attributes, types and locations of a bytecode file -> nodes, as StableHLO has them: those of the builtin dialect by
// mlir/IR/BuiltinDialectBytecode.td, those of VHLO by stablehlo/dialect/VhloBytecode.cpp. Encodings refer to each other
// by index; what an entry needs is read first, with an explicit stack.
#ifndef HLOKIT_PARSER_BYTECODE_NODE_READER_H_
#define HLOKIT_PARSER_BYTECODE_NODE_READER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "parser/bytecode/container.h"
#include "parser/mlir/node.h"
#include "parser/text/byte_limit.h"

namespace hlokit::bytecode {

class NodeReader {
 public:
  using NodeId = mlir::NodeId;

  NodeReader(const Container& file, mlir::NodeTable* nodes, int64_t max_literal_bytes)
      : file_(file),
        nodes_(*nodes),
        literal_bytes_(max_literal_bytes),
        attributes_(file.attributes.size()),
        types_(file.types.size()) {}

  absl::StatusOr<NodeId> Attribute(uint64_t index) { return Read({false, index}); }
  absl::StatusOr<NodeId> Type(uint64_t index) { return Read({true, index}); }

 private:
  struct Reference {
    bool is_type = false;
    uint64_t index = 0;
  };
  struct Slot {
    NodeId node;
    bool open = false;  // on the stack
  };

  absl::StatusOr<NodeId> Read(Reference root);
  bool Exists(Reference reference) const {
    return reference.index < (reference.is_type ? types_.size() : attributes_.size());
  }
  Slot& slot(Reference reference) {
    return (reference.is_type ? types_ : attributes_)[static_cast<size_t>(reference.index)];
  }
  const Entry& entry(Reference reference) const {
    return (reference.is_type ? file_.types : file_.attributes)[static_cast<size_t>(reference.index)];
  }

  // Each returns an invalid id if a node is not read yet, which is then in missing_, or after an error of the cursor.
  NodeId Decode(Reference reference, ByteCursor* in);
  NodeId BuiltinAttribute(ByteCursor* in);  // builtin_nodes.cc
  NodeId BuiltinType(ByteCursor* in);
  NodeId StablehloType(ByteCursor* in);
  NodeId VhloAttribute(ByteCursor* in);  // vhlo_nodes.cc
  NodeId OutputOperandAlias(ByteCursor* in);
  NodeId TypeExtensions(ByteCursor* in);
  NodeId Accuracy(ByteCursor* in);
  NodeId Axis(ByteCursor* in);
  NodeId MeshAxes(ByteCursor* in);
  NodeId VhloType(ByteCursor* in);
  NodeId QuantizedType(ByteCursor* in, bool per_axis);
  NodeId SdyAttribute(ByteCursor* in);  // sdy_nodes.cc
  NodeId TextAttribute(ByteCursor* in);

  // ---- texts of attributes of sdy; empty also if a part is not read yet. The codes are those of sdy_codes.h. ----
  std::string SdyContents(ByteCursor* in, int code);
  std::string SdyMesh(ByteCursor* in);
  std::string SdyAxis(ByteCursor* in);
  std::string SdyDimension(ByteCursor* in);
  std::string SdySharding(ByteCursor* in, int code);
  std::string SdyRule(ByteCursor* in);
  std::string SdyFactors(ByteCursor* in, std::string_view between);
  std::string SdyPart(ByteCursor* in, int code);
  std::string SdyParts(ByteCursor* in, int code);
  // Fails if the texts of all attributes together become too long.
  bool SpendSdyText(ByteCursor* in, size_t size);

  // ---- pieces of encodings ----
  NodeId Get(ByteCursor* in, bool is_type) { return At(in, {is_type, in->VarInt()}); }
  NodeId At(ByteCursor* in, Reference reference);
  NodeId GetAttribute(ByteCursor* in) { return Get(in, false); }
  NodeId GetType(ByteCursor* in) { return Get(in, true); }
  std::vector<NodeId> GetList(ByteCursor* in, bool is_type);
  std::string_view String(ByteCursor* in);
  // True if all so far could be read.
  bool Ready(const ByteCursor& in) const { return in.ok() && missing_.empty(); }
  NodeId Fail(ByteCursor* in, std::string_view message) {
    in->Fail(message);
    return {};
  }
  NodeId Dictionary(ByteCursor* in);
  NodeId Function(ByteCursor* in);
  // Sizes and the type of elements. `encoding` may be invalid.
  NodeId Shaped(ByteCursor* in, mlir::NodeKind kind, NodeId encoding);
  NodeId Integer(ByteCursor* in);
  NodeId Float(ByteCursor* in);
  NodeId Dense(ByteCursor* in);
  NodeId EnumOf(ByteCursor* in, std::string_view name, absl::Span<const std::string_view> values);
  // The list of signed numbers, each of which takes a byte or more.
  std::vector<int64_t> Integers(ByteCursor* in);
  NodeId IntegerArray(absl::Span<const int64_t> values);
  NodeId Fields(std::string_view name, absl::Span<const std::string_view> names, absl::Span<const NodeId> values);
  // The bits of a number of `width` bits.
  uint64_t Bits(ByteCursor* in, int64_t width);
  double Double(ByteCursor* in);
  // The width of an integer or index type; 0: another type.
  int64_t IntegerWidth(NodeId type) const;

  const Container& file_;
  mlir::NodeTable& nodes_;
  ByteLimit literal_bytes_;
  size_t sdy_text_budget_ = size_t{1} << 26;  // parts that occur several times are counted as often
  std::vector<Slot> attributes_;
  std::vector<Slot> types_;
  std::vector<Reference> missing_;
};

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_NODE_READER_H_
