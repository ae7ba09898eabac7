// SPDX-License-Identifier: Apache-2.0
#include "passes/view/subgraph.h"

#include <algorithm>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit {
namespace {

absl::Status TooMany(std::string_view what, size_t limit, std::string_view remedy) {
  return absl::ResourceExhaustedError(
      StrCat(what, " has more than ", limit, " instructions, the limit of --max-instructions; ", remedy));
}

absl::Status AddComputation(Computation computation, size_t limit, Subgraph* result) {
  for (const Instruction i : computation.instructions()) {
    if (result->instructions.size() == limit) {
      return TooMany(StrCat("`", computation.name(), "`"), limit,
                     "take the neighborhood of an instruction (--of and --depth) or the page");
    }
    result->instructions.push_back(i);
  }
  return absl::OkStatus();
}

// Adds what is at most `hops` operands or users away from the center, breadth first.
absl::Status AddNeighborhood(const SubgraphOptions& options, Subgraph* result) {
  std::vector<Instruction> found = {result->center};
  absl::flat_hash_set<uint32_t> seen = {result->center.id().value};
  size_t begin = 0;
  for (int64_t hop = 0; hop < options.hops && begin < found.size(); ++hop) {
    const size_t end = found.size();
    for (; begin < end; ++begin) {
      const Instruction i = found[begin];
      for (const Instruction operand : i.operands()) {
        if (seen.insert(operand.id().value).second) found.push_back(operand);
      }
      for (const auto use : i.uses()) {
        if (seen.insert(use.user.id().value).second) found.push_back(use.user);
        if (found.size() > options.max_instructions) break;
      }
      if (found.size() > options.max_instructions) {
        return TooMany(StrCat("the neighborhood of `", result->center.name(), "`"), options.max_instructions,
                       "take a smaller --depth");
      }
    }
  }
  for (const Instruction i : result->center.parent().instructions()) {
    if (seen.contains(i.id().value)) result->instructions.push_back(i);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Subgraph> SelectSubgraph(const Module& module, const SubgraphOptions& options) {
  Subgraph result;
  std::string_view name = options.name;
  if (!name.empty() && name.front() == '%') name.remove_prefix(1);
  if (name.empty()) {
    result.title = std::string(module.entry().name());
    if (absl::Status s = AddComputation(module.entry(), options.max_instructions, &result); !s.ok()) return s;
    return result;
  }
  std::vector<std::string_view> names;
  for (const Computation computation : module.computations()) {
    if (computation.name() == name && options.hops == 0) {
      result.title = std::string(name);
      if (absl::Status s = AddComputation(computation, options.max_instructions, &result); !s.ok()) return s;
      return result;
    }
    names.push_back(computation.name());
    for (const Instruction i : computation.instructions()) {
      names.push_back(i.name());
      if (i.name() == name) result.center = i;
    }
  }
  if (!result.center.valid()) {
    return absl::NotFoundError(
        StrCat("there is no computation or instruction `", name, "`", DidYouMeanSuffix(name, names)));
  }
  result.title = StrCat(name, " in ", result.center.parent().name());
  if (options.hops > 0) {
    if (absl::Status s = AddNeighborhood(options, &result); !s.ok()) return s;
    return result;
  }
  const std::vector<Computation> callees = result.center.called_computations();
  if (callees.empty()) {
    return absl::InvalidArgumentError(
        StrCat("`", name, "` calls no computation; --depth=1 shows it with its operands and users"));
  }
  std::vector<Computation> added;
  for (const Computation callee : callees) {
    if (std::find(added.begin(), added.end(), callee) != added.end()) continue;
    added.push_back(callee);
    if (absl::Status s = AddComputation(callee, options.max_instructions, &result); !s.ok()) return s;
  }
  result.center = Instruction();
  return result;
}

}  // namespace hlokit
