// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/result_accuracy_parser.h"

#include <cmath>
#include <string_view>

#include "absl/strings/match.h"
#include "ir/core/str_cat.h"
#include "ir/text/result_accuracy.h"

namespace hlokit {
namespace {

bool ParseMode(TextCursor& in, ResultAccuracyMode* mode) {
  const SourceRange range = in.Next();
  const std::string_view text = in.BareName();
  for (ResultAccuracyMode known : {ResultAccuracyMode::kDefault, ResultAccuracyMode::kHighest}) {
    const std::string_view name = EnumTexts(EnumType::kResultAccuracyMode)[static_cast<size_t>(known)];
    if (!absl::EqualsIgnoreCase({text.data(), text.size()}, {name.data(), name.size()})) continue;
    *mode = known;
    return true;
  }
  return in.Error(DiagnosticKind::kBadAttribute, range, "expected accuracy mode default or highest");
}

bool ParseTolerance(TextCursor& in, ResultAccuracy* accuracy) {
  accuracy->mode = ResultAccuracyMode::kTolerance;
  if (!in.Expect('{', "before tolerances")) return false;
  while (!in.TryConsume('}')) {
    const SourceRange range = in.Next();
    std::string_view name;
    if (!in.ExpectName(&name, "a tolerance") || !in.Expect('=', "after the name of a tolerance")) return false;
    const SourceRange value_range = in.Next();
    double value;
    if (!in.Double(&value)) return false;
    if (name == "atol") {
      accuracy->atol = value;
    } else if (name == "rtol") {
      accuracy->rtol = value;
    } else if (name == "ulps") {
      // A whole number, but possibly written as 2.0.
      if (!(std::abs(value) < 0x1p62)) {
        return in.Error(DiagnosticKind::kNumberOutOfRange, value_range, "ulps must be below 2^62");
      }
      accuracy->ulps = static_cast<int64_t>(value);
    } else {
      return in.Error(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown tolerance `", name, "`"),
                      "expected atol, rtol or ulps");
    }
    if (!in.TryConsume(',')) return in.Expect('}', "after tolerances");
  }
  return true;
}

}  // namespace

bool ParseResultAccuracy(TextCursor& in, Context* context, ListId* id) {
  ResultAccuracy accuracy;
  if (!in.Expect('{', "before a result accuracy")) return false;
  if (in.TryConsumeWord("mode")) {
    if (!in.Expect('=', "after mode") || !ParseMode(in, &accuracy.mode)) return false;
  } else if (in.TryConsumeWord("tolerance")) {
    if (!in.Expect('=', "after tolerance") || !ParseTolerance(in, &accuracy)) return false;
  } else {
    return in.ErrorHere(DiagnosticKind::kBadAttribute,
                        StrCat("expected mode= or tolerance= in a result accuracy, found ", in.DescribeNext()));
  }
  *id = EncodeResultAccuracy(context, accuracy);
  return in.Expect('}', "after a result accuracy");
}

}  // namespace hlokit
