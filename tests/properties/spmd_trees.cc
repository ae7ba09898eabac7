// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/spmd_trees.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "ir/core/saturating.h"
#include "ir/types/element_type.h"

namespace hlokit::properties {
namespace {

struct Node {
  std::string op, shape, text;
  std::vector<Node> operands;
};

class TreeParser {
 public:
  explicit TreeParser(std::string_view text) : text_(text) {}

  Node Parse() {
    Node node;
    const size_t begin = at_;
    while (at_ < text_.size() && std::string_view(":(,)").find(text_[at_]) == std::string_view::npos) ++at_;
    node.op = text_.substr(begin, at_ - begin);
    if (at_ < text_.size() && text_[at_] == ':') node.shape = Shape();
    if (at_ < text_.size() && text_[at_] == '(') {
      do {
        ++at_;
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
        node.operands.push_back(Parse());
      } while (at_ < text_.size() && text_[at_] == ',');
      if (at_ < text_.size()) ++at_;  // the parenthesis
    }
    node.text = text_.substr(begin, at_ - begin);
    return node;
  }

 private:
  // A shape ends at a parenthesis or comma outside of brackets; that of a tuple begins with a parenthesis.
  std::string Shape() {
    const size_t begin = ++at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && at_ > begin && std::string_view("(,)").find(c) != std::string_view::npos) break;
      depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  size_t at_ = 0;
};

bool IsOneOf(std::string_view op, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

bool IsCollective(std::string_view op) {
  return IsOneOf(op, {"all-gather", "all-reduce", "all-to-all", "collective-permute", "collective-broadcast"});
}

// The result has the bytes of each operand, or of those listed.
bool KeepsBytes(std::string_view op) {
  return IsOneOf(op, {"copy", "collective-permute", "collective-broadcast", "all-reduce", "all-to-all", "reshape",
                      "transpose", "reverse", "negate", "abs", "add", "subtract", "multiply", "maximum", "minimum"});
}

class Trees {
 public:
  Trees(const std::vector<std::string>& lines, const std::vector<int64_t>& parameters) : parameters_(parameters) {
    for (const std::string& line : lines) {
      const size_t equal = line.find(" = ");
      if (equal == line.npos) continue;
      const std::string path = line.substr(0, equal);
      Node& tree = trees_[path];
      tree = TreeParser(std::string_view(line).substr(equal + 3)).Parse();
      // "name all-to-all.1 = _:s32[8]" has the opcode in its path.
      const size_t space = path.find(' ');
      if (tree.op == "_" && space != path.npos) tree.op = path.substr(space + 1, path.find('.') - space - 1);
    }
  }

  std::map<std::string, std::vector<int64_t>> Count() {
    for (const auto& [path, tree] : trees_) {
      const bool entry = path.find('.') == path.npos;
      // What a loop returns has the shapes of what it gets, a branch that of the conditional.
      if (path.ends_with(".body/root") && tree.op == "tuple") {
        for (size_t k = 0; k < tree.operands.size(); ++k) {
          Visit(tree.operands[k], AtPath(path + "/" + std::to_string(k)), entry);
        }
      } else {
        Visit(tree, AtPath(path), entry);
      }
    }
    return std::move(bytes_);
  }

 private:
  // Returns what the surroundings say of the bytes at a path; zero if nothing.
  int64_t AtPath(const std::string& path) const {
    constexpr std::string_view kBody = ".body/root/", kBranch = ".branch", kRoot = "/root";
    const size_t branch = path.rfind(kBranch);
    if (branch != path.npos && path.ends_with(kRoot)) return AtPath(path.substr(0, branch));
    const size_t body = path.rfind(kBody);
    if (body == path.npos) return 0;
    const Node* loop = Find(path.substr(0, body));
    const size_t element = static_cast<size_t>(std::atoll(path.c_str() + body + kBody.size()));
    if (loop == nullptr || loop->op != "while" || loop->operands.size() != 1) return 0;
    const Node& state = loop->operands[0];
    return element < state.operands.size() ? Least(state.operands[element], true) : 0;
  }

  const Node* Find(const std::string& path) const {
    for (const auto& [start, tree] : trees_) {
      if (path != start && !path.starts_with(start + "/")) continue;
      const Node* at = &tree;
      std::istringstream steps(path.substr(std::min(start.size() + 1, path.size())));
      for (std::string step; at != nullptr && std::getline(steps, step, '/');) {
        const size_t k = static_cast<size_t>(std::atoll(step.c_str()));
        at = k < at->operands.size() ? &at->operands[k] : nullptr;
      }
      if (at != nullptr) return at;
    }
    return nullptr;
  }

  int64_t Least(const Node& node, bool entry) const {
    if (!node.shape.empty()) return BytesOfText(node.shape);
    if (node.op == "parameter" && entry && node.operands.size() == 1) {
      const size_t number = static_cast<size_t>(std::atoll(node.operands[0].op.c_str()));
      return number < parameters_.size() ? parameters_[number] : 0;
    }
    int64_t least = 0;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const bool counts = KeepsBytes(node.op) || (node.op == "select" && k > 0) || (node.op == "scatter" && k == 0) ||
                          (node.op == "dynamic-update-slice" && k == 0) || node.op == "all-gather";
      if (counts) least = std::max(least, Least(node.operands[k], entry));
    }
    return node.op == "all-gather" ? SaturatingMultiply(least, 2) : least;
  }

  void Visit(const Node& node, int64_t known, bool entry) {
    known = std::max(known, Least(node, entry));
    if (IsCollective(node.op) && seen_.insert(node.text).second) {
      bytes_[node.op].push_back(known);
    }
    for (const Node& operand : node.operands) Visit(operand, KeepsBytes(node.op) ? known : 0, entry);
  }

  const std::vector<int64_t>& parameters_;
  std::map<std::string, Node> trees_;
  std::set<std::string> seen_;
  std::map<std::string, std::vector<int64_t>> bytes_;
};

}  // namespace

std::string WithoutLayouts(std::string_view shape) {
  std::string text;
  int depth = 0;
  for (const char c : shape) {
    if (c == '{') ++depth;
    if (depth == 0 && c != ' ') text += c;
    if (c == '}') --depth;
  }
  return text;
}

int64_t BytesOfText(std::string_view shape) {
  const std::string text = WithoutLayouts(shape);
  int64_t bytes = 0;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '(' || text[at] == ')' || text[at] == ',') {
      ++at;
      continue;
    }
    const size_t open = std::min(text.find('[', at), text.size());
    const std::optional<ElementType> type = ElementTypeFromText(text.substr(at, open - at));
    const size_t close = std::min(text.find(']', open), text.size());
    int64_t elements = 1;
    std::istringstream dims(text.substr(std::min(open + 1, text.size()), close - std::min(open + 1, close)));
    for (std::string dim; std::getline(dims, dim, ',');)
      elements = SaturatingMultiply(elements, std::atoll(dim.c_str()));
    bytes = SaturatingAdd(bytes, SaturatingMultiply(elements, type ? BytesOf(*type) : 0));
    at = close + 1;
  }
  return bytes;
}

std::map<std::string, std::vector<int64_t>> LeastBytes(const std::vector<std::string>& trees,
                                                       const std::vector<int64_t>& parameters) {
  return Trees(trees, parameters).Count();
}

}  // namespace hlokit::properties
