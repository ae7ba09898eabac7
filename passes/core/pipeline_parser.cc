// SPDX-License-Identifier: Apache-2.0
// Parses pipelines. Named pipelines expand in place, on a stack of texts.
#include <algorithm>
#include <cctype>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "passes/core/pipeline.h"

namespace hlokit {

class PipelineParser {
 public:
  explicit PipelineParser(const PassRegistry& registry) : registry_(registry) {}

  absl::StatusOr<Pipeline> Parse(std::string_view text) {
    pipeline_.nodes_.emplace_back();
    texts_.push_back({text, 0, 0, {}, {}});
    groups_ = {0};
    SkipWhitespace();
    if (AtEnd()) return std::move(pipeline_);
    while (true) {
      if (absl::Status status = Item(); !status.ok()) return status;
      if (absl::StatusOr<bool> more = AfterItem(); !more.ok() || !*more) {
        if (!more.ok()) return more.status();
        return std::move(pipeline_);
      }
    }
  }

 private:
  using Node = Pipeline::Node;
  // An option of a named pipeline, for every pass in it with an option of that name.
  struct SharedOption {
    std::string_view name;
    std::string_view value;
    bool taken = false;
  };
  // A text being parsed, and the number of open groups at its start.
  struct Source {
    std::string_view text;
    size_t at;
    size_t groups;
    std::string_view name = {};  // of the pipeline
    std::vector<SharedOption> options = {};
  };

