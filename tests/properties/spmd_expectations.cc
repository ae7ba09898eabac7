// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/spmd_expectations.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "ir/text/printer.h"
#include "ir/types/shape.h"
#include "passes/analysis/trip_count.h"
#include "tests/properties/spmd_trees.h"

namespace hlokit::properties {
namespace {

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

int64_t NumberAfter(const std::string& text, std::string_view key) {
  const size_t at = text.find(key);
  return at == text.npos ? 0 : std::atoll(text.c_str() + at + key.size());
}

std::string KindOf(Instruction i) {
  std::string kind(i.opcode_text());
  constexpr std::string_view kStart = "-start";
  if (kind.ends_with(kStart)) kind.resize(kind.size() - kStart.size());
  return kind;
}

bool IsCounted(Instruction i) {
  if (i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional) return true;
  return HasTrait(i.opcode(), kCollective) && !HasTrait(i.opcode(), kEndsAsync) && !HasTrait(i.opcode(), kUpdatesAsync);
}

// Returns how often a run executes each computation, by id: loops with an unknown trip count once.
std::vector<int64_t> Executions(const Module& module) {
  std::vector<int64_t> times(module.computation_id_bound(), 0);
  times[module.entry().id().value] = 1;
  const std::vector<ComputationId> order = ComputationPostOrder(module);
  for (size_t k = order.size(); k-- > 0;) {
    const int64_t own = times[order[k].value];
    if (own == 0) continue;
    for (Instruction i : module.computation(order[k]).instructions()) {
      const int64_t trips = i.opcode() == Opcode::kWhile ? TripCount(i).value_or(1) : 1;
      i.ForEachCallee([&](Computation callee) {
        int64_t& sum = times[callee.id().value];
        sum = SaturatingAdd(sum, SaturatingMultiply(own, trips));
      });
    }
  }
  return times;
}

std::string AttrText(Instruction i, Attr attr) {
  std::string text;
  if (const std::optional<uint32_t> payload = i.payload(attr)) {
    TextWriter out(&text);
    PrintAttrValue(out, i.module(), {attr, *payload});
  }
  return text;
}

// ---- paths ----

Instruction FindByName(const Module& module, std::string_view name) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.name() == name) return i;
    }
  }
  return Instruction();
}

// The recorded programs number their instructions by themselves: names sort.0 and sort.2 of opcode sort are the first
// and the second sort. `names`: those that the facts have.
Instruction FindByNumber(const Module& module, const std::string& name, const std::vector<std::string>& names) {
  const std::string opcode = name.substr(0, name.find('.'));
  int64_t before = 0;
  const auto number = [&](const std::string& text) {
    return text.size() > opcode.size() ? std::atoll(text.c_str() + opcode.size() + 1) : -1;
  };
  for (const std::string& other : names) {
    if (other.substr(0, other.find('.')) == opcode && number(other) < number(name)) ++before;
  }
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode_text() == opcode && before-- == 0) return i;
    }
  }
  return Instruction();
}

Instruction FirstWithOpcode(const Module& module, std::string_view opcode) {
  for (Instruction i : module.entry().instructions()) {
    if (i.opcode_text() == opcode) return i;
  }
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode_text() == opcode) return i;
    }
  }
  return Instruction();
}

