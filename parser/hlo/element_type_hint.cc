// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/element_type_hint.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/types/element_type.h"

namespace hlokit {
namespace {

struct OtherName {
  std::string_view name;
  std::string_view type;
};
constexpr OtherName kOtherNames[] = {
    {"bool", "pred"},
    {"i1", "pred"},
    {"half", "f16"},
    {"float", "f32"},
    {"double", "f64"},
    {"float16", "f16"},
    {"float32", "f32"},
    {"float64", "f64"},
    {"bfloat16", "bf16"},
    {"short", "s16"},
    {"int", "s32"},
    {"long", "s64"},
    {"int4", "s4"},
    {"int8", "s8"},
    {"int16", "s16"},
    {"int32", "s32"},
    {"int64", "s64"},
    {"i4", "s4"},
    {"i8", "s8"},
    {"i16", "s16"},
    {"i32", "s32"},
    {"i64", "s64"},
    {"uint4", "u4"},
    {"uint8", "u8"},
    {"uint16", "u16"},
    {"uint32", "u32"},
    {"uint64", "u64"},
    {"byte", "u8"},
    {"char", "s8"},
    {"complex64", "c64"},
    {"complex128", "c128"},
    {"float8_e4m3fn", "f8e4m3fn"},
    {"float8_e5m2", "f8e5m2"},
};

}  // namespace

std::string ElementTypeHint(std::string_view word) {
  const std::string lower = absl::AsciiStrToLower(absl::string_view(word.data(), word.size()));
  if (ElementTypeFromText(lower)) return StrCat("did you mean `", lower, "`?");
  for (const OtherName& other : kOtherNames) {
    if (lower == other.name) return StrCat("did you mean `", other.type, "`?");
  }
  std::vector<std::string_view> names;
  for (const ElementTypeInfo& info : kElementTypeInfo) names.push_back(info.text);
  return DidYouMean(lower, names);
}

}  // namespace hlokit
