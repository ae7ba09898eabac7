// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/simulation.h"

#include <string>
#include <utility>

#include "pjrt/client/program_simulation.h"
#include "pjrt/execution/program.h"
#include "pjrt/values/arguments.h"

struct HlokitSimulation {
  hlokit::pjrt::ProgramSimulation result;
};

namespace hlokit::pjrt {

absl::Status CreateSimulation(HlokitSimulation_Create_Args* args) {
  using Args = HlokitSimulation_Create_Args;
  const PJRT_Program& code = *args->program;
  absl::StatusOr<CompileOptions> options =
      ReadCompileOptions(TextOf(args->compile_options, args->compile_options_size));
  if (!options.ok()) return options.status();
  const absl::StatusOr<Program> program =
      ReadProgram(TextOf(code.code, code.code_size), TextOf(code.format, code.format_size), *std::move(options));
  if (!program.ok()) return program.status();
  const SimulationDocument document = args->with_document ? SimulationDocument::kWith : SimulationDocument::kWithout;
  absl::StatusOr<ProgramSimulation> result =
      SimulateProgram(std::string(TextOf(args->device, args->device_size)), *program->module, document);
  if (!result.ok()) return result.status();
  auto* const held = new HlokitSimulation{*std::move(result)};
  args->simulation = held;
  SetText(args, &Args::text, &Args::text_size, held->result.text);
  SetText(args, &Args::json, &Args::json_size, held->result.json);
  SetText(args, &Args::document, &Args::document_size, held->result.document);
  return absl::OkStatus();
}

absl::Status DestroySimulation(HlokitSimulation_Destroy_Args* args) {
  delete args->simulation;
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