  std::string_view& text() { return texts_.back().text; }
  size_t& at() { return texts_.back().at; }
  void SkipWhitespace() {
    while (at() < text().size() && std::isspace(static_cast<unsigned char>(text()[at()]))) ++at();
  }
  bool AtEnd() { return at() >= text().size(); }
  bool Eat(char c) {
    SkipWhitespace();
    if (AtEnd() || text()[at()] != c) return false;
    ++at();
    return true;
  }
  std::string_view Word(std::string_view stop) {
    SkipWhitespace();
    const size_t begin = at();
    at() = std::min(text().find_first_of(stop, begin), text().size());
    std::string_view word = text().substr(begin, at() - begin);
    while (!word.empty() && std::isspace(static_cast<unsigned char>(word.back()))) word.remove_suffix(1);
    return word;
  }
  // The value of an option: text up to a `,` or `}` that is neither in brackets nor in quotes.
  std::string_view Value() {
    SkipWhitespace();
    const size_t begin = at();
    size_t depth = 0;
    char quote = '\0';
    for (; !AtEnd(); ++at()) {
      const char c = text()[at()];
      if (quote != '\0') {
        if (c == '\\' && at() + 1 < text().size()) {
          ++at();
        } else if (c == quote) {
          quote = '\0';
        }
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '(' || c == '[' || c == '{') {
        ++depth;
      } else if (depth == 0 && (c == ',' || c == '}')) {
        break;
      } else if (depth > 0 && (c == ')' || c == ']' || c == '}')) {
        --depth;
      }
    }
    std::string_view value = text().substr(begin, at() - begin);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back()))) value.remove_suffix(1);
    return value;
  }
  template <typename... Pieces>
  absl::Status Error(const Pieces&... pieces) {
    return absl::InvalidArgumentError(StrCat("pipeline, column ", at() + 1, ": ", pieces...));
  }

  uint32_t NewNode(Node node) {
    const uint32_t id = static_cast<uint32_t>(pipeline_.nodes_.size());
    pipeline_.nodes_.push_back(std::move(node));
    pipeline_.nodes_[groups_.back()].children.push_back(id);
    return id;
  }

  // Parses a pass, or the start of a group.
  absl::Status Item() {
    while (true) {
      const std::string_view name = Word(",(){}*");
      if (Eat('(')) {
        Node group;
        group.label = std::string(name);
        groups_.push_back(NewNode(std::move(group)));
        continue;  // the group's first item follows
      }
      if (name.empty()) {
        constexpr size_t kShown = 40;
        const std::string_view before = text().substr(0, at());
        return Error("expected a pass", before.empty() ? "" : " after `",
                     before.substr(before.size() - std::min(before.size(), kShown)), before.empty() ? "" : "`");
      }
      if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::isspace(c); })) {
        return Error("expected `,` between passes in `", name, "`");
      }
      if (const PassInfo* info = registry_.Find(name)) return PassItem(*info);
      const NamedPipeline* named = registry_.FindPipeline(name);
      if (named == nullptr) return UnknownName(name);
      Node group;
      group.label = std::string(named->name);
      group.named = true;
      group.skip_if_scheduled = named->skip_if_scheduled;
      group.skip_if_partitioned = named->skip_if_partitioned;
      std::vector<SharedOption> shared;
      if (absl::Status status = OptionList(name,
                                           [&](std::string_view option, std::string_view value) {
                                             shared.push_back({option, value});
                                             StrAppend(&group.options, shared.size() == 1 ? "{" : ",", option, "=",
                                                       value);
                                             return absl::OkStatus();
                                           });
          !status.ok()) {
        return status;
      }
      if (!shared.empty()) group.options += '}';
      group.repeat = Eat('*');
      const uint32_t id = NewNode(std::move(group));
      texts_.push_back({named->text, 0, groups_.size(), named->name, std::move(shared)});
      groups_.push_back(id);
    }
  }

  // Calls `set` for each option in braces, if there are any.
  template <typename Set>
  absl::Status OptionList(std::string_view owner, const Set& set) {
    if (!Eat('{') || Eat('}')) return absl::OkStatus();
    std::vector<std::string_view> given;
    do {
      const std::string_view name = Word("=,{}");
      if (std::find(given.begin(), given.end(), name) != given.end()) {
        return Error("duplicate option `", name, "` of `", owner, "`");
      }
      given.push_back(name);
      std::string_view value = "true";
      if (Eat('=')) value = Value();
      if (absl::Status status = set(name, value); !status.ok()) return status;
    } while (Eat(','));
    return Eat('}') ? absl::OkStatus() : Error("expected `}` after the options of `", owner, "`");
  }

  static bool HasOption(const PassInfo& info, std::string_view name) {
    return std::any_of(info.options.begin(), info.options.end(),
                       [name](const OptionInfo& option) { return SamePassName(option.name, name); });
  }

  absl::Status PassItem(const PassInfo& info) {
    PassOptions options(info.options);
    const auto set = [&](std::string_view name, std::string_view value) {
      const absl::Status status = options.Set(name, value);
      return status.ok() ? status : Error("pass `", info.name, "`: ", std::string(status.message()));
    };
    if (absl::Status status = OptionList(info.name, set); !status.ok()) return status;
    // Options of enclosing pipelines, the outermost last: the user's text takes precedence.
    for (size_t t = texts_.size(); t-- > 0;) {
      for (SharedOption& shared : texts_[t].options) {
        if (!HasOption(info, shared.name)) continue;
        shared.taken = true;
        if (absl::Status status = set(shared.name, shared.value); !status.ok()) return status;
      }
    }
    Node node;
    node.info = &info;
    std::vector<std::string>& texts = pipeline_.texts_;
    std::string pass_text = StrCat(info.name, options.ToString());
    node.text = static_cast<uint32_t>(std::find(texts.begin(), texts.end(), pass_text) - texts.begin());
    if (node.text == texts.size()) texts.push_back(std::move(pass_text));
    node.pass = PassRegistry::Make(info, std::move(options));
    node.repeat = Eat('*');
    NewNode(std::move(node));
    return absl::OkStatus();
  }

  // Closes the groups that end here. Returns false at the end of the text, true before another item.
  absl::StatusOr<bool> AfterItem() {
    while (true) {
      if (Eat(',')) return true;
      const bool inner = groups_.size() > texts_.back().groups + 1;
      if (inner && Eat(')')) {
        pipeline_.nodes_[groups_.back()].repeat = Eat('*');
        groups_.pop_back();
        continue;
      }
      SkipWhitespace();
      if (!AtEnd()) return Error("expected `,` between passes, found `", text().substr(at(), 1), "`");
      if (inner) return Error("expected `)` at the end of a group");
      if (texts_.size() == 1) return false;
      for (const SharedOption& shared : texts_.back().options) {
        if (!shared.taken) {
          return absl::InvalidArgumentError(
              StrCat("no pass of the pipeline `", texts_.back().name, "` has an option `", shared.name, "`"));
        }
      }
      groups_.pop_back();
      texts_.pop_back();
    }
  }

  absl::Status UnknownName(std::string_view name) {
    std::vector<std::string_view> names;
    const auto add = [&names](std::string_view known) {
      names.push_back(known);
      for (std::string_view alias : PassRegistry::AliasesOf(known)) names.push_back(alias);
    };
    for (const PassInfo* info : registry_.passes()) add(info->name);
    for (const NamedPipeline& pipeline : registry_.pipelines()) add(pipeline.name);
    std::string dashed(name);
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    const std::string near = DidYouMeanSuffix(dashed, names);
    return absl::InvalidArgumentError(
        StrCat("unknown pass `", name, "`", near.empty() ? "; hlo-opt --list-passes lists them" : near));
  }

  const PassRegistry& registry_;
  Pipeline pipeline_;
  std::vector<Source> texts_;
  std::vector<uint32_t> groups_;  // open ones
};

absl::StatusOr<Pipeline> Pipeline::Parse(std::string_view text, const PassRegistry& registry) {
  return PipelineParser(registry).Parse(text);
}

}  // namespace hlokit
