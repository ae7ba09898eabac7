// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/complete_attributes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "ir/ops/opcode_table.h"

namespace hlokit {
namespace {

// Returns true if some attribute of the opcode is required or defaulted. Most opcodes have none.
bool HasDuties(Opcode opcode) {
  static const std::array<bool, kOpcodeCount + 1> table = [] {
    std::array<bool, kOpcodeCount + 1> duties{};
    for (size_t i = 0; i <= kOpcodeCount; ++i) {
      for (const AttrSpec& spec : InfoOf(static_cast<Opcode>(i)).attributes) {
        duties[i] |= spec.presence == AttrSpec::kRequired || spec.presence == AttrSpec::kDefaulted;
      }
    }
    return duties;
  }();
  return table[static_cast<size_t>(opcode)];
}

// The attributes of one instruction that is being made.
struct OwnAttributes {
  Module* module;
  absl::Span<const InstructionId> operands;
  size_t begin;
  std::vector<AttrValue>* all;

  // Returns the shape of operand 0; invalid if there is none.
  Shape operand() const { return operands.empty() ? Shape() : module->instruction(operands[0]).shape(); }
  AttrValue* Find(Attr attr) const {
    for (size_t i = begin; i < all->size(); ++i) {
      if ((*all)[i].attr == attr) return &(*all)[i];
    }
    return nullptr;
  }
  void Add(AttrValue value) const { all->push_back(value); }
  void Remove(const AttrValue* value) const { all->erase(all->begin() + (value - all->data())); }
};

void NormalizeCompare(const OwnAttributes& own) {
  const Shape operand = own.operand();
  const AttrValue* const type = own.Find(Attr::kCompareType);
  if (type != nullptr && operand.valid() && operand.IsArray() &&
      type->payload == static_cast<uint32_t>(DefaultComparison(operand.element_type()))) {
    own.Remove(type);
  }
}

void NormalizeBroadcast(const OwnAttributes& own) {
  const Shape operand = own.operand();
  const bool scalar = operand.valid() && operand.IsScalar();
  if (scalar && own.Find(Attr::kDimensions) == nullptr) own.Add({Attr::kDimensions, 0});
}

void NormalizeMap(const OwnAttributes& own) {
  const Shape operand = own.operand();
  if (!operand.valid() || !operand.IsArray()) return;
  std::vector<int64_t> dimensions(static_cast<size_t>(operand.rank()));
  std::iota(dimensions.begin(), dimensions.end(), 0);
  const AttrValue dims = {Attr::kDimensions, own.module->ListPayload(dimensions)};
  if (AttrValue* const given = own.Find(Attr::kDimensions); given != nullptr) {
    *given = dims;
  } else {
    own.Add(dims);
  }
}

void NormalizeCustomCall(const OwnAttributes& own) {
  if (AttrValue* const to_apply = own.Find(Attr::kToApply); to_apply != nullptr) {
    *to_apply = {Attr::kCalledComputations, own.module->ListPayload({int64_t{to_apply->payload}})};
  }
  const AttrValue* const version = own.Find(Attr::kApiVersion);
  if (version != nullptr && version->payload == static_cast<uint32_t>(CustomCallApiVersion::kOriginal)) {
    own.Remove(version);
  }
}

void NormalizeOutfeed(const OwnAttributes& own) {
  const Shape operand = own.operand();
  if (operand.valid() && own.Find(Attr::kOutfeedShape) == nullptr) {
    own.Add({Attr::kOutfeedShape, operand.id().value});
  }
}

}  // namespace

bool IsElided(const Module& module, Opcode opcode, AttrValue value) {
  // The window of a custom call may be one of no dimensions.
  if (opcode == Opcode::kCustomCall && value.attr == Attr::kWindow) return false;
  switch (InfoOf(value.attr).elision) {
    case DefaultElision::kKeep:
      return false;
    case DefaultElision::kDropFalse:
    case DefaultElision::kDropZero:
    case DefaultElision::kDropEmpty:  // string 0 and list 0 are the empty ones
      return value.payload == 0;
    case DefaultElision::kDropOne:
      return value.payload == 1;
    case DefaultElision::kDropMinusOne:
      return module.DecodeInt64(value.payload) == -1;
    case DefaultElision::kDropAllZero: {
      const absl::Span<const int64_t> list = module.context().list(ListId(value.payload));
      return std::all_of(list.begin(), list.end(), [](int64_t v) { return v == 0; });
    }
  }
  return false;
}

void NormalizeAttributes(Module* module, Opcode opcode, absl::Span<const InstructionId> operands, size_t begin,
                         std::vector<AttrValue>* attrs) {
  using Normalize = void (*)(const OwnAttributes&);
  static constexpr OpcodeRow<Normalize> kRows[] = {
      {Opcode::kCompare, &NormalizeCompare}, {Opcode::kBroadcast, &NormalizeBroadcast},
      {Opcode::kMap, &NormalizeMap},         {Opcode::kCustomCall, &NormalizeCustomCall},
      {Opcode::kOutfeed, &NormalizeOutfeed},
  };
  static constexpr auto kTable = MakeOpcodeHandlers<Normalize>(kRows);
  const Normalize normalize = kTable[static_cast<size_t>(opcode)];
  if (normalize == nullptr) return;
  normalize({module, operands, begin, attrs});
}

std::optional<Attr> CompleteAttributes(const Module& module, Opcode opcode, size_t begin,
                                       std::vector<AttrValue>* attrs) {
  const bool has_duties = HasDuties(opcode);
  if (!has_duties && attrs->size() == begin) return std::nullopt;
  if (has_duties) {
    const auto given = [&](Attr attr) {
      for (size_t i = begin; i < attrs->size(); ++i) {
        if ((*attrs)[i].attr == attr) return true;
      }
      return false;
    };
    for (const AttrSpec& spec : InfoOf(opcode).attributes) {
      if (spec.presence == AttrSpec::kDefaulted) {
        if (!given(spec.attr)) attrs->push_back({spec.attr, spec.default_payload});
      } else if (spec.presence == AttrSpec::kRequired && !given(spec.attr)) {
        return spec.attr;
      }
    }
  }
  AttrValue* const all = attrs->data();
  const size_t size = attrs->size();
  size_t kept = begin;
  for (size_t i = begin; i < size; ++i) {
    const AttrValue value = all[i];
    if (InfoOf(value.attr).elision != DefaultElision::kKeep) {
      const AttrSpec* spec = FindAttrSpec(opcode, value.attr);
      const bool defaulted = spec != nullptr && spec->presence == AttrSpec::kDefaulted;
      if (!defaulted && IsElided(module, opcode, value)) continue;
    }
    all[kept++] = value;
  }
  if (kept != size) attrs->resize(kept);
  return std::nullopt;
}

ComparisonType DefaultComparison(ElementType type) {
  if (IsFloat(type) || IsComplex(type)) return ComparisonType::kFloat;
  return IsSigned(type) ? ComparisonType::kSigned : ComparisonType::kUnsigned;
}

std::optional<ComparisonType> ComparisonOfOrder(bool total, ElementType type) {
  // All integers are ordered, whatever the text says.
  const bool differs = total && DefaultComparison(type) == ComparisonType::kFloat;
  return differs ? std::optional<ComparisonType>(ComparisonType::kTotalOrder) : std::nullopt;
}

}  // namespace hlokit
