// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/call_graph.h"

#include "ir/graph/call_walk.h"
#include "ir/graph/potential_callers.h"

namespace hlokit {
namespace {

CallContext KindOf(Opcode opcode) {
  if (opcode == Opcode::kFusion) return CallContext::kFused;
  if (RunsCallees(opcode)) return CallContext::kControlFlow;
  return CallContext::kEmbedded;
}

}  // namespace

CallGraph::CallGraph(const Module& module)
    : site_begin_(module.computation_id_bound(), 0),
      site_end_(module.computation_id_bound(), 0),
      caller_begin_(module.computation_id_bound() + 2, 0),  // prefix sums: counts are stored two positions later
      sequential_(module.computation_id_bound(), 0),
      live_(module.computation_id_bound(), 0) {
  const std::vector<Computation> computations = module.computations();
  const PotentialCallers callers(module);
  sites_.reserve(callers.all().size());
  for (Computation c : computations) {
    site_begin_[c.id().value] = static_cast<uint32_t>(sites_.size());
    for (InstructionId caller : callers.Of(c.id())) {
      const CallContext context = KindOf(module.record(caller).opcode);
      module.instruction(caller).ForEachCallee([&](Computation callee) {
        if (callee.id().value >= module.computation_id_bound() || callee.record().erased) return;
        sites_.push_back({caller, callee.id(), context});
        ++caller_begin_[callee.id().value + 2];
      });
    }
    site_end_[c.id().value] = static_cast<uint32_t>(sites_.size());
  }
  for (size_t k = 2; k < caller_begin_.size(); ++k) caller_begin_[k] += caller_begin_[k - 1];
  callers_.resize(sites_.size());
  for (const CallSite& site : sites_) callers_[caller_begin_[site.callee.value + 1]++] = site;
  caller_begin_.pop_back();

  CallWalk walk(module.computation_id_bound(), [this](ComputationId id, uint32_t k) {
    const uint32_t site = site_begin_[id.value] + k;
    return site < site_end_[id.value] ? sites_[site].callee : ComputationId();
  });
  order_.reserve(computations.size());
  for (Computation c : computations) {
    walk.From(c.id(), [this](ComputationId id) { order_.push_back(id); });
  }

  // Callers before callees, so that each call site is visited once.
  if (!module.entry().valid()) return;
  live_[module.entry().id().value] = 1;
  for (ComputationId id : order_) {
    bool sequential = true;
    for (const CallSite& site : caller_callsites(module.computation(id)))
      sequential &= site.context == CallContext::kControlFlow;
    sequential_[id.value] = sequential;
  }
  for (size_t k = order_.size(); k-- > 0;) {
    const ComputationId id = order_[k];
    for (uint32_t s = site_begin_[id.value]; s < site_end_[id.value]; ++s) {
      const uint32_t callee = sites_[s].callee.value;
      live_[callee] |= live_[id.value];
      sequential_[callee] &= sequential_[id.value];
    }
  }
}

absl::Span<const CallSite> CallGraph::callsites(Computation caller) const {
  const uint32_t begin = site_begin_[caller.id().value];
  return absl::MakeConstSpan(sites_).subspan(begin, site_end_[caller.id().value] - begin);
}

}  // namespace hlokit
