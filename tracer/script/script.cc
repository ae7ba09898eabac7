// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "ir/core/str_cat.h"
#include "tracer/script/script_program.h"
#include "tracer/script/script_runner.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy {
namespace {

// Adds diagnostics of a device, unless another one had the same.
void Merge(const DiagnosticSink& from, DiagnosticSink* to) {
  for (const Diagnostic& d : from.diagnostics()) {
    const bool known = std::any_of(to->diagnostics().begin(), to->diagnostics().end(), [&](const Diagnostic& k) {
      return k.range.offset == d.range.offset && k.message == d.message;
    });
    if (!known) to->Report(d);
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
  struct Replica {
    std::string printed;
    DiagnosticSink sink;
    bool ok = false;
  };
  std::vector<Replica> replicas(count);
  std::mutex turns;
  std::atomic<bool> failed = false;
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
    context.failed = &failed;
    script::ScriptRunner runner(source_, *program_, context, options, writer, &replicas[d].sink);
    replicas[d].ok = runner.Run(&(*results)[d]);
    if (!replicas[d].ok) failed = true;
  };
  std::vector<std::thread> others;
  for (size_t d = 1; d < count; ++d) others.emplace_back(run, d);
  run(0);
  for (std::thread& other : others) other.join();
  bool ok = true;
  for (size_t d = 0; d < count; ++d) {
    if (!replicas[d].printed.empty()) out << "device " << static_cast<int64_t>(d) << ":\n" << replicas[d].printed;
    Merge(replicas[d].sink, sink);
    ok = ok && replicas[d].ok;
  }
  return ok;
}

}  // namespace hlokit::lazy
