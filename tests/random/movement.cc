// SPDX-License-Identifier: Apache-2.0
// Instructions that move elements.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/random/module_generator.h"

namespace hlokit::random_test {

void ModuleGenerator::UseMoved(const Value& moved) {
  if (IsComplex(moved.array.type) || !random_.OneIn(2)) return;
  Value value = moved;
  static const std::vector<std::string_view> kOfNumbers = {"add", "subtract", "multiply", "maximum"};
  static const std::vector<std::string_view> kOfPred = {"and", "or", "xor"};
  for (int64_t n = random_.In(1, 3); n > 0; --n) {
    const std::string other = Need(value.array);
    value = Add(value.array, random_.Of(value.array.type == kPred ? kOfPred : kOfNumbers), {value.name, other});
  }
}

bool ModuleGenerator::EmitMovement(Opcode opcode) {
  const std::string_view text = ToString(opcode);
  const ElementType type = random_.Of(kTypes);
  const auto ascending = [&](size_t of) {
    Dims list;
    for (size_t i = 0; i < of; ++i) {
      if (random_.OneIn(2)) list.push_back(static_cast<int64_t>(i));
    }
    return list;
  };
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kBroadcast: {
      const Dims to = RandomDims(0, 4);
      const Dims kept = ascending(to.size());
      Dims from;
      for (int64_t d : kept) from.push_back(to[static_cast<size_t>(d)]);
      Add({type, to}, text, {Need({type, from})}, StrCat("dimensions={", List(kept), "}"));
      return true;
    }
    case ShapeRule::kReshape: {
      const Dims from = RandomDims(0, 3);
      Dims to = from;
      std::reverse(to.begin(), to.end());
      if (random_.OneIn(2)) to = {std::accumulate(from.begin(), from.end(), int64_t{1}, std::multiplies<>())};
      if (random_.OneIn(3)) to.insert(to.begin(), 1);
      Add({type, to}, text, {Need({type, from})});
      return true;
    }
    case ShapeRule::kTranspose: {
      const Dims from = RandomDims(0, 4);
      Dims order(from.size()), to;
      std::iota(order.begin(), order.end(), 0);
      for (size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[static_cast<size_t>(random_.In(0, static_cast<int64_t>(i) - 1))]);
      }
      for (int64_t d : order) to.push_back(from[static_cast<size_t>(d)]);
      Add({type, to}, text, {Need({type, from})}, StrCat("dimensions={", List(order), "}"));
      return true;
    }
    case ShapeRule::kReverse: {
      const Dims dims = RandomDims();
      Add({type, dims}, text, {Need({type, dims})}, StrCat("dimensions={", List(ascending(dims.size())), "}"));
      return true;
    }
    case ShapeRule::kSlice: {
      const Dims from = RandomDims();
      Dims to;
      std::vector<std::string> ranges;
      for (int64_t d : from) {
        const int64_t start = random_.In(0, d);
        const int64_t limit = random_.In(start, d);
        const int64_t stride = random_.In(1, 2);
        ranges.push_back(StrCat("[", start, ":", limit, stride == 1 ? "" : StrCat(":", stride), "]"));
        to.push_back((limit - start + stride - 1) / stride);
      }
      Add({type, to}, text, {Need({type, from})}, StrCat("slice={", Join(ranges), "}"));
      return true;
    }
    case ShapeRule::kDynamicSlice:
    case ShapeRule::kDynamicUpdateSlice: {
      const Dims from = RandomDims(1, 3);
      Dims part;
      for (int64_t d : from) part.push_back(random_.In(0, d));
      const bool updates = opcode == Opcode::kDynamicUpdateSlice;
      std::vector<std::string> operands = {Need({type, from})};
      if (updates) operands.push_back(Need({type, part}));
      const ElementType index = random_.Of(kIndices);
      for (size_t i = 0; i < from.size(); ++i) operands.push_back(Scalar(index));
      if (updates) {
        Add({type, from}, text, operands);
      } else {
        UseMoved(Add({type, part}, text, operands, StrCat("dynamic_slice_sizes={", List(part), "}")));
      }
      return true;
    }
    case ShapeRule::kConcatenate: {
      Dims dims = RandomDims(1, 3);
      const int64_t along = random_.In(0, static_cast<int64_t>(dims.size()) - 1);
      int64_t total = 0;
      std::vector<std::string> operands;
      for (int64_t n = random_.In(1, 3); n > 0; --n) {
        dims[static_cast<size_t>(along)] = random_.In(0, 3);
        total += dims[static_cast<size_t>(along)];
        operands.push_back(Need({type, dims}));
      }
      dims[static_cast<size_t>(along)] = total;
      UseMoved(Add({type, dims}, text, operands, StrCat("dimensions={", along, "}")));
      return true;
    }
    case ShapeRule::kPad: {
      const Dims from = RandomDims(1, 3);
      Dims to;
      std::string padding;
      for (size_t i = 0; i < from.size(); ++i) {
        const int64_t interior = random_.OneIn(2) ? 0 : random_.In(1, 2);
        const int64_t inner = from[i] == 0 ? 0 : from[i] + (from[i] - 1) * interior;
        const int64_t low = random_.In(-std::min<int64_t>(inner, 1), 2);
        const int64_t high = random_.In(std::max<int64_t>(-1, -inner - low), 2);
        to.push_back(inner + low + high);
        StrAppend(&padding, i == 0 ? "" : "x", low, "_", high, "_", interior);
      }
      if (std::any_of(to.begin(), to.end(), [](int64_t d) { return d < 0; })) return true;
      UseMoved(Add({type, to}, text, {Need({type, from}), Scalar(type)}, StrCat("padding=", padding)));
      return true;
    }
    case ShapeRule::kFirstOperand: {
      const Array array{type, RandomDims()};
      std::vector<std::string> operands = {Need(array)};
      if (opcode == Opcode::kAddDependency) operands.push_back(Line("token[]", "after-all", {}));
      Add(array, text, operands);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace hlokit::random_test
