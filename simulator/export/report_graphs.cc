// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/report_graphs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "simulator/export/span_names.h"
#include "simulator/report/ascii.h"
#include "simulator/report/number_text.h"

namespace hlokit::tpu {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kTolerance = 1e-3;  // of the whole
constexpr double kModelTolerance = 0.05;
constexpr size_t kListedSpans = 2000;  // of a thread
constexpr std::string_view kTotals[] = {"device_time_us", "core_busy_us", "core_stall_us",
                                        "flops",          "hbm_bytes",    "interconnect_bytes"};
constexpr std::string_view kRowTotals[] = {"concurrent_us", "core_us",    "runs",        "time_us",
                                           "stall_us",      "flops",      "hbm_bytes",   "interconnect_bytes",
                                           "bytes",         "exposed_us", "sync_wait_us"};

// Multiplies the totals of a row.
void Scale(double runs, Json* row) {
  for (std::string_view key : kRowTotals) {
    if (const auto found = row->find(std::string(key)); found != row->end() && found->is_number()) {
      *found = found->get<double>() * runs;
    }
  }
  if (const auto busy = row->find("busy_us"); busy != row->end()) {
    for (auto& item : busy->items()) item.value() = item.value().get<double>() * runs;
  }
}

// Adds the rows of `more` to those of `*rows` with the same name.
void AddRows(const std::string& name, const Json& more, double runs, Json* rows) {
  for (Json row : more) {
    Scale(runs, &row);
    const auto same = std::find_if(rows->begin(), rows->end(), [&](const Json& r) { return r[name] == row[name]; });
    if (same == rows->end()) {
      rows->push_back(std::move(row));
      continue;
    }
    for (std::string_view key : kRowTotals) {
      const std::string text(key);
      if (same->contains(text) && row.contains(text))
        (*same)[text] = (*same)[text].get<double>() + row[text].get<double>();
    }
  }
}

}  // namespace

void MergeGraphs(const std::vector<ReportGraph>& graphs, const ReportInput& main, Json* report) {
  if (graphs.size() == 1 && graphs[0].runs_per_step == 1) return;
  for (std::string_view key : kTotals) (*report)[std::string(key)] = 0.0;
  for (auto& item : (*report)["busy_us"].items()) item.value() = 0.0;
  (*report)["categories"] = Json::array();
  (*report)["collectives"] = Json::array();
  (*report)["ops"] = Json::array();
  std::map<std::string, int64_t> unmodeled;
  for (const ReportGraph& graph : graphs) {
    const double runs = graph.runs_per_step;
    if (runs <= 0) continue;
    const Json own = Json::parse(ReportJson(*graph.input));
    for (std::string_view name : kTotals) {
      const std::string key(name);
      (*report)[key] = (*report)[key].get<double>() + own[key].get<double>() * runs;
    }
    for (const auto& item : own["busy_us"].items()) {
      Json& sum = (*report)["busy_us"][item.key()];
      sum = (sum.is_number() ? sum.get<double>() : 0) + item.value().get<double>() * runs;
    }
    AddRows("category", own["categories"], runs, &(*report)["categories"]);
    AddRows("kind", own["collectives"], runs, &(*report)["collectives"]);
    for (Json row : own["ops"]) {
      Scale(runs, &row);
      if (graph.input != &main) row["graph"] = Ascii(graph.input->module.name());
      (*report)["ops"].push_back(std::move(row));
    }
    for (const Json& row : own["unmodeled"]) unmodeled[row["what"].get<std::string>()] += row["count"].get<int64_t>();
  }
  Json& ops = (*report)["ops"];
  std::stable_sort(ops.begin(), ops.end(), [](const Json& a, const Json& b) { return a["time_us"] > b["time_us"]; });
  Json missing = Json::array();
  for (const auto& [what, count] : unmodeled) missing.push_back({{"what", what}, {"count", count}});
  (*report)["unmodeled"] = std::move(missing);
}

Json GraphsJson(const std::vector<ReportGraph>& graphs) {
  Json list = Json::array();
  for (const ReportGraph& graph : graphs) {
    Json compile = {{"modeled_us", ToMicroseconds(graph.compile_time.seconds)},
                    {"instructions", graph.compile_time.instructions},
                    {"kernels", graph.compile_time.kernels},
                    {"source", std::string(kCompileTimeSource)}};
    if (graph.measured_compile_seconds > 0) {
      compile["measured_us"] = std::round(graph.measured_compile_seconds * 1e6);
    }
    list.push_back({{"module", Ascii(graph.input->module.name())},
                    {"runs_per_step", graph.runs_per_step},
                    {"device_time_us", ToMicroseconds(graph.input->simulation.device_seconds)},
                    {"time_per_step_us", ToMicroseconds(graph.input->simulation.device_seconds * graph.runs_per_step)},
                    {"peak_bytes", graph.input->memory.peak_bytes},
                    {"limit_bytes", graph.input->memory.limit_bytes},
                    {"fits", graph.input->memory.fits()},
                    {"compile", std::move(compile)}});
  }
  return list;
}

