// SPDX-License-Identifier: Apache-2.0
// Checks recorded questions of sharding arithmetic and their answers.
//
//   sharding_arithmetic FILE.jsonl
//
// A line is {"name", "fn", "args", "expect"}: a function of ir/sharding, its arguments, shardings and shapes as HLO
// text, and the expected result, null for none. Shardings are compared in normal form. Prints `N passed, N failed`;
// exit code 1 if a case failed.
#include <cstdio>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/core/text_writer.h"
#include "ir/sharding/sharding.h"
#include "ir/sharding/tiling.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "ir/sharding/tiling_reshape.h"
#include "nlohmann/json.hpp"
#include "parser/formats/parser.h"
#include "parser/hlo/sharding_parser.h"
#include "parser/text/text_cursor.h"

namespace hlokit {
namespace {

using Json = nlohmann::json;
using Dims = std::vector<int64_t>;

// One case, with its arguments as values.
class Case {
 public:
  explicit Case(const Json& json) : json_(json), args_(json["args"]) {}

  ShardingLeaf Leaf(const std::string& text) {
    texts_.push_back(text);
    DiagnosticSink sink;
    TextCursor in(texts_.back(), &sink);
    ListId id;
    if (!ParseSharding(in, &context_, &id)) {
      std::fprintf(stderr, "sharding_arithmetic: cannot parse %s\n", text.c_str());
      return {};
    }
    return DecodeLeaf(context_, id);
  }
  Tiling Sharding(const char* name = "sharding") {
    const ShardingLeaf leaf = Leaf(args_[name].get<std::string>());
    // Named shardings may leave out dimensions that are not tiled.
    const int64_t rank = args_.contains("shape") ? static_cast<int64_t>(Sizes().size()) : leaf.data_rank();
    return TilingOf(leaf, rank).value_or(Tiling());
  }
  Dims Sizes(const char* name = "shape") {
    const absl::StatusOr<Shape> shape = ParseShapeText(args_[name].get<std::string>(), &context_);
    if (!shape.ok()) return {};
    return {shape->dims().begin(), shape->dims().end()};
  }
  Dims List(const char* name) { return args_[name].get<Dims>(); }
  int64_t Int(const char* name) { return args_[name].get<int64_t>(); }

  // ---- results ----
  bool Is(bool value) { return Print(value ? "true" : "false"), json_["expect"].get<bool>() == value; }
  bool Is(const Dims& value) {
    if (json_["expect"].is_string()) {
      const absl::StatusOr<Shape> shape = ParseShapeText(json_["expect"].get<std::string>(), &context_);
      return shape.ok() && Dims(shape->dims().begin(), shape->dims().end()) == value;
    }
    return json_["expect"].get<Dims>() == value;
  }
  bool Is(std::optional<int64_t> value) {
    return json_["expect"].is_null() ? !value : value && json_["expect"].get<int64_t>() == *value;
  }
  bool Is(const std::optional<Tiling>& value) {
    Print(value ? Text(LeafOf(*value)) : "null");
    if (json_["expect"].is_null()) return !value;
    if (!value) return false;
    const ShardingLeaf expected = Leaf(json_["expect"].get<std::string>());
    if (expected.kind == ShardingKind::kNamed && !NamedLeafOf(*value, expected.mesh)) return false;
    return *value == TilingOf(expected, expected.data_rank()).value_or(Tiling());
  }
  // A leaf in exactly the expected form, apart from names.
  bool IsLeaf(const ShardingLeaf& value) {
    Print(Text(value));
    return value == Leaf(json_["expect"].get<std::string>());
  }
  Context& context() { return context_; }
  const std::string& printed() const { return printed_; }

 private:
  void Print(const std::string& text) { printed_ = text; }
  std::string Text(const ShardingLeaf& leaf) {
    std::string text;
    TextWriter out(&text);
    PrintSharding(out, context_, EncodeLeaf(&context_, leaf));
    out.Flush();
    return text;
  }

