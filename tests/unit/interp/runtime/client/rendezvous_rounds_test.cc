// SPDX-License-Identifier: Apache-2.0
// Which arrivals of devices are in a round together, whatever their order, and however rounds end. No order depends on
// a clock: devices give up waiting at once while a flag is set, and otherwise wait until all have arrived.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "interp/runtime/client/rendezvous.h"
#include "ir/core/str_cat.h"

namespace hlokit::runtime {
namespace {

class RoundsTest : public ::testing::Test {
 protected:
  static constexpr size_t kDevices = 3;
  using Texts = std::vector<std::string>;

  // Returns a program with collectives of this name; without a name, one that meets only its like. Runs return the
  // names of the programs as an error.
  Rendezvous::Program Named(const std::string& name, const std::string& collectives) {
    Rendezvous::Program program;
    program.key.digest = DigestOf(name);
    if (!collectives.empty()) program.key.collectives = DigestOf(collectives);
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
  void ExpectAllMeet(const std::string& step, const std::string& collectives) {
    EXPECT_EQ(ArriveTogether({{0, Named("a" + step, collectives)},
                              {1, Named("b" + step, collectives)},
                              {2, Named("c" + step, collectives)}}),
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
  EXPECT_EQ(ArriveAndGiveUp(0, Named("a0", "sum")), WaitedForAllBut(0));
  EXPECT_EQ(Arrive(1, Named("b0", "sum")), WaitedForAllBut(0));
  EXPECT_EQ(Arrive(2, Named("c0", "sum")), WaitedForAllBut(0));
  ExpectAllMeet("1", "sum");
  ExpectAllMeet("2", "gather");
}

TEST_F(RoundsTest, ALateDeviceThatWasNotGivenTheProgramsOfARoundGoesOnToTheNext) {
  EXPECT_EQ(ArriveAndGiveUp(0, Named("a0", "sum")), WaitedForAllBut(0));
  EXPECT_EQ(Arrive(2, Named("c0", "sum")), WaitedForAllBut(0));
  ExpectAllMeet("1", "gather");
  ExpectAllMeet("2", "sum");
}

TEST_F(RoundsTest, ALateDeviceWhoseProgramMeetsOnlyItsLikeGoesOnToTheRoundOfItsLike) {
  EXPECT_EQ(ArriveAndGiveUp(0, Named("first", "")), WaitedForAllBut(0));
  EXPECT_EQ(Arrive(2, Named("first", "")), WaitedForAllBut(0));
  const Rendezvous::Program second = Named("second", "");
  EXPECT_EQ(ArriveTogether({{0, second}, {1, second}, {2, second}}), Texts(kDevices, "all ran second"));
  EXPECT_EQ(ArriveAndGiveUp(0, second), WaitedForAllBut(0));
  EXPECT_EQ(Arrive(1, second), WaitedForAllBut(0));
}

TEST_F(RoundsTest, ALateDeviceThatFailsIsPartOfTheRoundOfItsProgram) {
  EXPECT_EQ(ArriveAndGiveUp(0, Named("a0", "sum")), WaitedForAllBut(0));
  EXPECT_EQ(Arrive(2, Named("c0", "sum")), WaitedForAllBut(0));
  // Device 1 was not given the programs of round 0, and fails in round 1.
  rendezvous_.Abort(1, Named("b1", "gather").key, absl::InternalError("no memory"));
  EXPECT_EQ(ArriveTogether({{0, Named("a1", "gather")}, {2, Named("c1", "gather")}}),
            Texts(2, "device 1 failed: no memory"));
  // Device 1 was given them, and fails in a round that is over.
  EXPECT_EQ(ArriveAndGiveUp(0, Named("a2", "sum")), WaitedForAllBut(0));
  rendezvous_.Abort(1, Named("b2", "sum").key, absl::InternalError("no memory"));
  EXPECT_EQ(Arrive(2, Named("c2", "sum")), WaitedForAllBut(0));
  ExpectAllMeet("3", "sum");
}

TEST_F(RoundsTest, ADeviceThatArrivesAgainBeforeTheOthersIsInTheNextRound) {
  rendezvous_.Abort(0, Named("a0", "sum").key, absl::InternalError("first"));
  rendezvous_.Abort(0, Named("a1", "sum").key, absl::InternalError("second"));
  EXPECT_EQ(ArriveTogether({{1, Named("b0", "sum")}, {2, Named("c0", "sum")}}), Texts(2, "device 0 failed: first"));
  EXPECT_EQ(ArriveTogether({{1, Named("b1", "sum")}, {2, Named("c1", "sum")}}), Texts(2, "device 0 failed: second"));
  ExpectAllMeet("2", "sum");
}

TEST_F(RoundsTest, ADeviceThatIsRoundsBehindGetsTheirErrorsInOrder) {
  constexpr int kRounds = 5;
  const auto error = [](int round) { return StrCat("error of round ", round); };
  for (int round = 0; round < kRounds; ++round) {
    rendezvous_.Abort(0, Named("a", "sum").key, absl::InternalError(error(round)));
    EXPECT_EQ(ArriveAndGiveUp(2, Named("c", "sum")), "device 0 failed: " + error(round));
  }
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_EQ(Arrive(1, Named("b", "sum")), "device 0 failed: " + error(round));
  }
  ExpectAllMeet("", "sum");
}

TEST_F(RoundsTest, ADeviceMayEnterTheNextRoundBeforeOthersHaveLeftTheLastOne) {
  constexpr int kRounds = 200;
  std::vector<std::vector<Rendezvous::Program>> programs(kDevices);
  Texts expected;
  for (int round = 0; round < kRounds; ++round) {
    std::string all = "met:";
    for (size_t d = 0; d < kDevices; ++d) {
      const std::string name = StrCat("p", d, ".", round);
      programs[d].push_back(Named(name, "sum"));
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
  EXPECT_EQ(Arrive(0, Named("a0", "sum")), "device 1 has ended");
  EXPECT_EQ(Arrive(0, Named("a1", "gather")), "device 1 has ended");
  EXPECT_EQ(Arrive(2, Named("c0", "sum")), "device 1 has ended");
  EXPECT_EQ(Arrive(2, Named("c1", "gather")), "device 1 has ended");
  for (size_t d = 0; d < kDevices; ++d) rendezvous_.NextSession(d);
  ExpectAllMeet("2", "sum");
}

// Every order in which three devices arrive twice, each round being ended by the first to arrive.
class ArrivalOrdersTest : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(ArrivalOrdersTest, TheNthArrivalsOfAllDevicesAreOneRound) {
  std::vector<size_t> order = {0, 0, 1, 1, 2, 2};
  int orders = 0;
  do {
    std::atomic<bool> cancel = true;
    Rendezvous rendezvous(3, /*timeout_seconds=*/5, &cancel);
    std::vector<size_t> arrived(3, 0);
    std::vector<std::optional<size_t>> first(2);
    for (const size_t device : order) {
      const size_t step = arrived[device]++;
      if (!first[step]) first[step] = device;
      Rendezvous::Program program;
      program.key = {DigestOf(StrCat(device, ".", step)), DigestOf(GetParam()[step])};
      interp::DonatedArguments none;
      const absl::Status status = rendezvous.ArriveAndWait(device, program, {}, &none).status();
      const size_t ended_by = *first[step];
      EXPECT_EQ(status.message(), StrCat("canceled while it waited for device ", ended_by == 0   ? "1, 2"
                                                                                 : ended_by == 1 ? "0, 2"
                                                                                                 : "0, 1"))
          << "order " << ::testing::PrintToString(order) << ", step " << step << " of device " << device;
    }
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 90);
}

INSTANTIATE_TEST_SUITE_P(Collectives, ArrivalOrdersTest,
                         ::testing::Values(std::vector<std::string>{"sum", "sum"},
                                           std::vector<std::string>{"sum", "gather"}));

}  // namespace
}  // namespace hlokit::runtime
