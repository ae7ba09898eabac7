// SPDX-License-Identifier: Apache-2.0
// Instructions in JSON.
#include <algorithm>
#include <iterator>

#include "ir/core/suggest.h"
#include "ir/graph/metadata_fields.h"
#include "parser/hlo/literal_parser.h"
#include "parser/json/json_module_parser.h"
#include "parser/text/instruction_rules.h"

namespace hlokit {
namespace {

constexpr std::string_view kKeys[] = {"name",    "opcode", "shape",      "operands",           "parameter",
                                      "literal", "elided", "attributes", "unknown_attributes", "metadata"};
enum Key : size_t {
  kName,
  kOpcode,
  kShape,
  kOperands,
  kParameter,
  kLiteral,
  kElided,
  kAttributes,
  kUnknown,
  kMetadata
};

SourceRange InsideQuotes(SourceRange range) { return {range.offset + 1, range.size - 2}; }

}  // namespace

void JsonModuleParser::PendingInstruction::Reset() {
  draft = InstructionDraft();
  attrs.clear();
  unknown.clear();
  operands.clear();
  predecessors.clear();
  place = SourceRange();
  seen = 0;
  broken = false;
  attributes_at = literal_at = SourceRange::kNoOffset;
}

bool JsonModuleParser::ReadInstruction(PendingInstruction* d) {
  d->place = {in_.Offset(), 1};
  JsonObject object(in_, "an instruction, which is an object");
  JsonString key;
  while (object.Next(&key)) {
    if (!Member(&d->broken, [&] { return ReadInstructionMember(key, d); })) return false;
  }
  if (!object.ok()) return false;
  const uint32_t end = in_.Offset();
  if (d->literal_at != SourceRange::kNoOffset && d->draft.shape.valid()) {
    in_.Seek(d->literal_at);
    if (!Member(&d->broken, [&] { return ReadLiteral(d); })) return false;
  }
  if (d->attributes_at != SourceRange::kNoOffset && d->has_opcode()) {
    in_.Seek(d->attributes_at);
    if (!Member(&d->broken, [&] { return ReadAttributes(d); })) return false;
  }
  in_.Seek(end);
  d->broken = !CheckMembers(d) || d->broken;
  return true;
}

bool JsonModuleParser::ReadInstructionMember(const JsonString& key, PendingInstruction* d) {
  InstructionDraft& f = d->draft;
  bool ok;
  switch (FindKey(key, "an instruction", kKeys, &d->seen, &ok)) {
    case kName: {
      Reference name;
      if (!ReadName(&name, "the name of the instruction")) return false;
      d->place = InsideQuotes(name.range);
      f.name = name.name;
      f.name_offset = d->place.offset;
      f.name_size = d->place.size;
      return true;
    }
    case kOpcode:
      return ReadOpcode(d);
    case kShape:
      return ReadShape(&f.shape);
    case kOperands:
      return ReadReferences(&d->operands, "the name of an operand");
    case kParameter:
      return ReadParameterNumber(d);
    case kLiteral:
      if (f.shape.valid()) return ReadLiteral(d);
      d->literal_at = in_.Offset();
      return in_.Skip();
    case kElided: {
      bool elided;
      if (!in_.Bool(&elided, "true or false")) return false;
      if (!elided) d->seen &= ~(1u << kElided);
      return true;
    }
    case kAttributes:
      if (d->has_opcode()) return ReadAttributes(d);
      d->attributes_at = in_.Offset();
      return in_.Skip();
    case kUnknown:
      return ReadUnknownPairs("an instruction", &d->unknown);
    case kMetadata:
      return ReadMetadata(&f.metadata);
  }
  return ok;
}

bool JsonModuleParser::ReadOpcode(PendingInstruction* d) {
  InstructionDraft& f = d->draft;
  Reference word;
  if (!ReadName(&word, "an opcode")) return false;
  const std::string_view text = context().str(word.name);
  const SourceRange range = InsideQuotes(word.range);
  f.opcode_offset = range.offset;
  if (const std::optional<Opcode> opcode = OpcodeFromText(text)) {
    f.opcode = *opcode;
    f.opcode_size = range.size;
    return true;
  }
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kOpcodeCount; ++i) names.push_back(ToString(static_cast<Opcode>(i)));
  std::string hint = DidYouMean(text, names);
  if (AsyncSugarFromText(text))
    hint = "JSON has async-start, async-update and async-done with the computation they call";
  if (!options_.allow_unknown) {
    return Error(DiagnosticKind::kUnknownOpcode, range, StrCat("expected an opcode, found `", text, "`"),
                 UnknownOpcodeHint(hint));
  }
  sink_->Warning(DiagnosticKind::kUnknownOpcode, range, StrCat("unknown opcode `", text, "`; preserved"), hint);
  f.opcode = Opcode::kUnknown;
  f.opcode_size = range.size;
  d->attrs.push_back({Attr::kUnknownOpcode, word.name.value});
  return true;
}

