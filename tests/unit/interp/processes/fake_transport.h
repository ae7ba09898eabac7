// SPDX-License-Identifier: Apache-2.0
// A transport among threads of one process, each of which stands for a process. It counts the operations by name, and
// completes them late and in random order, as networks do.
#ifndef HLOKIT_TESTS_UNIT_INTERP_PROCESSES_FAKE_TRANSPORT_H_
#define HLOKIT_TESTS_UNIT_INTERP_PROCESSES_FAKE_TRANSPORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "interp/processes/transport.h"
#include "interp/processes/world.h"

namespace hlokit::interp {

// What the processes share.
struct FakeNetwork {
  struct Post {
    std::vector<std::byte> bytes;
    std::vector<Transport::Range> to;
  };
  explicit FakeNetwork(int count) : size(count) {}

  const int size;
  std::mutex mutex;
  // By communicator and number of the operation, the bytes of each member that has come so far.
  std::map<std::pair<int, uint64_t>, std::map<int, Post>> posts;
  // By members, and how many of the same they have made before.
  std::map<std::pair<std::vector<int>, int>, int> communicators;
  std::map<std::pair<int, int>, std::deque<std::pair<int, std::string>>> messages;  // by target and tag
  std::map<std::string, int> calls;
  bool loses_data = false;  // nothing arrives
};

class FakeTransport : public Transport {
 public:
  FakeTransport(FakeNetwork* network, int rank)
      : network_(*network), rank_(rank), random_(static_cast<unsigned>(rank)) {
    std::vector<int> all;
    for (int r = 0; r < network->size; ++r) all.push_back(r);
    communicators_.push_back({0, all, rank, 0});
  }

  int rank() const override { return rank_; }
  int size() const override { return network_.size; }
  bool is_one_host() const override { return true; }
  const char* error() const override { return "fake"; }

  int CreateCommunicator(const int* ranks, int count, uint64_t) override {
    const std::lock_guard<std::mutex> lock(network_.mutex);
    const std::vector<int> members(ranks, ranks + count);
    const auto id = static_cast<int>(network_.communicators.size()) + 1;
    const int shared = network_.communicators.try_emplace({members, made_[members]++}, id).first->second;
    const auto self = std::find(members.begin(), members.end(), rank_);
    communicators_.push_back({shared, members, static_cast<int>(self - members.begin()), 0});
    return static_cast<int>(communicators_.size()) - 1;
  }
  bool Broadcast(void*, int64_t) override { return false; }

  Request Allgather(int communicator, const void* in, int64_t bytes, void* out) override {
    return Start("Allgather", communicator, in, bytes, {}, [=, this](const Posts& posts) {
      for (size_t m = 0; m < posts.size(); ++m)
        Copy(out, static_cast<int64_t>(m) * bytes, posts[m].bytes.data(), bytes);
      return true;
    });
  }
  Request Allgatherv(int communicator, const void* in, void* out, const Range* from, int64_t) override {
    const Communicator& c = communicators_[static_cast<size_t>(communicator)];
    const std::vector<Range> ranges(from, from + c.members.size());
    return Start("Allgatherv", communicator, in, ranges[static_cast<size_t>(c.self)].bytes, {},
                 [=, this](const Posts& posts) {
                   for (size_t m = 0; m < posts.size(); ++m) {
                     Copy(out, ranges[m].begin, posts[m].bytes.data(), ranges[m].bytes);
                   }
                   return true;
                 });
  }
  Request Exchange(int communicator, const void* in, const Range* to, void* out, const Range* from, int64_t,
                   bool neighbors) override {
    const Communicator& c = communicators_[static_cast<size_t>(communicator)];
    const std::vector<Range> targets(to, to + c.members.size()), ranges(from, from + c.members.size());
    int64_t bytes = 0;
    for (const Range& r : targets) bytes = std::max(bytes, r.begin + r.bytes);
    const auto self = static_cast<size_t>(c.self);
    return Start(neighbors ? "Exchange neighbors" : "Exchange", communicator, in, bytes, targets,
                 [=, this](const Posts& posts) {
                   for (size_t m = 0; m < posts.size(); ++m) {
                     const Range sent = posts[m].to[self];
                     if (sent.bytes != ranges[m].bytes) return false;
                     Copy(out, ranges[m].begin, posts[m].bytes.data() + sent.begin, sent.bytes);
                   }
                   return true;
                 });
  }
  // Of s32, added: what the tests use.
  Request Allreduce(int communicator, const void* in, void* out, int64_t count, Integer type, Reduction op) override {
    if (type != Integer::kS32 || op != Reduction::kAdd) return kFailed;
    const int64_t bytes = count * static_cast<int64_t>(sizeof(int32_t));
    return Start("Allreduce", communicator, in, bytes, {}, [=, this](const Posts& posts) {
      const std::vector<int32_t> sums = Sums(posts, count);
      Copy(out, 0, sums.data(), bytes);
      return true;
    });
  }
  Request ReduceScatter(int communicator, const void* in, void* out, const int64_t* counts, Integer type,
                        Reduction op) override {
    if (type != Integer::kS32 || op != Reduction::kAdd) return kFailed;
    const Communicator& c = communicators_[static_cast<size_t>(communicator)];
    int64_t total = 0, first = 0;
    for (size_t m = 0; m < c.members.size(); ++m) {
      if (static_cast<int>(m) < c.self) first += counts[m];
      total += counts[m];
    }
    const int64_t own = counts[c.self];
    return Start("ReduceScatter", communicator, in, total * static_cast<int64_t>(sizeof(int32_t)), {},
                 [=, this](const Posts& posts) {
                   const std::vector<int32_t> sums = Sums(posts, total);
                   Copy(out, 0, sums.data() + first, own * static_cast<int64_t>(sizeof(int32_t)));
                   return true;
                 });
  }

