// SPDX-License-Identifier: Apache-2.0
// What a message says beyond the module that was read from it: numbers of computations and instructions, the order of
// its lists, fields without a place in the IR, unknown ones, and older forms of others. With it, writing the module
// gives the message again; parts that have changed since are written as they are now.
#ifndef HLOKIT_PARSER_PROTO_KEPT_FIELDS_H_
#define HLOKIT_PARSER_PROTO_KEPT_FIELDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "google/protobuf/message.h"
#include "ir/core/ids.h"

namespace hlokit {

// Fields of a message, or groups of fields of which one excludes the others, that were not as they are written.
class KeptMessage {
 public:
  // `read` and `written`: the bytes of a message as it was read, and as it would be written.
  static KeptMessage Difference(std::string_view read, std::string_view written);

  bool empty() const { return groups_.empty(); }
  // Replaces fields of a message, as it is written now, by those that were read, unless they have changed.
  void Restore(google::protobuf::Message* written) const;

 private:
  struct Group {
    int number;        // the lowest field number
    uint64_t written;  // hash of its fields as they would be written
    std::string read;  // its fields as they were read
  };
  std::vector<Group> groups_;  // by number
};

struct KeptFields {
  static constexpr int64_t kNoId = INT64_MIN;

  std::vector<int64_t> computation_ids;  // by ComputationId
  std::vector<int64_t> instruction_ids;  // by InstructionId
  std::vector<ComputationId> computation_order;
  // Of computations whose list is not in the order of the module.
  absl::flat_hash_map<uint32_t, std::vector<InstructionId>> instruction_order;
  std::vector<int32_t> frame_ids;                           // as ModuleReadMap
  KeptMessage module;                                       // all but the computations
  absl::flat_hash_map<uint32_t, KeptMessage> computations;  // all but the instructions
  absl::flat_hash_map<uint32_t, KeptMessage> instructions;

  int64_t IdOf(ComputationId id) const { return At(computation_ids, id.value); }
  int64_t IdOf(InstructionId id) const { return At(instruction_ids, id.value); }

 private:
  static int64_t At(const std::vector<int64_t>& ids, uint32_t k) { return k < ids.size() ? ids[k] : kNoId; }
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_KEPT_FIELDS_H_
