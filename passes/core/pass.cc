// SPDX-License-Identifier: Apache-2.0
#include "passes/core/pass.h"

#include <algorithm>
#include <charconv>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "passes/core/registry.h"

namespace hlokit {
namespace {

bool IsInt(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string Joined(const std::vector<std::string_view>& words) {
  std::string joined;
  for (size_t i = 0; i < words.size(); ++i) StrAppend(&joined, i == 0 ? "" : ", ", words[i]);
  return joined;
}

}  // namespace

PassOptions::PassOptions(absl::Span<const OptionInfo> options) : options_(options) {
  for (const OptionInfo& option : options) values_.emplace_back(option.default_text);
}

absl::Status PassOptions::Set(std::string_view name, std::string_view value) {
  const auto found = std::find_if(options_.begin(), options_.end(),
                                  [&](const OptionInfo& option) { return SamePassName(option.name, name); });
  if (found == options_.end()) {
    if (options_.empty()) return absl::InvalidArgumentError(StrCat("unknown option `", name, "`: the pass has none"));
    std::vector<std::string_view> names;
    for (const OptionInfo& option : options_) names.push_back(option.name);
    return absl::InvalidArgumentError(StrCat("unknown option `", name, "`", DidYouMeanSuffix(name, names)));
  }
  const auto wrong = [&](std::string_view right, std::string_view hint = "") {
    return absl::InvalidArgumentError(StrCat("option `", name, "`: expected ", right, ", found `", value, "`", hint));
  };
  switch (found->type) {
    case OptionInfo::Type::kBool:
      if (value != "true" && value != "false") return wrong("true or false");
      break;
    case OptionInfo::Type::kInt: {
      int64_t number = 0;
      if (!IsInt(value, &number)) return wrong("an integer");
      if (number < found->min) return wrong(StrCat("an integer of at least ", found->min));
      break;
    }
    case OptionInfo::Type::kString:
      if (!found->choices.empty() &&
          std::find(found->choices.begin(), found->choices.end(), value) == found->choices.end()) {
        if (found->choices_text.empty()) return wrong(StrCat("one of ", Joined(found->choices)));
        return wrong(found->choices_text, DidYouMeanSuffix(value, found->choices));
      }
      break;
  }
  values_[static_cast<size_t>(found - options_.begin())] = value;
  return absl::OkStatus();
}

std::string_view PassOptions::Find(std::string_view name) const {
  for (size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].name == name) return values_[i];
  }
  return "";
}

int64_t PassOptions::Int(std::string_view name) const {
  int64_t value = 0;
  return IsInt(Find(name), &value) ? value : 0;
}

std::string PassOptions::ToString() const {
  std::string text;
  for (size_t i = 0; i < options_.size(); ++i) {
    if (values_[i] != options_[i].default_text) {
      StrAppend(&text, text.empty() ? "{" : ",", options_[i].name, "=", values_[i]);
    }
  }
  return text.empty() ? text : text + "}";
}

void Pass::Count(std::string_view what, int64_t n) {
  if (n == 0) return;
  for (Statistic& statistic : statistics_) {
    if (statistic.what == what) {
      statistic.count += n;
      return;
    }
  }
  statistics_.push_back({what, n});
}

const PassContext& Pass::context() const {
  static const PassContext* const kEmpty = new PassContext();
  return context_ == nullptr ? *kEmpty : *context_;
}

}  // namespace hlokit
