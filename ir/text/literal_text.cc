// SPDX-License-Identifier: Apache-2.0
#include "ir/text/literal_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/types/float_types.h"

namespace hlokit {
namespace {

// Longer than any scalar: (-2.2250738585072014e-308, -nan(0xfffffffffffff)).
constexpr size_t kMaxScalarText = 64;

char* Put(char* p, std::string_view s) {
  std::memcpy(p, s.data(), s.size());
  return p + s.size();
}

// Floats. XLA prints %.Ng with N digits enough for any value of the type (max_digits10). For f32 and f64 it tries fewer
// digits (6 and 15: digits10) first and uses them if they round-trip.

// The shortest scientific form of std::to_chars: digits and exponent of the first one.
struct Decimal {
  char digits[24];
  int count;
  int exponent;
};

template <typename T>
Decimal Shortest(T magnitude) {
  char text[32];
  const char* end = std::to_chars(text, text + sizeof(text), magnitude, std::chars_format::scientific).ptr;
  Decimal d;
  d.count = 0;
  const char* p = text;
  for (; *p != 'e'; ++p) {
    if (*p != '.') d.digits[d.count++] = *p;
  }
  ++p;
  if (*p == '+') ++p;
  std::from_chars(p, end, d.exponent);
  return d;
}

// Formats as %.{precision}g. Requires: d.count <= precision, and the last digit is not 0 unless it is the only one.
char* PutGeneral(char* p, const Decimal& d, int precision) {
  if (d.exponent < -4 || d.exponent >= precision) {
    *p++ = d.digits[0];
    if (d.count > 1) {
      *p++ = '.';
      p = Put(p, {d.digits + 1, static_cast<size_t>(d.count - 1)});
    }
    *p++ = 'e';
    *p++ = d.exponent < 0 ? '-' : '+';
    const int e = std::abs(d.exponent);
    if (e < 10) *p++ = '0';
    return std::to_chars(p, p + 4, e).ptr;
  }
  if (d.exponent < 0) {
    p = Put(p, "0.");
    for (int i = -1; i > d.exponent; --i) *p++ = '0';
    return Put(p, {d.digits, static_cast<size_t>(d.count)});
  }
  const int before_point = d.exponent + 1;
  for (int i = 0; i < before_point; ++i) *p++ = i < d.count ? d.digits[i] : '0';
  if (d.count > before_point) {
    *p++ = '.';
    p = Put(p, {d.digits + before_point, static_cast<size_t>(d.count - before_point)});
  }
  return p;
}

// Formats a positive, finite float or double.
template <typename T>
char* PutRoundTrip(char* p, T magnitude) {
  constexpr int kDigits10 = std::numeric_limits<T>::digits10;
  constexpr int kMaxDigits10 = std::numeric_limits<T>::max_digits10;
  if (magnitude < std::numeric_limits<T>::min()) {
    // Subnormals have fewer bits, and several numbers of kDigits10 digits parse as the same value: try it as XLA does.
    char* const end = std::to_chars(p, p + kMaxScalarText / 2, magnitude, std::chars_format::general, kDigits10).ptr;
    T parsed = 0;
    std::from_chars(p, end, parsed);
    if (parsed == magnitude) return end;
  } else {
    // A number of at most kDigits10 digits that parses as `magnitude` is unique, hence also the result of rounding to
    // kDigits10 digits; likewise with kMaxDigits10 digits, if no fewer suffice.
    const Decimal d = Shortest(magnitude);
    if (d.count <= kDigits10) return PutGeneral(p, d, kDigits10);
    if (d.count == kMaxDigits10) return PutGeneral(p, d, kMaxDigits10);
  }
  return std::to_chars(p, p + kMaxScalarText / 2, magnitude, std::chars_format::general, kMaxDigits10).ptr;
}

template <typename T>
auto BitsOfFloat(T v) {
  if constexpr (SoftFloat<T>) {
    return v.bits();
  } else {
    return std::bit_cast<std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>(v);
  }
}

constexpr int64_t PowerOf10(int n) { return n == 0 ? 1 : 10 * PowerOf10(n - 1); }

template <AnyFloat T>
char* PutScalar(char* p, T v) {
  using Limits = std::numeric_limits<T>;
  using Wide = std::conditional_t<sizeof(T) == 8, double, float>;
  const Wide wide = static_cast<Wide>(v);
  if (std::signbit(wide)) *p++ = '-';
  if (std::isnan(wide)) {
    p = Put(p, "nan");
    if constexpr (Limits::has_signaling_NaN) {
      constexpr int kPayloadBits = Limits::digits - 1;
      const auto payload = BitsOfFloat(v) & ((uint64_t{1} << kPayloadBits) - 1);
      if (payload != uint64_t{1} << (kPayloadBits - 1)) {
        p = Put(p, "(0x");
        p = std::to_chars(p, p + 16, payload, 16).ptr;
        *p++ = ')';
      }
    }
    return p;
  }
  const Wide magnitude = std::abs(wide);
  if (std::isinf(wide)) return Put(p, "inf");
  // Integers that %g prints without an exponent are frequent and fast to print.
  constexpr int kDigits = std::is_floating_point_v<T> ? Limits::digits10 : Limits::max_digits10;
  constexpr int64_t kLimit = PowerOf10(kDigits);
  if (magnitude < static_cast<Wide>(kLimit)) {
    const auto integer = static_cast<int64_t>(magnitude);
    if (static_cast<Wide>(integer) == magnitude) return std::to_chars(p, p + 24, integer).ptr;
  }
  if constexpr (std::is_floating_point_v<T>) {
    return PutRoundTrip(p, magnitude);
  } else {
    return std::to_chars(p, p + kMaxScalarText / 2, magnitude, std::chars_format::general, kDigits).ptr;
  }
}

template <AnyInteger T>
char* PutScalar(char* p, T v) {
  using Wide = std::conditional_t<std::numeric_limits<T>::is_signed, int64_t, uint64_t>;
  return std::to_chars(p, p + 24, static_cast<Wide>(v)).ptr;
}

template <AnyComplex T>
char* PutScalar(char* p, T v) {
  *p++ = '(';
  p = PutScalar(p, v.real());
  p = Put(p, ", ");
  p = PutScalar(p, v.imag());
  *p++ = ')';
  return p;
}

char* PutScalar(char* p, bool v) { return Put(p, v ? "true" : "false"); }

template <typename T>
T Load(const std::byte* p) {
  // A pred is one byte in which any bit may be set.
  if constexpr (std::is_same_v<T, bool>) {
    return *p != std::byte{0};
  } else {
    T v;
    std::memcpy(static_cast<void*>(&v), p, sizeof(T));
    return v;
  }
}

// Prints `count` elements separated by ", ".
template <typename T>
void PrintRun(TextWriter& out, const std::byte* data, int64_t count) {
  char text[kMaxScalarText + 2];
  for (int64_t i = 0; i < count; ++i) {
    char* p = text;
    if (i > 0) p = Put(p, ", ");
    const T v = Load<T>(data + static_cast<size_t>(i) * sizeof(T));
    if constexpr (std::is_same_v<T, bool>) {
      *p++ = v ? '1' : '0';
    } else {
      p = PutScalar(p, v);
    }
    out.Append({text, static_cast<size_t>(p - text)});
  }
}

// The nested braces around an array, opened and closed as its elements are printed.
class Braces {
 public:
  Braces(TextWriter& out, absl::Span<const int64_t> dims) : out_(out), dims_(dims), index_(dims.size(), 0) {}

