// SPDX-License-Identifier: Apache-2.0
#include "interp/values/npy.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/types/element_type.h"

namespace hlokit::interp {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeader = size_t{1} << 20;

// Returns "f4" of "<f4".
std::string TypeCode(ElementType type) {
  switch (type) {
    case ElementType::kPred:
      return "b1";
    case ElementType::kS8:
    case ElementType::kS16:
    case ElementType::kS32:
    case ElementType::kS64:
      return StrCat("i", BytesOf(type));
    case ElementType::kU8:
    case ElementType::kU16:
    case ElementType::kU32:
    case ElementType::kU64:
      return StrCat("u", BytesOf(type));
    case ElementType::kF16:
    case ElementType::kF32:
    case ElementType::kF64:
      return StrCat("f", BytesOf(type));
    case ElementType::kC64:
    case ElementType::kC128:
      return StrCat("c", BytesOf(type));
    default:
      return StrCat("V", BytesOf(type));
  }
}

struct ParsedHeader {
  std::string_view descr;
  bool fortran_order = false;
  std::vector<int64_t> dims;
};

// Reads the Python dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  std::optional<ParsedHeader> Read() {
    ParsedHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!Take('{')) return std::nullopt;
    while (!Take('}')) {
      const std::optional<std::string_view> key = String();
      if (!key || !Take(':')) return std::nullopt;
      if (*key == "descr") {
        const std::optional<std::string_view> descr = String();
        if (!descr) return std::nullopt;
        header.descr = *descr;
        has_descr = true;
      } else if (*key == "fortran_order") {
        header.fortran_order = TakeWord("True");
        if (!header.fortran_order && !TakeWord("False")) return std::nullopt;
        has_order = true;
      } else if (*key == "shape") {
        if (!Dims(&header.dims)) return std::nullopt;
        has_shape = true;
      } else {
        return std::nullopt;
      }
      if (!Take(',') && Peek() != '}') return std::nullopt;
    }
    if (Peek() != '\0' || !has_descr || !has_order || !has_shape) return std::nullopt;
    return header;
  }

 private:
  char Peek() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
    return text_.empty() ? '\0' : text_.front();
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool TakeWord(std::string_view word) {
    Peek();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> String() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view s = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return s;
  }
  bool Dims(std::vector<int64_t>* dims) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      Peek();
      int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) return false;
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      dims->push_back(size);
      if (!Take(',') && Peek() != ')') return false;
    }
    return true;
  }

  std::string_view text_;
};

void SwapBytes(std::byte* data, size_t count, size_t size) {
  for (size_t i = 0; i < count; ++i) std::reverse(data + i * size, data + (i + 1) * size);
}

// Copies from column-major to row-major order.
void CopyTransposed(std::byte* to, const std::byte* from, absl::Span<const int64_t> dims, size_t element_bytes) {
  const size_t rank = dims.size();
  std::vector<int64_t> strides(rank), index(rank, 0);
  int64_t count = 1;
  for (size_t d = 0; d < rank; ++d) {
    strides[d] = count;
    count *= dims[d];
  }
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * element_bytes, from + static_cast<size_t>(at) * element_bytes,
                element_bytes);
    for (size_t d = rank; d-- > 0;) {
      at += strides[d];
      if (++index[d] < dims[d]) break;
      at -= strides[d] * dims[d];
      index[d] = 0;
    }
  }
}

std::string DimsToString(absl::Span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) StrAppend(&text, i == 0 ? "" : ",", dims[i]);
  return text + "]";
}

// Returns true if elements of the file's type can represent those of `type`.
bool FitsType(std::string_view code, ElementType type) {
  const std::string own = TypeCode(type);
  if (code == own) return true;
  if (code.size() < 2 || code.substr(1) != std::string_view(own).substr(1)) return false;
  return code[0] == 'V' || (own[0] == 'V' && code[0] == 'u');
}

