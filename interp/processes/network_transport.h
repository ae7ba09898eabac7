// SPDX-License-Identifier: Apache-2.0
// The transport of some processes of a ProcessNetwork: each operation sends its bytes at once, and is complete when
// those of the others have come.
#ifndef HLOKIT_INTERP_PROCESSES_NETWORK_TRANSPORT_H_
#define HLOKIT_INTERP_PROCESSES_NETWORK_TRANSPORT_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "interp/processes/process_network.h"
#include "interp/processes/transport.h"

namespace hlokit::interp {

class NetworkTransport : public Transport {
 public:
  // `processes`: ascending; the rank of each is its position. This one is among them.
  NetworkTransport(ProcessNetwork* network, std::vector<int> processes, uint64_t world, double timeout_seconds);

  // Of one run. `program`: what must be the same in all processes.
  void BeginRun(uint64_t program, std::string_view name);
  // `status`: of this process; what others that wait for it get.
  void EndRun(const absl::Status& status);
  // Returns an error if others have ended, have had an error, run another program, or are late.
  absl::Status Check();
  int process(int rank) const { return processes_[static_cast<size_t>(rank)]; }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(processes_.size()); }
  bool is_one_host() const override { return true; }
  const char* error() const override { return error_.c_str(); }
  const char* error_prefix() const override { return ""; }
  int CreateCommunicator(const int* ranks, int count, uint64_t name) override;
  bool Broadcast(void* data, int64_t bytes) override;
  Request Allgather(int communicator, const void* in, int64_t bytes, void* out) override;
  Request Allgatherv(int communicator, const void* in, void* out, const Range* from, int64_t total) override;
  Request Exchange(int communicator, const void* in, const Range* to, void* out, const Range* from, int64_t total,
                   bool neighbors) override;
  Request Allreduce(int communicator, const void* in, void* out, int64_t count, Integer type, Reduction op) override;
  Request ReduceScatter(int communicator, const void* in, void* out, const int64_t* counts, Integer type,
                        Reduction op) override;
  int Test(Request request) override;
  bool Send(int rank, int tag, const void* data, int64_t bytes) override;
  int64_t Probe(int rank, int tag, int* source) override;
  Request Receive(int rank, int tag, void* data, int64_t bytes) override;
  int TestSent() override { return 1; }
  void Finalize() override {}

 private:
  using Clock = std::chrono::steady_clock;
  struct Communicator {
    uint64_t name = 0;
    std::vector<int> ranks;
    size_t self = 0;
    uint64_t operations = 0;  // that the run has started
  };
  // What an operation waits for.
  struct Operation {
    int communicator = 0;
    uint64_t number = 0;
    std::vector<Range> from;            // by member: where its bytes go in `out`, and how many they are
    std::vector<bool> here;             // by member: they have come
    std::vector<std::string> operands;  // of a reduction, by member
    std::byte* out = nullptr;
    bool reduces = false;
    Integer type = Integer::kS8;
    Reduction reduction = Reduction::kAdd;
    bool in_use = false;
  };

  ProcessNetwork::Label LabelOf(uint64_t channel, uint64_t number) const { return {world_, run_, channel, number}; }
  // Begins an operation that sends in[to[m]] to member m.
  Request Start(int communicator, const void* in, absl::Span<const Range> to, Operation operation);
  bool SendTo(int rank, uint64_t channel, uint64_t number, const void* data, int64_t bytes);
  bool Fail(std::string text);

  ProcessNetwork& network_;
  const std::vector<int> processes_;
  const uint64_t world_;
  const double timeout_seconds_;
  int rank_ = 0;
  uint64_t run_ = 0;
  std::string program_;  // its number, and its name
  std::string error_;
  bool error_is_of_others_ = false;
  bool others_ended_ = false;  // when last looked at
  Clock::time_point heard_;    // when something came
  int64_t polls_ = 0;
  std::vector<Communicator> communicators_;
  std::vector<Operation> operations_;
  std::map<std::pair<int, int>, uint64_t> sent_, received_;  // messages, by rank and tag
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSES_NETWORK_TRANSPORT_H_
