// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/simulation_log.h"

#include <filesystem>
#include <utility>

#include "ir/core/str_cat.h"
#include "nlohmann/json.hpp"
#include "pjrt/client/program_file.h"
#include "pjrt/client/program_simulation.h"

namespace hlokit::pjrt {
SimulationLog::SimulationLog(std::string directory, std::string device)
    : directory_(std::move(directory)), device_(std::move(device)) {
  std::error_code error;  // the first file that is written reports it
  std::filesystem::create_directories(directory_, error);
}

SimulationLog::~SimulationLog() {
  std::lock_guard<std::mutex> lock(mutex_);
  // Nobody is left to tell of an error, and the files of programs are there.
  const absl::Status ignored = WriteSummary();
}

absl::StatusOr<size_t> SimulationLog::AddProgram(const Module& module) {
  const absl::StatusOr<ProgramSimulation> reports = SimulateProgram(device_, module);
  std::lock_guard<std::mutex> lock(mutex_);
  ProgramRuns& added = programs_.emplace_back();
  added.name = std::string(module.name());
  const std::string stem = ProgramFileStem(static_cast<int64_t>(programs_.size()), module);
  added.report = StrCat(stem, reports.ok() ? ".json" : ".txt");
  absl::Status status;
  if (reports.ok()) {
    added.step_seconds = reports->step_seconds;
    status = WriteProgramFile(StrCat(directory_, "/", stem, ".json"), reports->json);
    if (status.ok()) status = WriteProgramFile(StrCat(directory_, "/", stem, ".txt"), reports->text);
  } else {
    status = WriteProgramFile(StrCat(directory_, "/", stem, ".txt"),
                              StrCat("not simulated: ", std::string(reports.status().message()), "\n"));
  }
  if (!status.ok()) return status;
  return programs_.size() - 1;
}

void SimulationLog::AddRun(size_t program) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t runs = ++programs_[program].runs;
  const bool power_of_two = (runs & (runs - 1)) == 0;
  if (power_of_two) {
    // An error is that of the report's file, which was written; a run is not the place to fail for it.
    const absl::Status ignored = WriteSummary();
  }
}

absl::Status SimulationLog::WriteSummary() const {
  nlohmann::ordered_json summary;
  summary["device"] = device_;
  summary["programs"] = nlohmann::ordered_json::array();
  double total = 0;
  for (size_t i = 0; i < programs_.size(); ++i) {
    const ProgramRuns& program = programs_[i];
    const double seconds = program.step_seconds * static_cast<double>(program.runs);
    total += seconds;
    summary["programs"].push_back({{"number", i + 1},
                                   {"name", program.name},
                                   {"runs", program.runs},
                                   {"step_seconds", program.step_seconds},
                                   {"total_seconds", seconds},
                                   {"report", program.report}});
  }
  summary["total_seconds"] = total;
  return WriteProgramFile(StrCat(directory_, "/summary.json"),
                          StrCat(summary.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace), "\n"));
}

}  // namespace hlokit::pjrt
