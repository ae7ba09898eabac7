// SPDX-License-Identifier: Apache-2.0
// Shapes and layouts: `f32[2,<=3]{1,0:T(8,128)S(1)}`, `(s32[], token[])`, `b(f32[4])`.
#ifndef HLOKIT_PARSER_HLO_SHAPE_PARSER_H_
#define HLOKIT_PARSER_HLO_SHAPE_PARSER_H_

#include <memory>
#include <string_view>
#include <vector>

#include "ir/graph/context.h"
#include "parser/text/text_cache.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

// Parses shapes of one context. Reuses its stacks between calls, and caches array shapes by text: only for the text of
// `in` at construction, which must outlive this object. Other texts that `in` is set to are parsed without a cache.
class ShapeParser {
 public:
  // `nesting_flag`: that sets `max_nesting` in tools; "": none does.
  ShapeParser(TextCursor* in, Context* context, int64_t max_nesting, std::string_view nesting_flag = "")
      : in_(*in),
        context_(*context),
        max_nesting_(max_nesting),
        nesting_flag_(nesting_flag),
        remembered_end_(in->end()) {}

  // Consumes an array shape that is in the cache. Returns false, with nothing consumed, otherwise.
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

  // Returns true if a shape starts here: `(`, or the name of a type followed by `[` or, for a buffer, `(`.
  bool AtShape();

  // Reports an error and returns false if there is no shape. Arrays without a layout get the default one, or none if
  // `default_layouts` is false.
  bool Parse(Shape* shape, bool default_layouts = true);

 private:
  using Known = TextCache<Shape, 256>;

  // Returns the text at the cursor that can be an array shape independent of the following text, or "". Only a key of
  // the cache: it may not parse as a shape.
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
    // A layout may follow whitespace and comments.
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

  // An open tuple or buffer: where its elements begin on `elements_`.
  struct Open {
    size_t begin;
    bool buffer;
  };

  TextCursor& in_;
  Context& context_;
  int64_t max_nesting_;
  std::string_view nesting_flag_;
  const char* remembered_end_;
  std::vector<Open> open_;
  std::vector<Shape> elements_;
  std::vector<int64_t> dims_;
  std::vector<uint8_t> dynamic_;
  std::vector<int64_t> minor_to_major_;
  int physical_depth_ = 0;
  std::unique_ptr<Known> known_ = std::make_unique<Known>();  // arrays parsed with default_layouts
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_SHAPE_PARSER_H_
