// SPDX-License-Identifier: Apache-2.0
// Merged metadata in HLO text. XLA's text has one metadata per instruction; further sources are in frontend attributes,
// which XLA parses and keeps without interpreting them:
//
//   HloModule m, frontend_attributes={hlokit.metadata_sources={sources={{op_name="f/mul"}
//                                                {op_name="f/add" stack_frame_id=1}}
//                                                frames={{file="f.py" function="f" line=3 ...}}}}
//   ... add = f32[] add(a, b), frontend_attributes={hlokit.metadata_sources="0-1,7"}, metadata={op_name="f/add"}
//
// The list of an instruction has the indices of its sources beyond its own metadata. The table has its own frames,
// since readers drop stack frames that no instruction refers to.
#ifndef HLOKIT_PASSES_ANNOTATIONS_TEXT_H_
#define HLOKIT_PASSES_ANNOTATIONS_TEXT_H_

#include <string_view>

#include "ir/graph/module_fwd.h"

namespace hlokit {

inline constexpr std::string_view kMetadataSourcesKey = "hlokit.metadata_sources";
// Older name of the attribute, with `origins=` for `sources=` in its table: read, and written under the new name.
inline constexpr std::string_view kOldOriginsKey = "hlokit.origins";

// Removes the attributes and adds their sources to the metadata of instructions: the in-memory form for passes.
// Malformed attributes stay unchanged.
void ReadMetadataSources(Module& module);

// Reverses ReadMetadataSources: instructions get their main metadata, and attributes with the other sources.
// Stack-frame tables keep the referenced entries, in print order, and instructions and computations get that order too.
void WriteMetadataSources(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANNOTATIONS_TEXT_H_
