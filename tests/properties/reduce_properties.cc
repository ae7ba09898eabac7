// SPDX-License-Identifier: Apache-2.0
// Planted bugs: a pass whose one rewrite is wrong, in one of 20 ways, stands in a pipeline of right passes. On random
// modules bisection must name that pass and that rewrite, and reduction must leave a small module whose results the
// pass still changes.
//
//   reduce_properties [--seed=N] [--bugs=N] [--verbose]
//
// Each way is planted until as many bugs are found as asked for; modules in which the rewrite changes no result do not
// count. Exit code 1 if a pass or rewrite is wrong, a reduced module no longer shows the bug, or fewer than 90 % of the
// reduced modules have at most 15 instructions.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "check/bisection/pass_bisection.h"
#include "interp/exact/instruction_evaluator.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "passes/core/registry.h"
#include "passes/reduce/reduction.h"
#include "passes/rewrite/rule_pass.h"
#include "tests/random/random_module.h"

namespace hlokit {
namespace {

constexpr int64_t kSmall = 15;  // instructions of a reduced module
constexpr double kSmallShare = 0.9;

// What a wrong rewrite made is not rewritten again.
constexpr std::string_view kPlanted = "planted";
bool IsPlanted(Instruction i) { return i.name().substr(0, kPlanted.size()) == kPlanted; }

// A copy: adding instructions moves the attributes of others.
std::vector<AttrValue> AttrsOf(Instruction i) { return {i.attrs().begin(), i.attrs().end()}; }

// Replaces an instruction by a new one of its shape.
bool ReplaceBy(PatternRewriter& r, Instruction old, Opcode opcode, std::vector<InstructionId> operands,
               std::vector<AttrValue> attrs = {}) {
  if (IsPlanted(old)) return false;
  r.WithName(kPlanted);
  return r.Replace(old, r.Make(opcode, old.shape(), operands, attrs));
}

bool SwapOperands(PatternRewriter& r, Instruction i) {
  if (i.operand(0) == i.operand(1)) return false;
  return ReplaceBy(r, i, i.opcode(), {i.operand(1).id(), i.operand(0).id()}, AttrsOf(i));
}
template <Opcode kOther>
bool OtherOpcode(PatternRewriter& r, Instruction i) {
  std::vector<InstructionId> operands;
  for (Instruction operand : i.operands()) operands.push_back(operand.id());
  return ReplaceBy(r, i, kOther, operands);
}
// Wraps the result.
template <Opcode kAround>
bool Wrap(PatternRewriter& r, Instruction i) {
  if (IsPlanted(i) || !i.shape().IsArray() || !IsFloat(i.shape().element_type())) return false;
  std::vector<InstructionId> operands;
  for (Instruction operand : i.operands()) operands.push_back(operand.id());
  r.WithName(kPlanted);
  const InstructionId inner = r.Make(i.opcode(), i.shape(), operands, AttrsOf(i));
  r.WithName(kPlanted);
  return r.Replace(i, r.Make(kAround, i.shape(), {inner}));
}
bool ToFirstOperand(PatternRewriter& r, Instruction i) {
  return Compatible(i.operand(0).shape(), i.shape()) && r.Replace(i, i.operand(0).id());
}
bool FirstOperandTwice(PatternRewriter& r, Instruction i) {
  if (i.operand(0) == i.operand(1)) return false;
  return ReplaceBy(r, i, i.opcode(), {i.operand(0).id(), i.operand(0).id()});
}
bool SwapBranches(PatternRewriter& r, Instruction i) {
  if (i.operand(1) == i.operand(2)) return false;
  return ReplaceBy(r, i, i.opcode(), {i.operand(0).id(), i.operand(2).id(), i.operand(1).id()});
}
bool OtherDirection(PatternRewriter& r, Instruction i) {
  const auto direction = i.enum_attr(Attr::kDirection, ComparisonDirection::kEq);
  const auto other = direction == ComparisonDirection::kLt ? ComparisonDirection::kGe : ComparisonDirection::kLt;
  if (IsPlanted(i)) return false;
  r.WithName(kPlanted);
  return r.Replace(i, r.MakeCompare(other, i.operand(0).id(), i.operand(1).id()));
}
bool SwapConcatenated(PatternRewriter& r, Instruction i) {
  if (i.operand_count() != 2 || i.operand(0) == i.operand(1)) return false;
  return SwapOperands(r, i);
}

struct Planted {
  std::string_view rule;
  Opcode opcode;
  RewriteFunction rewrite;
};
constexpr std::array<Planted, 20> kBugs = {{
    {"minuend and subtrahend exchanged", Opcode::kSubtract, SwapOperands},
    {"dividend and divisor exchanged", Opcode::kDivide, SwapOperands},
    {"base and exponent exchanged", Opcode::kPower, SwapOperands},
    {"sum of the first operand", Opcode::kAdd, FirstOperandTwice},
    {"factor dropped", Opcode::kMultiply, ToFirstOperand},
    {"maximum for minimum", Opcode::kMinimum, OtherOpcode<Opcode::kMaximum>},
    {"minimum for maximum", Opcode::kMaximum, OtherOpcode<Opcode::kMinimum>},
    {"multiplication for division", Opcode::kDivide, OtherOpcode<Opcode::kMultiply>},
    {"other comparison", Opcode::kCompare, OtherDirection},
    {"branches exchanged", Opcode::kSelect, SwapBranches},
    {"negation dropped", Opcode::kNegate, ToFirstOperand},
    {"logistic for tanh", Opcode::kTanh, OtherOpcode<Opcode::kLogistic>},
    {"sqrt for rsqrt", Opcode::kRsqrt, OtherOpcode<Opcode::kSqrt>},
    {"sine for cosine", Opcode::kCos, OtherOpcode<Opcode::kSin>},
    {"reversal dropped", Opcode::kReverse, ToFirstOperand},
    {"concatenated exchanged", Opcode::kConcatenate, SwapConcatenated},
    {"reduction negated", Opcode::kReduce, Wrap<Opcode::kNegate>},
    {"product negated", Opcode::kDot, Wrap<Opcode::kNegate>},
    {"broadcast negated", Opcode::kBroadcast, Wrap<Opcode::kNegate>},
    {"floor for round", Opcode::kRoundNearestEven, OtherOpcode<Opcode::kFloor>},
}};

size_t current_bug = 0;  // that the pass plants; this program has one thread that makes passes

class PlantedPass : public RulePass {
 protected:
  const RewritePatternSet& rules() const override {
    static const std::vector<RewritePatternSet>* const sets = [] {
      auto* all = new std::vector<RewritePatternSet>(kBugs.size());
      for (size_t k = 0; k < kBugs.size(); ++k) (*all)[k].Add({kBugs[k].opcode}, kBugs[k].rule, kBugs[k].rewrite);
      return all;
    }();
    return (*sets)[current_bug];
  }
};

// The passes of the library and the wrong one.
const PassRegistry& Registry() {
  static const PassRegistry* const registry = [] {
    auto* made = new PassRegistry();
    for (const PassInfo* info : PassRegistry::Get().passes()) made->Add(*info);
    made->Add({.name = "planted", .category = "simplify", .summary = "wrong", .create = MakePass<PlantedPass>});
    return made;
  }();
  return *registry;
}

// Pipelines of which `planted` is one of the passes.
constexpr std::string_view kPipelines[] = {
    "planted,dce,cse",
    "cse,tuple-simplifier,planted,dce",
    "conditional-simplifier,while-loop-simplifier,cse,dce,planted",
    "(cse,planted,dce)*,tuple-simplifier",
};

struct Counts {
  int64_t bugs = 0, wrong_pass = 0, wrong_rewrite = 0, lost = 0, small = 0, instructions = 0, tests = 0;
};

class Checker {
 public:
  explicit Checker(bool verbose) : verbose_(verbose) {
    options_.pipeline.context = interp::EvaluatingContext();
    options_.registry = &Registry();
  }

