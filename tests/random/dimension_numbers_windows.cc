// SPDX-License-Identifier: Apache-2.0
// Reductions, windows and sorts: of several arrays, with types that differ.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/random/dimension_numbers_generator.h"

namespace hlokit::random_test {

bool DimensionNumbersGenerator::MakeWindowed() {
  if (case_.opcode == Opcode::kReduce || case_.opcode == Opcode::kReduceWindow) {
    MakeReduction();
  } else if (case_.opcode == Opcode::kSelectAndScatter) {
    MakeSelectAndScatter();
  } else if (case_.opcode == Opcode::kSort) {
    MakeSort();
  } else {
    return false;
  }
  return true;
}

void DimensionNumbersGenerator::MakeReduction() {
  const Dims array = SomeDims(0, 4);
  const auto rank = static_cast<int64_t>(array.size());
  const int64_t count = random_.OneIn(3) ? random_.In(2, 3) : 1;
  std::vector<ElementType> types, accumulators, elements;
  for (int64_t k = 0; k < count; ++k) {
    types.push_back(AnyType());
    accumulators.push_back(Near(types.back()));
    elements.push_back(Near(types.back()));
    AddOperand({types.back(), array});
  }
  for (int64_t k = 0; k < count; ++k) AddOperand({Near(types[static_cast<size_t>(k)]), {}});
  Attribute("to_apply", Reducer(accumulators, elements));
  if (case_.opcode == Opcode::kReduce) {
    ListAttribute("dimensions", Odd(Distinct(rank, random_.In(0, rank)), rank));
    return;
  }
  Dims sizes;
  for (int64_t d : array) sizes.push_back(random_.In(1, std::max<int64_t>(1, std::min<int64_t>(d, 4))));
  Window(array, sizes, /*dilated=*/true);
}

void DimensionNumbersGenerator::MakeSelectAndScatter() {
  const Dims array = SomeDims(0, 3);
  Dims sizes;
  for (int64_t d : array) sizes.push_back(random_.In(1, std::max<int64_t>(1, std::min<int64_t>(d, 3))));
  const ElementType type = RealType();
  Dims positions = Window(array, sizes, /*dilated=*/random_.OneIn(8));
  for (int64_t& d : positions) d = std::clamp<int64_t>(d, 0, 64);
  AddOperand({type, array});
  AddOperand({Near(type), positions});
  AddOperand({Near(type), {}});
  Attribute("select", Comparison({Near(type)}, true));
  Attribute("scatter", Reducer({Near(type)}, {Near(type)}));
}

void DimensionNumbersGenerator::MakeSort() {
  const Dims array = SomeDims(1, 3);
  const auto rank = static_cast<int64_t>(array.size());
  std::vector<ElementType> types, compared;
  for (int64_t n = random_.In(1, 3); n > 0; --n) {
    types.push_back(types.empty() ? RealType() : AnyType());
    compared.push_back(Near(types.back()));
    AddOperand({types.back(), array});
  }
  Attribute("to_apply", Comparison(compared, false));
  ListAttribute("dimensions", Odd({random_.In(0, rank - 1)}, rank));
  Attribute("is_stable", random_.OneIn(6) ? "false" : "true");
}

}  // namespace hlokit::random_test
