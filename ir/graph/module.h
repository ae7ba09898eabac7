// SPDX-License-Identifier: Apache-2.0
// A module: computations of instructions, in flat arrays.
//
// Instruction and Computation are read-only handles (module + id), small enough to pass by value. Editing goes through
// Module, which keeps operands, use lists, instruction order and parameters consistent. Ids of erased objects are not
// reused.
//
// Invariants that the parser, builder and editing functions maintain (the verifier checks other rules):
//   - an operand belongs to the same computation as its user;
//   - every operand slot is in the use list of its operand, in the order in which they were set;
//   - control successors are those that follow from the attributes;
//   - parameters() of a computation is dense: slot i holds the parameter with number i (none while under construction).
#ifndef HLOKIT_IR_GRAPH_MODULE_H_
#define HLOKIT_IR_GRAPH_MODULE_H_

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/core/ids.h"
#include "ir/core/record_array.h"
#include "ir/graph/context.h"
#include "ir/graph/module_header.h"
#include "ir/ops/attribute.h"
#include "ir/ops/opcode.h"

namespace hlokit {

class Module;
class NameUniquer;

struct InstructionRecord {
  Opcode opcode;
  uint8_t flags = 0;  // InstructionFlag
  uint16_t attr_count = 0;
  ShapeId shape;
  StringId name;
  ComputationId parent;  // invalid once erased
  uint32_t operand_begin = 0;
  uint32_t operand_count = 0;
  uint32_t attr_begin = 0;
  UseId first_use;
  InstructionId previous;  // order within the computation
  InstructionId next;
  MetadataId metadata;
  uint32_t source_offset = kNoSourceOffset;  // of the name in the source text
  uint32_t payload = 0;                      // parameter number, or LiteralId of a constant

  static constexpr uint32_t kNoSourceOffset = 0xffffffffu;
};
static_assert(sizeof(InstructionRecord) <= 64, "an instruction record fits a cache line");

enum InstructionFlag : uint8_t {
  kShapeInferred = 1 << 0,     // the text omitted the shape
  kGeneratedName = 1 << 1,     // the text omitted the name
  kErrorPlaceholder = 1 << 2,  // placeholder for an erroneous instruction; never in a parsed module
};

// One operand slot. The uses of an instruction form a ring, oldest first.
struct Use {
  InstructionId def;
  InstructionId user;
  UseId next;
  UseId previous;
};

struct ComputationRecord {
  StringId name;
  StringId execution_thread;  // invalid: "main"
  InstructionId first;
  InstructionId last;
  InstructionId root;
  uint32_t instruction_count = 0;
  uint32_t source_offset = InstructionRecord::kNoSourceOffset;
  bool erased = false;
  std::vector<InstructionId> parameters;
};

class Computation;

class Instruction {
 public:
  Instruction() = default;
  Instruction(const Module* module, InstructionId id) : module_(module), id_(id) {}

  bool valid() const { return module_ != nullptr && id_.valid(); }
  const Module& module() const { return *module_; }
  InstructionId id() const { return id_; }
  inline const InstructionRecord& record() const;

  Opcode opcode() const { return record().opcode; }
  // Returns the spelling of the opcode, also of an unrecognized one.
  std::string_view opcode_text() const;
  inline Shape shape() const;
  inline std::string_view name() const;
  inline Computation parent() const;
  bool is_root() const;

  int64_t operand_count() const { return record().operand_count; }
  inline Instruction operand(int64_t i) const;
  class OperandIterator;
  class OperandRange;
  inline OperandRange operands() const;

  // Returns each operand slot that refers to this instruction, oldest first; an instruction that uses it twice comes
  // twice.
  class UseRange;
  inline UseRange uses() const;
  bool has_users() const { return record().first_use.valid(); }
  // Returns the distinct users, by first use.
  std::vector<Instruction> users() const;
  // Return instructions that must run before (after) this one without data flow between them.
  std::vector<Instruction> control_predecessors() const;
  std::vector<Instruction> control_successors() const;
  // True if it has the attribute control-predecessors, or is named in another one's.
  bool has_control_edges() const;

