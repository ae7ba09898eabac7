// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/type_conversion.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/types/float_types.h"
#include "ir/types/literal.h"
#include "ir/verify/verifier.h"

namespace hlokit {

namespace {

// Returns the elements of an array in another float type.
Literal Converted(const Literal& from, Shape shape) {
  Literal to = Literal::Zeros(shape);
  VisitType(from.shape().element_type(), [&](auto source) {
    using From = typename decltype(source)::type;
    if constexpr (AnyFloat<From>) {
      VisitType(shape.element_type(), [&](auto target) {
        using To = typename decltype(target)::type;
        if constexpr (AnyFloat<To>) {
          const absl::Span<const From> values = from.values<From>();
          std::transform(values.begin(), values.end(), to.values<To>().begin(),
                         [](From v) { return To(static_cast<double>(v)); });
        }
      });
    }
  });
  return to;
}

// Replaces every array shape of a module by that of a function.
class ShapeRewriter {
 public:
  using ArrayShape = std::function<Shape(Shape)>;
  // Returns the value of a constant array in its new shape.
  using ArrayValue = std::function<LiteralId(LiteralId, Shape)>;

  ShapeRewriter(Module* module, const ArrayShape& array_shape, ArrayValue array_value)
      : module_(*module), context_(module->context()), array_value_(std::move(array_value)) {
    // Components of a shape were interned before it.
    ShapeTable& shapes = context_.shapes;
    const size_t count = shapes.size();
    for (uint32_t id = 0; id < count; ++id) {
      const Shape shape = shapes[ShapeId(id)];
      std::vector<Shape> elements;
      for (Shape element : shape.elements()) elements.push_back(Of(element));
      if (shape.IsArray()) {
        shapes_.push_back(array_shape(shape));
      } else if (shape.IsTuple()) {
        shapes_.push_back(shapes.Tuple(elements));
      } else if (shape.IsBuffer()) {
        shapes_.push_back(shapes.Buffer(elements[0]));
      } else {
        shapes_.push_back(shape);
      }
    }
  }

  void Run() {
    for (Computation computation : module_.computations()) {
      for (Instruction i : computation.instructions()) RetypeInstruction(i);
    }
    if (std::optional<EntryLayout>& layout = module_.header().entry_layout) {
      for (Shape& parameter : layout->parameters) parameter = Of(parameter);
      layout->result = Of(layout->result);
    }
  }

 private:
  Shape Of(Shape shape) const { return shapes_[shape.id().value]; }

  void RetypeInstruction(Instruction i) {
    if (i.opcode() == Opcode::kConstant) module_.SetPayload(i.id(), LiteralOf(i.literal_id()).value);
    const std::vector<AttrValue> attrs(i.attrs().begin(), i.attrs().end());
    for (const AttrValue& attr : attrs) {
      const AttrType type = InfoOf(attr.attr).type;
      if (type == AttrType::kShape) {
        module_.SetAttr(i.id(), attr.attr, shapes_[attr.payload].id().value);
      } else if (type == AttrType::kShapeList) {
        std::vector<int64_t> ids;
        for (int64_t id : context_.list(ListId(attr.payload))) ids.push_back(shapes_[id].id().value);
        module_.SetAttr(i.id(), attr.attr, module_.ListPayload(ids));
      }
    }
    module_.SetShape(i.id(), Of(i.shape()));
  }

  // Tuples may nest arbitrarily deep: elements first.
  LiteralId LiteralOf(LiteralId root) {
    std::vector<LiteralId> open = {root};
    while (!open.empty()) {
      const LiteralId id = open.back();
      const LiteralRecord record = context_.literals[id];
      const Shape shape = Of(record.shape);
      if (literals_.contains(id.value)) {
        open.pop_back();
        continue;
      }
      if (shape == record.shape) {
        literals_[id.value] = id;
      } else if (record.elements != nullptr) {
        std::vector<LiteralId> elements;
        const size_t before = open.size();
        for (int64_t k = 0; k < record.shape.tuple_size(); ++k) {
          const auto found = literals_.find(record.elements[k].value);
          if (found == literals_.end()) {
            open.push_back(record.elements[k]);
          } else {
            elements.push_back(found->second);
          }
        }
        if (open.size() > before) continue;
        literals_[id.value] = context_.literals.AddTuple(shape, elements);
      } else if (record.elided) {
        literals_[id.value] = context_.literals.AddElided(shape);
      } else {
        literals_[id.value] = array_value_(id, shape);
      }
      open.pop_back();
    }
    return literals_[root.value];
  }

