// SPDX-License-Identifier: Apache-2.0
// Which arrivals of devices are in a round together, whatever their order, and however rounds end. No order depends on
// a clock: devices give up waiting at once while a flag is set, and otherwise wait until all have arrived.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "runtime/client/rendezvous.h"

namespace hlokit::runtime {
namespace {

class RoundsTest : public ::testing::Test {
 protected:
  static constexpr size_t kDevices = 3;
  using Texts = std::vector<std::string>;

  // Returns a program. Runs return the names of the programs as an error.
  Rendezvous::Program Named(const std::string& name) {
    Rendezvous::Program program;
    program.digest = DigestOf(name);
    program.module = &modules_[name];
    program.run = [name](auto, interp::DonatedArguments*) { return absl::UnavailableError("all ran " + name); };
    program.combine = [this](absl::Span<const Module* const> programs) {
      std::string text = "met:";
      for (const Module* module : programs) {
        for (const auto& [known, of] : modules_) {
          if (&of == module) StrAppend(&text, " ", known);
        }
      }
      return absl::UnavailableError(text);
    };
    return program;
  }

  // Arrives, and waits unless the round ends at once. Returns what becomes of the round.
  std::string Arrive(size_t device, const Rendezvous::Program& program) {
    interp::DonatedArguments none;
    return std::string(rendezvous_.ArriveAndWait(device, program, {}, &none).status().message());
  }
  std::string ArriveAndGiveUp(size_t device, const Rendezvous::Program& program) {
    cancel_ = true;
    const std::string result = Arrive(device, program);
    cancel_ = false;
    return result;
  }
  // Lets each device arrive on a thread of its own.
  Texts ArriveTogether(const std::map<size_t, Rendezvous::Program>& programs) {
    std::vector<std::future<std::string>> running;
    for (const auto& [device, program] : programs) {
      running.push_back(std::async(std::launch::async, [this, d = device, p = &program] { return Arrive(d, *p); }));
    }
    Texts results;
    for (std::future<std::string>& one : running) results.push_back(one.get());
    return results;
  }
  void ExpectAllMeet(const std::string& step) {
    EXPECT_EQ(ArriveTogether({{0, Named("a" + step)}, {1, Named("b" + step)}, {2, Named("c" + step)}}),
              Texts(kDevices, StrCat("met: a", step, " b", step, " c", step)));
  }
  static std::string WaitedForAllBut(size_t device) {
    return StrCat("canceled while it waited for device ", device == 0 ? "1, 2" : device == 1 ? "0, 2" : "0, 1");
  }

  std::atomic<bool> cancel_ = false;
  Rendezvous rendezvous_{kDevices, /*timeout_seconds=*/5, &cancel_};

