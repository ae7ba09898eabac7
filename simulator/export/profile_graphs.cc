// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/profile_graphs.h"

#include <cstddef>
#include <vector>

#include "passes/view/graph_document.h"
#include "simulator/report/instruction_times.h"

namespace hlokit::tpu {
namespace {

// Instructions of the graphs in a page, beyond which programs are left out: about 5 MB.
constexpr size_t kMaxGraphInstructions = 500'000;

}  // namespace

std::string ProfileGraphs(const ProfileSimulation& simulated, const std::string& device) {
  std::vector<GraphSource> graphs;
  size_t instructions = 0;
  const auto add = [&](size_t program) {
    const ReportInput& input = simulated.input(program);
    instructions += input.module.instruction_id_bound();
    if (!graphs.empty() && instructions > kMaxGraphInstructions) return;
    GraphSource& graph = graphs.emplace_back();
    graph.module = &input.module;
    graph.options.device = device;
    graph.options.seconds = SecondsByInstruction(input.module, input.simulation);
  };
  const size_t main_program = simulated.replay().main_program;
  add(main_program);
  for (size_t p = 0; p < simulated.program_count(); ++p) {
    if (p != main_program) add(p);
  }
  return GraphsJson(graphs);
}

}  // namespace hlokit::tpu
