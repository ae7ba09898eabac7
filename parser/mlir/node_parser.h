// SPDX-License-Identifier: Apache-2.0
// Types, attributes and locations: text -> nodes. Nesting is kept on a stack of frames, not on that of the program.
#ifndef HLOKIT_PARSER_MLIR_NODE_PARSER_H_
#define HLOKIT_PARSER_MLIR_NODE_PARSER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "parser/mlir/cursor.h"
#include "parser/mlir/node.h"
#include "parser/text/byte_limit.h"
#include "parser/text/text_cache.h"

namespace hlokit::mlir {

struct NamedNode {
  StringId name;
  NodeId value;
};

struct NodeLimits {
  int64_t max_nesting = 1 << 20;
  int64_t max_literal_bytes = int64_t{1} << 32;
  bool have_flags = false;             // of tools: --max-nesting, --max-literal-bytes
  ByteLimit* literal_bytes = nullptr;  // if it is not null, instead of max_literal_bytes
};

class NodeParser {
 public:
  NodeParser(Cursor* in, NodeTable* nodes, const NodeLimits& limits)
      : in_(*in),
        nodes_(*nodes),
        limits_(limits),
        own_literal_bytes_(limits.max_literal_bytes, limits.have_flags ? "--max-literal-bytes" : ""),
        literal_bytes_(limits.literal_bytes != nullptr ? *limits.literal_bytes : own_literal_bytes_) {}
  NodeParser(const NodeParser&) = delete;
  NodeParser& operator=(const NodeParser&) = delete;

  // Each reports an error and returns an invalid id, or false.
  NodeId ParseType();
  NodeId ParseAttribute() { return Parse(Goal::kAttribute); }
  // A location, after `loc(`: up to the closing parenthesis, which stays.
  NodeId ParseLocation() { return Parse(Goal::kLocation); }
  // `{name = value, ...}`, appended to `entries`. The cursor is at the brace.
  bool ParseDictionary(std::vector<NamedNode>* entries);
  // The parameters of an attribute, `name = value, ...>`, after the opening bracket.
  NodeId ParseFields(std::string_view name);
  // The number and type of a value whose type the place gives: `5`, without `: i64`.
  NodeId ParseNumber(NodeId type);

  // `#name = ...` and `!name = ...`
  bool DefineAttributeAlias(std::string_view name, NodeId value);
  bool DefineTypeAlias(std::string_view name, NodeId value);
  NodeId FindAttributeAlias(std::string_view name) const;
  // Returns true if a location had an alias that was not defined before it: a kAlias node.
  bool has_undefined_aliases() const { return has_undefined_aliases_; }

 private:
  enum class Goal : uint8_t { kType, kAttribute, kLocation };
  enum class FrameKind : uint8_t {
    kArray,
    kDictionary,
    kFields,
    kTyped,
    kDense,
    kDenseResource,
    kString,
    kTuple,
    kFuture,
    kComplex,
    kShaped,
    kFunctionInputs,
    kFunctionResults,
    kNameLocation,
    kCallSite,
    kFused,
  };
  struct Frame {
    FrameKind kind;
    NodeKind node = NodeKind::kArray;
    size_t first_value = 0;  // on values_
    size_t first_int = 0;    // on ints_
    int64_t number = 0;      // of kTyped: value or bits; of functions: inputs; of kShaped: parts so far
    bool is_float = false;
    bool is_hex = false;
    bool parenthesized = false;
    uint32_t begin = 0;  // of dense<: the text between the brackets
    uint32_t end = 0;
    std::string text;
  };
  enum class Step : uint8_t { kError, kValue, kMore };

  NodeId Parse(Goal goal);
  // Runs steps until the frames above `base` are closed.
  NodeId Run(size_t base, size_t values, size_t ints, Step step, Goal goal, NodeId value);
  // Starts a value: reads an atom into `value`, or opens a frame and sets the goal of its first part.
  Step Start(Goal* goal, NodeId* value);
  Step StartType(Goal* goal, NodeId* value);
  Step StartAttribute(Goal* goal, NodeId* value);
  Step StartLocation(Goal* goal, NodeId* value);
  Step StartWord(std::string_view word, Goal* goal, NodeId* value);
  Step StartNumber(Goal* goal, NodeId* value);
  Step StartShaped(NodeKind kind, Goal* goal, NodeId* value);
  Step StartDialectAttribute(Goal* goal, NodeId* value);
  // Its parts, after the opening bracket.
  Step StartBounds(std::string_view name, NodeId* value);
  // A value of the enumeration and the closing bracket. Returns false if that is not what follows.
  bool StartEnumeration(std::string_view dialect, std::string_view enumeration, NodeId* value);
  // Parameters of an attribute of StableHLO or CHLO; nullopt if they have a syntax of their own.
  std::optional<Step> StartParameters(const std::string& name, Goal* goal, NodeId* value);
  Step StartDialectType(Goal* goal, NodeId* value);
  Step StartDense(Goal* goal);
  Step StartDenseArray(NodeId* value);
  Step StartSymbol(NodeId* value);
  // Gives a value to the innermost frame, which is closed and replaces it by its own value, or asks for more.
  Step Accept(Goal* goal, NodeId* value);
  Step AcceptShaped(Goal* goal, NodeId* value);
  Step AcceptFunction(Goal* goal, NodeId* value);
  Step AcceptTyped(NodeId* value);
  // Of the fields of the innermost frame.
  bool CheckFieldName(std::string_view name);
  // Reads entries of a dictionary or of fields up to one with a value or the end.
  Step NextEntry(Goal* goal, NodeId* value);

  Frame& Push(FrameKind kind);
  Step Close(NodeKind kind, std::string_view text, NodeId* value);
  Step Fail(std::string message, std::string hint = "") {
    in_.ErrorHere(std::move(message), std::move(hint));
    return Step::kError;
  }

  struct KnownType {
    NodeId type;
    uint32_t size = 0;  // of its text
  };

  Cursor& in_;
  NodeTable& nodes_;
  const NodeLimits limits_;
  ByteLimit own_literal_bytes_;
  ByteLimit& literal_bytes_;
  // The end of a list without `?`: those inside of it, of fields in fields, are not searched again.
  const char* no_unknown_size_before_ = nullptr;
  std::vector<Frame> frames_;
  std::vector<NodeId> values_;
  std::vector<int64_t> ints_;
  TextCache<KnownType, 1 << 10> known_types_;
  bool has_undefined_aliases_ = false;
  absl::flat_hash_map<std::string, NodeId> attribute_aliases_;
  absl::flat_hash_map<std::string, NodeId> type_aliases_;
};

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_NODE_PARSER_H_