  // Opens the brace of dimension `level`. Requires: index(k) of the outer ones is set.
  void Open(size_t level) {
    const bool innermost = level + 1 == dims_.size();
    out_ << '{';
    if (innermost) {
      if (dims_.size() > 1 && dims_[level] > 1) out_ << ' ';
    } else if (dims_.size() > 3 && level > 0) {
      out_ << " /*i" << static_cast<int64_t>(level - 1) << '=' << index_[level - 1] << "*/";
      if (dims_[level] > 0) out_ << ' ';
    } else {
      out_ << ' ';
    }
  }
  void Close(size_t level) {
    const bool innermost = level + 1 == dims_.size();
    out_ << (!innermost || (dims_.size() > 1 && dims_[level] > 1) ? " }" : "}");
  }

  // Advances after closing an element of dimension `level - 1`: to the next element, or else closes that dimension too,
  // and so on. Returns the level to open next, or 0 if all are closed.
  size_t Next(size_t level) {
    while (level > 0) {
      if (++index_[level - 1] < dims_[level - 1]) {
        out_ << ", ";
        return level;
      }
      index_[--level] = 0;
      Close(level);
    }
    return 0;
  }

 private:
  TextWriter& out_;
  absl::Span<const int64_t> dims_;
  std::vector<int64_t> index_;
};

template <typename T>
void PrintArray(TextWriter& out, absl::Span<const int64_t> dims, const std::byte* data) {
  if (dims.empty()) {
    char text[kMaxScalarText];
    out.Append({text, static_cast<size_t>(PutScalar(text, Load<T>(data)) - text)});
    return;
  }
  // Nothing is printed inside of a dimension of size 0.
  const size_t depth = static_cast<size_t>(std::min<ptrdiff_t>(
      std::find(dims.begin(), dims.end(), 0) - dims.begin() + 1, static_cast<ptrdiff_t>(dims.size())));
  const int64_t run = depth < dims.size() ? 0 : dims.back();
  Braces braces(out, dims);
  size_t level = 0;
  do {
    for (; level < depth; ++level) braces.Open(level);
    PrintRun<T>(out, data, run);
    data += static_cast<size_t>(run) * sizeof(T);
    braces.Close(depth - 1);
    level = braces.Next(depth - 1);
  } while (level != 0);
}

// An array without elements can still require a great many empty braces.
constexpr int64_t kMaxEmptyBraces = int64_t{1} << 20;

bool TooManyBraces(Shape shape) {
  if (shape.element_count() != 0) return false;
  int64_t braces = 1;
  for (const int64_t dim : shape.dims()) {
    if (dim == 0) break;
    if (__builtin_mul_overflow(braces, dim, &braces) || braces > kMaxEmptyBraces) return true;
  }
  return false;
}

// A literal or a part of one, for traversals independent of its owner.
struct PoolPiece {
  const LiteralPool* pool;
  const LiteralRecord* record;

