// SPDX-License-Identifier: Apache-2.0
// Arguments and results of a run in files of arrays: .npy, .npz and .safetensors.
#ifndef HLOKIT_TOOLS_HLO_RUN_ARRAY_VALUES_H_
#define HLOKIT_TOOLS_HLO_RUN_ARRAY_VALUES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "interp/interface/engine.h"
#include "interp/program/executable.h"
#include "io/arrays/array_file.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "tools/cli/cli.h"

namespace hlokit::run {

// Names that the array of a leaf may have in a file, the preferred one first.
using LeafNames = std::vector<std::string>;
// Returns the names of the leaves of the entry's parameters: the parameter's, its op_name (that of a JAX tree,
// params['w'], also as params.w), and argN; with .I appended for element I of a tuple.
std::vector<LeafNames> ArgumentNames(const Module& module);
// Returns resultN for each of `count` leaves.
std::vector<LeafNames> ResultNames(size_t count);

// Reads one array for each of the shapes, which are of `table`, those of each device of the range in turn. If a name is
// in the file, arrays are found by their names, with `deviceN.` before them or for all devices; otherwise the file has
// an array for each leaf, in order, of one device or of all, which is warned of unless the names are numbered, and an
// error where the file has no order and two leaves have equal shapes. Reads no other arrays. `noun`: the word for a
// value in errors. Returns nullopt after an error, which is printed.
std::optional<std::vector<Literal>> ReadArrayValues(const std::string& path, absl::Span<const LeafNames> names,
                                                    absl::Span<const Shape> shapes, ShapeTable* table,
                                                    const interp::DeviceRange& devices, std::string_view noun,
                                                    cli::DiagnosticReporter* diagnostics);
// Reads the parts that the devices of the range have of the arrays of a whole program, those of each device in turn,
// and little more of the file.
std::optional<std::vector<Literal>> ReadArrayParts(const std::string& path, absl::Span<const LeafNames> names,
                                                   const interp::Division& division, const interp::DeviceRange& devices,
                                                   std::string_view noun, cli::DiagnosticReporter* diagnostics);
// The same from the files DIRECTORY/arg0.npy, DIRECTORY/arg1.npy, ...
std::optional<std::vector<Literal>> ReadNpyParts(const std::string& directory, const interp::Division& division,
                                                 const interp::DeviceRange& devices,
                                                 cli::DiagnosticReporter* diagnostics);
// Reads the array of a .npy file; `shape` is of `table`. Returns nullopt after an error, which is printed.
std::optional<Literal> ReadNpyFile(const std::string& path, Shape shape, ShapeTable* table,
                                   cli::DiagnosticReporter* diagnostics);

// Writes the results of each device in turn under the names of ResultNames. Returns false after an error, which is
// printed.
bool WriteArrayValues(const std::string& path, absl::Span<const Literal> results, int64_t devices,
                      cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_ARRAY_VALUES_H_