  // Returns the attributes, in print order.
  inline absl::Span<const AttrValue> attrs() const;
  std::optional<uint32_t> payload(Attr attr) const;
  bool has(Attr attr) const { return payload(attr).has_value(); }
  bool bool_attr(Attr attr, bool absent = false) const;
  int64_t int_attr(Attr attr, int64_t absent = 0) const;
  float float_attr(Attr attr, float absent = 0) const;
  template <typename Enum>
  Enum enum_attr(Attr attr, Enum absent) const {
    const std::optional<uint32_t> p = payload(attr);
    return p ? static_cast<Enum>(*p) : absent;
  }
  std::string_view string_attr(Attr attr) const;         // "" when absent
  absl::Span<const int64_t> list_attr(Attr attr) const;  // empty when absent
  Computation computation_attr(Attr attr) const;         // invalid when absent
  // Calls `visit(Computation)` for each computation that the instruction calls, in attribute order.
  template <typename Visit>
  void ForEachCallee(Visit visit) const;
  // Returns the called computations as a list, for access by index: a conditional has its branches in this order.
  std::vector<Computation> called_computations() const;

  int64_t parameter_number() const { return record().payload; }
  LiteralId literal_id() const { return LiteralId(record().payload); }
  const LiteralRecord& literal() const;
  MetadataId metadata_id() const { return record().metadata; }
  Metadata metadata() const;

  friend bool operator==(Instruction a, Instruction b) { return a.id_ == b.id_ && a.module_ == b.module_; }
  friend bool operator!=(Instruction a, Instruction b) { return !(a == b); }

 private:
  const Module* module_ = nullptr;
  InstructionId id_;
};

class Computation {
 public:
  Computation() = default;
  Computation(const Module* module, ComputationId id) : module_(module), id_(id) {}

  bool valid() const { return module_ != nullptr && id_.valid(); }
  const Module& module() const { return *module_; }
  ComputationId id() const { return id_; }
  inline const ComputationRecord& record() const;

  inline std::string_view name() const;
  std::string_view execution_thread() const;  // "main" by default
  bool is_entry() const;
  inline Instruction root() const;
  int64_t parameter_count() const { return static_cast<int64_t>(record().parameters.size()); }
  inline Instruction parameter(int64_t i) const;
  int64_t instruction_count() const { return record().instruction_count; }

  // Iterates over the instructions in text order (as edited).
  class Iterator;
  class Range;
  inline Range instructions() const;

  friend bool operator==(Computation a, Computation b) { return a.id_ == b.id_ && a.module_ == b.module_; }
  friend bool operator!=(Computation a, Computation b) { return !(a == b); }

 private:
  const Module* module_ = nullptr;
  ComputationId id_;
};

class Module {
 public:
  explicit Module(std::shared_ptr<Context> context = std::make_shared<Context>());
  ~Module();
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Returns a copy with the same context and the same ids. The module and the copy must not be edited concurrently,
  // since they share the context.
  Module Clone() const;

  Context& context() const { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }
  ModuleHeader& header() { return header_; }
  const ModuleHeader& header() const { return header_; }
  std::string_view name() const { return context_->str(header_.name); }

  // ---- reading ----
  Instruction instruction(InstructionId id) const { return {this, id}; }
  Computation computation(ComputationId id) const { return {this, id}; }
  Computation entry() const { return {this, entry_}; }
  // Returns the live computations, in text order.
  std::vector<Computation> computations() const;
  size_t computation_count() const;
  // Return upper bounds of ids, for side arrays indexed by id.
  size_t instruction_id_bound() const { return instructions_.size(); }
  size_t computation_id_bound() const { return computations_.size(); }
  size_t instruction_count() const;
  // Returns false if no instruction has control predecessors.
  bool may_have_control_edges() const { return !control_successors_.empty(); }
  const InstructionRecord& record(InstructionId id) const { return instructions_[id.value]; }
  const ComputationRecord& record(ComputationId id) const { return computations_[id.value]; }
  const Use& use(UseId id) const { return uses_[id.value]; }
  absl::Span<const AttrValue> attrs_of(const InstructionRecord& r) const {
    return {attrs_.data() + r.attr_begin, r.attr_count};
  }
  // Calls `visit(ComputationId)` for each computation that the attribute names.
  template <typename Visit>
  void ForEachCallee(AttrValue value, Visit visit) const {
    if (!NamesComputations(value.attr)) return;
    if (!HoldsList(InfoOf(value.attr).type)) {
      visit(ComputationId(value.payload));
    } else {
      for (int64_t id : context_->list(ListId(value.payload))) visit(ComputationId(static_cast<uint32_t>(id)));
    }
  }
  int64_t DecodeInt64(uint32_t payload) const { return context_->DecodeInt64(payload); }
  uint32_t EncodeInt64(int64_t value) { return context_->EncodeInt64(value); }

