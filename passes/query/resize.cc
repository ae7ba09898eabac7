// SPDX-License-Identifier: Apache-2.0
#include "passes/query/resize.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/verify/verifier.h"
#include "passes/core/pass_row.h"
#include "passes/query/dimension_flow.h"
#include "passes/query/query.h"
#include "passes/query/resize_dimension.h"

namespace hlokit::query {
namespace {

// Returns "FROM:TO" as numbers.
bool ParseSizes(std::string_view text, int64_t* from, int64_t* to) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  for (const auto& [part, number] : {std::pair{text.substr(0, colon), from}, std::pair{text.substr(colon + 1), to}}) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), *number);
    if (error != std::errc() || end != part.data() + part.size() || *number < 1) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> ResizePass::Run(Module& module) {
  if (options().String("batch").empty()) return false;
  int64_t from = 0, to = 0;
  if (const std::string text(options().String("batch")); !ParseSizes(text, &from, &to)) {
    DiagnosticSink sink;
    sink.Error(DiagnosticKind::kUnexpectedToken, {0, static_cast<uint32_t>(text.size())},
               "expected two sizes of at least 1, FROM:TO", "as in batch=8:16");
    return QueryError(sink, "batch", text);
  }
  if (from == to) return false;
  std::vector<std::string> names(1);
  for (const char c : options().String("parameters")) {
    if (c == ',') {
      names.emplace_back();
    } else if (c != '[' && c != ']' && c != ' ' && c != '%') {
      names.back() += c;
    }
  }
  std::erase(names, "");
  const int64_t dimension = options().Int("dimension");
  const SizeChange change = {from, to};
  DimensionFlow flow(module, DimensionFlow::Obstacle::kError);
  const Computation entry = module.entry();
  for (int64_t k = 0; k < entry.parameter_count(); ++k) {
    const Instruction p = entry.parameter(k);
    const auto named = std::find(names.begin(), names.end(), p.name());
    if (!names.empty() && named == names.end()) continue;
    bool any = false;
    const std::vector<Shape> leaves = Leaves(p.shape());
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      if (dimension >= leaves[leaf].rank() || dimension >= DimensionFlow::kMaxRank ||
          leaves[leaf].dim(dimension) != from)
        continue;
      flow.Mark(p, static_cast<int64_t>(leaf), dimension);
      any = true;
    }
    if (names.empty()) continue;
    if (!any) {
      return absl::InvalidArgumentError(StrCat("parameter `", p.name(), "` has no dimension ", dimension, " of size ",
                                               from, ", but is ", ToString(p.shape(), false)));
    }
    names.erase(named);
    if (names.empty()) break;
  }
  if (!names.empty()) {
    std::vector<std::string_view> known;
    for (int64_t k = 0; k < entry.parameter_count(); ++k) known.push_back(entry.parameter(k).name());
    return absl::InvalidArgumentError(
        StrCat("the entry has no parameter `", names[0], "`", DidYouMeanSuffix(names[0], known)));
  }
  if (flow.empty()) {
    return absl::InvalidArgumentError(StrCat("no parameter has size ", from, " in dimension ", dimension));
  }
  if (absl::Status s = flow.Follow(change); !s.ok()) return s;
  Module changed = module.Clone();
  const absl::StatusOr<int64_t> resized = ResizeDimensions(flow, change, &changed);
  if (!resized.ok()) return resized.status();
  DiagnosticSink sink;
  VerifyModule(changed, {}, &sink);
  if (sink.has_errors()) {
    return absl::InvalidArgumentError(StrCat("the dimension does not fit everywhere: ", sink.diagnostics()[0].message));
  }
  Count("instructions resized", *resized);
  module = std::move(changed);
  return true;
}

}  // namespace hlokit::query

namespace hlokit {

HLOKIT_PASS(Resize) {
  return {
      .name = "resize",
      .category = "edits",
      .summary = "change the batch size of a program",
      .doc =
          "resize{batch=8:16}: the dimension of entry parameters with the size 8 becomes 16, and what follows "
          "from it: it is followed by the rules of shardings through operations, and through tuples, "
          "fusions, calls, loops and branches; limits of slices and sizes of dynamic slices and gathers "
          "change too. An operation through which it cannot be followed is an error that names it, and "
          "the module stays. Constants that depend on the size, such as the divisor of a mean, stay.",
      .options = {{.name = "batch", .type = OptionInfo::Type::kString, .default_text = "", .doc = "the sizes, FROM:TO"},
                  {.name = "parameters",
                   .type = OptionInfo::Type::kString,
                   .default_text = "",
                   .doc = "the entry parameters that have the dimension, [a,b]; empty: all with the size FROM"},
                  {.name = "dimension",
                   .type = OptionInfo::Type::kInt,
                   .default_text = "0",
                   .doc = "the number of the dimension in these parameters"}},
      .create = MakePass<query::ResizePass>};
}

}  // namespace hlokit
