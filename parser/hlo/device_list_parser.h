// SPDX-License-Identifier: Apache-2.0
// Grammar shared by shardings and replica groups: lists of numbers, iota tile assignments, meshes and their axes.
#ifndef HLOKIT_PARSER_HLO_DEVICE_LIST_PARSER_H_
#define HLOKIT_PARSER_HLO_DEVICE_LIST_PARSER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/context.h"
#include "ir/sharding/mesh.h"
#include "ir/sharding/tile_assignment.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

// Parses `[1,2]`: at least one number between `open` and `close`.
bool ParseNumbers(TextCursor& in, char open, char close, std::string_view what, std::vector<int64_t>* values);

// Parses `[2,8]T(1,0)` or `[16]`. Checked, canonical.
bool ParseIotaTileAssignment(TextCursor& in, DiagnosticKind kind, IotaTileAssignment* order);

// Returns true at `mesh[` and `maximal_mesh[`.
bool AtMesh(TextCursor& in);
// Parses `mesh['x'=2,'y'=4], device_ids=(0,2,1,...)`, `... device_ids=([4,2]T(1,0))`, `maximal_mesh[device_id=3]`.
// Quotes around names are optional. Not checked: see CheckMesh.
bool ParseMesh(TextCursor& in, Context* context, DiagnosticKind kind, Mesh* mesh);

// Parses references to the axes of one mesh, by name or number.
class AxisReader {
 public:
  AxisReader(TextCursor& in, const Context& context, DiagnosticKind kind, const Mesh& mesh);

  // Parses `'x'`, `'x':(1)2`, `0`.
  bool One(AxisRef* axis);
  // Parses `{'x', 'y':(1)2}`.
  bool Set(std::vector<AxisRef>* axes);

 private:
  bool Name(int64_t* axis);

  TextCursor& in_;
  const Context& context_;
  const DiagnosticKind kind_;
  const Mesh& mesh_;
  absl::flat_hash_map<uint32_t, int64_t> by_name_;  // StringId to axis
  std::string scratch_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_DEVICE_LIST_PARSER_H_
