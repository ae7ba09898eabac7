// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/unpartitioned.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/name_range.h"
#include "ir/sharding/sdy_mesh.h"
#include "ir/sharding/sharding.h"
#include "ir/text/frontend_attributes.h"

namespace hlokit {
namespace {

bool DividesData(const ShardingLeaf& leaf) {
  if (leaf.kind == ShardingKind::kNamed) {
    return std::any_of(leaf.dims.begin(), leaf.dims.end(), [](const DimSharding& d) { return !d.axes.empty(); });
  }
  if (leaf.kind != ShardingKind::kTiled) return false;
  const int64_t rank = std::max<int64_t>(leaf.data_rank(), 0);
  const std::vector<int64_t>& dims = leaf.tiles.dims;
  return std::any_of(dims.begin(), dims.begin() + rank, [](int64_t tiles) { return tiles > 1; });
}

// Returns true if a sharding of Shardy, "#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>]>", names an axis for a
// dimension.
bool DividesData(std::string_view shardy) {
  for (size_t begin = shardy.find("[{"); begin != shardy.npos; begin = shardy.find("[{", begin + 1)) {
    if (shardy.substr(begin, shardy.find(']', begin) - begin).find('"') != shardy.npos) return true;
  }
  return false;
}

bool HasTiledShardySharding(Instruction instruction) {
  if (!instruction.has(Attr::kFrontendAttributes)) return false;
  const Context& context = instruction.module().context();
  const ListId id = AttrReader(instruction).list_id(Attr::kFrontendAttributes);
  const absl::Span<const int64_t> entries = context.list(id);  // keys and values in turn
  const StringId key = context.strings.Find("xla.sdy.sharding");
  for (size_t k = 0; key.valid() && k + 1 < entries.size(); k += 2) {
    if (entries[k] == key.value) return DividesData(context.str(StringId(static_cast<uint32_t>(entries[k + 1]))));
  }
  return false;
}

constexpr std::string_view kConversions[] = {"SPMDFullToShardShape", "SPMDShardToFullShape",
                                             "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"};

// Custom-calls that no program has after partitioning.
bool IsPartitionerMark(std::string_view target) {
  return target == "Sharding" || target == "xla.sdy.FuncResultSharding" || IsPartConversion(target);
}

// Returns the devices of the largest mesh in the header, `{mesh = #sdy.mesh<["x"=4, "y"=2]>}`; 0 without one.
int64_t DevicesOfShardyMeshes(const Module& module) {
  const std::string_view meshes = SdyMeshesOf(module);
  int64_t largest = 0;
  for (size_t at = meshes.find(kSdyMesh); at != meshes.npos; at = meshes.find(kSdyMesh, at + 1)) {
    SdyCursor in(meshes.substr(at + kSdyMesh.size()));
    SdyMesh mesh;
    if (!ReadSdyMesh(in, &mesh).ok()) return 0;
    largest = std::max(largest, mesh.count);
  }
  return largest;
}

}  // namespace

bool IsPartConversion(std::string_view target) {
  return std::find(std::begin(kConversions), std::end(kConversions), target) != std::end(kConversions);
}

bool IsMarkedPartitioned(const Module& module) {
  const ListId attributes = module.header().frontend_attributes;
  const StringId key = module.context().strings.Find(kPartitionedAttribute);
  if (!attributes.valid() || !key.valid()) return false;
  const absl::Span<const int64_t> entries = module.context().list(attributes);  // keys and values in turn
  for (size_t k = 0; k + 1 < entries.size(); k += 2) {
    if (entries[k] == key.value) return true;
  }
  return false;
}

bool HasTiledSharding(Instruction instruction) {
  if (HasTiledShardySharding(instruction)) return true;
  const ListId id = AttrReader(instruction).list_id(Attr::kSharding);
  if (!instruction.has(Attr::kSharding)) return false;
  const Sharding sharding = DecodeSharding(instruction.module().context(), id);
  return std::any_of(sharding.runs.begin(), sharding.runs.end(),
                     [](const Sharding::Run& run) { return DividesData(run.leaf); });
}

Instruction FirstUnpartitioned(const Module& module) {
  Instruction tiled, conversion, communicates;
  bool has_marks = false;
  if (IsMarkedPartitioned(module)) return tiled;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!communicates.valid() && HasTrait(i.opcode(), kCollective)) communicates = i;
      if (!tiled.valid() && HasTiledSharding(i)) tiled = i;
      if (i.opcode() != Opcode::kCustomCall) continue;
      const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
      if (!conversion.valid() && IsPartConversion(target)) conversion = i;
      has_marks = has_marks || IsPartitionerMark(target);
    }
  }
  // Of a module without marks collectives say that it is for one device. Between marks they are part of code that the
  // program has for one device.
  if (!has_marks && communicates.valid()) return Instruction();
  return tiled.valid() ? tiled : conversion;
}

