// SPDX-License-Identifier: Apache-2.0
#include "ir/text/frontend_attributes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ir/graph/attribute_views.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

StringId StringAt(absl::Span<const int64_t> list, size_t i) { return StringId(static_cast<uint32_t>(list[i])); }

// Returns true if `text` parses as a whole without quotes: braces balance, and quotes inside are closed.
bool StandsBare(std::string_view text) {
  if (text.empty() || text[0] != '{') return false;
  int64_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      if (i >= text.size()) return false;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return i + 1 == text.size();
    }
  }
  return false;
}

}  // namespace

ListId EncodeFrontendAttributes(Context* context, std::vector<FrontendAttribute> entries) {
  if (entries.size() == 1) return context->lists.Intern({int64_t{entries[0].first.value}, entries[0].second.value});
  std::stable_sort(entries.begin(), entries.end(), [context](const FrontendAttribute& a, const FrontendAttribute& b) {
    return context->str(a.first) < context->str(b.first);
  });
  std::vector<int64_t> list;
  list.reserve(2 * entries.size());
  for (const auto& [key, value] : entries) {
    if (!list.empty() && list[list.size() - 2] == key.value) {
      list.back() = value.value;
    } else {
      list.insert(list.end(), {key.value, value.value});
    }
  }
  return context->lists.Intern(list);
}

std::vector<FrontendAttribute> DecodeFrontendAttributes(const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  std::vector<FrontendAttribute> entries;
  for (size_t i = 0; i + 1 < list.size(); i += 2) entries.emplace_back(StringAt(list, i), StringAt(list, i + 1));
  return entries;
}

StringId FindFrontendAttribute(const Context& context, ListId id, std::string_view key) {
  const absl::Span<const int64_t> list = context.list(id);
  if (list.empty()) return StringId();
  const StringId wanted = context.strings.Find(key);
  for (size_t i = 0; wanted.valid() && i + 1 < list.size(); i += 2) {
    if (StringAt(list, i) == wanted) return StringAt(list, i + 1);
  }
  return StringId();
}

StringId FindFrontendAttribute(Instruction instruction, std::string_view key) {
  return FindFrontendAttribute(instruction.module().context(),
                               AttrReader(instruction).list_id(Attr::kFrontendAttributes), key);
}

std::string_view SdyMeshesOf(const Module& module) {
  const StringId text = FindFrontendAttribute(module.context(), module.header().frontend_attributes, "xla.sdy.meshes");
  return text.valid() ? module.context().str(text) : "";
}

ListId WithFrontendAttribute(Context* context, ListId id, std::string_view key, std::string_view value) {
  std::vector<FrontendAttribute> entries = DecodeFrontendAttributes(*context, id);
  entries.emplace_back(context->strings.Intern(key), context->strings.Intern(value));
  return EncodeFrontendAttributes(context, std::move(entries));
}

ListId WithoutFrontendAttribute(Context* context, ListId id, std::string_view key) {
  std::vector<FrontendAttribute> entries = DecodeFrontendAttributes(*context, id);
  std::erase_if(entries, [&](const FrontendAttribute& entry) { return context->str(entry.first) == key; });
  return EncodeFrontendAttributes(context, std::move(entries));
}

void PrintFrontendAttributes(TextWriter& out, const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  out << '{';
  for (size_t i = 0; i + 1 < list.size(); i += 2) {
    if (i != 0) out << ',';
    out << context.str(StringAt(list, i)) << '=';
    const std::string_view value = context.str(StringAt(list, i + 1));
    if (StandsBare(value)) {
      out << value;
    } else {
      PrintQuoted(out, value);
    }
  }
  out << '}';
}

}  // namespace hlokit
