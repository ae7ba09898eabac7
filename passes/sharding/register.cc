// SPDX-License-Identifier: Apache-2.0
// Registers the sharding passes.
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "passes/core/register_passes.h"
#include "passes/sharding/constant_splitter.h"
#include "passes/sharding/partition/spmd_partitioner.h"
#include "passes/sharding/propagation.h"
#include "passes/sharding/shardy_import.h"
#include "passes/sharding/shardy_propagation.h"

namespace hlokit {
namespace {

// The entries of "[a,b]" or "a,b".
std::vector<std::string> ListEntries(std::string_view text) {
  std::vector<std::string> entries(1);
  for (const char c : text) {
    if (c == ',') {
      entries.emplace_back();
    } else if (c != '[' && c != ']' && c != ' ') {
      entries.back() += c;
    }
  }
  std::erase(entries, "");
  return entries;
}

class ShardyImport : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> read = sharding::ImportShardy(module);
    if (!read.ok()) return read.status();
    if (*read > 0) Count("attributes and custom-calls of Shardy read", *read);
    return *read > 0;
  }
};

class ShardingPropagation : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    sharding::PropagationOptions propagation;
    const std::string_view is_spmd = options().String("is-spmd");
    propagation.is_spmd = is_spmd == "auto" ? module.header().num_partitions > 1 : is_spmd == "true";
    propagation.propagate_metadata = options().Bool("propagate-metadata");
    propagation.cse_prevention_only = options().Bool("cse-prevention-only");
    propagation.threads = ListEntries(options().String("threads"));
    const ModuleHeader& header = module.header();
    propagation.to_output = sharding::AllowedByHeader(module, header.allow_spmd_sharding_propagation_to_output);
    propagation.to_parameters = sharding::AllowedByHeader(module, header.allow_spmd_sharding_propagation_to_parameters);
    if (absl::Status status = Bools("to-output", &propagation.to_output); !status.ok()) return status;
    if (absl::Status status = Bools("to-parameters", &propagation.to_parameters); !status.ok()) return status;
    const absl::StatusOr<sharding::PropagationCounts> counts =
        sharding::PropagateShardings(module, propagation, nullptr);
    if (!counts.ok()) return counts.status();
    if (counts->imported > 0) Count("attributes and custom-calls of Shardy read", counts->imported);
    if (counts->added > 0) Count("shardings added", counts->added);
    if (counts->changed > 0) Count("shardings changed", counts->changed);
    if (counts->constraints > 0) Count("sharding custom-calls turned into copies", counts->constraints);
    if (counts->copied_loops > 0) Count("loops at the root copied", counts->copied_loops);
    return counts->total() > 0;
  }

 private:
  // Replaces the values by those of the option, if it is set.
  absl::Status Bools(std::string_view option, std::vector<bool>* values) const {
    if (!options().String(option).empty()) values->clear();
    for (const std::string& entry : ListEntries(options().String(option))) {
      if (entry != "true" && entry != "false") {
        return absl::InvalidArgumentError(StrCat(option, ": expected true or false, found `", entry, "`"));
      }
      values->push_back(entry == "true");
    }
    return absl::OkStatus();
  }
};

class ShardyPropagation : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    // A manual computation within another one, or in a loop, is beyond Shardy's own forms: its axes are read first.
    int64_t imported = 0;
    if (HasInnerManualComputation(module)) {
      const absl::StatusOr<int64_t> read = sharding::ImportShardy(module);
      if (!read.ok()) return read.status();
      imported = *read;
      if (imported > 0) Count("attributes and custom-calls of Shardy read", imported);
    }
    const absl::StatusOr<sharding::PropagationCounts> counts = sharding::PropagateLikeShardy(module);
    if (!counts.ok()) return counts.status();
    if (counts->added > 0) Count("shardings added", counts->added);
    if (counts->changed > 0) Count("shardings changed", counts->changed);
    return imported + counts->total() > 0;
  }

 private:
  static bool HasInnerManualComputation(const Module& module) {
    for (Computation c : module.computations()) {
      if (c == module.entry()) continue;
      for (Instruction i : c.instructions()) {
        if (i.opcode() == Opcode::kCustomCall &&
            i.string_attr(Attr::kCustomCallTarget) == "xla.sdy.GlobalToLocalShape") {
          return true;
        }
      }
    }
    return false;
  }
};

class ConstantSplitter : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const int64_t made = sharding::SplitConstants(module);
    if (made > 0) Count("constants cloned", made);
    return made > 0;
  }
};

