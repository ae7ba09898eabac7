// SPDX-License-Identifier: Apache-2.0
// Arguments and results of a run in files of arrays: .npy, .npz and .safetensors.
#ifndef HLOKIT_CHECK_ARGUMENTS_ARRAY_VALUES_H_
#define HLOKIT_CHECK_ARGUMENTS_ARRAY_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "interp/interface/engine.h"
#include "interp/program/executable.h"
#include "io/arrays/array_file.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// What is wrong with a file, or with an array in it.
struct FileIssue {
  enum class Kind : uint8_t {
    kWarning,
    kUnreadable,  // it cannot be opened
    kRejected,
  };
  Kind kind = Kind::kRejected;
  std::string where, message;
};

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
// value in errors. Returns nullopt after an error, which is the last issue.
std::optional<std::vector<Literal>> ReadArrayValues(const std::string& path, absl::Span<const LeafNames> names,
                                                    absl::Span<const Shape> shapes, ShapeTable* table,
                                                    const DeviceRange& devices, std::string_view noun,
                                                    std::vector<FileIssue>* issues);
// Reads the parts that the devices of the range have of the arrays of a whole program, those of each device in turn,
// and little more of the file.
std::optional<std::vector<Literal>> ReadArrayParts(const std::string& path, absl::Span<const LeafNames> names,
                                                   const Division& division, const DeviceRange& devices,
                                                   std::string_view noun, std::vector<FileIssue>* issues);
// The same from the files DIRECTORY/arg0.npy, DIRECTORY/arg1.npy, ...
std::optional<std::vector<Literal>> ReadNpyParts(const std::string& directory, const Division& division,
                                                 const DeviceRange& devices, std::vector<FileIssue>* issues);
// Reads whole arrays from these files, of device N from DIRECTORY/deviceN if there is one.
std::optional<std::vector<Literal>> ReadNpyValues(const std::string& directory, absl::Span<const Shape> shapes,
                                                  ShapeTable* table, const DeviceRange& devices,
                                                  std::vector<FileIssue>* issues);

// Writes the results of each device in turn under the names of ResultNames.
absl::Status WriteArrayValues(const std::string& path, absl::Span<const Literal> results, int64_t devices);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ARGUMENTS_ARRAY_VALUES_H_
