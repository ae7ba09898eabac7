// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/export/shape_proto.h"

#include <complex>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "ir/types/float_types.h"

namespace hlokit::tpu {

namespace {

// Returns the number of XLA's PrimitiveType (xla_data.proto).
int PrimitiveType(ElementType type) {
  switch (type) {
    case ElementType::kPred:
      return 1;
    case ElementType::kS8:
      return 2;
    case ElementType::kS16:
      return 3;
    case ElementType::kS32:
      return 4;
    case ElementType::kS64:
      return 5;
    case ElementType::kU8:
      return 6;
    case ElementType::kU16:
      return 7;
    case ElementType::kU32:
      return 8;
    case ElementType::kU64:
      return 9;
    case ElementType::kF16:
      return 10;
    case ElementType::kF32:
      return 11;
    case ElementType::kF64:
      return 12;
    case ElementType::kTuple:
      return 13;
    case ElementType::kOpaque:
      return 14;
    case ElementType::kC64:
      return 15;
    case ElementType::kBF16:
      return 16;
    case ElementType::kToken:
      return 17;
    case ElementType::kC128:
      return 18;
    case ElementType::kF8E5M2:
      return 19;
    case ElementType::kF8E4M3FN:
      return 20;
    case ElementType::kS4:
      return 21;
    case ElementType::kU4:
      return 22;
    case ElementType::kF8E4M3B11FNUZ:
      return 23;
    case ElementType::kF8E5M2FNUZ:
      return 24;
    case ElementType::kF8E4M3FNUZ:
      return 25;
    case ElementType::kS2:
      return 26;
    case ElementType::kU2:
      return 27;
    case ElementType::kF8E4M3:
      return 28;
    case ElementType::kF8E3M4:
      return 29;
    case ElementType::kS1:
      return 30;
    case ElementType::kU1:
      return 31;
    case ElementType::kF4E2M1FN:
      return 32;
    case ElementType::kF8E8M0FNU:
      return 33;
    case ElementType::kBuffer:
      return 34;
  }
  return 0;
}

void WriteLayout(const LayoutRecord& layout, xla::LayoutProto* out) {
  for (int64_t d : layout.minor_to_major) out->add_minor_to_major(d);
  if (layout.extras == nullptr) return;
  const LayoutExtras& extras = *layout.extras;
  for (const std::vector<int64_t>& tile : extras.tiles) {
    xla::LayoutProto::Tile* to = out->add_tiles();
    for (int64_t d : tile) to->add_dimensions(d);
  }
  if (extras.tail_padding_alignment != 1) out->set_tail_padding_alignment_in_elements(extras.tail_padding_alignment);
  out->set_element_size_in_bits(extras.element_size_in_bits);
  out->set_memory_space(extras.memory_space);
  out->set_dynamic_shape_metadata_prefix_bytes(extras.dynamic_shape_metadata_prefix_bytes);
  for (const SplitConfig& split : extras.split_configs) {
    xla::LayoutProto::SplitConfig* to = out->add_split_configs();
    to->set_dimension(split.dimension);
    for (int64_t index : split.split_indices) to->add_split_indices(index);
  }
}

void WriteArray(Shape shape, xla::ShapeProto* out) {
  out->set_element_type(PrimitiveType(shape.element_type()));
  if (!shape.IsArray()) return;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    out->add_dimensions(shape.dim(d));
    out->add_is_dynamic_dimension(shape.is_dynamic(d));
  }
  xla::LayoutProto* layout = out->mutable_layout();
  if (shape.layout() != nullptr) {
    WriteLayout(*shape.layout(), layout);
  } else {
    for (int64_t d = shape.rank(); d-- > 0;) layout->add_minor_to_major(d);
  }
}

// Returns the elements of an array in the order of the layout of `shape`.
template <typename T>
std::vector<T> ElementsByLayout(const Literal& literal, Shape shape) {
  const absl::Span<const T> values = literal.values<T>();
  if (shape.layout() == nullptr || shape.layout()->is_default) return std::vector<T>(values.begin(), values.end());
  std::vector<int64_t> strides(shape.rank(), 1);
  for (int64_t d = shape.rank() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape.dim(d + 1);
  std::vector<int64_t> at(shape.rank(), 0);
  std::vector<T> result;
  int64_t place = 0;
  for (size_t k = 0; k < values.size(); ++k) {
    result.push_back(values[place]);
    for (int64_t d : shape.layout()->minor_to_major) {
      place += strides[d];
      if (++at[d] < shape.dim(d)) break;
      place -= strides[d] * shape.dim(d);
      at[d] = 0;
    }
  }
  return result;
}

template <typename T, typename Field>
void AddEach(const std::vector<T>& values, Field* field) {
  for (T v : values) field->Add(v);
}
template <typename T, typename Field>
void AddComplex(const std::vector<std::complex<T>>& values, Field* field) {
  for (const std::complex<T>& v : values) {
    field->Add(v.real());
    field->Add(v.imag());
  }
}

// Returns the field of types that are stored as bytes; null for types with a numeric field.
std::string* BytesField(ElementType type, xla::LiteralProto* out) {
  switch (type) {
    case ElementType::kS1:
      return out->mutable_s1s();
    case ElementType::kS2:
      return out->mutable_s2s();
    case ElementType::kS4:
      return out->mutable_s4s();
    case ElementType::kS8:
      return out->mutable_s8s();
    case ElementType::kS16:
      return out->mutable_s16s();
    case ElementType::kU1:
      return out->mutable_u1s();
    case ElementType::kU2:
      return out->mutable_u2s();
    case ElementType::kU4:
      return out->mutable_u4s();
    case ElementType::kU8:
      return out->mutable_u8s();
    case ElementType::kU16:
      return out->mutable_u16s();
    case ElementType::kF4E2M1FN:
      return out->mutable_f4e2m1fns();
    case ElementType::kF8E3M4:
      return out->mutable_f8e3m4s();
    case ElementType::kF8E4M3:
      return out->mutable_f8e4m3s();
    case ElementType::kF8E4M3FN:
      return out->mutable_f8e4m3fns();
    case ElementType::kF8E4M3B11FNUZ:
      return out->mutable_f8e4m3b11fnuzs();
    case ElementType::kF8E4M3FNUZ:
      return out->mutable_f8e4m3fnuzs();
    case ElementType::kF8E5M2:
      return out->mutable_f8e5m2s();
    case ElementType::kF8E5M2FNUZ:
      return out->mutable_f8e5m2fnuzs();
    case ElementType::kF8E8M0FNU:
      return out->mutable_f8e8m0fnus();
    case ElementType::kBF16:
      return out->mutable_bf16s();
    case ElementType::kF16:
      return out->mutable_f16s();
    case ElementType::kPred:
    case ElementType::kS32:
    case ElementType::kS64:
    case ElementType::kU32:
    case ElementType::kU64:
    case ElementType::kF32:
    case ElementType::kF64:
    case ElementType::kC64:
    case ElementType::kC128:
    case ElementType::kToken:
    case ElementType::kOpaque:
    case ElementType::kTuple:
    case ElementType::kBuffer:
      break;
  }
  return nullptr;
}

void WriteElements(const Literal& literal, Shape shape, xla::LiteralProto* out) {
  const ElementType type = literal.shape().element_type();
  VisitType(type, [&](auto identity) {
    using T = typename decltype(identity)::type;
    const std::vector<T> values = ElementsByLayout<T>(literal, shape);
    if constexpr (std::is_same_v<T, bool>) {
      AddEach(values, out->mutable_preds());
    } else if constexpr (std::is_same_v<T, int32_t>) {
      AddEach(values, out->mutable_s32s());
    } else if constexpr (std::is_same_v<T, int64_t>) {
      AddEach(values, out->mutable_s64s());
    } else if constexpr (std::is_same_v<T, uint32_t>) {
      AddEach(values, out->mutable_u32s());
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      AddEach(values, out->mutable_u64s());
    } else if constexpr (std::is_same_v<T, float>) {
      AddEach(values, out->mutable_f32s());
    } else if constexpr (std::is_same_v<T, double>) {
      AddEach(values, out->mutable_f64s());
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
      AddComplex(values, out->mutable_c64s());
    } else if constexpr (std::is_same_v<T, std::complex<double>>) {
      AddComplex(values, out->mutable_c128s());
    } else if (std::string* bytes = BytesField(type, out)) {
      const absl::Span<const std::byte> raw(reinterpret_cast<const std::byte*>(values.data()),
                                            values.size() * sizeof(T));
      const std::vector<std::byte> packed =
          BitsOf(type) < 8 ? PackSubByte(raw, BitsOf(type)) : std::vector<std::byte>();
      const absl::Span<const std::byte> kept = BitsOf(type) < 8 ? absl::Span<const std::byte>(packed) : raw;
      bytes->assign(reinterpret_cast<const char*>(kept.data()), kept.size());
    }
  });
}

bool HasElided(const Literal& literal) {
  std::vector<const Literal*> open = {&literal};
  while (!open.empty()) {
    const Literal* l = open.back();
    open.pop_back();
    if (l->elided()) return true;
    for (const Literal& element : l->elements()) open.push_back(&element);
  }
  return false;
}

}  // namespace

// Uses an explicit stack: a file may nest tuples to any depth.
void WriteShape(Shape shape, xla::ShapeProto* out) {
  std::vector<std::pair<Shape, xla::ShapeProto*>> open = {{shape, out}};
  while (!open.empty()) {
    const auto [s, to] = open.back();
    open.pop_back();
    WriteArray(s, to);
    // Pointers to elements stay valid while more are added.
    for (int64_t k = 0; k < s.tuple_size(); ++k) open.push_back({s.element(k), to->add_tuple_shapes()});
  }
}

bool WriteLiteral(const Literal& literal, Shape shape, xla::LiteralProto* out) {
  if (HasElided(literal)) return false;
  struct Open {
    const Literal* literal;
    Shape shape;
    xla::LiteralProto* to;
  };
  std::vector<Open> open = {{&literal, shape, out}};
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    WriteShape(at.shape, at.to->mutable_shape());
    if (at.shape.IsArray()) WriteElements(*at.literal, at.shape, at.to);
    for (size_t k = 0; k < at.literal->elements().size(); ++k) {
      open.push_back(
          {&at.literal->elements()[k], at.shape.element(static_cast<int64_t>(k)), at.to->add_tuple_literals()});
    }
  }
  return true;
}

}  // namespace hlokit::tpu