 private:
  std::map<std::string, Module> modules_;  // by name
};

TEST_F(RoundsTest, ALateDeviceWithAProgramOfItsOwnGetsTheErrorOfItsRound) {
  EXPECT_EQ(ArriveAndGiveUp(0, Named("a0")), WaitedForAllBut(0));
  EXPECT_EQ(Arrive(1, Named("b0")), WaitedForAllBut(0));
  EXPECT_EQ(Arrive(2, Named("c0")), WaitedForAllBut(0));
  ExpectAllMeet("1");
  ExpectAllMeet("2");
}

TEST_F(RoundsTest, ALateDeviceThatFailsIsPartOfItsRound) {
  EXPECT_EQ(ArriveAndGiveUp(0, Named("a0")), WaitedForAllBut(0));
  rendezvous_.Abort(1, absl::InternalError("no memory"));
  EXPECT_EQ(Arrive(2, Named("c0")), WaitedForAllBut(0));
  ExpectAllMeet("1");
}

// Of devices that give up waiting, the numbers of their arrivals say which are late, and nothing else: no round is
// skipped, and none is met twice.
TEST_F(RoundsTest, ADeviceThatWasNotGivenAProgramHasItsNextOneInTheRoundThatItMissed) {
  const Rendezvous::Program first = Named("first"), second = Named("second");
  EXPECT_EQ(ArriveAndGiveUp(0, first), WaitedForAllBut(0));
  EXPECT_EQ(Arrive(2, first), WaitedForAllBut(0));
  EXPECT_EQ(Arrive(1, second), WaitedForAllBut(0));
  EXPECT_EQ(ArriveTogether({{0, second}, {1, second}, {2, second}}), Texts(kDevices, "all ran second"));
}

TEST_F(RoundsTest, ADeviceThatArrivesAgainBeforeTheOthersIsInTheNextRound) {
  rendezvous_.Abort(0, absl::InternalError("first"));
  rendezvous_.Abort(0, absl::InternalError("second"));
  EXPECT_EQ(ArriveTogether({{1, Named("b0")}, {2, Named("c0")}}), Texts(2, "device 0 failed: first"));
  EXPECT_EQ(ArriveTogether({{1, Named("b1")}, {2, Named("c1")}}), Texts(2, "device 0 failed: second"));
  ExpectAllMeet("2");
}

TEST_F(RoundsTest, ADeviceThatIsRoundsBehindGetsTheirErrorsInOrder) {
  constexpr int kRounds = 5;
  const auto error = [](int round) { return StrCat("error of round ", round); };
  for (int round = 0; round < kRounds; ++round) {
    rendezvous_.Abort(0, absl::InternalError(error(round)));
    EXPECT_EQ(ArriveAndGiveUp(2, Named("c")), "device 0 failed: " + error(round));
  }
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_EQ(Arrive(1, Named("b")), "device 0 failed: " + error(round));
  }
  ExpectAllMeet("");
}

TEST_F(RoundsTest, ADeviceMayEnterTheNextRoundBeforeOthersHaveLeftTheLastOne) {
  constexpr int kRounds = 200;
  std::vector<std::vector<Rendezvous::Program>> programs(kDevices);
  Texts expected;
  for (int round = 0; round < kRounds; ++round) {
    std::string all = "met:";
    for (size_t d = 0; d < kDevices; ++d) {
      const std::string name = StrCat("p", d, ".", round);
      programs[d].push_back(Named(name));
      StrAppend(&all, " ", name);
    }
    expected.push_back(all);
  }
  std::vector<std::future<Texts>> running;
  for (size_t d = 0; d < kDevices; ++d) {
    running.push_back(std::async(std::launch::async, [&, d] {
      Texts results;
      for (const Rendezvous::Program& program : programs[d]) results.push_back(Arrive(d, program));
      return results;
    }));
  }
  for (std::future<Texts>& device : running) EXPECT_EQ(device.get(), expected);
}

TEST_F(RoundsTest, ADeviceThatLeftEndsTheRoundsOfTheOthersAndOfLateOnes) {
  rendezvous_.Leave(1, "device 1 has ended");
  EXPECT_EQ(Arrive(0, Named("a0")), "device 1 has ended");
  EXPECT_EQ(Arrive(0, Named("a1")), "device 1 has ended");
  EXPECT_EQ(Arrive(2, Named("c0")), "device 1 has ended");
  EXPECT_EQ(Arrive(2, Named("c1")), "device 1 has ended");
  for (size_t d = 0; d < kDevices; ++d) rendezvous_.NextSession(d);
  ExpectAllMeet("2");
}

TEST_F(RoundsTest, ErrorsOfManyMissedRoundsTakeABoundedPlace) {
  constexpr int kRounds = 1000, kExact = 50;
  for (int round = 0; round < kRounds; ++round) rendezvous_.Abort(0, absl::InternalError(StrCat(round)));
  for (int round = 0; round < kRounds; ++round) {
    const std::string first = ArriveAndGiveUp(1, Named("b"));
    EXPECT_TRUE(first.starts_with("device 0 failed: ")) << first;
    if (round >= kRounds - kExact) {
      EXPECT_EQ(first, StrCat("device 0 failed: ", round));
    }
    EXPECT_EQ(Arrive(2, Named("c")), first);
  }
  ExpectAllMeet("");
}

// Every order in which three devices arrive twice, each with a program or an abort. The first program of a round ends
// it.
TEST(ArrivalOrdersTest, TheNthArrivalsOfAllDevicesAreOneRound) {
  constexpr size_t kDevices = 3, kSteps = 2;
  std::vector<size_t> order = {0, 0, 1, 1, 2, 2};
  int orders = 0;
  do {
    for (unsigned aborts = 0; aborts < 1u << order.size(); ++aborts) {
      std::atomic<bool> cancel = true;
      Rendezvous rendezvous(kDevices, /*timeout_seconds=*/5, &cancel);
      std::vector<size_t> arrived(kDevices, 0);
      std::vector<std::set<size_t>> aborted(kSteps);
      std::vector<std::string> expected(kSteps);
      for (size_t i = 0; i < order.size(); ++i) {
        const size_t device = order[i], step = arrived[device]++;
        if ((aborts >> i & 1) != 0) {
          rendezvous.Abort(device, absl::InternalError(StrCat("step ", step)));
          aborted[step].insert(device);
          continue;
        }
        if (expected[step].empty()) {
          expected[step] = aborted[step].empty()
                               ? "canceled while it waited for device " + std::string(device == 0   ? "1, 2"
                                                                                      : device == 1 ? "0, 2"
                                                                                                    : "0, 1")
                               : StrCat("device ", *aborted[step].begin(), " failed: step ", step);
        }
        Rendezvous::Program program;
        program.digest = DigestOf(StrCat(device, ".", step));
        interp::DonatedArguments none;
        EXPECT_EQ(rendezvous.ArriveAndWait(device, program, {}, &none).status().message(), expected[step])
            << "order " << ::testing::PrintToString(order) << ", aborts " << aborts << ", arrival " << i;
      }
    }
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 90);
}

}  // namespace
}  // namespace hlokit::runtime
