// SPDX-License-Identifier: Apache-2.0
// Items of work that the processes of a run take from one queue.
#ifndef HLOKIT_INTERP_PROCESSES_SHARED_ITEMS_H_
#define HLOKIT_INTERP_PROCESSES_SHARED_ITEMS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "interp/processes/mpi_session.h"

namespace hlokit::interp {

// Calls `work(item, &result)` for the items 0 to `count`, each in the process that takes it first, and returns all
// results in all processes; "" of items that nobody took. A process whose work returns false takes no further ones. To
// be called by all processes, after which none may read flags or files.
absl::StatusOr<std::vector<std::string>> ShareItems(MpiSession* session, size_t count,
                                                    const std::function<bool(size_t, std::string*)>& work);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSES_SHARED_ITEMS_H_
