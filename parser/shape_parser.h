// Shapes and layouts: `f32[2,<=3]{1,0:T(8,128)S(1)}`, `(s32[], token[])`, `b(f32[4])`.
#ifndef HLOKIT_PARSER_SHAPE_PARSER_H_
#define HLOKIT_PARSER_SHAPE_PARSER_H_

#include <vector>

#include "ir/context.h"
#include "parser/reader.h"

namespace hlokit {

// Reads shapes of one context, keeping its stacks between calls.
class ShapeParser {
 public:
  ShapeParser(Reader* in, Context* context, int64_t max_nesting)
      : in_(*in), context_(*context), max_nesting_(max_nesting) {}

  // True if a shape starts here: `(`, or the name of a type followed by `[` or, for a buffer, `(`.
  bool AtShape();

  // Reports and returns false if what follows is no shape. Arrays without a written layout get the default one, or none
  // when `default_layouts` is false.
  bool Parse(Shape* shape, bool default_layouts = true);

 private:
  bool ParseArrayOrLeaf(Shape* shape, bool default_layouts);
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

  Reader& in_;
  Context& context_;
  int64_t max_nesting_;
  std::vector<Open> open_;
  std::vector<Shape> elements_;
  std::vector<int64_t> dims_;
  std::vector<uint8_t> dynamic_;
  std::vector<int64_t> minor_to_major_;
  int physical_depth_ = 0;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_SHAPE_PARSER_H_
