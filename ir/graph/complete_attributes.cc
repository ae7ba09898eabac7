// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/complete_attributes.h"

#include <algorithm>
#include <array>

namespace hlokit {
namespace {

// Returns true if some attribute of the opcode is required or implied. Most opcodes have none.
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

}  // namespace

bool IsElided(const Module& module, AttrValue value) {
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
      const bool implied = spec != nullptr && spec->presence == AttrSpec::kDefaulted;
      if (!implied && IsElided(module, value)) continue;
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

}  // namespace hlokit
