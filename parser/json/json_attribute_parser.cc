// SPDX-License-Identifier: Apache-2.0
// Attributes of instructions, from JSON.
#include <algorithm>
#include <bit>

#include "ir/core/suggest.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/result_accuracy.h"
#include "ir/text/statistics_viz.h"
#include "parser/json/json_module_parser.h"

namespace hlokit {
namespace {

// What is read of such text are views into it.
bool KeepsViews(AttrType type) {
  return type == AttrType::kIdentifier || type == AttrType::kSparsity || type == AttrType::kFrontendAttributes ||
         type == AttrType::kReplicaGroups || type == AttrType::kSharding || type == AttrType::kDomain ||
         type == AttrType::kStatistics || type == AttrType::kOrigin;
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
  const Opcode opcode = d->frame.opcode;
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
  return ReadText(s, KeepsViews(InfoOf(attr).type), [&] {
    ModuleParser::Frame frame;
    return engine_.ParseAttrValue(frame, attr, payload);
  });
}

bool JsonModuleParser::ReadValue(Attr attr, uint32_t* payload) {
  const AttrInfo& info = InfoOf(attr);
  const bool text = in_.Peek() == '"';
  std::vector<int64_t>& list = list_;
  list.clear();
  JsonString s;
  const auto as_list = [&](bool ok) {
    if (ok) *payload = module().ListPayload(list);
    return ok;
  };
  const auto as_id = [&](bool ok, ListId id) {
    *payload = id.value;
    return ok;
  };
  ListId id;
  switch (info.type) {
    // What JSON has no better form for than HLO text.
    case AttrType::kEnum:
    case AttrType::kIdentifier:
    case AttrType::kSparsity:
    case AttrType::kLiteral:
    case AttrType::kSliceRanges:
    case AttrType::kPadding:
    case AttrType::kWindow:
    case AttrType::kConvolutionDims:
    case AttrType::kOperandAliasing:
    case AttrType::kReplicaGroups:
    case AttrType::kSharding:
    case AttrType::kDomain:
    case AttrType::kOrigin:
      return ReadTextValue(attr, payload);
    case AttrType::kString:
    case AttrType::kStringOrJson:
      if (!in_.String(&s, "a string")) return false;
      *payload = InternString(s).value;
      return true;
    case AttrType::kShape: {
      Shape shape;
      if (!ReadShape(&shape)) return false;
      *payload = shape.id().value;
      return true;
    }
    case AttrType::kComputation: {
      Reference name;
      if (!ReadName(&name, "the name of a computation")) return false;
      *payload = ComputationByName(name).value;
      return true;
    }
    case AttrType::kComputationList: {
      JsonArray array(in_, "a list of computations");
      while (array.Next()) {
        Reference name;
        if (!ReadName(&name, "the name of a computation")) return false;
        list.push_back(ComputationByName(name).value);
      }
      return as_list(array.ok());
    }
    case AttrType::kShapeList: {
      JsonArray array(in_, "a list of shapes");
      while (array.Next()) {
        Shape shape;
        if (!ReadShape(&shape)) return false;
        list.push_back(shape.id().value);
      }
      return as_list(array.ok());
    }
    case AttrType::kFloat: {
      float value;
      if (!ReadExact(&value, "a number")) return false;
      *payload = std::bit_cast<uint32_t>(value);
      return true;
    }
    // What has a form of its own; HLO text is taken as well.
    case AttrType::kBool: {
      if (text) return ReadTextValue(attr, payload);
      bool value;
      if (!in_.Bool(&value, "true or false")) return false;
      *payload = value;
      return true;
    }
    case AttrType::kInt64: {
      if (text) return ReadTextValue(attr, payload);
      int64_t value;
      if (!in_.Int(&value, "an integer")) return false;
      *payload = module().EncodeInt64(value);
      return true;
    }
    case AttrType::kInt64List:
      return text ? ReadTextValue(attr, payload) : as_list(ReadInts(&list));
    case AttrType::kBoolList:
      return text ? ReadTextValue(attr, payload) : as_list(ReadBools(&list));
    case AttrType::kInt64ListList: {
      if (text) return ReadTextValue(attr, payload);
      JsonArray array(in_, "a list of lists of integers");
      while (array.Next()) {
        const size_t count_at = list.size();
        list.push_back(0);
        if (!ReadInts(&list)) return false;
        list[count_at] = static_cast<int64_t>(list.size() - count_at - 1);
      }
      return as_list(array.ok());
    }
    case AttrType::kPrecisionList: {
      if (text) return ReadTextValue(attr, payload);
      JsonArray array(in_, "a list of precisions");
      while (array.Next()) {
        uint32_t value = 0;
        if (!in_.String(&s, "a precision in a string") || !ReadText(s, /*keeps_views=*/false, [&] {
              return engine_.ParseEnum(EnumType::kPrecision, info.text, &value);
            })) {
          return false;
        }
        list.push_back(value);
      }
      return as_list(array.ok());
    }
    case AttrType::kFrontendAttributes:
      return text ? ReadTextValue(attr, payload) : as_id(ReadFrontendAttributes(&id), id);
    case AttrType::kResultAccuracy:
      return text ? ReadTextValue(attr, payload) : as_id(ReadResultAccuracy(&id), id);
    case AttrType::kStatistics:
      return text ? ReadTextValue(attr, payload) : as_id(ReadStatistics(&id), id);
    case AttrType::kInstructionList:
    case AttrType::kMetadata:
    case AttrType::kUnknown:
      break;  // read elsewhere
  }
  return in_.Expected("another attribute");
}

bool JsonModuleParser::ReadFrontendAttributes(ListId* id) {
  const SourceRange range = in_.Next();
  std::vector<FrontendAttribute> entries;
  JsonObject object(in_, "an object of frontend attributes");
  JsonString key;
  while (object.Next(&key)) {
    if (!CheckName(key, "the key of a frontend attribute")) return false;
    const StringId name = InternString(key);
    JsonString value;
    if (!in_.String(&value, "a string")) return false;
    entries.emplace_back(name, InternString(value));
  }
  if (!object.ok()) return false;
  const size_t count = entries.size();
  *id = EncodeFrontendAttributes(&context(), std::move(entries));
  if (context().list(*id).size() == 2 * count) return true;
  return Error(DiagnosticKind::kDuplicateAttribute, range, "duplicate frontend attribute");
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
               return engine_.ParseEnum(EnumType::kResultAccuracyMode, kKeys[0], &value);
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

// ---- what the tables lack ----

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
    engine_.in_.RawValue();
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
