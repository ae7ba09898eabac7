// SPDX-License-Identifier: Apache-2.0
// An all-reduce of 8 bytes in a program that runs under MPI, against bare MPI_Allreduce in the same processes, in turn:
//
//   mpirun -n 2 build/release/bench/hlokit_bench_mpi [--rounds=N] [--steps=N]
//
// The program is a loop with an all-reduce of one f64; the same loop without it is measured too and subtracted. Prints
// the least and the median time of the rounds, and the ratio, whose target is 1.5. Exits with 1 if the ratio of the
// least times, which other programs on the machine disturb least, is above it.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "interp/exact/evaluator.h"
#include "interp/processes/mpi_session.h"
#include "interp/processes/world.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"

namespace hlokit::interp {
namespace {

constexpr double kTarget = 1.5;

std::string Loop(int64_t steps, std::string_view operation) {
  return StrCat(R"(HloModule loop
add {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT c = f64[] add(a, b)
}
condition {
  s = (s32[], f64[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant()",
                steps, R"()
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f64[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f64[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f64[] )",
                operation, R"(
  ROOT t = (s32[], f64[]) tuple(next, y)
}
ENTRY main {
  x = f64[] constant(0)
  zero = s32[] constant(0)
  t = (s32[], f64[]) tuple(zero, x)
  w = (s32[], f64[]) while(t), condition=condition, body=body
  ROOT r = f64[] get-tuple-element(w), index=1
}
)");
}

struct Program {
  std::unique_ptr<Module> module;
  std::unique_ptr<Evaluator> evaluator;
};

Program Prepare(const std::string& text, World* world) {
  Program program;
  DiagnosticSink sink;
  const auto source = std::make_shared<const SourceBuffer>("loop.hlo", text);
  program.module = ParseModule(source, ParseOptions(), &sink);
  if (program.module == nullptr) return program;
  EvaluatorOptions options;
  options.num_replicas = world->size();
  options.num_threads = 1;
  options.world = world;
  program.evaluator = Evaluator::Prepare(*program.module, options, &sink);
  return program;
}

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Microseconds a step.
struct Times {
  std::vector<double> each;
  double least() const { return *std::min_element(each.begin(), each.end()); }
  double median() const {
    std::vector<double> sorted = each;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

template <typename Work>
void Measure(int64_t steps, Times* times, const Work& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = SecondsNow();
  work();
  times->each.push_back((SecondsNow() - begin) * 1e6 / static_cast<double>(steps));
}

int Run(int64_t rounds, int64_t steps) {
  MpiSessionOptions options;
  options.tool = "hlokit_bench_mpi";
  absl::StatusOr<std::unique_ptr<MpiSession>> session = MpiSession::Start(options);
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n", std::string(session.status().message()).c_str());
    return 2;
  }
  const Program reduces = Prepare(Loop(steps, "all-reduce(x), replica_groups={}, to_apply=add"), session->get());
  const Program plain = Prepare(Loop(steps, "add(x, x)"), session->get());
  if (reduces.evaluator == nullptr || plain.evaluator == nullptr) return (*session)->End(3);
  (*session)->EndSetup();
  Times bare, with, without;
  bool ok = true;
  for (int64_t round = 0; round < rounds && ok; ++round) {
    DiagnosticSink sink;
    Measure(steps, &bare, [&] {
      double x = 1, sum = 0;
      for (int64_t i = 0; i < steps; ++i) MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    });
    Measure(steps, &with, [&] { ok = reduces.evaluator->Run({}, &sink).has_value() && ok; });
    Measure(steps, &without, [&] { ok = plain.evaluator->Run({}, &sink).has_value() && ok; });
  }
  if (!ok) return (*session)->End(3);
  const double ratio = (with.least() - without.least()) / bare.least();
  const bool first = (*session)->rank() == 0;
  if (first) {
    std::printf("8-byte all-reduce on %d processes, %d rounds of %d, microseconds   least  median\n",
                (*session)->size(), static_cast<int>(rounds), static_cast<int>(steps));
    std::printf("  MPI_Allreduce                                     %18.3f %7.3f\n", bare.least(), bare.median());
    std::printf("  a step of a program with an all-reduce            %18.3f %7.3f\n", with.least(), with.median());
    std::printf("  a step without                                    %18.3f %7.3f\n", without.least(),
                without.median());
    std::printf("  ratio of the all-reduce to MPI_Allreduce          %18.2f %7.2f   (target %.1f)\n", ratio,
                (with.median() - without.median()) / bare.median(), kTarget);
    std::fflush(stdout);
  }
  (*session)->End(0);
  return first && ratio > kTarget ? 1 : 0;
}

}  // namespace
}  // namespace hlokit::interp

int main(int argc, char** argv) {
  int64_t rounds = 100, steps = 2000;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag.starts_with("--rounds=")) rounds = std::max(std::atoll(argv[i] + 9), 1LL);
    if (flag.starts_with("--steps=")) steps = std::max(std::atoll(argv[i] + 8), 1LL);
  }
  return hlokit::interp::Run(rounds, steps);
}