  // Plants a bug in a module. Returns false if it changes no result.
  bool Check(size_t bug, std::string_view pipeline, uint64_t seed) {
    current_bug = bug;
    random_test::RandomModuleOptions random;
    random.seed = seed;
    random.instructions = 40;
    random.first = kBugs[bug].opcode;
    const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(random_test::RandomModule(random));
    if (!module.ok()) return false;
    options_.run.seed = seed;
    options_.run.max_steps = 100'000;  // random loops may not end
    const absl::StatusOr<interp::BisectionResult> found = interp::BisectPasses(**module, pipeline, options_);
    if (!found.ok() || !found->differs) return false;
    ++counts_.bugs;
    const bool pass_right = found->pass == "planted", rewrite_right = found->rule == kBugs[bug].rule;
    counts_.wrong_pass += pass_right ? 0 : 1;
    counts_.wrong_rewrite += rewrite_right ? 0 : 1;
    if (!pass_right || !rewrite_right) {
      std::fprintf(stderr, "seed %llu, %s in %s: found %s, %s\n", static_cast<unsigned long long>(seed),
                   kBugs[bug].rule.data(), pipeline.data(), found->pass.c_str(), found->rule.c_str());
      return true;
    }
    Reduce(found->before, bug, seed);
    return true;
  }

