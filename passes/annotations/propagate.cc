// SPDX-License-Identifier: Apache-2.0
#include "passes/annotations/propagate.h"

#include <vector>

#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"

namespace hlokit {
namespace {

// Returns metadata with only the fields of the main source: a neighbor gets the name, not all sources.
MetadataId NameOf(Module& module, InstructionId id) {
  MetadataPool& pool = module.context().metadata;
  return pool.Intern(pool[module.record(id).metadata]);
}

class AnnotationPropagation {
 public:
  explicit AnnotationPropagation(Module& module) : module_(module) {}

  int64_t Run(Computation c) {
    filled_ = 0;
    // Users take precedence: first backward from users, last to first, then forward from operands, first to last.
    for (InstructionId id = c.record().last; id.valid(); id = module_.record(id).previous) {
      if (Named(id)) continue;
      for (const auto& use : module_.instruction(id).uses()) {
        if (Give(use.user.id(), id)) break;
      }
    }
    for (InstructionId id = c.record().first; id.valid(); id = module_.record(id).next) {
      if (Named(id)) continue;
      for (Instruction operand : module_.instruction(id).operands()) {
        if (Give(operand.id(), id)) break;
      }
    }
    // New metadata can reach other operands and users of its neighbors in turn.
    std::vector<InstructionId> pending;
    for (InstructionId id = c.record().last; id.valid(); id = module_.record(id).previous) {
      if (Named(id)) continue;
      const Instruction i = module_.instruction(id);
      for (const auto& use : i.uses()) {
        if (Give(use.user.id(), id)) break;
      }
      for (int64_t k = 0; k < i.operand_count() && !Named(id); ++k) Give(i.operand(k).id(), id);
      if (Named(id)) pending.push_back(id);
    }
    for (size_t k = 0; k < pending.size(); ++k) {
      const Instruction named = module_.instruction(pending[k]);
      const auto pass_on = [&](InstructionId id) {
        if (!Named(id) && Give(named.id(), id)) pending.push_back(id);
      };
      for (const auto& use : named.uses()) pass_on(use.user.id());
      for (Instruction operand : named.operands()) pass_on(operand.id());
    }
    return filled_;
  }

  // Instructions without neighbors with metadata in their computation take that of a caller.
  int64_t FromCaller(Computation c, InstructionId caller) {
    filled_ = 0;
    for (Instruction i : c.instructions()) {
      if (!Named(i.id())) Give(caller, i.id());
    }
    return filled_;
  }

 private:
  bool Named(InstructionId id) const { return module_.record(id).metadata.valid(); }
  bool Give(InstructionId from, InstructionId to) {
    if (!Named(from)) return false;
    module_.SetMetadata(to, NameOf(module_, from));
    ++filled_;
    return true;
  }

  Module& module_;
  int64_t filled_ = 0;
};

}  // namespace

absl::StatusOr<bool> PropagateAnnotations::Run(Module& module) {
  AnnotationPropagation propagation(module);
  int64_t filled = 0;
  for (Computation c : module.computations()) filled += propagation.Run(c);
  // Callers first, so that names propagate through any number of calls.
  const CallGraph graph(module);
  const absl::Span<const ComputationId> order = graph.PostOrder();
  for (size_t k = order.size(); k-- > 0;) {
    const Computation c = module.computation(order[k]);
    for (const CallSite& site : graph.caller_callsites(c)) {
      filled += propagation.FromCaller(c, site.caller);
      if (module.record(site.caller).metadata.valid()) break;
    }
  }
  Count("instructions named", filled);
  return filled != 0;
}

HLOKIT_PASS(PropagateAnnotations) {
  return {.name = "propagate-annotations",
          .category = "annotations",
          .summary = "copy metadata from neighbors to instructions without any",
          .doc =
              "An instruction without metadata gets the op_name and source location of its nearest user with "
              "metadata, or else of an operand, at any distance; in computations without metadata, of the "
              "caller. Existing metadata does not change.",
          .example = R"(ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] negate(x)
  ROOT z = f32[4] abs(y), metadata={op_name="model/abs"}
})",
          .preserves = "the program: only metadata changes.",
          .create = MakePass<PropagateAnnotations>};
}

}  // namespace hlokit
