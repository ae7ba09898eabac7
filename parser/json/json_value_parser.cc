// SPDX-License-Identifier: Apache-2.0
// Shared parts of the JSON parser: scalar values, names, keys, and forwarding of errors.
#include <cstring>

#include "ir/core/suggest.h"
#include "parser/hlo/literal_parser.h"
#include "parser/json/json_module_parser.h"

namespace hlokit {

void JsonModuleParser::ForwardDiagnostics(const JsonString* s) {
  if (local_.diagnostics().empty()) return;
  for (Diagnostic d : local_.diagnostics()) {
    failed_ |= d.severity == Severity::kError;
    if (s != nullptr && s->escaped && d.range.offset != SourceRange::kNoOffset) {
      // Locations refer to the string with escapes resolved.
      const uint32_t begin = in_.OffsetIn(*s, d.range.offset);
      d.range.size = in_.OffsetIn(*s, size_t{d.range.offset} + d.range.size) - begin;
      d.range.offset = begin;
    }
    sink_->Report(std::move(d));
  }
  local_ = DiagnosticSink();
}

// ---- keys ----

bool JsonModuleParser::UnknownKey(const JsonString& key, std::string_view of,
                                  absl::Span<const std::string_view> known) {
  std::string hint = DidYouMean(key.value, {known.begin(), known.end()});
  if (!options_.allow_unknown) {
    return Error(DiagnosticKind::kUnknownAttribute, key.range, StrCat("unknown key `", key.value, "` in ", of), hint);
  }
  sink_->Warning(DiagnosticKind::kUnknownAttribute, key.range,
                 StrCat("unknown key `", key.value, "` in ", of, "; ignored"), hint);
  return in_.Skip();
}

size_t JsonModuleParser::FindKey(const JsonString& key, std::string_view of, absl::Span<const std::string_view> known,
                                 uint32_t* seen, bool* ok) {
  size_t i = 0;
  while (i < known.size() && known[i] != key.value) ++i;
  if (i == known.size()) {
    *ok = UnknownKey(key, of, known);
  } else if ((*seen >> i & 1) != 0) {
    *ok = Error(DiagnosticKind::kDuplicateAttribute, key.range, StrCat("duplicate attribute `", key.value, "`"));
    i = known.size();
  } else {
    *seen |= uint32_t{1} << i;
    *ok = true;
  }
  return i;
}

// ---- names and shapes ----

bool JsonModuleParser::CheckName(const JsonString& s, std::string_view what) {
  bool ok = !s.value.empty() && char_class::Is(s.value[0], char_class::kNameStart);
  for (size_t i = 0; ok && i < s.value.size(); ++i) ok = char_class::Is(s.value[i], char_class::kName);
  if (ok) return true;
  return Error(DiagnosticKind::kUnexpectedToken, s.range,
               StrCat("expected ", what, ", found a string that is not a valid name"),
               "a name has letters, digits, `_`, `.` and `-` and begins with a letter or `_`");
}

bool JsonModuleParser::ReadName(Reference* reference, std::string_view what) {
  JsonString s;
  if (!in_.String(&s, what) || !CheckName(s, what)) return false;
  *reference = {InternString(s), s.range};
  return true;
}

bool JsonModuleParser::ReadShape(Shape* shape) {
  JsonString s;
  if (!in_.String(&s, "a shape in a string")) return false;
  if (!s.escaped) {
    if (const auto known = shapes_.find(s.value); known != shapes_.end()) {
      *shape = known->second;
      return true;
    }
  }
  if (!ReadText(s, /*keeps_views=*/false, [&] { return shape_parser_.Parse(shape); })) return false;
  if (!s.escaped) shapes_.emplace(s.value, *shape);
  return true;
}

// ---- numbers ----

bool JsonModuleParser::ReadInts(std::vector<int64_t>* list) {
  JsonArray array(in_, "a list of integers");
  while (array.Next()) {
    if (!in_.Int(&list->emplace_back(), "an integer")) return false;
  }
  return array.ok();
}

bool JsonModuleParser::ReadIndex(ListId* id) {
  std::vector<int64_t> list;
  if (!ReadInts(&list)) return false;
  *id = context().lists.Intern(list);
  return true;
}

bool JsonModuleParser::ReadBools(std::vector<int64_t>* list) {
  JsonArray array(in_, "a list of booleans");
  while (array.Next()) {
    bool value;
    if (!in_.Bool(&value, "true or false")) return false;
    list->push_back(value);
  }
  return array.ok();
}

bool JsonModuleParser::ReadInt32(int64_t* value, std::string_view what) {
  const SourceRange range = in_.Next();
  if (!in_.Int(value, what)) return false;
  if (*value == static_cast<int32_t>(*value)) return true;
  return Error(DiagnosticKind::kNumberOutOfRange, range, StrCat(*value, " does not fit in 32 bits"));
}

template <typename T>
bool JsonModuleParser::ReadAnyExact(T* value, ElementType type, std::string_view what) {
  if (in_.Peek() != '"') return in_.Number(value, what);
  JsonString s;
  return in_.String(&s, what) && ReadText(s, /*keeps_views=*/false, [&] {
           LiteralId id;
           if (!ParseLiteral(text_in_, &context(), context().shapes.Scalar(type), LiteralLimits(), &id)) return false;
           const LiteralRecord& literal = context().literals[id];
           if (literal.elided) return text_in_.ErrorHere(DiagnosticKind::kBadLiteral, StrCat("expected ", what));
           std::memcpy(value, literal.data, sizeof(T));
           return true;
         });
}

bool JsonModuleParser::ReadExact(float* value, std::string_view what) {
  return ReadAnyExact(value, ElementType::kF32, what);
}
bool JsonModuleParser::ReadExact(double* value, std::string_view what) {
  return ReadAnyExact(value, ElementType::kF64, what);
}

}  // namespace hlokit
