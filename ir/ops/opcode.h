// SPDX-License-Identifier: Apache-2.0
// Opcodes and their properties that do not depend on an instruction. The rows are in opcodes.def.
#ifndef HLOKIT_IR_OPS_OPCODE_H_
#define HLOKIT_IR_OPS_OPCODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "ir/ops/attribute.h"

namespace hlokit {

enum class Opcode : uint8_t {
#include "ir/ops/opcode_names.inc"  // a line for each row of opcodes.def
  // An opcode that the table lacks, parsed under allow_unknown; its spelling is Attr::kUnknownOpcode.
  kUnknown,
};

inline constexpr size_t kOpcodeCount = static_cast<size_t>(Opcode::kUnknown);

enum OpTrait : uint32_t {
  kNoTraits = 0,
  kElementwise = 1 << 0,
  kCommutative = 1 << 1,
  kSideEffect = 1 << 2,
  kCollective = 1 << 3,
  kControlFlow = 1 << 4,
  kStartsAsync = 1 << 5,
  kUpdatesAsync = 1 << 6,
  kEndsAsync = 1 << 7,
  kInferable = 1 << 8,
  kKeepsDimensions = 1 << 9,
  kForwards = 1 << 10,
  kIdentity = 1 << 11,
  kGenericAsync = 1 << 12,
  kUniformTypes = 1 << 13,
  kAppliesComputation = 1 << 14,
  kOwnsCallee = 1 << 15,
  kImpure = 1 << 16,
  kReducesAcrossDevices = 1 << 17,
  kReinterprets = 1 << 18,
  kTransfers = 1 << 19,
  kIdempotent = 1 << 20,
  kDeviceId = 1 << 21,
  kLeaf = 1 << 22,
  kReadsPart = 1 << 23,
  kCombines = 1 << 24,
  kContracts = 1 << 25,
  kKeepsLayout = 1 << 26,
  // By the attributes of the row: it names computations. An unknown opcode might.
  kCalls = 1 << 27,
  // Also: applies them to elements (reduce, sort, all-reduce); others run theirs as sequences of instructions.
  kAppliesToElements = 1 << 28,
  kLastTrait = kAppliesToElements,
  // Of any member of a start/update/done chain.
  kAsyncChain = kStartsAsync | kUpdatesAsync | kEndsAsync,
};

// How a result shape is inferred from operands and attributes (opcodes.def).
enum class ShapeRule : uint8_t {
#include "ir/ops/shape_rule_names.inc"
};

// The element types of the operands of an elementwise opcode. Opcodes whose shape rule checks types itself have kAny.
enum class OperandTypes : uint8_t {
  kAny,
  kFloat,
  kFloatOrComplex,
  kSignedOrComplex,  // signed integers, floating-point and complex numbers
  kArithmetic,       // all but pred
  kInteger,
  kPredOrInteger,
};

// The operands whose elements appear unchanged in the result. Comments state other possible elements.
enum class ElementSource : uint8_t {
  kComputed,      // none: the elements are computed, or another rule applies (tuples, calls, async chains)
  kMoved,         // operand 0, permuted, replicated or omitted; further operands are indices
  kUpdated,       // operands 0 and 1, the latter within the former; further operands are indices
  kConcatenated,  // all operands, concatenated
  kSelected,      // operands 1 and 2
  kClamped,       // any of the three operands
  kCommunicated,  // operand 0 of some device, or zeros
  kConverted,     // operand 0, possibly converted to another type
};

// One attribute of an opcode.
struct AttrSpec {
  enum Presence : uint8_t { kOptional, kRequired, kDefaulted, kLegacy };
  Attr attr;
  Presence presence;
  uint32_t default_payload;  // payload if presence is kDefaulted and the text omits the attribute
};

inline constexpr int kVariadic = -1;

struct OpcodeInfo {
  std::string_view text;
  int8_t min_operands;
  int8_t max_operands;  // kVariadic: any number
  ShapeRule shape_rule;
  OperandTypes operand_types;
  uint32_t traits;
  ElementSource elements;
  absl::Span<const AttrSpec> attributes;  // in print order
};

// Returns the row; for Opcode::kUnknown no attributes, any operands, kSideEffect.
const OpcodeInfo& InfoOf(Opcode opcode);

// The traits of all opcodes in one array, for traversals that test every instruction.
extern const std::array<uint32_t, kOpcodeCount + 1> kOpcodeTraits;

inline std::string_view ToString(Opcode opcode) { return InfoOf(opcode).text; }
// Returns true if the opcode has the trait, or any of several.
inline bool HasTrait(Opcode opcode, OpTrait trait) { return (kOpcodeTraits[static_cast<size_t>(opcode)] & trait) != 0; }
inline bool MightHaveCalledComputations(Opcode opcode) { return HasTrait(opcode, kCalls); }
// Returns true for opcodes that run their callees as sequences of instructions: call, while, conditional; not fusion.
inline bool CallsSequentialCode(Opcode opcode) {
  return HasTrait(opcode, kControlFlow) && !HasTrait(opcode, kOwnsCallee);
}
// Returns true for opcodes whose callees run with values of the instruction: also fusion and async-start.
inline bool RunsCallees(Opcode opcode) {
  return HasTrait(opcode, kControlFlow) || (HasTrait(opcode, kGenericAsync) && HasTrait(opcode, kStartsAsync));
}
// Returns true for opcodes that wait for a start other than that of a transfer.
inline bool EndsOperation(Opcode opcode) { return HasTrait(opcode, kEndsAsync) && !HasTrait(opcode, kTransfers); }
// Returns the opcode of which a start or done opcode is a half (all-gather for all-gather-start), else `opcode`.
Opcode SynchronousOpcode(Opcode opcode);
inline bool MovesElements(Opcode opcode) { return InfoOf(opcode).elements == ElementSource::kMoved; }

// Operands [first, last), of `operand_count`, whose elements appear unchanged in the result (ElementSource).
struct OperandIndexRange {
  int64_t first, last;
};
OperandIndexRange ElementOperands(Opcode opcode, int64_t operand_count);

// Returns the opcode spelled `text`, e.g. "dynamic-slice".
std::optional<Opcode> OpcodeFromText(std::string_view text);

// "<opcode>-start", "-update", "-done" around any opcode: the sugar for async-start etc. of a computation with that one
// instruction. Spellings that are opcodes themselves (all-reduce-start) are not sugar.
struct AsyncSugar {
  Opcode async_opcode;  // kAsyncStart, kAsyncUpdate or kAsyncDone
  Opcode wrapped_opcode;
};
std::optional<AsyncSugar> AsyncSugarFromText(std::string_view text);

// Returns the spec of `attr` for `opcode`; null if neither the opcode nor the common rows have it.
const AttrSpec* FindAttrSpec(Opcode opcode, Attr attr);

// Returns the print position of `attr` in an instruction: the opcode's attributes in table order, then common ones.
int AttrOrder(Opcode opcode, Attr attr);

}  // namespace hlokit

#endif  // HLOKIT_IR_OPS_OPCODE_H_
