// SPDX-License-Identifier: Apache-2.0
// Random edits of a module, each made on a plain model of it too.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module.h"
#include "tests/unit/ir/graph/module_contradiction.h"

namespace hlokit {
namespace {

using Id = uint32_t;
using IdList = std::vector<Id>;

constexpr Id kNone = 0xffffffff;
constexpr std::array<Attr, 4> kOtherAttrs = {Attr::kBackendConfig, Attr::kFrontendAttributes, Attr::kSharding,
                                             Attr::kDimensions};

struct PlainInstruction {
  Opcode opcode = Opcode::kParameter;
  uint32_t payload = 0;
  Id parent = kNone;
  IdList operands;
  IdList predecessors;
  std::map<Attr, uint32_t> others;

  bool operator==(const PlainInstruction&) const = default;
};

struct PlainComputation {
  IdList order;
  IdList parameters;
  Id root = kNone;

  bool operator==(const PlainComputation&) const = default;
};

// What the comments of Module say, with searches instead of lists.
struct PlainModule {
  std::map<Id, PlainInstruction> instructions;
  std::map<Id, PlainComputation> computations;

  bool operator==(const PlainModule&) const = default;

  bool HasUsers(Id id) const {
    return absl::c_any_of(instructions, [&](const auto& i) { return absl::c_linear_search(i.second.operands, id); });
  }
  bool IsRoot(Id id) const { return computations.at(instructions.at(id).parent).root == id; }

  void Add(Id id, Id computation, PlainInstruction instruction) {
    PlainComputation& c = computations.at(computation);
    instruction.parent = computation;
    c.order.push_back(id);
    if (instruction.opcode == Opcode::kParameter && instruction.payload == c.parameters.size())
      c.parameters.push_back(id);
    instructions[id] = std::move(instruction);
  }
  void ReplaceAllUses(Id from, Id to) {
    for (auto& [id, i] : instructions) {
      if (id == to) continue;
      absl::c_replace(i.operands, from, to);
      if (!absl::c_linear_search(i.predecessors, from)) continue;
      IdList kept;
      for (Id p : i.predecessors) {
        if (p == from) p = to;
        if (!absl::c_linear_search(kept, p)) kept.push_back(p);
      }
      i.predecessors = kept;
    }
    PlainComputation& c = computations.at(instructions.at(from).parent);
    if (c.root == from) c.root = to;
  }
  void Erase(Id id) {
    const PlainInstruction erased = instructions.at(id);
    instructions.erase(id);
    for (auto& [other, i] : instructions) {
      if (!absl::c_linear_search(i.predecessors, id)) continue;
      std::erase(i.predecessors, id);
      for (Id p : erased.predecessors) {
        if (p != id && p != other && !absl::c_linear_search(i.predecessors, p)) i.predecessors.push_back(p);
      }
    }
    PlainComputation& c = computations.at(erased.parent);
    std::erase(c.order, id);
    absl::c_replace(c.parameters, id, kNone);
  }
  void MoveBefore(Id id, Id position) {
    IdList& order = computations.at(instructions.at(id).parent).order;
    std::erase(order, id);
    order.insert(absl::c_find(order, position), id);
  }
};

PlainModule PlainOf(const Module& module) {
  PlainModule plain;
  for (Computation c : module.computations()) {
    PlainComputation& computation = plain.computations[c.id().value];
    computation.root = c.root().valid() ? c.root().id().value : kNone;
    for (int64_t k = 0; k < c.parameter_count(); ++k) {
      computation.parameters.push_back(c.parameter(k).valid() ? c.parameter(k).id().value : kNone);
    }
    for (Instruction i : c.instructions()) {
      computation.order.push_back(i.id().value);
      PlainInstruction& instruction = plain.instructions[i.id().value];
      instruction.opcode = i.opcode();
      instruction.payload = i.record().payload;
      instruction.parent = i.parent().id().value;
      for (Instruction operand : i.operands()) instruction.operands.push_back(operand.id().value);
      for (Instruction p : i.control_predecessors()) instruction.predecessors.push_back(p.id().value);
      for (const AttrValue& value : i.attrs()) {
        if (value.attr != Attr::kControlPredecessors) instruction.others[value.attr] = value.payload;
      }
    }
  }
  return plain;
}

class RandomEdits {
 public:
  explicit RandomEdits(uint32_t seed) : random_(seed) {
    AddComputation();
    AddComputation();
  }

