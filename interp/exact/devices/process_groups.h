// SPDX-License-Identifier: Apache-2.0
// The collectives of a program whose devices are in several processes: the processes of each group, and numbers by
// which processes name collectives to each other.
#ifndef HLOKIT_INTERP_EXACT_DEVICES_PROCESS_GROUPS_H_
#define HLOKIT_INTERP_EXACT_DEVICES_PROCESS_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "interp/exact/builder/collective.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/program/program.h"
#include "interp/processes/world.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class ProcessGroups {
 public:
  struct Collective {
    std::vector<ProcessGroup*> groups;  // those of the parameters; null: no device of this process
    uint64_t tag = 0;                   // the same in all processes
  };

  // Makes the communicators of all groups; all processes call it with the same program.
  absl::Status Create(const PreparedProgram& program, int64_t devices, World* world);
  bool created() const { return created_; }

  // Returns true if devices receive messages.
  bool receives() const { return receives_; }
  const Collective& Of(const CollectiveParams* params) const { return collectives_.at(params); }
  // Returns the instruction of a tag of another process; invalid if that runs another program.
  InstructionId InstructionOf(uint64_t tag) const;

 private:
  bool created_ = false;
  bool receives_ = false;
  uint64_t program_ = 0;  // the high half of tags
  absl::flat_hash_map<const CollectiveParams*, Collective> collectives_;
  std::vector<InstructionId> instructions_;  // by the low half
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_DEVICES_PROCESS_GROUPS_H_
