// SPDX-License-Identifier: Apache-2.0
#include "passes/instrumentation/printing.h"

#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "passes/annotations/text.h"

namespace hlokit {

std::string TextInside(const Module& module) {
  Module copy = module.Clone();
  WriteOrigins(copy);
  std::string text;
  {
    TextWriter out(&text);
    PrintModule(out, copy);
  }
  return text;
}

absl::Status PrintIr::Before(const PassRun& run, const Module& module) {
  if (options_.before && options_.before(run.info.name)) {
    write_(StrCat("// -----// IR Dump Before ", run.info.name, " (run ", run.number, ") //----- //\n",
                  TextInside(module)));
  }
  if (options_.changes == Changes::kDiff && last_.empty()) last_ = TextInside(module);
  return absl::OkStatus();
}

absl::Status PrintIr::After(const PassRun& run, const Module& module, bool changed) {
  const bool wanted = options_.after && options_.after(run.info.name);
  if (!wanted && !(changed && options_.changes == Changes::kDiff)) return absl::OkStatus();
  if (options_.changes == Changes::kNo || (changed && options_.changes == Changes::kWhole)) {
    write_(
        StrCat("// -----// IR Dump After ", run.info.name, " (run ", run.number, ") //----- //\n", TextInside(module)));
  } else if (changed) {
    std::string text = TextInside(module);
    if (wanted) {
      write_(StrCat("// -----// IR Changed By ", run.info.name, " (run ", run.number, ") //----- //\n",
                    LineDiff(last_, text)));
    }
    last_ = std::move(text);
  }
  return absl::OkStatus();
}

}  // namespace hlokit