  // ---- building and editing ----
  // Strings are copied unless they are ids already.
  ComputationId AddComputation(StringId name);
  // Sets the order of computations(). Requires: `order` names each one once.
  void SetComputationOrder(std::vector<ComputationId> order) { order_ = std::move(order); }
  void SetEntry(ComputationId id) { entry_ = id; }
  void SetName(ComputationId id, StringId name) { computations_[id.value].name = name; }
  void SetName(InstructionId id, StringId name) { instructions_[id.value].name = name; }
  void SetExecutionThread(ComputationId id, StringId thread) { computations_[id.value].execution_thread = thread; }
  void SetRoot(ComputationId id, InstructionId root) { computations_[id.value].root = root; }
  // Appends an instruction to the computation. Attributes come in any order and are stored in print order. A
  // parameter's payload is its number and a constant's its LiteralId. A parameter whose number is not the next free one
  // is not yet in parameters(): SetParameters then sets the whole list.
  InstructionId AddInstruction(ComputationId parent, Opcode opcode, Shape shape, StringId name,
                               absl::Span<const InstructionId> operands, absl::Span<const AttrValue> attrs = {},
                               uint32_t payload = 0);
  // Appends a copy of `source` with another name and other operands to `parent`. In another computation it has no
  // control predecessors.
  InstructionId CloneInstruction(ComputationId parent, InstructionId source, StringId name,
                                 absl::Span<const InstructionId> operands);
  void SetParameters(ComputationId id, std::vector<InstructionId> by_number) {
    computations_[id.value].parameters = std::move(by_number);
  }
  void SetShape(InstructionId id, Shape shape) { instructions_[id.value].shape = shape.id(); }
  void SetOpcode(InstructionId id, Opcode opcode) { instructions_[id.value].opcode = opcode; }
  void SetMetadata(InstructionId id, MetadataId metadata) { instructions_[id.value].metadata = metadata; }
  void SetPayload(InstructionId id, uint32_t payload) { instructions_[id.value].payload = payload; }
  void SetSource(InstructionId id, uint32_t offset) { instructions_[id.value].source_offset = offset; }
  void SetSource(ComputationId id, uint32_t offset) { computations_[id.value].source_offset = offset; }
  void SetFlag(InstructionId id, InstructionFlag flag) { instructions_[id.value].flags |= flag; }
  // Sets, replaces or removes one attribute.
  void SetAttr(InstructionId id, Attr attr, uint32_t payload);
  void RemoveAttr(InstructionId id, Attr attr);
  void SetAttrs(InstructionId id, absl::Span<const AttrValue> attrs);
  // Replaces each computation that the instruction calls by `replace(ComputationId)`. Returns true if that changed
  // anything. `replace` may add to the module.
  template <typename Replace>
  bool ReplaceCallees(InstructionId id, Replace replace);

