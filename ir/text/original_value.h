// SPDX-License-Identifier: Apache-2.0
// Original values: the array of the original program that an instruction of this one computes. In the text
//   origin={{"add.3"}}                      one array
//   origin={{"while" {1,0}}}                an element of a tuple
//   origin={({"a"}, ({}, {"b" {1}}))}       a tuple; {} where it is unknown
//   origin={[synthetic_call]}               a call that the original program did not have
// and, in the header of a module, tables keyed by such arrays:
//   origin_recovery_table   how to compute a removed array from another one: a quoted module, or nothing if the two
//                           are equal
//   debug_attributes        logging of an array
// Trees may nest deeply, so they are stored flat, as in the text.
#ifndef HLOKIT_IR_TEXT_ORIGINAL_VALUE_H_
#define HLOKIT_IR_TEXT_ORIGINAL_VALUE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/ids.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/graph/module_header.h"

namespace hlokit {

struct OriginalArray {
  StringId instruction;
  std::vector<int64_t> index;  // of the element, if the instruction has a tuple shape
  friend bool operator==(const OriginalArray&, const OriginalArray&) = default;
};

struct OriginalValue {
  enum class Kind : uint8_t { kOpen, kClose, kUnknown, kArray };
  struct Node {
    Kind kind = Kind::kUnknown;
    OriginalArray array;  // kArray
    friend bool operator==(const Node&, const Node&) = default;
  };
  bool synthetic_call = false;
  std::vector<Node> nodes;  // depth first, tuples between kOpen and kClose; exactly one tree unless a synthetic call
  friend bool operator==(const OriginalValue&, const OriginalValue&) = default;
};

// Encoding of a value: for each node its kind, and for an array its encoding preceded by the number of its indices; a
// single -1 for a synthetic call. Encoding of an array: name, indices.
ListId EncodeOriginalValue(Context* context, const OriginalValue& value);
OriginalValue DecodeOriginalValue(const Context& context, ListId id);
ListId EncodeOriginalArray(Context* context, const OriginalArray& array);
OriginalArray DecodeOriginalArray(const Context& context, ListId id);

// Prints the outer braces too.
void PrintOriginalValue(TextWriter& out, const Context& context, ListId value);

// Sorts entries by array and drops all but the first of each array, as XLA does.
void SortOriginRecoveryTable(const Context& context, std::vector<OriginRecoveryEntry>* table);
// Sorts by array, merges the entries of one array, and drops empty ones.
void SortDebugAttributes(Context* context, std::vector<DebugAttribute>* attributes);

// Prints the value of `origin_recovery_table=`, with the newline after the last brace.
void PrintOriginRecoveryTable(TextWriter& out, const Context& context, absl::Span<const OriginRecoveryEntry> table);
// Prints the value of `debug_attributes=`.
void PrintDebugAttributes(TextWriter& out, const Context& context, absl::Span<const DebugAttribute> attributes);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_ORIGINAL_VALUE_H_
