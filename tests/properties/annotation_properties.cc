// SPDX-License-Identifier: Apache-2.0
// Properties of metadata under passes, on every module:
//   carried   each metadata source of an instruction that still has an effect is on some instruction afterwards
//   complete  after a pipeline that ends with propagate-annotations, an instruction without metadata is connected with
//             none that has any
//   flops     operations count for the scope of a source instruction that performed them: among the sources of an
//             instruction, its op_name is from one of the same opcode, or else from one that computes; a conversion
//             from or to the type of a source may implement that source in another type
//   scopes    `fusion` preserves the operations of each source, counted once
//
//   annotation_properties [--passes=PIPELINE]... [--random=N] [--seed=N] [--seconds=S] FILE|DIR...
//
// Without --passes and --random each pass and each named pipeline is tested; --random=N tests N random pipelines of
// registered passes, different ones for each seed. --seconds: when to stop and report the results so far; the modules
// are then shuffled by the seed. Every source instruction with metadata gets a unique mark in it, so that each can be
// traced. That a source without a mark has no effect any more is verified: with opaque values in the place of all such
// sources, the same pipeline must remove all these values too, or else with `inline` before it and `simplify` after it:
// calls of opaque values are not merged, thus not inlined. Exit code 1 if a property does not hold.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "interp/exact/instruction_evaluator.h"
#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/analysis/cost.h"
#include "passes/annotations/annotations.h"
#include "passes/annotations/coverage.h"
#include "passes/annotations/text.h"
#include "passes/core/pipeline.h"
#include "tests/properties/hlo_files.h"

namespace hlokit {
namespace {

constexpr std::string_view kUnknown = "hlokit.unknown";

bool Verifies(const Module& module) {
  DiagnosticSink sink;
  VerifyModule(module, VerifierOptions(), &sink);
  return !sink.has_errors();
}

// Returns the operations of the instruction itself, without its callees.
int64_t OwnFlops(const CostAnalysis& costs, Instruction i) {
  return HasTrait(i.opcode(), kControlFlow) ? 0 : costs.Of(i).flops;
}

// A source instruction, identified by its mark.
struct Source {
  InstructionId id;
  Opcode opcode;
  int64_t flops = 0;
  bool computes = false;  // has operations, transcendental ones included
  ElementType type;       // of its result
};
using Sources = absl::flat_hash_map<uint32_t, Source>;  // by MetadataId

// Marks every instruction of `module` that has metadata.
Sources Mark(Module& module) {
  const CostAnalysis costs(module);
  Sources sources;
  Context& context = module.context();
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!i.metadata_id().valid()) continue;
      Metadata marked = i.metadata();
      marked.payload = context.strings.Intern(StrCat("source ", i.id().value));
      const MetadataId id = context.metadata.Intern(marked);
      module.SetMetadata(i.id(), id);
      const int64_t flops = OwnFlops(costs, i);
      const bool computes = flops != 0 || (!HasTrait(i.opcode(), kControlFlow) && costs.Of(i).transcendentals != 0);
      sources[id.value] = {i.id(), i.opcode(), flops, computes, i.shape().element_type()};
    }
  }
  return sources;
}

// Replaces each of these instructions by an opaque value.
void MakeUnknown(Module& module, const std::vector<InstructionId>& instructions) {
  Context& context = module.context();
  for (InstructionId id : instructions) {
    const Instruction i = module.instruction(id);
    const AttrValue attrs[] = {{Attr::kCustomCallTarget, context.strings.Intern(StrCat(kUnknown, id.value)).value}};
    const InstructionId unknown = module.AddInstruction(i.record().parent, Opcode::kCustomCall, i.shape(),
                                                        module.UniqueInstructionName("unknown"), {}, attrs);
    module.MoveBefore(unknown, id);
    module.ReplaceAllUses(id, unknown);
  }
}

// Returns the instructions whose opaque values `module` still has.
std::vector<InstructionId> UnknownIn(const Module& module) {
  std::vector<InstructionId> found;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
      if (!target.starts_with(kUnknown)) continue;
      found.push_back(InstructionId(static_cast<uint32_t>(std::stoul(std::string(target.substr(kUnknown.size()))))));
    }
  }
  return found;
}

