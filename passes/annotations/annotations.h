// SPDX-License-Identifier: Apache-2.0
// Where instructions came from, through every transformation.
//
// The annotations of an instruction are the metadata (op_name path, source line, stack frame) of all the source
// instructions it stands for. In memory they are one MetadataId: a record with the fields of the main source, which is
// what XLA would keep, that remembers the records it was merged from (ir/graph/metadata.h). Every pass that replaces,
// merges, clones, fuses or creates instructions does so through the functions below; copying a MetadataId carries
// everything.
//
//   replaced    Replace(module, old, by): `by` stands for `old` too
//   merged      MergeMetadata(module, from, to), for each one that goes
//   created     AnnotationScope scope(&builder, {source, …}), or SetMetadataFrom
//   cloned      copy the MetadataId
//   fused       SetMetadataFrom(module, fusion, all the fused instructions), the one that gives the op_name first
#ifndef HLOKIT_PASSES_ANNOTATIONS_ANNOTATIONS_H_
#define HLOKIT_PASSES_ANNOTATIONS_ANNOTATIONS_H_

#include <vector>

#include "absl/types/span.h"
#include "ir/builder/builder.h"
#include "ir/graph/module.h"

namespace hlokit {

// `to` stands from now on for what `from` stands for too; its op_name stays, unless it had none.
inline void MergeMetadata(Module& module, InstructionId from, InstructionId to) {
  const MetadataId main = module.record(to).metadata;
  module.SetMetadata(to, module.context().metadata.Merge(main, module.record(from).metadata));
}

// `to` stands from now on for what is in these computations too, and in those they call: for reducers, conditions and
// bodies that go with their caller.
void MergeMetadataOfComputations(Module& module, std::vector<Computation> from, InstructionId to);

// The metadata of an instruction that stands for all of `sources`; the op_name is that of the first that has metadata.
MetadataId MergedMetadata(const Module& module, absl::Span<const InstructionId> sources);

// Gives `made` the annotations of `sources`, which replace its own.
void SetMetadataFrom(Module& module, InstructionId made, absl::Span<const InstructionId> sources);

// Makes `by` stand for `old`: users, root and control successors move, annotations are carried, and `old` is erased
// unless it is a parameter. `by` is of the same computation and of a compatible shape. Control predecessors of `old`
// become those of `by`, and its sharding moves to a `by` without one.
void Replace(Module& module, InstructionId old, InstructionId by);

// What a builder adds while this lives stands for `sources`.
class AnnotationScope {
 public:
  AnnotationScope(Builder* builder, absl::Span<const InstructionId> sources)
      : scope_(builder, MergedMetadata(builder->module(), sources)) {}

 private:
  MetadataScope scope_;
};

// All sources of an instruction, each with its own fields, the main one first; empty if it has no metadata.
std::vector<MetadataId> MetadataSources(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANNOTATIONS_ANNOTATIONS_H_
