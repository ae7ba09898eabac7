// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/frontend_attributes_parser.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"

namespace hlokit {

bool ParseFrontendAttributes(TextCursor& in, Context* context, ListId* attributes) {
  std::vector<FrontendAttribute> entries;
  std::string scratch;
  if (!in.Expect('{', "before frontend attributes")) return false;
  if (in.Peek() != '}') {
    do {
      in.SkipWhitespace();
      const std::string_view key = in.BareName();
      if (key.empty()) {
        return in.ErrorHere(DiagnosticKind::kUnexpectedToken,
                            StrCat("expected the key of a frontend attribute, found ", in.DescribeNext()));
      }
      if (!in.Expect('=', "after the key of a frontend attribute")) return false;
      std::string_view value;
      bool stable = true;
      if (in.Peek() == '{') {
        if (!in.Braced(&value)) return false;
      } else if (!in.String(&value, &scratch, &stable)) {
        return false;
      }
      entries.emplace_back(context->strings.InternStable(key),
                           stable ? context->strings.InternStable(value) : context->strings.Intern(value));
    } while (in.TryConsume(','));
  }
  *attributes = EncodeFrontendAttributes(context, std::move(entries));
  return in.Expect('}', "after frontend attributes");
}

}  // namespace hlokit
