// SPDX-License-Identifier: Apache-2.0
// Shapes and layouts: `f32[2,<=3]{1,0:T(8,128)S(1)}`, `(s32[], token[])`, `b(f32[4])`.
#ifndef HLOKIT_PARSER_HLO_SHAPE_PARSER_H_
#define HLOKIT_PARSER_HLO_SHAPE_PARSER_H_

#include <memory>
#include <string_view>
#include <vector>

#include "ir/graph/context.h"
#include "parser/core/text_cache.h"
#include "parser/core/text_cursor.h"

namespace hlokit {

// Reads shapes of one context, keeping its stacks between calls, and what shapes the texts of arrays were read as: of
// the text that `in` reads when this is made, which must outlive it. Other texts that `in` is sent to are simply read.
class ShapeParser {
 public:
  ShapeParser(TextCursor* in, Context* context, int64_t max_nesting)
      : in_(*in), context_(*context), max_nesting_(max_nesting), remembered_end_(in->end()) {}

  // Takes an array shape that was read before, if one stands here. False, with nothing taken, for anything else.
  bool TakeKnown(Shape* shape) {
    in_.SkipWhitespace();
    const std::string_view text = ArrayText();
    if (text.empty()) return false;
    const Shape* known = known_->Find(text, 0);
    if (known == nullptr) return false;
    in_.set_cursor(text.data() + text.size());
    *shape = *known;
    return true;
  }

  // True if a shape starts here: `(`, or the name of a type followed by `[` or, for a buffer, `(`.
  bool AtShape();

  // Reports and returns false if what follows is no shape. Arrays without a written layout get the default one, or none
  // when `default_layouts` is false.
  bool Parse(Shape* shape, bool default_layouts = true);

 private:
  using Known = TextCache<Shape, 256>;

  // The text of the array shape that may stand at the cursor, such that what follows it does not bear on it; empty when
  // there is none such. It is the text of a shape only if it was read as one.
  std::string_view ArrayText() const {
    const char* const start = in_.cursor();
    if (!char_class::Is(*start, char_class::kNameStart) || in_.end() != remembered_end_) return {};
    constexpr std::ptrdiff_t kLongest = 96;
    const char* const limit = in_.end() - start > kLongest ? start + kLongest : in_.end() - 1;
    const char* p = scan::FindAny<']', '(', ')'>(start, limit);
    if (p >= limit || *p != ']') return {};
    ++p;
    if (*p == '{') {
      p = scan::FindAny<'}'>(p, limit);
      if (p >= limit) return {};
      return {start, static_cast<size_t>(p + 1 - start)};
    }
    // A layout may come after blanks and comments.
    if (*p == ' ' ? !char_class::Is(p[1], char_class::kNameStart) && p[1] != '%' : *p != ',' && *p != ')') return {};
    return {start, static_cast<size_t>(p - start)};
  }

  bool ParseArrayOrLeaf(Shape* shape, bool default_layouts);
  bool ParseNewArrayOrLeaf(Shape* shape, bool default_layouts);
  bool ParseDimensions();
  bool ParseLayout(int64_t rank, const LayoutRecord** layout);
  bool ParseLayoutExtras(LayoutExtras* extras, int64_t rank);
  bool ParseIntsUntil(char close, std::vector<int64_t>* values);
  bool ParseTypeInParens(std::optional<ElementType>* type);

  // A tuple or buffer that is open: where its elements begin on `elements_`.
  struct Open {
    size_t begin;
    bool buffer;
  };

  TextCursor& in_;
  Context& context_;
  int64_t max_nesting_;
  const char* remembered_end_;
  std::vector<Open> open_;
  std::vector<Shape> elements_;
  std::vector<int64_t> dims_;
  std::vector<uint8_t> dynamic_;
  std::vector<int64_t> minor_to_major_;
  int physical_depth_ = 0;
  std::unique_ptr<Known> known_ = std::make_unique<Known>();  // arrays that stand with default_layouts
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_SHAPE_PARSER_H_
