// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "ir/graph/call_walk.h"
#include "ir/graph/module.h"
#include "ir/graph/traversal.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

constexpr std::string_view kText = R"(HloModule m

negated { n = f32[] parameter(0)
  ROOT negate = f32[] negate(n) }

twice { t = f32[] parameter(0)
  c = f32[] call(t), to_apply=negated
  ROOT d = f32[] call(c), to_apply=negated }

plain { ROOT p = f32[] parameter(0) }

unused { ROOT u = f32[] parameter(0) }

goes_on { g = f32[] parameter(0)
  limit = f32[] constant(9)
  ROOT lt = pred[] compare(g, limit), direction=LT }

ENTRY main { x = f32[] parameter(0)
  k = s32[] parameter(1)
  chosen = f32[] conditional(k, x, x, x), branch_computations={twice, plain, twice}
  loop = f32[] while(chosen), condition=goes_on, body=negated
  ROOT sum = f32[] add(loop, x) }
)";

class CalleesTest : public testing::Test {
 protected:
  Instruction Find(std::string_view name) {
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) {
        if (i.name() == name) return i;
      }
    }
    ADD_FAILURE() << "no instruction " << name;
    return Instruction();
  }
  Computation FindComputation(std::string_view name) {
    for (Computation c : module_.computations()) {
      if (c.name() == name) return c;
    }
    ADD_FAILURE() << "no computation " << name;
    return Computation();
  }
  std::string Callees(std::string_view name) {
    std::vector<std::string> names;
    Find(name).ForEachCallee([&](Computation callee) { names.emplace_back(callee.name()); });
    std::vector<std::string> listed;
    for (Computation callee : Find(name).called_computations()) listed.emplace_back(callee.name());
    EXPECT_EQ(names, listed);
    return absl::StrJoin(names, " ");
  }
  std::string Names(const std::vector<ComputationId>& ids) {
    return absl::StrJoin(ids, " ",
                         [&](std::string* out, ComputationId id) { out->append(module_.computation(id).name()); });
  }

  Module module_ = std::move(**ParseModuleText(kText));
};

TEST_F(CalleesTest, ComeInTheOrderOfTheAttributes) {
  EXPECT_EQ(Callees("chosen"), "twice plain twice");
  EXPECT_EQ(Callees("loop"), "goes_on negated");
  EXPECT_EQ(Callees("c"), "negated");
  EXPECT_EQ(Callees("sum"), "");
}

TEST_F(CalleesTest, AreReplacedOneByOne) {
  const ComputationId plain = FindComputation("plain").id(), twice = FindComputation("twice").id();
  const auto swap = [&](ComputationId id) { return id == plain ? twice : id == twice ? plain : id; };
  EXPECT_TRUE(module_.ReplaceCallees(Find("chosen").id(), swap));
  EXPECT_EQ(Callees("chosen"), "plain twice plain");
  EXPECT_FALSE(module_.ReplaceCallees(Find("loop").id(), swap));
  EXPECT_EQ(Callees("loop"), "goes_on negated");
  EXPECT_FALSE(module_.ReplaceCallees(Find("sum").id(), swap));
}

// The replacement of a callee may be created on the way: storage of attributes and lists is reallocated.
TEST_F(CalleesTest, AreReplacedByCopiesMadeMeanwhile) {
  const auto copy = [&](ComputationId id) {
    for (int k = 0; k < 99; ++k) module_.ListPayload({k, 1000 + id.value, k});
    return module_.CloneComputation(id);
  };
  EXPECT_TRUE(module_.ReplaceCallees(Find("chosen").id(), copy));
  EXPECT_TRUE(module_.ReplaceCallees(Find("loop").id(), copy));
  EXPECT_EQ(Callees("chosen"), "twice.clone plain.clone twice.clone.1");
  EXPECT_EQ(Callees("loop"), "goes_on.clone negated.clone");
}

TEST_F(CalleesTest, OrdersHaveCalleesFirst) {
  EXPECT_EQ(Names(ComputationPostOrder(module_)), "unused negated twice plain goes_on main");
  EXPECT_EQ(Names(ReachableComputations(module_, {module_.entry().id()})), "negated twice plain goes_on main");
  const ComputationId roots[] = {FindComputation("plain").id(), FindComputation("twice").id()};
  EXPECT_EQ(Names(ReachableComputations(module_, roots)), "plain negated twice");
}

TEST_F(CalleesTest, OrdersLeaveOutWhatIsErased) {
  module_.ReplaceCallees(Find("chosen").id(), [&](ComputationId) { return FindComputation("plain").id(); });
  module_.EraseComputation(FindComputation("twice").id());
  EXPECT_EQ(Names(ComputationPostOrder(module_)), "unused plain negated goes_on main");
}

TEST(CallWalkTest, SaysWhereCallsRunInACircle) {
  // 0 -> 1, 2; 1 -> 2; 2 -> 1
  const std::vector<std::vector<uint32_t>> callees = {{1, 2}, {2}, {1}};
  CallWalk walk(callees.size(), [&](ComputationId id, uint32_t k) {
    return k < callees[id.value].size() ? ComputationId(callees[id.value][k]) : ComputationId();
  });
  std::vector<uint32_t> order;
  const auto visit = [&](ComputationId id) { order.push_back(id.value); };
  EXPECT_FALSE(walk.From(ComputationId(0), visit, [&](ComputationId callee) {
    EXPECT_EQ(callee, ComputationId(1));
    EXPECT_EQ(walk.path().size(), 3u);
    EXPECT_EQ(walk.path().back().id, ComputationId(2));
    return false;
  }));
  EXPECT_TRUE(order.empty());
  CallWalk again(callees.size(), [&](ComputationId id, uint32_t k) {
    return k < callees[id.value].size() ? ComputationId(callees[id.value][k]) : ComputationId();
  });
  again.From(ComputationId(0), visit);
  EXPECT_EQ(order, (std::vector<uint32_t>{2, 1, 0}));
}

}  // namespace
}  // namespace hlokit
