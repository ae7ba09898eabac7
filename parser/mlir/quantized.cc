// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/quantized.h"

#include <charconv>

#include "ir/core/str_cat.h"
#include "parser/mlir/node.h"

namespace hlokit::mlir {
namespace {

// The rest of the text of a type; every function skips spaces in front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool TryConsume(std::string_view text) {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::string_view Word() {
    TryConsume("");
    size_t size = 0;
    const auto in_word = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    while (size < rest_.size() && in_word(rest_[size])) ++size;
    const std::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return word;
  }
  template <typename Number>
  bool Read(Number* number) {
    TryConsume("");
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *number);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
    return true;
  }

 private:
  std::string_view rest_;
};

bool ReadStorage(Scanner* in, QuantizedType* type) {
  type->storage = in->Word();
  std::string_view digits = type->storage;
  type->is_signed = !digits.starts_with('u');
  if (digits.empty() || (digits[0] != 'i' && digits[0] != 'u' && digits[0] != 's')) return false;
  digits.remove_prefix(std::min(digits.find_first_of("0123456789"), digits.size()));
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), type->width);
  if (error != std::errc() || stop != digits.data() + digits.size() || type->width < 1 || type->width > 32)
    return false;
  const int64_t count = int64_t{1} << type->width;
  type->storage_min = type->is_signed ? -count / 2 : 0;
  type->storage_max = type->is_signed ? count / 2 - 1 : count - 1;
  if (!in->TryConsume("<")) return true;
  return in->Read(&type->storage_min) && in->TryConsume(":") && in->Read(&type->storage_max) && in->TryConsume(">");
}

bool ReadPair(Scanner* in, QuantizedType* type) {
  double scale = 0;
  int64_t zero = 0;
  if (!in->Read(&scale) || (in->TryConsume(":") && !in->Read(&zero))) return false;
  type->scales.push_back(scale);
  type->zero_points.push_back(zero);
  return true;
}

}  // namespace

std::optional<QuantizedType> ParseQuantized(std::string_view text) {
  Scanner in(text);
  QuantizedType type;
  if (!in.TryConsume("quant.uniform<") || !ReadStorage(&in, &type) || !in.TryConsume(":")) return std::nullopt;
  type.expressed = in.Word();
  if (in.TryConsume(":")) {
    int64_t axis = 0;
    if (!in.Read(&axis)) return std::nullopt;
    type.axis = axis;
  }
  if (!in.TryConsume(",")) return std::nullopt;
  if (!in.TryConsume("{")) {
    if (type.axis || !ReadPair(&in, &type)) return std::nullopt;
  } else {
    do {
      if (!ReadPair(&in, &type)) return std::nullopt;
    } while (in.TryConsume(","));
    if (!in.TryConsume("}")) return std::nullopt;
  }
  if (!in.TryConsume(">")) return std::nullopt;
  return type;
}

std::string CheckQuantized(const QuantizedType& type) {
  if (type.axis && *type.axis < 0) return StrCat("illegal quantized dimension: ", *type.axis);
  // The least and the greatest positive number.
  struct Range {
    std::string_view type;
    double least, greatest;
  };
  constexpr Range kRanges[] = {
      {"f16", 0x1p-24, 65504.0}, {"bf16", 0x1p-133, 0x1.fep127}, {"f32", 0x1p-149, 0x1.fffffep127}};
  for (const Range& range : kRanges) {
    if (range.type != type.expressed) continue;
    for (double scale : type.scales) {
      if (scale >= range.least && scale <= range.greatest) continue;
      std::string number;
      AppendFloat(scale, "f64", &number);
      return StrCat("scale ", number, " out of expressed type range");
    }
  }
  return "";
}

bool FitsTensor(const QuantizedType& type, absl::Span<const int64_t> sizes) {
  if (type.storage.starts_with('s')) return false;
  for (int64_t zero : type.zero_points) {
    if (zero < type.storage_min || zero > type.storage_max) return false;
  }
  if (!type.axis) return true;
  if (*type.axis < 0 || *type.axis >= static_cast<int64_t>(sizes.size())) return false;
  const int64_t size = sizes[static_cast<size_t>(*type.axis)];
  return size == kDynamicSize || size == static_cast<int64_t>(type.scales.size());
}

}  // namespace hlokit::mlir
