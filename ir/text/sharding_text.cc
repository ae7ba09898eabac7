// SPDX-License-Identifier: Apache-2.0
// Shardings as text.
#include <string>

#include "ir/sharding/reduction_note.h"
#include "ir/sharding/sharding.h"
#include "ir/text/metadata_text.h"

namespace hlokit {
namespace {

// Prints the metadata of a leaf: a single one of an unnamed leaf without braces, that of a named leaf always as a list.
void PrintLeafMetadata(TextWriter& out, const Context& context, const ShardingLeaf& leaf) {
  if (leaf.metadata.empty()) return;
  const bool named = leaf.kind == ShardingKind::kNamed || leaf.over_mesh;
  out << (named ? ", metadata=" : " metadata=");
  const bool list = named || leaf.metadata.size() != 1;
  if (list) out << '{';
  for (size_t i = 0; i < leaf.metadata.size(); ++i) {
    if (i != 0) out << ", ";
    PrintMetadata(out, context, leaf.metadata[i]);
  }
  if (list) out << '}';
}

void PrintReduction(TextWriter& out, ReductionOp op) {
  if (op != ReductionOp::kSum) out << kReductionOpTexts[static_cast<size_t>(op)];
}

// The words for tiles name no reduction: metadata do, as in XLA.
void PrintReductionNote(TextWriter& out, const Context& context, const ShardingLeaf& leaf, bool include_metadata) {
  const bool list = include_metadata && !leaf.metadata.empty();
  out << " metadata=" << (list ? "{" : "");
  for (size_t i = 0; list && i < leaf.metadata.size(); ++i) {
    PrintMetadata(out, context, leaf.metadata[i]);
    out << ", ";
  }
  out << "{op_type=\"" << kReductionNote << "\" op_name=\"" << kReductionNames[static_cast<size_t>(leaf.reduction)]
      << "\"}" << (list ? "}" : "");
}

void PrintNamed(TextWriter& out, const Context& context, const ShardingLeaf& leaf) {
  const auto axes = [&](const std::vector<AxisRef>& list) { PrintAxes(out, context, leaf.mesh, list, ", "); };
  PrintMesh(out, context, leaf.mesh);
  if (leaf.mesh.maximal()) return;
  out << ", [";
  for (size_t i = 0; i < leaf.dims.size(); ++i) {
    out << (i == 0 ? "{" : ", {");
    axes(leaf.dims[i].axes);
    if (leaf.dims[i].open) out << (leaf.dims[i].axes.empty() ? "?" : ", ?");
    out << '}';
  }
  out << ']';
  if (!leaf.replicated.empty()) {
    out << ", replicated={";
    axes(leaf.replicated);
    out << '}';
  }
  if (!leaf.unreduced.empty()) {
    out << ", unreduced=";
    PrintReduction(out, leaf.reduction);
    out << '{';
    axes(leaf.unreduced);
    out << '}';
  }
  if (!leaf.manual.empty()) {
    out << ", manual={";
    axes(leaf.manual);
    out << '}';
  }
}

void PrintTiled(TextWriter& out, const ShardingLeaf& leaf) {
  out << "devices=";
  PrintTileAssignment(out, leaf.tiles);
  if (leaf.subgroups.empty()) return;
  if (leaf.subgroups.size() == 1 && leaf.subgroups[0] == SubgroupType::kReplicated) {
    out << " last_tile_dim_replicate";
    return;
  }
  out << " last_tile_dims={";
  for (size_t i = 0; i < leaf.subgroups.size(); ++i) {
    if (i != 0) out << ", ";
    out << kSubgroupTypeTexts[static_cast<size_t>(leaf.subgroups[i])];
  }
  out << '}';
}

void PrintLeaf(TextWriter& out, const Context& context, const ShardingLeaf& leaf, bool include_metadata) {
  out << '{';
  if (leaf.over_mesh) {
    PrintMesh(out, context, leaf.mesh);
    out << ", ";
  }
  switch (leaf.kind) {
    case ShardingKind::kReplicated:
      out << "replicated";
      break;
    case ShardingKind::kManual:
      out << "manual";
      break;
    case ShardingKind::kUnknown:
      out << "unknown";
      break;
    case ShardingKind::kUnreduced:
      out << (leaf.reduction == ReductionOp::kSum ? "unreduced" : "unreduced=");
      PrintReduction(out, leaf.reduction);
      break;
    case ShardingKind::kMaximal:
      out << "maximal device=" << leaf.device;
      break;
    case ShardingKind::kTiled:
      PrintTiled(out, leaf);
      break;
    case ShardingKind::kNamed:
      PrintNamed(out, context, leaf);
      break;
  }
  if (leaf.group != ShardGroup::kNone) {
    out << (leaf.group == ShardGroup::kAs ? " shard_as " : " shard_like ") << leaf.group_id;
  }
  const bool tiled_note = leaf.kind == ShardingKind::kTiled && leaf.reduction != ReductionOp::kSum;
  if (tiled_note) {
    PrintReductionNote(out, context, leaf, include_metadata);
  } else if (include_metadata) {
    PrintLeafMetadata(out, context, leaf);
  }
  out << '}';
}

}  // namespace

void PrintSharding(TextWriter& out, const Context& context, ListId sharding, bool include_metadata) {
  if (!IsTupleSharding(context, sharding)) {
    PrintLeaf(out, context, DecodeLeaf(context, sharding), include_metadata);
    return;
  }
  out << '{';
  const absl::Span<const int64_t> list = context.list(sharding);
  int64_t index = 0;
  std::string text;
  for (size_t i = 1; i < list.size(); i += 2) {
    text.clear();
    {
      TextWriter leaf_out(&text);
      PrintLeaf(leaf_out, context, DecodeLeaf(context, ListId(static_cast<uint32_t>(list[i]))), include_metadata);
    }
    for (int64_t n = 0; n < list[i + 1]; ++n, ++index) {
      if (index != 0) out << ", ";
      if (index != 0 && index % 5 == 0) out << "/*index=" << index << "*/";
      out << text;
    }
  }
  out << '}';
}

}  // namespace hlokit
