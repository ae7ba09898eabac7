// SPDX-License-Identifier: Apache-2.0
// Pads, slices, transposes and others that move elements.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/random/dimension_numbers_generator.h"

namespace hlokit::random_test {

bool DimensionNumbersGenerator::MakeMovement() {
  const ElementType type = AnyType();
  Dims array = SomeDims(0, 4);
  const auto rank = static_cast<int64_t>(array.size());
  if (case_.opcode == Opcode::kTranspose) {
    AddMovedOperand({type, array});
    ListAttribute("dimensions", Odd(Distinct(rank, rank), rank));
  } else if (case_.opcode == Opcode::kReverse) {
    AddMovedOperand({type, array});
    ListAttribute("dimensions", Odd(Distinct(rank, random_.In(0, rank)), rank));
  } else if (case_.opcode == Opcode::kBroadcast) {
    const Dims kept = Distinct(rank, random_.In(0, rank));
    Dims from;
    for (int64_t d : kept) from.push_back(array[static_cast<size_t>(d)]);
    AddMovedOperand({type, from});
    case_.shape = random_test::Text({type, array});
    ListAttribute("dimensions", Odd(kept, rank));
  } else if (case_.opcode == Opcode::kIota) {
    case_.shape = random_test::Text({RealType(), array});
    Attribute("iota_dimension", StrCat(rank == 0 ? 0 : Number(random_.In(0, rank - 1))));
  } else if (case_.opcode == Opcode::kConcatenate) {
    const int64_t along = rank == 0 ? 0 : random_.In(0, rank - 1);
    for (int64_t n = random_.In(1, 3); n > 0; --n) {
      AddOperand({type, array});
      if (rank > 0) array[static_cast<size_t>(along)] = Size();
    }
    ListAttribute("dimensions", Odd({along}, rank));
  } else if (case_.opcode == Opcode::kSlice) {
    AddMovedOperand({type, array});
    std::string ranges;
    for (int64_t& d : array) {
      int64_t start = random_.In(0, d), limit = random_.In(start, d);
      start = Number(start);
      limit = Number(limit);
      const int64_t stride = Number(random_.In(1, 3));
      StrAppend(&ranges, ranges.empty() ? "" : ", ", "[", start, ":", limit, ":", stride, "]");
      const __int128 length =
          stride < 1 || limit <= start ? 0 : (static_cast<__int128>(limit) - start - 1) / stride + 1;
      d = length > 1000 ? 1000 : static_cast<int64_t>(length);
    }
    case_.shape = random_test::Text({type, array});
    Attribute("slice", StrCat("{", ranges, "}"));
  } else if (case_.opcode == Opcode::kPad) {
    AddMovedOperand({type, array});
    AddOperand({random_.OneIn(12) ? AnyType() : type, {}});
    std::string padding;
    for (size_t d = 0; d < array.size(); ++d) {
      int64_t low = Number(random_.In(-2, 2)), high = Number(random_.In(-2, 3));
      Cancel(&low, &high);
      StrAppend(&padding, d == 0 ? "" : "x", low, "_", high, "_", Number(random_.OneIn(2) ? 0 : random_.In(0, 2)));
    }
    if (!array.empty()) Attribute("padding", padding);
  } else if (case_.opcode == Opcode::kBitcast) {
    MakeBitcast();
  } else {
    return false;
  }
  return true;
}

void DimensionNumbersGenerator::AddMovedOperand(const Array& array) {
  const auto rank = static_cast<int64_t>(array.dims.size());
  Array from = array;
  std::string instruction;
  switch (random_.In(0, 9)) {
    case 0:
    case 1:
    case 2: {
      std::string ranges;
      for (int64_t& d : from.dims) {
        const int64_t start = random_.In(0, 2), stride = random_.In(1, 3);
        const int64_t limit = d == 0 ? start : start + (d - 1) * stride + 1;
        d = limit + random_.In(0, 2);
        // The last step may end beyond the last element.
        StrAppend(&ranges, ranges.empty() ? "" : ", ", "[", start, ":",
                  limit == start ? limit : std::min(limit + random_.In(0, stride - 1), d), ":", stride, "]");
      }
      instruction = StrCat("slice(a0), slice={", ranges, "}");
      break;
    }
    case 3:
      instruction = StrCat("reverse(a0), dimensions={", List(Distinct(rank, random_.In(0, rank))), "}");
      break;
    case 4: {
      const Dims order = Distinct(rank, rank);
      for (size_t d = 0; d < order.size(); ++d) from.dims[static_cast<size_t>(order[d])] = array.dims[d];
      instruction = StrCat("transpose(a0), dimensions={", List(order), "}");
      break;
    }
    case 5: {
      const Dims kept = Sorted(Distinct(rank, random_.In(0, rank)));
      from.dims.clear();
      for (int64_t d : kept) from.dims.push_back(array.dims[static_cast<size_t>(d)]);
      instruction = StrCat("broadcast(a0), dimensions={", List(kept), "}");
      break;
    }
    case 6:
      std::reverse(from.dims.begin(), from.dims.end());
      instruction = "reshape(a0)";
      break;
    default:
      AddOperand(array);
      return;
  }
  AddOperand(from);
  case_.moved = StrCat("  m = ", random_test::Text(array), " ", instruction, "\n");
}

void DimensionNumbersGenerator::MakeBitcast() {
  static const std::vector<std::string> tiles = {"",        ":T(4)",     ":T(2,4)",      ":T(8,128)",    ":T(2,2)(2,1)",
                                                 ":T(3)",   ":T(2,128)", ":T(4,4)(2,1)", ":T(*,4)",      ":T(2,*,3)",
                                                 ":T(1,4)", ":T(128)",   ":T(8)",        ":T(4,2)(4,1)", ":T(2,2,2)"};
  static const std::vector<ElementType> types = {kF32, kS32, kU8, kS4, kBF16, kF64, kPred, kC64};
  const auto layout = [&](size_t rank) {
    return StrCat("{", List(Distinct(static_cast<int64_t>(rank), static_cast<int64_t>(rank))), random_.Of(tiles), "}");
  };
  const ElementType type = random_.Of(types);
  // Factors of the number of elements, multiplied in two ways.
  Dims factors;
  for (int64_t n = random_.In(0, 5); n > 0; --n) factors.push_back(random_.OneIn(30) ? 0 : random_.In(1, 4));
  const auto grouped = [&] {
    Dims dims;
    for (int64_t factor : factors) {
      if (dims.empty() || (dims.size() < 4 && random_.OneIn(2))) dims.push_back(1);
      dims.back() *= factor;
    }
    return dims;
  };
  const Dims from = grouped(), to = grouped();
  AddOperand({type, from}, layout(from.size()));
  // Between types narrower than a byte and others there are no bitcasts with layouts.
  const ElementType result = random_.OneIn(6) ? random_.Of(types) : type;
  const bool narrow = BitsOf(type) < 8 || BitsOf(result) < 8;
  case_.shape = StrCat(random_test::Text({narrow ? type : result, to}), layout(to.size()));
}

}  // namespace hlokit::random_test
