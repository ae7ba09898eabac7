// SPDX-License-Identifier: Apache-2.0
#include "ir/digest/fingerprint.h"

#include <algorithm>
#include <array>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/digest/content_digest.h"
#include "ir/digest/fingerprint_internal.h"
#include "ir/graph/async.h"
#include "ir/graph/potential_callers.h"
#include "ir/graph/side_effects.h"
#include "ir/graph/traversal.h"

namespace hlokit {
namespace {

// First words of the components that are hashed.
enum InstructionTag : uint64_t {
  kEndOfAttributes = 1,
  kOrdinalTag,
  kMetadataTag,
  kControlTag,
  kComputationTag,
  kScheduleTag,
  kUncalledTag,
  kWrappedOperandsTag,
};

// The digest of an instruction in progress, which only cycles ever read. No digest has a high word of 0.
constexpr Digest kInProgress{0, 1};

bool IsKnown(const Digest& digest) { return digest.high != 0; }

PrintOptions PrintOptionsFor(const FingerprintOptions& options) {
  PrintOptions print;
  print.print_metadata = options.metadata;
  print.include_layout_in_shapes = options.layout;
  return print;
}

// Returns true if an instruction of the opcode may itself have a side effect.
bool MayHaveEffect(Opcode opcode) {
  constexpr uint32_t kAny = kSideEffect | kCollective | kAsyncChain;
  return (kOpcodeTraits[static_cast<size_t>(opcode)] & kAny) != 0 || opcode == Opcode::kCustomCall;
}

// Kinds of callers of a computation.
enum Caller : uint8_t { kFusionCalls = 1, kAsyncCalls = 2, kOtherCalls = 4 };

class Hasher {
 public:
  Hasher(const Module& module, const FingerprintOptions& options, std::vector<Digest>* instructions,
         std::vector<Digest>* computations)
      : module_(module),
        context_(module.context()),
        options_(options),
        print_options_(PrintOptionsFor(options)),
        contents_(module, print_options_),
        instructions_(*instructions),
        computations_(*computations),
        has_effects_(module.computation_id_bound()),
        callers_(module.computation_id_bound()),
        is_wrapper_(module.computation_id_bound()) {
    instructions_.resize(module.instruction_id_bound());
    computations_.resize(module.computation_id_bound());
    for (size_t i = 0; i < kAttrCount; ++i) included_[i] = options.Includes(kAttrInfo[i].category);
    included_[static_cast<size_t>(Attr::kControlPredecessors)] = false;  // hashed with the operands
  }

  // Digests all computations.
  void HashComputations() {
    const PotentialCallers callers(module_);
    CollectCallers(callers);
    // Each after those that it calls, as far as the calls run in no circle.
    for (ComputationId id : ComputationPostOrder(module_, callers)) HashComputation(id);
  }
  std::vector<ComputationId> Uncalled() const;
  Digest HashModule(const std::vector<ComputationId>& uncalled);

 private:
  // Fills callers_.
  void CollectCallers(const PotentialCallers& callers);
  void HashComputation(ComputationId id);
  void HashInOrder(ComputationId id);
  // Digests `id` after its dependencies, in any order of instructions.
  void HashWithDependencies(InstructionId id);
  // Digests one instruction. Returns false if a dependency has not been digested yet, unless `force`.
  bool HashInstruction(InstructionId id, bool force);
  void AddAttr(const AttrValue& value);
  void AddListAttr(const AttrValue& value);
  // Adds the opcode of an async-start, -update or -done as the text has it. Returns the wrapped operation that its line
  // in the text represents, if there is one.
  Instruction AddAsyncOperation(InstructionId id);
  // Returns the attributes on that line.
  absl::Span<const AttrValue> WithWrapped(const InstructionRecord& start, Instruction wrapped);

  bool HasEffect(InstructionId id) const;
  std::vector<InstructionId> ControlPredecessors(const InstructionRecord& r) const;
  // Returns the digests of the sinks, ascending.
  std::vector<Digest> SinkDigests(ComputationId id) const;
  // Numbers instructions with side effects and equal digests. Returns false if there are none.
  bool DisambiguateDuplicates(ComputationId id);

