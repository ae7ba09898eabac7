// SPDX-License-Identifier: Apache-2.0
#include "tools/ir_dump/value_kinds.h"

#include <set>
#include <string_view>

#include "ir/core/str_cat.h"
#include "tools/ir_dump/session.h"
#include "tracer/graph/op.h"
#include "tracer/models/batch_feed.h"
#include "tracer/models/model.h"
#include "tracer/nn/lr_schedule.h"

namespace hlokit {
namespace {

void CompleteOp(std::string_view, cli::Completion* out) {
  std::set<std::string_view> names;
  for (size_t k = 0; k < lazy::kOpCount; ++k) {
    const lazy::OpInfo& info = lazy::InfoOf(static_cast<lazy::Op>(k));
    if ((info.flags & lazy::kInternal) == 0) names.insert(info.schema_text.substr(0, info.schema_text.find('(')));
  }
  cli::CompleteNames({names.begin(), names.end()}, "", out);
}

// Completes "workers:2,cost:40ms".
void CompleteLoader(std::string_view typed, cli::Completion* out) {
  const size_t begin = typed.rfind(',') == std::string_view::npos ? 0 : typed.rfind(',') + 1;
  for (const std::string_view key : lazy::models::LoaderOptionNames()) {
    out->candidates.push_back({StrCat(typed.substr(0, begin), key, ":"), ""});
  }
  out->open = true;
}

void CompleteSchedule(std::string_view, cli::Completion* out) {
  cli::CompleteNames(lazy::nn::LrScheduleNames(), ":", out);
  out->open = true;
}

}  // namespace

std::vector<cli::ValueKind> ValueKinds() {
  return {{"OP", CompleteOp},
          {"MODEL",
           [](std::string_view, cli::Completion* out) { cli::CompleteNames(lazy::models::ModelNames(), "", out); }},
          {"WHAT",
           [](std::string_view typed, cli::Completion* out) { cli::CompleteList(typed, EmitOptions::Names(), out); }},
          {"SCHEDULE", CompleteSchedule},
          {"LOADER", CompleteLoader},
          {"FILES",
           [](std::string_view typed, cli::Completion* out) {
             out->paths = cli::Completion::Paths::kFiles;
             out->path_begin = typed.rfind(',') + 1;  // 0 if there is none
           }},
          {"CAPTURE", [](std::string_view, cli::Completion* out) {
             cli::CompleteNames({"full", "fwd-bwd", "breaks:"}, "", out);
             out->open = true;
           }}};
}

}  // namespace hlokit
