// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/dense_parser.h"

#include <array>
#include <bit>
#include <charconv>
#include <complex>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ir/types/float_types.h"
#include "ir/types/literal.h"

namespace hlokit::mlir {
namespace {

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;
template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || SoftFloat<T>;

template <typename T>
T FromBits(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return T::FromBits(static_cast<decltype(T().bits())>(bits));
  }
}

// Reads elements of type T into a buffer.
template <typename T>
class ElementReader {
 public:
  ElementReader(Cursor& in, int bits) : in_(in), bits_(bits) {}

  bool Read(T* v) {
    if constexpr (std::is_same_v<T, bool>) {
      const std::string_view word = in_.PeekWord();
      if (word == "true" || word == "false") {
        *v = word == "true";
        in_.set_at(word.data() + word.size());
        return true;
      }
      int64_t number = 0;
      if (!ReadInteger(&number)) return false;
      if (number != 0 && number != 1 && number != -1) return OutOfRange();
      *v = number != 0;
      return true;
    } else if constexpr (kIsComplex<T>) {
      using Part = typename T::value_type;
      ElementReader<Part> parts(in_, bits_ / 2);
      Part real{}, imaginary{};
      if (!in_.Expect('(', "before a complex number") || !parts.Read(&real) || !in_.Expect(',') ||
          !parts.Read(&imaginary) || !in_.Expect(')')) {
        return false;
      }
      *v = T(real, imaginary);
      return true;
    } else if constexpr (kIsFloat<T>) {
      return ReadFloat(v);
    } else {
      int64_t number = 0;
      const bool negative = in_.Peek() == '-';
      if (!ReadInteger(&number)) return false;
      // Values of both signs fit if their bits do, as in MLIR.
      if (bits_ < 64) {
        const int64_t limit = int64_t{1} << bits_;
        if (number >= limit || number < -(limit / 2)) return OutOfRange();
      } else if (!negative && number < 0 && std::is_same_v<T, int64_t>) {
        return OutOfRange();
      }
      *v = T(number);
      return true;
    }
  }

 private:
  bool ReadInteger(int64_t* number) {
    start_ = in_.Offset();
    // Most integers are short.
    const char* p = in_.at();
    const bool negative = *p == '-';
    if (negative) ++p;
    int64_t value = 0;
    const char* const digits = p;
    for (; *p >= '0' && *p <= '9' && p - digits < 18; ++p) value = value * 10 + (*p - '0');
    if (p != digits && *p != 'x' && *p != '.' && (*p < '0' || *p > '9')) {
      *number = negative ? -value : value;
      in_.set_at(p);
      return true;
    }
    if (!in_.Integer(number)) return false;
    if (*in_.at() == '.') {
      return in_.Error(DiagnosticKind::kBadLiteral, {start_, in_.Here() - start_},
                       "expected integer elements, but parsed floating-point");
    }
    return true;
  }

  bool ReadFloat(T* v) {
    start_ = in_.Offset();
    const char* p = in_.at();
    if (p[0] == '0' && p[1] == 'x') {
      int64_t bits = 0;
      if (!in_.Integer(&bits)) return false;
      if (bits_ < 64 && static_cast<uint64_t>(bits) >> bits_ != 0) return OutOfRange();
      *v = FromBits<T>(static_cast<uint64_t>(bits));
      return true;
    }
    const char* digits = p + (*p == '-');
    if (*digits < '0' || *digits > '9') {
      return in_.ErrorHere(StrCat("expected element literal of primitive type, found ", in_.DescribeNext()));
    }
    double value = 0;
    const auto [stop, error] = std::from_chars(p, in_.end(), value);
    if (std::string_view(p, static_cast<size_t>(stop - p)).find('.') == std::string_view::npos) {
      return in_.ErrorHere("expected floating-point elements, but parsed integer");
    }
    if (error == std::errc::result_out_of_range) {
      // Underflow gives 0; overflow is an error of MLIR's too.
      value = 0;
    }
    in_.set_at(stop);
    *v = static_cast<T>(value);
    if constexpr (std::is_same_v<T, F8E8M0FNU>) {
      // Printers write 2^-127, the smallest value, with too few digits, which round to the next larger one. The type
      // has no zero.
      if (value >= 0 && value < 0x1.8p-127) *v = std::numeric_limits<T>::min();
    }
    return true;
  }

  bool OutOfRange() {
    return in_.Error(DiagnosticKind::kNumberOutOfRange, {start_, in_.Here() - start_},
                     "integer constant out of range for attribute");
  }

