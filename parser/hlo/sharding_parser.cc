// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/sharding_parser.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/sharding/sharding.h"
#include "parser/hlo/device_list_parser.h"
#include "parser/hlo/metadata_parser.h"

namespace hlokit {
namespace {

constexpr DiagnosticKind kBadSharding = DiagnosticKind::kBadSharding;

// The words of an unnamed sharding, each with or without a value; a leaf may have several.
enum class Word : uint8_t {
  kReplicated,
  kManual,
  kUnknown,
  kUnreduced,
  kMaximal,
  kDevice,
  kDevices,
  kLastTileDimReplicate,
  kLastTileDims,
  kShardAs,
  kShardLike,
  kMetadata,
};
constexpr std::array<std::string_view, 12> kWordTexts = {
    "replicated",     "manual",   "unknown",    "unreduced", "maximal", "device", "devices", "last_tile_dim_replicate",
    "last_tile_dims", "shard_as", "shard_like", "metadata"};

std::optional<Word> WordFromText(std::string_view text) {
  for (size_t i = 0; i < kWordTexts.size(); ++i) {
    if (kWordTexts[i] == text) return static_cast<Word>(i);
  }
  return std::nullopt;
}

class ShardingReader {
 public:
  ShardingReader(TextCursor& in, Context* context) : in_(in), context_(context) {}

  // Parses a leaf after `{`, and consumes the `}`.
  bool Leaf(ListId* id) {
    leaf_start_ = in_.Offset();
    ShardingLeaf leaf;
    if (AtMesh(in_)) {
      if (!Named(&leaf)) return false;
    } else if (!Unnamed(&leaf)) {
      return false;
    }
    *id = EncodeLeaf(context_, leaf);
    return true;
  }

 private:
  bool Named(ShardingLeaf* leaf);
  bool NamedAttribute(AxisReader& axis_reader, ShardingLeaf* leaf);
  bool Dims(AxisReader& axis_reader, ShardingLeaf* leaf);
  bool Unnamed(ShardingLeaf* leaf);
  bool Devices(ShardingLeaf* leaf);
  bool LastTileDims(ShardingLeaf* leaf);
  bool Reduction(ReductionOp* op);
  bool MetadataList(ShardingLeaf* leaf);
  bool AddMetadata(ShardingLeaf* leaf);

  // Reports an error about the leaf from its start to here.
  bool Fail(std::string message) {
    return in_.Error(kBadSharding, {leaf_start_, in_.Here() - leaf_start_}, std::move(message));
  }