  // Makes an edit of both; returns its name.
  const char* Edit() {
    const auto& [name, edit] = kEdits[Below(kEdits.size())];
    (this->*edit)();
    return name;
  }
  const Module& module() const { return module_; }
  const PlainModule& plain() const { return plain_; }
  // The last clone of the module, which edits of the module leave alone.
  const Module& old_module() const { return old_module_; }
  const PlainModule& old_plain() const { return old_plain_; }

 private:
  size_t Below(size_t n) { return random_() % n; }
  bool Chance(size_t one_in) { return Below(one_in) == 0; }
  template <typename Map>
  Id AnyKey(const Map& map) {
    return std::next(map.begin(), static_cast<std::ptrdiff_t>(Below(map.size())))->first;
  }
  Id AnyComputation() { return AnyKey(plain_.computations); }
  // kNone: there is none.
  Id AnyInstruction() { return plain_.instructions.empty() ? kNone : AnyKey(plain_.instructions); }
  Id AnyOf(const IdList& ids) { return ids.empty() ? kNone : ids[Below(ids.size())]; }
  IdList Some(Id computation) {
    IdList some;
    const IdList& order = plain_.computations.at(computation).order;
    for (size_t n = order.empty() ? 0 : Below(4); n > 0; --n) some.push_back(AnyOf(order));
    return some;
  }
  // Each once, and not `but`.
  IdList SomePredecessors(Id computation, Id but) {
    const IdList some = Some(computation);
    std::set<Id> distinct(some.begin(), some.end());
    distinct.erase(but);
    return IdList(distinct.begin(), distinct.end());
  }
  static std::vector<InstructionId> Typed(const IdList& ids) {
    std::vector<InstructionId> typed;
    for (Id id : ids) typed.push_back(InstructionId(id));
    return typed;
  }
  uint32_t List(const IdList& ids) { return module_.ListPayload(std::vector<int64_t>(ids.begin(), ids.end())); }
  std::vector<AttrValue> AttrsOf(const PlainInstruction& i) {
    std::vector<AttrValue> attrs;
    if (!i.predecessors.empty()) attrs.push_back({Attr::kControlPredecessors, List(i.predecessors)});
    for (const auto& [attr, payload] : i.others) attrs.push_back({attr, payload});
    std::shuffle(attrs.begin(), attrs.end(), random_);
    return attrs;
  }
  StringId Name() { return module_.context().strings.Intern(StrCat("i", next_name_++)); }

