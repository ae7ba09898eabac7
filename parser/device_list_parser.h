// What the grammars of shardings and replica groups share: lists of numbers, iota orders, meshes and their axes.
#ifndef HLOKIT_PARSER_DEVICE_LIST_PARSER_H_
#define HLOKIT_PARSER_DEVICE_LIST_PARSER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/context.h"
#include "ir/mesh.h"
#include "ir/tile_assignment.h"
#include "parser/reader.h"

namespace hlokit {

// `[1,2]`: at least one number between the two characters.
bool ParseNumbers(Reader& in, char open, char close, std::string_view what, std::vector<int64_t>* values);

// `[2,8]T(1,0)` or `[16]`. Checked, canonical.
bool ParseIotaOrder(Reader& in, DiagnosticKind kind, IotaOrder* order);

// True at `mesh[` and `maximal_mesh[`.
bool AtMesh(Reader& in);
// `mesh['x'=2,'y'=4], device_ids=(0,2,1,...)`, `... device_ids=([4,2]T(1,0))`, `maximal_mesh[device_id=3]`. Names may
// stand without quotes. Not checked: see CheckMesh.
bool ParseMesh(Reader& in, Context* context, DiagnosticKind kind, Mesh* mesh);

// `'x'`, `'x':(1)2`, or the number of an axis instead of its name.
bool ParseAxis(Reader& in, const Context& context, DiagnosticKind kind, const Mesh& mesh, AxisRef* axis);
// `{'x', 'y':(1)2}`
bool ParseAxes(Reader& in, const Context& context, DiagnosticKind kind, const Mesh& mesh, std::vector<AxisRef>* axes);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_DEVICE_LIST_PARSER_H_
