// SPDX-License-Identifier: Apache-2.0
// Instructions that combine elements with a function, sort them or look them up.
#include <numeric>
#include <string>
#include <vector>

#include "tests/random/module_generator.h"

namespace hlokit::random_test {

std::string ModuleGenerator::ExtremeWithIndex(ElementType value, ElementType index) {
  const std::string name = NewName("extreme");
  const std::string v = StrCat(ToString(value), "[]"), i = StrCat(ToString(index), "[]");
  StrAppend(&computations_, name, " {\n  a = ", v, " parameter(0)\n  i = ", i, " parameter(1)\n  x = ", v,
            " parameter(2)\n  j = ", i,
            " parameter(3)\n  better = pred[] compare(a, x), direction=", random_.OneIn(2) ? "GT" : "LT",
            "\n  nan = pred[] compare(a, a), direction=NE\n  keep = pred[] or(better, nan)\n"
            "  equal = pred[] compare(a, x), direction=EQ\n  before = pred[] compare(i, j), direction=LT\n"
            "  first = pred[] and(equal, before)\n  keep.index = pred[] or(keep, first)\n  value = ",
            v, " select(keep, a, x)\n  index = ", i, " select(keep.index, i, j)\n  ROOT r = (", v, ", ", i,
            ") tuple(value, index)\n}\n\n");
  return name;
}

bool ModuleGenerator::EmitCombination(Opcode opcode) {
  const std::string_view text = ToString(opcode);
  const ElementType type = random_.Of(kNumbers);
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kReduce: {
      const bool is_extreme = opcode == Opcode::kReduce && random_.OneIn(4);
      // Sometimes one that is reduced in several blocks.
      const bool is_long = is_extreme && random_.OneIn(6);
      const Dims from = is_long ? Dims{random_.In(1, 3), random_.In(1500, 5000)} : RandomDims(0, 3);
      Dims reduced, to;
      for (size_t i = 0; i < from.size(); ++i) {
        if (is_long ? i == 1 : random_.OneIn(2)) {
          reduced.push_back(static_cast<int64_t>(i));
        } else {
          to.push_back(from[i]);
        }
      }
      if (is_extreme) {
        const ElementType index = random_.Of(kIndices);
        const std::string values = is_long ? NeedWithNans({type, from}) : Need({type, from});
        const std::string indices = Need({index, from});
        const std::string value = Scalar(type), first = Scalar(index);
        AddTuple({{type, to}, {index, to}}, text, {values, indices, value, first},
                 StrCat("dimensions={", List(reduced), "}, to_apply=", ExtremeWithIndex(type, index)));
        return true;
      }
      Add({type, to}, text, {Need({type, from}), Scalar(type)},
          StrCat("dimensions={", List(reduced), "}, to_apply=", Function(type)));
      return true;
    }
    case ShapeRule::kMap: {
      const Dims dims = RandomDims();
      Dims all(dims.size());
      std::iota(all.begin(), all.end(), 0);
      Add({type, dims}, text, {Need({type, dims}), Need({type, dims})},
          StrCat("dimensions={", List(all), "}, to_apply=", Function(type)));
      return true;
    }
    case ShapeRule::kScan: {
      const Dims from = FullDims(1, 2);
      const int64_t along = random_.In(0, static_cast<int64_t>(from.size()) - 1);
      Dims carry = from;
      carry.erase(carry.begin() + along);
      // (carry, element) -> (output, carry)
      const Array state{type, carry};
      const std::string name = NewName("step");
      StrAppend(&computations_, name, " {\n  a = ", Text(state), " parameter(0)\n  b = ", Text(state),
                " parameter(1)\n  c = ", Text(state), " add(a, b)\n  ROOT r = (", Text(state), ", ", Text(state),
                ") tuple(c, c)\n}\n\n");
      AddTuple({{type, from}, state}, text, {Need({type, from}), Need(state)},
               StrCat("dimensions={", along, "}, num_carries=1, to_apply=", name));
      return true;
    }
    case ShapeRule::kSort: {
      const Dims dims = RandomDims(1, 3);
      const int64_t along = random_.In(0, static_cast<int64_t>(dims.size()) - 1);
      std::vector<ElementType> types = {type};
      if (random_.OneIn(2)) types.push_back(random_.Of(kTypes));
      std::vector<std::string> operands;
      std::vector<Array> arrays;
      for (ElementType t : types) {
        arrays.push_back({t, dims});
        operands.push_back(Need(arrays.back()));
      }
      const std::string attributes = StrCat("dimensions={", along, "}, is_stable=true, to_apply=", Comparison(types));
      if (types.size() == 1) {
        Add(arrays[0], text, operands, attributes);
      } else {
        AddTuple(arrays, text, operands, attributes);
      }
      return true;
    }
    case ShapeRule::kTopK: {
      const Dims from = FullDims(1, 2);
      Dims to = from;
      to.back() = random_.In(1, from.back());
      AddTuple({{type, to}, {kS32, to}}, text, {Need({type, from})},
               StrCat("k=", to.back(), ", largest=", random_.OneIn(2) ? "true" : "false"));
      return true;
    }
    case ShapeRule::kGather: {
      // Slices of whole or partial dimensions, one index for some of them, and one or two dimensions of indices.
      const Dims from = FullDims(1, 3);
      Dims sizes, collapsed, map, offset, window, batch;
      for (size_t d = 0; d < from.size(); ++d) {
        const bool indexed = random_.OneIn(2);
        if (indexed) map.push_back(static_cast<int64_t>(d));
        sizes.push_back(indexed ? random_.In(1, from[d]) : from[d]);
        if (sizes.back() == 1 && random_.OneIn(2)) {
          collapsed.push_back(static_cast<int64_t>(d));
        } else {
          window.push_back(sizes.back());
        }
      }
      for (int64_t n = random_.In(1, 2); n > 0; --n) batch.push_back(random_.In(0, 4));
      // The result's dimensions are those of the indices, with those of slices among them.
      Dims to;
      size_t next_window = 0, next_batch = 0;
      while (next_window < window.size() || next_batch < batch.size()) {
        if (next_window < window.size() && (next_batch == batch.size() || random_.OneIn(3))) {
          offset.push_back(static_cast<int64_t>(to.size()));
          to.push_back(window[next_window++]);
        } else {
          to.push_back(batch[next_batch++]);
        }
      }
      Dims indices = batch;
      indices.push_back(static_cast<int64_t>(map.size()));
      UseMoved(Add(
          {type, to}, text, {Need({type, from}), Need({random_.Of(kIndices), indices})},
          StrCat("offset_dims={", List(offset), "}, collapsed_slice_dims={", List(collapsed), "}, start_index_map={",
                 List(map), "}, index_vector_dim=", batch.size(), ", slice_sizes={", List(sizes), "}")));
      return true;
    }
    case ShapeRule::kScatter: {
      const int64_t rows = random_.In(1, 4), columns = random_.In(1, 4), n = random_.In(0, 4);
      const Array array{type, {rows, columns}};
      Add(array, text, {Need(array), Need({random_.Of(kIndices), {n, 1}}), Need({type, {n, columns}})},
          StrCat("update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                 "index_vector_dim=1, to_apply=",
                 Function(type)));
      return true;
    }
    default:
      return false;
  }
}

}  // namespace hlokit::random_test
