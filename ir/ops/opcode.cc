// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/opcode.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/hashing.h"

namespace hlokit {
namespace {

// One constant array of specs for each opcode, with a spare element so that no array is empty.
// The rows separate attributes by spaces, so each macro brings its own comma.
#define R(name) {Attr::k##name, AttrSpec::kRequired, 0},
#define O(name) {Attr::k##name, AttrSpec::kOptional, 0},
#define I(name, value) {Attr::k##name, AttrSpec::kDefaulted, value},
#define X(name) {Attr::k##name, AttrSpec::kLegacy, 0},
#define OPCODE(name, text, min, max, rule, types, traits, elements, kernel, description, ...) \
  constexpr AttrSpec k##name##Specs[] = {__VA_ARGS__{Attr::kUnknownOpcode, AttrSpec::kLegacy, 0}};
#include "ir/ops/opcode_columns.inc"

constexpr uint32_t CallTraits(uint32_t traits, absl::Span<const AttrSpec> specs) {
  for (const AttrSpec& spec : specs) {
    if (!NamesComputations(spec.attr)) continue;
    return (traits & (kControlFlow | kGenericAsync | kImpure)) == 0 ? kCalls | kAppliesToElements : kCalls;
  }
  return 0;
}

constexpr OpcodeInfo kInfo[] = {
#define OPCODE(name, text, min, max, rule, types, traits, elements, kernel, description, ...)             \
  {text,                                                                                                  \
   min,                                                                                                   \
   max,                                                                                                   \
   ShapeRule::k##rule,                                                                                    \
   OperandTypes::k##types,                                                                                \
   static_cast<uint32_t>((traits) | CallTraits(traits, {k##name##Specs, std::size(k##name##Specs) - 1})), \
   ElementSource::k##elements,                                                                            \
   absl::Span<const AttrSpec>(k##name##Specs, std::size(k##name##Specs) - 1)},
#include "ir/ops/opcode_columns.inc"
    {"unknown",
     0,
     kVariadic,
     ShapeRule::kExplicit,
     OperandTypes::kAny,
     kSideEffect | kCalls,
     ElementSource::kComputed,
     {}},
};
#undef R
#undef O
#undef I
#undef X

// Returns true if the columns of each attribute type agree with each other.
constexpr bool AttrTypesAreConsistent() {
  for (const AttrTypeInfo& type : kAttrTypeInfo) {
    const bool list = type.payload == PayloadKind::kList;
    if (list == (type.elements == ElementKind::kNone)) return false;
    if (type.json == JsonForm::kValue &&
        (type.elements == ElementKind::kMixed || type.payload == PayloadKind::kEnum ||
         type.payload == PayloadKind::kLiteral || type.payload == PayloadKind::kMetadata)) {
      return false;
    }
  }
  return true;
}
static_assert(AttrTypesAreConsistent());

constexpr AttrSpec kCommonSpecs[] = {
#define ATTRIBUTE(name, ...) {Attr::k##name, AttrSpec::kOptional, 0},
#include "ir/ops/attributes.def"
};

// Index of each attribute among the specs of an opcode.
struct AttrPositions {
  static constexpr uint8_t kNone = 0xff;
  uint8_t of[kOpcodeCount + 1][kAttrCount];

  constexpr AttrPositions() : of() {
    for (size_t opcode = 0; opcode <= kOpcodeCount; ++opcode) {
      for (uint8_t& place : of[opcode]) place = kNone;
      const absl::Span<const AttrSpec> specs = kInfo[opcode].attributes;
      for (size_t i = specs.size(); i-- > 0;) of[opcode][static_cast<size_t>(specs[i].attr)] = static_cast<uint8_t>(i);
    }
  }
};
constexpr AttrPositions kPositions;

// A fixed hash table from spelling to row, built once.
template <typename Row, size_t kSlots>
class TextTable {
 public:
  void Add(std::string_view text, Row row) {
    size_t i = HashBytes(text) % kSlots;
    while (!slots_[i].text.empty()) i = (i + 1) % kSlots;
    slots_[i] = {text, row};
  }
  const Row* Find(std::string_view text) const {
    if (text.empty()) return nullptr;
    for (size_t i = HashBytes(text) % kSlots; !slots_[i].text.empty(); i = (i + 1) % kSlots) {
      const Slot& slot = slots_[i];
      if (slot.text.size() == text.size() && SameBytes(slot.text.data(), text.data(), text.size())) return &slot.row;
    }
    return nullptr;
  }

 private:
  struct Slot {
    std::string_view text;  // empty: free
    Row row{};
  };
  std::array<Slot, kSlots> slots_{};
};

using OpcodeTable = TextTable<Opcode, 1024>;

const OpcodeTable& Opcodes() {
  static const OpcodeTable* const table = [] {
    auto* t = new OpcodeTable;
    for (size_t i = 0; i < kOpcodeCount; ++i) t->Add(kInfo[i].text, static_cast<Opcode>(i));
    return t;
  }();
  return *table;
}

struct AttrRange {
  uint32_t begin = 0;
  uint32_t size = 0;
};

struct AttrTable {
  std::vector<Attr> attrs;  // grouped by text
  TextTable<AttrRange, 512> ranges;
};

const AttrTable& Attrs() {
  static const AttrTable* const table = [] {
    auto* t = new AttrTable;
    for (size_t i = 0; i < kAttrCount; ++i) {
      const std::string_view text = kAttrInfo[i].text;
      if (text.empty() || t->ranges.Find(text) != nullptr) continue;
      AttrRange range{static_cast<uint32_t>(t->attrs.size()), 0};
      for (size_t j = i; j < kAttrCount; ++j) {
        if (kAttrInfo[j].text != text) continue;
        t->attrs.push_back(static_cast<Attr>(j));
        ++range.size;
      }
      t->ranges.Add(text, range);
    }
    return t;
  }();
  return *table;
}

constexpr std::array<uint32_t, kOpcodeCount + 1> TraitsOfAll() {
  std::array<uint32_t, kOpcodeCount + 1> traits{};
  for (size_t i = 0; i < traits.size(); ++i) traits[i] = kInfo[i].traits;
  return traits;
}

}  // namespace

constinit const std::array<uint32_t, kOpcodeCount + 1> kOpcodeTraits = TraitsOfAll();

const OpcodeInfo& InfoOf(Opcode opcode) { return kInfo[static_cast<size_t>(opcode)]; }

Opcode SynchronousOpcode(Opcode opcode) {
  // By suffix; the spellings of send-done and of the generic async opcodes have no synchronous opcode in front.
  static constexpr auto kSynchronous = [] {
    std::array<Opcode, kOpcodeCount + 1> table{};
    for (size_t i = 0; i <= kOpcodeCount; ++i) {
      table[i] = static_cast<Opcode>(i);
      std::string_view text = i == kOpcodeCount ? std::string_view() : kInfo[i].text;
      if (text.ends_with("-start")) {
        text.remove_suffix(6);
      } else if (text.ends_with("-done")) {
        text.remove_suffix(5);
      } else {
        continue;
      }
      for (size_t k = 0; k < kOpcodeCount; ++k) {
        if (kInfo[k].text == text && (kInfo[k].traits & kCollective) != 0) table[i] = static_cast<Opcode>(k);
      }
    }
    return table;
  }();
  return kSynchronous[static_cast<size_t>(opcode)];
}

OperandIndexRange ElementOperands(Opcode opcode, int64_t operand_count) {
  const auto up_to = [&](int64_t first, int64_t last) {
    return OperandIndexRange{std::min(first, operand_count), std::min(last, operand_count)};
  };
  switch (InfoOf(opcode).elements) {
    case ElementSource::kComputed:
      return {0, 0};
    case ElementSource::kMoved:
    case ElementSource::kCommunicated:
    case ElementSource::kConverted:
      return up_to(0, 1);
    case ElementSource::kUpdated:
      return up_to(0, 2);
    case ElementSource::kSelected:
      return up_to(1, 3);
    case ElementSource::kConcatenated:
    case ElementSource::kClamped:
      return {0, operand_count};
  }
  return {0, 0};
}

std::optional<Opcode> OpcodeFromText(std::string_view text) {
  const Opcode* found = Opcodes().Find(text);
  if (found == nullptr) return std::nullopt;
  return *found;
}

std::optional<AsyncSugar> AsyncSugarFromText(std::string_view text) {
  static constexpr std::pair<std::string_view, Opcode> kSuffixes[] = {
      {"-start", Opcode::kAsyncStart}, {"-update", Opcode::kAsyncUpdate}, {"-done", Opcode::kAsyncDone}};
  for (const auto& [suffix, async_opcode] : kSuffixes) {
    if (text.size() <= suffix.size() || text.substr(text.size() - suffix.size()) != suffix) continue;
    const std::string_view base = text.substr(0, text.size() - suffix.size());
    const std::optional<Opcode> wrapped = OpcodeFromText(base);
    if (!wrapped) return std::nullopt;
    // Opcodes with a separate start opcode cannot be wrapped by sugar.
    if (OpcodeFromText(std::string(base) + "-start") || OpcodeFromText(std::string(base) + "-done")) {
      if (async_opcode == Opcode::kAsyncUpdate) return std::nullopt;
    }
    return AsyncSugar{async_opcode, *wrapped};
  }
  return std::nullopt;
}

const AttrSpec* FindAttrSpec(Opcode opcode, Attr attr) {
  const uint8_t place = kPositions.of[static_cast<size_t>(opcode)][static_cast<size_t>(attr)];
  if (place != AttrPositions::kNone) return &InfoOf(opcode).attributes[place];
  return IsCommon(attr) ? &kCommonSpecs[static_cast<size_t>(attr)] : nullptr;
}

int AttrOrder(Opcode opcode, Attr attr) {
  const uint8_t place = kPositions.of[static_cast<size_t>(opcode)][static_cast<size_t>(attr)];
  return place != AttrPositions::kNone ? place : AttrPositions::kNone + static_cast<int>(attr);
}

absl::Span<const Attr> AttrsFromText(std::string_view text) {
  if (text == "conv_kind") text = "convolution_kind";  // as XLA spelled it when the attribute was new
  const AttrRange* range = Attrs().ranges.Find(text);
  if (range == nullptr) return {};
  return absl::MakeConstSpan(Attrs().attrs).subspan(range->begin, range->size);
}

namespace {

struct EnumTables {
  std::vector<std::string_view> texts[static_cast<size_t>(EnumType::kNone) + 1];
  std::vector<int> numbers[static_cast<size_t>(EnumType::kNone) + 1];
};

const EnumTables& Enums() {
  static const EnumTables* const tables = [] {
    auto* t = new EnumTables;
#define ENUM_VALUE(type, name, text, number)                        \
  t->texts[static_cast<size_t>(EnumType::k##type)].push_back(text); \
  t->numbers[static_cast<size_t>(EnumType::k##type)].push_back(number);
#include "ir/ops/enums.def"
    return t;
  }();
  return *tables;
}

}  // namespace

absl::Span<const std::string_view> EnumTexts(EnumType type) { return Enums().texts[static_cast<size_t>(type)]; }

int EnumProtoNumber(EnumType type, uint32_t value) {
  const std::vector<int>& numbers = Enums().numbers[static_cast<size_t>(type)];
  return value < numbers.size() ? numbers[value] : 0;
}

std::optional<uint32_t> EnumFromText(EnumType type, std::string_view text) {
  const absl::Span<const std::string_view> texts = EnumTexts(type);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] == text) return static_cast<uint32_t>(i);
  }
  return std::nullopt;
}

}  // namespace hlokit
