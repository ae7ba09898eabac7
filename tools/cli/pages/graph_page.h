// SPDX-License-Identifier: Apache-2.0
// The data of pages with graphs of modules.
#ifndef HLOKIT_TOOLS_CLI_PAGES_GRAPH_PAGE_H_
#define HLOKIT_TOOLS_CLI_PAGES_GRAPH_PAGE_H_

#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "passes/view/graph_document.h"

namespace hlokit::cli {

// A module, and what the document says of it.
struct GraphSource {
  const Module* module = nullptr;
  GraphDocumentOptions options;
};

// Returns the data of the page: an array of these graphs.
std::string GraphJson(const std::vector<GraphSource>& graphs);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_PAGES_GRAPH_PAGE_H_