// Returns the values at a path: "first scan/0", "name sort.1/*", "root/1".
std::vector<Instruction> Resolve(const Module& module, std::string path, const std::vector<std::string>& names) {
  constexpr std::string_view kFirst = "first ", kName = "name ", kParameters = ".to_apply.parameters";
  const bool parameters = path.ends_with(kParameters);
  if (parameters) path.resize(path.size() - kParameters.size());
  std::istringstream steps(path);
  std::string step;
  std::getline(steps, step, '/');
  Instruction at;
  if (step == "root") at = module.entry().root();
  if (step.starts_with(kFirst)) at = FirstWithOpcode(module, step.substr(kFirst.size()));
  if (step.starts_with(kName)) {
    at = FindByName(module, step.substr(kName.size()));
    if (!at.valid()) at = FindByNumber(module, step.substr(kName.size()), names);
  }
  if (!at.valid()) return {};
  if (parameters) {
    std::vector<Instruction> found;
    at.ForEachCallee([&](Computation callee) {
      for (int64_t k = 0; k < callee.parameter_count(); ++k) found.push_back(callee.parameter(k));
    });
    return found;
  }
  while (std::getline(steps, step, '/')) {
    if (step == "*") {
      std::vector<Instruction> operands;
      for (Instruction operand : at.operands()) operands.push_back(operand);
      return operands;
    }
    const int64_t operand = std::atoll(step.c_str());
    if (operand >= at.operand_count()) return {};
    at = at.operand(operand);
  }
  return {at};
}

// Returns the names by which facts call instructions, each once.
std::vector<std::string> NamesIn(const std::vector<std::string>& facts) {
  std::vector<std::string> names;
  for (const std::string& fact : facts) {
    const std::vector<std::string> words = Words(fact);
    if (words.size() < 3 || words[1] != "name") continue;
    std::string name = words[2].substr(0, words[2].find('/'));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

bool HoldsDim(const std::string& value, const Module& module, const std::vector<std::string>& names) {
  const size_t last = value.rfind(' ');
  const size_t before = value.rfind(' ', last - 1);
  if (before == value.npos) return false;
  const int64_t size = std::atoll(value.c_str() + last), dim = std::atoll(value.c_str() + before);
  const std::vector<Instruction> found = Resolve(module, value.substr(0, before), names);
  return !found.empty() && std::all_of(found.begin(), found.end(), [&](Instruction i) {
    return i.shape().IsArray() && dim < i.shape().rank() && i.shape().dim(dim) == size;
  });
}

bool HoldsNot(const std::string& value, const Module& module, const std::vector<std::string>& names) {
  const size_t last = value.rfind(' ');
  const std::vector<Instruction> found = Resolve(module, value.substr(0, last), names);
  return std::none_of(found.begin(), found.end(),
                      [&](Instruction i) { return i.opcode_text() == value.substr(last + 1); });
}

// ---- collectives ----

bool HasShapes(std::vector<std::string> all, absl::Span<const std::string> wanted) {
  for (const std::string& shape : wanted) {
    const auto found = std::find(all.begin(), all.end(), WithoutLayouts(shape));
    if (found == all.end()) return false;
    all.erase(found);
  }
  return true;
}

bool HoldsExpect(const std::vector<std::string>& words, const CollectiveUses& uses) {
  const auto found = uses.find(words[0]);
  const CollectiveUse use = found == uses.end() ? CollectiveUse() : found->second;
  const int64_t count = std::atoll(words[1].c_str());
  if (words[1].ends_with('+') ? use.count < count : use.count != count) return false;
  return HasShapes(use.shapes, absl::MakeSpan(words).subspan(2));
}

bool HasOpcode(const Module& module, std::string_view opcode, bool entry_only) {
  if (opcode == "while" || opcode == "conditional") return false;  // those that were made are counted
  for (Computation c : module.computations()) {
    if (entry_only && c.id() != module.entry().id()) continue;
    for (Instruction i : c.instructions()) {
      if (i.opcode_text() == opcode) return true;
    }
  }
  return false;
}

bool HoldsGroups(const std::string& value, const Module& module, const CollectiveUses& uses,
                 const std::vector<std::string>& names) {
  const size_t open = value.find(" {");
  const std::string kind = value.substr(0, open), groups = value.substr(open + 1);
  constexpr std::string_view kName = "name ";
  if (kind.starts_with(kName)) {
    const std::vector<Instruction> found = Resolve(module, kind, names);
    return !found.empty() && AttrText(found[0], Attr::kReplicaGroups) == groups;
  }
  const auto found = uses.find(kind);
  return found != uses.end() &&
         std::find(found->second.groups.begin(), found->second.groups.end(), groups) != found->second.groups.end();
}

}  // namespace

SpmdCase ReadSpmdCase(const std::string& base) {
  SpmdCase read;
  read.name = base.substr(base.rfind('/') + 1);
  read.text = ReadWhole(base + ".hlo");
  std::ifstream facts(base + ".facts");
  for (std::string line; std::getline(facts, line);) {
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string key = line.substr(0, colon);
    const std::string value = line.substr(std::min(colon + 2, line.size()));
    if (key == "partitions") {
      read.partitions = std::atoll(value.c_str());
    } else if (key == "values") {
      read.values = value == "yes";
    } else if (key == "cost") {
      read.flops = NumberAfter(value, "flops=");
      read.bytes = NumberAfter(value, "bytes=");
    } else if (key == "run") {
      read.runs.push_back({value, {}, ""});
    } else if (key == "error") {
      if (read.runs.empty()) read.runs.emplace_back();
      read.runs.back().error = value;
    } else if (key != "source" && key != "test" && key != "closed") {
      if (read.runs.empty()) read.runs.emplace_back();
      read.runs.back().facts.push_back(line);
    }
  }
  return read;
}

CollectiveUses FindCollectives(const Module& module, bool entry_only) {
  CollectiveUses uses;
  const std::vector<int64_t> times = Executions(module);
  for (Computation c : module.computations()) {
    const int64_t executions = times[c.id().value];
    if (executions == 0 || (entry_only && c.id() != module.entry().id())) continue;
    for (Instruction i : c.instructions()) {
      if (!IsCounted(i)) continue;
      CollectiveUse& use = uses[KindOf(i)];
      ++use.count;
      use.shapes.push_back(WithoutLayouts(ToString(i.shape(), false)));
      use.groups.push_back(AttrText(i, Attr::kReplicaGroups));
      const Shape shape = i.opcode() == Opcode::kReduceScatter ? i.operand(0).shape() : i.shape();
      use.bytes = SaturatingAdd(use.bytes, SaturatingMultiply(ByteSize(shape), executions));
    }
  }
  return uses;
}

// An all-reduce of which a slice remains is a reduce-scatter: returns the uses with the former in place of the latter.
static CollectiveUses WithPairs(CollectiveUses uses, const Module& module, bool entry_only) {
  const auto found = uses.find("reduce-scatter");
  if (found == uses.end()) return uses;
  CollectiveUse& sums = uses["all-reduce"];
  for (Computation c : module.computations()) {
    if (entry_only && c.id() != module.entry().id()) continue;
    for (Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kReduceScatter) continue;
      ++sums.count;
      sums.shapes.push_back(WithoutLayouts(ToString(i.operand(0).shape(), false)));
      sums.groups.push_back(AttrText(i, Attr::kReplicaGroups));
    }
  }
  sums.bytes = SaturatingAdd(sums.bytes, found->second.bytes);
  uses.erase(found);
  return uses;
}

