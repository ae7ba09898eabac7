// SPDX-License-Identifier: Apache-2.0
// Nodes of StableHLO -> encodings of VHLO, and of the builtin dialect for locations and what modules carry. Each
// distinct encoding is written once and has an index. The inverse of NodeReader.
#ifndef HLOKIT_PARSER_BYTECODE_NODE_WRITER_H_
#define HLOKIT_PARSER_BYTECODE_NODE_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "parser/bytecode/byte_writer.h"
#include "parser/mlir/node.h"

namespace hlokit::bytecode {

// The dialects of an artifact, by index.
enum Dialect : uint8_t { kBuiltin = 0, kVhlo = 1 };

class NodeWriter {
 public:
  using NodeId = mlir::NodeId;

  // Types that release 1.MINOR of StableHLO lacks are errors.
  NodeWriter(const mlir::NodeTable& nodes, int64_t minor) : nodes_(nodes), minor_(minor) {}

  // Return the index of an attribute or type. After an error, which status() keeps, the index has no meaning.
  uint64_t Attribute(NodeId id, Dialect dialect) { return Write({id, false, dialect}); }
  uint64_t Type(NodeId id) { return Write({id, true, kVhlo}); }
  // An attribute of the builtin dialect from names and indices of values.
  uint64_t Dictionary(const std::vector<std::pair<std::string_view, uint64_t>>& entries);
  uint64_t String(std::string_view text);
  const absl::Status& status() const { return status_; }

  // The sections of strings, encodings and their sizes.
  std::string Strings() const;
  std::string Encodings() const;
  std::string Sizes() const;

 private:
  struct Item {
    NodeId id;
    bool is_type;
    Dialect dialect;
    uint64_t key() const { return uint64_t{id.value} << 2 | uint64_t{is_type} << 1 | dialect; }
  };
  struct Table {
    std::vector<std::pair<Dialect, std::string>> entries;
    absl::flat_hash_map<std::string, uint64_t> index;  // of the dialect and the bytes
  };

  uint64_t Write(Item root);
  // What an item refers to.
  std::vector<Item> Needs(Item item) const;
  void Encode(Item item, ByteWriter* out);
  void EncodeType(NodeId id, ByteWriter* out);
  void EncodeVhlo(NodeId id, ByteWriter* out);
  void EncodeBuiltin(NodeId id, ByteWriter* out);
  void EncodeFields(NodeId id, ByteWriter* out);
  void EncodeElements(NodeId id, ByteWriter* out);
  uint64_t Add(Table* table, Dialect dialect, std::string bytes);
  uint64_t IndexOf(Item item) const;
  uint64_t TypeIndex(NodeId id) const { return IndexOf({id, true, kVhlo}); }
  uint64_t AttributeIndex(NodeId id, Dialect dialect) const { return IndexOf({id, false, dialect}); }
  void Bits(NodeId number, ByteWriter* out) const;
  void Fail(NodeId id);
  // Returns true, and sets the status, if the type is in StableHLO only since a later release than the target.
  bool IsTooNew(NodeId type);

  const mlir::NodeTable& nodes_;
  const int64_t minor_;
  Table attributes_, types_;
  std::vector<std::string> strings_;
  absl::flat_hash_map<std::string, uint64_t> string_index_;
  absl::flat_hash_map<uint64_t, uint64_t> written_;  // by Item::key
  absl::Status status_;
};

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_NODE_WRITER_H_