class Checker {
 public:
  // `random`: report all pipelines as one.
  Checker(std::vector<std::string> pipelines, bool random) : pipelines_(std::move(pipelines)), random_(random) {}

  void Check(const std::string& path) {
    const auto source = ReadFile(path);
    if (!source.ok()) return;
    const SplitInput split = SplitInputFile(**source);
    for (size_t i = 0; i < split.chunks.size(); ++i) {
      path_ = split.chunks.size() == 1 ? path : StrCat(path, "#", i + 1);
      DiagnosticSink sink;
      const std::unique_ptr<Module> module = ParseModulePart(split.source, split.chunks[i], {}, &sink);
      if (module == nullptr || !Verifies(*module)) {
        ++skipped_;
        continue;
      }
      CheckModule(*module);
    }
  }

  int Report() const {
    std::printf("%lld modules with annotations, %lld without, %lld skipped\n", static_cast<long long>(annotated_),
                static_cast<long long>(bare_), static_cast<long long>(skipped_));
    int64_t failed = 0;
    for (const auto& [name, t] : totals_) {
      std::printf("%s\n", name.c_str());
      std::printf("  carried   %lld of %lld annotations; without effect, with proof: %lld; lost: %lld\n",
                  static_cast<long long>(t.annotations - t.gone), static_cast<long long>(t.annotations),
                  static_cast<long long>(t.gone - t.lost), static_cast<long long>(t.lost));
      std::printf("  annotated %lld of %lld instructions\n", static_cast<long long>(t.instructions - t.without),
                  static_cast<long long>(t.instructions));
      std::printf("  flops     %.9g of %.9g in the scope of a source that did them\n", t.right_flops, t.flops);
      failed += t.failed;
    }
    std::printf("%lld failed\n", static_cast<long long>(failed));
    return failed == 0 ? 0 : 1;
  }

 private:
  struct Totals {
    int64_t annotations = 0, gone = 0, lost = 0;
    int64_t instructions = 0, without = 0;
    double flops = 0, right_flops = 0;
    int64_t failed = 0;
  };

  void CheckModule(const Module& module) {
    Module marked = module.Clone();
    ReadMetadataSources(marked);
    const Sources sources = Mark(marked);
    ++(sources.empty() ? bare_ : annotated_);
    for (const std::string& pipeline : pipelines_) {
      Totals& totals = totals_[random_ ? StrCat(pipelines_.size(), " random pipelines") : pipeline];
      if (!sources.empty()) CheckPipeline(pipeline, marked, sources, &totals);
    }
  }

  void Fail(const std::string& pipeline, std::string_view property, const std::string& what, Totals* totals) {
    ++totals->failed;
    std::printf("%s: %s: %s: %s\n", path_.c_str(), pipeline.c_str(), std::string(property).c_str(), what.c_str());
  }

