// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/literal_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "ir/core/str_cat.h"
#include "ir/text/literal_text.h"
#include "ir/types/float_types.h"
#include "parser/text/literal_number.h"

namespace hlokit {
namespace {

// Elements parsed so far. Grows with them, up to the size of the literal.
class ElementBuffer {
 public:
  explicit ElementBuffer(size_t max_size) : capacity_(std::min(sizeof(inline_), max_size)), max_size_(max_size) {}
  ElementBuffer(const ElementBuffer&) = delete;
  ElementBuffer& operator=(const ElementBuffer&) = delete;
  ~ElementBuffer() {
    if (data_ != inline_) std::free(data_);
  }

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  // Returns false if that exceeds max_size or the available memory.
  template <typename T>
  bool Append(const T& v) {
    if (capacity_ - size_ < sizeof(T) && !Reserve(size_ + sizeof(T))) return false;
    std::memcpy(data_ + size_, static_cast<const void*>(&v), sizeof(T));
    size_ += sizeof(T);
    return true;
  }
  bool AppendZeros(size_t count) {
    if (capacity_ - size_ < count && !Reserve(size_ + count)) return false;
    std::memset(data_ + size_, 0, count);
    size_ += count;
    return true;
  }

 private:
  bool Reserve(size_t size) {
    if (size > max_size_) return false;
    const size_t capacity = std::max(size, std::min(2 * capacity_, max_size_));
    void* const grown = data_ == inline_ ? std::malloc(capacity) : std::realloc(data_, capacity);
    if (grown == nullptr) return false;
    if (data_ == inline_) std::memcpy(grown, inline_, size_);
    data_ = static_cast<std::byte*>(grown);
    capacity_ = capacity;
    return true;
  }

  alignas(16) std::byte inline_[256];
  std::byte* data_ = inline_;
  size_t size_ = 0;
  size_t capacity_;
  size_t max_size_;
};

template <typename T>
std::string TextOfScalar(ElementType type, T v) {
  std::string text;
  TextWriter out(&text);
  AppendScalar(out, type, reinterpret_cast<const std::byte*>(&v));
  out.Flush();
  return text;
}

// Parses one array.
class ArrayReader {
 public:
  // `limit_message`: what follows `literal of SHAPE` if the array has more bytes than `max_bytes`.
  ArrayReader(TextCursor& in, Shape shape, int64_t max_bytes, absl::FunctionRef<std::string()> limit_message,
              int64_t* padding, bool propagate_complex_nan)
      : in_(in),
        shape_(shape),
        type_(shape.element_type()),
        limit_message_(limit_message),
        padding_(padding),
        spread_complex_nan_(propagate_complex_nan),
        buffer_(MaxSize(shape, max_bytes)) {}

  // Parses the array. On success the elements are in data(), unless elided().
  bool Read();
  bool elided() const { return elided_; }
  const std::byte* data() const { return buffer_.data(); }
  size_t size() const { return buffer_.size(); }

 private:
  // Parses elements up to the next brace, at most `remaining` of them. With `single`, only one.
  template <typename T>
  bool ReadRun(int64_t remaining, bool single);

  // Parses one element at `p` and advances `p`. Reports errors.
  bool ReadElement(const char*& p, bool* v);
  template <AnyInteger T>
  bool ReadElement(const char*& p, T* v);
  template <AnyFloat T>
  bool ReadElement(const char*& p, T* v);
  template <AnyComplex T>
  bool ReadElement(const char*& p, T* v);

  bool ReadNumber(const char*& p, LiteralNumber* number);
  template <AnyFloat T>
  bool Convert(const LiteralNumber& number, const char* start, const char* end, T* v);

  // Fills an array whose text is a scalar.
  bool Pad(SourceRange scalar);