SpmdOutcome CheckFacts(const SpmdRun& run, const Module& whole, const Module& partitioned) {
  SpmdOutcome outcome;
  CollectiveUses all = FindCollectives(partitioned, false), entry = FindCollectives(partitioned, true);
  const CollectiveUses before = FindCollectives(whole, false);
  // Expectations are of loops and branches that were made.
  for (const auto& [kind, use] : before) {
    if (kind != "while" && kind != "conditional") continue;
    all[kind].count -= use.count;
    entry[kind].count -= std::min(entry[kind].count, use.count);
  }
  for (const auto& [kind, use] : all) {
    if (kind != "while" && kind != "conditional") outcome.bytes = SaturatingAdd(outcome.bytes, use.bytes);
  }
  const CollectiveUses paired = WithPairs(all, partitioned, false), paired_entry = WithPairs(entry, partitioned, true);
  int64_t missed_paired = 0;
  std::map<std::string, int64_t> given;  // bytes of a kind
  std::map<std::string, size_t> stated_shapes;
  std::set<std::string> complete;  // kinds of which the bytes are stated
  std::vector<std::string> trees;
  const std::vector<std::string> names = NamesIn(run.facts);
  for (const std::string& fact : run.facts) {
    const size_t colon = fact.find(": ");
    const std::string key = fact.substr(0, colon), value = fact.substr(colon + 2);
    if (key == "tree") {
      trees.push_back(value);
      continue;
    }
    const std::vector<std::string> words = Words(value);
    bool holds = true, holds_paired = false;
    if (key == "root") {
      holds = WithoutLayouts(ToString(partitioned.entry().root().shape(), false)) == WithoutLayouts(value);
    } else if (key == "expect" || key == "expect-entry") {
      holds = HoldsExpect(words, key == "expect" ? all : entry);
      holds_paired = HoldsExpect(words, key == "expect" ? paired : paired_entry);
      // XLA's loop over parts sends in a branch, which the last step does not take. One that makes the last step behind
      // the loop sends as much without.
      if (words[0] == "conditional" && words.size() == 2 && all.contains("while") && all.at("while").count > 0) {
        holds = true;
      }
      int64_t bytes = 0;
      for (size_t k = 2; k < words.size(); ++k) bytes = SaturatingAdd(bytes, BytesOfText(words[k]));
      // Without `bytes:` the stated shapes are a lower bound.
      if (words[0] != "while" && words[0] != "conditional" && given.emplace(words[0], bytes).second) {
        stated_shapes[words[0]] = words.size() - 2;
      }
    } else if (key == "forbid" || key == "forbid-entry") {
      const auto occurs_in = [&](const CollectiveUses& uses, const std::string& kind) {
        return uses.contains(kind) ? uses.at(kind).count > 0 : HasOpcode(partitioned, kind, key == "forbid-entry");
      };
      const auto none_of = [&](const CollectiveUses& uses, bool pairs) {
        return std::none_of(words.begin(), words.end(), [&](const std::string& kind) {
          return !(pairs && kind == "reduce-scatter") && occurs_in(uses, kind);
        });
      };
      holds = none_of(key == "forbid" ? all : entry, false);
      holds_paired = none_of(key == "forbid" ? paired : paired_entry, true);
    } else if (key == "bytes") {
      given[words[0]] = std::atoll(words[1].c_str());
      complete.insert(words[0]);
    } else if (key == "dim") {
      holds = HoldsDim(value, partitioned, names);
    } else if (key == "not") {
      holds = HoldsNot(value, partitioned, names);
    } else if (key == "groups") {
      holds = HoldsGroups(value, partitioned, all, names);
    } else {
      holds = false;  // a line that this program does not know
    }
    if (!holds) outcome.missed.push_back(fact);
    missed_paired += holds || holds_paired ? 0 : 1;
  }
  std::vector<int64_t> parameters;
  for (int64_t p = 0; p < partitioned.entry().parameter_count(); ++p) {
    parameters.push_back(ByteSize(partitioned.entry().parameter(p).shape()));
  }
  // Of a kind, the collectives whose shapes are stated may be any of those in the trees: the others are at least the
  // smallest ones.
  for (auto& [kind, least] : LeastBytes(trees, parameters)) {
    const size_t stated = stated_shapes[kind];
    std::sort(least.begin(), least.end());
    int64_t others = 0, all_of_kind = 0;
    for (size_t k = 0; k < least.size(); ++k) {
      all_of_kind = SaturatingAdd(all_of_kind, least[k]);
      if (k + stated < least.size()) others = SaturatingAdd(others, least[k]);
    }
    int64_t& bytes = given[kind];
    if (!complete.contains(kind)) bytes = std::max(SaturatingAdd(bytes, others), all_of_kind);
  }
  for (const auto& [kind, bytes] : given) outcome.expected_bytes = SaturatingAdd(outcome.expected_bytes, bytes);
  outcome.met = outcome.missed.empty();
  outcome.beaten = !outcome.met && (missed_paired == 0 || outcome.bytes <= outcome.expected_bytes);
  return outcome;
}

}  // namespace hlokit::properties