  // Runs the pipeline on the module. Returns false if it fails or declines.
  bool Run(const std::string& text, Module* module, Totals* totals, MetadataLossTracker* loss = nullptr) {
    absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text);
    absl::Status status = pipeline.status();
    if (status.ok()) {
      std::vector<PassInstrumentation*> instruments;
      if (loss != nullptr) instruments.push_back(loss);
      status = pipeline->Run(*module, {.context = interp::EvaluatingContext()}, instruments).status();
    }
    // A pass that returns Unimplemented does not change the module.
    const bool declined = absl::IsUnimplemented(status);
    if (!status.ok() && !declined) Fail(text, "runs", std::string(status.message()), totals);
    return status.ok();
  }

  void CheckPipeline(const std::string& pipeline, const Module& marked, const Sources& sources, Totals* totals) {
    Module after = marked.Clone();
    MetadataLossTracker loss;
    if (!Run(pipeline, &after, totals, &loss)) return;
    CheckCarried(pipeline, marked, after, sources, loss, totals);
    CheckComplete(pipeline, after, totals);
    CheckFlops(pipeline, after, sources, totals);
    if (pipeline == "fusion") CheckScopes(pipeline, marked, after, sources, totals);
  }

  void CheckCarried(const std::string& pipeline, const Module& marked, const Module& after, const Sources& sources,
                    const MetadataLossTracker& loss, Totals* totals) {
    const std::vector<uint32_t> before = AnnotationsOf(marked, /*effective_only=*/true);
    const std::vector<uint32_t> left = AnnotationsOf(after, /*effective_only=*/false);
    std::vector<InstructionId> gone;
    for (uint32_t id : before) {
      if (!std::binary_search(left.begin(), left.end(), id)) gone.push_back(sources.at(id).id);
    }
    totals->annotations += static_cast<int64_t>(before.size());
    totals->gone += static_cast<int64_t>(gone.size());
    if (gone.empty()) return;
    Module unknown = marked.Clone();
    MakeUnknown(unknown, gone);
    if (!Run(pipeline, &unknown, totals)) return;
    if (!UnknownIn(unknown).empty()) {
      unknown = marked.Clone();
      MakeUnknown(unknown, gone);
      if (!Run(StrCat("inline,", pipeline, ",simplify"), &unknown, totals)) return;
    }
    for (InstructionId id : UnknownIn(unknown)) {
      ++totals->lost;
      std::string_view by = "";
      for (const MetadataLossTracker::Row& row : loss.rows()) {
        if (std::binary_search(row.lost.begin(), row.lost.end(), marked.record(id).metadata)) by = row.pass;
      }
      Fail(pipeline, "carried", StrCat("lost by ", by, ": ", ToString(marked.instruction(id))), totals);
    }
  }

  void CheckComplete(const std::string& pipeline, const Module& after, Totals* totals) {
    const AnnotationCounts counts = CountAnnotations(after);
    totals->instructions += counts.instructions;
    totals->without += counts.without;
    const absl::StatusOr<Pipeline> parsed = Pipeline::Parse(pipeline);
    const std::vector<const PassInfo*> passes = parsed->passes();
    const bool ends = !passes.empty() && passes.back()->name == "propagate-annotations";
    if (!ends || counts.without == 0) return;
    for (const MissingMetadata& i : InstructionsMissingMetadata(after)) {
      if (i.reason != MissingMetadataReason::kNotPropagated) continue;
      Fail(pipeline, "complete", StrCat(ToString(i.reason), ": ", ToString(after.instruction(i.id))), totals);
    }
  }

  void CheckFlops(const std::string& pipeline, const Module& after, const Sources& sources, Totals* totals) {
    const CostAnalysis costs(after);
    for (Computation c : after.computations()) {
      for (Instruction i : c.instructions()) {
        const int64_t flops = OwnFlops(costs, i);
        if (flops == 0 || !i.metadata_id().valid()) continue;
        bool same_opcode = false, computes = false;
        const std::vector<MetadataId> origins = MetadataSources(i);
        for (MetadataId origin : origins) {
          const Source& source = sources.at(origin.value);
          same_opcode |= source.opcode == i.opcode();
          computes |= source.computes;
        }
        const Source& main = sources.at(origins.front().value);
        const bool around = i.opcode() == Opcode::kConvert &&
                            (i.shape().element_type() == main.type || i.operand(0).shape().element_type() == main.type);
        // A scatter or gather that became a loop counts and computes indices, and so does a select-and-scatter that
        // became a scatter first; an equal computation may have been merged with it.
        const bool indexing = (main.opcode == Opcode::kScatter || main.opcode == Opcode::kGather ||
                               main.opcode == Opcode::kSelectAndScatter) &&
                              IsInteger(i.operand(0).shape().element_type());
        // The select that replaced a conditional chooses as the conditional did.
        const bool chooses = main.opcode == Opcode::kConditional && i.opcode() == Opcode::kSelect;
        // A collective of the partitioner adds up parts for operations of any kind, of which the first may only move
        // data; several may have been combined.
        const bool combines = HasTrait(i.opcode(), kCollective) && !same_opcode;
        const bool right = indexing || combines || chooses || around ||
                           (same_opcode ? main.opcode == i.opcode() : !computes || main.computes);
        totals->flops += static_cast<double>(flops);
        if (right) {
          totals->right_flops += static_cast<double>(flops);
        } else {
          Fail(pipeline, "flops", ToString(i), totals);
        }
      }
    }
  }

  void CheckScopes(const std::string& pipeline, const Module& marked, const Module& after, const Sources& sources,
                   Totals* totals) {
    const std::vector<uint32_t> left = AnnotationsOf(after, /*effective_only=*/false);
    absl::flat_hash_map<uint32_t, int64_t> flops;  // by main source
    const CostAnalysis costs(after);
    for (Computation c : after.computations()) {
      for (Instruction i : c.instructions()) {
        if (!i.metadata_id().valid() || HasTrait(i.opcode(), kControlFlow)) continue;
        int64_t& known = flops[MetadataSources(i).front().value];
        known = std::max(known, costs.Of(i).flops);
      }
    }
    for (uint32_t id : left) {
      const Source& source = sources.at(id);
      if (source.flops == 0 || flops[id] == source.flops) continue;
      Fail(pipeline, "scopes",
           StrCat(ToString(marked.instruction(source.id)), " had ", source.flops, " operations, has ", flops[id]),
           totals);
    }
  }

  const std::vector<std::string> pipelines_;
  const bool random_;
  std::map<std::string, Totals> totals_;
  std::string path_;
  int64_t annotated_ = 0, bare_ = 0, skipped_ = 0;
};

