// SPDX-License-Identifier: Apache-2.0
// Digests of the contents that ids stand for: strings, shapes, literals, lists, metadata. They depend on the contents
// alone, so those of two modules with different contexts can be compared. Each content is hashed once.
#ifndef HLOKIT_IR_DIGEST_CONTENT_DIGEST_H_
#define HLOKIT_IR_DIGEST_CONTENT_DIGEST_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/core/ids.h"
#include "ir/digest/digest.h"
#include "ir/graph/module.h"
#include "ir/ops/attribute.h"
#include "ir/ops/opcode.h"
#include "ir/text/printer.h"

namespace hlokit {

// Words that are hashed together. Cleared and filled anew for each digest, so it allocates only while it grows.
class DigestWords {
 public:
  void Clear() { words_.clear(); }
  void Add(uint64_t word) { words_.push_back(word); }
  void Add(const Digest& digest) {
    words_.push_back(digest.high);
    words_.push_back(digest.low);
  }
  // With the length first, so that lists that follow each other cannot be confused.
  void AddList(absl::Span<const int64_t> list) {
    words_.push_back(list.size());
    words_.insert(words_.end(), list.begin(), list.end());
  }
  Digest Finish() const { return DigestOf(words_.data(), words_.size() * sizeof(uint64_t)); }

 private:
  std::vector<uint64_t> words_;
};

// Numbers that stand for names of the tables. Made from the spelling, so digests survive new rows.
uint64_t DigestWord(Opcode opcode);
uint64_t DigestWord(Attr attr);
uint64_t DigestWord(EnumType type, uint32_t value);
uint64_t DigestWord(ElementType type);

class ContentDigests {
 public:
  // What is printed to be hashed is printed with `options`.
  ContentDigests(const Module& module, const PrintOptions& options);

  // Element type, dimensions and which of them are dynamic; the layouts if asked.
  Digest OfShape(Shape shape, bool with_layout);
  // Shape and bytes. NaN payloads and the sign of zero count; the layout does not. Of an elided literal, the shape and
  // that it is elided.
  Digest OfLiteral(LiteralId id);
  Digest OfString(StringId id) const { return DigestOf(context_.str(id)); }
  // A stack frame counts by what it and those above it name, not by its number.
  Digest OfMetadata(MetadataId id);
  // Of a list-valued attribute whose encoding holds ids: the value as it is printed.
  Digest OfPrinted(AttrValue value);

 private:
  Digest& ShapeSlot(Shape shape, bool with_layout) {
    return shapes_[size_t{2} * shape.id().value + (with_layout ? 1 : 0)];
  }
  void FillShape(Shape shape, bool with_layout);
  void FillLiteral(LiteralId id);
  Digest OfStackFrame(int64_t id);

  const Module& module_;
  const Context& context_;
  const PrintOptions options_;
  // Indexed by id; zero: not known yet. Shapes have two, without and with layout.
  std::vector<Digest> shapes_;
  std::vector<Digest> literals_;
  absl::flat_hash_map<uint64_t, Digest> printed_;  // by attribute and list
  absl::flat_hash_map<uint32_t, Digest> metadata_;
  std::vector<Digest> frames_;  // by number from 1; zero: not known yet
  DigestWords words_;
  std::vector<uint32_t> stack_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_DIGEST_CONTENT_DIGEST_H_
