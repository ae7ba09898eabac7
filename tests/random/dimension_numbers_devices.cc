// SPDX-License-Identifier: Apache-2.0
// Collectives of up to eight devices.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/random/dimension_numbers_generator.h"

namespace hlokit::random_test {

// Returns groups of some size of the ids below `ids`, and sets the size.
std::string DimensionNumbersGenerator::Groups(int64_t ids, int64_t* size) {
  *size = ids;
  if (random_.OneIn(5)) return "{}";
  do {
    *size = random_.In(1, ids);
  } while (ids % *size != 0);
  const int64_t count = ids / *size;
  if (random_.OneIn(4)) {
    const std::string text = StrCat("[", count, ",", *size, "]<=[");
    return count > 1 && *size > 1 && random_.OneIn(2) ? StrCat(text, *size, ",", count, "]T(1,0)")
                                                      : StrCat(text, ids, "]");
  }
  const Dims order = Odd(Distinct(ids, ids), ids);
  std::string text;
  for (size_t i = 0; i < order.size(); ++i) {
    StrAppend(&text, i == 0 ? "{" : i % static_cast<size_t>(*size) == 0 ? "},{" : ",", order[i]);
  }
  return StrCat("{", text, "}}");
}

bool DimensionNumbersGenerator::MakeCollective() {
  static const std::vector<int64_t> counts = {1, 2, 2, 4};
  case_.replicas = random_.Of(counts);
  case_.partitions = random_.OneIn(2) ? 1 : random_.In(1, 2);
  // Groups of replicas, of partitions or of all devices.
  const bool channel = random_.OneIn(2), global = channel && random_.OneIn(2);
  const bool partitions = (case_.opcode == Opcode::kAllToAll || case_.opcode == Opcode::kCollectiveBroadcast ||
                           case_.opcode == Opcode::kCollectivePermute) &&
                          channel;
  const int64_t ids = global && !partitions ? case_.replicas * case_.partitions
                      : partitions          ? case_.partitions
                                            : case_.replicas;
  int64_t size = 1;
  const std::string groups = Groups(ids, &size);
  // Of each replica, in all partitions.
  const int64_t devices = channel && !global && !partitions ? size * case_.partitions : size;
  const ElementType type = RealType();
  Dims array = SomeDims(1, 3), result = array;
  const auto rank = static_cast<int64_t>(array.size());
  const int64_t dim = random_.In(0, rank - 1);
  const auto at = static_cast<size_t>(dim);
  if (channel) Attribute("channel_id", "1");
  case_.shape = random_test::Text({type, array});
  if (case_.opcode == Opcode::kCollectivePermute) {
    AddOperand({type, array});
    std::string pairs;
    const int64_t count = random_.In(0, ids);
    const Dims from = Odd(Distinct(ids, count), ids), to = Odd(Distinct(ids, count), ids);
    for (size_t i = 0; i < from.size() && i < to.size(); ++i) {
      StrAppend(&pairs, i == 0 ? "" : ",", "{", from[i], ",", to[i], "}");
    }
    Attribute("source_target_pairs", StrCat("{", pairs, "}"));
    return true;
  }
  Attribute("replica_groups", groups);
  if (case_.opcode == Opcode::kCollectiveBroadcast) {
    AddOperand({type, array});
    return true;
  }
  if (global && case_.opcode != Opcode::kAllToAll && case_.opcode != Opcode::kRaggedAllToAll) {
    Attribute("use_global_device_ids", "true");
  }
  if (case_.opcode == Opcode::kAllReduce || case_.opcode == Opcode::kCollectiveReduce) {
    const ElementType reduced = Near(type);
    AddOperand({type, array});
    if (random_.OneIn(4)) {
      const Array second = {type, SomeDims(0, 2)};
      AddOperand(second);
      case_.shape = StrCat("(", case_.shape, ", ", random_test::Text(second), ")");
    }
    if (case_.opcode == Opcode::kCollectiveReduce && random_.OneIn(2)) {
      AddIndices({kS32, {static_cast<int64_t>(case_.operands.size())}}, devices - 1);
      Attribute("has_dynamic_root", "true");
    }
    Attribute("to_apply", Reducer({reduced}, {reduced}));
  } else if (case_.opcode == Opcode::kAllGather || case_.opcode == Opcode::kReduceScatter) {
    const bool gathers = case_.opcode == Opcode::kAllGather;
    (gathers ? result : array)[at] = array[at] * devices;
    AddOperand({type, array});
    case_.shape = random_test::Text({type, result});
    ListAttribute("dimensions", Odd({dim}, rank));
    if (!gathers) Attribute("to_apply", Reducer({type}, {type}));
  } else if (case_.opcode == Opcode::kAllToAll) {
    if (random_.OneIn(2)) {
      const std::string shape = case_.shape;
      for (int64_t i = 0; i < devices; ++i) {
        AddOperand({type, array});
        case_.shape = i == 0 ? StrCat("(", shape) : StrCat(case_.shape, ", ", shape);
      }
      case_.shape += ")";
    } else {
      array[at] *= devices;
      case_.shape = random_test::Text({type, array});
      AddOperand({type, array});
      ListAttribute("dimensions", Odd({dim}, rank));
    }
  } else if (case_.opcode == Opcode::kRaggedAllToAll) {
    array[0] = random_.OneIn(8) ? array[0] : devices + 2;
    AddOperand({type, array});
    array[0] = random_.OneIn(8) ? Size() : 2 * devices + 2;
    case_.shape = random_test::Text({type, array});
    AddOperand({random_.OneIn(20) ? RealType() : type, array});
    const ElementType index = random_.OneIn(2) ? kS32 : kS64;
    if (random_.OneIn(3)) {
      const Dims sizes = random_.OneIn(4) ? Dims{devices, random_.In(1, 2)} : Dims{devices * random_.In(1, 2)};
      for (int i = 0; i < 4; ++i) AddIndices({index, sizes}, 2);
      return true;
    }
    // Each device sends as many rows to each other one, which lie one after the other.
    const int64_t rows = random_.In(0, 2);
    const auto numbers = [&](int64_t step, int64_t start) {
      std::vector<std::string> elements;
      for (int64_t i = 0; i < devices; ++i) elements.push_back(StrCat(start + i * step));
      AddValues({index, {devices}}, "", elements);
    };
    numbers(random_.In(0, 1), 0);
    numbers(0, rows);
    numbers(rows, random_.In(0, 1));
    numbers(0, rows);
  } else {
    return false;
  }
  return true;
}

}  // namespace hlokit::random_test
