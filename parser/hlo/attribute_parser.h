// SPDX-License-Identifier: Apache-2.0
// HLO text of attribute values, into payloads (attribute.h has the encodings).
#ifndef HLOKIT_PARSER_HLO_ATTRIBUTE_PARSER_H_
#define HLOKIT_PARSER_HLO_ATTRIBUTE_PARSER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/context.h"
#include "ir/ops/attribute.h"
#include "parser/hlo/literal_parser.h"
#include "parser/hlo/shape_parser.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

class AttributeParser {
 public:
  // Nothing is owned; all must outlive this object.
  AttributeParser(TextCursor* in, Context* context, ShapeParser* shapes, LiteralBudget* literal_budget)
      : in_(*in), context_(context), shapes_(*shapes), literal_budget_(literal_budget) {}

  // Parses a value of `attr` at the cursor. Reports what is wrong and returns false. Computations, instructions and
  // metadata, which need the scope of a module, are rejected.
  bool Parse(Attr attr, uint32_t* payload);

  // Parses one of the words of `type`; `attr_name` is for the diagnostic.
  bool ParseEnum(EnumType type, std::string_view attr_name, uint32_t* payload);
  // Parses `"text"`.
  bool ParseString(StringId* id);

 private:
  // Interns list_. Returns true.
  bool Intern(uint32_t* payload);
  bool ParsePrecisions();  // to list_
  bool ParseShapes();      // to list_

  // The syntaxes of attribute_types.def.
  bool ParseBool(Attr attr, uint32_t* payload);
  bool ParseInteger(Attr attr, uint32_t* payload);
  bool ParseKeyword(Attr attr, uint32_t* payload);
  bool ParseNumber(Attr attr, uint32_t* payload);
  bool ParseQuoted(Attr attr, uint32_t* payload);
  bool ParseQuotedOrBraced(Attr attr, uint32_t* payload);
  bool ParseIdentifier(Attr attr, uint32_t* payload);
  bool ParseSparsityConfig(Attr attr, uint32_t* payload);
  bool ParseComputationName(Attr attr, uint32_t* payload);
  bool ParseShape(Attr attr, uint32_t* payload);
  bool ParseLiteral(Attr attr, uint32_t* payload);
  bool ParseSeparately(Attr attr, uint32_t* payload);
  bool ParseList(Attr attr, uint32_t* payload);
  bool ParseSliceRanges(Attr attr, uint32_t* payload);
  bool ParsePadding(Attr attr, uint32_t* payload);
  bool ParseWindow(Attr attr, uint32_t* payload);
  bool ParseConvolutionDims(Attr attr, uint32_t* payload);
  bool ParseFrontendAttributes(Attr attr, uint32_t* payload);
  bool ParseOperandAliasing(Attr attr, uint32_t* payload);
  bool ParseReplicaGroups(Attr attr, uint32_t* payload);
  bool ParseSharding(Attr attr, uint32_t* payload);
  bool ParseDomain(Attr attr, uint32_t* payload);
  bool ParseResultAccuracy(Attr attr, uint32_t* payload);
  bool ParseStatisticsViz(Attr attr, uint32_t* payload);
  bool ParseOriginalValue(Attr attr, uint32_t* payload);

  TextCursor& in_;
  Context* context_;
  ShapeParser& shapes_;
  LiteralBudget* literal_budget_;
  std::string scratch_;
  std::vector<int64_t> list_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_ATTRIBUTE_PARSER_H_
