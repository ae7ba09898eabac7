// SPDX-License-Identifier: Apache-2.0
// Collectives of one device.
#include <string>
#include <vector>

#include "tests/random/module_generator.h"

namespace hlokit::random_test {

bool ModuleGenerator::EmitDevices(Opcode opcode) {
  const Array array{random_.Of(kNumbers), FullDims(1, 2)};
  const std::string text = Text(array);
  const std::string groups = "replica_groups={{0}}";
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kReplicaId:
      Add({kU32, {}}, ToString(opcode), {});
      return true;
    case ShapeRule::kAllGather:
      Add(array, "all-gather", {Need(array)}, StrCat(groups, ", dimensions={0}"));
      return true;
    case ShapeRule::kAllReduce:
      if (opcode == Opcode::kAllReduce) {
        Add(array, "all-reduce", {Need(array)}, StrCat(groups, ", to_apply=", Function(array.type)));
        return true;
      }
      Add(array, "all-reduce-done",
          {Line(text, "all-reduce-start", {Need(array)}, StrCat(groups, ", to_apply=", Function(array.type)))});
      return true;
    case ShapeRule::kAllGatherStart:
      Add(array, "all-gather-done",
          {Line(StrCat("(", text, ", ", text, ")"), "all-gather-start", {Need(array)},
                StrCat(groups, ", dimensions={0}"))});
      return true;
    case ShapeRule::kAllToAll:
      Add(array, "all-to-all", {Need(array)}, StrCat(groups, ", dimensions={0}"));
      return true;
    case ShapeRule::kReduceScatter:
      Add(array, "reduce-scatter", {Need(array)}, StrCat(groups, ", dimensions={0}, to_apply=", Function(array.type)));
      return true;
    case ShapeRule::kCollectiveBroadcast:
      Add(array, "collective-broadcast", {Need(array)}, groups);
      return true;
    case ShapeRule::kCollectiveReduce: {
      const std::string apply = StrCat(groups, ", to_apply=", Function(array.type));
      if (random_.OneIn(2)) {
        Add(array, "collective-reduce", {Need(array)}, apply);
      } else {
        Add(array, "collective-reduce", {Need(array), Line("s32[1]", "constant", {"{0}"})},
            StrCat(apply, ", has_dynamic_root=true"));
      }
      return true;
    }
    case ShapeRule::kCollectivePermute:
      Add(array, "collective-permute", {Need(array)}, "source_target_pairs={{0,0}}");
      return true;
    case ShapeRule::kCollectivePermuteStart:
      Add(array, "collective-permute-done",
          {Line(StrCat("(", text, ", ", text, ")"), "collective-permute-start", {Need(array)},
                "source_target_pairs={{0,0}}")});
      return true;
    case ShapeRule::kRaggedAllToAll: {
      const auto one = [&](int64_t v) { return Line("s32[1]", "constant", {StrCat("{", v, "}")}); };
      const std::vector<std::string> operands = {Need(array), Need(array), one(0), one(1), one(0), one(1)};
      Add(array, "ragged-all-to-all", operands, groups);
      return true;
    }
    case ShapeRule::kDone: {
      const Opcode start = opcode == Opcode::kAllReduceDone   ? Opcode::kAllReduceStart
                           : opcode == Opcode::kAllGatherDone ? Opcode::kAllGatherStart
                                                              : Opcode::kCollectivePermuteStart;
      return EmitDevices(start);
    }
    default:
      return false;
  }
}

}  // namespace hlokit::random_test
