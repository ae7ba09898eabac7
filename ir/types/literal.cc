// SPDX-License-Identifier: Apache-2.0
#include "ir/types/literal.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "ir/types/element_memory.h"

namespace hlokit {

int64_t LiteralBytes(Shape array) {
  const int64_t count = array.element_count();
  int64_t bytes;
  if (count < 0 || __builtin_mul_overflow(count, BytesOf(array.element_type()), &bytes)) return -1;
  return bytes;
}

void FreeElements::operator()(std::byte* data) const {
  if (mapped_bytes == 0) {
    std::free(data);
  } else if (mapped_bytes != kBorrowed) {
    UnmapElements(data, mapped_bytes);
  }
}

std::unique_ptr<std::byte[], FreeElements> Literal::AllocateZeros(size_t bytes) {
  constexpr size_t kLarge = size_t{4} << 20;  // which has large pages
  constexpr size_t kKept = size_t{1} << 20;   // if freed memory is kept
  if (bytes < (ElementsAreReserved() ? kKept : kLarge)) {
    // Vectors should not lie across lines of the cache.
    constexpr size_t kLine = 64, kMany = 1024;
    const bool aligned = bytes >= kMany;
    void* const data = aligned ? std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine)
                               : std::calloc(std::max<size_t>(bytes, 1), 1);
    if (data == nullptr) throw std::bad_alloc();  // as operator new does
    if (aligned) std::memset(data, 0, bytes);
    return {static_cast<std::byte*>(data), FreeElements{}};
  }
  std::byte* const data = MapElements(bytes);
  if (data == nullptr) throw std::bad_alloc();
  return {data, FreeElements{bytes}};
}

Literal Literal::Zeros(Shape shape) {
  // Opens tuples with an explicit stack of (destination, shape).
  Literal root;
  std::vector<std::pair<Literal*, Shape>> stack = {{&root, shape}};
  while (!stack.empty()) {
    const auto [literal, s] = stack.back();
    stack.pop_back();
    literal->shape_ = s;
    if (s.IsTuple()) {
      literal->elements_.resize(static_cast<size_t>(s.tuple_size()));
      for (int64_t i = 0; i < s.tuple_size(); ++i) stack.push_back({&literal->elements_[i], s.element(i)});
    } else if (s.IsArray()) {
      literal->size_bytes_ = static_cast<size_t>(LiteralBytes(s));
      literal->data_ = AllocateZeros(literal->size_bytes_);
    }
  }
  return root;
}

Literal Literal::Tuple(Shape shape, std::vector<Literal> elements) {
  Literal l;
  l.shape_ = shape;
  l.elements_ = std::move(elements);
  return l;
}

Literal Literal::Borrowed(Shape shape, std::byte* elements) {
  Literal l;
  l.shape_ = shape;
  l.size_bytes_ = static_cast<size_t>(LiteralBytes(shape));
  l.data_ = {elements, FreeElements{FreeElements::kBorrowed}};
  return l;
}

Literal& Literal::operator=(const Literal& other) {
  if (this == &other) return *this;
  std::vector<std::pair<Literal*, const Literal*>> stack = {{this, &other}};
  while (!stack.empty()) {
    const auto [to, from] = stack.back();
    stack.pop_back();
    to->shape_ = from->shape_;
    to->elided_ = from->elided_;
    to->size_bytes_ = from->size_bytes_;
    to->data_.reset();
    if (from->data_ != nullptr) {
      to->data_ = AllocateZeros(from->size_bytes_);
      std::memcpy(to->data_.get(), from->data_.get(), from->size_bytes_);
    }
    to->elements_.clear();
    to->elements_.resize(from->elements_.size());
    for (size_t i = 0; i < from->elements_.size(); ++i) stack.push_back({&to->elements_[i], &from->elements_[i]});
  }
  return *this;
}

Literal::~Literal() {
  // Nested tuples are destroyed without recursion: grandchildren move up before their parent is destroyed.
  std::vector<Literal> pending = std::move(elements_);
  while (!pending.empty()) {
    Literal last = std::move(pending.back());
    pending.pop_back();
    for (Literal& e : last.elements_) pending.push_back(std::move(e));
    last.elements_.clear();
  }
}

