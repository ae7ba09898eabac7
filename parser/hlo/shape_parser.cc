// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/shape_parser.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/core/str_cat.h"
#include "parser/hlo/element_type_hint.h"

namespace hlokit {
namespace {

// Returns the type whose name starts at `p`, and the end of the name.
std::optional<ElementType> TypeAt(const char* p, const char** end) {
  const char* q = p;
  while (char_class::Is(*q, char_class::kName) && q - p <= 16) ++q;
  *end = q;
  const auto size = static_cast<size_t>(q - p);
  // The most frequent types, without a search.
  if (size == 3 && p[1] == '3' && p[2] == '2') {
    if (p[0] == 'f') return ElementType::kF32;
    if (p[0] == 's') return ElementType::kS32;
    if (p[0] == 'u') return ElementType::kU32;
  }
  if (size == 4 && p[0] == 'b' && p[1] == 'f' && p[2] == '1' && p[3] == '6') return ElementType::kBF16;
  if (size == 0 || size > 16) return std::nullopt;
  const std::string_view name(p, size);
  const std::optional<ElementType> type = ElementTypeFromText(name);
  if (type == ElementType::kTuple || type == ElementType::kBuffer) return std::nullopt;
  return type;
}

// Returns whether the bytes of an array, with a byte for smaller elements, or the product of its first dimensions
// exceed an int64.
bool BytesOverflow(ElementType type, absl::Span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims) {
    if (dim != kUnboundedSize && __builtin_mul_overflow(product, dim, &product)) return true;
  }
  return __builtin_mul_overflow(product, BytesOf(type), &product);
}

}  // namespace

bool ShapeParser::AtShape() {
  const char c = in_.Peek();
  if (c == '(') return true;
  if (!char_class::Is(c, char_class::kNameStart)) return false;
  const char* p = in_.cursor();
  if (c == 'b' && p[1] == '(') return true;
  const char* end = p;
  while (char_class::Is(*end, char_class::kName)) ++end;
  const char* bracket = end;
  while (*bracket == ' ') ++bracket;
  return *bracket == '[' && TypeAt(p, &end).has_value();
}

bool ShapeParser::Parse(Shape* shape, bool default_layouts) {
  const size_t base = open_.size();
  const size_t elements_base = elements_.size();
  const auto fail = [&] {
    open_.resize(base);
    elements_.resize(elements_base);
    return false;
  };
  for (;;) {
    // Descends to the next leaf.
    const char c = in_.Peek();
    const bool buffer = c == 'b' && in_.cursor()[1] == '(';
    if (c == '(' || buffer) {
      if (static_cast<int64_t>(open_.size() - base) >= max_nesting_) {
        in_.ErrorHere(DiagnosticKind::kTooDeep, StrCat("the shape is nested deeper than the limit of ", max_nesting_,
                                                       nesting_flag_.empty() ? "" : StrCat(" (", nesting_flag_, ")")));
        return fail();
      }
      in_.set_cursor(in_.cursor() + (buffer ? 2 : 1));
      open_.push_back({elements_.size(), buffer});
      if (buffer || in_.Peek() != ')') continue;
    } else {
      if (!ParseArrayOrLeaf(shape, default_layouts)) return fail();
      if (open_.size() == base) return true;
      elements_.push_back(*shape);
    }
    // Ascends over complete tuples.
    for (;;) {
      if (in_.TryConsume(')')) {
        const Open top = open_.back();
        open_.pop_back();
        if (top.buffer) {
          const Shape element = elements_.back();
          if (elements_.size() - top.begin != 1 || !element.IsArray()) {
            in_.ErrorHere(DiagnosticKind::kBadShape, "expected exactly one array shape in a buffer");
            return fail();
          }
          *shape = context_.shapes.Buffer(element);
        } else {
          *shape = context_.shapes.Tuple(absl::MakeConstSpan(elements_).subspan(top.begin));
        }
        elements_.resize(top.begin);
        if (open_.size() == base) return true;
        elements_.push_back(*shape);
        continue;
      }
      if (in_.TryConsume(',')) break;
      in_.ErrorHere(DiagnosticKind::kUnexpectedToken,
                    StrCat("expected `,` or `)` in a tuple shape, found ", in_.DescribeNext()));
      return fail();
    }
  }
}

bool ShapeParser::ParseArrayOrLeaf(Shape* shape, bool default_layouts) {
  in_.SkipWhitespace();
  const std::string_view text = default_layouts ? ArrayText() : std::string_view();
  if (text.empty()) return ParseNewArrayOrLeaf(shape, default_layouts);
  if (const Shape* known = known_->Find(text, 0); known != nullptr) {
    in_.set_cursor(text.data() + text.size());
    *shape = *known;
    return true;
  }
  if (!ParseNewArrayOrLeaf(shape, default_layouts)) return false;
  // With whitespace or comments, its extent may depend on the following text.
  const bool plain = std::none_of(text.begin(), text.end(),
                                  [](char c) { return char_class::Is(c, char_class::kWhitespace) || c == '/'; });
  if (plain && in_.cursor() == text.data() + text.size()) known_->Set(text, 0, *shape);
  return true;
}