  const Json& json_;
  const Json& args_;
  Context context_;
  std::deque<std::string> texts_;
  std::string printed_;
};

MergePolicy PolicyOf(Case& c, const Json& args) {
  const bool named = c.Leaf(args["source"].get<std::string>()).kind == ShardingKind::kNamed;
  return named ? MergePolicy::kPrefixes : MergePolicy::kWholeDimensions;
}

std::map<std::string, std::function<bool(Case&, const Json&)>> Functions() {
  return {
      {"is_subtiling",
       [](Case& c, const Json&) {
         return c.Is(IsSubTilingOrEqual(c.Sizes(), c.Sharding("sub"), c.Sharding("super")));
       }},
      {"merge",
       [](Case& c, const Json& args) {
         return c.Is(Merge(c.Sharding("source"), c.Sharding("into"), PolicyOf(c, args)));
       }},
      {"reshape", [](Case& c, const Json&) { return c.Is(Reshape(c.Sizes("from"), c.Sizes("to"), c.Sharding())); }},
      {"reshape_or_replicate",
       [](Case& c, const Json&) {
         return c.Is(std::optional(ReshapeOrReplicate(c.Sizes("from"), c.Sizes("to"), c.Sharding())));
       }},
      {"transpose", [](Case& c, const Json&) { return c.Is(std::optional(Transpose(c.Sharding(), c.List("dims")))); }},
      {"transpose_collapsed",
       [](Case& c, const Json&) { return c.Is(TransposeWithCollapsedDims(c.Sharding(), c.List("to_from"))); }},
      {"move_tiles",
       [](Case& c, const Json&) {
         return c.Is(std::optional(MoveTiles(c.Sharding(), c.Int("from_dim"), c.Int("to_dim"))));
       }},
      {"merge_dim_with_next",
       [](Case& c, const Json&) { return c.Is(std::optional(MergeDimWithNext(c.Sharding(), c.Int("dim")))); }},
      {"split_dim", [](Case& c, const Json&) { return c.Is(SplitDim(c.Sharding(), c.Int("dim"), c.Int("size"))); }},
      {"carry_dims",
       [](Case& c, const Json&) {
         return c.Is(std::optional(CarryDims(c.Sharding(), c.List("from_dims"), c.List("to_dims"), c.Int("to_rank"))));
       }},
      {"replicate_dims",
       [](Case& c, const Json&) { return c.Is(std::optional(ReplicateDims(c.Sharding(), c.List("dims")))); }},
      {"add_dims",
       [](Case& c, const Json&) { return c.Is(std::optional(AddDims(c.Sharding(), c.Int("dim"), c.Int("count")))); }},
      {"dim_to_move_tiles_to",
       [](Case& c, const Json&) { return c.Is(DimToMoveTilesTo(c.Sizes(), c.Sharding(), c.Int("dim"))); }},
      {"to_tiled", [](Case& c, const Json&) { return c.Is(std::optional(c.Sharding())); }},
      {"to_named", [](Case& c, const Json&) { return c.IsLeaf(NamedLeafOf(&c.context(), c.Sharding())); }},
      {"tile_shape", [](Case& c, const Json&) { return c.Is(TileSizes(c.Sharding(), c.Sizes())); }},
      {"untile_shape", [](Case& c, const Json&) { return c.Is(UntileSizes(c.Sharding(), c.Sizes())); }},
      {"tile_offset",
       [](Case& c, const Json&) {
         const std::optional<TileBounds> bounds = BoundsOf(c.Sharding(), c.Sizes(), c.Int("device"));
         return bounds && c.Is(bounds->offset);
       }},
      {"tile_limit",
       [](Case& c, const Json&) {
         const std::optional<TileBounds> bounds = BoundsOf(c.Sharding(), c.Sizes(), c.Int("device"));
         return bounds && c.Is(bounds->limit);
       }},
      {"finer_compatible",
       [](Case& c, const Json&) { return c.Is(FinerCompatible(c.Sharding("partial"), c.Sharding("target"))); }},
      {"can_permute",
       [](Case& c, const Json&) { return c.Is(CanPermute(c.Sharding("source"), c.Sharding("target"))); }},
  };
}

int Run(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: sharding_arithmetic FILE.jsonl\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  if (!file) {
    std::fprintf(stderr, "sharding_arithmetic: cannot read %s\n", argv[1]);
    return 2;
  }
  const auto functions = Functions();
  int passed = 0, failed = 0;
  std::string line;
  while (std::getline(file, line)) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) continue;
    const auto found = functions.find(json["fn"].get<std::string>());
    Case c(json);
    const bool right = found != functions.end() && found->second(c, json["args"]);
    ++(right ? passed : failed);
    if (!right) std::printf("FAILED: %s\n  found %s\n", line.c_str(), c.printed().c_str());
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
