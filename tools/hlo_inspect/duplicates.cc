// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/duplicates.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/graph/module_statistics.h"
#include "ir/graph/side_effects.h"
#include "ir/graph/traversal.h"
#include "tools/hlo_inspect/query.h"

namespace hlokit::cli {
namespace {

struct DuplicatesFlags : InspectFlags {
  size_t top = 20;
};

struct Duplicate {
  Instruction instruction;
  std::vector<std::string> apart;  // what keeps it from being merged with the first; empty: nothing
};

struct Group {
  Instruction first;
  std::vector<Duplicate> others;
  int64_t bytes = 0;  // of the results of the others
};

// Attributes that keep instructions apart, but say nothing of what they compute.
bool IsApart(Attr attr) {
  return attr == Attr::kSharding || attr == Attr::kControlPredecessors || attr == Attr::kChannelId;
}

// Adds the attributes of `a` that `b` does not have with the same value. Callees are equal, as the digests are.
void AddOtherAttributes(Instruction a, Instruction b, std::vector<std::string>* apart) {
  for (const AttrValue& attr : a.attrs()) {
    if (NamesComputations(attr.attr) || InfoOf(attr.attr).category == AttrCategory::kAnnotation) continue;
    const std::string name(ToString(attr.attr));
    if (b.payload(attr.attr) == std::optional<uint32_t>(attr.payload)) continue;
    if (std::find(apart->begin(), apart->end(), name) == apart->end()) apart->push_back(name);
  }
}

class Finder {
 public:
  explicit Finder(const Module& module)
      : module_(module), digests_(module, {}), effects_(module), roles_(RolesOf(module)) {}

  // Returns the groups, those with most bytes first. Instructions whose operands are duplicates themselves are none.
  std::vector<Group> Find() {
    std::vector<Group> groups;
    for (Computation c : module_.computations()) {
      std::map<std::vector<uint64_t>, size_t> by_key;  // indices of groups
      for (Instruction i : c.instructions()) {
        if (i.opcode() == Opcode::kParameter) continue;
        const auto [found, added] = by_key.emplace(KeyOf(i), groups.size());
        if (added) {
          groups.push_back({i, {}, 0});
          continue;
        }
        Group& group = groups[found->second];
        group.bytes = SaturatingAdd(group.bytes, i.shape().IsArray() ? ByteSize(i.shape()) : 0);
        group.others.push_back({i, Apart(group.first, i)});
      }
    }
    groups.erase(std::remove_if(groups.begin(), groups.end(), [](const Group& g) { return g.others.empty(); }),
                 groups.end());
    std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.bytes > b.bytes; });
    return groups;
  }

 private:
  // Returns what the instruction computes: of instructions with the same operands and attributes the same.
  std::vector<uint64_t> KeyOf(Instruction i) const {
    std::vector<uint64_t> operands,
        key = {static_cast<uint64_t>(i.opcode()), i.record().payload, i.shape().WithoutLayout().id().value};
    for (const Instruction operand : i.operands()) operands.push_back(operand.id().value);
    if (operands.size() == 2 && HasTrait(i.opcode(), kCommutative)) std::sort(operands.begin(), operands.end());
    key.insert(key.end(), operands.begin(), operands.end());
    for (const AttrValue& attr : i.attrs()) {
      if (IsApart(attr.attr) || InfoOf(attr.attr).category == AttrCategory::kAnnotation) continue;
      key.push_back(static_cast<uint64_t>(attr.attr));
      if (!NamesComputations(attr.attr)) key.push_back(attr.payload);
    }
    // Callees with different names may be equal.
    for (const Computation callee : i.called_computations()) {
      key.push_back(digests_.of(callee.id()).high);
      key.push_back(digests_.of(callee.id()).low);
    }
    return key;
  }

  std::vector<std::string> Apart(Instruction first, Instruction other) {
    std::vector<std::string> apart;
    if (roles_.fusion[other.parent().id().value] != 0) apart.push_back("it is in a fusion");
    if (roles_.async[other.parent().id().value] != 0) apart.push_back("it is in an asynchronous computation");
    if (effects_.Of(first) || effects_.Of(other)) apart.push_back("side effect");
    if (first.shape().id().value != other.shape().id().value) apart.push_back("layout");
    AddOtherAttributes(first, other, &apart);
    AddOtherAttributes(other, first, &apart);
    const std::string control(ToString(Attr::kControlPredecessors));
    const bool has = std::find(apart.begin(), apart.end(), control) != apart.end();
    if (!has && (other.has(Attr::kControlPredecessors) || !other.control_successors().empty()))
      apart.push_back(control);
    return apart;
  }

  const Module& module_;
  const FingerprintTable digests_;
  SideEffects effects_;
  const ComputationRoles roles_;
};

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) StrAppend(&text, text.empty() ? "" : ", ", word);
  return text;
}

void Write(const DuplicatesFlags& flags, const InputPart& part, const Module& module, const std::vector<Group>& groups,
           TextWriter* out, JsonWriter* json) {
  const TextLines lines(part.source->text());
  if (flags.json) {
    BeginModule(part, module, json);
    json->Key("groups").BeginArray();
    for (const Group& group : groups) {
      json->BeginObject().Member("bytes", group.bytes);
      WriteMembers(lines, group.first, json);
      json->Key("others").BeginArray();
      for (const Duplicate& other : group.others) {
        json->BeginObject().Key("apart").BeginArray();
        for (const std::string& reason : other.apart) json->Value(reason);
        json->EndArray();
        WriteMembers(lines, other.instruction, json);
        json->EndObject();
      }
      json->EndArray().EndObject();
    }
    json->EndArray().EndObject();
    return;
  }
  int64_t others = 0;
  for (const Group& group : groups) others += static_cast<int64_t>(group.others.size());
  for (size_t k = 0; k < std::min(flags.top, groups.size()); ++k) {
    const Group& group = groups[k];
    *out << LineOf(part, lines, group.first) << "\n";
    for (const Duplicate& other : group.others) {
      *out << "  " << other.instruction.name() << "  "
           << (other.apart.empty() ? std::string("nothing keeps it apart: cse merges it")
                                   : StrCat("apart by ", Joined(other.apart)))
           << "\n";
    }
  }
  if (groups.size() > flags.top) *out << "... " << static_cast<int64_t>(groups.size() - flags.top) << " more (--top)\n";
  *out << others << (others == 1 ? " duplicate of " : " duplicates of ") << static_cast<int64_t>(groups.size())
       << (groups.size() == 1 ? " instruction" : " instructions") << " in " << part.label() << "\n";
}

int Run(const DuplicatesFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      Write(flags, part, module, Finder(module).Find(), &out, &json);
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddDuplicatesCommand(CLI::App* app) {
  auto flags = std::make_shared<DuplicatesFlags>();
  CLI::App* command = app->add_subcommand(
      "duplicates", "list instructions that compute the same from the same operands, and what keeps them apart");
  AddNumber(command, "--top", &flags->top, "limit on the groups; the JSON has all")->default_str("20");
  flags->AddTo(command);
  command->footer(
      "Notes:\n"
      "  The first of a group is the one that the pass cse would keep. An attribute\n"
      "  is named if the two do not have it alike; layout is that of the result.\n\n"
      "Examples:\n"
      "  hlo-inspect duplicates module.hlo\n"
      "  hlo-opt --passes=cse module.hlo | hlo-inspect duplicates    what is left, and why");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
