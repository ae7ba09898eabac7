// SPDX-License-Identifier: Apache-2.0
#include "passes/core/registry.h"

#include <algorithm>

#include "passes/core/register_passes.h"

namespace hlokit {

// The rows of passes (pass_row.h).
#define PASS(identifier) PassInfo identifier##Row();
#include "passes/core/pass_list.inc"
#undef PASS

namespace {

// Names of passes or pipelines of this kind in other compilers: XLA's, and LLVM's if XLA has none.
struct PassAlias {
  std::string_view alias;
  std::string_view name;
};

constexpr PassAlias kAliases[] = {
    {"algebraic-simplifier", "algsimp"},
    {"hlo-cse", "cse"},
    {"hlo-dce", "dce"},
    {"hlo-constant-folding", "constant-folding"},
    {"hlo-rematerialization", "rematerialization"},
    {"all-reduce-simp", "all-reduce-simplifier"},
    {"all-gather-bcast-reorder", "all-gather-broadcast-reorder"},
    {"simplify-while-loops", "while-loop-simplifier"},
    {"simplify-conditional", "conditional-simplifier"},
    {"simplify-sorts", "sort-simplifier"},
    {"float-normalization-bf16", "bf16-normalization"},
    {"float-normalization-f8e3m4", "float-normalization"},
    {"float-normalization-f8e4m3", "float-normalization"},
    {"float-normalization-f8e4m3fn", "float-normalization"},
    {"float-normalization-f8e4m3fnuz", "float-normalization"},
    {"float-normalization-f8e4m3b11fnuz", "float-normalization"},
    {"float-normalization-f8e5m2", "float-normalization"},
    {"float-normalization-f8e5m2fnuz", "float-normalization"},
    {"call-inliner", "inline"},
    {"map-inline", "map-inliner"},
    {"defuser", "defuse"},
    {"hlo-memory-scheduler", "schedule"},
    {"deadargelim", "dead-parameter-removal"},
    {"metadata-propagation", "propagate-annotations"},
    {"fusion-pipeline", "fuse"},
    {"optimize", "default"},
    {"tpu-prepare", "tpu-simplify"},
    {"tpu-compile", "tpu"},
};

// Returns the name of which `name` is an alias, or else `name` itself.
std::string_view ResolveAlias(std::string_view name) {
  for (const PassAlias& alias : kAliases) {
    if (SamePassName(alias.alias, name)) return alias.name;
  }
  return name;
}

}  // namespace

bool SamePassName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x == '_' ? '-' : x) == (y == '_' ? '-' : y); });
}

const PassRegistry& PassRegistry::Get() {
  static const PassRegistry* const registry = [] {
    auto* made = new PassRegistry();
    RegisterPasses(made);
    RegisterNamedPipelines(made);
    return made;
  }();
  return *registry;
}

void RegisterPasses(PassRegistry* registry) {
#define PASS(identifier) registry->Add(identifier##Row());
#include "passes/core/pass_list.inc"
#undef PASS
}

void PassRegistry::Add(PassInfo info) {
  infos_.push_back(std::move(info));
  const PassInfo* added = &infos_.back();
  const auto place = std::upper_bound(passes_.begin(), passes_.end(), added,
                                      [](const PassInfo* a, const PassInfo* b) { return a->name < b->name; });
  passes_.insert(place, added);
}

void PassRegistry::AddPipeline(NamedPipeline pipeline) { pipelines_.push_back(pipeline); }

std::vector<std::string_view> PassRegistry::AliasesOf(std::string_view name) {
  std::vector<std::string_view> aliases;
  for (const PassAlias& alias : kAliases) {
    if (alias.name == name) aliases.push_back(alias.alias);
  }
  return aliases;
}

const PassInfo* PassRegistry::Find(std::string_view name) const {
  name = ResolveAlias(name);
  for (const PassInfo* info : passes_) {
    if (SamePassName(info->name, name)) return info;
  }
  return nullptr;
}

const NamedPipeline* PassRegistry::FindPipeline(std::string_view name) const {
  name = ResolveAlias(name);
  for (const NamedPipeline& pipeline : pipelines_) {
    if (SamePassName(pipeline.name, name)) return &pipeline;
  }
  return nullptr;
}

std::unique_ptr<Pass> PassRegistry::Make(const PassInfo& info, PassOptions options) {
  std::unique_ptr<Pass> pass = info.create();
  pass->set_options(std::move(options));
  return pass;
}

}  // namespace hlokit