  TextCursor& in_;
  Context* context_;
  uint32_t leaf_start_ = 0;
};

// ---- named ----

bool ShardingReader::Named(ShardingLeaf* leaf) {
  leaf->kind = ShardingKind::kNamed;
  if (!ParseMesh(in_, context_, kBadSharding, &leaf->mesh)) return false;
  AxisReader axis_reader(in_, *context_, kBadSharding, leaf->mesh);
  in_.TryConsume(',');
  if (in_.Peek() == '[' && !leaf->mesh.maximal()) {
    if (!Dims(axis_reader, leaf)) return false;
    if (in_.Peek() != '}' && !in_.Expect(',', "in a sharding")) return false;
  } else if (!leaf->mesh.maximal() && !in_.PeekWord("replicated") && !in_.PeekWord("unreduced") &&
             !in_.PeekWord("manual")) {
    return in_.ErrorHere(DiagnosticKind::kUnexpectedToken,
                         StrCat("expected the dimensions of a sharding, or replicated, unreduced or manual, found ",
                                in_.DescribeNext()));
  }
  while (in_.Peek() != '}') {
    if (!NamedAttribute(axis_reader, leaf)) return false;
    if (!in_.TryConsume(',')) break;
  }
  if (!in_.Expect('}', "after a sharding")) return false;
  if (std::optional<std::string> error = NormalizeNamed(*context_, leaf)) return Fail(*std::move(error));
  return true;
}

bool ShardingReader::Dims(AxisReader& axis_reader, ShardingLeaf* leaf) {
  if (!in_.Expect('[', "before the dimensions of a sharding")) return false;
  if (in_.TryConsume(']')) return true;
  do {
    DimSharding& dim = leaf->dims.emplace_back();
    if (!in_.Expect('{', "before the axes of a dimension")) return false;
    if (in_.TryConsume('}')) continue;
    do {
      if (in_.TryConsume('?')) {
        dim.open = true;
        break;  // nothing follows it
      }
      if (!axis_reader.One(&dim.axes.emplace_back())) return false;
    } while (in_.TryConsume(','));
    if (!in_.Expect('}', "after the axes of a dimension")) return false;
  } while (in_.TryConsume(','));
  return in_.Expect(']', "after the dimensions of a sharding");
}

bool ShardingReader::NamedAttribute(AxisReader& axis_reader, ShardingLeaf* leaf) {
  const SourceRange range = in_.Next();
  std::string_view name;
  if (!in_.ExpectName(&name, "a part of a sharding")) return false;
  if (name == "metadata") return in_.Expect('=', "after metadata") && MetadataList(leaf);
  std::vector<AxisRef>* axes = name == "replicated"  ? &leaf->replicated
                               : name == "unreduced" ? &leaf->unreduced
                               : name == "manual"    ? &leaf->manual
                                                     : nullptr;
  if (axes == nullptr || leaf->mesh.maximal()) {
    return in_.Error(DiagnosticKind::kUnknownAttribute, range,
                     StrCat("unknown field `", name, "` in a sharding over a mesh"),
                     "expected replicated, unreduced, manual or metadata");
  }
  if (!axes->empty()) {
    return in_.Error(DiagnosticKind::kDuplicateAttribute, range, StrCat("duplicate attribute `", name, "`"));
  }
  const bool has_value = in_.TryConsume('=');
  if (has_value && axes == &leaf->unreduced && in_.Peek() != '{' && !Reduction(&leaf->reduction)) return false;
  if (has_value && in_.Peek() == '{') return axis_reader.Set(axes);
  // Without a list: all axes. For `replicated`, an empty list has that meaning.
  if (axes == &leaf->replicated) return true;
  for (int64_t i = 0; i < leaf->mesh.rank(); ++i) axes->push_back({i, 1, 0});
  return true;
}

// ---- unnamed ----

bool ShardingReader::Unnamed(ShardingLeaf* leaf) {
  bool seen[kWordTexts.size()] = {};
  const auto has = [&seen](Word word) { return seen[static_cast<size_t>(word)]; };
  while (!in_.TryConsume('}')) {
    const SourceRange range = in_.Next();
    const std::string_view text = in_.BareName();
    const std::optional<Word> word = WordFromText(text);
    if (!word) {
      if (text.empty()) {
        return in_.ErrorHere(DiagnosticKind::kUnexpectedToken,
                             StrCat("expected a part of a sharding, found ", in_.DescribeNext()));
      }
      return in_.Error(kBadSharding, range, StrCat("expected a sharding field, found `", text, "`"),
                       DidYouMean(text, {kWordTexts.begin(), kWordTexts.end()}));
    }
    if (has(*word) && *word != Word::kMetadata) {
      return in_.Error(DiagnosticKind::kDuplicateAttribute, range, StrCat("duplicate attribute `", text, "`"));
    }
    seen[static_cast<size_t>(*word)] = true;
    switch (*word) {
      case Word::kReplicated:
      case Word::kManual:
      case Word::kUnknown:
      case Word::kMaximal:
      case Word::kLastTileDimReplicate:
        break;
      case Word::kUnreduced:
        if (in_.TryConsume('=') && !Reduction(&leaf->reduction)) return false;
        break;
      case Word::kDevice:
        if (!in_.Expect('=', "after device") || !in_.Int(&leaf->device)) return false;
        break;
      case Word::kDevices:
        if (!in_.Expect('=', "after devices") || !Devices(leaf)) return false;
        break;
      case Word::kLastTileDims:
        if (!in_.Expect('=', "after last_tile_dims") || !LastTileDims(leaf)) return false;
        break;
      case Word::kShardAs:
      case Word::kShardLike:
        leaf->group = *word == Word::kShardAs ? ShardGroup::kAs : ShardGroup::kLike;
        if (!in_.Int(&leaf->group_id)) return false;
        break;
      case Word::kMetadata:
        if (!in_.Expect('=', "after metadata") || !MetadataList(leaf)) return false;
        break;
    }
  }
  // Of several words for the whole array, the first of these applies.
  constexpr std::pair<Word, ShardingKind> kWholes[] = {
      {Word::kReplicated, ShardingKind::kReplicated}, {Word::kMaximal, ShardingKind::kMaximal},
      {Word::kManual, ShardingKind::kManual},         {Word::kUnknown, ShardingKind::kUnknown},
      {Word::kUnreduced, ShardingKind::kUnreduced},
  };
  leaf->kind = ShardingKind::kTiled;
  for (const auto& [word, kind] : kWholes) {
    if (!has(word)) continue;
    leaf->kind = kind;
    const bool wants_device = word == Word::kMaximal;
    if (has(Word::kDevices) || has(Word::kLastTileDims) || has(Word::kDevice) != wants_device) {
      return Fail(StrCat("expected a ", kWordTexts[static_cast<size_t>(word)], " sharding to have ",
                         wants_device ? "one device, as device=" : "no devices"));
    }
    break;
  }
  if (leaf->kind != ShardingKind::kMaximal) leaf->device = 0;
  if (leaf->kind != ShardingKind::kUnreduced) leaf->reduction = ReductionOp::kSum;
  if (leaf->kind == ShardingKind::kTiled) {
    if (!has(Word::kDevices)) {
      return Fail("expected replicated, manual, unknown, unreduced, maximal device= or devices= in a sharding");
    }
    if (has(Word::kLastTileDimReplicate)) {
      if (has(Word::kLastTileDims)) return Fail("last_tile_dim_replicate and last_tile_dims are mutually exclusive");
      leaf->subgroups = {SubgroupType::kReplicated};
    }
    if (std::optional<std::string> error = NormalizeTiled(leaf)) return Fail(*std::move(error));
  }
  NoteReduction(context_, leaf);
  return true;
}

bool ShardingReader::Devices(ShardingLeaf* leaf) {
  const uint32_t start = in_.Offset();
  TileAssignment& tiles = leaf->tiles;
  if (!ParseNumbers(in_, '[', ']', "the dimensions of the tiles", &tiles.dims)) return false;
  const std::optional<int64_t> count = DeviceCount(tiles.dims);
  if (!count) {
    return in_.Error(kBadSharding, {start, in_.Here() - start},
                     "the dimensions of the tiles must be positive, with a product below 2^63");
  }
  if (in_.TryConsume("<=")) {
    if (!ParseIotaTileAssignment(in_, kBadSharding, &tiles.iota)) return false;
    const std::optional<int64_t> iota_count = DeviceCount(tiles.iota.reshape);
    if (iota_count == count) return true;
    return in_.Error(kBadSharding, {start, in_.Here() - start},
                     StrCat("expected as many devices as tiles: ", *count, " tiles, but an iota of ",
                            iota_count.value_or(0), " devices"));
  }
  do {
    int64_t device;
    if (!in_.Int(&device)) return false;
    tiles.devices.push_back(device);
  } while (in_.TryConsume(','));
  if (tiles.devices.size() != static_cast<uint64_t>(*count)) {
    return in_.Error(
        kBadSharding, {start, in_.Here() - start},
        StrCat("expected as many devices as tiles: ", *count, " tiles, but ", tiles.devices.size(), " devices"));
  }
  if (*count > 1) return true;
  return in_.Error(kBadSharding, {start, in_.Here() - start}, "expected more than one device in a tiled sharding",
                   "write {replicated} or {maximal device=...}");
}

bool ShardingReader::LastTileDims(ShardingLeaf* leaf) {
  if (!in_.Expect('{', "before last_tile_dims")) return false;
  if (in_.TryConsume('}')) return true;
  do {
    const SourceRange range = in_.Next();
    const std::string_view text = in_.BareName();
    size_t type = 0;
    while (type < std::size(kSubgroupTypeTexts) && kSubgroupTypeTexts[type] != text) ++type;
    if (type == std::size(kSubgroupTypeTexts)) {
      return in_.Error(kBadSharding, range, "expected manual, unreduced, replicated or maximal in last_tile_dims");
    }
    leaf->subgroups.push_back(static_cast<SubgroupType>(type));
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after last_tile_dims");
}

bool ShardingReader::Reduction(ReductionOp* op) {
  const SourceRange range = in_.Next();
  const std::string_view text = in_.BareName();
  for (size_t i = 0; i < std::size(kReductionOpTexts); ++i) {
    if (kReductionOpTexts[i] != text) continue;
    *op = static_cast<ReductionOp>(i);
    return true;
  }
  return in_.Error(kBadSharding, range, "expected sum, max or min after unreduced=");
}

// Parses `{op_name="a"}`, or a braced list of such.
bool ShardingReader::MetadataList(ShardingLeaf* leaf) {
  const char* start = in_.cursor();
  if (!in_.Expect('{', "before metadata")) return false;
  if (in_.Peek() != '{') {
    in_.set_cursor(start);
    return AddMetadata(leaf);
  }
  do {
    if (!AddMetadata(leaf)) return false;
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after a list of metadata");
}

bool ShardingReader::AddMetadata(ShardingLeaf* leaf) {
  MetadataId id;
  if (!ParseMetadata(in_, context_, &id)) return false;
  if (id.valid()) leaf->metadata.push_back(id);
  return true;
}

}  // namespace

bool ParseSharding(TextCursor& in, Context* context, ListId* sharding) {
  ShardingReader reader(in, context);
  if (!in.Expect('{', "before a sharding")) return false;
  const char next = in.Peek();
  if (next != '{' && next != '}') return reader.Leaf(sharding);
  std::vector<ListId> leaves;
  if (next == '{') {
    do {
      if (!in.Expect('{', "before the sharding of a tuple element") || !reader.Leaf(&leaves.emplace_back()))
        return false;
    } while (in.TryConsume(','));
  }
  if (!in.Expect('}', "after the shardings of a tuple")) return false;
  *sharding = EncodeTupleSharding(context, leaves);
  return true;
}

}  // namespace hlokit
