// SPDX-License-Identifier: Apache-2.0
// Text of attribute values.
#ifndef HLOKIT_IR_TEXT_ATTRIBUTE_TEXT_H_
#define HLOKIT_IR_TEXT_ATTRIBUTE_TEXT_H_

#include "ir/core/text_writer.h"
#include "ir/graph/module.h"
#include "ir/text/printer.h"

namespace hlokit {

class AttributePrinter {
 public:
  AttributePrinter(TextWriter& out, const Module& module, const PrintOptions& options)
      : out_(out), module_(module), context_(module.context()), options_(options) {}

  // ", name=value", or nothing when the options leave the attribute out. Attributes that hold computations are printed
  // by name.
  void Print(AttrValue value);
  // The value alone.
  void PrintValue(AttrValue value);

 private:
  void PrintName(std::string_view name);
  void PrintList(absl::Span<const int64_t> list);
  void PrintListList(absl::Span<const int64_t> list, std::string_view inner_separator);
  void PrintWindow(absl::Span<const int64_t> list);
  void PrintSliceRanges(absl::Span<const int64_t> list);
  void PrintPadding(absl::Span<const int64_t> list);
  void PrintConvolutionDims(absl::Span<const int64_t> list);
  void PrintOperandAliasing(absl::Span<const int64_t> list);
  void PrintFullReplicaGroups(ListId id);
  void PrintLiteralAttr(LiteralId id);

  TextWriter& out_;
  const Module& module_;
  const Context& context_;
  const PrintOptions& options_;
};

// True if XLA prints the metadata at all.
bool HasMetadataToPrint(const Context& context, const Metadata& m);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_ATTRIBUTE_TEXT_H_
