// SPDX-License-Identifier: Apache-2.0
// Counts what a thread does for a traced program, so that a profile can tell what the host would take for it on another
// machine: a function of the program, unlike the time that it took here.
#ifndef HLOKIT_RUNTIME_OBSERVE_HOST_WORK_H_
#define HLOKIT_RUNTIME_OBSERVE_HOST_WORK_H_

#include <cstdint>

namespace hlokit::runtime {

// Totals of a thread since it began; they wrap.
struct HostWork {
  uint32_t ops = 0;        // calls of ops
  uint32_t nodes = 0;      // nodes recorded
  uint32_t syncs = 0;      // step markers and fetches that look a graph up
  uint32_t visited = 0;    // nodes that these collect and hash
  uint32_t lowered = 0;    // nodes lowered to HLO
  uint32_t calls = 0;      // calls of executables
  uint32_t buffers = 0;    // arguments and results of calls
  uint32_t transfers = 0;  // arrays sent to a device
  uint32_t fetches = 0;    // arrays copied to the host
  uint64_t sent_bytes = 0;
  uint64_t fetched_bytes = 0;
};

// Returns what was done between two totals.
inline HostWork operator-(const HostWork& a, const HostWork& b) {
  return {a.ops - b.ops,
          a.nodes - b.nodes,
          a.syncs - b.syncs,
          a.visited - b.visited,
          a.lowered - b.lowered,
          a.calls - b.calls,
          a.buffers - b.buffers,
          a.transfers - b.transfers,
          a.fetches - b.fetches,
          a.sent_bytes - b.sent_bytes,
          a.fetched_bytes - b.fetched_bytes};
}

// The totals of this thread.
inline constinit thread_local HostWork host_work;

// CPU time and work of a thread at a moment.
struct ThreadCounters {
  int64_t cpu_ns = -1;  // negative: unknown
  uint64_t thread = 0;  // threads that share a line of a profile count separately
  HostWork work;
};
// Returns those of this thread.
ThreadCounters ReadThreadCounters();

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_OBSERVE_HOST_WORK_H_