  int Test(Request request) override {
    const std::lock_guard<std::mutex> lock(network_.mutex);
    Open& open = open_[static_cast<size_t>(request)];
    if (network_.loses_data || random_() % 4 != 0) return 0;
    if (!open.finish) return 1;  // a message
    const Communicator& c = communicators_[static_cast<size_t>(open.communicator)];
    const std::map<int, FakeNetwork::Post>& posts = network_.posts[{c.shared, open.number}];
    if (posts.size() < c.members.size()) return 0;
    Posts in_order;
    for (const auto& [member, post] : posts) in_order.push_back(post);
    return open.finish(in_order) ? 1 : -1;
  }

  bool Send(int rank, int tag, const void* data, int64_t bytes) override {
    const std::lock_guard<std::mutex> lock(network_.mutex);
    ++network_.calls["Send"];
    network_.messages[{rank, tag}].emplace_back(
        rank_, std::string(static_cast<const char*>(data), static_cast<size_t>(bytes)));
    return true;
  }
  int64_t Probe(int rank, int tag, int* source) override {
    const std::lock_guard<std::mutex> lock(network_.mutex);
    if (network_.loses_data) return -1;
    for (const auto& [from, text] : network_.messages[{rank_, tag}]) {
      if (rank != kAnySource && rank != from) continue;
      *source = from;
      return static_cast<int64_t>(text.size());
    }
    return -1;
  }
  Request Receive(int rank, int tag, void* data, int64_t bytes) override {
    const std::lock_guard<std::mutex> lock(network_.mutex);
    std::deque<std::pair<int, std::string>>& box = network_.messages[{rank_, tag}];
    const auto message = std::find_if(box.begin(), box.end(), [&](const auto& m) { return m.first == rank; });
    if (message == box.end()) return kFailed;
    Copy(data, 0, message->second.data(), bytes);
    box.erase(message);
    open_.push_back({});
    return static_cast<Request>(open_.size()) - 1;
  }
  int TestSent() override { return network_.loses_data ? 0 : 1; }
  void Finalize() override {}

 private:
  using Posts = std::vector<FakeNetwork::Post>;
  struct Communicator {
    int shared;
    std::vector<int> members;
    int self;
    uint64_t operations;
  };
  struct Open {
    int communicator = 0;
    uint64_t number = 0;
    std::function<bool(const Posts&)> finish;
  };

  static void Copy(void* to, int64_t offset, const void* from, int64_t bytes) {
    if (bytes > 0) std::memcpy(static_cast<std::byte*>(to) + offset, from, static_cast<size_t>(bytes));
  }
  static std::vector<int32_t> Sums(const Posts& posts, int64_t count) {
    std::vector<int32_t> sums(static_cast<size_t>(count));
    for (const FakeNetwork::Post& post : posts) {
      for (size_t i = 0; i < sums.size(); ++i) {
        int32_t value = 0;
        std::memcpy(&value, post.bytes.data() + i * sizeof(value), sizeof(value));
        sums[i] += value;
      }
    }
    return sums;
  }
  Request Start(const std::string& name, int communicator, const void* in, int64_t bytes, std::vector<Range> to,
                std::function<bool(const Posts&)> finish) {
    const std::lock_guard<std::mutex> lock(network_.mutex);
    Communicator& c = communicators_[static_cast<size_t>(communicator)];
    if (c.self == 0) ++network_.calls[name];
    FakeNetwork::Post& post = network_.posts[{c.shared, c.operations}][c.self];
    const auto* const begin = static_cast<const std::byte*>(in);
    post = {std::vector<std::byte>(begin, begin + bytes), std::move(to)};
    open_.push_back({communicator, c.operations++, std::move(finish)});
    return static_cast<Request>(open_.size()) - 1;
  }

  FakeNetwork& network_;
  const int rank_;
  std::minstd_rand random_;
  std::vector<Communicator> communicators_;
  std::map<std::vector<int>, int> made_;
  std::deque<Open> open_;
};

// A process whose waits end: all processes wait as soon as one waits for long.
class FakeWorld : public World {
 public:
  FakeWorld(FakeTransport* transport, double timeout_seconds) : World(transport, timeout_seconds) {}

  void ReportIdle(absl::Span<const DeviceState> states) override {
    states_.assign(states.begin(), states.end());
    ++idle_reports;
  }
  void ReportProgress(absl::Span<const DeviceState>) override {}
  bool AllWait(std::vector<DeviceState>* states) override {
    *states = states_;
    return all_wait;
  }
  void BeginCall(const char* what) override { calls.push_back(what); }
  void EndCall() override {}

  bool all_wait = false;
  int idle_reports = 0;
  std::vector<std::string> calls;

 private:
  std::vector<DeviceState> states_;
};

// Runs body(world) for each of `count` processes, in threads.
inline void RunProcesses(FakeNetwork* network, const std::function<void(FakeWorld&)>& body,
                         double timeout_seconds = 30) {
  std::vector<std::thread> threads;
  for (int r = 0; r < network->size; ++r) {
    threads.emplace_back([=, &body] {
      FakeTransport transport(network, r);
      FakeWorld world(&transport, timeout_seconds);
      body(world);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace hlokit::interp

#endif  // HLOKIT_TESTS_UNIT_INTERP_PROCESSES_FAKE_TRANSPORT_H_
