// SPDX-License-Identifier: Apache-2.0
// Metadata of instructions, maintained through every transformation.
//
// The metadata of an instruction (op_name path, source line, stack frame) covers all the source instructions that it is
// attributed to. In memory it is one MetadataId: a record with the fields of the main source, which are those that XLA
// would keep, and the records it was merged from (ir/graph/metadata.h). Passes replace, merge, clone, fuse and create
// instructions through the functions below; copying a MetadataId carries everything.
//
//   replaced    Replace(module, old, by): `by` carries the metadata of `old` too
//   merged      MergeMetadata(module, from, to), for each erased instruction
//   created     AnnotationScope scope(&builder, {source, …}), or SetMetadataFrom
//   cloned      copy the MetadataId
//   fused       SetMetadataFrom(module, fusion, all the fused instructions), the one with the op_name first
#ifndef HLOKIT_PASSES_ANNOTATIONS_ANNOTATIONS_H_
#define HLOKIT_PASSES_ANNOTATIONS_ANNOTATIONS_H_

#include <vector>

#include "absl/types/span.h"
#include "ir/builder/builder.h"
#include "ir/graph/module.h"

namespace hlokit {

// Merges the metadata of `from` into `to`. `to` keeps its op_name unless it is empty.
inline void MergeMetadata(Module& module, InstructionId from, InstructionId to) {
  const MetadataId main = module.record(to).metadata;
  module.SetMetadata(to, module.context().metadata.Merge(main, module.record(from).metadata));
}

// Merges the metadata of these computations and their callees into `to`: for reducers, conditions and bodies that are
// erased with their caller.
void MergeMetadataOfComputations(Module& module, std::vector<Computation> from, InstructionId to);

// Returns the merged metadata of `sources`. The op_name is that of the first that has metadata.
MetadataId MergedMetadata(const Module& module, absl::Span<const InstructionId> sources);

// Replaces the metadata of `made` by that of `sources`.
void SetMetadataFrom(Module& module, InstructionId made, absl::Span<const InstructionId> sources);

// Replaces `old` by `by`: moves users, root and control successors, merges the metadata, and erases `old` unless it is
// a parameter. Requires: `by` is in the same computation and has a compatible shape. Control predecessors of `old`
// become those of `by`, and its sharding moves to a `by` without one.
void Replace(Module& module, InstructionId old, InstructionId by);

// Gives instructions that the builder adds during its lifetime the metadata of `sources`.
class AnnotationScope {
 public:
  AnnotationScope(Builder* builder, absl::Span<const InstructionId> sources)
      : scope_(builder, MergedMetadata(builder->module(), sources)) {}

 private:
  MetadataScope scope_;
};

// Returns all sources of an instruction, each with its own fields, the main one first; empty if it has no metadata.
std::vector<MetadataId> MetadataSources(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANNOTATIONS_ANNOTATIONS_H_
