// SPDX-License-Identifier: Apache-2.0
// Attributes of instructions in JSON.
#include <algorithm>
#include <bit>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/result_accuracy.h"
#include "ir/text/statistics_viz.h"
#include "parser/json/json_module_parser.h"

namespace hlokit {
namespace {

// Returns true if values parsed from HLO text may be views into it.
bool KeepsViews(AttrType type) {
  return type == AttrType::kIdentifier || type == AttrType::kSparsity || InfoOf(type).elements == ElementKind::kMixed;
}

// Returns true if the HLO text of a value, in a string, is accepted beside its JSON form.
bool TakesTextToo(const AttrTypeInfo& type) {
  if (type.json == JsonForm::kObject) return true;
  if (type.json != JsonForm::kValue) return false;
  if (type.payload == PayloadKind::kBool || type.payload == PayloadKind::kInt64) return true;
  return type.elements == ElementKind::kInteger || type.elements == ElementKind::kIntegerList ||
         type.elements == ElementKind::kBool || type.elements == ElementKind::kPrecision;
}

}  // namespace

bool JsonModuleParser::ReadAttributes(PendingInstruction* d) {
  JsonObject object(in_, "an object of attributes");
  JsonString key;
  while (object.Next(&key)) {
    if (!Member(&d->broken, [&] { return ReadAttribute(key, d); })) return false;
  }
  return object.ok();
}

bool JsonModuleParser::ReadAttribute(const JsonString& key, PendingInstruction* d) {
  const Opcode opcode = d->draft.opcode;
  Attr attr = Attr::kUnknownAttributes;
  for (Attr candidate : AttrsFromText(key.value)) {
    const bool apart = candidate == Attr::kMetadata || candidate == Attr::kUnknownOpcode;
    if (!apart && FindAttrSpec(opcode, candidate) != nullptr) attr = candidate;
  }
  if (attr == Attr::kUnknownAttributes) {
    std::vector<std::string_view> known;
    for (const AttrSpec& spec : InfoOf(opcode).attributes) known.push_back(ToString(spec.attr));
    for (size_t i = 0; i < kAttrCount; ++i) {
      if (IsCommon(static_cast<Attr>(i)) && !kAttrInfo[i].text.empty()) known.push_back(kAttrInfo[i].text);
    }
    return ReadUnknownMember(key, opcode == Opcode::kUnknown ? "this opcode" : ToString(opcode), known, &d->unknown);
  }
  const bool again =
      std::any_of(d->attrs.begin(), d->attrs.end(), [&](const AttrValue& v) { return v.attr == attr; }) ||
      (attr == Attr::kControlPredecessors && !d->predecessors.empty());
  if (again)
    return Error(DiagnosticKind::kDuplicateAttribute, key.range, StrCat("duplicate attribute `", key.value, "`"));
  if (attr == Attr::kControlPredecessors) return ReadReferences(&d->predecessors, "the name of an instruction");
  uint32_t payload = 0;
  if (!ReadValue(attr, &payload)) return false;
  d->attrs.push_back({attr, payload});
  return true;
}

// ---- values ----

bool JsonModuleParser::ReadTextValue(Attr attr, uint32_t* payload) {
  JsonString s;
  if (!in_.String(&s, StrCat("the HLO text of `", ToString(attr), "` in a string"))) return false;
  return ReadText(s, KeepsViews(InfoOf(attr).type), [&] { return attribute_parser_.Parse(attr, payload); });
}

bool JsonModuleParser::ReadValue(Attr attr, uint32_t* payload) {
  const AttrType type = InfoOf(attr).type;
  const AttrTypeInfo& info = InfoOf(type);
  if (info.json == JsonForm::kText || (TakesTextToo(info) && in_.Peek() == '"')) return ReadTextValue(attr, payload);
  if (info.json == JsonForm::kValue) {
    if (info.payload != PayloadKind::kList) return ReadPlainValue(info.payload, payload);
    list_.clear();
    if (!ReadListValue(info.elements, &list_)) return false;
    *payload = module().ListPayload(list_);
    return true;
  }
  ListId id;
  bool ok = false;
  if (type == AttrType::kFrontendAttributes) ok = ReadFrontendAttributes(&id);
  if (type == AttrType::kResultAccuracy) ok = ReadResultAccuracy(&id);
  if (type == AttrType::kStatistics) ok = ReadStatistics(&id);
  *payload = id.value;
  return ok;
}

bool JsonModuleParser::ReadPlainValue(PayloadKind kind, uint32_t* payload) {
  switch (kind) {
    case PayloadKind::kBool: {
      bool value;
      if (!in_.Bool(&value, "true or false")) return false;
      *payload = value;
      return true;
    }
    case PayloadKind::kInt64: {
      int64_t value;
      if (!in_.Int(&value, "an integer")) return false;
      *payload = context().EncodeInt64(value);
      return true;
    }
    case PayloadKind::kFloat: {
      float value;
      if (!ReadExact(&value, "a number")) return false;
      *payload = std::bit_cast<uint32_t>(value);
      return true;
    }
    case PayloadKind::kString: {
      JsonString s;
      if (!in_.String(&s, "a string")) return false;
      *payload = InternString(s).value;
      return true;
    }
    case PayloadKind::kComputation: {
      Reference name;
      if (!ReadName(&name, "the name of a computation")) return false;
      *payload = ComputationByName(name).value;
      return true;
    }
    case PayloadKind::kShape: {
      Shape shape;
      if (!ReadShape(&shape)) return false;
      *payload = shape.id().value;
      return true;
    }
    case PayloadKind::kEnum:
    case PayloadKind::kLiteral:
    case PayloadKind::kMetadata:
    case PayloadKind::kList:
      break;  // no type of these gets here
  }
  return in_.Expected("another attribute");
}

bool JsonModuleParser::ReadListValue(ElementKind kind, std::vector<int64_t>* list) {
  const auto each = [this](std::string_view what, auto read) {
    JsonArray array(in_, what);
    while (array.Next()) {
      if (!read()) return false;
    }
    return array.ok();
  };
  switch (kind) {
    case ElementKind::kInteger:
      return ReadInts(list);
    case ElementKind::kIntegerList:
      return each("a list of lists of integers", [&] {
        const size_t count_at = list->size();
        list->push_back(0);
        if (!ReadInts(list)) return false;
        (*list)[count_at] = static_cast<int64_t>(list->size() - count_at - 1);
        return true;
      });
    case ElementKind::kBool:
      return ReadBools(list);
    case ElementKind::kPrecision:
      return each("a list of precisions", [&] {
        JsonString s;
        uint32_t value = 0;
        if (!in_.String(&s, "a precision in a string") || !ReadText(s, /*keeps_views=*/false, [&] {
              return attribute_parser_.ParseEnum(EnumType::kPrecision, "operand_precision", &value);
            })) {
          return false;
        }
        list->push_back(value);
        return true;
      });
    case ElementKind::kComputation:
      return each("a list of computations", [&] {
        Reference name;
        if (!ReadName(&name, "the name of a computation")) return false;
        list->push_back(ComputationByName(name).value);
        return true;
      });
    case ElementKind::kShape:
      return each("a list of shapes", [&] {
        Shape shape;
        if (!ReadShape(&shape)) return false;
        list->push_back(shape.id().value);
        return true;
      });
    case ElementKind::kInstruction:  // read by ReadReferences
    case ElementKind::kString:
    case ElementKind::kMixed:
    case ElementKind::kNone:
      break;  // no type of these gets here
  }
  return in_.Expected("another attribute");
}

bool JsonModuleParser::ReadFrontendAttributes(ListId* id) {
  std::vector<FrontendAttribute> entries;
  absl::flat_hash_set<uint32_t> names;
  JsonObject object(in_, "an object of frontend attributes");
  JsonString key;
  while (object.Next(&key)) {
    if (!CheckName(key, "the key of a frontend attribute")) return false;
    const StringId name = InternString(key);
    if (!names.insert(name.value).second) {
      return Error(DiagnosticKind::kDuplicateAttribute, key.range,
                   StrCat("duplicate frontend attribute `", key.value, "`"));
    }
    JsonString value;
    if (!in_.String(&value, "a string")) return false;
    entries.emplace_back(name, InternString(value));
  }
  if (!object.ok()) return false;
  *id = EncodeFrontendAttributes(&context(), std::move(entries));
  return true;
}

bool JsonModuleParser::ReadResultAccuracy(ListId* id) {
  static constexpr std::string_view kKeys[] = {"mode", "atol", "rtol", "ulps"};
  ResultAccuracy accuracy;
  uint32_t seen = 0;
  JsonObject object(in_, "an object: a result accuracy");
  JsonString key;
  while (object.Next(&key)) {
    bool ok;
    switch (FindKey(key, "a result accuracy", kKeys, &seen, &ok)) {
      case 0: {
        JsonString mode;
        uint32_t value = 0;
        ok = in_.String(&mode, "an accuracy mode") && ReadText(mode, /*keeps_views=*/false, [&] {
               return attribute_parser_.ParseEnum(EnumType::kResultAccuracyMode, kKeys[0], &value);
             });
        accuracy.mode = static_cast<ResultAccuracyMode>(value);
        break;
      }
      case 1:
        ok = ReadExact(&accuracy.atol, "a tolerance");
        break;
      case 2:
        ok = ReadExact(&accuracy.rtol, "a tolerance");
        break;
      case 3:
        ok = in_.Int(&accuracy.ulps, "a number of ulps");
        break;
    }
    if (!ok) return false;
  }
  *id = EncodeResultAccuracy(&context(), accuracy);
  return object.ok();
}

bool JsonModuleParser::ReadStatistics(ListId* id) {
  static constexpr std::string_view kKeys[] = {"visualizing_index", "values"};
  StatisticsViz statistics;
  uint32_t seen = 0;
  const auto read_values = [&] {
    JsonArray values(in_, "a list of statistics");
    while (values.Next()) {
      Reference name;
      double number = 0;
      JsonArray pair(in_, "a pair: a name and a number");
      if (!pair.Need("a name") || !ReadName(&name, "the name of a statistic") || !pair.Need("a number") ||
          !ReadExact(&number, "a number") || !pair.End()) {
        return false;
      }
      statistics.values.emplace_back(name.name, number);
    }
    return values.ok();
  };
  JsonObject object(in_, "an object: statistics");
  JsonString key;
  while (object.Next(&key)) {
    bool ok;
    switch (FindKey(key, "statistics", kKeys, &seen, &ok)) {
      case 0:
        ok = in_.Int(&statistics.visualizing_index, "an integer");
        break;
      case 1:
        ok = read_values();
        break;
    }
    if (!ok) return false;
  }
  *id = EncodeStatisticsViz(&context(), statistics);
  return object.ok();
}

// ---- unrecognized attributes ----

bool JsonModuleParser::ReadUnknownText(StringId* text) {
  if (in_.Peek() == '{' || in_.Peek() == '[') return in_.Expected("the HLO text of the attribute in a string");
  if (in_.Peek() != '"') {
    const uint32_t start = in_.Offset();
    if (!in_.Skip()) return false;
    *text = context().strings.InternStable(in_.in().Between(start, in_.in().Here()));
    return true;
  }
  JsonString s;
  if (!in_.String(&s, "a string")) return false;
  *text = InternString(s);
  // Must read back as one value.
  return ReadText(s, /*keeps_views=*/false, [this] {
    text_in_.RawValue();
    return true;
  });
}

bool JsonModuleParser::ReadUnknownMember(const JsonString& key, std::string_view of,
                                         absl::Span<const std::string_view> known, std::vector<int64_t>* out) {
  const bool others = !key.value.empty() && !AttrsFromText(key.value).empty();
  const std::string hint =
      others ? StrCat("other opcodes take `", key.value, "`") : DidYouMean(key.value, {known.begin(), known.end()});
  if (!options_.allow_unknown) {
    return Error(DiagnosticKind::kUnknownAttribute, key.range, StrCat("unknown attribute `", key.value, "` for ", of),
                 hint);
  }
  sink_->Warning(DiagnosticKind::kUnknownAttribute, key.range,
                 StrCat("unknown attribute `", key.value, "` for ", of, "; preserved"), hint);
  if (!CheckName(key, "the name of an attribute")) return false;
  const StringId name = InternString(key);
  StringId text;
  if (!ReadUnknownText(&text)) return false;
  out->insert(out->end(), {int64_t{name.value}, int64_t{text.value}});
  return true;
}

bool JsonModuleParser::ReadUnknownPairs(std::string_view of, std::vector<int64_t>* out) {
  const auto read_pair = [&] {
    JsonArray pair(in_, "a pair: name and text of an attribute");
    JsonString name;
    if (!pair.Need("a name") || !in_.String(&name, "the name of an attribute")) return false;
    const std::string copy(name.value);  // the text may have escapes too
    if (name.escaped) name.value = copy;
    return pair.Need("the text of an attribute") && ReadUnknownMember(name, of, {}, out) && pair.End();
  };
  bool broken = false;
  JsonArray array(in_, "a list of pairs: names and texts of attributes");
  while (array.Next()) {
    if (!Member(&broken, read_pair)) return false;
  }
  return array.ok() && !broken;
}

}  // namespace hlokit
