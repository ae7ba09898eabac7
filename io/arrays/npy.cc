// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/npy.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/types/element_type.h"

namespace hlokit::interp {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeader = size_t{1} << 20;

// Returns "f4" of "<f4".
std::string TypeCode(ElementType type) {
  const bool whole_bytes = BitsOf(type) >= 8;
  if (type == ElementType::kPred) return "b1";
  if (IsSigned(type) && whole_bytes) return StrCat("i", BytesOf(type));
  if (IsUnsigned(type) && whole_bytes) return StrCat("u", BytesOf(type));
  if (type == ElementType::kF16 || type == ElementType::kF32 || type == ElementType::kF64) {
    return StrCat("f", BytesOf(type));
  }
  if (IsComplex(type)) return StrCat("c", BytesOf(type));
  return StrCat("V", BytesOf(type));
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
      // A key twice is not a header that NumPy writes.
      if (*key == "descr" && !has_descr) {
        const std::optional<std::string_view> descr = String();
        if (!descr) return std::nullopt;
        header.descr = *descr;
        has_descr = true;
      } else if (*key == "fortran_order" && !has_order) {
        header.fortran_order = TakeWord("True");
        if (!header.fortran_order && !TakeWord("False")) return std::nullopt;
        has_order = true;
      } else if (*key == "shape" && !has_shape) {
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

// Returns the type that "f4" names; false if there is none. Raw elements, "V2", have no type.
bool ParseTypeCode(std::string_view code, StoredArray* array) {
  if (code.size() < 2) return false;
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(code.data() + 1, code.data() + code.size(), bytes);
  if (error != std::errc() || end != code.data() + code.size() || bytes < 1 || bytes > 16) return false;
  array->element_bytes = bytes;
  if (code[0] == 'V') return true;
  for (size_t t = 0; t < kElementTypeCount; ++t) {
    const auto type = static_cast<ElementType>(t);
    if (!IsArrayType(type) || TypeCode(type) != code) continue;
    array->type = type;
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<StoredArray> OpenNpy(std::shared_ptr<const ByteSource> source, uint64_t begin, uint64_t bytes) {
  char prefix[12] = {};
  const absl::Status cut = absl::InvalidArgumentError("the .npy header is cut off");
  if (bytes < 10) return absl::InvalidArgumentError("not a .npy file");
  if (absl::Status s = source->Read(begin, prefix, std::min<uint64_t>(bytes, sizeof(prefix))); !s.ok()) return s;
  if (std::string_view(prefix, kNpyMagic.size()) != kNpyMagic) return absl::InvalidArgumentError("not a .npy file");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(prefix[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) return absl::InvalidArgumentError(StrCat("unknown .npy version ", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t header_begin = 8 + length_bytes;
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= byte(8 + i) << (8 * i);
  if (bytes < header_begin || length > kMaxHeader || bytes - header_begin < length) return cut;
  std::string text(length, '\0');
  if (absl::Status s = source->Read(begin + header_begin, text.data(), length); !s.ok()) return s;
  std::optional<ParsedHeader> header = HeaderReader(text).Read();
  if (!header) return absl::InvalidArgumentError("the .npy header cannot be read");

  StoredArray array;
  array.type_name = std::string(header->descr);
  std::string_view code = header->descr;
  if (!code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos) {
    array.big_endian = code[0] == '>';
    code.remove_prefix(1);
  }
  if (!ParseTypeCode(code, &array)) {
    return absl::InvalidArgumentError(StrCat("unknown NumPy type `", header->descr, "`"));
  }
  array.fortran_order = header->fortran_order;
  array.dims = std::move(header->dims);
  array.source = std::move(source);
  array.begin = begin + header_begin + length;
  array.bytes = bytes - header_begin - length;
  return array;
}

absl::StatusOr<Literal> ReadNpy(std::string_view bytes, Shape shape) {
  absl::StatusOr<StoredArray> array = OpenNpy(ByteSource::OfMemory(std::string(bytes)), 0, bytes.size());
  if (!array.ok()) return array.status();
  return ReadArray(*array, shape);
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
