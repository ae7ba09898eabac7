// SPDX-License-Identifier: Apache-2.0
// The elements of `dense<...>` attributes: a splat, nested lists, or a string of bytes in hexadecimal.
#ifndef HLOKIT_PARSER_MLIR_DENSE_PARSER_H_
#define HLOKIT_PARSER_MLIR_DENSE_PARSER_H_

#include <cstdint>
#include <string_view>

#include "parser/mlir/cursor.h"
#include "parser/mlir/node.h"
#include "parser/text/byte_limit.h"

namespace hlokit::mlir {

// Parses the text between `<` and `>`, which `in` is limited to, as elements of `type`. Reports errors and returns an
// invalid id. `limit`: the bytes of the elements are taken from it.
NodeId ParseDenseElements(Cursor in, NodeId type, ByteLimit* limit, NodeTable* nodes);

// Returns the elements of `bytes`, as in hex strings and resources: little endian, i1 in bits or bytes. An invalid id
// if their number is not that of `type`.
NodeId DenseFromBytes(std::string_view bytes, NodeId type, NodeTable* nodes);

// Converts the bits of a number of a float type to the value, or returns false if it has no HLO form.
bool FloatFromBits(std::string_view type, uint64_t bits, double* value);

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_DENSE_PARSER_H_
