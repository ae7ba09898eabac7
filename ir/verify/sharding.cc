// SPDX-License-Identifier: Apache-2.0
// Verifies shardings against the shapes of their instructions. (calls.cc checks agreement with neighbors.)
#include "ir/sharding/sharding.h"

#include "ir/core/str_cat.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {

void CheckSharding(VerifierContext& v, Instruction i, ListId id) {
  // A module has few distinct shardings and shapes; each pair is decoded once.
  const Shape shape = i.shape().WithoutLayout();
  const uint64_t key = uint64_t{id.value} << 32 | shape.id().value;
  if (key == v.last_sharding || v.sound_shardings.contains(key)) return;
  // A count of one only means that the header omits it.
  const int64_t partitions = v.module.header().num_partitions;
  const Sharding sharding = DecodeSharding(v.module.context(), id);
  if (const std::optional<std::string> wrong = Validate(sharding, shape, partitions > 1 ? partitions : 0)) {
    v.Report(i, DiagnosticKind::kSharding, *wrong);
    return;
  }
  v.last_sharding = key;
  v.sound_shardings.insert(key);
}

}  // namespace hlokit::verify_internal
