// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/execution_log.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "ir/core/str_cat.h"

namespace hlokit::lazy {
namespace {

std::string_view ToString(ExecutionRecord::ProgramOrigin program) {
  switch (program) {
    case ExecutionRecord::ProgramOrigin::kCompiled:
      return "compiled";
    case ExecutionRecord::ProgramOrigin::kLoaded:
      return "loaded";
    case ExecutionRecord::ProgramOrigin::kCached:
      return "cached";
  }
  return "";
}

// Returns true if this reason ends a step. Any other reason adds an extra graph to the step.
bool EndsStep(SyncReason cause) {
  switch (cause) {
    case SyncReason::kStep:
    case SyncReason::kLoaderStep:
    case SyncReason::kStepTrace:
    case SyncReason::kRegion:
    case SyncReason::kCapture:
    case SyncReason::kReplay:
    case SyncReason::kTool:  // after the program
      return true;
    case SyncReason::kValue:
    case SyncReason::kItem:
    case SyncReason::kRegionPending:
    case SyncReason::kCaptureInputs:
      return false;
  }
  return false;
}

struct Summary {
  int64_t steps = 0;
  int64_t most = 0;  // maximal graphs of a step
  int64_t compiled = 0;
  int64_t loaded = 0;
  std::set<Digest> different;
  // Reasons of extra graphs: word, root and location, count. Ordered by word.
  std::map<std::pair<std::string, std::string>, int64_t> breaks;
};

Summary Summarize(const std::vector<ExecutionRecord>& executions) {
  Summary s;
  std::map<std::pair<std::string, int64_t>, int64_t> graphs;  // of a device and step
  for (const ExecutionRecord& e : executions) {
    s.most = std::max(s.most, ++graphs[{e.device, e.step}]);
    s.compiled += e.program == ExecutionRecord::ProgramOrigin::kCompiled;
    s.loaded += e.program == ExecutionRecord::ProgramOrigin::kLoaded;
    s.different.insert(e.graph);
    if (EndsStep(e.cause)) continue;
    const std::string place = LocationOf(e.frames);
    ++s.breaks[{StrCat(ToString(e.cause), " of ", e.root), place}];
  }
  s.steps = static_cast<int64_t>(graphs.size());
  return s;
}

}  // namespace

void ExecutionLog::Add(ExecutionRecord execution) {
  std::lock_guard<std::mutex> lock(mutex_);
  executions_.push_back(std::move(execution));
}

std::vector<ExecutionRecord> ExecutionLog::executions() const {
  std::vector<ExecutionRecord> executions;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    executions = executions_;
  }
  std::stable_sort(executions.begin(), executions.end(), [](const ExecutionRecord& a, const ExecutionRecord& b) {
    return std::pair(a.step, a.ordinal) < std::pair(b.step, b.ordinal);
  });
  std::map<std::pair<int64_t, Digest>, size_t> cached;  // the first execution of a program in a step, if it is cached
  for (size_t i = 0; i < executions.size(); ++i) {
    const auto [first, fresh] = cached.try_emplace({executions[i].step, executions[i].graph}, i);
    if (!fresh && executions[i].program != ExecutionRecord::ProgramOrigin::kCached &&
        executions[first->second].program == ExecutionRecord::ProgramOrigin::kCached) {
      std::swap(executions[first->second].program, executions[i].program);
    }
  }
  return executions;
}

std::string LocationOf(const std::vector<SourceFrame>& frames) {
  if (frames.empty()) return "";
  const SourceFrame& frame = frames[0];
  const size_t slash = frame.file.rfind('/');
  return StrCat(frame.function, "@", slash == std::string::npos ? frame.file : frame.file.substr(slash + 1), ":",
                frame.line);
}

std::string GraphReport(const std::vector<ExecutionRecord>& executions) {
  std::string out;
  const ExecutionRecord* previous = nullptr;
  for (const ExecutionRecord& e : executions) {
    if (previous == nullptr || previous->step != e.step || previous->device != e.device) {
      const auto n = std::count_if(executions.begin(), executions.end(), [&](const ExecutionRecord& other) {
        return other.step == e.step && other.device == e.device;
      });
      StrAppend(&out, "step ", e.step, " on ", e.device, ": ", Counted(n, "graph"), "\n");
    }
    previous = &e;
    StrAppend(&out, "  ", ToString(e.graph), " ", ToString(e.program), ", ", Counted(e.nodes, "node"), ", ",
              Counted(e.inputs, "input"), ", ", Counted(e.outputs, "output"), ", ", e.donated, " donated, ",
              ToString(e.cause));
    if (!EndsStep(e.cause)) StrAppend(&out, " of ", e.root);
    if (!e.name.empty()) StrAppend(&out, " ", e.name);
    if (const std::string place = LocationOf(e.frames); !place.empty()) StrAppend(&out, ", at ", place);
    out += "\n";
  }
  const Summary s = Summarize(executions);
  StrAppend(&out, Counted(s.steps, "step"), ", ", Counted(executions.size(), "graph"), " run, at most ", s.most,
            " a step, ", static_cast<int64_t>(s.different.size()), " different, ", s.compiled, " compiled, ", s.loaded,
            " loaded\n");
  for (const auto& [what, times] : s.breaks) {
    StrAppend(&out, "broken by ", what.first, what.second.empty() ? "" : StrCat(", at ", what.second), ": ",
              Counted(times, "time"), "\n");
  }
  return out;
}

std::string GraphReportJson(const std::vector<ExecutionRecord>& executions) {
  using Json = nlohmann::ordered_json;
  Json steps = Json::array();
  const ExecutionRecord* previous = nullptr;
  for (const ExecutionRecord& e : executions) {
    if (previous == nullptr || previous->step != e.step || previous->device != e.device) steps.push_back(Json::array());
    previous = &e;
    Json frames = Json::array();
    for (const SourceFrame& f : e.frames)
      frames.push_back({{"function", f.function}, {"file", f.file}, {"line", f.line}});
    steps.back().push_back({{"step", e.step},
                            {"device", e.device},
                            {"cause", ToString(e.cause)},
                            {"name", e.name},
                            {"hash", ToString(e.graph)},
                            {"program", ToString(e.program)},
                            {"root", e.root},
                            {"nodes", e.nodes},
                            {"inputs", e.inputs},
                            {"outputs", e.outputs},
                            {"donated", e.donated},
                            {"frames", std::move(frames)}});
  }
  const Summary s = Summarize(executions);
  Json breaks = Json::array();
  for (const auto& [what, times] : s.breaks) {
    breaks.push_back({{"by", what.first}, {"at", what.second}, {"times", times}});
  }
  const Json report = {{"steps", std::move(steps)},
                       {"summary",
                        {{"steps", s.steps},
                         {"graphs", executions.size()},
                         {"most_in_a_step", s.most},
                         {"different", s.different.size()},
                         {"compiled", s.compiled},
                         {"loaded", s.loaded},
                         {"breaks", std::move(breaks)}}}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hlokit::lazy