Json ThreadsJson(const RecordedRun& run) {
  Json threads = Json::array();
  for (const HostThread& thread : run.threads) {
    // Of a long run the last spans.
    const size_t first = thread.spans.size() > kListedSpans ? thread.spans.size() - kListedSpans : 0;
    Json spans = Json::array();
    for (size_t k = first; k < thread.spans.size(); ++k) {
      const HostSpan& span = thread.spans[k];
      const bool user = span.root || PhaseOfSpan(span.name) == HostPhase::kTrace;
      spans.push_back({Ascii(span.name), ToMicroseconds(span.start), ToMicroseconds(span.duration), span.step,
                       user ? 1 : 0, Ascii(span.source), std::string(ToString(PhaseOfSpan(span.name)))});
    }
    threads.push_back({{"thread", Ascii(thread.name)}, {"omitted", first}, {"spans", std::move(spans)}});
    if (thread.device >= 0) threads.back()["device"] = thread.device;
    if (thread.straggler) threads.back()["straggler"] = true;
  }
  return threads;
}

namespace {

class PartChecker {
 public:
  PartChecker(const std::vector<ReportGraph>& graphs, Json* report) : graphs_(graphs), report_(*report) {}

  void Run(double replayed_seconds) {
    CheckStep();
    if (replayed_seconds > 0) {
      Check("step: the threads as they ran, and the model of the host", replayed_seconds * 1e6, Total("step_time_us"),
            kModelTolerance);
    }
    double graphs = 0;
    for (const Json& graph : report_["graphs"]) graphs += graph["time_per_step_us"].get<double>();
    Check("device time: graphs of a step", graphs, Total("device_time_us"));
    CheckCore();
    CheckDevices();
    report_["checks"] = std::move(checks_);
    report_["missing"] = std::move(missing_);
  }

 private:
  double Total(const char* key) const { return report_[key].get<double>(); }

  void Check(std::string_view what, double parts, double whole, double tolerance = kTolerance) {
    const double gap = whole - parts;
    checks_.push_back({{"what", std::string(what)}, {"parts_us", parts}, {"whole_us", whole}});
    if (std::abs(gap) <= tolerance * std::abs(whole)) return;
    missing_.push_back({{"what", StrCat("of the ", what)}, {"time_us", gap}});
  }

  void CheckStep() {
    double parts = 0;
    double device = 0;
    for (const Json& part : report_["breakdown"]) {
      parts += part["time_us"].get<double>();
      if (part["kind"] != "idle") device += part["time_us"].get<double>();
      // Time of the step that no part explains has a row, so that the chart is whole.
      if (part["name"] == "not attributed") {
        missing_.push_back(
            {{"what", "of the device time: not attributed to an operation"}, {"time_us", part["time_us"]}});
      }
    }
    Check("step: device work, stalls and idle time", parts, Total("step_time_us"));
    Check("device time: work and stalls", device, Total("device_time_us"));
  }

  // Operations are those of a device of nominal speed, whatever the speeds of the devices are.
  void CheckCore() {
    double whole = 0;
    double stalls = 0;
    bool nominal = true;
    for (const ReportGraph& graph : graphs_) {
      const int64_t entry = graph.plan->PlanOf(graph.input->module.entry().id());
      if (entry < 0) continue;
      const ComputationTime& time = graph.input->simulation.computations[static_cast<size_t>(entry)];
      whole += 1e6 * time.duration * graph.runs_per_step;
      stalls += 1e6 * time.stall * graph.runs_per_step;
      nominal = nominal && graph.input->options.variation.empty();
    }
    double operations = stalls;
    for (const Json& op : report_["ops"]) operations += op["core_us"].get<double>();
    double categories = stalls;
    for (const Json& row : report_["categories"]) {
      categories += row["time_us"].get<double>() - row["concurrent_us"].get<double>();
    }
    const std::string of = nominal ? "device time: " : "device time at nominal speed: ";
    if (nominal) whole = Total("device_time_us");
    Check(StrCat(of, "operations on the core, and its stalls"), operations, whole);
    Check(StrCat(of, "categories on the core, and its stalls"), categories, whole);
  }

  // Checks the device whose parts are farthest from the whole.
  void CheckDevices() {
    size_t devices = 1;
    for (const ReportGraph& graph : graphs_) {
      devices = std::max(devices, graph.input->simulation.devices.shares.size());
    }
    const double whole = Total("device_time_us");
    double worst = whole;
    for (size_t d = 0; d < devices; ++d) {
      double parts = 0;
      for (const ReportGraph& graph : graphs_) {
        const DeviceTimelines& timelines = graph.input->simulation.devices;
        if (timelines.shares.empty()) continue;
        const DeviceTimeBreakdown& share = timelines.ShareOf(static_cast<int64_t>(d));
        parts += 1e6 * (share.compute + share.exposed + share.sync + share.other + share.idle) * graph.runs_per_step;
      }
      if (std::abs(parts - whole) > std::abs(worst - whole)) worst = parts;
    }
    Check("device time: work, waits and idle time of each device", worst, whole);
  }

  const std::vector<ReportGraph>& graphs_;
  Json& report_;
  Json checks_ = Json::array();
  Json missing_ = Json::array();
};

}  // namespace

void CheckParts(const std::vector<ReportGraph>& graphs, double replayed_seconds, Json* report) {
  PartChecker(graphs, report).Run(replayed_seconds);
}

}  // namespace hlokit::tpu
