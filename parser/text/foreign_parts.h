// SPDX-License-Identifier: Apache-2.0
// What the file of a module says that has no place in the IR, kept for writing a file of that format again.
#ifndef HLOKIT_PARSER_TEXT_FOREIGN_PARTS_H_
#define HLOKIT_PARSER_TEXT_FOREIGN_PARTS_H_

namespace hlokit {

// A format derives its own class, and finds by dynamic_cast whether a module came from its files. The parts refer to
// computations and instructions by id, so they stay valid while the module is edited; a writer takes what still holds.
class ForeignParts {
 public:
  virtual ~ForeignParts() = default;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_FOREIGN_PARTS_H_