bool ShapeParser::ParseNewArrayOrLeaf(Shape* shape, bool default_layouts) {
  const char* name_end;
  const std::optional<ElementType> type = TypeAt(in_.cursor(), &name_end);
  if (!type) {
    const SourceRange range = in_.Next();
    return in_.Error(DiagnosticKind::kUnknownType, range, StrCat("expected a shape, found ", in_.DescribeNext()),
                     ElementTypeHint(in_.Between(range.offset, range.offset + range.size)));
  }
  const uint32_t start = in_.Here();
  in_.set_cursor(name_end);
  if (!in_.Expect('[', "after the element type") || !ParseDimensions()) return false;
  if (!IsArrayType(*type)) {
    if (!dims_.empty()) {
      return in_.Error(DiagnosticKind::kBadShape, {start, in_.Here() - start},
                       StrCat("unexpected dimensions of a ", ToString(*type)));
    }
    *shape = *type == ElementType::kToken ? context_.shapes.Token() : context_.shapes.Opaque();
    return true;
  }
  if (BytesOverflow(*type, dims_)) {
    return in_.Error(DiagnosticKind::kBadShape, {start, in_.Here() - start},
                     "the size of the shape in bytes does not fit in 64 bits");
  }
  const auto rank = static_cast<int64_t>(dims_.size());
  const LayoutRecord* layout = default_layouts ? context_.shapes.DefaultLayout(rank) : nullptr;
  // `{` starts a layout only before a number, `:` or `}`; after `->` it may open a computation.
  const char* at = in_.cursor();
  if (in_.Peek() == '{') {
    const char* brace = in_.cursor();
    in_.set_cursor(brace + 1);
    const char c = in_.Peek();
    if (char_class::Is(c, char_class::kDigit) || c == ':') {
      if (!ParseLayout(rank, &layout)) return false;
    } else {
      in_.set_cursor(at);
    }
  } else {
    in_.set_cursor(at);
  }
  *shape = context_.shapes.Array(*type, dims_, dynamic_, layout);
  return true;
}

bool ShapeParser::ParseDimensions() {
  dims_.clear();
  dynamic_.clear();
  if (in_.TryConsume(']')) return true;
  bool any_dynamic = false;
  do {
    int64_t dim;
    if (in_.TryConsume('?')) {
      dims_.push_back(kUnboundedSize);
      dynamic_.push_back(1);
      any_dynamic = true;
      continue;
    }
    const bool bounded = in_.TryConsume("<=");
    in_.SkipWhitespace();
    const uint32_t at = in_.Here();
    if (!in_.Int(&dim)) return false;
    if (dim < 0) {
      return in_.Error(DiagnosticKind::kBadShape, {at, in_.Here() - at}, "negative dimension");
    }
    dims_.push_back(dim);
    dynamic_.push_back(bounded);
    any_dynamic |= bounded;
  } while (in_.TryConsume(','));
  if (!any_dynamic) dynamic_.clear();
  return in_.Expect(']', "after the dimensions of a shape");
}

bool ShapeParser::ParseIntsUntil(char close, std::vector<int64_t>* values) {
  values->clear();
  if (in_.TryConsume(close)) return true;
  do {
    int64_t value;
    if (in_.TryConsume('*')) {
      value = kCombineDimension;
    } else if (!in_.Int(&value)) {
      return false;
    }
    values->push_back(value);
  } while (in_.TryConsume(','));
  return in_.Expect(close, "after a list of numbers in a layout");
}

bool ShapeParser::ParseTypeInParens(std::optional<ElementType>* type) {
  if (!in_.Expect('(', "in a layout")) return false;
  in_.SkipWhitespace();
  const char* end;
  *type = TypeAt(in_.cursor(), &end);
  if (!*type || !IsUnsigned(**type)) {
    return in_.ErrorHere(DiagnosticKind::kBadLayout,
                         StrCat("expected an unsigned integer type, found ", in_.DescribeNext()));
  }
  in_.set_cursor(end);
  return in_.Expect(')', "in a layout");
}

