// SPDX-License-Identifier: Apache-2.0
// Digests of the contents that ids refer to: strings, shapes, literals, lists, metadata. They depend only on the
// contents, so digests of modules with different contexts are comparable. Each content is hashed once.
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

// A list of words to hash. Reused for each digest, so it allocates only while it grows.
class DigestWords {
 public:
  void Clear() { words_.clear(); }
  void Add(uint64_t word) { words_.push_back(word); }
  void Add(const Digest& digest) {
    words_.push_back(digest.high);
    words_.push_back(digest.low);
  }
  // Adds the length first, so that consecutive lists are unambiguous.
  void AddList(absl::Span<const int64_t> list) {
    words_.push_back(list.size());
    words_.insert(words_.end(), list.begin(), list.end());
  }
  Digest Finish() const { return DigestOf(words_.data(), words_.size() * sizeof(uint64_t)); }

 private:
  std::vector<uint64_t> words_;
};

// Return the hash of a table entry's spelling, so that digests survive new rows.
uint64_t DigestWord(Opcode opcode);
uint64_t DigestWord(Attr attr);
uint64_t DigestWord(EnumType type, uint32_t value);
uint64_t DigestWord(ElementType type);

class ContentDigests {
 public:
  // Attributes that are hashed in printed form are printed with `options`.
  ContentDigests(const Module& module, const PrintOptions& options);

  // Digests the element type, dimensions and their dynamism; the layouts if `with_layout`.
  Digest OfShape(Shape shape, bool with_layout);
  // Digests shape and bytes. NaN payloads and the sign of zero count; the layout does not. For an elided literal, the
  // shape and the elision.
  Digest OfLiteral(LiteralId id);
  Digest OfString(StringId id) const { return DigestOf(context_.str(id)); }
  // A stack frame counts by its contents and those of its parents, not by its number.
  Digest OfMetadata(MetadataId id);
  // Digests the printed form of a list-valued attribute whose encoding holds ids.
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
  // By id; zero: not computed yet. Shapes have two, without and with layout.
  std::vector<Digest> shapes_;
  std::vector<Digest> literals_;
  absl::flat_hash_map<uint64_t, Digest> printed_;  // by attribute and list
  absl::flat_hash_map<uint32_t, Digest> metadata_;
  std::vector<Digest> frames_;  // by number from 1; zero: not computed yet
  DigestWords words_;
  std::vector<uint32_t> stack_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_DIGEST_CONTENT_DIGEST_H_