  const Module& module_;
  const Context& context_;
  const FingerprintOptions options_;
  const PrintOptions print_options_;
  ContentDigests contents_;
  std::vector<Digest>& instructions_;
  std::vector<Digest>& computations_;
  std::vector<uint8_t> has_effects_;  // by computation
  std::vector<uint8_t> callers_;      // by computation: Caller bits
  std::array<bool, kAttrCount> included_;
  // By computation: hidden in the text, since an async-start of one operation is written `all-gather-start` and so on.
  // Of its attributes, the text has those specific to the operation.
  std::vector<uint8_t> is_wrapper_;
  bool wrapped_ = false;                                // is_wrapper_ of the current computation
  absl::flat_hash_map<uint32_t, InstructionId> async_;  // async-start and -update -> wrapped instruction
  std::vector<AttrValue> merged_attrs_;
  std::vector<InstructionId> effects_;                // of the current computation, with side effects
  absl::flat_hash_map<uint32_t, uint64_t> ordinals_;  // of duplicates after the first
  DigestWords words_;
};

void Hasher::CollectCallers(const PotentialCallers& callers) {
  for (InstructionId caller : callers.all()) {
    const Opcode opcode = module_.record(caller).opcode;
    const Caller kind = opcode == Opcode::kFusion       ? kFusionCalls
                        : opcode == Opcode::kAsyncStart ? kAsyncCalls
                                                        : kOtherCalls;
    module_.instruction(caller).ForEachCallee([&](Computation callee) { callers_[callee.id().value] |= kind; });
  }
}

bool Hasher::HasEffect(InstructionId id) const {
  const InstructionRecord& r = module_.record(id);
  if (MayHaveEffect(r.opcode) && HasSideEffectNoRecurse({&module_, id})) return true;
  bool effect = false;
  module_.instruction(id).ForEachCallee([&](Computation callee) { effect |= has_effects_[callee.id().value] != 0; });
  return effect;
}

std::vector<InstructionId> Hasher::ControlPredecessors(const InstructionRecord& r) const {
  std::vector<InstructionId> predecessors;
  for (const AttrValue& value : module_.attrs_of(r)) {
    if (value.attr != Attr::kControlPredecessors) continue;
    for (int64_t id : context_.list(ListId(value.payload))) predecessors.emplace_back(static_cast<uint32_t>(id));
  }
  return predecessors;
}

void Hasher::AddAttr(const AttrValue& value) {
  words_.Add(DigestWord(value.attr));
  const AttrInfo& info = InfoOf(value.attr);
  switch (InfoOf(info.type).payload) {
    case PayloadKind::kBool:
    case PayloadKind::kFloat:
      words_.Add(value.payload);
      break;
    case PayloadKind::kInt64:
      words_.Add(static_cast<uint64_t>(module_.DecodeInt64(value.payload)));
      break;
    case PayloadKind::kEnum:
      words_.Add(DigestWord(info.enum_type, value.payload));
      break;
    case PayloadKind::kString:
      words_.Add(contents_.OfString(StringId(value.payload)));
      break;
    case PayloadKind::kComputation:
      words_.Add(computations_[value.payload]);
      break;
    case PayloadKind::kShape:
      words_.Add(contents_.OfShape(context_.shape(ShapeId(value.payload)), options_.layout));
      break;
    case PayloadKind::kLiteral:
      words_.Add(contents_.OfLiteral(LiteralId(value.payload)));
      break;
    case PayloadKind::kMetadata:
      words_.Add(contents_.OfMetadata(MetadataId(value.payload)));
      break;
    case PayloadKind::kList:
      AddListAttr(value);
      break;
  }
}

void Hasher::AddListAttr(const AttrValue& value) {
  const absl::Span<const int64_t> list = context_.list(ListId(value.payload));
  switch (InfoOf(InfoOf(value.attr).type).elements) {
    case ElementKind::kInteger:
    case ElementKind::kIntegerList:
    case ElementKind::kBool:
    case ElementKind::kPrecision:
      words_.AddList(list);
      break;
    case ElementKind::kComputation:
      words_.Add(list.size());
      for (int64_t id : list) words_.Add(computations_[static_cast<size_t>(id)]);
      break;
    case ElementKind::kShape:
      // Lists of shapes state layouts (operand_layout_constraints), whatever the options.
      words_.Add(list.size());
      for (int64_t id : list) words_.Add(contents_.OfShape(context_.shape(ShapeId(static_cast<uint32_t>(id))), true));
      break;
    case ElementKind::kString:
      words_.Add(list.size());
      for (int64_t id : list) words_.Add(contents_.OfString(StringId(static_cast<uint32_t>(id))));
      break;
    case ElementKind::kMixed:
      words_.Add(contents_.OfPrinted(value));
      break;
    case ElementKind::kInstruction:  // control predecessors are hashed with the operands
    case ElementKind::kNone:
      break;
  }
}

bool Hasher::HashInstruction(InstructionId id, bool force) {
  const InstructionRecord& r = module_.record(id);
  words_.Clear();
  Instruction wrapped;
  if (HasTrait(r.opcode, kGenericAsync)) {
    wrapped = AddAsyncOperation(id);
  } else {
    words_.Add(DigestWord(r.opcode));
  }
  words_.Add(contents_.OfShape(context_.shape(r.shape), options_.layout));
  bool has_control = false;
  for (const AttrValue& value : wrapped.valid() ? WithWrapped(r, wrapped) : module_.attrs_of(r)) {
    if (included_[static_cast<size_t>(value.attr)]) {
      if (!wrapped_ || !IsCommon(value.attr)) AddAttr(value);
    } else if (value.attr == Attr::kControlPredecessors) {
      has_control = true;
    }
  }
  words_.Add(kEndOfAttributes);
  if (r.opcode == Opcode::kConstant) {
    words_.Add(contents_.OfLiteral(LiteralId(r.payload)));
  } else if (r.opcode == Opcode::kParameter) {
    words_.Add(r.payload);
  }
  if (options_.metadata && r.metadata.valid() && !wrapped_) {
    words_.Add(kMetadataTag);
    words_.Add(contents_.OfMetadata(r.metadata));
  }
  if (!ordinals_.empty()) {
    if (const auto found = ordinals_.find(id.value); found != ordinals_.end()) {
      words_.Add(kOrdinalTag);
      words_.Add(found->second);
    }
  }
  words_.Add(r.operand_count);
  for (uint32_t i = 0; i < r.operand_count; ++i) {
    const Digest& operand = instructions_[module_.use(UseId(r.operand_begin + i)).def.value];
    if (!IsKnown(operand) && !force) return false;
    words_.Add(operand);
  }
  if (has_control) {
    std::vector<Digest> digests;
    for (InstructionId predecessor : ControlPredecessors(r)) {
      digests.push_back(instructions_[predecessor.value]);
      if (!IsKnown(digests.back()) && !force) return false;
    }
    std::sort(digests.begin(), digests.end());
    words_.Add(kControlTag);
    for (const Digest& digest : digests) words_.Add(digest);
  }
  Digest digest = words_.Finish();
  if (digest.high == 0) digest.high = 1;
  instructions_[id.value] = digest;
  return true;
}

Instruction Hasher::AddAsyncOperation(InstructionId id) {
  const InstructionRecord& r = module_.record(id);
  Instruction wrapped;
  std::string_view suffix = "-start";
  if (r.opcode == Opcode::kAsyncStart) {
    const Computation wrapper = module_.instruction(id).computation_attr(Attr::kCalls);
    if (wrapper.valid() && is_wrapper_[wrapper.id().value]) wrapped = wrapper.root();
  } else if (r.operand_count > 0) {
    const auto found = async_.find(module_.use(UseId(r.operand_begin)).def.value);
    if (found != async_.end()) wrapped = {&module_, found->second};
    suffix = r.opcode == Opcode::kAsyncUpdate ? "-update" : "-done";
  }
  if (!wrapped.valid()) {
    words_.Add(DigestWord(r.opcode));
    return {};
  }
  async_[id.value] = wrapped.id();
  words_.Add(DigestOf(StrCat(wrapped.opcode_text(), suffix)).low);
  if (r.opcode != Opcode::kAsyncStart) return {};
  // The text implies that the wrapped operation has the parameters in order.
  bool in_order = wrapped.operand_count() == wrapped.parent().parameter_count();
  for (int64_t i = 0; in_order && i < wrapped.operand_count(); ++i) {
    in_order = wrapped.operand(i) == wrapped.parent().parameter(i);
  }
  if (!in_order) {
    words_.Add(kWrappedOperandsTag);
    for (Instruction operand : wrapped.operands()) words_.Add(operand.record().payload);
  }
  return wrapped;
}

absl::Span<const AttrValue> Hasher::WithWrapped(const InstructionRecord& start, Instruction wrapped) {
  merged_attrs_.clear();
  const auto start_has = [&](Attr attr) {
    for (const AttrValue& value : module_.attrs_of(start)) {
      if (value.attr == attr) return true;
    }
    return false;
  };
  for (const AttrValue& value : wrapped.attrs()) {
    // As printed: attributes of the start are not repeated, and backend_config is that of the start.
    if (IsCommon(value.attr) && (value.attr == Attr::kBackendConfig || start_has(value.attr))) continue;
    merged_attrs_.push_back(value);
  }
  for (const AttrValue& value : module_.attrs_of(start)) {
    if (value.attr != Attr::kCalls) merged_attrs_.push_back(value);
  }
  // In the order of the opcode of that name, if there is one: all-gather-start.
  const Opcode named = OpcodeFromText(StrCat(wrapped.opcode_text(), "-start")).value_or(wrapped.opcode());
  std::stable_sort(merged_attrs_.begin(), merged_attrs_.end(), [&](const AttrValue& a, const AttrValue& b) {
    return AttrOrder(named, a.attr) < AttrOrder(named, b.attr);
  });
  return merged_attrs_;
}

void Hasher::HashWithDependencies(InstructionId start) {
  struct Frame {
    InstructionId id;
    uint32_t next = 0;  // next dependency: operands, then control predecessors
    std::vector<InstructionId> control;
  };
  std::vector<Frame> stack;
  const auto push = [&](InstructionId id) {
    instructions_[id.value] = kInProgress;
    stack.push_back({id, 0, ControlPredecessors(module_.record(id))});
  };
  push(start);
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const InstructionRecord& r = module_.record(frame.id);
    if (frame.next == r.operand_count + frame.control.size()) {
      HashInstruction(frame.id, /*force=*/true);
      stack.pop_back();
      continue;
    }
    const uint32_t i = frame.next++;
    const InstructionId dependency =
        i < r.operand_count ? module_.use(UseId(r.operand_begin + i)).def : frame.control[i - r.operand_count];
    if (instructions_[dependency.value] == Digest{}) push(dependency);
  }
}

void Hasher::HashInOrder(ComputationId id) {
  // Texts define before use, so each instruction is usually visited once.
  for (InstructionId i = module_.record(id).first; i.valid(); i = module_.record(i).next) {
    if (instructions_[i.value] == Digest{} && !HashInstruction(i, /*force=*/false)) HashWithDependencies(i);
  }
}

std::vector<Digest> Hasher::SinkDigests(ComputationId id) const {
  std::vector<Digest> digests;
  for (InstructionId i = module_.record(id).first; i.valid(); i = module_.record(i).next) {
    if (!module_.record(i).first_use.valid() && IsSink({&module_, i})) digests.push_back(instructions_[i.value]);
  }
  std::sort(digests.begin(), digests.end());
  return digests;
}

bool Hasher::DisambiguateDuplicates(ComputationId id) {
  ordinals_.clear();
  if (effects_.size() < 2) return false;
  absl::flat_hash_map<Digest, uint64_t> numbered;  // digest -> number of numbered duplicates
  {
    std::vector<Digest> digests;
    for (InstructionId i : effects_) digests.push_back(instructions_[i.value]);
    std::sort(digests.begin(), digests.end());
    for (size_t i = 1; i < digests.size(); ++i) {
      if (digests[i] == digests[i - 1]) numbered.try_emplace(digests[i]);
    }
  }
  if (numbered.empty()) return false;
  // The numbers come from a traversal that depends only on the graph: from the root, then from the sinks in the order
  // of their digests, through operands by position. (Sinks with equal digests are visited in text order.)
  std::vector<InstructionId> starts;
  for (InstructionId i = module_.record(id).first; i.valid(); i = module_.record(i).next) {
    if (!module_.record(i).first_use.valid() && IsSink({&module_, i})) starts.push_back(i);
  }
  const auto by_digest = [&](InstructionId a, InstructionId b) {
    return instructions_[a.value] < instructions_[b.value];
  };
  std::stable_sort(starts.begin(), starts.end(), by_digest);
  if (module_.record(id).root.valid()) starts.insert(starts.begin(), module_.record(id).root);

  absl::flat_hash_set<uint32_t> seen;
  std::vector<InstructionId> stack;
  for (InstructionId start : starts) {
    stack.assign(1, start);
    while (!stack.empty()) {
      const InstructionId at = stack.back();
      stack.pop_back();
      if (!seen.insert(at.value).second) continue;
      const InstructionRecord& r = module_.record(at);
      if (const auto found = numbered.find(instructions_[at.value]); found != numbered.end() && HasEffect(at)) {
        if (found->second != 0) ordinals_[at.value] = found->second;
        ++found->second;
      }
      std::vector<InstructionId> control = ControlPredecessors(r);
      std::stable_sort(control.begin(), control.end(), by_digest);
      stack.insert(stack.end(), control.rbegin(), control.rend());
      for (uint32_t i = r.operand_count; i-- > 0;) stack.push_back(module_.use(UseId(r.operand_begin + i)).def);
    }
  }
  return !ordinals_.empty();
}

void Hasher::HashComputation(ComputationId id) {
  const ComputationRecord& c = module_.record(id);
  wrapped_ = (callers_[id.value] & kAsyncCalls) != 0 && IsSingleInstructionWrapper(module_.computation(id));
  is_wrapper_[id.value] = wrapped_;
  HashInOrder(id);
  effects_.clear();
  for (InstructionId i = c.first; i.valid(); i = module_.record(i).next) {
    if (HasEffect(i)) effects_.push_back(i);
  }
  has_effects_[id.value] = !effects_.empty();
  if (DisambiguateDuplicates(id)) {
    for (InstructionId i = c.first; i.valid(); i = module_.record(i).next) instructions_[i.value] = {};
    HashInOrder(id);
    ordinals_.clear();
  }

  const std::vector<Digest> sinks = SinkDigests(id);
  words_.Clear();
  words_.Add(kComputationTag);
  words_.Add(DigestOf(module_.computation(id).execution_thread()));
  words_.Add(c.parameters.size());
  for (InstructionId parameter : c.parameters) {
    words_.Add(parameter.valid() ? instructions_[parameter.value] : Digest{});
  }
  words_.Add(c.root.valid() ? instructions_[c.root.value] : Digest{});
  words_.Add(sinks.size());
  for (const Digest& sink : sinks) words_.Add(sink);
  if (options_.schedule && module_.header().is_scheduled && (callers_[id.value] & kFusionCalls) == 0) {
    words_.Add(kScheduleTag);
    for (InstructionId i = c.first; i.valid(); i = module_.record(i).next) words_.Add(instructions_[i.value]);
  }
  computations_[id.value] = words_.Finish();
}

std::vector<ComputationId> Hasher::Uncalled() const {
  std::vector<ComputationId> uncalled;
  for (Computation c : module_.computations()) {
    if (callers_[c.id().value] == 0 && !c.is_entry()) uncalled.push_back(c.id());
  }
  return uncalled;
}

Digest Hasher::HashModule(const std::vector<ComputationId>& uncalled) {
  words_.Clear();
  AddHeader(module_, options_, &contents_, &words_);
  const ComputationId entry = module_.entry().id();
  words_.Add(entry.valid() ? computations_[entry.value] : Digest{});
  std::vector<Digest> others;
  for (ComputationId id : uncalled) others.push_back(computations_[id.value]);
  std::sort(others.begin(), others.end());
  words_.Add(kUncalledTag);
  for (const Digest& digest : others) words_.Add(digest);
  return words_.Finish();
}

}  // namespace

bool FingerprintOptions::Includes(AttrCategory meaning) const {
  switch (meaning) {
    case AttrCategory::kSemantic:
      return true;
    case AttrCategory::kSharding:
      return sharding;
    case AttrCategory::kFrontend:
      return frontend_attributes;
    case AttrCategory::kAnnotation:
      return metadata;
  }
  return true;
}

FingerprintTable::FingerprintTable(const Module& module, const FingerprintOptions& options) : options_(options) {
  Hasher hasher(module, options, &instructions_, &computations_);
  hasher.HashComputations();
  uncalled_ = hasher.Uncalled();
  module_ = hasher.HashModule(uncalled_);
}

Digest Fingerprint(const Module& module, const FingerprintOptions& options) {
  return FingerprintTable(module, options).module();
}

bool IsSink(Instruction instruction) {
  return !instruction.has_users() && !instruction.is_root() && instruction.opcode() != Opcode::kParameter &&
         instruction.control_successors().empty();
}

}  // namespace hlokit