// Returns pipelines of one to six passes; every third pipeline repeats them to a fixpoint.
std::vector<std::string> RandomPipelines(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto& passes = PassRegistry::Get().passes();
  std::vector<std::string> pipelines;
  for (int64_t k = 0; k < count; ++k) {
    std::string text;
    for (uint64_t n = 1 + random() % 6; n-- > 0;) {
      StrAppend(&text, text.empty() ? "" : ",", passes[random() % passes.size()]->name);
    }
    pipelines.push_back(random() % 3 == 0 ? StrCat("(", text, ")*") : text);
  }
  return pipelines;
}

int Main(int argc, char** argv) {
  std::vector<std::string> paths, pipelines;
  int64_t random = 0;
  uint64_t seed = 0;
  double seconds = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    if (a.starts_with("--passes=")) {
      pipelines.emplace_back(a.substr(9));
    } else if (a.starts_with("--random=")) {
      random = std::strtoll(argv[i] + 9, nullptr, 10);
    } else if (a.starts_with("--seed=")) {
      seed = std::strtoull(argv[i] + 7, nullptr, 10);
    } else if (a.starts_with("--seconds=")) {
      seconds = std::strtod(argv[i] + 10, nullptr);
    } else if (a.starts_with("--")) {
      std::fprintf(stderr, "annotation_properties: unknown flag %s\n", argv[i]);
      return 2;
    } else {
      paths.emplace_back(a);
    }
  }
  if (random > 0) {
    pipelines = RandomPipelines(random, seed);
  } else if (pipelines.empty()) {
    for (const PassInfo* pass : PassRegistry::Get().passes()) pipelines.emplace_back(pass->name);
    for (const NamedPipeline& named : PassRegistry::Get().pipelines()) pipelines.emplace_back(named.name);
  }
  for (const std::string& text : pipelines) {
    if (const absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text); !pipeline.ok()) {
      std::fprintf(stderr, "annotation_properties: %s\n", std::string(pipeline.status().message()).c_str());
      return 2;
    }
  }
  std::vector<std::string> files = HloFiles(paths);
  if (seconds > 0) {
    std::mt19937_64 shuffle(seed);
    std::shuffle(files.begin(), files.end(), shuffle);
  }
  Checker checker(pipelines, random > 0);
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& file : files) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (seconds > 0 && elapsed.count() > seconds) break;
    checker.Check(file);
  }
  return checker.Report();
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Main(argc, argv); }
