// SPDX-License-Identifier: Apache-2.0
// The pass sharding-propagation (propagation.h).
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "passes/core/pass_row.h"
#include "passes/sharding/propagation.h"

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

}  // namespace

HLOKIT_PASS(ShardingPropagation) {
  return {
      .name = "sharding-propagation",
      .category = "sharding",
      .summary = "spread shardings along the dimensions of operations",
      .doc =
          "Shardings of the text reach the instructions without one, forward and backward along the sharding rules "
          "of operations, by XLA's policy: in four levels, elementwise operations first, broadcasts last, each "
          "until nothing changes; partial tilings merge from the second level on. Custom-calls Sharding become "
          "copies, so that a value can have one sharding before and another after. Loops, calls and conditionals "
          "share theirs with their computations; shard_as groups agree. Nothing becomes coarser, and the result "
          "does not depend on the order of the text. `hlo-inspect shardings --why` explains it.",
      .example = R"(HloModule layer

ENTRY main {
  x = f32[64,256]{1,0} parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  w = f32[256,512]{1,0} parameter(1), sharding={devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}
  y = f32[64,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[64,512]{1,0} tanh(y)
}
)",
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
      .create = MakePass<ShardingPropagation>};
}

}  // namespace hlokit
