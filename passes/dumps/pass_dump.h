// SPDX-License-Identifier: Apache-2.0
// Writes the module before and after a pipeline, and after each pass that changed it, to files named as XLA's
// --xla_dump_to names them, which hlo-inspect dump-dir reads:
//
//   module_0000.NAME.before_optimizations.txt
//   module_0000.NAME.0003.PIPELINE.after_PASS.before_NEXT.txt
//   module_0000.NAME.after_optimizations.txt
#ifndef HLOKIT_PASSES_DUMPS_PASS_DUMP_H_
#define HLOKIT_PASSES_DUMPS_PASS_DUMP_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "passes/core/pass_instrumentation.h"

namespace hlokit::dump {

class PassDump : public PassInstrumentation {
 public:
  // `directory` exists, or is the address of a remote store. `number`: of the module.
  PassDump(std::string directory, int64_t number, const Module& module);

  // To be called before and after the pipeline.
  absl::Status Begin(const Module& module);
  absl::Status End(const Module& module);

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

 private:
  absl::Status Write(std::string_view stage, const std::string& text) const;
  // Writes the module after the last pass that changed it, which needs the name of the next pass.
  absl::Status WritePending(std::string_view next);

  std::string begin_;          // of the paths
  std::string pending_stage_;  // up to the name of the next pass; empty: nothing is pending
  std::string pending_text_;
};

}  // namespace hlokit::dump

#endif  // HLOKIT_PASSES_DUMPS_PASS_DUMP_H_
