// SPDX-License-Identifier: Apache-2.0
// The fast engine beside the limits of the machine and its peers, in one process and in turns.
//
//   hlokit_bench_engine [FLAGS] [FILE.hlo...]
//     --rounds=N         at least 5 (the default)
//     --threads=N        default 1
//     --only=PATTERN     cases whose names contain this
//     --list             prints the names of the cases
//     --torch[=PYTHON]   also PyTorch, in a process of this Python (default python3), at one case at a time
//     --blas=DIR         directory of the libblas.so.3 that PyTorch loads
//     --max-case-seconds=X   fewer rounds of cases that take longer together, but at least 2 (default 240)
//
// A line is a case and a peer: a copy of as many bytes as the case must read and write; oneDNN's own primitive, whole,
// in the layout that it chooses; multiplications and additions in registers; PyTorch; a limit. Shares are the peer's
// time over ours, of minima: 1 is as fast. Times are processor time for one thread, elapsed time for several. Files are
// compared with the exact engine. Exit code 1 if a share is below its goal.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/engine/case.h"
#include "bench/engine/machine.h"
#include "bench/engine/torch.h"
#include "bench/measure.h"
#include "interp/compiled/code/code_store.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/exact/evaluator.h"
#include "interp/processor/instruction_set.h"
#include "io/files/read_file.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"

namespace hlokit::bench {
namespace {

struct Flags {
  int rounds = 5;
  int threads = 1;
  double max_case_seconds = 240;
  bool list = false;
  std::string only;
  std::string torch;
  std::string blas;
  std::string prepare;  // a child process: prepares this file and prints the time
  std::vector<std::string> files;
};

bool ReadFlags(int argc, char** argv, Flags* flags) {
  const std::vector<Flag> table = {
      {"--rounds", [&](const char* value) { flags->rounds = std::max(5, std::atoi(value)); }},
      {"--threads", [&](const char* value) { flags->threads = std::max(1, std::atoi(value)); }},
      {"--only", [&](const char* value) { flags->only = value; }},
      {"--list", [&](const char*) { flags->list = true; }},
      {"--torch", [&](const char* value) { flags->torch = *value == '\0' ? "python3" : value; }},
      {"--blas", [&](const char* value) { flags->blas = value; }},
      {"--max-case-seconds", [&](const char* value) { flags->max_case_seconds = std::atof(value); }},
      {"--prepare", [&](const char* value) { flags->prepare = value; }},
  };
  return bench::ReadFlags(argc, argv, table, &flags->files);
}

std::unique_ptr<interp::Evaluator> Prepare(const Module& module, int threads, bool fast, std::string* error) {
  interp::EvaluatorOptions options;
  options.num_threads = threads;
  options.fill_elided = FillKind::kRandom;
  options.seed = 1;
  const auto kernels = fast ? std::make_shared<interp::compiled::CompiledKernels>(options.observation) : nullptr;
  DiagnosticSink sink;
  std::unique_ptr<interp::Evaluator> evaluator = interp::Evaluator::Prepare(module, options, &sink, kernels);
  if (evaluator == nullptr) *error = sink.diagnostics().empty() ? "error" : sink.diagnostics()[0].message;
  return evaluator;
}

// A prepared program whose results replace its arguments, as in training.
class Runner {
 public:
  Runner(TrainingProgram* program, int threads, bool fast)
      : program_(*program), evaluator_(Prepare(*program->module, threads, fast, &error_)) {}

  const std::string& error() const { return error_; }
  int64_t peak_bytes() const { return evaluator_->statistics().peak_bytes; }