bool AwaitsPartitioning(const Module& module) {
  return module.header().num_partitions > 1 && FirstUnpartitioned(module).valid();
}

int64_t PartitionsOfShardings(const Module& module) {
  const Context& context = module.context();
  int64_t devices = 0;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!i.has(Attr::kSharding)) continue;
      for (const Sharding::Run& run : DecodeSharding(context, AttrReader(i).list_id(Attr::kSharding)).runs) {
        if (run.leaf.kind == ShardingKind::kMaximal) continue;
        devices = std::max(devices, run.leaf.device_count());
      }
    }
  }
  // Shardings for other numbers of devices, or for devices beyond these, do not say for how many the program is.
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (devices == 0 || !i.has(Attr::kSharding)) continue;
      const Sharding sharding = DecodeSharding(context, AttrReader(i).list_id(Attr::kSharding));
      if (Validate(sharding, i.shape(), devices)) return 1;
    }
  }
  return std::max<int64_t>(devices != 0 ? devices : DevicesOfShardyMeshes(module), 1);
}

int64_t DevicesOfWholeProgram(const Module& module) {
  if (!FirstUnpartitioned(module).valid()) return 1;
  return module.header().num_partitions > 1 ? module.header().num_partitions : PartitionsOfShardings(module);
}

bool TakePartitionsOfShardings(Module* module, DiagnosticSink* warnings) {
  if (module->header().num_partitions > 1) return false;
  const Instruction sharded = FirstUnpartitioned(*module);
  if (!sharded.valid()) return false;
  const int64_t partitions = PartitionsOfShardings(*module);
  const SourceRange range = NameRange(sharded);
  if (partitions <= 1) {
    if (warnings != nullptr && HasTiledSharding(sharded)) {
      warnings->Warning(
          DiagnosticKind::kSharding, range,
          "the program is not partitioned: the header has no num_partitions, and its shardings are not all "
          "for the same devices",
          "num_partitions=N in the header says for how many");
    }
    return false;
  }
  module->header().num_partitions = partitions;
  if (warnings == nullptr) return true;
  warnings->Warning(DiagnosticKind::kSharding, range,
                    StrCat("the header has no num_partitions: the program is partitioned for ", partitions,
                           " devices, as its shardings are, such as that of `", sharded.name(), "`"),
                    StrCat("num_partitions=", partitions, " in the header says so"));
  return true;
}

void WarnOfUndivided(const Module& module, bool asked, DiagnosticSink* warnings) {
  if (warnings == nullptr || AwaitsPartitioning(module)) return;
  const int64_t partitions = module.header().num_partitions;
  Instruction communicates, tiled, annotated;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!communicates.valid() && HasTrait(i.opcode(), kCollective)) communicates = i;
      if (!tiled.valid() && HasTiledSharding(i)) tiled = i;
      if (!annotated.valid() && i.has(Attr::kSharding)) annotated = i;
    }
  }
  const auto warn = [&](Instruction at, std::string text, std::string hint) {
    const SourceRange range = at.valid() ? NameRange(at) : SourceRange();
    warnings->Warning(DiagnosticKind::kSharding, range, std::move(text), std::move(hint));
  };
  if (IsMarkedPartitioned(module)) {
    if (asked) {
      warn(Instruction(),
           StrCat("the module is partitioned already: its frontend attribute ", kPartitionedAttribute, " says so"), "");
    }
  } else if (communicates.valid()) {
    if (asked) {
      warn(communicates,
           StrCat("the program is taken to be partitioned already: it has the collective `", communicates.name(),
                  "`, and no custom-call that partitioning removes, such as Sharding"),
           "");
    }
  } else if (partitions > 1 && !tiled.valid() && (annotated.valid() || asked)) {
    warn(annotated,
         StrCat("nothing is divided: no sharding of the program divides an array, so each of the ", partitions,
                " devices computes all of it"),
         "sharding={devices=[N]<=[N]} of a parameter divides its first dimension");
  } else if (partitions <= 1 && !tiled.valid() && asked) {
    warn(Instruction(), "nothing is divided: the program has no shardings, and the header has no num_partitions", "");
  }
}

}  // namespace hlokit