LiteralId LiteralPool::Intern(const LiteralRecord& proto) {
  uint64_t hash = MixHash(proto.shape.id().value, proto.elided);
  const size_t count = proto.elements == nullptr ? 0 : static_cast<size_t>(proto.shape.tuple_size());
  if (proto.data != nullptr) hash = MixHash(hash, HashBytes(proto.data, proto.size_bytes));
  for (size_t i = 0; i < count; ++i) hash = MixHash(hash, proto.elements[i].value);
  return LiteralId(index_.FindOrInsert(
      hash,
      [&](uint32_t id) {
        const LiteralRecord& r = records_[id];
        if (r.shape != proto.shape || r.elided != proto.elided || r.size_bytes != proto.size_bytes) return false;
        for (size_t i = 0; i < count; ++i) {
          if (r.elements[i] != proto.elements[i]) return false;
        }
        return proto.size_bytes == 0 || proto.data == nullptr || std::memcmp(r.data, proto.data, proto.size_bytes) == 0;
      },
      [&] {
        LiteralRecord r = proto;
        if (proto.data != nullptr) {
          // Aligned for any element type.
          auto* copy = static_cast<std::byte*>(arena_->Allocate(proto.size_bytes, alignof(double)));
          std::memcpy(copy, proto.data, proto.size_bytes);
          r.data = copy;
        }
        if (count != 0) r.elements = arena_->CopyArray(proto.elements, count);
        records_.push_back(r);
        return static_cast<uint32_t>(records_.size() - 1);
      }));
}

LiteralId LiteralPool::AddArray(Shape shape, const std::byte* data, size_t size_bytes) {
  return Intern({shape, data, size_bytes, nullptr, false});
}

LiteralId LiteralPool::AddElided(Shape shape) { return Intern({shape, nullptr, 0, nullptr, true}); }

LiteralId LiteralPool::AddTuple(Shape shape, absl::Span<const LiteralId> elements) {
  return Intern({shape, nullptr, 0, elements.data(), false});
}

LiteralId LiteralPool::Add(const Literal& literal) {
  // Post-order over the tuple tree: elements are interned before their tuple.
  struct Frame {
    const Literal* literal;
    std::vector<LiteralId> done;
  };
  const auto leaf = [this](const Literal& l) {
    return l.elided() ? AddElided(l.shape()) : AddArray(l.shape(), l.data(), l.size_bytes());
  };
  if (!literal.shape().IsTuple() || literal.elided()) return leaf(literal);
  std::vector<Frame> stack;
  stack.push_back({&literal, {}});
  for (;;) {
    Frame& top = stack.back();
    if (top.done.size() < top.literal->elements().size()) {
      const Literal& next = top.literal->elements()[top.done.size()];
      if (next.shape().IsTuple() && !next.elided()) {
        stack.push_back({&next, {}});
      } else {
        top.done.push_back(leaf(next));
      }
      continue;
    }
    const LiteralId built = AddTuple(top.literal->shape(), top.done);
    stack.pop_back();
    if (stack.empty()) return built;
    stack.back().done.push_back(built);
  }
}

Literal LiteralPool::ToLiteral(LiteralId id) const {
  Literal root;
  std::vector<std::pair<Literal*, LiteralId>> stack = {{&root, id}};
  while (!stack.empty()) {
    const auto [to, from] = stack.back();
    stack.pop_back();
    const LiteralRecord& r = (*this)[from];
    if (r.elided) {
      *to = Literal::Tuple(r.shape, {});
      to->set_elided();
    } else if (r.elements != nullptr || r.shape.IsTuple()) {
      const auto count = static_cast<size_t>(r.shape.tuple_size());
      *to = Literal::Tuple(r.shape, std::vector<Literal>(count));
      for (size_t i = 0; i < count; ++i) stack.push_back({&to->elements()[i], r.elements[i]});
    } else {
      *to = Literal::Zeros(r.shape);
      if (r.size_bytes != 0) std::memcpy(to->data(), r.data, r.size_bytes);
    }
  }
  return root;
}

std::vector<std::byte> PackSubByte(absl::Span<const std::byte> unpacked, int bits) {
  const int per_byte = 8 / bits;
  std::vector<std::byte> packed((unpacked.size() + per_byte - 1) / per_byte, std::byte{0});
  const auto mask = static_cast<std::byte>((1 << bits) - 1);
  for (size_t i = 0; i < unpacked.size(); ++i) {
    packed[i / per_byte] |= (unpacked[i] & mask) << (bits * static_cast<int>(i % per_byte));
  }
  return packed;
}

std::vector<std::byte> UnpackSubByte(absl::Span<const std::byte> packed, int bits, int64_t count, bool sign_extend) {
  const int per_byte = 8 / bits;
  std::vector<std::byte> unpacked(static_cast<size_t>(count), std::byte{0});
  for (size_t i = 0; i < unpacked.size() && i / per_byte < packed.size(); ++i) {
    int v = (static_cast<int>(packed[i / per_byte]) >> (bits * static_cast<int>(i % per_byte))) & ((1 << bits) - 1);
    if (sign_extend && (v >> (bits - 1)) != 0) v -= 1 << bits;
    unpacked[i] = static_cast<std::byte>(v);
  }
  return unpacked;
}

}  // namespace hlokit
