// SPDX-License-Identifier: Apache-2.0
// Sharding rules that the text states, in Shardy's form:
//
//   #sdy.op_sharding_rule<([i, kl], [kl, j])->([i, j]) {i=8, j=8, k=2, l=4} reduction={k, l}>
//
// A dimension is a list of factors without commas, major first: letters, from the nineteenth on z_1, z_2, ….
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "passes/sharding/rule_builder.h"

namespace hlokit::sharding {
namespace {

class RuleTextParser {
 public:
  explicit RuleTextParser(std::string_view text) : text_(text) {}

  bool Parse(RuleBuilder& b) {
    const size_t begin = text_.find('<');
    if (begin == text_.npos) return false;
    at_ = begin + 1;
    std::vector<Tensor> operands, results;
    if (!Tensors(&operands) || !Eat("->") || !Tensors(&results) || !Sizes()) return false;
    while (!Eat(">")) {
      Eat(",");
      if (Eat("custom")) continue;
      if (Eat("reduction=")) {
        if (!Kinds(FactorKind::kReduced)) return false;
      } else if (Eat("need_replication=") || Eat("permutation=")) {
        if (!Kinds(FactorKind::kWhole)) return false;
      } else if (Eat("blocked_propagation=")) {
        if (!Kinds(std::nullopt)) return false;
      } else {
        return false;
      }
    }
    if (static_cast<int64_t>(operands.size()) != b.operand_count() ||
        static_cast<int64_t>(results.size()) != b.result_count()) {
      return false;
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!Fits(operands[i], b.operand(static_cast<int64_t>(i)))) return false;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!Fits(results[i], b.result(static_cast<int64_t>(i)))) return false;
    }
    // What an operand is divided by and no result has, or the other way around, is needed whole: the call does not say
    // that it adds anything up.
    for (auto& [name, factor] : factors_) {
      if (factor.kind == FactorKind::kParallel && Has(operands, name) != Has(results, name)) {
        factor.kind = FactorKind::kWhole;
      }
    }
    std::map<std::string, int32_t> added;
    for (const auto& [name, factor] : factors_) added[name] = b.Add(factor.size, factor.kind);
    for (size_t i = 0; i < operands.size(); ++i) {
      for (size_t d = 0; d < operands[i].size(); ++d) {
        for (const std::string& name : operands[i][d]) {
          b.Operand(static_cast<int64_t>(i), static_cast<int64_t>(d), added[name]);
        }
      }
    }
    for (size_t i = 0; i < results.size(); ++i) {
      for (size_t d = 0; d < results[i].size(); ++d) {
        for (const std::string& name : results[i][d]) {
          b.Result(static_cast<int64_t>(i), static_cast<int64_t>(d), added[name]);
        }
      }
    }
    return true;
  }

 private:
  using Tensor = std::vector<std::vector<std::string>>;  // names of the factors of each dimension

  bool Eat(std::string_view word) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  // "i" or "z_12"; empty at the end of a list of factors.
  std::string Name() {
    if (at_ >= text_.size() || text_[at_] < 'a' || text_[at_] > 'z') return "";
    std::string name(1, text_[at_++]);
    if (at_ >= text_.size() || text_[at_] != '_') return name;
    do {
      name += text_[at_++];
    } while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9');
    return name;
  }

  // "([i, k], [])"
  bool Tensors(std::vector<Tensor>* tensors) {
    if (!Eat("(")) return false;
    if (Eat(")")) return true;
    do {
      Tensor& tensor = tensors->emplace_back();
      if (!Eat("[")) return false;
      if (Eat("]")) continue;
      do {
        std::vector<std::string>& names = tensor.emplace_back();
        Eat(" ");
        for (std::string name = Name(); !name.empty(); name = Name()) names.push_back(std::move(name));
        if (names.empty()) return false;
      } while (Eat(","));
      if (!Eat("]")) return false;
    } while (Eat(","));
    return Eat(")");
  }

  // "{i=8, k=2}"
  bool Sizes() {
    if (!Eat("{")) return false;
    if (Eat("}")) return true;
    do {
      Eat(" ");
      const std::string name = Name();
      int64_t size = 0;
      if (name.empty() || !Eat("=")) return false;
      const char* const end = text_.data() + text_.size();
      const auto [next, error] = std::from_chars(text_.data() + at_, end, size);
      if (error != std::errc() || size < 1 || !factors_.emplace(name, Factor{size}).second) return false;
      at_ = static_cast<size_t>(next - text_.data());
    } while (Eat(","));
    return Eat("}");
  }

  // "{i, k}"; nullopt: the factors keep their kind.
  bool Kinds(std::optional<FactorKind> kind) {
    if (!Eat("{")) return false;
    if (Eat("}")) return true;
    do {
      Eat(" ");
      const auto found = factors_.find(Name());
      if (found == factors_.end()) return false;
      if (kind) found->second.kind = *kind;
    } while (Eat(","));
    return Eat("}");
  }

  // Returns true if the sizes of factors multiply to those of the array, which has each once.
  bool Fits(const Tensor& tensor, Shape array) const {
    if (!array.IsArray() || array.rank() != static_cast<int64_t>(tensor.size())) return false;
    std::vector<std::string> used;
    for (size_t d = 0; d < tensor.size(); ++d) {
      int64_t size = 1;
      for (const std::string& name : tensor[d]) {
        const auto found = factors_.find(name);
        if (found == factors_.end() || std::find(used.begin(), used.end(), name) != used.end()) return false;
        if (__builtin_mul_overflow(size, found->second.size, &size)) return false;
        used.push_back(name);
      }
      if (size != array.dim(static_cast<int64_t>(d))) return false;
    }
    return true;
  }

  static bool Has(const std::vector<Tensor>& tensors, const std::string& name) {
    for (const Tensor& tensor : tensors) {
      for (const std::vector<std::string>& names : tensor) {
        if (std::find(names.begin(), names.end(), name) != names.end()) return true;
      }
    }
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::map<std::string, Factor> factors_;
};

}  // namespace

bool MakeStatedRule(RuleBuilder& b, std::string_view text) { return RuleTextParser(text).Parse(b); }

}  // namespace hlokit::sharding