bool JsonModuleParser::ReadParameterNumber(PendingInstruction* d) {
  const SourceRange range = in_.Next();
  int64_t number;
  if (!in_.Int(&number, "the number of the parameter")) return false;
  if (number < 0 || number > INT32_MAX) {
    return Error(DiagnosticKind::kBadParameter, range, StrCat("parameter number ", number, " is out of range"));
  }
  d->draft.payload = static_cast<uint32_t>(number);
  return true;
}

bool JsonModuleParser::ReadLiteral(PendingInstruction* d) {
  JsonString s;
  return in_.String(&s, "a literal in a string") && ReadText(s, /*keeps_views=*/false, [&] {
           LiteralLimits limits;
           limits.budget = &literal_budget_;
           LiteralId literal;
           if (!ParseLiteral(text_in_, &context(), d->draft.shape, limits, &literal)) return false;
           d->draft.payload = literal.value;
           return true;
         });
}

bool JsonModuleParser::ReadReferences(std::vector<Reference>* out, std::string_view what) {
  JsonArray array(in_, "a list of names");
  while (array.Next()) {
    if (!ReadName(&out->emplace_back(), what)) return false;
  }
  return array.ok();
}

// Checks that the members are valid for this opcode, and that none is missing.
bool JsonModuleParser::CheckMembers(PendingInstruction* d) {
  InstructionDraft& f = d->draft;
  const auto has = [d](Key key) { return (d->seen >> key & 1) != 0; };
  const auto missing = [&](Key key) {
    return Error(DiagnosticKind::kMissingAttribute, d->place,
                 StrCat("missing key `", kKeys[key], "` in an instruction"));
  };
  if (!has(kName)) return missing(kName);
  if (!has(kOpcode)) return missing(kOpcode);
  if (!has(kShape)) return Error(DiagnosticKind::kMissingShape, d->place, "missing key `shape` in an instruction");
  if (d->broken) return false;
  const auto only = [&](Key key, bool fits, std::string_view of) {
    if (!has(key) || fits) return true;
    return Error(DiagnosticKind::kUnknownAttribute, d->place,
                 StrCat("unexpected key `", kKeys[key], "`: only ", of, " have it"));
  };
  const bool constant = f.opcode == Opcode::kConstant;
  if (!only(kParameter, f.opcode == Opcode::kParameter, "parameters") || !only(kLiteral, constant, "constants") ||
      !only(kElided, constant, "constants")) {
    return false;
  }
  if (f.opcode == Opcode::kParameter && !has(kParameter)) return missing(kParameter);
  if (constant && has(kLiteral) == has(kElided)) {
    return Error(DiagnosticKind::kMissingAttribute, d->place,
                 "expected exactly one of the keys `literal` and `elided` in a constant");
  }
  if (has(kElided)) f.payload = context().literals.AddElided(f.shape).value;
  for (size_t i = 0; i < d->unknown.size(); i += 2) {
    const std::string_view name = context().str(StringId(static_cast<uint32_t>(d->unknown[i])));
    for (Attr attr : AttrsFromText(name)) {
      if (FindAttrSpec(f.opcode, attr) == nullptr) continue;
      return Error(DiagnosticKind::kBadAttribute, d->place,
                   StrCat("`", name, "` is a known attribute of ", ToString(f.opcode), "; expected an unknown one"));
    }
  }
  if (!d->unknown.empty()) d->attrs.push_back({Attr::kUnknownAttributes, module().ListPayload(d->unknown)});
  return true;
}

