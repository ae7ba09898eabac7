// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/op_reference.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

std::string_view DescribePresence(const AttrSpec& spec) {
  switch (spec.presence) {
    case AttrSpec::kRequired:
      return "required";
    case AttrSpec::kOptional:
      return "optional";
    case AttrSpec::kDefaulted:
      return "always printed, may be left out";
    case AttrSpec::kLegacy:
      return "read from old text, not kept";
  }
  return "";
}

std::string_view DescribeElision(DefaultElision rule) {
  switch (rule) {
    case DefaultElision::kKeep:
      return "";
    case DefaultElision::kDropFalse:
      return "`false`";
    case DefaultElision::kDropZero:
      return "the first value";
    case DefaultElision::kDropOne:
      return "`1`";
    case DefaultElision::kDropMinusOne:
      return "`-1`";
    case DefaultElision::kDropEmpty:
      return "nothing in it";
    case DefaultElision::kDropAllZero:
      return "all the first value";
  }
  return "";
}

std::string_view DescribeMeaning(AttrCategory meaning) {
  switch (meaning) {
    case AttrCategory::kSemantic:
      return "counts";
    case AttrCategory::kSharding:
      return "with `sharding`";
    case AttrCategory::kFrontend:
      return "with `frontend-attributes`";
    case AttrCategory::kAnnotation:
      return "with `metadata`";
  }
  return "";
}

std::string ValuesOf(Attr attr) {
  const AttrInfo& info = InfoOf(attr);
  if (info.enum_type == EnumType::kNone) return std::string(DescribeAttrType(info.type));
  std::string values;
  for (std::string_view text : EnumTexts(info.enum_type)) StrAppend(&values, values.empty() ? "`" : ", `", text, "`");
  return values;
}

}  // namespace

std::string_view MeaningOf(Opcode opcode) {
  static constexpr std::string_view kMeanings[] = {
#define OPCODE(name, text, min, max, rule, types, traits, elements, kernel, description, ...) description,
#include "ir/ops/opcodes.def"
      "an operation that this version does not know",
  };
  return kMeanings[static_cast<size_t>(opcode)];
}

std::string_view DescribeShapeRule(ShapeRule rule) {
  static constexpr std::string_view kDescriptions[] = {
#define SHAPE_RULE(name, exact_types, mixed_operands, description) description,
#include "ir/ops/opcodes.def"
  };
  return kDescriptions[static_cast<size_t>(rule)];
}

std::string_view DescribeAttrType(AttrType type) {
  static constexpr std::string_view kDescriptions[] = {
#define ATTRIBUTE_TYPE(name, payload, elements, syntax, json, description) description,
#include "ir/ops/attribute_types.def"
  };
  return kDescriptions[static_cast<size_t>(type)];
}

// Every trait; without a name, if the op reference does not list it.
constexpr std::pair<OpTrait, std::string_view> kTraitNames[] = {
    {kElementwise, "elementwise"},
    {kCommutative, "commutative"},
    {kSideEffect, "side effect"},
    {kCollective, "collective"},
    {kControlFlow, "control flow"},
    {kStartsAsync, "starts an asynchronous chain"},
    {kUpdatesAsync, "continues an asynchronous chain"},
    {kEndsAsync, "ends an asynchronous chain"},
    {kInferable, "shape may be left out"},
    {kKeepsDimensions, "dimensions of the operands"},
    {kForwards, ""},
    {kIdentity, ""},
    {kGenericAsync, ""},
    {kUniformTypes, ""},
    {kAppliesComputation, ""},
    {kOwnsCallee, ""},
    {kImpure, ""},
    {kReducesAcrossDevices, ""},
    {kReinterprets, ""},
    {kTransfers, ""},
    {kIdempotent, ""},
    {kDeviceId, ""},
    {kLeaf, ""},
    {kReadsPart, ""},
    {kCombines, ""},
    {kContracts, ""},
    {kKeepsLayout, ""},
    {kCalls, ""},
    {kAppliesToElements, ""},
};
static_assert(std::accumulate(std::begin(kTraitNames), std::end(kTraitNames), uint32_t{0},
                              [](uint32_t all, const auto& row) { return all | row.first; }) == 2 * kLastTrait - 1);

std::vector<std::string_view> TraitNames(Opcode opcode) {
  std::vector<std::string_view> names;
  for (const auto& [trait, name] : kTraitNames) {
    if (!name.empty() && HasTrait(opcode, trait)) names.push_back(name);
  }
  return names;
}

std::string OperandCountText(Opcode opcode) {
  const OpcodeInfo& info = InfoOf(opcode);
  if (info.max_operands == kVariadic) return StrCat(info.min_operands, " or more");
  if (info.min_operands == info.max_operands) return StrCat(info.min_operands);
  return StrCat(info.min_operands, " to ", info.max_operands);
}

void WriteOpSection(TextWriter& out, Opcode opcode) {
  const OpcodeInfo& info = InfoOf(opcode);
  out << "### " << info.text << "\n\n";
  std::string meaning(MeaningOf(opcode));
  if (meaning[0] >= 'a' && meaning[0] <= 'z' && (meaning.size() < 2 || meaning[1] != ' ' || meaning[0] == 'a')) {
    meaning[0] = static_cast<char>(meaning[0] - 'a' + 'A');
  }
  out << meaning << ".\n\n- operands: " << OperandCountText(opcode)
      << "\n- result: " << DescribeShapeRule(info.shape_rule) << "\n";
  const std::vector<std::string_view> traits = TraitNames(opcode);
  for (size_t i = 0; i < traits.size(); ++i) out << (i == 0 ? "- " : ", ") << traits[i];
  if (!traits.empty()) out << '\n';
  for (const AttrSpec& spec : info.attributes) {
    out << "- `" << ToString(spec.attr) << "` (" << DescribePresence(spec) << "): " << ValuesOf(spec.attr) << '\n';
  }
  out << '\n';
}

int64_t CommonAttributeCount() {
  return std::count_if(std::begin(kAttrInfo), std::end(kAttrInfo), [](const AttrInfo& info) {
    return !info.text.empty() && IsCommon(static_cast<Attr>(&info - kAttrInfo));
  });
}

void WriteOpReference(TextWriter& out) {
  out << "# Operations\n\n"
         "Every opcode of HLO text with its operands, the rule its result shape follows and the attributes it takes, "
         "in the\n"
         "order in which they are printed. Made by `hlo-inspect ops --markdown` from the tables that drive reading, "
         "printing,\n"
         "checking and hashing; `hlo-inspect ops OPCODE` shows one.\n\n## Opcodes\n\n";
  for (size_t i = 0; i < kOpcodeCount; ++i) WriteOpSection(out, static_cast<Opcode>(i));
  out << "## Attributes\n\n"
         "A value in the column *left out* is not printed, and is what an instruction without the attribute has. The "
         "last\n"
         "column says whether the attribute counts in a fingerprint, or which `--with` of `hlo-inspect hash` lets it "
         "count.\n"
         "The last "
      << CommonAttributeCount()
      << " may stand on any instruction.\n\n"
         "| attribute | values | left out | fingerprint |\n| --- | --- | --- | --- |\n";
  for (size_t i = 0; i < kAttrCount; ++i) {
    const Attr attr = static_cast<Attr>(i);
    const AttrInfo& info = InfoOf(attr);
    if (info.text.empty()) continue;
    out << "| `" << info.text << "` | " << ValuesOf(attr) << " | " << DescribeElision(info.elision) << " | "
        << DescribeMeaning(info.category) << " |\n";
  }
}

}  // namespace hlokit