  void Run() {
    if (!error_.empty()) return;
    DiagnosticSink sink;
    std::vector<const Literal*> pointers;
    for (const Literal& argument : program_.arguments) pointers.push_back(&argument);
    interp::DonatedArguments donation;
    donation.donated.resize(pointers.size());
    for (const int64_t i : program_.replaced) {
      if (i >= 0) donation.donated[static_cast<size_t>(i)] = &program_.arguments[static_cast<size_t>(i)];
    }
    std::optional<std::vector<Literal>> results = evaluator_->RunPointers(pointers, &sink, &donation);
    if (!results) {
      error_ = sink.diagnostics().empty() ? "error" : sink.diagnostics()[0].message;
      return;
    }
    for (size_t r = 0; r < program_.replaced.size(); ++r) {
      if (program_.replaced[r] >= 0) {
        program_.arguments[static_cast<size_t>(program_.replaced[r])] = std::move((*results)[r]);
      }
    }
  }

 private:
  TrainingProgram& program_;
  std::string error_;
  std::unique_ptr<interp::Evaluator> evaluator_;
};

// Work that is timed in turns with others; short work several times in one measurement.
class Timed {
 public:
  Timed(std::function<void()> work, int threads) : work_(std::move(work)), threads_(threads) {
    work_();
    const double once = TimeOf(1);
    constexpr double kAtLeast = 4;  // ms
    repetitions_ = static_cast<int>(std::clamp(kAtLeast / std::max(once, 1e-4), 1.0, 10000.0));
  }
  void Measure() { best_ = std::min(best_, TimeOf(repetitions_) / repetitions_); }
  double best() const { return best_; }

 private:
  double TimeOf(int repetitions) {
    const double start = Milliseconds(threads_);
    for (int i = 0; i < repetitions; ++i) work_();
    return Milliseconds(threads_) - start;
  }

  std::function<void()> work_;
  int threads_;
  int repetitions_ = 1;
  double best_ = std::numeric_limits<double>::infinity();
};

class Bench {
 public:
  explicit Bench(const Flags& flags) : flags_(flags) {}

  bool Start() {
    std::printf("%d rounds, %d thread%s, %s time, generated code for %s\n", flags_.rounds, flags_.threads,
                flags_.threads == 1 ? "" : "s", flags_.threads == 1 ? "processor" : "elapsed",
                std::string(interp::ToString(interp::HostInstructionSet())).c_str());
    if (!flags_.torch.empty()) {
      torch_ = Torch::Start(flags_.torch, flags_.blas, flags_.threads);
      if (torch_ == nullptr) return false;
      std::printf("%s\n", torch_->description().c_str());
    }
    std::printf("%-42s %11s %9s %8s  %-24s %11s %7s %6s\n", "case", "ours_ms", "GFLOP/s", "peak_MB", "peer", "peer_ms",
                "share", "goal");
    return true;
  }

  void Run(const Case& c);
  void Compile();
  int missed() const { return missed_; }

 private:
  void Line(const Case& c, double ours, int64_t bytes, const std::string& peer, double theirs, double goal,
            std::string_view verdict);