// Masks values of narrow types that were stored as bytes to the bits of the type.
void Normalize(ElementType type, std::byte* data, size_t count) {
  if (type == ElementType::kPred) {
    for (size_t i = 0; i < count; ++i) data[i] = data[i] == std::byte{0} ? std::byte{0} : std::byte{1};
    return;
  }
  const int bits = BitsOf(type);
  if (bits >= 8) return;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t shifted = static_cast<uint8_t>(static_cast<uint8_t>(data[i]) << (8 - bits));
    data[i] =
        static_cast<std::byte>(IsSigned(type) ? static_cast<int8_t>(shifted) >> (8 - bits) : shifted >> (8 - bits));
  }
}

}  // namespace

absl::StatusOr<Literal> ReadNpy(std::string_view bytes, Shape shape) {
  if (!bytes.starts_with(kNpyMagic) || bytes.size() < 10) return absl::InvalidArgumentError("not a .npy file");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) return absl::InvalidArgumentError(StrCat("unknown .npy version ", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t header_begin = 8 + length_bytes;
  size_t length = 0;
  if (bytes.size() >= header_begin) {
    for (size_t i = 0; i < length_bytes; ++i) length |= byte(8 + i) << (8 * i);
  }
  if (bytes.size() < header_begin || length > kMaxHeader || bytes.size() - header_begin < length) {
    return absl::InvalidArgumentError("the .npy header is cut off");
  }
  const std::optional<ParsedHeader> header = HeaderReader(bytes.substr(header_begin, length)).Read();
  if (!header) return absl::InvalidArgumentError("the .npy header cannot be read");

  const ElementType type = shape.element_type();
  std::string_view code = header->descr;
  bool swap = false;
  if (!code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos) {
    swap = code[0] == '>';
    code.remove_prefix(1);
  }
  if (!FitsType(code, type)) {
    return absl::InvalidArgumentError(
        StrCat("the array has NumPy type `", header->descr, "`, expected `", TypeCode(type), "` for ", ToString(type)));
  }
  if (absl::Span<const int64_t>(header->dims) != shape.dims()) {
    return absl::InvalidArgumentError(
        StrCat("the array has dimensions ", DimsToString(header->dims), ", expected ", DimsToString(shape.dims())));
  }
  const std::string_view elements = bytes.substr(header_begin + length);
  const int64_t size = LiteralBytes(shape);
  if (size < 0 || elements.size() != static_cast<size_t>(size)) {
    return absl::InvalidArgumentError(StrCat("the file has ", elements.size(), " bytes of elements, expected ", size));
  }
  Literal literal = Literal::Zeros(shape);
  if (size == 0) return literal;
  const size_t element_bytes = static_cast<size_t>(BytesOf(type));
  const auto* from = reinterpret_cast<const std::byte*>(elements.data());
  if (header->fortran_order) {
    CopyTransposed(literal.data(), from, shape.dims(), element_bytes);
  } else {
    std::memcpy(literal.data(), from, static_cast<size_t>(size));
  }
  const size_t count = static_cast<size_t>(shape.element_count());
  if (swap && IsComplex(type)) {
    SwapBytes(literal.data(), count * 2, element_bytes / 2);
  } else if (swap) {
    SwapBytes(literal.data(), count, element_bytes);
  }
  Normalize(type, literal.data(), count);
  return literal;
}

std::string NpyHeader(Shape shape) {
  const ElementType type = shape.element_type();
  std::string dict =
      StrCat("{'descr': '", BytesOf(type) == 1 ? "|" : "<", TypeCode(type), "', 'fortran_order': False, 'shape': (");
  for (int64_t size : shape.dims()) StrAppend(&dict, size, ", ");
  // A one-element tuple ends in a comma: (2,), but (2, 3).
  if (shape.rank() == 1) dict.pop_back();
  if (shape.rank() > 1) dict.resize(dict.size() - 2);
  dict += "), }";
  // Magic, version, length, dictionary and line end fill a multiple of 64 bytes.
  const bool long_header = dict.size() + 1 + 10 + 63 > 0xffff;
  const size_t prefix = long_header ? 12 : 10;
  dict.resize((prefix + dict.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  dict += '\n';
  std::string header(kNpyMagic);
  header += static_cast<char>(long_header ? 2 : 1);
  header += '\0';
  for (size_t i = 0; i < prefix - 8; ++i) header += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  return header + dict;
}

}  // namespace hlokit::interp
