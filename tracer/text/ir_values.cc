// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/ir_values.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "ir/core/str_cat.h"
#include "tracer/graph/string_split.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy {
namespace {

std::optional<ElementType> TypeOfName(std::string_view name) {
  std::optional<ElementType> type = ElementTypeFromText(name);
  if (!type) type = TypeOfTorchName(name);
  return type && IsArrayType(*type) ? type : std::nullopt;
}

// Parses Float[2,3] or f32[2,3]{1,0}.
std::optional<TextShape> ParseArray(std::string_view text) {
  const size_t open = text.find('['), close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  const std::optional<ElementType> type = TypeOfName(text.substr(0, open));
  if (!type) return std::nullopt;
  TextShape shape{*type, {}};
  std::string_view rest = text.substr(open + 1, close - open - 1);
  while (!rest.empty()) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (error != std::errc() || size < 0) return std::nullopt;
    shape.dims.push_back(size);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (rest.empty()) break;
    if (rest.front() != ',' || rest.size() == 1) return std::nullopt;
    rest.remove_prefix(rest.starts_with(", ") ? 2 : 1);
  }
  const std::string_view layout = text.substr(close + 1);
  const bool has_layout = layout.starts_with("{") && layout.ends_with("}");
  if (!layout.empty() && !has_layout) return std::nullopt;
  int64_t elements = std::count(shape.dims.begin(), shape.dims.end(), 0) > 0 ? 0 : 1;
  for (const int64_t size : shape.dims) {
    if (__builtin_mul_overflow(elements, size, &elements)) return std::nullopt;
  }
  return shape;
}

}  // namespace

std::optional<std::vector<TextShape>> ParseTextShapes(std::string_view text) {
  const bool list = (text.starts_with("(") && text.ends_with(")")) || (text.starts_with("[") && text.ends_with("]"));
  std::vector<TextShape> shapes;
  const std::vector<std::string_view> parts =
      list ? SplitTopLevel(text.substr(1, text.size() - 2)) : std::vector<std::string_view>{text};
  for (const std::string_view part : parts) {
    std::optional<TextShape> shape = ParseArray(part);
    if (!shape) return std::nullopt;
    shapes.push_back(*std::move(shape));
  }
  if (shapes.empty()) return std::nullopt;
  return shapes;
}

std::optional<IValue> ParseTextValue(const ArgSpec& spec, std::string_view text) {
  if (text == "null") return spec.optional ? std::optional<IValue>(IValue()) : std::nullopt;
  if (spec.type == ArgType::kDtype) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    const std::optional<ElementType> type = is_number ? TypeOfTorchNumber(number) : TypeOfName(text);
    return type ? std::optional<IValue>(IValue(*type)) : std::nullopt;
  }
  if (spec.type == ArgType::kString) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return IValue(std::string(text));
    std::string unescaped;
    const std::string_view inner = text.substr(1, text.size() - 2);
    if (!absl::CUnescape(absl::string_view(inner.data(), inner.size()), &unescaped)) return std::nullopt;
    return IValue(std::move(unescaped));
  }
  std::string with_commas(text);
  if (spec.type == ArgType::kIntList || spec.type == ArgType::kFloatList) {
    // The TorchScript backend separates by blanks; lists are always written with brackets here.
    if (text.find(',') == std::string_view::npos && !text.starts_with("(") && !text.starts_with("[")) {
      for (char& c : with_commas) c = c == ' ' ? ',' : c;
    }
    if (!text.starts_with("(") && !text.starts_with("[")) with_commas = StrCat("(", with_commas, ")");
  }
  absl::StatusOr<IValue> value = ParseArgument(spec, with_commas);
  if (!value.ok()) return std::nullopt;
  return *std::move(value);
}

}  // namespace hlokit::lazy
