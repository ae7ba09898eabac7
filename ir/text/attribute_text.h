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

  // Prints ", name=value", or nothing if the options omit the attribute. Attributes that hold computations are printed
  // by name.
  void Print(AttrValue value);
  // Prints only the value.
  void PrintValue(AttrValue value);

 private:
  void PrintName(std::string_view name);
  void PrintIntegers(absl::Span<const int64_t> list);
  absl::Span<const int64_t> ListOf(AttrValue value) const { return context_.list(ListId(value.payload)); }

  // The syntaxes of attribute_types.def.
  void PrintSeparately(AttrValue value);
  void PrintBool(AttrValue value);
  void PrintInteger(AttrValue value);
  void PrintKeyword(AttrValue value);
  void PrintNumber(AttrValue value);
  void PrintIdentifier(AttrValue value);
  void PrintSparsityConfig(AttrValue value);
  void PrintQuoted(AttrValue value);
  void PrintQuotedOrBraced(AttrValue value);
  void PrintComputationName(AttrValue value);
  void PrintShape(AttrValue value);
  void PrintLiteral(AttrValue value);
  void PrintList(AttrValue value);
  void PrintSliceRanges(AttrValue value);
  void PrintPadding(AttrValue value);
  void PrintWindow(AttrValue value);
  void PrintConvolutionDims(AttrValue value);
  void PrintOperandAliasing(AttrValue value);
  void PrintFrontendAttributes(AttrValue value);
  void PrintReplicaGroups(AttrValue value);
  void PrintSharding(AttrValue value);
  void PrintDomain(AttrValue value);
  void PrintResultAccuracy(AttrValue value);
  void PrintStatisticsViz(AttrValue value);
  void PrintOriginalValue(AttrValue value);

  TextWriter& out_;
  const Module& module_;
  const Context& context_;
  const PrintOptions& options_;
};

// Returns true if XLA prints the metadata at all.
bool HasMetadataToPrint(const Context& context, const Metadata& m);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_ATTRIBUTE_TEXT_H_