// ---- metadata ----

bool JsonModuleParser::ReadMetadata(MetadataId* id) {
  Metadata metadata;
  uint32_t seen = 0;
  JsonObject object(in_, "an object: metadata");
  JsonString key;
  while (object.Next(&key)) {
    if (!ReadMetadataField(key, &metadata, &seen)) return false;
  }
  if (!object.ok()) return false;
  *id = context().metadata.Intern(metadata);
  return true;
}

bool JsonModuleParser::ReadMetadataField(const JsonString& key, Metadata* m, uint32_t* seen) {
  static constexpr auto kNames = [] {
    std::array<std::string_view, std::size(kMetadataFields)> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = kMetadataFields[i].name;
    return names;
  }();
  bool ok;
  const size_t i = FindKey(key, "metadata", kNames, seen, &ok);
  if (i == kNames.size()) return ok;
  const MetadataField& field = kMetadataFields[i];
  if (field.string != nullptr) {
    JsonString s;
    if (!in_.String(&s, "a string")) return false;
    if (!s.value.empty()) m->*field.string = InternString(s);  // an empty string is equivalent to none
    return true;
  }
  if (field.number != nullptr) return ReadInt32(&(m->*field.number), "an integer");
  if (field.flag != nullptr) return in_.Bool(&(m->*field.flag), "true or false");
  constexpr int64_t kLastProfileType = 3;
  const SourceRange range = in_.Next();
  std::vector<int64_t> types;
  if (!ReadInts(&types)) return false;
  for (int64_t type : types) {
    if (type >= 0 && type <= kLastProfileType) continue;
    return Error(DiagnosticKind::kBadAttribute, range, StrCat("expected a profile type from 0 to ", kLastProfileType));
  }
  if (!types.empty()) m->*field.list = context().lists.Intern(types);
  return true;
}

// ---- adding to the module ----

InstructionId JsonModuleParser::AddPlaceholder(const PendingInstruction& d) {
  const InstructionDraft& f = d.draft;
  if (!f.name.valid() || names_.Find(f.name, f.computation).valid()) return InstructionId();
  const Shape shape = f.shape.valid() ? f.shape : context().shapes.Token();
  const InstructionId id = module().AddInstruction(f.computation, Opcode::kUnknown, shape, f.name, {});
  module().SetFlag(id, kErrorPlaceholder);
  names_.Define(f.name, id, /*nested=*/false);
  return id;
}

InstructionId JsonModuleParser::Add(PendingInstruction& d) {
  if (module().instruction_id_bound() >= static_cast<size_t>(options_.max_instructions)) {
    stopped_ = true;
    Error(DiagnosticKind::kTooLarge, d.place,
          StrCat("the module has more instructions than the limit of ", options_.max_instructions,
                 " (--max-instructions)"));
    return InstructionId();
  }
  InstructionDraft& f = d.draft;
  if (d.broken) {
    computation_broken_ = true;
    return AddPlaceholder(d);
  }
  const auto resolve = [&](const Reference& r) {
    const InstructionId id = names_.Find(r.name, f.computation);
    if ((module().record(id).flags & kErrorPlaceholder) != 0) f.has_error = true;
    return id;
  };
  operands_.clear();
  for (const Reference& r : d.operands) operands_.push_back(resolve(r));
  attrs_.assign(d.attrs.begin(), d.attrs.end());
  if (!d.predecessors.empty()) {
    list_.clear();
    for (const Reference& r : d.predecessors) list_.push_back(resolve(r).value);
    attrs_.push_back({Attr::kControlPredecessors, module().ListPayload(list_)});
  }
  // The rules of HLO text, but without XLA's additions to parsed text: JSON specifies the module as it is.
  AttrTail attrs(&attrs_, 0);
  bool ok = rules_.CheckOperandCount(f, operands_) && rules_.NormalizeAttributes(f, operands_, &attrs) &&
            rules_.CompleteAttributes(f, f.opcode, &attrs) && rules_.AdjustAttributesToShape(f, &attrs);
  ForwardDiagnostics();
  if (ok && names_.Find(f.name, f.computation).valid()) {
    ok = Error(DiagnosticKind::kDuplicateName, d.place,
               StrCat("redefinition of instruction `", context().str(f.name), "`"));
  }
  if (!ok) {
    d.broken = true;
    computation_broken_ = true;
    return AddPlaceholder(d);
  }
  rules_.DropLegacyAttributes(f, &attrs);
  const InstructionId id =
      module().AddInstruction(f.computation, f.opcode, f.shape, f.name, operands_, attrs_, f.payload);
  module().SetMetadata(id, f.metadata);
  module().SetSource(id, f.name_offset);
  if (f.has_error) module().SetFlag(id, kErrorPlaceholder);
  names_.Define(f.name, id, /*nested=*/false);
  return id;
}

