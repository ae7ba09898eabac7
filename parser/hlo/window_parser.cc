// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/window_parser.h"

#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit {
namespace {

// Parses `3x3`.
bool ParseDimXDim(TextCursor& in, std::vector<int64_t>* list) {
  for (;;) {
    int64_t value;
    if (!in.Int(&value)) return false;
    list->push_back(value);
    if (*in.cursor() != 'x') return true;
    in.set_cursor(in.cursor() + 1);
  }
}

}  // namespace

bool ParseSliceRanges(TextCursor& in, std::vector<int64_t>* list) {
  if (!in.Expect('{', "before the ranges of a slice")) return false;
  if (in.TryConsume('}')) return true;
  do {
    int64_t start, limit, stride = 1;
    if (!in.Expect('[', "before a range") || !in.Int(&start) || !in.Expect(':', "in a range") || !in.Int(&limit)) {
      return false;
    }
    if (in.TryConsume(':') && !in.Int(&stride)) return false;
    if (!in.Expect(']', "after a range")) return false;
    list->insert(list->end(), {start, limit, stride});
  } while (in.TryConsume(','));
  return in.Expect('}', "after the ranges of a slice");
}

bool ParsePadding(TextCursor& in, std::vector<int64_t>* list, bool allow_interior) {
  // low_high[_interior], with an `x` between dimensions and no whitespace.
  const auto bad = [&] {
    return in.ErrorHere(DiagnosticKind::kBadAttribute,
                        allow_interior ? "expected low_high or low_high_interior for each dimension"
                                       : "expected low_high for each dimension",
                        allow_interior ? "for example padding=0_1x2_2_1" : "for example pad=0_1x2_2");
  };
  if (!in.AtInt()) return true;  // rank 0: `padding=`
  do {
    int64_t low, high, interior = 0;
    if (!in.Int(&low)) return false;
    if (*in.cursor() != '_') return bad();
    in.set_cursor(in.cursor() + 1);
    if (!in.AtInt()) return bad();
    if (!in.Int(&high)) return false;
    if (*in.cursor() == '_') {
      if (!allow_interior) return bad();
      in.set_cursor(in.cursor() + 1);
      if (!in.AtInt()) return bad();
      if (!in.Int(&interior)) return false;
    }
    list->insert(list->end(), {low, high, interior});
    if (*in.cursor() != 'x') break;
    in.set_cursor(in.cursor() + 1);
  } while (true);
  return !char_class::Is(*in.cursor(), char_class::kName) || bad();
}

bool ParseWindow(TextCursor& in, std::vector<int64_t>* list) {
  if (!in.Expect('{', "before a window")) return false;
  static constexpr std::string_view kFields[] = {"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"};
  std::vector<int64_t> values[6];  // pad: low, high, 0 for each dimension
  SourceRange places[6];
  while (!in.TryConsume('}')) {
    const SourceRange range = in.Next();
    std::string_view name;
    if (!in.ExpectName(&name, "a part of a window") || !in.Expect('=', "after the name of a part of a window")) {
      return false;
    }
    size_t field = 0;
    while (field < 6 && kFields[field] != name) ++field;
    if (field == 6) {
      return in.Error(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown window field `", name, "`"),
                      DidYouMean(name, {std::begin(kFields), std::end(kFields)}));
    }
    if (!values[field].empty()) {
      return in.Error(DiagnosticKind::kDuplicateAttribute, range, StrCat("duplicate attribute `", name, "`"));
    }
    places[field] = range;
    if (!(field == 2 ? ParsePadding(in, &values[field], /*allow_interior=*/false) : ParseDimXDim(in, &values[field])))
      return false;
    in.TryConsume(',');
  }
  const size_t rank = values[0].size();
  for (size_t field = 1; field < 6; ++field) {
    const size_t given = values[field].size() / (field == 2 ? 3 : 1);
    if (given != 0 && given != rank) {
      return in.Error(DiagnosticKind::kBadAttribute, places[field],
                      StrCat("`", kFields[field], "` has ", given, " dimensions, but `size` has ", rank));
    }
  }
  for (size_t i = 0; i < rank; ++i) {
    const auto at = [&](size_t field, int64_t absent) { return values[field].empty() ? absent : values[field][i]; };
    list->insert(list->end(), {values[0][i], at(1, 1), values[2].empty() ? 0 : values[2][3 * i],
                               values[2].empty() ? 0 : values[2][3 * i + 1], at(3, 1), at(4, 1), at(5, 0)});
  }
  return true;
}

