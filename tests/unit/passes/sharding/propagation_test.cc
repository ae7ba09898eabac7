// SPDX-License-Identifier: Apache-2.0
// Properties of sharding propagation on all golden modules with shardings: the result does not depend on the order of
// the text, a second run changes nothing, and only what is fixed keeps what it had.
#include "passes/sharding/propagation.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/sharding/tiling.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "passes/sharding/explanation.h"
#include "passes/sharding/shardy_propagation.h"

namespace hlokit::sharding {
namespace {

std::vector<std::string> GoldenTexts() {
  std::vector<std::string> texts;
  const std::filesystem::path root = std::filesystem::path(HLOKIT_SOURCE_DIR) / "tests" / "golden";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".hlo") continue;
    std::ifstream file(entry.path());
    std::ostringstream stream;
    stream << file.rdbuf();
    std::string text = stream.str();
    if (text.find("sharding") == text.npos) continue;
    constexpr std::string_view kSeparator = "\n// -----";
    for (size_t at = text.find(kSeparator); at != text.npos; at = text.find(kSeparator)) {
      texts.push_back(text.substr(0, at));
      text.erase(0, text.find('\n', at + 1));
    }
    texts.push_back(text);
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

// Returns the module with the instructions of each computation, and the computations, in another order of the text.
std::unique_ptr<Module> Shuffled(const Module& module, std::mt19937* random) {
  Module copy = module.Clone();
  for (Computation c : copy.computations()) {
    std::vector<InstructionId> waiting, order;
    for (Instruction i : c.instructions()) waiting.push_back(i.id());
    std::vector<bool> placed(copy.instruction_id_bound());
    while (!waiting.empty()) {
      std::shuffle(waiting.begin(), waiting.end(), *random);
      const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](InstructionId id) {
        for (Instruction operand : copy.instruction(id).operands()) {
          if (!placed[operand.id().value]) return false;
        }
        for (Instruction before : copy.instruction(id).control_predecessors()) {
          if (!placed[before.id().value]) return false;
        }
        return true;
      });
      if (ready == waiting.end()) return nullptr;
      placed[ready->value] = true;
      order.push_back(*ready);
      waiting.erase(ready);
    }
    for (InstructionId id : order) copy.MoveBefore(id, InstructionId());
  }
  // A schedule is printed as it is.
  copy.header().is_scheduled = true;
  std::string text;
  {
    TextWriter out(&text);
    PrintModule(out, copy, PrintOptions::Lossless());
  }
  absl::StatusOr<std::unique_ptr<Module>> parsed = ParseModuleText(text);
  if (!parsed.ok()) return nullptr;
  (*parsed)->header().is_scheduled = false;
  return *std::move(parsed);
}

std::map<std::string, std::string> ShardingsByName(const Module& module) {
  std::map<std::string, std::string> shardings;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      std::string& text = shardings[std::string(c.name()) + "/" + std::string(i.name())];
      if (!i.has(Attr::kSharding)) continue;
      TextWriter out(&text);
      PrintSharding(out, module.context(), ListId(*i.payload(Attr::kSharding)), /*include_metadata=*/false);
      out.Flush();
    }
  }
  return shardings;
}

PropagationOptions AllAllowed() {
  PropagationOptions options;
  options.is_spmd = true;
  options.to_output = {true};
  options.to_parameters = {true};
  return options;
}

absl::StatusOr<PropagationCounts> Propagate(Module& module, bool shardy) {
  if (shardy) return PropagateLikeShardy(module);
  return PropagateShardings(module, AllAllowed(), nullptr);
}

TEST(PropagationTest, DoesNotDependOnTheOrderOfTheText) {
  std::mt19937 random(5);
  int compared = 0, changed = 0;
  for (const std::string& text : GoldenTexts()) {
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    if (!module.ok() || !(*module)->entry().valid() || (*module)->header().is_scheduled) continue;
    for (const bool shardy : {false, true}) {
      Module plain = (*module)->Clone();
      const absl::StatusOr<PropagationCounts> counts = Propagate(plain, shardy);
      if (!counts.ok()) continue;
      for (int n = 0; n < 3; ++n) {
        const std::unique_ptr<Module> shuffled = Shuffled(**module, &random);
        if (shuffled == nullptr) continue;
        ASSERT_TRUE(Propagate(*shuffled, shardy).ok());
        EXPECT_EQ(ShardingsByName(*shuffled), ShardingsByName(plain)) << text;
        ++compared;
        changed += counts->total() > 0;
      }
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(changed, 30);
}

TEST(PropagationTest, SecondRunChangesNothing) {
  int changed = 0;
  for (const std::string& text : GoldenTexts()) {
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    if (!module.ok() || !(*module)->entry().valid()) continue;
    for (const bool shardy : {false, true}) {
      Module once = (*module)->Clone();
      const absl::StatusOr<PropagationCounts> first = Propagate(once, shardy);
      if (!first.ok()) continue;
      changed += first->total() > 0;
      const std::map<std::string, std::string> before = ShardingsByName(once);
      const absl::StatusOr<PropagationCounts> second = Propagate(once, shardy);
      ASSERT_TRUE(second.ok());
      EXPECT_EQ(second->total(), 0) << text;
      EXPECT_EQ(ShardingsByName(once), before) << text;
    }
  }
  EXPECT_GT(changed, 10);
}

// Every chain ends in the text.
TEST(PropagationTest, ExplainsEverySharding) {
  int explained = 0;
  for (const std::string& text : GoldenTexts()) {
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    if (!module.ok() || !(*module)->entry().valid()) continue;
    PropagationLog log;
    if (!PropagateShardings(**module, AllAllowed(), &log).ok()) continue;
    for (Computation c : (*module)->computations()) {
      for (Instruction i : c.instructions()) {
        if (!i.has(Attr::kSharding) || i.shape().leaf_count() == 0) continue;
        const Explanation why = ExplainSharding(**module, log, i, 0);
        ASSERT_FALSE(why.chain.empty()) << i.name() << " of " << text;
        const bool ends_in_text = std::any_of(why.chain.begin(), why.chain.end(), [](const ExplanationLine& line) {
          return line.reason == "given in the text" || line.reason.find("replicated") == 0;
        });
        // A leaf of a tuple that nothing is known of is replicated by default, as is the state of a random generator.
        EXPECT_TRUE(ends_in_text || why.chain.back().sharding == "{replicated}") << i.name() << " of " << text;
        ++explained;
      }
    }
  }
  EXPECT_GT(explained, 50);
}

}  // namespace
}  // namespace hlokit::sharding
