// SPDX-License-Identifier: Apache-2.0
// The connections of processes with the first one: real processes, forked.
#include "interp/processes/control_channel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

// Has a broadcast, through pipes; the rest is not used.
class PipeTransport : public Transport {
 public:
  PipeTransport(int rank, std::vector<int> to, int from) : rank_(rank), to_(std::move(to)), from_(from) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(to_.size()); }
  bool is_one_host() const override { return true; }
  const char* error() const override { return "the pipe is closed"; }
  bool Broadcast(void* data, int64_t bytes) override {
    const auto size = static_cast<size_t>(bytes);
    if (rank_ != 0) return read(from_, data, size) == bytes;
    for (size_t r = 1; r < to_.size(); ++r) {
      if (write(to_[r], data, size) != bytes) return false;
    }
    return true;
  }
  int CreateCommunicator(const int*, int, uint64_t) override { return -1; }
  Request Allgather(int, const void*, int64_t, void*) override { return kFailed; }
  Request Allgatherv(int, const void*, void*, const Range*, int64_t) override { return kFailed; }
  Request Exchange(int, const void*, const Range*, void*, const Range*, int64_t, bool) override { return kFailed; }
  Request Allreduce(int, const void*, void*, int64_t, Integer, Reduction) override { return kFailed; }
  Request ReduceScatter(int, const void*, void*, const int64_t*, Integer, Reduction) override { return kFailed; }
  int Test(Request) override { return -1; }
  bool Send(int, int, const void*, int64_t) override { return false; }
  int64_t Probe(int, int, int*) override { return -1; }
  Request Receive(int, int, void*, int64_t) override { return kFailed; }
  int TestSent() override { return 1; }
  void Finalize() override {}

 private:
  const int rank_;
  const std::vector<int> to_;
  const int from_;
};

struct Ended {
  std::vector<int> exit_codes;  // by rank; of a killed process its signal, negative
  std::string text;             // that they wrote to standard error, and to `out`
};

// Runs body(rank, channel, out) in processes of its own; `out` is a file descriptor.
Ended RunChannels(int count, const std::function<void(int, ControlChannel&, int)>& body, double timeout_seconds = 5) {
  int shown[2];
  EXPECT_EQ(pipe(shown), 0);
  std::vector<int> to(static_cast<size_t>(count)), from(static_cast<size_t>(count));
  for (size_t r = 0; r < to.size(); ++r) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    from[r] = ends[0];
    to[r] = ends[1];
  }
  std::fflush(stdout);  // which children would write again
  std::vector<pid_t> children;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    dup2(shown[1], STDERR_FILENO);
    PipeTransport transport(rank, to, from[static_cast<size_t>(rank)]);
    absl::StatusOr<std::unique_ptr<ControlChannel>> channel = ControlChannel::Open(&transport, "test", timeout_seconds);
    if (!channel.ok()) _exit(99);
    body(rank, **channel, shown[1]);
    channel->reset();
    _exit(0);
  }
  close(shown[1]);
  for (size_t r = 0; r < to.size(); ++r) {
    close(to[r]);
    close(from[r]);
  }
  Ended ended;
  char bytes[4096];
  for (ssize_t n = 0; (n = read(shown[0], bytes, sizeof(bytes))) > 0;) ended.text.append(bytes, static_cast<size_t>(n));
  close(shown[0]);
  for (pid_t child : children) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    ended.exit_codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  return ended;
}

void Show(int out, const std::string& text) { EXPECT_GT(write(out, text.data(), text.size()), 0); }
[[noreturn]] void WaitForEver() {
  for (;;) pause();
}