  Cursor& in_;
  int bits_;
  uint32_t start_ = 0;
};

std::string SizesText(absl::Span<const int64_t> sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", sizes[i]);
  return text + "]";
}

// Reads nested lists of the sizes, or one element.
template <typename T>
bool ReadNested(Cursor& in, int bits, absl::Span<const int64_t> sizes, size_t max_elements, std::vector<T>* elements,
                bool* splat) {
  ElementReader<T> reader(in, bits);
  *splat = false;
  if (in.Peek() != '[') {
    T v{};
    if (!reader.Read(&v)) return false;
    elements->push_back(v);
    *splat = true;
    return in.AtEnd() || in.ErrorExpected(">", "after the elements");
  }
  std::vector<int64_t> counts(sizes.size(), 0);
  size_t depth = 0;
  const uint32_t start = in.Here();
  const auto mismatch = [&](int64_t count, size_t level) {
    return in.Error(DiagnosticKind::kBadLiteral, {start, 1},
                    StrCat("inferred shape of elements literal does not match type (", SizesText(sizes), "): ", count,
                           " elements in dimension ", level));
  };
  for (;;) {
    const char c = in.Peek();
    if (c == '[') {
      in.set_at(in.at() + 1);
      if (depth == sizes.size()) {
        return in.Error(DiagnosticKind::kBadLiteral, {start, 1},
                        StrCat("inferred shape of elements literal does not match type (", SizesText(sizes),
                               "): lists are nested deeper"));
      }
      counts[depth++] = 0;
      if (in.Peek() == ']') {
        // Falls to the end of the list.
      } else {
        continue;
      }
    } else {
      if (depth != sizes.size()) {
        return in.Error(DiagnosticKind::kBadLiteral, in.Next(),
                        StrCat("tensor literal is invalid; ranks are not consistent between elements, or do not match "
                               "type (",
                               SizesText(sizes), ")"));
      }
      if (elements->size() == max_elements) return mismatch(counts[depth - 1] + 1, depth - 1);
      T v{};
      if (!reader.Read(&v)) return false;
      elements->push_back(v);
      ++counts[depth - 1];
    }
    // After an element or list: `,` or the ends of lists.
    for (;;) {
      if (in.TryConsume(',')) break;
      if (!in.Expect(']')) return false;
      --depth;
      if (counts[depth] != sizes[depth]) return mismatch(counts[depth], depth);
      if (depth == 0) return in.AtEnd() || in.ErrorExpected(">", "after the elements");
      ++counts[depth - 1];
    }
  }
}

}  // namespace

bool FloatFromBits(std::string_view type, uint64_t bits, double* value) {
  std::string lower(type);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  const std::optional<ElementType> element = ElementTypeFromText(lower);
  if (!element || !IsFloat(*element)) return false;
  if (BitsOf(*element) < 64 && bits >> BitsOf(*element) != 0) return false;
  VisitType(*element, [&](auto identity) {
    using T = typename decltype(identity)::type;
    if constexpr (kIsFloat<T>) *value = static_cast<double>(FromBits<T>(bits));
  });
  return true;
}

NodeId DenseFromBytes(std::string_view bytes, NodeId type, NodeTable* nodes) {
  const std::optional<ElementType> element = nodes->HloElementType(nodes->child(type, 0));
  if (!element) return {};
  int64_t count = 1;
  for (int64_t size : nodes->ints(type)) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return {};
  }
  const size_t width = static_cast<size_t>(BytesOf(*element));
  const size_t have = bytes.size();
  const auto all = static_cast<size_t>(count);
  const bool pred = *element == ElementType::kPred;
  if (have == width && (all != 1 || pred)) {
    // A splat, of no elements too: the bits of an i1 are all equal. With up to eight elements the byte may hold them
    // one by one.
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (!pred || first == 0 || first == 1 || first == 0xff) {
      std::byte* data = nodes->arena().AllocateArray<std::byte>(width);
      std::memcpy(data, bytes.data(), width);
      if (pred) data[0] = std::byte{first != 0};
      return nodes->MakeBlob(type, data, width, true);
    }
  }
  if (pred && have == (all + 7) / 8 && have != all) {
    std::byte* data = nodes->arena().AllocateArray<std::byte>(all);
    for (size_t i = 0; i < all; ++i) data[i] = std::byte((static_cast<unsigned char>(bytes[i / 8]) >> (i % 8)) & 1);
    return nodes->MakeBlob(type, data, all, false);
  }
  if (all > have / width || have != all * width) return {};
  std::byte* data = nodes->arena().AllocateArray<std::byte>(have);
  std::memcpy(data, bytes.data(), have);
  if (pred) {
    for (size_t i = 0; i < have; ++i) data[i] = std::byte{data[i] != std::byte{0}};
  } else if (BitsOf(*element) < 8) {
    for (size_t i = 0; i < have; ++i) {
      const int shift = 8 - BitsOf(*element);
      const auto raw = static_cast<uint8_t>(data[i]);
      const auto high = static_cast<uint8_t>(raw << shift);
      data[i] = static_cast<std::byte>(IsSigned(*element) ? static_cast<uint8_t>(static_cast<int8_t>(high) >> shift)
                                                          : static_cast<uint8_t>(high >> shift));
    }
  }
  return nodes->MakeBlob(type, data, have, all == 1);
}

