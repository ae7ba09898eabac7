// SPDX-License-Identifier: Apache-2.0
#include "passes/instrumentation/printing.h"

#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "passes/annotations/text.h"

namespace hlokit {

std::string PrintMidPipeline(const Module& module) {
  Module copy = module.Clone();
  WriteMetadataSources(copy);
  std::string text;
  {
    TextWriter out(&text);
    PrintModule(out, copy);
  }
  return text;
}

absl::Status PrintIr::RunBeforePass(const PassRun& run, const Module& module) {
  if (options_.before && options_.before(run.info.name)) {
    write_(StrCat("// -----// IR Dump Before ", run.info.name, " (run ", run.number, ") //----- //\n",
                  PrintMidPipeline(module)));
  }
  if (options_.changes == Changes::kDiff && last_.empty()) last_ = PrintMidPipeline(module);
  return absl::OkStatus();
}

absl::Status PrintIr::RunAfterPass(const PassRun& run, const Module& module, bool changed) {
  const bool wanted = options_.after && options_.after(run.info.name);
  if (!wanted && !(changed && options_.changes == Changes::kDiff)) return absl::OkStatus();
  if (options_.changes == Changes::kOff || (changed && options_.changes == Changes::kFull)) {
    write_(StrCat("// -----// IR Dump After ", run.info.name, " (run ", run.number, ") //----- //\n",
                  PrintMidPipeline(module)));
  } else if (changed) {
    std::string text = PrintMidPipeline(module);
    if (wanted) {
      write_(StrCat("// -----// IR Changed By ", run.info.name, " (run ", run.number, ") //----- //\n",
                    LineDiff(last_, text)));
    }
    last_ = std::move(text);
  }
  return absl::OkStatus();
}

}  // namespace hlokit