  void ReplaceOperand(InstructionId user, int64_t index, InstructionId operand);
  // Replaces all operands.
  void SetOperands(InstructionId user, absl::Span<const InstructionId> operands);
  // Makes every user of `from` use `to`, except `to` itself; also replaces the root of the computation and control
  // predecessors. Requires: compatible shapes.
  void ReplaceAllUses(InstructionId from, InstructionId to);
  // Erases an instruction that has no users and is not the root. Its control predecessors become predecessors of its
  // control successors. A parameter leaves an empty slot: see RemoveParameter.
  void Erase(InstructionId id);
  // Erases several instructions. Requires: none is a parameter or root, only others of the list use them, and operands
  // come before users.
  void EraseInstructions(absl::Span<const InstructionId> ids);
  // Removes an unused parameter and renumbers those after it.
  void RemoveParameter(InstructionId id);
  // Moves `id` before `position` (none: to the end) in its computation.
  void MoveBefore(InstructionId id, InstructionId position);
  // Erases a computation without callers, and its instructions.
  void EraseComputation(ComputationId id);
  // Returns a copy of `source` (of this module) with a unique name derived from its name and `suffix`; callees are
  // shared.
  ComputationId CloneComputation(ComputationId source, std::string_view suffix = "clone");

  // Returns a name that no instruction (computation) of the module has: `base`, or `base.N` with the smallest free N in
  // XLA's numbering. Marks the result as used.
  StringId UniqueInstructionName(std::string_view base);
  StringId UniqueInstructionName(StringId base);
  StringId UniqueComputationName(std::string_view base);
  StringId UniqueComputationName(StringId base);

  // To be called after names were set that did not come from these functions.
  void ForgetUniqueNames();

  // Returns the payload of a list-valued attribute.
  uint32_t ListPayload(absl::Span<const int64_t> list) { return context_->lists.Intern(list).value; }

  void Reserve(size_t instructions, size_t operands, size_t attrs);
  // Releases memory reserved for growth.
  void ShrinkToFit();
  // Returns the bytes of the arrays of this module, without the context.
  size_t bytes() const;

 private:
  friend class Instruction;
  friend class Computation;

  void Link(UseId use);
  void Unlink(UseId use);
  void AppendToOrder(InstructionId id, ComputationId parent);
  void RemoveFromOrder(InstructionId id);
  void AddOperands(InstructionId id, absl::Span<const InstructionId> operands);
  void StoreAttrs(InstructionId id, absl::Span<const AttrValue> attrs);
  void AddControlEdges(InstructionId successor);
  void DropControlEdges(InstructionId successor);
  NameUniquer& InstructionNames();
  NameUniquer& ComputationNames();

  std::shared_ptr<Context> context_;
  ModuleHeader header_;
  RecordArray<InstructionRecord> instructions_;
  RecordArray<Use> uses_;
  RecordArray<AttrValue> attrs_;
  std::vector<ComputationRecord> computations_;
  std::vector<ComputationId> order_;
  ComputationId entry_;
  std::unique_ptr<NameUniquer> instruction_names_;  // created for the first unique name
  std::unique_ptr<NameUniquer> computation_names_;
  // By instruction, its control successors.
  absl::flat_hash_map<uint32_t, std::vector<InstructionId>> control_successors_;
};

// ---- inline ----

inline const InstructionRecord& Instruction::record() const { return module_->record(id_); }
inline Shape Instruction::shape() const { return module_->context().shape(record().shape); }
inline std::string_view Instruction::name() const { return module_->context().str(record().name); }
inline Computation Instruction::parent() const { return {module_, record().parent}; }
inline Instruction Instruction::operand(int64_t i) const {
  return {module_, module_->uses_[record().operand_begin + i].def};
}
inline absl::Span<const AttrValue> Instruction::attrs() const { return module_->attrs_of(record()); }

template <typename Visit>
inline void Instruction::ForEachCallee(Visit visit) const {
  const InstructionRecord& r = record();
  if (!MightHaveCalledComputations(r.opcode)) return;
  for (const AttrValue& value : module_->attrs_of(r)) {
    module_->ForEachCallee(value, [&](ComputationId callee) { visit(Computation(module_, callee)); });
  }
}

class Instruction::OperandIterator {
 public:
  using value_type = Instruction;
  using difference_type = std::ptrdiff_t;
  OperandIterator(const Module* module, const Use* use) : module_(module), use_(use) {}
  Instruction operator*() const { return {module_, use_->def}; }
  OperandIterator& operator++() {
    ++use_;
    return *this;
  }
  friend bool operator!=(const OperandIterator& a, const OperandIterator& b) { return a.use_ != b.use_; }
  friend bool operator==(const OperandIterator& a, const OperandIterator& b) { return a.use_ == b.use_; }

