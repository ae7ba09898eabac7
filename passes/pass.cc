#include "passes/pass.h"

#include "ir/diagnostic.h"
#include "ir/str_cat.h"
#include "passes/simplify/cse.h"
#include "passes/simplify/dce.h"

namespace hlokit {

std::vector<std::unique_ptr<Pass>> AllPasses() {
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(std::make_unique<Cse>());
  passes.push_back(std::make_unique<Dce>());
  return passes;
}

absl::StatusOr<std::vector<std::unique_ptr<Pass>>> ParsePipeline(std::string_view text) {
  std::vector<std::unique_ptr<Pass>> pipeline;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    std::vector<std::unique_ptr<Pass>> known = AllPasses();
    std::vector<std::string_view> names;
    bool found = false;
    for (std::unique_ptr<Pass>& pass : known) {
      names.push_back(pass->name());
      if (pass->name() != name) continue;
      pipeline.push_back(std::move(pass));
      found = true;
      break;
    }
    if (found) continue;
    const std::string_view near = Nearest(name, names);
    return absl::InvalidArgumentError(
        StrCat("there is no pass `", name, "`", near.empty() ? "" : StrCat("; did you mean `", near, "`?")));
  }
  return pipeline;
}

}  // namespace hlokit
