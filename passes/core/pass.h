// SPDX-License-Identifier: Apache-2.0
// A pass: a named transformation of a module.
//
// A pass is a class with Run, and a PassInfo with its static description: name, summary, options, preconditions and
// guarantees. The registry (registry.h) holds the infos; pipelines (pipeline.h) are parsed from text and run passes
// under instrumentation (pass_instrumentation.h).
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

class DiagnosticSink;   // ir/core/diagnostic.h
class RemarkCollector;  // passes/remarks/remark.h
namespace tpu {
struct TpuTarget;  // passes/target/tpu_target.h
}

// An option of a pass, as in `fusion{max-operands=16}`.
struct OptionInfo {
  enum class Type : uint8_t { kBool, kInt, kString };

  std::string_view name;
  Type type = Type::kBool;
  std::string_view default_text;  // "false", "16", "": as on the command line
  std::string_view doc;
  // Allowed values. Integers: at least `min`. Strings: one of `choices`, or anything if there are none.
  int64_t min = 0;
  std::vector<std::string_view> choices = {};
  // What the choices are, in the documentation and in errors; empty: they are listed.
  std::string_view choices_text = "";
};

// The values of the options of one pass; unset ones have their defaults.
class PassOptions {
 public:
  PassOptions() = default;
  explicit PassOptions(absl::Span<const OptionInfo> options);

  // Sets an option. Returns an error that names the problem and the accepted values.
  absl::Status Set(std::string_view name, std::string_view value);
  // Requires: the pass has the option; otherwise the value is false, 0 or "".
  bool Bool(std::string_view name) const { return Find(name) == "true"; }
  int64_t Int(std::string_view name) const;
  std::string_view String(std::string_view name) const { return Find(name); }
  // Returns "{max-operands=16}" with the values that differ from the defaults, in the order of the infos; "" if none
  // do.
  std::string ToString() const;

 private:
  std::string_view Find(std::string_view name) const;

  absl::Span<const OptionInfo> options_;
  std::vector<std::string> values_;  // by option
};

// The estimated time of an instruction on the target.
struct Latency {
  double seconds = 0;  // of an asynchronous start: until the operation is done
  // Link mask of an asynchronous operation, one bit per link. Operations that share a link are serialized.
  uint32_t links = 0;
};

// Counts the applications of rewrite rules, and stops at a limit: to find the first that changes the results.
struct RewriteLimit {
  int64_t limit = -1;  // no rule is applied after that many applications; none if negative
  int64_t applied = 0;
  // Of the application that reached the limit.
  std::string rule;         // what it counts in the statistics
  std::string instruction;  // that it matched, as text
};

// Callbacks into libraries that passes must not depend on, and the target. A null callback disables the feature.
struct PassContext {
  // Evaluates an instruction whose operands are constants. Returns an error if the evaluation exceeds the limits.
  std::function<absl::StatusOr<Literal>(Instruction)> evaluate;
  // Compiles a regular expression, which is looked for anywhere in a text.
  std::function<absl::StatusOr<std::function<bool(std::string_view)>>(std::string_view)> compile_regex;
  // The compilation target; null: passes that need one take the one that their options name.
  std::shared_ptr<const tpu::TpuTarget> target;
  // Null: neither counted nor limited.
  RewriteLimit* rewrites = nullptr;
  // Gets warnings, at places of the text that the module was read from. Null: there are none.
  DiagnosticSink* diagnostics = nullptr;
  // Gets remarks on what passes decided and why. Null: nobody asked for them.
  RemarkCollector* remarks = nullptr;
};

class Pass {
 public:
  virtual ~Pass() = default;

  // Returns true if the module changed. A valid module stays valid.
  virtual absl::StatusOr<bool> Run(Module& module) = 0;

  const PassOptions& options() const { return options_; }
  void set_options(PassOptions options) { options_ = std::move(options); }
  const PassContext& context() const;
  void set_context(const PassContext* environment) { context_ = environment; }

  // A counter of the pass since its construction: "instructions removed", 12. In the order in which counters were first
  // used.
  struct Statistic {
    std::string_view what;
    int64_t count;
  };
  const std::vector<Statistic>& statistics() const { return statistics_; }

 protected:
  // Adds `n` to a counter. `what`: plural, lower case, fixed text that outlives the pass.
  void Count(std::string_view what, int64_t n = 1);

 private:
  PassOptions options_;
  const PassContext* context_ = nullptr;
  std::vector<Statistic> statistics_;
};

// Static description of a pass.
struct PassInfo {
  std::string_view name;      // as in --passes: XLA's name if XLA has this pass
  std::string_view category;  // "simplify", "fusion", …: the directory, and the chapter of the documentation
  std::string_view summary;   // one line, lower case, no full stop
  // A few sentences for the documentation.
  std::string_view doc = "";
  // HLO text on which the documentation shows the pass.
  std::string_view example = "";
  std::vector<OptionInfo> options = {};
  // A sentence each, "" for none: the preconditions; the properties that the pass preserves, unlike others.
  std::string_view preconditions = "";
  std::string_view preserves = "";
  // Maximum change of floats, relative to the largest value of their array; 0: no change in rounding.
  double tolerance = 0;
  // Opcodes with implementation-defined results that the pass may change.
  std::vector<Opcode> redefines = {};
  std::function<std::unique_ptr<Pass>()> create;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_CORE_PASS_H_
