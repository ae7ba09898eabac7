// SPDX-License-Identifier: Apache-2.0
#include "tests/random/value_round_trips.h"

#include <cstring>
#include <memory>
#include <utility>

#include "interp/exact/argument_generator.h"
#include "interp/exact/arguments.h"
#include "interp/exact/evaluator.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "ir/graph/literal_fill.h"
#include "ir/json/json_printer.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/core/parser.h"
#include "parser/json/json_parser.h"
#include "passes/core/pipeline.h"

namespace hlokit::random_test {
namespace {

std::string FirstError(const DiagnosticSink& sink) {
  for (const Diagnostic& d : sink.diagnostics()) {
    if (d.severity == Severity::kError) return d.message;
  }
  return "";
}

std::unique_ptr<Module> Read(std::string text, bool json, std::string* error) {
  DiagnosticSink sink;
  const auto source = std::make_shared<const SourceBuffer>("module", std::move(text));
  std::unique_ptr<Module> module = json ? ParseJsonModule(source, {}, &sink) : ParseModule(source, {}, &sink);
  if (module != nullptr) VerifyModule(*module, VerifierOptions(), &sink);
  *error = FirstError(sink);
  return error->empty() ? std::move(module) : nullptr;
}

// `made`: the arguments if there is no text of them; filled by the first run, since they depend on the module's code.
std::optional<std::vector<Literal>> Evaluate(const Module& module, const RoundTripOptions& options, int threads,
                                             std::optional<std::vector<Literal>>* made, std::string* error) {
  DiagnosticSink sink;
  AnyHost host;
  interp::EvaluatorOptions evaluator_options;
  evaluator_options.seed = 1;
  evaluator_options.fill_elided = FillKind::kRandom;
  evaluator_options.mixed_precision = options.mixed_precision;
  evaluator_options.host_io = &host;
  evaluator_options.num_threads = threads;
  evaluator_options.limits.max_bytes = int64_t{4} << 30;
  const std::unique_ptr<interp::Evaluator> evaluator = interp::Evaluator::Prepare(module, evaluator_options, &sink);
  std::optional<std::vector<Literal>> results;
  if (evaluator != nullptr) {
    std::optional<std::vector<Literal>> arguments;
    if (options.arguments) {
      const SourceBuffer lines("arguments", *options.arguments);
      arguments = interp::ReadArguments(lines, evaluator->argument_shapes(), &module.context(), &sink);
    } else {
      if (!*made) *made = interp::MakeFakeArguments(module, 1);
      arguments = *made;
    }
    if (arguments) results = evaluator->Run(*arguments, &sink);
  }
  if (!results) *error = FirstError(sink);
  return results;
}

// Bit for bit, NaNs as well.
bool Same(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size_bytes() != b[i].size_bytes()) return false;
    if (a[i].size_bytes() != 0 && std::memcmp(a[i].data(), b[i].data(), a[i].size_bytes()) != 0) return false;
  }
  return true;
}

}  // namespace

absl::Status AnyHost::Receive(std::string_view queue, int64_t device, absl::Span<Literal> leaves) {
  for (size_t i = 0; i < leaves.size(); ++i) {
    leaves[i] =
        FillElided(leaves[i].shape(), FillKind::kRandom, queue.size() + i + (static_cast<uint64_t>(device) << 32));
  }
  return absl::OkStatus();
}

RoundTripResult CheckRoundTrips(std::string_view text, const RoundTripOptions& options) {
  RoundTripResult result;
  std::string error;
  const auto fail = [&](std::string_view what, std::string_view why) {
    result.failure = StrCat(what, why.empty() ? " gives other values" : ": ", why);
    return result;
  };
  const std::unique_ptr<Module> module = Read(std::string(text), /*json=*/false, &error);
  if (module == nullptr) return fail("reading", error);
  std::optional<std::vector<Literal>> made;
  const std::optional<std::vector<Literal>> values = Evaluate(*module, options, 2, &made, &error);
  if (!values) {
    if (options.must_run) return fail("running", error);
    return result;
  }
  result.ran = true;
  result.opcodes.assign(kOpcodeCount, false);
  for (Computation computation : module->computations()) {
    for (Instruction i : computation.instructions()) {
      if (i.opcode() != Opcode::kUnknown) result.opcodes[static_cast<size_t>(i.opcode())] = true;
    }
  }
  const auto compare = [&](const Module& other, int threads, std::string_view what) {
    const std::optional<std::vector<Literal>> again = Evaluate(other, options, threads, &made, &error);
    if (!again) {
      fail(what, error);
    } else if (!Same(*values, *again)) {
      fail(what, "");
    }
    return result.failure.empty();
  };
  if (!compare(*module, 1, "another run, on one thread,")) return result;

  for (const bool json : {false, true}) {
    std::string printed;
    {
      TextWriter writer(&printed);
      if (json) {
        PrintJson(writer, *module);
      } else {
        PrintModule(writer, *module, PrintOptions::Lossless());
      }
    }
    const std::unique_ptr<Module> again = Read(std::move(printed), json, &error);
    const std::string_view what = json ? "its JSON" : "its text";
    if (again == nullptr) return fail(what, error);
    if (!compare(*again, 2, what)) return result;
  }

  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse("dce,cse");
  if (!pipeline.ok()) return fail("dce,cse", std::string(pipeline.status().message()));
  const auto changed = pipeline->Run(*module);
  if (!changed.ok()) return fail("dce,cse", std::string(changed.status().message()));
  compare(*module, 2, "the module after dce,cse");
  return result;
}

}  // namespace hlokit::random_test