  const Flags& flags_;
  std::unique_ptr<Torch> torch_;
  int missed_ = 0;
};

void Bench::Line(const Case& c, double ours, int64_t bytes, const std::string& peer, double theirs, double goal,
                 std::string_view verdict) {
  std::printf("%-42s %11.5f ", c.name.c_str(), ours);
  if (c.flops > 0) {
    std::printf("%9.1f ", c.flops / ours * 1e-6);
  } else {
    std::printf("%9s ", "");
  }
  std::printf("%8.1f  %-24s %11.5f %7.3f ", static_cast<double>(bytes) * 1e-6, peer.c_str(), theirs, theirs / ours);
  if (goal > 0) std::printf("%6.2f %s", goal, std::string(verdict).c_str());
  std::printf("\n");
  std::fflush(stdout);
}

void Bench::Run(const Case& c) {
  const auto fail = [&](const std::string& why) {
    std::printf("%-42s %s\n", c.name.c_str(), why.substr(0, 200).c_str());
    ++missed_;
  };
  absl::StatusOr<TrainingProgram> program = c.make();
  if (!program.ok()) return fail(std::string(program.status().message()));
  Runner runner(&*program, flags_.threads, true);
  if (!runner.error().empty()) return fail(runner.error());
  const double begun = Milliseconds(2);
  Timed ours([&] { runner.Run(); }, flags_.threads);
  if (!runner.error().empty()) return fail(runner.error());

  struct Measured {
    const Peer* peer;
    std::unique_ptr<Timed> timed;
    double best = std::numeric_limits<double>::infinity();
  };
  std::vector<Measured> peers;
  std::vector<std::unique_ptr<Runner>> others;
  for (const Peer& peer : c.peers) {
    Measured measured{&peer, nullptr};
    if (peer.kind == Peer::Kind::kWork) {
      std::function<void()> work = peer.make(flags_.threads, *program->module);
      if (!work) continue;
      measured.timed = std::make_unique<Timed>(std::move(work), flags_.threads);
    } else if (peer.kind == Peer::Kind::kExact) {
      others.push_back(std::make_unique<Runner>(&*program, flags_.threads, false));
      if (!others.back()->error().empty()) return fail(others.back()->error());
      measured.timed = std::make_unique<Timed>([exact = others.back().get()] { exact->Run(); }, flags_.threads);
    } else if (peer.kind == Peer::Kind::kTorch && (torch_ == nullptr || !torch_->Run(c.name))) {
      continue;
    }
    peers.push_back(std::move(measured));
  }
  for (int round = 0; round < flags_.rounds; ++round) {
    ours.Measure();
    for (Measured& m : peers) {
      double ms = 0;
      switch (m.peer->kind) {
        case Peer::Kind::kWork:
        case Peer::Kind::kExact:
          m.timed->Measure();
          ms = m.timed->best() * m.peer->times;
          break;
        case Peer::Kind::kTorch:
          ms = torch_->Run(c.name).value_or(std::numeric_limits<double>::infinity());
          break;
        case Peer::Kind::kPeak: {
          const double start = Milliseconds(flags_.threads);
          const double flops = MultiplyAdd(flags_.threads) * flags_.threads;
          ms = (Milliseconds(flags_.threads) - start) * c.flops / flops;
          break;
        }
        case Peer::Kind::kLimit:
          ms = m.peer->limit;
          break;
      }
      m.best = std::min(m.best, ms);
    }
    if (round >= 1 && Milliseconds(2) - begun > flags_.max_case_seconds * 1e3) break;
  }
  if (!runner.error().empty()) return fail(runner.error());
  const double best = ours.best() / c.per;
  bool one_holds = false, alternatives = false, measured_all = true;
  for (const Peer& peer : c.peers) {
    if (!peer.alternative) continue;
    alternatives = true;
    const auto at = std::find_if(peers.begin(), peers.end(), [&](const Measured& m) { return m.peer == &peer; });
    measured_all &= at != peers.end();
    one_holds |= at != peers.end() && at->best / best >= peer.goal;
  }
  // An alternative that was not measured may hold.
  if (alternatives && !one_holds && measured_all) ++missed_;
  if (peers.empty()) Line(c, best, runner.peak_bytes(), "", best, 0, "");
  for (const Measured& m : peers) {
    const bool holds = m.best / best >= m.peer->goal;
    std::string_view verdict = holds ? "ok" : "MISSED";
    if (m.peer->alternative && !holds) verdict = one_holds || !measured_all ? "or" : "MISSED";
    if (!m.peer->alternative && m.peer->goal > 0 && !holds) ++missed_;
    Line(c, best, runner.peak_bytes(), m.peer->name, m.best, m.peer->goal, verdict);
  }
}

// Prepares the file in this process, alone. Prints processor time in ms, and whether LLVM is loaded.
int PrepareFile(const std::string& file) {
  interp::compiled::UseCodeStoreOfEnvironment();
  const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(file);
  if (!source.ok()) return 1;
  DiagnosticSink sink;
  const std::unique_ptr<Module> module = ParseModule(*source, {}, &sink);
  if (module == nullptr || sink.has_errors()) return 1;
  std::string error;
  const double start = Milliseconds(1);
  const std::unique_ptr<interp::Evaluator> evaluator = Prepare(*module, 1, true, &error);
  const double ms = Milliseconds(1) - start;
  if (evaluator == nullptr) return 1;
  bool llvm = false;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) llvm |= line.find("libLLVM") != std::string::npos;
  std::printf("%.3f %d\n", ms, llvm ? 1 : 0);
  return 0;
}

// Returns the output of PrepareFile in a child with a directory of compiled programs.
std::optional<std::pair<double, bool>> PrepareInChild(const std::string& file, const std::string& directory) {
  const std::string command =
      "HLOKIT_CODE_CACHE='" + directory + "' /proc/" + std::to_string(getpid()) + "/exe --prepare='" + file + "'";
  FILE* const from = popen(command.c_str(), "r");
  double ms = 0;
  int llvm = 0;
  const bool ok = from != nullptr && std::fscanf(from, "%lf %d", &ms, &llvm) == 2;
  if (from != nullptr) pclose(from);
  return ok ? std::optional(std::pair(ms, llvm != 0)) : std::nullopt;
}

// Preparing the step of ResNet-50 in a new process: without compiled code, and with that of the process before.
void Bench::Compile() {
  absl::StatusOr<TrainingProgram> program = TraceTrainingStep({.name = "resnet50", .batch = 8});
  if (!program.ok()) return;
  std::string base = (std::filesystem::temp_directory_path() / "hlokit_bench_XXXXXX").string();
  if (mkdtemp(base.data()) == nullptr) return;
  const std::string file = base + "/step.hlo";
  std::string text;
  {
    TextWriter writer(&text);
    PrintModule(writer, *program->module, PrintOptions::Lossless());
  }
  std::ofstream(file) << text;
  double cold = std::numeric_limits<double>::infinity(), warm = cold;
  bool loads = false;
  for (int round = 0; round < flags_.rounds; ++round) {
    const std::string directory = base + "/" + std::to_string(round);
    std::filesystem::create_directory(directory);
    if (const auto first = PrepareInChild(file, directory)) cold = std::min(cold, first->first);
    if (const auto second = PrepareInChild(file, directory)) {
      warm = std::min(warm, second->first);
      loads = second->second;
    }
  }
  std::filesystem::remove_all(base);
  for (const auto& [name, ms, limit] :
       {std::tuple("compile resnet50, cold", cold, 1000.0), std::tuple("compile resnet50, warm", warm, 50.0)}) {
    if (ms > limit) ++missed_;
    Case c;
    c.name = name;
    Line(c, ms, 0, "limit", limit, 1, ms > limit ? "MISSED" : "ok");
  }
  std::printf("%-42s %s\n", "", loads ? "the warm process loads LLVM: MISSED" : "the warm process does not load LLVM");
  if (loads) ++missed_;
}

int Main(int argc, char** argv) {
  Flags flags;
  if (!ReadFlags(argc, argv, &flags)) {
    std::fprintf(stderr,
                 "usage: %s [--rounds=N] [--threads=N] [--only=PATTERN] [--list] [--torch[=PYTHON]] [--blas=DIR] "
                 "[--max-case-seconds=X] [FILE.hlo...]\n",
                 argv[0]);
    return 2;
  }
  if (!flags.prepare.empty()) return PrepareFile(flags.prepare);
  std::vector<Case> cases;
  if (flags.files.empty()) cases = EngineCases();
  for (const std::string& file : flags.files) cases.push_back(FileCase(file));
  constexpr std::string_view kCompile = "compile resnet50";
  if (flags.list) {
    for (const Case& c : cases) std::printf("%s\n", c.name.c_str());
    std::printf("%s\n", std::string(kCompile).c_str());
    return 0;
  }
  Bench bench(flags);
  if (!bench.Start()) return 2;
  for (const Case& c : cases) {
    if (c.name.find(flags.only) != std::string::npos) bench.Run(c);
  }
  if (flags.files.empty() && kCompile.find(flags.only) != std::string::npos) bench.Compile();
  if (bench.missed() > 0) std::printf("%d missed\n", bench.missed());
  return bench.missed() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace hlokit::bench

int main(int argc, char** argv) { return hlokit::bench::Main(argc, argv); }
