// SPDX-License-Identifier: Apache-2.0
#include "tools/ir_dump/output_form.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "ir/core/str_cat.h"
#include "tools/cli/module_file.h"

namespace hlokit {
namespace {

// Forms of other tools, which ir-dump does not write.
constexpr std::string_view kOfOtherTools[] = {".npy", ".npz", ".safetensors", ".svg", ".png", ".html"};

// Sets --as of the graphs of a file to `name` if it is open. Returns the error otherwise.
std::string ChooseAs(const std::string& path, std::string_view name, InputForm* input) {
  if (input->form.empty() && input->other.empty()) input->form = std::string(name);
  if (input->form == name) return "";
  const std::string other = input->other.empty() ? StrCat("--as=", input->form) : std::string("--diff");
  return StrCat(path, ": the suffix is that of --as=", name, ", not of ", other);
}

}  // namespace

std::string ChooseBySuffix(bool more_text, OutputForm* form, EmitOptions* emit, InputForm* input) {
  const std::string& path = form->path;
  const auto ends_with = [&path](std::string_view suffix) { return path.ends_with(suffix); };
  const auto* const other = std::find_if(std::begin(kOfOtherTools), std::end(kOfOtherTools), ends_with);
  if (other != std::end(kOfOtherTools)) {
    return StrCat(path, ": ir-dump writes no ", *other, " files; its suffixes are .json, .dot, those of modules (",
                  "hlo-translate --help), and any others for text");
  }
  const bool graphs_of_file = !input->path.empty() && !emit->any();
  const bool alone = emit->count() == 1 && !form->json && !more_text;
  if (ends_with(".dot")) {
    if (graphs_of_file) return ChooseAs(path, "dot", input);
    if (!alone || !(emit->lazy || emit->dot)) return StrCat(path, ": --emit=lazy-dot alone writes DOT");
    emit->lazy = false;
    emit->dot = true;
    return "";
  }
  const std::optional<std::string_view> format = cli::FormatOfPath(path);
  if (!format) return "";
  const bool module = alone && (emit->hlo || emit->optimized);
  if (*format == "json") {
    if (graphs_of_file) return ChooseAs(path, "json", input);
    if (module) {
      form->module_format = *format;
    } else {
      form->json = true;
    }
    return "";
  }
  if (*format == "hlo") {
    const bool named = ends_with(".hlo");
    if (named && form->json) return StrCat(path, ": --json writes no HLO text");
    if (named && (graphs_of_file || (emit->any() && !emit->hlo && !emit->optimized))) {
      return StrCat(path, ": --emit=hlo and --emit=optimized-hlo write HLO text");
    }
    return "";
  }
  if (!module) return StrCat(path, ": --emit=hlo or --emit=optimized-hlo alone writes a file of this format");
  form->module_format = *format;
  return "";
}

}  // namespace hlokit
