// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/literal_proto.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/types/float_types.h"

namespace hlokit {
namespace {

// Copies elements between row-major order and that of a layout: calls `copy(place of the layout, row-major place)`.
template <typename Copy>
void ForEachByLayout(Shape shape, Copy copy) {
  const size_t rank = static_cast<size_t>(shape.rank());
  std::vector<int64_t> strides(rank, 1), at(rank, 0);
  for (size_t d = rank - 1; d-- > 0;) strides[d] = strides[d + 1] * shape.dim(static_cast<int64_t>(d) + 1);
  const int64_t count = shape.element_count();
  int64_t place = 0;
  for (int64_t k = 0; k < count; ++k) {
    copy(k, place);
    for (int64_t dim : shape.layout()->minor_to_major) {
      const auto d = static_cast<size_t>(dim);
      place += strides[d];
      if (++at[d] < shape.dim(dim)) break;
      place -= strides[d] * shape.dim(dim);
      at[d] = 0;
    }
  }
}

// Returns true if the elements of `shape` lie in row-major order: in its layout only dimensions of size one are moved.
bool IsRowMajor(Shape shape) {
  if (!shape.has_layout()) return true;
  int64_t previous = shape.rank();
  for (int64_t d : shape.layout()->minor_to_major) {
    if (shape.dim(d) == 1) continue;
    if (d > previous) return false;
    previous = d;
  }
  return true;
}

template <typename T>
void ToLayout(const T* row_major, Shape shape, T* out) {
  if (IsRowMajor(shape)) {
    std::copy_n(row_major, shape.element_count(), out);
  } else {
    ForEachByLayout(shape, [&](int64_t k, int64_t place) { out[k] = row_major[place]; });
  }
}

template <typename T>
void FromLayout(const T* elements, Shape shape, T* row_major) {
  if (IsRowMajor(shape)) {
    std::copy_n(elements, shape.element_count(), row_major);
  } else {
    ForEachByLayout(shape, [&](int64_t k, int64_t place) { row_major[place] = elements[k]; });
  }
}

// Calls `visit(field)` with the field of LiteralProto for a type: a RepeatedField of numbers, or bytes.
template <typename Visit>
void VisitField(ElementType type, xla::LiteralProto* out, Visit visit) {
  switch (type) {
    case ElementType::kPred:
      return visit(out->mutable_preds());
    case ElementType::kS32:
      return visit(out->mutable_s32s());
    case ElementType::kS64:
      return visit(out->mutable_s64s());
    case ElementType::kU32:
      return visit(out->mutable_u32s());
    case ElementType::kU64:
      return visit(out->mutable_u64s());
    case ElementType::kF32:
      return visit(out->mutable_f32s());
    case ElementType::kF64:
      return visit(out->mutable_f64s());
    case ElementType::kC64:
      return visit(out->mutable_c64s());
    case ElementType::kC128:
      return visit(out->mutable_c128s());
    case ElementType::kS1:
      return visit(out->mutable_s1s());
    case ElementType::kS2:
      return visit(out->mutable_s2s());
    case ElementType::kS4:
      return visit(out->mutable_s4s());
    case ElementType::kS8:
      return visit(out->mutable_s8s());
    case ElementType::kS16:
      return visit(out->mutable_s16s());
    case ElementType::kU1:
      return visit(out->mutable_u1s());
    case ElementType::kU2:
      return visit(out->mutable_u2s());
    case ElementType::kU4:
      return visit(out->mutable_u4s());
    case ElementType::kU8:
      return visit(out->mutable_u8s());
    case ElementType::kU16:
      return visit(out->mutable_u16s());
    case ElementType::kF4E2M1FN:
      return visit(out->mutable_f4e2m1fns());
    case ElementType::kF8E3M4:
      return visit(out->mutable_f8e3m4s());
    case ElementType::kF8E4M3:
      return visit(out->mutable_f8e4m3s());
    case ElementType::kF8E4M3FN:
      return visit(out->mutable_f8e4m3fns());
    case ElementType::kF8E4M3B11FNUZ:
      return visit(out->mutable_f8e4m3b11fnuzs());
    case ElementType::kF8E4M3FNUZ:
      return visit(out->mutable_f8e4m3fnuzs());
    case ElementType::kF8E5M2:
      return visit(out->mutable_f8e5m2s());
    case ElementType::kF8E5M2FNUZ:
      return visit(out->mutable_f8e5m2fnuzs());
    case ElementType::kF8E8M0FNU:
      return visit(out->mutable_f8e8m0fnus());
    case ElementType::kBF16:
      return visit(out->mutable_bf16s());
    case ElementType::kF16:
      return visit(out->mutable_f16s());
    case ElementType::kToken:
    case ElementType::kOpaque:
    case ElementType::kTuple:
    case ElementType::kBuffer:
      return;
  }
}

int64_t FieldBytes(const std::string& field) { return static_cast<int64_t>(field.size()); }
template <typename T>
int64_t FieldBytes(const google::protobuf::RepeatedField<T>& field) {
  return static_cast<int64_t>(field.size()) * static_cast<int64_t>(sizeof(T));
}
char* ResizeField(std::string* field, int64_t bytes) {
  field->resize(static_cast<size_t>(bytes));
  return field->data();
}
template <typename T>
char* ResizeField(google::protobuf::RepeatedField<T>* field, int64_t bytes) {
  field->Resize(static_cast<int>(bytes / static_cast<int64_t>(sizeof(T))), T());
  return reinterpret_cast<char*>(field->mutable_data());
}
const char* FieldData(const std::string& field) { return field.data(); }
template <typename T>
const char* FieldData(const google::protobuf::RepeatedField<T>& field) {
  return reinterpret_cast<const char*>(field.data());
}

// Fields of a message hold elements as they are in memory, except that narrow integers are not sign-extended.
absl::Status WriteElements(const std::byte* row_major, Shape shape, xla::LiteralProto* out) {
  const ElementType type = shape.element_type();
  const int64_t bytes = shape.element_count() * BytesOf(type);
  constexpr int64_t kMaxBytes = int64_t{INT32_MAX} - 64;
  if (bytes > kMaxBytes) return absl::ResourceExhaustedError("a value of 2 GiB and more does not fit into a message");
  if (bytes == 0) return absl::OkStatus();
  VisitField(type, out, [&](auto* field) {
    char* to = ResizeField(field, bytes);
    VisitType(type, [&]<typename T>(std::type_identity<T>) {
      ToLayout(reinterpret_cast<const T*>(row_major), shape, reinterpret_cast<T*>(to));
    });
    if (const int bits = BitsOf(type); bits < 8) {
      const auto mask = static_cast<char>((1 << bits) - 1);
      for (int64_t k = 0; k < bytes; ++k) to[k] = static_cast<char>(to[k] & mask);
    }
  });
  return absl::OkStatus();
}

// Canonical elements of types below a byte; preds are 0 or 1.
void NormalizeElements(ElementType type, std::byte* data, int64_t bytes) {
  const int bits = BitsOf(type);
  if (type == ElementType::kPred) {
    for (int64_t k = 0; k < bytes; ++k) data[k] = data[k] == std::byte{0} ? std::byte{0} : std::byte{1};
  } else if (bits < 8) {
    for (int64_t k = 0; k < bytes; ++k) {
      int v = static_cast<int>(data[k]) & ((1 << bits) - 1);
      if (IsSigned(type) && (v >> (bits - 1)) != 0) v -= 1 << bits;
      data[k] = static_cast<std::byte>(v);
    }
  }
}

// Reads the array at `data`, `bytes` of elements in the order of the layout of `shape`.
void ReadElements(const char* data, Shape shape, std::byte* row_major) {
  VisitType(shape.element_type(), [&]<typename T>(std::type_identity<T>) {
    const int64_t count = shape.element_count();
    if (reinterpret_cast<uintptr_t>(data) % alignof(T) == 0) {
      FromLayout(reinterpret_cast<const T*>(data), shape, reinterpret_cast<T*>(row_major));
    } else {  // strings
      const auto aligned = std::make_unique<T[]>(static_cast<size_t>(count));
      std::memcpy(reinterpret_cast<char*>(aligned.get()), data, static_cast<size_t>(count) * sizeof(T));
      FromLayout(aligned.get(), shape, reinterpret_cast<T*>(row_major));
    }
  });
  NormalizeElements(shape.element_type(), row_major, shape.element_count() * BytesOf(shape.element_type()));
}

// Returns the bytes of an array; an error if `limit` has not as many, from which they are taken.
absl::StatusOr<int64_t> TakeBytes(Shape array, ByteLimit* limit) {
  const int64_t bytes = LiteralBytes(array);
  if (bytes < 0) return absl::InvalidArgumentError("literal: the shape has no size");
  if (!limit->Take(static_cast<uint64_t>(bytes))) {
    return absl::ResourceExhaustedError(StrCat("literal: ", limit->Message()));
  }
  return bytes;
}

// Calls `array(proto, shape)` for each array and other leaf of a literal, with the shapes of its elements checked.
// Uses an explicit stack.
template <typename T>
struct LiteralFrame {
  const xla::LiteralProto* proto;
  Shape shape;
  std::vector<T> done;
};
template <typename T, typename Leaf, typename Tuple>
absl::StatusOr<T> BuildLiteral(const xla::LiteralProto& proto, Shape shape, Leaf leaf, Tuple tuple) {
  std::vector<LiteralFrame<T>> stack;
  if (!shape.IsTuple()) return leaf(proto, shape);
  stack.push_back({&proto, shape, {}});
  for (;;) {
    LiteralFrame<T>& top = stack.back();
    if (top.proto->tuple_literals_size() != top.shape.tuple_size()) {
      return absl::InvalidArgumentError(StrCat("literal: expected ", top.shape.tuple_size(),
                                               " elements of the tuple, found ", top.proto->tuple_literals_size()));
    }
    if (static_cast<int64_t>(top.done.size()) < top.shape.tuple_size()) {
      const xla::LiteralProto& next = top.proto->tuple_literals(static_cast<int>(top.done.size()));
      const Shape next_shape = top.shape.element(static_cast<int64_t>(top.done.size()));
      if (next_shape.IsTuple()) {
        stack.push_back({&next, next_shape, {}});
        continue;
      }
      absl::StatusOr<T> value = leaf(next, next_shape);
      if (!value.ok()) return value.status();
      top.done.push_back(*std::move(value));
      continue;
    }
    T value = tuple(top.shape, std::move(top.done));
    stack.pop_back();
    if (stack.empty()) return value;
    stack.back().done.push_back(std::move(value));
  }
}

// The elements of an array in a message: null if they were left out.
absl::StatusOr<const char*> ElementsOf(const xla::LiteralProto& proto, Shape shape, int64_t bytes) {
  const char* data = nullptr;
  int64_t found = 0;
  // VisitField is written for messages that change; this one does not.
  VisitField(shape.element_type(), const_cast<xla::LiteralProto*>(&proto), [&](auto* field) {
    found = FieldBytes(*field);
    data = FieldData(*field);
  });
  if (found == bytes) return found == 0 ? "" : data;
  if (found == 0) return nullptr;
  const int64_t size = BytesOf(shape.element_type());
  return absl::InvalidArgumentError(StrCat("literal: expected ", shape.element_count(), " elements for ",
                                           ToString(shape), ", found ", found / size,
                                           found % size == 0 ? "" : " and a part"));
}

absl::StatusOr<Shape> LiteralShape(const xla::LiteralProto& proto, Context* context) {
  if (!proto.has_shape()) return absl::InvalidArgumentError("literal: missing shape");
  return ReadShape(proto.shape(), context);
}

}  // namespace

absl::Status WriteLiteral(const Literal& literal, Shape shape, ShapeWriter* shapes, xla::LiteralProto* out) {
  struct Open {
    const Literal* literal;
    Shape shape;
    xla::LiteralProto* to;
  };
  std::vector<Open> open = {{&literal, shape, out}};
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    if (at.literal->elided()) return absl::InvalidArgumentError("the value is elided");
    if (absl::Status status = shapes->Write(at.shape, at.to->mutable_shape()); !status.ok()) return status;
    if (at.shape.IsArray()) {
      if (absl::Status status = WriteElements(at.literal->data(), at.shape, at.to); !status.ok()) return status;
    }
    for (size_t k = 0; k < at.literal->elements().size(); ++k) {
      open.push_back(
          {&at.literal->elements()[k], at.shape.element(static_cast<int64_t>(k)), at.to->add_tuple_literals()});
    }
  }
  return absl::OkStatus();
}