const JsonModuleParser::Reference* JsonModuleParser::FirstUndefined(const PendingInstruction& d, size_t from,
                                                                    size_t* index) const {
  const size_t operands = d.operands.size();
  for (size_t i = from; i < operands + d.predecessors.size(); ++i) {
    const Reference& r = i < operands ? d.operands[i] : d.predecessors[i - operands];
    if (names_.Find(r.name, d.draft.computation).valid()) continue;
    *index = i;
    return &r;
  }
  return nullptr;
}

void JsonModuleParser::AddOrDefer() {
  size_t index;
  if (!pending_.broken && FirstUndefined(pending_, 0, &index) != nullptr) {
    deferred_.push_back({pending_, order_.size(), DeferredInstruction::kWaiting, index});
    order_.push_back(InstructionId());
  } else {
    order_.push_back(Add(pending_));
  }
}

// Adds operands before users, with an explicit stack: chains may be long.
void JsonModuleParser::AddDeferredTree(size_t root) {
  std::vector<size_t> stack = {root};
  deferred_[root].state = DeferredInstruction::kOpen;
  while (!stack.empty() && !stopped_) {
    DeferredInstruction& top = deferred_[stack.back()];
    const Reference* missing = top.pending.broken ? nullptr : FirstUndefined(top.pending, top.next, &top.next);
    if (missing == nullptr) {
      top.state = DeferredInstruction::kAdded;
      order_[top.position] = Add(top.pending);
      stack.pop_back();
      continue;
    }
    const auto found = deferred_by_name_.find(missing->name.value);
    const std::string_view name = context().str(missing->name);
    if (found != deferred_by_name_.end() && deferred_[found->second].state == DeferredInstruction::kWaiting) {
      deferred_[found->second].state = DeferredInstruction::kOpen;
      stack.push_back(found->second);
    } else if (found != deferred_by_name_.end()) {
      top.pending.broken = true;
      Error(DiagnosticKind::kCyclicOperands, missing->range,
            StrCat("cyclic definition: `", context().str(top.pending.draft.name), "` depends on itself through `", name,
                   "`"));
    } else {
      top.pending.broken = true;
      std::vector<std::string_view> names;
      for (Instruction i : module().computation(top.pending.draft.computation).instructions()) {
        names.push_back(i.name());
        if (names.size() == 4096) break;
      }
      Error(DiagnosticKind::kUndefinedOperand, missing->range, StrCat("use of undefined instruction `", name, "`"),
            DidYouMean(name, names));
    }
  }
}

void JsonModuleParser::AddDeferred() {
  deferred_by_name_.clear();
  for (size_t i = 0; i < deferred_.size(); ++i) deferred_by_name_.insert({deferred_[i].pending.draft.name.value, i});
  for (size_t i = 0; i < deferred_.size() && !stopped_; ++i) {
    if (deferred_[i].state == DeferredInstruction::kWaiting) AddDeferredTree(i);
  }
}

}  // namespace hlokit
