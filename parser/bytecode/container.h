// SPDX-License-Identifier: Apache-2.0
// The sections of an MLIR bytecode file, taken apart: strings, names of dialects and operations, and where the
// encodings of attributes, types and properties are. What is in those depends on the dialects.
#ifndef HLOKIT_PARSER_BYTECODE_CONTAINER_H_
#define HLOKIT_PARSER_BYTECODE_CONTAINER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "parser/bytecode/byte_cursor.h"

namespace hlokit::bytecode {

// Versions of the format at which something changed.
inline constexpr uint64_t kDialectVersions = 1;
inline constexpr uint64_t kIsolatedRegionSections = 2;
inline constexpr uint64_t kUseListOrders = 3;
inline constexpr uint64_t kElidedLocations = 4;
inline constexpr uint64_t kProperties = 5;
inline constexpr uint64_t kNewestFormat = 6;

// An attribute or a type.
struct Entry {
  std::string_view dialect;
  bool custom = false;  // encoded by the dialect; else as text
  ByteSpan data;
};

struct OperationName {
  std::string_view dialect;
  std::string_view name;
};

// Refers to the bytes of the file.
struct Container {
  uint64_t version = 0;
  std::string_view producer;  // "StableHLO_v1.20.0"
  std::vector<std::string_view> strings;
  std::vector<OperationName> operations;
  std::vector<Entry> attributes;
  std::vector<Entry> types;
  std::vector<ByteSpan> properties;
  ByteSpan ir;
};

// Returns true if `bytes` begin as a bytecode file does, even if they are cut off soon.
bool IsBytecode(std::string_view bytes);

// Errors name the place in the file.
absl::StatusOr<Container> ReadContainer(std::string_view file);

// Reads the header of a section and returns its contents; `kind` becomes its number.
ByteSpan ReadSection(ByteCursor* in, int* kind);
inline constexpr int kIrSection = 4;

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_CONTAINER_H_