namespace {

// "0x..." -> bytes.
NodeId ParseHex(Cursor& in, NodeId type, ByteLimit* limit, NodeTable* nodes) {
  static constexpr auto kDigit = [] {
    std::array<uint8_t, 256> table{};
    for (auto& entry : table) entry = 0xff;
    for (int i = 0; i < 10; ++i) table[static_cast<size_t>('0' + i)] = static_cast<uint8_t>(i);
    for (int i = 0; i < 6; ++i) {
      table[static_cast<size_t>('a' + i)] = table[static_cast<size_t>('A' + i)] = static_cast<uint8_t>(10 + i);
    }
    return table;
  }();
  const SourceRange range = {in.Here(), 1};
  const char* begin = in.at() + 1;
  const auto* end = static_cast<const char*>(std::memchr(begin, '"', static_cast<size_t>(in.end() - begin)));
  const auto fail = [&](std::string message) {
    in.Error(DiagnosticKind::kBadLiteral, range, std::move(message));
    return NodeId();
  };
  if (end == nullptr) return fail("expected '\"' in string literal");
  const auto size = static_cast<size_t>(end - begin);
  if (size < 2 || begin[0] != '0' || begin[1] != 'x' || size % 2 != 0) {
    return fail("expected string containing hex digits starting with `0x`");
  }
  std::string bytes((size - 2) / 2, '\0');
  if (!limit->Take(bytes.size())) return fail(limit->Message());
  uint8_t bad = 0;
  const char* p = begin + 2;
  for (char& byte : bytes) {
    const uint8_t high = kDigit[static_cast<unsigned char>(p[0])];
    const uint8_t low = kDigit[static_cast<unsigned char>(p[1])];
    bad |= static_cast<uint8_t>((high | low) & 0x80);
    byte = static_cast<char>(high << 4 | (low & 0xf));
    p += 2;
  }
  if (bad != 0) return fail("expected string containing hex digits starting with `0x`");
  in.set_at(end + 1);
  if (!in.AtEnd()) {
    in.ErrorExpected(">", "after the elements");
    return {};
  }
  const NodeId id = DenseFromBytes(bytes, type, nodes);
  if (!id.valid()) return fail(StrCat("elements hex data size is invalid for provided type: ", ToText(*nodes, type)));
  return id;
}

}  // namespace

NodeId ParseDenseElements(Cursor in, NodeId type, ByteLimit* limit, NodeTable* nodes) {
  const NodeKind kind = nodes->kind(type);
  if (kind != NodeKind::kTensorType && kind != NodeKind::kVectorType) {
    in.ErrorHere("elements literal must be a shaped type");
    return {};
  }
  const std::vector<int64_t> sizes(nodes->ints(type).begin(), nodes->ints(type).end());
  int64_t count = 1;
  for (int64_t size : sizes) {
    if (size == kDynamicSize) {
      in.ErrorHere("elements literal type must have static shape");
      return {};
    }
    if (__builtin_mul_overflow(count, size, &count)) {
      in.ErrorHere("the number of elements overflows");
      return {};
    }
  }
  const std::optional<ElementType> element = nodes->HloElementType(nodes->child(type, 0));
  if (!element) {
    const std::string_view text(in.at(), static_cast<size_t>(in.end() - in.at()));
    return nodes->Make(NodeKind::kDenseText, OnOneLine(text), {}, {&type, 1});
  }
  if (in.AtEnd()) {
    if (count == 0) return nodes->MakeBlob(type, nullptr, 0, false);
    in.Error(DiagnosticKind::kBadLiteral, in.Next(), "expected elements in dense literal of a type that has some");
    return {};
  }
  if (in.Peek() == '"') return ParseHex(in, type, limit, nodes);
  return VisitType(*element, [&](auto identity) {
    using T = typename decltype(identity)::type;
    // A vector<bool> has no data.
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    std::vector<T> elements;
    bool splat = false;
    if (!ReadNested<T>(in, BitsOf(*element) == 8 && *element == ElementType::kPred ? 1 : BitsOf(*element), sizes,
                       static_cast<size_t>(count), &elements, &splat)) {
      return NodeId();
    }
    const size_t size = elements.size() * sizeof(Stored);
    if (!limit->Take(size)) {
      in.ErrorHere(limit->Message());
      return NodeId();
    }
    auto* data = nodes->arena().template AllocateArray<std::byte>(size);
    for (size_t i = 0; i < elements.size(); ++i) {
      const Stored value = static_cast<Stored>(elements[i]);
      std::memcpy(data + i * sizeof(Stored), &value, sizeof(Stored));
    }
    // A list of one element is a splat too.
    return nodes->MakeBlob(type, data, size, splat || (elements.size() == 1 && count == 1));
  });
}

}  // namespace hlokit::mlir
