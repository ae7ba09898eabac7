// SPDX-License-Identifier: Apache-2.0
// The client of a plugin: devices with their memories, over a runtime::Client.
#ifndef HLOKIT_PJRT_CLIENT_CLIENT_H_
#define HLOKIT_PJRT_CLIENT_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/processes/process_network.h"
#include "interp/processes/world.h"
#include "io/metrics/metrics.h"
#include "ir/graph/context.h"
#include "ir/types/shape.h"
#include "pjrt/c_api/types.h"
#include "pjrt/client/client_config.h"
#include "pjrt/client/processes.h"
#include "pjrt/client/send_thread.h"
#include "pjrt/client/simulation_log.h"
#include "pjrt/client/topology.h"
#include "runtime/client/client.h"

// One kind of memory of one device. All kinds are memory of this process.
struct PJRT_Memory {
  const PJRT_Memory_FunctionTable* functions;  // first, for callers that attach values
  PJRT_Device* device = nullptr;
  int id = 0;
  int kind_id = 0;
  std::string kind;
  std::string debug_string;
  std::string to_string;

  // Values of callers, by key.
  struct UserData {
    void* data = nullptr;
    void (*destructor)(void* data) = nullptr;
  };
  std::mutex mutex;
  std::map<void*, UserData> user_data;

  PJRT_Memory();
  ~PJRT_Memory();
};

struct PJRT_Device {
  PJRT_Client* client = nullptr;
  PJRT_DeviceDescription* description = nullptr;
  // Null, as are the memories, for a device of another process.
  hlokit::runtime::Device* runtime = nullptr;
  std::vector<PJRT_Memory*> memories;  // the default one first

  // Bytes of buffers.
  std::atomic<int64_t> bytes_in_use{0};
  std::atomic<int64_t> peak_bytes_in_use{0};
  std::atomic<int64_t> allocations{0};
  void AddBytes(int64_t bytes);
};

struct PJRT_Client {
  hlokit::pjrt::ClientConfig config;
  std::unique_ptr<PJRT_TopologyDescription> topology;
  hlokit::runtime::Metrics metrics;
  std::unique_ptr<hlokit::interp::ProcessNetwork> network;  // null: there is one process
  hlokit::pjrt::SendThread sender;                          // to other processes
  std::unique_ptr<hlokit::runtime::Client> runtime;
  std::deque<PJRT_Device> devices;
  std::vector<PJRT_Device*> device_pointers;
  std::vector<PJRT_Device*> addressable_devices;  // those of this process
  std::deque<PJRT_Memory> memories;
  std::vector<PJRT_Memory*> memory_pointers;
  std::mutex execute_mutex;                   // held while the parts of a run on several devices are enqueued
  std::atomic<int64_t> programs_compiled{0};  // numbers the dumps
  std::unique_ptr<hlokit::pjrt::SimulationLog> simulation_log;  // null: no reports

  // Functions that callers have registered, by type.
  std::mutex callbacks_mutex;
  std::multimap<int, std::pair<void (*)(void* args, void* user_arg), void*>> callbacks;

  // Returns a shape, and the context that owns it, which never changes.
  std::pair<std::shared_ptr<hlokit::Context>, hlokit::Shape> ShapeOf(hlokit::ElementType type,
                                                                     absl::Span<const int64_t> dims);
  // Returns the device with a global id; null if there is none.
  PJRT_Device* FindDevice(int64_t id);
  // Returns the processes of some devices, in this order, for programs that run on these; null if this one has all, or
  // none.
  std::shared_ptr<hlokit::interp::World> WorldOf(const std::vector<PJRT_Device*>& of);

 private:
  using ShapeKey = std::pair<hlokit::ElementType, std::vector<int64_t>>;
  std::mutex shapes_mutex_;
  std::map<ShapeKey, std::pair<std::shared_ptr<hlokit::Context>, hlokit::Shape>> shapes_;
  std::mutex worlds_mutex_;
  std::map<std::vector<int>, std::shared_ptr<hlokit::interp::World>> worlds_;  // by ids of devices
};

namespace hlokit::pjrt {

// `store`: of several processes.
absl::StatusOr<std::unique_ptr<PJRT_Client>> CreateClient(const ClientConfig& config, const KeyValueStore& store = {});

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_CLIENT_H_
