// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/module.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/core/name_uniquer.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"

namespace hlokit {

// ---- Instruction, Computation ----

std::string_view Instruction::opcode_text() const {
  return opcode() == Opcode::kUnknown ? string_attr(Attr::kUnknownOpcode) : ToString(opcode());
}

bool Instruction::is_root() const {
  const InstructionRecord& r = record();
  return r.parent.valid() && module_->record(r.parent).root == id_;
}

std::vector<Instruction> Instruction::users() const {
  std::vector<Instruction> users;
  absl::flat_hash_set<uint32_t> seen;
  for (const auto use : uses()) {
    if (seen.insert(use.user.id().value).second) users.push_back(use.user);
  }
  return users;
}

std::vector<Instruction> Instruction::control_predecessors() const {
  std::vector<Instruction> result;
  for (int64_t id : list_attr(Attr::kControlPredecessors)) {
    result.emplace_back(module_, InstructionId(static_cast<uint32_t>(id)));
  }
  return result;
}

std::vector<Instruction> Instruction::control_successors() const {
  std::vector<Instruction> result;
  if (module_->control_successors_.empty()) return result;
  const auto found = module_->control_successors_.find(id_.value);
  if (found == module_->control_successors_.end()) return result;
  for (InstructionId id : found->second) result.emplace_back(module_, id);
  return result;
}

bool Instruction::has_control_edges() const {
  return has(Attr::kControlPredecessors) || module_->control_successors_.contains(id_.value);
}

std::optional<uint32_t> Instruction::payload(Attr attr) const {
  const AttrValue* value = AttrReader(*this).Find(attr);
  return value == nullptr ? std::nullopt : std::optional<uint32_t>(value->payload);
}

bool Instruction::bool_attr(Attr attr, bool absent) const { return AttrReader(*this).bool_attr(attr, absent); }

int64_t Instruction::int_attr(Attr attr, int64_t absent) const { return AttrReader(*this).int_attr(attr, absent); }

float Instruction::float_attr(Attr attr, float absent) const { return AttrReader(*this).float_attr(attr, absent); }

std::string_view Instruction::string_attr(Attr attr) const { return AttrReader(*this).string_attr(attr); }

absl::Span<const int64_t> Instruction::list_attr(Attr attr) const { return AttrReader(*this).list_attr(attr); }

Computation Instruction::computation_attr(Attr attr) const {
  const std::optional<uint32_t> p = payload(attr);
  return p ? Computation(module_, ComputationId(*p)) : Computation();
}

std::vector<Computation> Instruction::called_computations() const {
  std::vector<Computation> called;
  ForEachCallee([&](Computation callee) { called.push_back(callee); });
  return called;
}

const LiteralRecord& Instruction::literal() const { return module_->context().literals[literal_id()]; }

Metadata Instruction::metadata() const { return module_->context().metadata[record().metadata]; }

std::string_view Computation::execution_thread() const {
  const StringId thread = record().execution_thread;
  return thread.valid() ? module_->context().str(thread) : std::string_view("main");
}

bool Computation::is_entry() const { return module_->entry().id() == id_; }

// ---- Module: reading ----

Module::Module(std::shared_ptr<Context> context) : context_(std::move(context)) {}
Module::~Module() = default;
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;

Module Module::Clone() const {
  Module copy(context_);
  copy.header_ = header_;
  copy.instructions_ = instructions_;
  copy.uses_ = uses_;
  copy.attrs_ = attrs_;
  copy.computations_ = computations_;
  copy.order_ = order_;
  copy.entry_ = entry_;
  copy.control_successors_ = control_successors_;
  if (instruction_names_ != nullptr) copy.instruction_names_ = std::make_unique<NameUniquer>(*instruction_names_);
  if (computation_names_ != nullptr) copy.computation_names_ = std::make_unique<NameUniquer>(*computation_names_);
  return copy;
}

std::vector<Computation> Module::computations() const {
  std::vector<Computation> result;
  result.reserve(computations_.size());
  for (ComputationId id : order_) {
    if (!computations_[id.value].erased) result.emplace_back(this, id);
  }
  return result;
}

size_t Module::computation_count() const {
  return static_cast<size_t>(
      std::count_if(computations_.begin(), computations_.end(), [](const auto& c) { return !c.erased; }));
}

size_t Module::instruction_count() const {
  size_t n = 0;
  for (const ComputationRecord& c : computations_) n += c.erased ? 0 : c.instruction_count;
  return n;
}

size_t Module::bytes() const {
  return instructions_.capacity() * sizeof(InstructionRecord) + uses_.capacity() * sizeof(Use) +
         attrs_.capacity() * sizeof(AttrValue) + computations_.capacity() * sizeof(ComputationRecord);
}

void Module::Reserve(size_t instructions, size_t operands, size_t attrs) {
  instructions_.reserve(instructions);
  uses_.reserve(operands);
  attrs_.reserve(attrs);
}

void Module::ShrinkToFit() {
  instructions_.shrink_to_fit();
  uses_.shrink_to_fit();
  attrs_.shrink_to_fit();
}

// ---- Module: building ----

ComputationId Module::AddComputation(StringId name) {
  ComputationRecord c;
  c.name = name;
  computations_.push_back(std::move(c));
  order_.push_back(ComputationId(static_cast<uint32_t>(computations_.size() - 1)));
  return order_.back();
}

void Module::Link(UseId id) {
  Use& use = uses_[id.value];
  InstructionRecord& def = instructions_[use.def.value];
  if (!def.first_use.valid()) {
    def.first_use = use.next = use.previous = id;
    return;
  }
  Use& first = uses_[def.first_use.value];
  use.next = def.first_use;
  use.previous = first.previous;
  uses_[first.previous.value].next = id;
  first.previous = id;
}

void Module::Unlink(UseId id) {
  const Use use = uses_[id.value];
  InstructionRecord& def = instructions_[use.def.value];
  if (use.next == id) {
    def.first_use = UseId();
    return;
  }
  uses_[use.previous.value].next = use.next;
  uses_[use.next.value].previous = use.previous;
  if (def.first_use == id) def.first_use = use.next;
}

void Module::AppendToOrder(InstructionId id, ComputationId parent) {
  ComputationRecord& c = computations_[parent.value];
  InstructionRecord& r = instructions_[id.value];
  r.previous = c.last;
  r.next = InstructionId();
  (c.last.valid() ? instructions_[c.last.value].next : c.first) = id;
  c.last = id;
  ++c.instruction_count;
}

void Module::RemoveFromOrder(InstructionId id) {
  const InstructionRecord& r = instructions_[id.value];
  ComputationRecord& c = computations_[r.parent.value];
  (r.previous.valid() ? instructions_[r.previous.value].next : c.first) = r.next;
  (r.next.valid() ? instructions_[r.next.value].previous : c.last) = r.previous;
  --c.instruction_count;
}

void Module::StoreAttrs(InstructionId id, absl::Span<const AttrValue> attrs) {
  const uint32_t begin = static_cast<uint32_t>(attrs_.size());
  InstructionRecord& r = instructions_[id.value];
  r.attr_begin = begin;
  r.attr_count = static_cast<uint16_t>(attrs.size());
  // `attrs` may be those of an instruction of this module, which growth moves.
  const bool own = attrs.data() >= attrs_.begin() && attrs.data() < attrs_.end();
  const size_t from = own ? static_cast<size_t>(attrs.data() - attrs_.data()) : 0;
  AttrValue* const stored = attrs_.Extend(attrs.size());
  std::copy_n(own ? attrs_.data() + from : attrs.data(), attrs.size(), stored);
  // Insertion sort: lists are short and nearly sorted.
  for (size_t i = begin + 1; i < attrs_.size(); ++i) {
    const AttrValue value = attrs_[i];
    const int order = AttrOrder(r.opcode, value.attr);
    size_t j = i;
    for (; j > begin && AttrOrder(r.opcode, attrs_[j - 1].attr) > order; --j) attrs_[j] = attrs_[j - 1];
    attrs_[j] = value;
  }
}

void Module::AddControlEdges(InstructionId successor) {
  for (int64_t predecessor : instruction(successor).list_attr(Attr::kControlPredecessors)) {
    control_successors_[static_cast<uint32_t>(predecessor)].push_back(successor);
  }
}

void Module::DropControlEdges(InstructionId successor) {
  if (control_successors_.empty()) return;
  for (int64_t predecessor : instruction(successor).list_attr(Attr::kControlPredecessors)) {
    const auto found = control_successors_.find(static_cast<uint32_t>(predecessor));
    if (found == control_successors_.end()) continue;
    std::vector<InstructionId>& list = found->second;
    list.erase(std::remove(list.begin(), list.end(), successor), list.end());
    if (list.empty()) control_successors_.erase(found);
  }
}

void Module::AddOperands(InstructionId id, absl::Span<const InstructionId> operands) {
  auto use = static_cast<uint32_t>(uses_.size());
  instructions_[id.value].operand_begin = use;
  instructions_[id.value].operand_count = static_cast<uint32_t>(operands.size());
  Use* const slots = uses_.Extend(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) slots[i] = {operands[i], id, UseId(), UseId()};
  for (size_t i = 0; i < operands.size(); ++i) Link(UseId(use++));
}

InstructionId Module::AddInstruction(ComputationId parent, Opcode opcode, Shape shape, StringId name,
                                     absl::Span<const InstructionId> operands, absl::Span<const AttrValue> attrs,
                                     uint32_t payload) {
  const InstructionId id(static_cast<uint32_t>(instructions_.size()));
  InstructionRecord r;
  r.opcode = opcode;
  r.shape = shape.id();
  r.name = name;
  r.parent = parent;
  r.payload = payload;
  instructions_.push_back(r);
  AddOperands(id, operands);
  StoreAttrs(id, attrs);
  for (const AttrValue& value : attrs_of(instructions_[id.value])) {
    if (value.attr == Attr::kControlPredecessors) AddControlEdges(id);
  }
  AppendToOrder(id, parent);
  if (opcode == Opcode::kParameter) {
    std::vector<InstructionId>& parameters = computations_[parent.value].parameters;
    if (parameters.size() == payload) parameters.push_back(id);
  }
  return id;
}

InstructionId Module::CloneInstruction(ComputationId parent, InstructionId source, StringId name,
                                       absl::Span<const InstructionId> operands) {
  const InstructionId id(static_cast<uint32_t>(instructions_.size()));
  InstructionRecord r = instructions_[source.value];
  r.flags = 0;
  r.source_offset = InstructionRecord::kNoSourceOffset;
  r.name = name;
  r.parent = parent;
  r.first_use = UseId();
  const size_t from = r.attr_begin;
  r.attr_begin = static_cast<uint32_t>(attrs_.size());
  AttrValue* const attrs = attrs_.Extend(r.attr_count);
  std::copy_n(attrs_.data() + from, r.attr_count, attrs);
  instructions_.push_back(r);
  AddOperands(id, operands);
  for (const AttrValue& value : attrs_of(r)) {
    if (value.attr != Attr::kControlPredecessors) continue;
    // Those of another computation are none of the copy: an order does not cross computations.
    if (parent == instructions_[source.value].parent) {
      AddControlEdges(id);
    } else {
      RemoveAttr(id, Attr::kControlPredecessors);
    }
    break;
  }
  AppendToOrder(id, parent);
  return id;
}

// ---- Module: editing ----

void Module::SetAttr(InstructionId id, Attr attr, uint32_t payload) {
  const bool control = attr == Attr::kControlPredecessors;
  if (control) DropControlEdges(id);
  const InstructionRecord& r = instructions_[id.value];
  AttrValue* const begin = attrs_.data() + r.attr_begin;
  AttrValue* const end = begin + r.attr_count;
  AttrValue* const value = std::find_if(begin, end, [&](const AttrValue& v) { return v.attr == attr; });
  if (value != end) {
    value->payload = payload;
  } else {
    std::vector<AttrValue> all(begin, end);
    all.push_back({attr, payload});
    StoreAttrs(id, all);
  }
  if (control) AddControlEdges(id);
}

void Module::RemoveAttr(InstructionId id, Attr attr) {
  if (attr == Attr::kControlPredecessors) DropControlEdges(id);
  InstructionRecord& r = instructions_[id.value];
  AttrValue* begin = attrs_.data() + r.attr_begin;
  AttrValue* end = std::remove_if(begin, begin + r.attr_count, [&](const AttrValue& v) { return v.attr == attr; });
  r.attr_count = static_cast<uint16_t>(end - begin);
}

void Module::SetAttrs(InstructionId id, absl::Span<const AttrValue> attrs) {
  DropControlEdges(id);
  StoreAttrs(id, attrs);
  AddControlEdges(id);
}

void Module::ReplaceOperand(InstructionId user, int64_t index, InstructionId operand) {
  const UseId use(instructions_[user.value].operand_begin + static_cast<uint32_t>(index));
  Unlink(use);
  uses_[use.value].def = operand;
  Link(use);
}

void Module::SetOperands(InstructionId user, absl::Span<const InstructionId> operands) {
  InstructionRecord& r = instructions_[user.value];
  for (uint32_t i = 0; i < r.operand_count; ++i) Unlink(UseId(r.operand_begin + i));
  if (operands.size() > r.operand_count) {
    r.operand_begin = static_cast<uint32_t>(uses_.size());
    uses_.Extend(operands.size());
  }
  r.operand_count = static_cast<uint32_t>(operands.size());
  for (uint32_t i = 0; i < r.operand_count; ++i) {
    const UseId use(r.operand_begin + i);
    uses_[use.value] = {operands[i], user, UseId(), UseId()};
    Link(use);
  }
}

void Module::ReplaceAllUses(InstructionId from, InstructionId to) {
  if (from == to) return;
  std::vector<UseId> kept;
  while (instructions_[from.value].first_use.valid()) {
    const UseId use = instructions_[from.value].first_use;
    Unlink(use);
    if (uses_[use.value].user == to) {
      kept.push_back(use);
      continue;
    }
    uses_[use.value].def = to;
    Link(use);
  }
  for (UseId use : kept) Link(use);
  const InstructionRecord& r = instructions_[from.value];
  ComputationRecord& c = computations_[r.parent.value];
  if (c.root == from) c.root = to;
  if (control_successors_.empty()) return;
  const auto found = control_successors_.find(from.value);
  if (found == control_successors_.end()) return;
  const std::vector<InstructionId> successors = found->second;
  for (InstructionId successor : successors) {
    if (successor == to) continue;
    std::vector<int64_t> list;
    for (int64_t p : instruction(successor).list_attr(Attr::kControlPredecessors)) {
      const int64_t now = p == from.value ? int64_t{to.value} : p;
      if (std::find(list.begin(), list.end(), now) == list.end()) list.push_back(now);
    }
    SetAttr(successor, Attr::kControlPredecessors, ListPayload(list));
  }
}

void Module::Erase(InstructionId id) {
  // Few modules have control edges.
  if (!control_successors_.empty()) {
    const absl::Span<const int64_t> own = instruction(id).list_attr(Attr::kControlPredecessors);
    const std::vector<int64_t> predecessors(own.begin(), own.end());
    std::vector<InstructionId> successors;
    if (const auto found = control_successors_.find(id.value); found != control_successors_.end()) {
      successors = found->second;
    }
    for (InstructionId successor : successors) {
      std::vector<int64_t> list;
      for (int64_t p : instruction(successor).list_attr(Attr::kControlPredecessors)) {
        if (p != id.value) list.push_back(p);
      }
      for (int64_t p : predecessors) {
        if (p == id.value || p == successor.value) continue;  // of edges in a circle
        if (std::find(list.begin(), list.end(), p) == list.end()) list.push_back(p);
      }
      if (list.empty()) {
        RemoveAttr(successor, Attr::kControlPredecessors);
      } else {
        SetAttr(successor, Attr::kControlPredecessors, ListPayload(list));
      }
    }
    DropControlEdges(id);
    control_successors_.erase(id.value);
  }
  InstructionRecord& r = instructions_[id.value];
  for (uint32_t i = 0; i < r.operand_count; ++i) Unlink(UseId(r.operand_begin + i));
  RemoveFromOrder(id);
  if (r.opcode == Opcode::kParameter) {
    std::vector<InstructionId>& parameters = computations_[r.parent.value].parameters;
    if (r.payload < parameters.size() && parameters[r.payload] == id) parameters[r.payload] = InstructionId();
  }
  r.operand_count = 0;
  r.attr_count = 0;
  r.parent = ComputationId();
}

void Module::EraseInstructions(absl::Span<const InstructionId> ids) {
  if (!control_successors_.empty()) {
    for (size_t k = ids.size(); k-- > 0;) Erase(ids[k]);
    return;
  }
  for (InstructionId id : ids) {
    InstructionRecord& r = instructions_[id.value];
    for (uint32_t i = 0; i < r.operand_count; ++i) {
      const UseId use(r.operand_begin + i);
      // Erased instructions need no use lists.
      if (instructions_[uses_[use.value].def.value].parent.valid()) Unlink(use);
    }
    RemoveFromOrder(id);
    r.operand_count = 0;
    r.attr_count = 0;
    r.first_use = UseId();
    r.parent = ComputationId();
  }
}

void Module::RemoveParameter(InstructionId id) {
  const InstructionRecord r = instructions_[id.value];
  Erase(id);
  std::vector<InstructionId>& parameters = computations_[r.parent.value].parameters;
  parameters.erase(parameters.begin() + r.payload);
  for (uint32_t i = r.payload; i < parameters.size(); ++i) {
    if (parameters[i].valid()) instructions_[parameters[i].value].payload = i;
  }
}

void Module::MoveBefore(InstructionId id, InstructionId position) {
  if (id == position) return;
  const ComputationId parent = instructions_[id.value].parent;
  RemoveFromOrder(id);
  if (!position.valid()) {
    AppendToOrder(id, parent);
    return;
  }
  ComputationRecord& c = computations_[parent.value];
  InstructionRecord& r = instructions_[id.value];
  InstructionRecord& after = instructions_[position.value];
  r.next = position;
  r.previous = after.previous;
  (after.previous.valid() ? instructions_[after.previous.value].next : c.first) = id;
  after.previous = id;
  ++c.instruction_count;
}

void Module::EraseComputation(ComputationId id) {
  ComputationRecord& c = computations_[id.value];
  for (InstructionId i = c.first; i.valid();) {
    InstructionRecord& r = instructions_[i.value];
    DropControlEdges(i);
    control_successors_.erase(i.value);
    const InstructionId next = r.next;
    r.parent = ComputationId();
    r.operand_count = 0;
    r.attr_count = 0;
    r.first_use = UseId();
    i = next;
  }
  c = ComputationRecord{};
  c.erased = true;
}

ComputationId Module::CloneComputation(ComputationId source, std::string_view suffix) {
  const StringId name = UniqueComputationName(StrCat(computation(source).name(), '.', suffix));
  const ComputationId copy = AddComputation(name);
  computations_[copy.value].execution_thread = computations_[source.value].execution_thread;
  // Operands may come after their users, so copies are created first and connected then.
  std::vector<std::pair<InstructionId, InstructionId>> pairs;
  absl::flat_hash_map<uint32_t, InstructionId> copy_of;
  for (InstructionId i = computations_[source.value].first; i.valid(); i = instructions_[i.value].next) {
    const InstructionRecord r = instructions_[i.value];
    const std::vector<AttrValue> attrs(attrs_.begin() + r.attr_begin, attrs_.begin() + r.attr_begin + r.attr_count);
    std::vector<AttrValue> kept;
    for (const AttrValue& value : attrs) {
      if (value.attr != Attr::kControlPredecessors) kept.push_back(value);
    }
    const StringId unique = UniqueInstructionName(r.name);
    const InstructionId c = AddInstruction(copy, r.opcode, context_->shape(r.shape), unique, {}, kept, r.payload);
    instructions_[c.value].metadata = r.metadata;
    instructions_[c.value].source_offset = r.source_offset;
    instructions_[c.value].flags = r.flags;
    pairs.push_back({i, c});
    copy_of[i.value] = c;
  }
  for (const auto& [from, to] : pairs) {
    std::vector<InstructionId> operands;
    for (Instruction operand : instruction(from).operands()) operands.push_back(copy_of.at(operand.id().value));
    SetOperands(to, operands);
    std::vector<int64_t> predecessors;
    for (int64_t p : instruction(from).list_attr(Attr::kControlPredecessors)) {
      predecessors.push_back(copy_of.at(static_cast<uint32_t>(p)).value);
    }
    if (!predecessors.empty()) SetAttr(to, Attr::kControlPredecessors, ListPayload(predecessors));
  }
  // Parameters may come in any order.
  std::vector<InstructionId> parameters;
  for (InstructionId p : computations_[source.value].parameters) {
    parameters.push_back(p.valid() ? copy_of.at(p.value) : InstructionId());
  }
  computations_[copy.value].parameters = std::move(parameters);
  const InstructionId root = computations_[source.value].root;
  if (root.valid()) computations_[copy.value].root = copy_of.at(root.value);
  return copy;
}

NameUniquer& Module::InstructionNames() {
  if (instruction_names_ == nullptr) {
    instruction_names_ = std::make_unique<NameUniquer>(&context_->strings);
    for (const InstructionRecord& r : instructions_) {
      if (r.parent.valid()) instruction_names_->Add(r.name);
    }
  }
  return *instruction_names_;
}

NameUniquer& Module::ComputationNames() {
  if (computation_names_ == nullptr) {
    computation_names_ = std::make_unique<NameUniquer>(&context_->strings);
    for (const ComputationRecord& c : computations_) {
      if (!c.erased) computation_names_->Add(c.name);
    }
  }
  return *computation_names_;
}

void Module::ForgetUniqueNames() {
  instruction_names_.reset();
  computation_names_.reset();
}

StringId Module::UniqueInstructionName(std::string_view base) { return InstructionNames().GetUniqueName(base); }
StringId Module::UniqueInstructionName(StringId base) { return InstructionNames().GetUniqueName(base); }
StringId Module::UniqueComputationName(std::string_view base) { return ComputationNames().GetUniqueName(base); }
StringId Module::UniqueComputationName(StringId base) { return ComputationNames().GetUniqueName(base); }

}  // namespace hlokit