  void AddComputation() {
    const Id id = module_.AddComputation(Name()).value;
    plain_.computations[id];
    if (plain_.computations.size() == 1) module_.SetEntry(ComputationId(id));
    for (int k = 0; k < 2; ++k) AddTo(id, Opcode::kParameter);
  }
  void AddTo(Id computation, Opcode opcode) {
    PlainInstruction i;
    i.opcode = opcode;
    if (opcode == Opcode::kParameter) {
      i.payload = static_cast<uint32_t>(plain_.computations.at(computation).parameters.size());
    } else {
      i.operands = Some(computation);
    }
    i.predecessors = SomePredecessors(computation, kNone);
    for (Attr attr : kOtherAttrs) {
      if (Chance(2)) i.others[attr] = static_cast<uint32_t>(Below(100));
    }
    const InstructionId id =
        module_.AddInstruction(ComputationId(computation), opcode, module_.context().shapes.Tuple({}), Name(),
                               Typed(i.operands), AttrsOf(i), i.payload);
    plain_.Add(id.value, computation, std::move(i));
  }
  void Add() { AddTo(AnyComputation(), Chance(4) ? Opcode::kParameter : Opcode::kTuple); }
  void CloneInstruction() {
    const Id source = AnyInstruction(), parent = AnyComputation();
    if (source == kNone || plain_.instructions.at(source).opcode == Opcode::kParameter) return;
    PlainInstruction i = plain_.instructions.at(source);
    i.operands = Some(parent);
    if (i.parent != parent) i.predecessors.clear();
    const InstructionId id =
        module_.CloneInstruction(ComputationId(parent), InstructionId(source), Name(), Typed(i.operands));
    plain_.Add(id.value, parent, std::move(i));
  }
  void SetAttr() {
    const Id id = AnyInstruction();
    if (id == kNone) return;
    const Attr attr = kOtherAttrs[Below(kOtherAttrs.size())];
    const auto payload = static_cast<uint32_t>(Below(100));
    module_.SetAttr(InstructionId(id), attr, payload);
    plain_.instructions.at(id).others[attr] = payload;
  }
  void SetPredecessors() {
    const Id id = AnyInstruction();
    if (id == kNone) return;
    PlainInstruction& i = plain_.instructions.at(id);
    i.predecessors = SomePredecessors(i.parent, id);
    module_.SetAttr(InstructionId(id), Attr::kControlPredecessors, List(i.predecessors));
  }
  void RemoveAttr() {
    const Id id = AnyInstruction();
    if (id == kNone) return;
    PlainInstruction& i = plain_.instructions.at(id);
    const bool control = Chance(2);
    const Attr attr = control ? Attr::kControlPredecessors : kOtherAttrs[Below(kOtherAttrs.size())];
    module_.RemoveAttr(InstructionId(id), attr);
    if (control) i.predecessors.clear();
    i.others.erase(attr);
  }
  // Those of another instruction of the computation, perhaps in the storage of the module.
  void SetAttrs() {
    const Id id = AnyInstruction();
    if (id == kNone) return;
    PlainInstruction& i = plain_.instructions.at(id);
    const Id from = AnyOf(plain_.computations.at(i.parent).order);
    const PlainInstruction& source = plain_.instructions.at(from);
    if (Chance(2)) {
      module_.SetAttrs(InstructionId(id), module_.instruction(InstructionId(from)).attrs());
    } else {
      module_.SetAttrs(InstructionId(id), AttrsOf(source));
    }
    i.predecessors = IdList(source.predecessors);
    i.others = std::map<Attr, uint32_t>(source.others);
  }
  void ReplaceOperand() {
    const Id id = AnyInstruction();
    if (id == kNone || plain_.instructions.at(id).operands.empty()) return;
    PlainInstruction& i = plain_.instructions.at(id);
    const size_t k = Below(i.operands.size());
    i.operands[k] = AnyOf(plain_.computations.at(i.parent).order);
    module_.ReplaceOperand(InstructionId(id), static_cast<int64_t>(k), InstructionId(i.operands[k]));
  }
  void SetOperands() {
    const Id id = AnyInstruction();
    if (id == kNone) return;
    PlainInstruction& i = plain_.instructions.at(id);
    i.operands = Some(i.parent);
    module_.SetOperands(InstructionId(id), Typed(i.operands));
  }
  void ReplaceAllUses() {
    const Id from = AnyInstruction();
    if (from == kNone) return;
    const Id to = AnyOf(plain_.computations.at(plain_.instructions.at(from).parent).order);
    module_.ReplaceAllUses(InstructionId(from), InstructionId(to));
    plain_.ReplaceAllUses(from, to);
  }
  void Erase() {
    const Id id = AnyInstruction();
    if (id == kNone || plain_.HasUsers(id) || plain_.IsRoot(id)) return;
    module_.Erase(InstructionId(id));
    plain_.Erase(id);
  }
  void EraseInstructions() {
    // An operand is erased with its users, which come after it.
    IdList erased;
    for (Id id : IdList(plain_.computations.at(AnyComputation()).order)) {
      const PlainInstruction& i = plain_.instructions.at(id);
      if (i.opcode == Opcode::kParameter || plain_.IsRoot(id) || Chance(2)) continue;
      erased.push_back(id);
    }
    for (bool again = true; again;) {
      again = std::erase_if(erased, [&](Id id) {
                const auto place = absl::c_find(erased, id);
                return absl::c_any_of(plain_.instructions, [&](const auto& other) {
                  return absl::c_linear_search(other.second.operands, id) &&
                         std::find(place + 1, erased.end(), other.first) == erased.end();
                });
              }) != 0;
    }
    module_.EraseInstructions(Typed(erased));
    for (auto id = erased.rbegin(); id != erased.rend(); ++id) plain_.Erase(*id);
  }
  void RemoveParameter() {
    const Id id = AnyInstruction();
    if (id == kNone || plain_.HasUsers(id) || plain_.IsRoot(id)) return;
    const PlainInstruction i = plain_.instructions.at(id);
    IdList& parameters = plain_.computations.at(i.parent).parameters;
    if (i.opcode != Opcode::kParameter || i.payload >= parameters.size() || parameters[i.payload] != id) return;
    module_.RemoveParameter(InstructionId(id));
    plain_.Erase(id);
    parameters.erase(parameters.begin() + i.payload);
    for (uint32_t k = i.payload; k < parameters.size(); ++k) {
      if (parameters[k] != kNone) plain_.instructions.at(parameters[k]).payload = k;
    }
  }
  void MoveBefore() {
    const Id id = AnyInstruction();
    if (id == kNone) return;
    const Id position = Chance(4) ? kNone : AnyOf(plain_.computations.at(plain_.instructions.at(id).parent).order);
    module_.MoveBefore(InstructionId(id), position == kNone ? InstructionId() : InstructionId(position));
    if (position != id) plain_.MoveBefore(id, position);
  }
  void SetRoot() {
    const Id computation = AnyComputation();
    const Id root = AnyOf(plain_.computations.at(computation).order);
    module_.SetRoot(ComputationId(computation), root == kNone ? InstructionId() : InstructionId(root));
    plain_.computations.at(computation).root = root;
  }
  void EraseComputation() {
    const Id computation = AnyComputation();
    if (plain_.computations.size() < 2) return;
    module_.EraseComputation(ComputationId(computation));
    for (Id id : plain_.computations.at(computation).order) plain_.instructions.erase(id);
    plain_.computations.erase(computation);
  }
  void CloneComputation() {
    if (plain_.computations.size() > 4 || plain_.instructions.size() > 60) return EraseComputation();
    const Id source = AnyComputation();
    const ComputationId copy = module_.CloneComputation(ComputationId(source));
    const PlainComputation from = plain_.computations.at(source);
    // The instructions of the copy are in the same order.
    std::map<Id, Id> copy_of = {{kNone, kNone}};
    InstructionId at = module_.record(copy).first;
    for (Id id : from.order) {
      copy_of[id] = at.value;
      at = module_.record(at).next;
    }
    const auto copies = [&](IdList ids) {
      for (Id& id : ids) id = copy_of.at(id);
      return ids;
    };
    plain_.computations[copy.value] = {copies(from.order), copies(from.parameters), copy_of.at(from.root)};
    for (Id id : from.order) {
      PlainInstruction i = plain_.instructions.at(id);
      i.parent = copy.value;
      i.operands = copies(i.operands);
      i.predecessors = copies(i.predecessors);
      plain_.instructions[copy_of.at(id)] = std::move(i);
    }
  }
  void CloneModule() {
    old_module_ = module_.Clone();
    old_plain_ = plain_;
    // Either goes on.
    if (Chance(2)) std::swap(old_module_, module_);
  }
  void Reserve() {
    if (Chance(2)) {
      module_.ShrinkToFit();
    } else {
      module_.Reserve(Below(1000), Below(1000), Below(1000));
    }
  }