  bool Fail(const char* start, const char* end, DiagnosticKind kind, std::string message, std::string hint = "") {
    in_.set_cursor(start);
    const uint32_t offset = in_.Here();
    const auto size = static_cast<uint32_t>(end - start);
    return in_.Error(kind, {offset, size}, std::move(message), std::move(hint));
  }
  bool FailHere(const char* start, std::string message, std::string hint = "") {
    in_.set_cursor(start);
    return in_.ErrorHere(DiagnosticKind::kBadLiteral, std::move(message), std::move(hint));
  }
  std::string FoundAt(const char* p) {
    in_.set_cursor(p);
    return in_.DescribeNext();
  }
  // Returns [start, end) for a message.
  static std::string Quote(const char* start, const char* end) {
    const std::string_view text(start, static_cast<size_t>(end - start));
    return text.size() > 60 ? StrCat('`', text.substr(0, 57), "...`") : StrCat('`', text, '`');
  }
  std::string ShapeText() const { return ToString(shape_, /*with_layout=*/false); }
  std::string TooMany(size_t level) const;

  static size_t MaxSize(Shape shape, int64_t max_bytes) {
    const int64_t bytes = LiteralBytes(shape);
    // An array without elements may have one in the text, which is then an error.
    const int64_t most = std::max<int64_t>(bytes, BytesOf(shape.element_type()));
    return static_cast<size_t>(std::max<int64_t>(bytes < 0 ? max_bytes : std::min(most, max_bytes), 0));
  }

