// SPDX-License-Identifier: Apache-2.0
#include "ir/digest/content_digest.h"

#include <string>
#include <utility>

#include "ir/core/text_writer.h"
#include "ir/text/metadata_text.h"

namespace hlokit {
namespace {

// Kinds of content, so that different kinds never start with the same word.
enum ContentTag : uint64_t { kArrayTag = 1, kLeafTag, kTupleTag, kLayoutTag, kValueTag, kElidedTag, kTupleValueTag };

bool IsSet(const Digest& digest) { return digest != Digest{}; }

// Hashes of the spellings, computed once. Tables are built on demand.
template <size_t n, typename Text>
std::vector<uint64_t> WordTable(Text text) {
  std::vector<uint64_t> words(n);
  for (size_t i = 0; i < n; ++i) words[i] = DigestOf(text(i)).low;
  return words;
}

}  // namespace

uint64_t DigestWord(Opcode opcode) {
  static const std::vector<uint64_t> words =
      WordTable<kOpcodeCount + 1>([](size_t i) { return i == kOpcodeCount ? "?" : ToString(static_cast<Opcode>(i)); });
  return words[static_cast<size_t>(opcode)];
}

uint64_t DigestWord(Attr attr) {
  // Names of rows, since two rows may share a spelling.
  static constexpr std::string_view kNames[] = {
#define ATTRIBUTE(name, ...) #name,
#include "ir/ops/attributes.def"
  };
  static const std::vector<uint64_t> words = WordTable<kAttrCount>([](size_t i) { return kNames[i]; });
  return words[static_cast<size_t>(attr)];
}

uint64_t DigestWord(EnumType type, uint32_t value) {
  const absl::Span<const std::string_view> texts = EnumTexts(type);
  return value < texts.size() ? DigestOf(texts[value]).low : value;
}

uint64_t DigestWord(ElementType type) {
  static const std::vector<uint64_t> words =
      WordTable<kElementTypeCount>([](size_t i) { return kElementTypeInfo[i].text; });
  return words[static_cast<size_t>(type)];
}

ContentDigests::ContentDigests(const Module& module, const PrintOptions& options)
    : module_(module),
      context_(module.context()),
      options_(options),
      shapes_(2 * context_.shapes.size()),
      literals_(context_.literals.size()) {}

Digest ContentDigests::OfShape(Shape shape, bool with_layout) {
  if (!with_layout) shape = shape.WithoutLayout();
  const Digest& digest = ShapeSlot(shape, with_layout);
  if (!IsSet(digest)) FillShape(shape, with_layout);
  return digest;
}

void ContentDigests::FillShape(Shape shape, bool with_layout) {
  // Shapes to hash, each above its dependents. A shape pushed twice is skipped the second time.
  stack_.assign(1, shape.id().value);
  while (!stack_.empty()) {
    const Shape s = context_.shape(ShapeId(stack_.back()));
    if (IsSet(ShapeSlot(s, with_layout))) {
      stack_.pop_back();
      continue;
    }
    const size_t waiting = stack_.size();
    for (Shape element : s.elements()) {
      if (!IsSet(ShapeSlot(element, with_layout))) stack_.push_back(element.id().value);
    }
    if (stack_.size() != waiting) continue;
    stack_.pop_back();

    words_.Clear();
    words_.Add(s.IsArray() ? kArrayTag : s.tuple_size() > 0 || s.IsTuple() ? kTupleTag : kLeafTag);
    words_.Add(DigestWord(s.element_type()));
    if (s.IsArray()) {
      words_.AddList(s.dims());
      for (int64_t i = 0; i < s.rank() && s.record()->dynamic != nullptr; ++i) words_.Add(s.is_dynamic(i));
      if (with_layout && s.has_layout()) {
        words_.Add(kLayoutTag);
        words_.AddList(s.layout()->minor_to_major);
        // Tiles, memory space and other extras are rare, and their text has all of them.
        if (s.layout()->extras != nullptr) words_.Add(DigestOf(ToString(s)));
      }
    } else {
      words_.Add(static_cast<uint64_t>(s.tuple_size()));
      for (Shape element : s.elements()) words_.Add(ShapeSlot(element, with_layout));
    }
    ShapeSlot(s, with_layout) = words_.Finish();
  }
}

Digest ContentDigests::OfLiteral(LiteralId id) {
  const Digest& digest = literals_[id.value];
  if (!IsSet(digest)) FillLiteral(id);
  return digest;
}

void ContentDigests::FillLiteral(LiteralId id) {
  // As FillShape; shapes are hashed before, since they use the same stack.
  std::vector<uint32_t> stack(1, id.value);
  while (!stack.empty()) {
    const uint32_t at = stack.back();
    const LiteralRecord& literal = context_.literals[LiteralId(at)];
    if (IsSet(literals_[at])) {
      stack.pop_back();
      continue;
    }
    const bool is_tuple = literal.shape.IsTuple() && !literal.elided;
    const int64_t elements = is_tuple ? literal.shape.tuple_size() : 0;
    const size_t waiting = stack.size();
    for (int64_t i = 0; i < elements; ++i) {
      if (!IsSet(literals_[literal.elements[i].value])) stack.push_back(literal.elements[i].value);
    }
    if (stack.size() != waiting) continue;
    stack.pop_back();

    const Digest shape = OfShape(literal.shape, false);
    words_.Clear();
    words_.Add(literal.elided ? kElidedTag : is_tuple ? kTupleValueTag : kValueTag);
    words_.Add(shape);
    for (int64_t i = 0; i < elements; ++i) words_.Add(literals_[literal.elements[i].value]);
    if (!literal.elided && !is_tuple) words_.Add(DigestOf(literal.data, literal.size_bytes));
    literals_[at] = words_.Finish();
  }
}

Digest ContentDigests::OfMetadata(MetadataId id) {
  const auto [found, is_new] = metadata_.try_emplace(id.value);
  if (is_new) {
    std::string text;
    int64_t frame = 0;
    {
      TextWriter out(&text);
      Metadata metadata = context_.metadata[id];
      frame = std::exchange(metadata.stack_frame_id, 0);
      PrintMetadataFields(out, context_, metadata);
    }
    const Digest frame_digest = OfStackFrame(frame);
    words_.Clear();
    words_.Add(DigestOf(text));
    words_.Add(frame_digest);
    found->second = words_.Finish();
  }
  return found->second;
}

Digest ContentDigests::OfStackFrame(int64_t id) {
  const StackFrames& table = module_.header().stack_frames;
  frames_.resize(table.stack_frames.size() + 1);
  const auto in_table = [&](int64_t i) { return i >= 1 && i < static_cast<int64_t>(frames_.size()); };
  if (!in_table(id)) return Digest();
  // New parent frames. A chain longer than the table is cyclic and is cut.
  std::vector<int64_t> chain;
  const auto above = [&](int64_t i) {
    return int64_t{table.stack_frames[static_cast<size_t>(i - 1)].parent_frame_id} - 1;
  };
  for (int64_t i = id; in_table(i) && frames_[static_cast<size_t>(i)] == Digest() && chain.size() < frames_.size();
       i = above(i)) {
    chain.push_back(i);
  }
  const auto name = [&](const std::vector<StringId>& names, int64_t i) {
    return i >= 1 && i <= static_cast<int64_t>(names.size()) ? OfString(names[static_cast<size_t>(i - 1)]) : Digest();
  };
  for (size_t k = chain.size(); k-- > 0;) {
    const int64_t parent = above(chain[k]);
    const int64_t location = table.stack_frames[static_cast<size_t>(chain[k] - 1)].file_location_id;
    words_.Clear();
    words_.Add(in_table(parent) ? frames_[static_cast<size_t>(parent)] : Digest());
    if (location >= 1 && location <= static_cast<int64_t>(table.file_locations.size())) {
      const FileLocation& l = table.file_locations[static_cast<size_t>(location - 1)];
      words_.Add(name(table.file_names, l.file_name_id));
      words_.Add(name(table.function_names, l.function_name_id));
      words_.AddList({l.line, l.end_line, l.column, l.end_column});
    }
    frames_[static_cast<size_t>(chain[k])] = words_.Finish();
  }
  return frames_[static_cast<size_t>(id)];
}

Digest ContentDigests::OfPrinted(AttrValue value) {
  const uint64_t key = uint64_t{static_cast<uint8_t>(value.attr)} << 32 | value.payload;
  const auto [found, is_new] = printed_.try_emplace(key);
  if (is_new) {
    std::string text;
    {
      TextWriter out(&text);
      PrintAttrValue(out, module_, value, options_);
    }
    found->second = DigestOf(text);
  }
  return found->second;
}

}  // namespace hlokit