class SpmdPartitioner : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    if (IsMarkedPartitioned(module)) return false;
    bool changed = false;
    if (options().Int("partitions") == 0) changed = TakePartitionsOfShardings(&module, context().diagnostics);
    spmd::PartitionOptions partition;
    partition.partitions = options().Int("partitions");
    partition.threshold_for_windowed_einsum_mib = options().Int("threshold-for-windowed-einsum-mib");
    partition.total_bytes_windowed_einsum_threshold = options().Int("total-bytes-windowed-einsum-threshold");
    partition.max_windowed_einsum_iteration = options().Int("max-windowed-einsum-iteration");
    partition.skip_checking_windowed_einsum_users = options().Bool("skip-checking-windowed-einsum-users");
    partition.disable_ag_rewrite_for_multiple_consumers = options().Bool("disable-ag-rewrite-for-multiple-consumers");
    partition.diagnostics = context().diagnostics;
    const absl::StatusOr<spmd::PartitionCounts> counts = spmd::PartitionModule(module, partition);
    if (!counts.ok()) return counts.status();
    if (counts->imported > 0) Count("attributes and custom-calls of Shardy read", counts->imported);
    if (counts->computations == 0) return changed || counts->imported > 0;
    if (counts->collectives > 0) Count("collectives", counts->collectives);
    return true;
  }
};

constexpr char kPropagationExample[] = R"(HloModule layer

ENTRY main {
  x = f32[64,256]{1,0} parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  w = f32[256,512]{1,0} parameter(1), sharding={devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}
  y = f32[64,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[64,512]{1,0} tanh(y)
}
)";

constexpr char kShardyExample[] =
    R"(HloModule halves, num_partitions=2, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2]>}}

xla.sdy.manual_computation_body {
  p = f32[4]{0} parameter(0)
  ROOT shifted = f32[4]{0} collective-permute(p), channel_id=1, source_target_pairs={{0,1},{1,0}}
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  local = f32[4]{0} custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"}
  body = f32[4]{0} call(local), to_apply=xla.sdy.manual_computation_body, frontend_attributes={inlineable="false"}
  ROOT whole = f32[8]{0} custom-call(body), custom_call_target="xla.sdy.LocalToGlobalShape", frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>"}
}
)";

constexpr char kPartitionerExample[] = R"(HloModule layer, num_partitions=8

ENTRY main {
  x = f32[64,256]{1,0} parameter(0), sharding={devices=[4,2]<=[8]}
  w = f32[256,512]{1,0} parameter(1), sharding={devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}
  y = f32[64,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[4,2]<=[8]}
  ROOT z = f32[64,512]{1,0} tanh(y), sharding={devices=[4,2]<=[8]}
}
)";

constexpr char kSplitterExample[] = R"(HloModule shared

ENTRY main {
  x = f32[4]{0} parameter(0)
  c = f32[] constant(2)
  b = f32[4]{0} broadcast(c), dimensions={}
  y = f32[4]{0} multiply(x, b)
  ROOT z = f32[4]{0} add(y, b)
}
)";

}  // namespace