  TextCursor& in_;
  Shape shape_;
  ElementType type_;
  absl::FunctionRef<std::string()> limit_message_;
  int64_t* padding_;
  bool spread_complex_nan_;
  ElementBuffer buffer_;
  bool elided_ = false;
};

bool ArrayReader::ReadElement(const char*& p, bool* v) {
  const char* q = p;
  while (char_class::IsName(*q)) ++q;
  const std::string_view word(p, static_cast<size_t>(q - p));
  if (word == "true" || word == "false") {
    *v = word == "true";
    p = q;
    return true;
  }
  int64_t integer = 0;
  const auto [stop, error] = std::from_chars(p, q, integer);
  if (word.empty() || stop != q || error == std::errc::invalid_argument) {
    return FailHere(p, StrCat("expected true, false, 0 or 1 for pred, found ", FoundAt(p)));
  }
  *v = error != std::errc() || integer != 0;
  p = q;
  return true;
}

template <AnyInteger T>
bool ArrayReader::ReadElement(const char*& p, T* v) {
  using Limits = std::numeric_limits<T>;
  constexpr auto kMax = static_cast<uint64_t>(Limits::max());
  // u64 accepts negative numbers too, because XLA's parser has only one integer type.
  constexpr uint64_t kMin =
      std::is_same_v<T, uint64_t> ? uint64_t{1} << 63 : -static_cast<uint64_t>(static_cast<int64_t>(Limits::min()));
  const char* q = p;
  const bool negative = *q == '-';
  if (negative) ++q;
  const char* const digits = q;
  uint64_t magnitude = 0;
  for (; char_class::IsDigit(*q); ++q) magnitude = magnitude * 10 + static_cast<uint64_t>(*q - '0');
  if (q == digits || char_class::IsName(*q)) {
    return FailHere(p, StrCat("expected an integer for ", ToString(type_), ", found ", FoundAt(p)));
  }
  bool fits = true;
  if (q - digits > 19) fits = std::from_chars(digits, q, magnitude).ec == std::errc();  // the loop may have overflowed
  if (!fits || magnitude > (negative ? kMin : kMax)) {
    return Fail(p, q, DiagnosticKind::kNumberOutOfRange,
                StrCat("value ", Quote(p, q), " does not fit in ", ToString(type_), ", which has ",
                       TextOfScalar(type_, Limits::min()), " to ", TextOfScalar(type_, Limits::max())));
  }
  *v = static_cast<T>(static_cast<int64_t>(negative ? -magnitude : magnitude));
  p = q;
  return true;
}

bool ArrayReader::ReadNumber(const char*& p, LiteralNumber* number) {
  switch (ReadLiteralNumber(p, in_.end(), number)) {
    case NumberStatus::kOk:
      p = number->end;
      return true;
    case NumberStatus::kNotANumber: {
      const std::string found = FoundAt(p);
      return FailHere(p, StrCat("expected a number for ", ToString(type_), ", found ", found),
                      found == "`true`" || found == "`false`" ? "`true` and `false` are values of pred only" : "");
    }
    case NumberStatus::kMalformed:
      return Fail(p, number->end, DiagnosticKind::kBadLiteral, StrCat("malformed number ", FoundAt(p)));
    case NumberStatus::kTooLarge:
      return Fail(p, number->end, DiagnosticKind::kNumberOutOfRange, "number is too large even for f64");
    case NumberStatus::kMalformedPayload:
      return Fail(p, number->end, DiagnosticKind::kBadLiteral, "malformed NaN payload", "write it as in nan(0x7f)");
    case NumberStatus::kPayloadOutOfRange:
      return Fail(p, number->end, DiagnosticKind::kNumberOutOfRange,
                  "a NaN payload is at least 0x1 and at most 0xfffffffffffff");
  }
  return false;
}

// Returns the value of [start, end) as a T.
template <AnyFloat T>
bool ArrayReader::Convert(const LiteralNumber& number, const char* start, const char* end, T* v) {
  using Limits = std::numeric_limits<T>;
  T converted = static_cast<T>(number.value);
  if constexpr (std::is_same_v<T, F8E8M0FNU>) {
    // XLA prints 2^-127, the smallest value, as 5.9e-39, which rounds to the next larger one. Parse the intended value.
    if (number.value > 0 && number.value < 0x1.8p-127) converted = Limits::min();
  }
  if (std::isnan(number.value) && number.nan_payload != LiteralNumber::kNoPayload) {
    if constexpr (!Limits::has_signaling_NaN) {
      return Fail(start, end, DiagnosticKind::kNumberOutOfRange,
                  StrCat("NaN payload in ", Quote(start, end), ", but NaNs of ", ToString(type_), " have none"));
    } else {
      constexpr int kPayloadBits = Limits::digits - 1;
      constexpr uint64_t kPayloadMask = (uint64_t{1} << kPayloadBits) - 1;
      if (number.nan_payload > kPayloadMask) {
        return Fail(start, end, DiagnosticKind::kNumberOutOfRange,
                    StrCat("the payload of ", Quote(start, end), " does not fit in the ", kPayloadBits,
                           " bits that a NaN of ", ToString(type_), " has for it"));
      }
      // `converted` has the sign and exponent.
      if constexpr (SoftFloat<T>) {
        *v = T::FromBits(
            static_cast<decltype(converted.bits())>((converted.bits() & ~kPayloadMask) | number.nan_payload));
      } else {
        using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
        *v = std::bit_cast<T>(static_cast<Bits>((std::bit_cast<Bits>(converted) & ~kPayloadMask) | number.nan_payload));
      }
      return true;
    }
  }
  if (std::isfinite(number.value) && !std::isfinite(static_cast<double>(converted))) {
    return Fail(start, end, DiagnosticKind::kNumberOutOfRange,
                StrCat("value ", Quote(start, end), " does not fit in ", ToString(type_), ", which has ",
                       TextOfScalar(ComponentType(type_), Limits::lowest()), " to ",
                       TextOfScalar(ComponentType(type_), Limits::max())));
  }
  *v = converted;
  return true;
}

template <AnyFloat T>
bool ArrayReader::ReadElement(const char*& p, T* v) {
  const char* const start = p;
  LiteralNumber number;
  return ReadNumber(p, &number) && Convert(number, start, p, v);
}

template <AnyComplex T>
bool ArrayReader::ReadElement(const char*& p, T* v) {
  if (*p != '(') {
    return FailHere(p, StrCat("expected a complex number for ", ToString(type_), ", found ", FoundAt(p)),
                    "write it as (real, imaginary)");
  }
  typename T::value_type parts[2];
  in_.set_cursor(p + 1);
  for (int i = 0; i < 2; ++i) {
    in_.SkipWhitespace();
    p = in_.cursor();
    if (!ReadElement(p, &parts[i])) return false;
    in_.set_cursor(p);
    const char expected = i == 0 ? ',' : ')';
    if (!in_.TryConsume(expected)) {
      return in_.ErrorHere(DiagnosticKind::kBadLiteral,
                           StrCat("expected `", expected, "` ", i == 0 ? "after a real part" : "after a complex number",
                                  ", found ", in_.DescribeNext()));
    }
  }
  p = in_.cursor();
  *v = T(parts[0], spread_complex_nan_ && std::isnan(parts[0]) ? parts[0] : parts[1]);
  return true;
}

template <typename T>
bool ArrayReader::ReadRun(int64_t remaining, bool single) {
  const char* p = in_.cursor();
  for (;;) {
    const char c = *p;
    if (c == ',' || char_class::Is(c, char_class::kWhitespace)) {
      ++p;
      continue;
    }
    if (c == '{' || c == '}' || c == '\0' || (c == '.' && p[1] == '.')) break;
    if (c == '/' && (p[1] == '/' || p[1] == '*')) {
      in_.set_cursor(p);
      in_.SkipWhitespace();
      p = in_.cursor();
      continue;
    }
    if (remaining-- == 0) return FailHere(p, TooMany(static_cast<size_t>(shape_.rank())));
    T v{};
    const char* const start = p;
    if (!ReadElement(p, &v)) return false;
    if (!buffer_.Append(v)) {
      return Fail(start, p, DiagnosticKind::kTooLarge, StrCat("literal of ", ShapeText(), limit_message_()));
    }
    if (single) break;
  }
  in_.set_cursor(p);
  return true;
}

// `level`: number of open braces around the excess element.
std::string ArrayReader::TooMany(size_t level) const {
  if (shape_.rank() == 0) return StrCat("too many elements: ", ShapeText(), " has one");
  return StrCat("too many elements: ", ShapeText(), " has size ", shape_.dim(static_cast<int64_t>(level) - 1),
                " in dimension ", level - 1);
}

bool ArrayReader::Pad(SourceRange scalar) {
  const int64_t count = shape_.element_count();
  if (count == 1) return true;
  if (count == 0) {
    return in_.Error(DiagnosticKind::kBadLiteral, scalar, StrCat("too many elements: ", ShapeText(), " has none"));
  }
  const bool zero =
      std::all_of(buffer_.data(), buffer_.data() + buffer_.size(), [](std::byte b) { return b == std::byte{0}; });
  const int64_t bytes = LiteralBytes(shape_);
  if (bytes >= 0 && bytes <= *padding_) {
    if (!buffer_.AppendZeros(static_cast<size_t>(bytes) - buffer_.size())) {
      return in_.Error(DiagnosticKind::kTooLarge, scalar, StrCat("literal of ", ShapeText(), limit_message_()));
    }
    *padding_ -= bytes;
    if (!zero) {
      in_.sink()->Warning(DiagnosticKind::kBadLiteral, scalar,
                          StrCat("a scalar initializes only the first element of ", ShapeText(), "; the others are 0"),
                          "to fill an array, broadcast a scalar constant");
    }
    return true;
  }
  in_.sink()->Warning(DiagnosticKind::kTooLarge, scalar,
                      StrCat("expected the elements of ", ShapeText(),
                             ", found a scalar; they are too "
                             "many to store, so the literal is read as {...}"));
  elided_ = true;
  return true;
}

bool ArrayReader::Read() {
  using RunReader = bool (ArrayReader::*)(int64_t, bool);
  const RunReader read_run =
      VisitType(type_, []<typename T>(std::type_identity<T>) -> RunReader { return &ArrayReader::ReadRun<T>; });
  const auto rank = static_cast<size_t>(shape_.rank());
  const auto element_bytes = static_cast<size_t>(BytesOf(type_));

  // seen[d]: elements of dimension d in the innermost enclosing brace.
  absl::InlinedVector<int64_t, 8> seen(rank, 0);
  size_t level = 0;
  do {
    const char c = in_.Peek();
    if (c == '{') {
      const SourceRange brace = {in_.Here(), 1};
      in_.TryConsume('{');
      if (rank == 0 && in_.TryConsume("...")) {
        elided_ = true;
        return in_.Expect('}', "after an elided literal");
      }
      if (level == rank) {
        return in_.Error(DiagnosticKind::kBadLiteral, brace,
                         rank == 0 ? StrCat("unexpected `{`: ", ShapeText(), " is a scalar")
                                   : StrCat("unexpected `{`: ", ShapeText(), " has ", rank, " levels of braces"));
      }
      if (level > 0 && ++seen[level - 1] > shape_.dim(static_cast<int64_t>(level) - 1)) {
        return in_.Error(DiagnosticKind::kBadLiteral, brace, TooMany(level));
      }
      ++level;
    } else if (c == '}' && level > 0) {
      --level;
      const int64_t expected = shape_.dim(static_cast<int64_t>(level));
      if (seen[level] != expected && !(elided_ && level == 0)) {
        return in_.ErrorHere(DiagnosticKind::kBadLiteral, StrCat("expected ", expected, " elements in dimension ",
                                                                 level, " of ", ShapeText(), ", found ", seen[level]));
      }
      seen[level] = 0;
      in_.TryConsume('}');
    } else if (c == ',' && level > 0) {
      in_.TryConsume(',');
    } else if (c == '.' && in_.cursor()[1] == '.') {
      if (level != 1 || !in_.TryConsume("...")) {
        return in_.ErrorHere(DiagnosticKind::kBadLiteral,
                             StrCat("expected `...` in one level of braces, found ", level),
                             "write the literal as {...}");
      }
      elided_ = true;
      while (in_.TryConsume(',')) {
      }
      if (in_.Peek() != '}') {
        return in_.ErrorHere(DiagnosticKind::kBadLiteral,
                             StrCat("expected `}` after `...`, found ", in_.DescribeNext()));
      }
    } else if (in_.AtEnd() || c == '\0' || c == '}') {
      return in_.ErrorHere(DiagnosticKind::kBadLiteral,
                           StrCat("expected ", level == 0 ? "a value of " : "the rest of a value of ", ShapeText(),
                                  ", found ", in_.DescribeNext()));
    } else if (level == rank || level == 0) {
      const size_t before = buffer_.size();
      const uint32_t start = in_.Here();
      const int64_t remaining = level == 0 ? 1 : shape_.dim(static_cast<int64_t>(rank) - 1) - seen[rank - 1];
      if (!(this->*read_run)(remaining, level == 0)) return false;
      if (level > 0) {
        seen[rank - 1] += static_cast<int64_t>((buffer_.size() - before) / element_bytes);
      } else if (rank > 0 && !Pad({start, in_.Here() - start})) {
        return false;
      }
    } else {
      return in_.ErrorHere(DiagnosticKind::kBadLiteral, StrCat("expected an element of ", ShapeText(), " in ", rank,
                                                               " levels of braces, found ", level));
    }
  } while (level > 0);
  return true;
}

class LiteralReader {
 public:
  LiteralReader(TextCursor& in, Context* context, const LiteralLimits& limits, LiteralBudget* budget)
      : in_(in),
        literals_(context->literals),
        max_bytes_(limits.max_bytes),
        bytes_left_(limits.max_bytes),
        budget_(*budget),
        spread_complex_nan_(limits.propagate_complex_nan) {}