 private:
  const Module* module_;
  const Use* use_;
};

class Instruction::OperandRange {
 public:
  OperandRange(const Module* module, const Use* begin, size_t size) : module_(module), begin_(begin), size_(size) {}
  OperandIterator begin() const { return {module_, begin_}; }
  OperandIterator end() const { return {module_, begin_ + size_}; }
  size_t size() const { return size_; }
  Instruction operator[](size_t i) const { return {module_, begin_[i].def}; }

 private:
  const Module* module_;
  const Use* begin_;
  size_t size_;
};

inline Instruction::OperandRange Instruction::operands() const {
  const InstructionRecord& r = record();
  return {module_, module_->uses_.data() + r.operand_begin, r.operand_count};
}

class Instruction::UseRange {
 public:
  struct Value {
    Instruction user;
    int64_t operand_index;
  };
  class Iterator {
   public:
    Iterator(const Module* module, UseId at, UseId first) : module_(module), at_(at), first_(first) {}
    Value operator*() const {
      const Use& use = module_->use(at_);
      const Instruction user(module_, use.user);
      return {user, static_cast<int64_t>(at_.value) - user.record().operand_begin};
    }
    Iterator& operator++() {
      at_ = module_->use(at_).next;
      if (at_ == first_) at_ = UseId();
      return *this;
    }
    friend bool operator!=(const Iterator& a, const Iterator& b) { return a.at_ != b.at_; }

   private:
    const Module* module_;
    UseId at_;
    UseId first_;
  };
  UseRange(const Module* module, UseId first) : module_(module), first_(first) {}
  Iterator begin() const { return {module_, first_, first_}; }
  Iterator end() const { return {module_, UseId(), first_}; }

 private:
  const Module* module_;
  UseId first_;
};
inline Instruction::UseRange Instruction::uses() const { return {module_, record().first_use}; }

inline const ComputationRecord& Computation::record() const { return module_->record(id_); }
inline std::string_view Computation::name() const { return module_->context().str(record().name); }
inline Instruction Computation::root() const { return {module_, record().root}; }
inline Instruction Computation::parameter(int64_t i) const { return {module_, record().parameters[i]}; }

class Computation::Iterator {
 public:
  using value_type = Instruction;
  using difference_type = std::ptrdiff_t;
  Iterator(const Module* module, InstructionId at) : module_(module), at_(at) {}
  Instruction operator*() const { return {module_, at_}; }
  Iterator& operator++() {
    at_ = module_->record(at_).next;
    return *this;
  }
  friend bool operator!=(const Iterator& a, const Iterator& b) { return a.at_ != b.at_; }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

 private:
  const Module* module_;
  InstructionId at_;
};

class Computation::Range {
 public:
  Range(const Module* module, InstructionId first) : module_(module), first_(first) {}
  Iterator begin() const { return {module_, first_}; }
  Iterator end() const { return {module_, InstructionId()}; }

 private:
  const Module* module_;
  InstructionId first_;
};
inline Computation::Range Computation::instructions() const { return {module_, record().first}; }

template <typename Replace>
bool Module::ReplaceCallees(InstructionId id, Replace replace) {
  bool changed = false;
  std::vector<int64_t> callees;
  for (uint32_t k = 0; k < record(id).attr_count; ++k) {
    const AttrValue value = attrs_of(record(id))[k];
    if (!NamesComputations(value.attr)) continue;
    uint32_t payload = value.payload;
    if (!HoldsList(InfoOf(value.attr).type)) {
      payload = replace(ComputationId(payload)).value;
    } else {
      // `replace` may reallocate the lists of the context.
      const absl::Span<const int64_t> list = context_->list(ListId(payload));
      callees.assign(list.begin(), list.end());
      for (int64_t& callee : callees) callee = replace(ComputationId(static_cast<uint32_t>(callee))).value;
      payload = ListPayload(callees);
    }
    if (payload == value.payload) continue;
    attrs_[record(id).attr_begin + k].payload = payload;
    changed = true;
  }
  return changed;
}

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_MODULE_H_
