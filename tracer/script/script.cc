// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include "ir/core/str_cat.h"
#include "ir/core/thread_group.h"
#include "runtime/observe/profiler.h"
#include "tracer/script/script_program.h"
#include "tracer/script/script_runner.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy {
namespace {

// The script on one of several devices.
struct Replica {
  std::string printed;
  DiagnosticSink sink;
  bool ok = false;
  bool stopped = false;  // its error is that another device has ended

  bool failed() const { return !ok && !stopped; }
};

// Returns "device 1", "devices 0 and 2".
std::string NamesOf(const std::vector<size_t>& devices) {
  std::string names = devices.size() == 1 ? "device " : "devices ";
  for (size_t i = 0; i < devices.size(); ++i) {
    StrAppend(&names, i == 0 ? "" : i + 1 == devices.size() ? " and " : ", ", devices[i]);
  }
  return names;
}

// Adds the diagnostics of all devices, equal ones once: first of those that failed, with the devices if others did not;
// then of those that were stopped, with the device that failed and its error.
void Merge(const SourceBuffer& source, const std::vector<Replica>& replicas, DiagnosticSink* to) {
  const auto same = [](const Diagnostic& a, const Diagnostic& b) {
    return a.range.offset == b.range.offset && a.message == b.message;
  };
  std::vector<std::pair<Diagnostic, std::vector<size_t>>> merged;
  std::vector<size_t> ended;
  std::string cause;
  for (size_t d = 0; d < replicas.size(); ++d) {
    if (replicas[d].ok) ended.push_back(d);
    if (!replicas[d].failed()) continue;
    for (const Diagnostic& diagnostic : replicas[d].sink.diagnostics()) {
      if (cause.empty()) {
        cause = StrCat("device ", d, " failed at line ", LineColumnAt(source.text(), diagnostic.range.offset).line,
                       ": ", diagnostic.message);
      }
      auto known = std::find_if(merged.begin(), merged.end(), [&](const auto& m) { return same(m.first, diagnostic); });
      if (known == merged.end()) known = merged.insert(known, {diagnostic, {}});
      if (known->second.empty() || known->second.back() != d) known->second.push_back(d);
    }
  }
  for (auto& [diagnostic, devices] : merged) {
    if (devices.size() < replicas.size()) StrAppend(&diagnostic.message, " (", NamesOf(devices), ")");
    to->Report(diagnostic);
  }
  if (cause.empty() && !ended.empty()) {
    cause = StrCat(NamesOf(ended), ended.size() == 1 ? ", which this one waits for, has ended"
                                                     : ", which this one waits for, have ended");
  }
  merged.clear();
  for (size_t d = 0; d < replicas.size(); ++d) {
    if (!replicas[d].stopped || replicas[d].sink.diagnostics().empty()) continue;
    Diagnostic diagnostic = replicas[d].sink.diagnostics().back();
    if (!cause.empty()) diagnostic.message = cause;
    auto known = std::find_if(merged.begin(), merged.end(), [&](const auto& m) { return same(m.first, diagnostic); });
    if (known == merged.end()) known = merged.insert(known, {diagnostic, {}});
    known->second.push_back(d);
  }
  for (auto& [diagnostic, devices] : merged) {
    diagnostic.message = StrCat(NamesOf(devices), " stopped: ", diagnostic.message);
    to->Report(diagnostic);
  }
}

}  // namespace

Script::Script(const SourceBuffer& source) : source_(source), program_(std::make_unique<script::ScriptProgram>()) {}
Script::~Script() = default;

std::unique_ptr<const Script> Script::Parse(const SourceBuffer& source, DiagnosticSink* sink) {
  auto script = std::unique_ptr<Script>(new Script(source));
  if (!script::ParseProgram(source, script->program_.get(), sink)) return nullptr;
  return script;
}

int64_t Script::devices() const { return program_->devices; }

bool Script::Run(Tracer& tracer, const ProgramOptions& options, TextWriter& out, std::vector<ProgramResult>* results,
                 DiagnosticSink* sink) const {
  const size_t count = tracer.device_count();
  results->resize(count);
  if (count == 1) {
    DeviceState* const device = CurrentDevice() != nullptr ? CurrentDevice() : tracer.device();
    script::RunContext context;
    context.tracer = &tracer;
    context.device = device;
    context.inputs = options.inputs;
    context.max_input_bytes = options.max_value_bytes;
    return script::ScriptRunner(source_, *program_, context, options, out, sink).Run(&(*results)[0]);
  }
  // Devices take turns: one runs statements while the others wait for values, for steps or for each other.
  std::vector<Replica> replicas(count);
  std::mutex turns;
  const auto run = [&](size_t d) {
    DeviceState* const device = tracer.device(static_cast<int>(d));
    const DeviceGuard guard(device);
    std::unique_lock<std::mutex> turn(turns);
    TextWriter writer(&replicas[d].printed);
    script::RunContext context;
    context.tracer = &tracer;
    context.device = device;
    context.inputs = options.inputs;
    context.max_input_bytes = options.max_value_bytes;
    context.turn = &turn;
    script::ScriptRunner runner(source_, *program_, context, options, writer, &replicas[d].sink);
    try {
      replicas[d].ok = runner.Run(&(*results)[d]);
    } catch (const std::exception& e) {
      // No memory, or no thread: the other devices do not wait for this one.
      replicas[d].sink.Error(DiagnosticKind::kTooLarge, {}, e.what());
    }
    replicas[d].stopped = !replicas[d].ok && runner.stopped();
    const auto& errors = replicas[d].sink.diagnostics();
    tracer.Leave(device, replicas[d].ok || errors.empty() ? StrCat("device ", d, " has ended")
                         : replicas[d].stopped            ? errors.back().message
                                                          : StrCat("device ", d, " failed: ", errors[0].message));
  };
  const int64_t begin = runtime::TraceMe::NewFlow();
  {
    runtime::TraceMe start("StartReplicas");
    start.Produces(begin);
  }
  ThreadGroup others;
  for (size_t d = 1; d < count; ++d) {
    const bool started = others.Start([&run, d, begin] {
      runtime::Profiler::SetThreadName(StrCat("replica ", d));
      {
        runtime::TraceMe started("BeginReplica");
        started.Consumes(begin);
      }
      run(d);
    });
    if (started) continue;
    const std::string why = StrCat("cannot start a thread for device ", d);
    replicas[d].sink.Error(DiagnosticKind::kTooLarge, {}, why);
    tracer.Leave(tracer.device(static_cast<int>(d)), why);
  }
  run(0);
  others.Join();
  tracer.NextSession();
  bool ok = true;
  for (size_t d = 0; d < count; ++d) {
    if (!replicas[d].printed.empty()) out << "device " << static_cast<int64_t>(d) << ":\n" << replicas[d].printed;
    ok = ok && replicas[d].ok;
  }
  Merge(source_, replicas, sink);
  return ok;
}

}  // namespace hlokit::lazy