  bool Read(Shape shape, LiteralId* out);

 private:
  bool ReadLeaf(Shape shape, LiteralId* out);
  // Consumes `{...}` if it is next.
  bool EatElided() {
    if (in_.Peek() != '{') return false;
    const uint32_t start = in_.Here();
    in_.TryConsume('{');
    if (in_.TryConsume("...") && in_.TryConsume('}')) return true;
    in_.Seek(start);
    return false;
  }

  TextCursor& in_;
  LiteralPool& literals_;
  const int64_t max_bytes_;  // of this literal
  int64_t bytes_left_;
  LiteralBudget& budget_;
  bool spread_complex_nan_;
};

bool LiteralReader::ReadLeaf(Shape shape, LiteralId* out) {
  if (shape.IsToken() && in_.TryConsumeWord("token")) {
    *out = literals_.AddArray(shape, nullptr, 0);
    return true;
  }
  if (!shape.IsArray() || shape.has_unbounded_dims()) {
    return in_.ErrorHere(DiagnosticKind::kBadLiteral,
                         StrCat("unsupported literal of shape ", ToString(shape, /*with_layout=*/false)));
  }
  const auto limit_message = [&] {
    return bytes_left_ < budget_.bytes.left() ? StrCat(" has more bytes than the limit of ", max_bytes_)
                                              : StrCat(": ", budget_.bytes.Message());
  };
  ArrayReader array(in_, shape, std::min(bytes_left_, budget_.bytes.left()), limit_message, &budget_.implicit_bytes,
                    spread_complex_nan_);
  if (!array.Read()) return false;
  if (array.elided()) {
    *out = literals_.AddElided(shape);
    return true;
  }
  bytes_left_ -= static_cast<int64_t>(array.size());
  budget_.bytes.Take(array.size());
  *out = literals_.AddArray(shape, array.data(), array.size());
  return true;
}

bool LiteralReader::Read(Shape root, LiteralId* out) {
  if (!root.IsTuple()) return ReadLeaf(root, out);

  struct OpenTuple {
    Shape shape;
    size_t first;  // of its elements in `done`
  };
  std::vector<OpenTuple> open;
  std::vector<LiteralId> done;
  const auto read = [&](Shape shape) {
    LiteralId id;
    if (!shape.IsTuple()) {
      if (!ReadLeaf(shape, &id)) return false;
    } else if (EatElided()) {
      id = literals_.AddElided(shape);
    } else {
      open.push_back({shape, done.size()});
      return in_.Expect('(', "before the elements of a tuple");
    }
    done.push_back(id);
    return true;
  };
  if (!read(root)) return false;
  while (!open.empty()) {
    const auto [tuple, first] = open.back();
    const size_t count = done.size() - first;
    const auto size = static_cast<size_t>(tuple.tuple_size());
    if (count < size) {
      if (count > 0) in_.TryConsume(',');
      if (in_.Peek() == ')') {
        return in_.ErrorHere(
            DiagnosticKind::kBadLiteral,
            StrCat("expected ", size, " elements of ", ToString(tuple, /*with_layout=*/false), ", found ", count));
      }
      if (!read(tuple.element(static_cast<int64_t>(count)))) return false;
      continue;
    }
    if (!in_.TryConsume(')')) {
      return in_.ErrorHere(DiagnosticKind::kBadLiteral,
                           StrCat("expected `)` after the ", size, " elements of ",
                                  ToString(tuple, /*with_layout=*/false), ", found ", in_.DescribeNext()));
    }
    const LiteralId id = literals_.AddTuple(tuple, absl::MakeConstSpan(done).subspan(first));
    done.resize(first);
    done.push_back(id);
    open.pop_back();
  }
  *out = done.back();
  return true;
}

}  // namespace

bool ParseLiteral(TextCursor& in, Context* context, Shape shape, const LiteralLimits& limits, LiteralId* out) {
  LiteralBudget lone;
  lone.implicit_bytes = LiteralLimits::kDefaultImplicitBytes;
  return LiteralReader(in, context, limits, limits.budget != nullptr ? limits.budget : &lone).Read(shape, out);
}

}  // namespace hlokit
