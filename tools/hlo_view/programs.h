// SPDX-License-Identifier: Apache-2.0
// Other programs that hlo-view starts.
#ifndef HLOKIT_TOOLS_HLO_VIEW_PROGRAMS_H_
#define HLOKIT_TOOLS_HLO_VIEW_PROGRAMS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlokit::view {

// Returns the picture that Graphviz (the program `dot`) draws of a description. Not found: it is not installed.
absl::StatusOr<std::string> RunGraphviz(std::string_view dot);

// Opens a file with the browser of the desktop (the program `xdg-open`).
absl::Status OpenInBrowser(const std::string& path);

}  // namespace hlokit::view

#endif  // HLOKIT_TOOLS_HLO_VIEW_PROGRAMS_H_