absl::Status WriteLiteral(const Context& context, LiteralId literal, Shape shape, ShapeWriter* shapes,
                          xla::LiteralProto* out) {
  struct Open {
    LiteralId literal;
    Shape shape;
    xla::LiteralProto* to;
  };
  std::vector<Open> open = {{literal, shape, out}};
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    const LiteralRecord& record = context.literals[at.literal];
    if (record.elided) return absl::InvalidArgumentError("the value is elided");
    if (absl::Status status = shapes->Write(at.shape, at.to->mutable_shape()); !status.ok()) return status;
    if (at.shape.IsArray()) {
      if (absl::Status status = WriteElements(record.data, at.shape, at.to); !status.ok()) return status;
    }
    for (int64_t k = 0; k < at.shape.tuple_size(); ++k) {
      open.push_back({record.elements[k], at.shape.element(k), at.to->add_tuple_literals()});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Literal> ReadLiteral(const xla::LiteralProto& proto, Context* context, ByteLimit* limit) {
  absl::StatusOr<Shape> shape = LiteralShape(proto, context);
  if (!shape.ok()) return shape.status();
  const auto leaf = [&](const xla::LiteralProto& p, Shape s) -> absl::StatusOr<Literal> {
    if (!s.IsArray()) return Literal::Tuple(s, {});
    absl::StatusOr<int64_t> bytes = TakeBytes(s, limit);
    if (!bytes.ok()) return bytes.status();
    absl::StatusOr<const char*> data = ElementsOf(p, s, *bytes);
    if (!data.ok()) return data.status();
    Literal value = *data == nullptr ? Literal::Tuple(s, {}) : Literal::Zeros(s);
    if (*data == nullptr) {
      value.set_elided();
    } else {
      ReadElements(*data, s, value.data());
    }
    return value;
  };
  return BuildLiteral<Literal>(proto, *shape, leaf, [](Shape s, std::vector<Literal> elements) {
    return Literal::Tuple(s, std::move(elements));
  });
}

absl::StatusOr<LiteralId> ReadConstant(const xla::LiteralProto& proto, Shape shape, Context* context,
                                       ByteLimit* limit) {
  absl::StatusOr<Shape> own = LiteralShape(proto, context);
  if (!own.ok()) return own.status();
  if (!Compatible(*own, shape)) {
    return absl::InvalidArgumentError(
        StrCat("literal: its shape ", ToString(*own), " is not that of the instruction, ", ToString(shape)));
  }
  std::vector<std::byte> row_major;
  // The literal's own layout has the order of the elements; the constant has that of the instruction.
  const std::vector<Shape> stored_leaves = Leaves(shape);
  size_t next_leaf = 0;
  const auto leaf = [&](const xla::LiteralProto& p, Shape s) -> absl::StatusOr<LiteralId> {
    const Shape stored = stored_leaves[next_leaf++];
    if (!s.IsArray()) return context->literals.AddArray(stored, nullptr, 0);
    absl::StatusOr<int64_t> bytes = TakeBytes(s, limit);
    if (!bytes.ok()) return bytes.status();
    absl::StatusOr<const char*> data = ElementsOf(p, s, *bytes);
    if (!data.ok()) return data.status();
    if (*data == nullptr) return context->literals.AddElided(stored);
    const bool as_it_is = IsRowMajor(s) && BitsOf(s.element_type()) >= 8 && s.element_type() != ElementType::kPred;
    if (as_it_is) {
      return context->literals.AddArray(stored, reinterpret_cast<const std::byte*>(*data), static_cast<size_t>(*bytes));
    }
    row_major.resize(static_cast<size_t>(*bytes));
    ReadElements(*data, s, row_major.data());
    return context->literals.AddArray(stored, row_major.data(), row_major.size());
  };
  return BuildLiteral<LiteralId>(proto, *own, leaf, [&](Shape, const std::vector<LiteralId>& elements) {
    std::vector<Shape> shapes;
    for (LiteralId id : elements) shapes.push_back(context->literals[id].shape);
    return context->literals.AddTuple(context->shapes.Tuple(shapes), elements);
  });
}

absl::StatusOr<Literal> ReadRawLiteral(std::string_view bytes, Context* context, ByteLimit* limit) {
  const auto cut = [] { return absl::InvalidArgumentError("raw literal: the file ends before the value does"); };
  constexpr size_t kHead = sizeof(uint64_t);
  if (bytes.size() < kHead) return cut();
  uint64_t length;
  std::memcpy(&length, bytes.data(), kHead);
  bytes.remove_prefix(kHead);
  if (length > bytes.size()) return cut();
  xla::ShapeProto proto;
  if (length > INT32_MAX || !proto.ParseFromArray(bytes.data(), static_cast<int>(length))) {
    return absl::InvalidArgumentError("raw literal: expected a ShapeProto");
  }
  bytes.remove_prefix(length);
  absl::StatusOr<Shape> shape = ReadShape(proto, context);
  if (!shape.ok()) return shape.status();
  Literal result;
  struct Open {
    Literal* to;
    Shape shape;
  };
  std::vector<Open> open = {{&result, *shape}};
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    if (at.shape.IsTuple()) {
      *at.to = Literal::Tuple(at.shape, std::vector<Literal>(static_cast<size_t>(at.shape.tuple_size())));
      for (int64_t k = at.shape.tuple_size(); k-- > 0;) {
        open.push_back({&at.to->elements()[static_cast<size_t>(k)], at.shape.element(k)});
      }
      continue;
    }
    if (!at.shape.IsArray())
      return absl::InvalidArgumentError("raw literal: tokens and opaque values have no such form");
    const absl::StatusOr<int64_t> size = TakeBytes(at.shape, limit);
    if (!size.ok()) return size.status();
    if (at.shape.has_dynamic_dims()) {
      const size_t sizes = static_cast<size_t>(at.shape.rank()) * sizeof(int32_t);
      if (bytes.size() < sizes) return cut();
      bytes.remove_prefix(sizes);
    }
    const int bits = BitsOf(at.shape.element_type());
    const int64_t count = at.shape.element_count();
    const bool pred = at.shape.element_type() == ElementType::kPred;
    const int width = pred ? 1 : bits;  // preds are packed too
    const size_t stored =
        width < 8 ? static_cast<size_t>((count + 8 / width - 1) / (8 / width)) : static_cast<size_t>(*size);
    if (bytes.size() < stored) return cut();
    *at.to = Literal::Zeros(at.shape);
    if (width < 8) {
      const std::vector<std::byte> unpacked = UnpackSubByte({reinterpret_cast<const std::byte*>(bytes.data()), stored},
                                                            width, count, IsSigned(at.shape.element_type()));
      ReadElements(reinterpret_cast<const char*>(unpacked.data()), at.shape, at.to->data());
    } else {
      ReadElements(bytes.data(), at.shape, at.to->data());
    }
    bytes.remove_prefix(stored);
  }
  if (!bytes.empty())
    return absl::InvalidArgumentError(StrCat("raw literal: ", bytes.size(), " bytes after the value"));
  return result;
}

absl::Status AppendRawLiteral(const Literal& literal, std::string* out) {
  ShapeWriter shapes;
  xla::ShapeProto shape;
  if (absl::Status status = shapes.Write(literal.shape(), &shape); !status.ok()) return status;
  const std::string head = shape.SerializeAsString();
  const uint64_t length = head.size();
  out->append(reinterpret_cast<const char*>(&length), sizeof(length));
  out->append(head);
  std::vector<const Literal*> open = {&literal};
  while (!open.empty()) {
    const Literal& at = *open.back();
    open.pop_back();
    if (at.elided()) return absl::InvalidArgumentError("the value is elided");
    const Shape s = at.shape();
    if (s.IsTuple()) {
      for (size_t k = at.elements().size(); k-- > 0;) open.push_back(&at.elements()[k]);
      continue;
    }
    if (!s.IsArray()) return absl::InvalidArgumentError("tokens and opaque values have no raw form");
    if (s.has_dynamic_dims()) {
      for (int64_t d : s.dims()) {
        const auto size = static_cast<int32_t>(d);
        out->append(reinterpret_cast<const char*>(&size), sizeof(size));
      }
    }
    VisitType(s.element_type(), [&]<typename T>(std::type_identity<T>) {
      const size_t count = static_cast<size_t>(s.element_count());
      const auto elements = std::make_unique<T[]>(count);  // a vector of bool has no data
      ToLayout(reinterpret_cast<const T*>(at.data()), s, elements.get());
      const absl::Span<const std::byte> raw(reinterpret_cast<const std::byte*>(elements.get()), count * sizeof(T));
      const int width = s.element_type() == ElementType::kPred ? 1 : BitsOf(s.element_type());
      if (width < 8) {
        const std::vector<std::byte> packed = PackSubByte(raw, width);
        out->append(reinterpret_cast<const char*>(packed.data()), packed.size());
      } else {
        out->append(reinterpret_cast<const char*>(raw.data()), raw.size());
      }
    });
  }
  return absl::OkStatus();
}

}  // namespace hlokit