TEST(ControlChannelTest, EndsTogether) {
  const Ended ended = RunChannels(4, [](int, ControlChannel& channel, int) {
    channel.EndSetup();
    channel.Finish();
  });
  EXPECT_EQ(ended.exit_codes, (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(ended.text, "");
}

TEST(ControlChannelTest, EachNumberOfTheQueueGoesToOneProcess) {
  const Ended ended = RunChannels(3, [](int, ControlChannel& channel, int out) {
    for (int i = 0; i < 10; ++i) Show(out, StrCat(channel.NextItem(), "\n"));
    channel.Finish();
  });
  std::set<std::string> items;
  for (size_t at = 0; at < ended.text.size();) {
    const size_t end = ended.text.find('\n', at);
    EXPECT_TRUE(items.insert(ended.text.substr(at, end - at)).second);
    at = end + 1;
  }
  EXPECT_EQ(items.size(), 30u);
  EXPECT_TRUE(items.contains("0") && items.contains("29"));
}

TEST(ControlChannelTest, KilledProcessEndsTheOthers) {
  for (int victim : {0, 1, 2}) {
    const auto began = std::chrono::steady_clock::now();
    const Ended ended = RunChannels(3, [&](int rank, ControlChannel& channel, int) {
      channel.EndSetup();
      if (rank != victim) WaitForEver();
      raise(SIGKILL);
    });
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(ended.exit_codes[static_cast<size_t>(rank)], rank == victim ? -SIGKILL : 3) << victim;
    }
    EXPECT_EQ(ended.text, StrCat("test: error: process ", victim, " of 3 has ended unexpectedly\n"));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  }
}

TEST(ControlChannelTest, StoppedProcessCountsAsDead) {
  const Ended ended = RunChannels(
      2,
      [](int rank, ControlChannel& channel, int) {
        channel.EndSetup();
        if (rank == 0) WaitForEver();
        // For longer than the limit; then it learns that the first one is gone.
        const pid_t self = getpid();
        if (fork() == 0) {
          std::this_thread::sleep_for(std::chrono::seconds(6));
          kill(self, SIGCONT);
          _exit(0);
        }
        raise(SIGSTOP);
        WaitForEver();
      },
      /*timeout_seconds=*/2);
  EXPECT_EQ(ended.exit_codes, (std::vector<int>{3, 3}));
  EXPECT_TRUE(ended.text.starts_with("test: error: process 1 of 2 has not answered for 2 s\n")) << ended.text;
}

TEST(ControlChannelTest, ErrorOfTheLowestRankIsPrintedOnce) {
  const Ended ended = RunChannels(3, [](int rank, ControlChannel& channel, int) {
    if (rank == 0) {
      channel.EndSetup();
      WaitForEver();
    }
    channel.Fail(1, StrCat("error of process ", rank, "\n"));
  });
  EXPECT_EQ(ended.exit_codes, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(ended.text, "error of process 1\n");
}

TEST(ControlChannelTest, ErrorDoesNotWaitForAProcessThatReads) {
  const Ended ended = RunChannels(
      2,
      [](int rank, ControlChannel& channel, int) {
        if (rank == 0) WaitForEver();
        channel.Fail(2, "bad flag\n");
      },
      /*timeout_seconds=*/2);
  EXPECT_EQ(ended.exit_codes, (std::vector<int>{2, 2}));
  EXPECT_EQ(ended.text, "bad flag\n");
}

TEST(ControlChannelTest, CallThatDoesNotReturnEndsAll) {
  const Ended ended = RunChannels(
      2,
      [](int rank, ControlChannel& channel, int) {
        channel.EndSetup();
        if (rank == 1) channel.BeginCall("a call");
        WaitForEver();
      },
      /*timeout_seconds=*/2);
  EXPECT_EQ(ended.exit_codes, (std::vector<int>{3, 3}));
  EXPECT_EQ(ended.text, "test: error: process 1 of 2 has waited for 5 s for others in a call\n");
}

// Reports every 10 ms until all wait, at most `times`.
bool ReportsUntilAllWait(ControlChannel& channel, const std::vector<DeviceState>& own, std::vector<DeviceState>* all,
                         int times = 6000) {
  for (int i = 0; i < times; ++i) {
    channel.SetIdle(own);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (channel.TakeAllWait(all)) return true;
  }
  return false;
}

TEST(ControlChannelTest, OneProcessLearnsThatAllWait) {
  const Ended ended = RunChannels(3, [](int rank, ControlChannel& channel, int out) {
    channel.EndSetup();
    // The first process has ended its program, the second waits for bytes, the third at a collective.
    std::vector<DeviceState> own = {{rank, rank == 2 ? 17 : -1}};
    channel.SetBusy(own);
    if (rank == 1) own.clear();
    std::vector<DeviceState> all;
    if (rank != 0 && ReportsUntilAllWait(channel, own, &all)) {
      std::string text = StrCat("process ", rank, ":");
      for (const DeviceState& state : all) StrAppend(&text, " ", state.device, "@", state.instruction);
      Show(out, text + "\n");
    }
    channel.Finish();
  });
  EXPECT_EQ(ended.exit_codes, (std::vector<int>{0, 0, 0}));
  EXPECT_TRUE(ended.text.starts_with("process 2: 0@-1 1@-1 2@17\n")) << ended.text;
}

TEST(ControlChannelTest, ProcessThatComputesKeepsOthersWaiting) {
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  const Ended ended = RunChannels(2, [&](int rank, ControlChannel& channel, int out) {
    channel.EndSetup();
    std::vector<DeviceState> all;
    char byte = 0;
    if (rank == 0) {
      // It computes until the other one has waited for long.
      EXPECT_EQ(read(done[0], &byte, 1), 1);
    } else {
      if (ReportsUntilAllWait(channel, {{1, 17}}, &all, /*times=*/50)) Show(out, "all wait");
      EXPECT_EQ(write(done[1], &byte, 1), 1);
    }
    channel.Finish();
  });
  close(done[0]);
  close(done[1]);
  EXPECT_EQ(ended.exit_codes, (std::vector<int>{0, 0}));
  EXPECT_EQ(ended.text, "");
}

}  // namespace
}  // namespace hlokit::interp
