// SPDX-License-Identifier: Apache-2.0
// A pass: a named transformation of a module.
//
// A pass is a class with Run, and a PassInfo that says what people can know of it without running it: its name, what it
// does, its options, what it needs and keeps. The registry (registry.h) holds the infos; pipelines (pipeline.h) are
// made from text and run passes under instruments (pass_instrumentation.h).
#ifndef HLOKIT_PASSES_CORE_PASS_H_
#define HLOKIT_PASSES_CORE_PASS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit {

namespace tpu {
struct TpuTarget;  // passes/target/tpu_target.h
}

// An option of a pass, as in `fusion{max-operands=16}`.
struct OptionInfo {
  enum class Type : uint8_t { kBool, kInt, kString };

  std::string_view name;
  Type type = Type::kBool;
  std::string_view default_text;  // "false", "16", "": as one would write it
  std::string_view doc;
  // Allowed values. Integers: at least `min`. Strings: one of `choices`, or anything if there are none.
  int64_t min = 0;
  std::vector<std::string_view> choices = {};
};

// The values of the options of one pass; those not set have their defaults.
class PassOptions {
 public:
  PassOptions() = default;
  explicit PassOptions(absl::Span<const OptionInfo> options);

  // An error says what is wrong and what would be right.
  absl::Status Set(std::string_view name, std::string_view value);
  // Options that the pass does not have are a defect of the caller and read as false, 0 or "".
  bool Bool(std::string_view name) const { return Find(name) == "true"; }
  int64_t Int(std::string_view name) const;
  std::string_view String(std::string_view name) const { return Find(name); }
  // "{max-operands=16}" with what differs from the defaults, in the order of the infos; "" if nothing does.
  std::string ToString() const;

 private:
  std::string_view Find(std::string_view name) const;

  absl::Span<const OptionInfo> options_;
  std::vector<std::string> values_;  // by option
};

// What an instruction takes on a machine.
struct Latency {
  double seconds = 0;  // of what starts asynchronous work: until that is done
  // Of what runs beside the core: the links that it needs, a bit for each. What shares one takes turns.
  uint32_t links = 0;
};

// What a pass may ask of whoever runs it: what lies to the right of this room. A hook that is not set answers nothing.
struct PassContext {
  // The value of an instruction whose operands are constants; an error if it cannot be had within the limits.
  std::function<absl::StatusOr<Literal>(Instruction)> evaluate;
  // What the module is compiled for; null: passes that need a target take the one that their options name.
  std::shared_ptr<const tpu::TpuTarget> target;
};

class Pass {
 public:
  virtual ~Pass() = default;

  // True if the module changed. A module that verified before verifies afterwards.
  virtual absl::StatusOr<bool> Run(Module& module) = 0;

  const PassOptions& options() const { return options_; }
  void set_options(PassOptions options) { options_ = std::move(options); }
  const PassContext& context() const;
  void set_context(const PassContext* environment) { context_ = environment; }

  // What the pass did, counted since it was made: "instructions removed", 12. In the order in which it was first
  // counted.
  struct Statistic {
    std::string_view what;
    int64_t count;
  };
  const std::vector<Statistic>& statistics() const { return statistics_; }

 protected:
  // `what` in the plural, lower case, the same words in every run: text that outlives the pass.
  void Count(std::string_view what, int64_t n = 1);

 private:
  PassOptions options_;
  const PassContext* context_ = nullptr;
  std::vector<Statistic> statistics_;
};

// What is known of a pass.
struct PassInfo {
  std::string_view name;      // as in --passes: XLA's where the job is the same
  std::string_view category;  // "simplify", "fusion", …: the folder, and the chapter of the documentation
  std::string_view summary;   // one line, lower case, no full stop
  // What it does and does not do, for the documentation: a few sentences.
  std::string_view doc = "";
  // HLO text that shows it at work: the documentation has it before and after.
  std::string_view example = "";
  std::vector<OptionInfo> options = {};
  // A sentence each, "" for nothing: what the module must be like; what the pass keeps that others do not.
  std::string_view preconditions = "";
  std::string_view preserves = "";
  // How far floats may be from what they were, relative to the largest value of their array; 0: nothing is rounded
  // differently.
  double tolerance = 0;
  // Opcodes whose results HLO leaves open: where a module has them, it may compute something else afterwards.
  std::vector<Opcode> redefines = {};
  std::function<std::unique_ptr<Pass>()> create;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_CORE_PASS_H_
