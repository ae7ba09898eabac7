// SPDX-License-Identifier: Apache-2.0
// Annotations in the text. XLA's text has one metadata for each instruction; what else an instruction stands for goes
// into frontend attributes, which XLA reads, keeps and does not look into:
//
//   HloModule m, frontend_attributes={hlokit.metadata_sources={sources={{op_name="f/mul"} {op_name="f/add"
//   stack_frame_id=1}}
//                                                frames={{file="f.py" function="f" line=3 ...}}}}
//   ... add = f32[] add(a, b), frontend_attributes={hlokit.metadata_sources="0-1,7"}, metadata={op_name="f/add"}
//
// The list of an instruction has the indices of what it stands for beyond its metadata. Frames stand in the table,
// since readers drop stack frames that no instruction has as its own.
#ifndef HLOKIT_PASSES_ANNOTATIONS_TEXT_H_
#define HLOKIT_PASSES_ANNOTATIONS_TEXT_H_

#include <string_view>

#include "ir/graph/module.h"

namespace hlokit {

inline constexpr std::string_view kMetadataSourcesKey = "hlokit.metadata_sources";
// An older name of the attribute, whose table says `origins=` for `sources=`: read, and written under the new one.
inline constexpr std::string_view kOldOriginsKey = "hlokit.origins";

// Takes the attributes away and gives instructions the metadata they speak of: the form in which passes work. What is
// malformed stays as it is, an attribute like any other.
void ReadMetadataSources(Module& module);

// The reverse: instructions get plain metadata, and attributes with the rest. The stack-frame tables keep what is then
// referred to, in the order in which the printed text does, and instructions and computations are put in that order
// too.
void WriteMetadataSources(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANNOTATIONS_TEXT_H_