  const Counts& counts() const { return counts_; }

 private:
  bool Differs(std::string_view text) const {
    const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    if (!module.ok()) return false;
    const absl::StatusOr<std::string> difference = interp::DifferenceAfter(**module, "planted", options_);
    return difference.ok() && !difference->empty();
  }

  void Reduce(const std::string& text, size_t bug, uint64_t seed) {
    const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
    reduce::ReductionOptions reduction;
    reduction.record = [this](const Module& candidate) { return interp::RecordEntryValues(candidate, options_.run); };
    const absl::StatusOr<reduce::ReductionResult> result = reduce::Reduce(
        **module, [this](std::string_view candidate) { return Differs(candidate); }, reduction);
    if (!result.ok() || !Differs(result->text)) {
      ++counts_.lost;
      if (verbose_) std::printf("%s\n", text.c_str());
      std::fprintf(stderr, "seed %llu, %s: the reduced module does not show it\n",
                   static_cast<unsigned long long>(seed), kBugs[bug].rule.data());
      return;
    }
    counts_.instructions += result->after.instructions;
    counts_.tests += result->tests;
    counts_.small += result->after.instructions <= kSmall ? 1 : 0;
    if (verbose_ || result->after.instructions > kSmall) {
      std::printf("seed %llu, %s: %lld -> %lld instructions, %lld tests\n%s\n", static_cast<unsigned long long>(seed),
                  kBugs[bug].rule.data(), static_cast<long long>(result->before.instructions),
                  static_cast<long long>(result->after.instructions), static_cast<long long>(result->tests),
                  result->text.c_str());
    }
  }

  bool verbose_;
  interp::BisectionOptions options_;
  Counts counts_;
};

int Run(int argc, char** argv) {
  uint64_t seed = 1;
  int64_t bugs = 60;
  bool verbose = false;
  for (int a = 1; a < argc; ++a) {
    const std::string_view flag = argv[a];
    if (flag.starts_with("--seed=")) seed = std::strtoull(argv[a] + 7, nullptr, 10);
    if (flag.starts_with("--bugs=")) bugs = std::strtoll(argv[a] + 7, nullptr, 10);
    if (flag == "--verbose") verbose = true;
  }
  Checker checker(verbose);
  // Modules without the opcode, or whose results do not depend on it, are passed over.
  constexpr int64_t kModulesPerBug = 2000;
  for (int64_t k = 0; k < bugs; ++k) {
    const size_t bug = static_cast<size_t>(k) % kBugs.size();
    const std::string_view pipeline = kPipelines[static_cast<size_t>(k) / kBugs.size() % std::size(kPipelines)];
    bool planted = false;
    for (int64_t n = 0; n < kModulesPerBug && !planted; ++n) planted = checker.Check(bug, pipeline, seed++);
    if (!planted) std::printf("no module shows: %s\n", kBugs[bug].rule.data());
  }
  const Counts& c = checker.counts();
  std::printf(
      "%lld planted bugs: pass named in %lld, rewrite in %lld; reduced to %.1f instructions in the mean with "
      "%.0f tests, to at most %lld in %lld; %lld lost\n",
      static_cast<long long>(c.bugs), static_cast<long long>(c.bugs - c.wrong_pass),
      static_cast<long long>(c.bugs - c.wrong_rewrite),
      static_cast<double>(c.instructions) / static_cast<double>(std::max<int64_t>(1, c.bugs)),
      static_cast<double>(c.tests) / static_cast<double>(std::max<int64_t>(1, c.bugs)), static_cast<long long>(kSmall),
      static_cast<long long>(c.small), static_cast<long long>(c.lost));
  const bool good = c.bugs == bugs && c.wrong_pass == 0 && c.wrong_rewrite == 0 && c.lost == 0 &&
                    static_cast<double>(c.small) >= kSmallShare * static_cast<double>(c.bugs);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