bool ShapeParser::ParseLayout(int64_t rank, const LayoutRecord** layout) {
  const uint32_t start = in_.Here() - 1;
  minor_to_major_.clear();
  bool descending = true;
  if (in_.Peek() != ':' && in_.Peek() != '}') {
    do {
      int64_t d;
      if (!in_.Int(&d)) return false;
      descending &= d == rank - 1 - static_cast<int64_t>(minor_to_major_.size());
      minor_to_major_.push_back(d);
    } while (in_.TryConsume(','));
  }
  const auto listed = static_cast<int64_t>(minor_to_major_.size());
  if (listed != rank) {
    return in_.Error(DiagnosticKind::kBadLayout, {start, in_.Here() - start},
                     StrCat("expected ", rank, " dimensions in the layout, found ", listed));
  }
  if (in_.Peek() == '}' && descending) {
    in_.TryConsume('}');
    *layout = context_.shapes.DefaultLayout(rank);
    return true;
  }
  if (!descending) {
    std::vector<uint8_t> seen(static_cast<size_t>(rank), 0);
    for (int64_t d : minor_to_major_) {
      if (d < 0 || d >= rank || seen[d]++ != 0) {
        return in_.Error(DiagnosticKind::kBadLayout, {start, in_.Here() - start},
                         StrCat("expected the layout to be a permutation of the ", rank, " dimensions"));
      }
    }
  }
  LayoutExtras extras;
  if (in_.TryConsume(':') && !ParseLayoutExtras(&extras, rank)) return false;
  if (!in_.Expect('}', "at the end of a layout")) return false;
  *layout = context_.shapes.Layout(minor_to_major_, extras);
  return true;
}

bool ShapeParser::ParseLayoutExtras(LayoutExtras* extras, int64_t rank) {
  const auto int_in_parens = [this](int64_t* value) {
    return in_.Expect('(', "in a layout") && in_.Int(value) && in_.Expect(')', "in a layout");
  };
  if (in_.TryConsumeWord("D")) {
    if (!in_.Expect('(', "after D in a layout")) return false;
    bool flagged = false;
    do {
      const std::string_view level = in_.Name();
      if (level != "D" && level != "C" && level != "S" && level != "H") {
        return in_.ErrorHere(DiagnosticKind::kBadLayout, "expected a dimension level type: D, C, S or H");
      }
      uint8_t flags = 0;
      if (in_.TryConsume('+')) flags |= 1;
      if (in_.TryConsume('~')) flags |= 2;
      flagged |= flags != 0;
      extras->dim_level_types.push_back(level[0]);
      extras->dim_flags.push_back(flags);
    } while (in_.TryConsume(','));
    if (!in_.Expect(')', "after the dimension level types")) return false;
    if (!flagged) extras->dim_flags.clear();
    if (static_cast<int64_t>(extras->dim_level_types.size()) != rank) {
      return in_.ErrorHere(DiagnosticKind::kBadLayout, "expected one dimension level type for each dimension");
    }
  }
  if (in_.TryConsumeWord("T")) {
    if (in_.Peek() != '(') return in_.Expect('(', "after T in a layout");
    while (in_.TryConsume('(')) {
      const uint32_t at = in_.Here();
      std::vector<int64_t>& tile = extras->tiles.emplace_back();
      if (!ParseIntsUntil(')', &tile)) return false;
      for (int64_t size : tile) {
        if (size > 0 || size == kCombineDimension) continue;
        return in_.Error(DiagnosticKind::kBadLayout, {at, in_.Here() - 1 - at},
                         StrCat("expected positive sizes of a tile, or `*`, found ", size));
      }
    }
  }
  if (in_.TryConsumeWord("L") && !int_in_parens(&extras->tail_padding_alignment)) return false;
  if (in_.TryConsume('#') && !ParseTypeInParens(&extras->index_primitive_type)) return false;
  if (in_.TryConsume('*') && !ParseTypeInParens(&extras->pointer_primitive_type)) return false;
  if (in_.TryConsumeWord("E") && !int_in_parens(&extras->element_size_in_bits)) return false;
  if (in_.TryConsumeWord("S") && !int_in_parens(&extras->memory_space)) return false;
  if (in_.TryConsumeWord("SC")) {
    while (in_.TryConsume('(')) {
      SplitConfig& split = extras->split_configs.emplace_back();
      if (!in_.Int(&split.dimension) || !in_.Expect(':', "in a split config") ||
          !ParseIntsUntil(')', &split.split_indices)) {
        return false;
      }
    }
  }
  if (in_.TryConsumeWord("P")) {
    // A physical shape has no nested physical shape: one level is all that XLA prints.
    std::vector<int64_t> dims = dims_;
    std::vector<uint8_t> dynamic = dynamic_;
    std::vector<int64_t> order = minor_to_major_;
    Shape physical;
    if (!in_.Expect('(', "after P in a layout")) return false;
    if (physical_depth_ > 0) {
      return in_.ErrorHere(DiagnosticKind::kTooDeep, "nested physical shapes");
    }
    ++physical_depth_;
    const bool ok = Parse(&physical);
    --physical_depth_;
    if (!ok || !in_.Expect(')', "after a physical shape")) return false;
    if (!physical.IsArray())
      return in_.ErrorHere(DiagnosticKind::kBadLayout, "expected a physical shape to be an array");
    extras->physical_shape = physical.id();
    extras->physical_record = physical.record();
    dims_ = std::move(dims);
    dynamic_ = std::move(dynamic);
    minor_to_major_ = std::move(order);
  }
  if (in_.TryConsumeWord("M") && !int_in_parens(&extras->dynamic_shape_metadata_prefix_bytes)) return false;
  return true;
}

}  // namespace hlokit