  struct NamedEdit {
    const char* name;
    void (RandomEdits::*edit)();
  };
  static const std::array<NamedEdit, 18> kEdits;

  std::mt19937 random_;
  Module module_;
  PlainModule plain_;
  Module old_module_;
  PlainModule old_plain_;
  int next_name_ = 0;
};

constexpr std::array<RandomEdits::NamedEdit, 18> RandomEdits::kEdits = {{
    {"Add", &RandomEdits::Add},
    {"Add", &RandomEdits::Add},
    {"CloneInstruction", &RandomEdits::CloneInstruction},
    {"SetAttr", &RandomEdits::SetAttr},
    {"SetPredecessors", &RandomEdits::SetPredecessors},
    {"RemoveAttr", &RandomEdits::RemoveAttr},
    {"SetAttrs", &RandomEdits::SetAttrs},
    {"ReplaceOperand", &RandomEdits::ReplaceOperand},
    {"SetOperands", &RandomEdits::SetOperands},
    {"ReplaceAllUses", &RandomEdits::ReplaceAllUses},
    {"Erase", &RandomEdits::Erase},
    {"EraseInstructions", &RandomEdits::EraseInstructions},
    {"RemoveParameter", &RandomEdits::RemoveParameter},
    {"MoveBefore", &RandomEdits::MoveBefore},
    {"SetRoot", &RandomEdits::SetRoot},
    {"CloneComputation", &RandomEdits::CloneComputation},
    {"CloneModule", &RandomEdits::CloneModule},
    {"Reserve", &RandomEdits::Reserve},
}};

TEST(ModuleRandomEditsTest, KeepUsesControlEdgesOrderAndParametersConsistent) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    RandomEdits edits(seed);
    for (int k = 0; k < 300; ++k) {
      const char* const name = edits.Edit();
      ASSERT_EQ(Contradiction(edits.module()), "") << name << ", edit " << k << " of seed " << seed;
      ASSERT_TRUE(PlainOf(edits.module()) == edits.plain()) << name << ", edit " << k << " of seed " << seed;
      ASSERT_TRUE(PlainOf(edits.old_module()) == edits.old_plain()) << name << ", edit " << k << " of seed " << seed;
    }
    ASSERT_EQ(Contradiction(edits.old_module()), "");
  }
}

}  // namespace
}  // namespace hlokit