  Shape shape() const { return record->shape; }
  bool elided() const { return record->elided; }
  const std::byte* data() const { return record->data; }
  PoolPiece element(int64_t i) const { return {pool, &(*pool)[record->elements[i]]}; }
};

struct OwnedPiece {
  const Literal* literal;

  Shape shape() const { return literal->shape(); }
  bool elided() const { return literal->elided(); }
  const std::byte* data() const { return literal->data(); }
  OwnedPiece element(int64_t i) const { return {&literal->elements()[static_cast<size_t>(i)]}; }
};

template <typename Piece>
void PrintLeaf(TextWriter& out, const Piece& piece, const LiteralTextOptions& options) {
  const Shape shape = piece.shape();
  if (options.with_shape && !shape.IsTuple() && !shape.IsToken()) {
    out << ToString(shape, options.with_layout) << ' ';
  }
  const bool large = options.max_elements >= 0 && (shape.IsTuple() || shape.element_count() > options.max_elements);
  if (piece.elided() || large || (shape.IsArray() && TooManyBraces(shape))) {
    out << "{...}";
  } else if (shape.IsArray()) {
    VisitType(shape.element_type(),
              [&]<typename T>(std::type_identity<T>) { PrintArray<T>(out, shape.dims(), piece.data()); });
  } else {
    out << ToString(shape.element_type());
  }
}

template <typename Piece>
void PrintPiece(TextWriter& out, const Piece& root, const LiteralTextOptions& options) {
  const auto is_open = [&](const Piece& piece) {
    return piece.shape().IsTuple() && !piece.elided() && options.max_elements < 0;
  };
  if (!is_open(root)) return PrintLeaf(out, root, options);
  std::vector<std::pair<Piece, int64_t>> stack;  // open tuples, and the next element of each
  out << "( ";
  stack.push_back({root, 0});
  while (!stack.empty()) {
    auto& [tuple, next] = stack.back();
    if (next == tuple.shape().tuple_size()) {
      out << " )";
      stack.pop_back();
      continue;
    }
    if (next > 0) out << ", ";
    const Piece element = tuple.element(next++);
    if (is_open(element)) {
      out << "( ";
      stack.push_back({element, 0});
    } else {
      PrintLeaf(out, element, options);
    }
  }
}

}  // namespace

void PrintLiteral(TextWriter& out, const Context& context, LiteralId literal, const LiteralTextOptions& options) {
  PrintPiece(out, PoolPiece{&context.literals, &context.literals[literal]}, options);
}

void PrintLiteral(TextWriter& out, const Literal& literal, const LiteralTextOptions& options) {
  PrintPiece(out, OwnedPiece{&literal}, options);
}

std::string ToString(const Context& context, LiteralId literal, const LiteralTextOptions& options) {
  std::string text;
  TextWriter out(&text);
  PrintLiteral(out, context, literal, options);
  out.Flush();
  return text;
}

std::string ToString(const Literal& literal, const LiteralTextOptions& options) {
  std::string text;
  TextWriter out(&text);
  PrintLiteral(out, literal, options);
  out.Flush();
  return text;
}

void AppendScalar(TextWriter& out, ElementType type, const std::byte* element) {
  char text[kMaxScalarText];
  char* const end =
      VisitType(type, [&]<typename T>(std::type_identity<T>) -> char* { return PutScalar(text, Load<T>(element)); });
  out.Append({text, static_cast<size_t>(end - text)});
}

}  // namespace hlokit