bool ParseConvolutionDims(TextCursor& in, std::vector<int64_t>* list) {
  // lhs_rhs->out, each a permutation of two letters and the digits of the spatial dimensions; `?` is a dimension
  // without meaning.
  const SourceRange start = in.Next();
  const char* p = in.cursor();
  std::string_view parts[3];
  const auto part = [&p] {
    const char* begin = p;
    while ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || *p == '?') ++p;
    return std::string_view(begin, static_cast<size_t>(p - begin));
  };
  const auto bad = [&](std::string message) {
    const auto size = static_cast<uint32_t>(p - in.cursor());
    return in.Error(DiagnosticKind::kBadAttribute, {start.offset, size == 0 ? 1 : size}, std::move(message),
                    "for example dim_labels=b01f_01io->b01f");
  };
  parts[0] = part();
  if (*p != '_') return bad("expected `_` after the labels of the input");
  ++p;
  parts[1] = part();
  if (p[0] != '-' || p[1] != '>') return bad("expected `->` after the labels of the kernel");
  p += 2;
  parts[2] = part();
  size_t spatial = 0;
  for (char c : parts[0]) spatial += c >= '0' && c <= '9';
  list->assign(1, static_cast<int64_t>(spatial));
  static constexpr std::string_view kLetters[] = {"bf", "io", "bf"};
  static constexpr std::string_view kWhat[] = {"input", "kernel", "output"};
  for (size_t i = 0; i < 3; ++i) {
    const size_t base = list->size();
    list->resize(base + 2 + spatial, -1);
    size_t digits = 0;
    for (size_t d = 0; d < parts[i].size(); ++d) {
      const char c = parts[i][d];
      if (c == '?') continue;
      size_t slot;
      if (c == kLetters[i][0]) {
        slot = 0;
      } else if (c == kLetters[i][1]) {
        slot = 1;
      } else if (c >= '0' && c <= '9' && static_cast<size_t>(c - '0') < spatial) {
        slot = 2 + static_cast<size_t>(c - '0');
        ++digits;
      } else {
        return bad(StrCat("invalid label `", c, "` in the ", kWhat[i], " dimensions"));
      }
      if ((*list)[base + slot] >= 0) return bad(StrCat("duplicate label `", c, "` in the ", kWhat[i], " dimensions"));
      (*list)[base + slot] = static_cast<int64_t>(d);
    }
    if (digits != spatial) {
      return bad(StrCat("input, kernel and output must have the same number of spatial dimensions: the input has ",
                        spatial, ", the ", kWhat[i], " ", digits));
    }
    for (size_t slot = 0; slot < 2; ++slot) {
      if ((*list)[base + slot] < 0) return bad(StrCat("missing label `", kLetters[i][slot], "` in the ", kWhat[i]));
    }
  }
  in.set_cursor(p);
  return true;
}

bool ParseSparsityConfig(TextCursor& in, std::string* text) {
  static constexpr std::string_view kSides[] = {"lhs", "rhs"};
  static constexpr std::string_view kFields[] = {"sparsity", "dimension", "stride", "idx"};
  std::string sides[2];
  if (!in.Expect('{', "before a sparsity config")) return false;
  while (!in.TryConsume('}')) {
    const SourceRange range = in.Next();
    std::string_view side;
    if (!in.ExpectName(&side, "lhs or rhs") || !in.Expect('=', "in a sparsity config")) return false;
    const size_t which = side == kSides[0] ? 0 : 1;
    if (side != kSides[which] || !sides[which].empty()) {
      return in.Error(DiagnosticKind::kBadAttribute, range,
                      "expected at most one lhs and one rhs in a sparsity config");
    }
    if (!in.Expect('{', "in a sparsity config")) return false;
    std::vector<int64_t> values[4];
    while (!in.TryConsume('}')) {
      const SourceRange field_range = in.Next();
      std::string_view field;
      if (!in.ExpectName(&field, "a field of a sparsity config") || !in.Expect('=', "in a sparsity config")) {
        return false;
      }
      size_t k = 0;
      while (k < 4 && kFields[k] != field) ++k;
      if (k == 4 || !values[k].empty()) {
        return in.Error(
            DiagnosticKind::kUnknownAttribute, field_range,
            StrCat("expected each of sparsity, dimension, stride and idx once in a sparsity config, found `", field,
                   "`"));
      }
      if (!ParseDimXDim(in, &values[k])) return false;
      in.TryConsume(',');
    }
    std::string field_texts = StrCat(side, "={");
    for (size_t k = 0; k < 4; ++k) {
      StrAppend(&field_texts, k == 0 ? "" : " ", kFields[k], "=");
      if (values[k].empty()) values[k].push_back(0);
      for (size_t n = 0; n < values[k].size(); ++n) StrAppend(&field_texts, n == 0 ? "" : "x", values[k][n]);
    }
    sides[which] = StrCat(field_texts, "}");
    in.TryConsume(',');
  }
  const std::string_view gap = sides[0].empty() || sides[1].empty() ? "" : " ";
  *text = StrCat("{", sides[0], gap, sides[1], "}");
  return true;
}

}  // namespace hlokit
