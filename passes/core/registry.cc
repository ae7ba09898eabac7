// SPDX-License-Identifier: Apache-2.0
#include "passes/core/registry.h"

#include <algorithm>

#include "passes/core/register_passes.h"

namespace hlokit {

const PassRegistry& PassRegistry::Get() {
  static const PassRegistry* const registry = [] {
    auto* made = new PassRegistry();
    RegisterAnnotationPasses(made);
    RegisterSimplifyPasses(made);
    RegisterFusionPasses(made);
    RegisterCollectivePasses(made);
    RegisterLayoutPasses(made);
    RegisterSchedulePasses(made);
    RegisterNamedPipelines(made);
    return made;
  }();
  return *registry;
}

void PassRegistry::Add(PassInfo info) {
  infos_.push_back(std::move(info));
  const PassInfo* added = &infos_.back();
  const auto place = std::upper_bound(passes_.begin(), passes_.end(), added,
                                      [](const PassInfo* a, const PassInfo* b) { return a->name < b->name; });
  passes_.insert(place, added);
}

void PassRegistry::AddPipeline(NamedPipeline pipeline) { pipelines_.push_back(pipeline); }

const PassInfo* PassRegistry::Find(std::string_view name) const {
  for (const PassInfo* info : passes_) {
    if (info->name == name) return info;
  }
  return nullptr;
}

const NamedPipeline* PassRegistry::FindPipeline(std::string_view name) const {
  for (const NamedPipeline& pipeline : pipelines_) {
    if (pipeline.name == name) return &pipeline;
  }
  return nullptr;
}

std::unique_ptr<Pass> PassRegistry::Make(const PassInfo& info, PassOptions options) {
  std::unique_ptr<Pass> pass = info.make();
  pass->set_options(std::move(options));
  return pass;
}

}  // namespace hlokit
