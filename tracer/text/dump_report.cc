// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/dump_report.h"

#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/digest/digest.h"
#include "tracer/text/graph_diff.h"

namespace hlokit::lazy {
namespace {

size_t LeafCount(const TextGraph& graph) {
  size_t leaves = 0;
  for (const TextNode& node : graph.nodes) leaves += node.operands.empty();
  return leaves;
}

}  // namespace

std::string ListGraphs(const TextDump& dump) {
  std::string out;
  for (size_t i = 0; i < dump.graphs.size(); ++i) {
    const TextGraph& g = dump.graphs[i];
    StrAppend(&out, i + 1, ": ", g.nodes.size(), " nodes, ", LeafCount(g), " leaves, ", g.Roots().size(), " roots, ",
              ToString(DigestOf(ToNormalizedString(g))));
    if (!g.name.empty()) StrAppend(&out, ", name ", g.name);
    if (!g.hash.empty()) StrAppend(&out, ", hash ", g.hash);
    if (!g.frame.empty()) StrAppend(&out, ", at ", g.frame);
    out += "\n";
  }
  return out;
}

std::string ListGraphsJson(const TextDump& dump) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TextGraph& g : dump.graphs) {
    list.push_back({{"nodes", g.nodes.size()},
                    {"leaves", LeafCount(g)},
                    {"roots", g.Roots().size()},
                    {"digest", ToString(DigestOf(ToNormalizedString(g)))},
                    {"name", std::string(g.name)},
                    {"hash", std::string(g.hash)},
                    {"frame", std::string(g.frame)}});
  }
  return list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::vector<std::vector<size_t>> EqualGraphs(const TextDump& dump) {
  std::vector<std::vector<size_t>> groups;
  absl::flat_hash_map<std::string, size_t> known;
  for (size_t i = 0; i < dump.graphs.size(); ++i) {
    const auto [it, fresh] = known.emplace(ToNormalizedString(dump.graphs[i]), groups.size());
    if (fresh) groups.emplace_back();
    groups[it->second].push_back(i);
  }
  return groups;
}

std::string DeduplicationReport(const TextDump& dump) {
  const std::vector<std::vector<size_t>> groups = EqualGraphs(dump);
  std::string out = StrCat(dump.graphs.size(), " graphs, ", groups.size(), " different\n");
  for (size_t k = 0; k < groups.size(); ++k) {
    const TextGraph& g = dump.graphs[groups[k][0]];
    StrAppend(&out, "graph ", groups[k][0] + 1, ": ", g.nodes.size(), " nodes, ", Counted(groups[k].size(), "time"));
    if (!g.frame.empty()) StrAppend(&out, ", at ", g.frame);
    out += "\n";
    if (k > 0) {
      const GraphDiff diff = DiffGraphs(dump.graphs[groups[k - 1][0]], g);
      StrAppend(&out, "  differs from graph ", groups[k - 1][0] + 1, " first at ",
                diff.equal ? std::string("the order of its nodes") : diff.first, "\n");
    }
  }
  return out;
}

}  // namespace hlokit::lazy
