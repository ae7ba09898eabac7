// SPDX-License-Identifier: Apache-2.0
// Does what the tools do to mutated modules: what hlo-inspect and hlo-opt --no-verify show of any module that parses,
// and of those that verify passes, both engines and the simulated TPU. Anything but a diagnostic or success is a crash
// of this program.
//
//   mutate_tools [--mutations=N] [--seconds=S] [--seed=N] FILE...
//
// N mutations in total, evenly over the files, or as many as fit into S seconds.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "interp/exact/instruction_evaluator.h"
#include "interp/program/engine_table.h"
#include "io/files/read_file.h"
#include "ir/core/json_writer.h"
#include "ir/core/text_writer.h"
#include "ir/digest/fingerprint.h"
#include "ir/digest/fingerprint_diff.h"
#include "ir/graph/module_statistics.h"
#include "ir/json/json_printer.h"
#include "ir/sharding/unpartitioned.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/memory.h"
#include "passes/annotations/coverage.h"
#include "passes/annotations/text.h"
#include "passes/core/pipeline.h"
#include "passes/target/tpu_target.h"
#include "passes/view/dot.h"
#include "passes/view/graph_document.h"
#include "passes/view/subgraph.h"
#include "simulator/memory/memory_plan.h"
#include "simulator/timing/compile.h"
#include "simulator/timing/simulator.h"
#include "tests/hostile/mutation.h"

namespace hlokit {
namespace {

struct Counts {
  int64_t rejected = 0, invalid = 0, valid = 0, ran = 0, compiled = 0;
};

std::unique_ptr<Module> Parse(const std::string& text) {
  DiagnosticSink sink;
  ParseOptions options;
  options.max_literal_bytes = 1 << 24;
  return ParseModule(std::make_shared<const SourceBuffer>("mutated", text), options, &sink);
}

// hlo-inspect and hlo-opt without verification.
void Inspect(const Module& module) {
  const FingerprintTable table(module, FingerprintOptions::All());
  const FingerprintedModule self{&module, &table, nullptr};
  RenderText(CompareFingerprints(self, self), self, self);
  RenderText(CollectStatistics(module), 20);
  for (const PrintOptions& form : {PrintOptions::Default(), PrintOptions::ShortParsable(), PrintOptions::Canonical(),
                                   PrintOptions::Fingerprint(), PrintOptions::Lossless()}) {
    ToString(module, form);
  }
  std::string json;
  {
    TextWriter out(&json);
    PrintJson(out, module);
  }
  CostAnalysis(module).OfModule();
  if (const absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Create(module); memory.ok()) {
    memory->LiveAtPeak(module);
  }
  if (module.entry().valid()) {
    std::string graph;
    TextWriter out(&graph);
    JsonWriter writer(&out, JsonLayout::kCompact);
    WriteGraphDocument(module, {}, &writer);
    if (const absl::StatusOr<Subgraph> part = SelectSubgraph(module, {}); part.ok()) PrintDot(out, *part);
  }
  ScopeTree(module);
  FirstUnpartitioned(module);
}

template <interp::EngineKind kKind>
bool Evaluate(const Module& module) {
  interp::EvaluatorOptions options;
  options.fill_elided = FillKind::kRandom;
  options.limits.max_steps = 1 << 16;
  options.limits.max_bytes = 1 << 24;
  options.limits.max_seconds = 0.2;
  options.num_threads = 1;
  DiagnosticSink sink;
  const auto engine = interp::PrepareEngine(kKind, module, options, &sink);
  if (engine == nullptr) return false;
  const interp::GeneratorOptions limits = {.num_threads = 1, .max_bytes = options.limits.max_bytes, .poll = {}};
  const auto arguments = interp::MakeFakeArguments(engine->argument_shapes(), 1, limits);
  return arguments.ok() && engine->Run(*arguments, &sink).has_value();
}

// hlo-opt --passes and hlo-run --device on a valid module.
bool Compile(const Module& module, std::string_view pipeline_text) {
  Module copy = module.Clone();
  ReadMetadataSources(copy);
  const absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(pipeline_text);
  PipelineOptions options;
  options.context = interp::EvaluatingContext();
  if (!pipeline.ok() || !const_cast<Pipeline&>(*pipeline).Run(copy, options).ok()) return false;
  WriteMetadataSources(copy);
  ToString(copy);
  if (pipeline_text != "tpu") return true;
  const tpu::TpuTarget target = tpu::TargetFor("v5e", copy);
  tpu::SimulationOptions simulation;
  simulation.machine = target.machine;
  simulation.topology = target.topology;
  const tpu::KernelPlan plan(copy);
  tpu::Simulate(copy, plan, simulation);
  return true;
}

void Try(const std::string& text, Counts* counts) {
  const std::unique_ptr<Module> module = Parse(text);
  if (module == nullptr) {
    ++counts->rejected;
    return;
  }
  Inspect(*module);
  DiagnosticSink sink;
  VerifyModule(*module, VerifierOptions(), &sink);
  if (sink.has_errors()) {
    ++counts->invalid;
    return;
  }
  ++counts->valid;
  counts->ran += Evaluate<interp::EngineKind::kExact>(*module) ? 1 : 0;
  Evaluate<interp::EngineKind::kReference>(*module);
  counts->compiled += Compile(*module, "default") && Compile(*module, "tpu") ? 1 : 0;
}

int Run(int argc, char** argv) {
  const std::optional<hostile::MutationFlags> flags = hostile::ParseMutationFlags(argc, argv);
  if (!flags) return 2;
  std::mt19937_64 random(flags->seed);
  std::vector<std::string> texts;
  for (const std::string& file : flags->files) {
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(file);
    if (!source.ok()) {
      std::fprintf(stderr, "%s\n", std::string(source.status().message()).c_str());
      return 2;
    }
    texts.emplace_back((*source)->text());
  }
  // The text in progress is left in this file by a crash.
  const char* const kept = std::getenv("HLOKIT_MUTATION");
  Counts counts;
  const auto start = std::chrono::steady_clock::now();
  int64_t done = 0;
  for (; done < flags->mutations; ++done) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > flags->seconds) break;
    const std::string& text = texts[static_cast<size_t>(done) % texts.size()];
    const std::string mutated =
        random() % 8 == 0 ? hostile::MutateBytes(text, random) : hostile::MutateWords(text, random);
    if (kept != nullptr) {
      if (std::FILE* file = std::fopen(kept, "wb")) {
        std::fwrite(mutated.data(), 1, mutated.size(), file);
        std::fclose(file);
      }
    }
    Try(mutated, &counts);
  }
  const auto number = [](int64_t n) { return static_cast<long long>(n); };
  std::printf("%lld mutations: %lld rejected, %lld invalid, %lld valid (%lld ran, %lld compiled)\n", number(done),
              number(counts.rejected), number(counts.invalid), number(counts.valid), number(counts.ran),
              number(counts.compiled));
  std::printf("%lld passed, 0 failed\n", number(done));
  return 0;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