  Module& module_;
  Context& context_;
  const ArrayValue array_value_;
  std::vector<Shape> shapes_;                          // by ShapeId
  absl::flat_hash_map<uint32_t, LiteralId> literals_;  // by LiteralId
};

// Replaces sizes of the result that are sizes of an operand too: slices of whole dimensions stay such.
void ResizeSlices(Module* module, Instruction i, int64_t from, int64_t to) {
  for (Attr attr : {Attr::kSlice, Attr::kSliceSizes, Attr::kDynamicSliceSizes}) {
    const absl::Span<const int64_t> now = i.list_attr(attr);
    if (now.empty()) continue;
    std::vector<int64_t> list(now.begin(), now.end());
    if (attr == Attr::kSlice) {
      for (size_t at = 0; at + 2 < list.size(); at += 3) {
        if (list[at] == 0 && list[at + 1] == from && list[at + 2] == 1) list[at + 1] = to;
      }
    } else {
      std::replace(list.begin(), list.end(), from, to);
    }
    module->SetAttr(i.id(), attr, module->ListPayload(list));
  }
}

}  // namespace

void ConvertFloatTypes(Module* module, absl::Span<const ElementType> from, ElementType to) {
  Context& context = module->context();
  const auto shape_of = [&](Shape array) {
    const bool changes = std::find(from.begin(), from.end(), array.element_type()) != from.end();
    return changes ? context.shapes.WithElementType(array, to) : array;
  };
  const auto value_of = [&](LiteralId id, Shape shape) {
    return context.literals.Add(Converted(context.literals.ToLiteral(id), shape));
  };
  ShapeRewriter(module, shape_of, value_of).Run();
}

void ReplaceDimensionSizes(Module* module, int64_t from, int64_t to) {
  Context& context = module->context();
  const auto shape_of = [&](Shape array) {
    const absl::Span<const int64_t> now = array.dims();
    if (std::find(now.begin(), now.end(), from) == now.end()) return array;
    std::vector<int64_t> dims(now.begin(), now.end());
    std::replace(dims.begin(), dims.end(), from, to);
    std::vector<uint8_t> dynamic;
    for (int64_t d = 0; d < array.rank(); ++d) dynamic.push_back(array.is_dynamic(d) ? 1 : 0);
    return context.shapes.Array(array.element_type(), dims, dynamic, array.layout());
  };
  const auto value_of = [&](LiteralId, Shape shape) { return context.literals.AddElided(shape); };
  ShapeRewriter(module, shape_of, value_of).Run();
  for (Computation computation : module->computations()) {
    for (Instruction i : computation.instructions()) ResizeSlices(module, i, from, to);
  }
}

constexpr ElementType kComputeTypes[] = {ElementType::kF64, ElementType::kF32, ElementType::kF16, ElementType::kBF16};

std::optional<ElementType> ComputeTypeFromText(std::string_view name) {
  const std::optional<ElementType> type = ElementTypeFromText(name);
  if (!type || std::find(std::begin(kComputeTypes), std::end(kComputeTypes), *type) == std::end(kComputeTypes)) {
    return std::nullopt;
  }
  return type;
}

bool ConvertComputeTypes(Module* module, ElementType to, DiagnosticSink* sink) {
  ConvertFloatTypes(module, kComputeTypes, to);
  VerifyModule(*module, VerifierOptions(), sink);
  return !sink->has_errors();
}

}  // namespace hlokit
