// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/duplicates.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/core/saturating.h"
#include "ir/digest/fingerprint.h"
#include "ir/graph/module_statistics.h"
#include "ir/graph/side_effects.h"
#include "ir/graph/traversal.h"

namespace hlokit {
namespace {

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

class DuplicateFinder {
 public:
  explicit DuplicateFinder(const Module& module)
      : module_(module), digests_(module, {}), effects_(module), roles_(RolesOf(module)) {}

  std::vector<DuplicateGroup> Find() {
    std::vector<DuplicateGroup> groups;
    for (Computation c : module_.computations()) {
      std::map<std::vector<uint64_t>, size_t> by_key;  // indices of groups
      for (Instruction i : c.instructions()) {
        if (i.opcode() == Opcode::kParameter) continue;
        const auto [found, added] = by_key.emplace(KeyOf(i), groups.size());
        if (added) {
          groups.push_back({i, {}, 0});
          continue;
        }
        DuplicateGroup& group = groups[found->second];
        group.bytes = SaturatingAdd(group.bytes, i.shape().IsArray() ? ByteSize(i.shape()) : 0);
        group.others.push_back({i, Apart(group.first, i)});
      }
    }
    groups.erase(std::remove_if(groups.begin(), groups.end(), [](const DuplicateGroup& g) { return g.others.empty(); }),
                 groups.end());
    std::stable_sort(groups.begin(), groups.end(),
                     [](const DuplicateGroup& a, const DuplicateGroup& b) { return a.bytes > b.bytes; });
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
    if (!has && (other.has_control_edges())) apart.push_back(control);
    return apart;
  }

  const Module& module_;
  const FingerprintTable digests_;
  SideEffects effects_;
  const ComputationRoles roles_;
};

}  // namespace

std::vector<DuplicateGroup> FindDuplicates(const Module& module) { return DuplicateFinder(module).Find(); }

}  // namespace hlokit