void RegisterShardingPasses(PassRegistry* registry) {
  registry->Add({.name = "shardy-import",
                 .category = "sharding",
                 .summary = "read what Shardy leaves in HLO, such as the shard_map of JAX",
                 .doc = "Manual computations become Sharding, SPMDFullToShardShape and SPMDShardToFullShape around the "
                        "call of their body, as XLA writes them without Shardy: shardings within a body get its manual "
                        "axes, and those of bodies around it. The frontend attribute xla.sdy.sharding becomes the "
                        "sharding; dimensions that a constraint leaves open are its unspecified_dims. Groups become "
                        "shard_as, barriers ShardBarrierFrom and ShardBarrierTo, and result shardings those of the "
                        "root. Priorities are not read. sharding-propagation and spmd-partitioner begin with this.",
                 .example = kShardyExample,
                 .preserves = "the program.",
                 .create = MakePass<ShardyImport>});
  registry->Add(
      {.name = "sharding-propagation",
       .category = "sharding",
       .summary = "spread shardings along the dimensions of operations",
       .doc = "Shardings of the text reach the instructions without one, forward and backward along the sharding rules "
              "of operations, by XLA's policy: in four levels, elementwise operations first, broadcasts last, each "
              "until nothing changes; partial tilings merge from the second level on. Custom-calls Sharding become "
              "copies, so that a value can have one sharding before and another after. Loops, calls and conditionals "
              "share theirs with their computations; shard_as groups agree. Nothing becomes coarser, and the result "
              "does not depend on the order of the text. `hlo-inspect shardings --why` explains it.",
       .example = kPropagationExample,
       .options = {{.name = "is-spmd",
                    .type = OptionInfo::Type::kString,
                    .default_text = "auto",
                    .doc = "all devices run one program; otherwise nothing is merged, as XLA's for several programs; "
                           "auto: if the module has several partitions",
                    .choices = {"auto", "true", "false"}},
                   {.name = "propagate-metadata",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "false",
                    .doc = "shardings carry the metadata of the instruction they began at; otherwise they lose theirs"},
                   {.name = "cse-prevention-only",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "false",
                    .doc = "keep only the shardings of broadcasts of scalars, marked"},
                   {.name = "to-output",
                    .type = OptionInfo::Type::kString,
                    .default_text = "",
                    .doc = "whether the result of the entry may change: true, or [true,false] for its elements; by "
                           "default as the header allows"},
                   {.name = "to-parameters",
                    .type = OptionInfo::Type::kString,
                    .default_text = "",
                    .doc = "whether the parameters of the entry may change: true, or [true,false] for each; by "
                           "default as the header allows"},
                   {.name = "threads",
                    .type = OptionInfo::Type::kString,
                    .default_text = "",
                    .doc = "only computations of these execution threads: [main,other]"}},
       .preserves = "the program, apart from Sharding custom-calls that become copies.",
       .create = MakePass<ShardingPropagation>});
  registry->Add({.name = "shardy-propagation",
                 .category = "sharding",
                 .summary = "spread shardings factor by factor",
                 .doc = "Propagation by Shardy's policy over the same rules: each operation in turn carries axes "
                        "along its factors, in rounds from elementwise operations to everything. Dimensions that "
                        "are given are closed unless the text opens them; parameters and results as the header "
                        "allows. Shardings and meshes may be Shardy's frontend attributes. Priorities, sharding "
                        "groups and manual computations over some of the axes are not read.",
                 .example = kPropagationExample,
                 .preserves = "the program: only shardings change.",
                 .create = MakePass<ShardyPropagation>});
  registry->Add(
      {.name = "spmd-partitioner",
       .category = "sharding",
       .summary = "write the program for one device of many",
       .doc = "Each value becomes the part of it that a device has by its sharding, and each operation is divided "
              "along the factors of its sharding rule: by the axes that its operands and its result have, of which "
              "those are chosen that need the fewest bytes of communication. Instructions without a sharding are "
              "replicated (sharding-propagation gives them one). Sizes that do not divide are padded at the end. "
              "Reductions of several arrays, and scans marked associative, are taken to be associative. An "
              "operation that cannot be divided is computed whole on every device. Parameters and root of the entry "
              "get the shapes of parts and keep their shardings; the module is marked by the frontend attribute "
              "spmd_partitioned.",
       .example = kPartitionerExample,
       .options = {{.name = "partitions",
                    .type = OptionInfo::Type::kInt,
                    .default_text = "0",
                    .doc = "number of devices; 0: as the module says"},
                   {.name = "threshold-for-windowed-einsum-mib",
                    .type = OptionInfo::Type::kInt,
                    .default_text = "256",
                    .doc = "smallest operand, or scattered result, of a dot that becomes a loop over parts"},
                   {.name = "total-bytes-windowed-einsum-threshold",
                    .type = OptionInfo::Type::kInt,
                    .default_text = "-1",
                    .doc = "bytes of both operands from which a dot becomes such a loop, instead; -1: not used",
                    .min = -1},
                   {.name = "max-windowed-einsum-iteration",
                    .type = OptionInfo::Type::kInt,
                    .default_text = "32",
                    .doc = "most iterations of such a loop"},
                   {.name = "skip-checking-windowed-einsum-users",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "false",
                    .doc = "such a loop also for an operand that another dot uses"},
                   {.name = "disable-ag-rewrite-for-multiple-consumers",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "false",
                    .doc = "of several dots that use an operand only the first becomes such a loop"}},
       .tolerance = 1e-5,
       .create = MakePass<SpmdPartitioner>});
  registry->Add(
      {.name = "constant-splitter",
       .category = "sharding",
       .summary = "give each user its own constant",
       .doc = "Constants, iotas and broadcasts of scalar constants that have no sharding are cloned for each further "
              "user, so that they can have different shardings, and a constant shared by manual and "
              "automatic code does not carry shardings from one to the other.",
       .example = kSplitterExample,
       .create = MakePass<ConstantSplitter>});
}

}  // namespace hlokit
