// SPDX-License-Identifier: Apache-2.0
// Times of parsing, printing, verifying, fingerprinting and cloning a module, relative to `gzip -6` of the same file
// and to XLA's times relative to gzip: ratios that are comparable across machines.
//
//   hlokit_bench_core FILE.hlo... [XLA-TIMES.tsv] [--rounds=N]
//
// For several files, the median and the worst ratio of each measurement come last. The optional table has a header line
// with the columns name, gzip6_ms, parse_ms, print_short_ms, verify_ms, fingerprint_ms and clone_ms, and a row named as
// the file without ".hlo"; without it, XLA's column is empty. Rounds interleave all measurements, so that other load
// affects all of them equally. Times are processor times, of the child for gzip; the output shows medians.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "io/files/read_file.h"
#include "ir/digest/fingerprint.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

using bench::GzipMilliseconds;
using bench::Median;
using bench::MillisecondsOf;

struct Ratios {
  std::vector<double> to_gzip, times_faster;
};

// By measurement, in measuring order.
using Summary = std::vector<std::pair<std::string, Ratios>>;

int MeasureFile(const std::string& file, const bench::Table& xla, int rounds, Summary* summary) {
  const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(file);
  if (!source.ok()) {
    std::fprintf(stderr, "%s\n", std::string(source.status().message()).c_str());
    return 2;
  }
  DiagnosticSink sink;
  const auto heap = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const size_t heap_before = heap();
  std::unique_ptr<Module> module = ParseModule(*source, {}, &sink);
  const size_t heap_bytes = heap() - heap_before;
  if (module == nullptr) {
    std::fputs(RenderText(sink, **source).c_str(), stderr);
    return 1;
  }

  struct Measurement {
    const char* what;
    const char* xla_column;
    std::function<void()> work;
    std::vector<double> times;
  };
  size_t printed_bytes = 0;
  uint64_t digests = 0;
  const auto print = [&](const PrintOptions& options) { printed_bytes += ToString(*module, options).size(); };
  // Results of a measurement are freed outside of it, except the parsed module, whose destruction XLA's times include.
  std::vector<Module> clones;
  std::vector<std::unique_ptr<Module>> parsed;
  Measurement measurements[] = {
      {"gzip -6", "gzip6_ms", nullptr, {}},
      {"parse",
       "parse_ms",
       [&] {
         DiagnosticSink errors;
         parsed.push_back(ParseModule(*source, {}, &errors));
       },
       {}},
      {"print short", "print_short_ms", [&] { print(PrintOptions::ShortParsable()); }, {}},
      {"print default", "", [&] { print(PrintOptions::Default()); }, {}},
      {"verify",
       "verify_ms",
       [&] {
         DiagnosticSink errors;
         VerifyModule(*module, {}, &errors);
       },
       {}},
      {"fingerprint", "fingerprint_ms", [&] { digests ^= Fingerprint(*module).low; }, {}},
      {"clone", "clone_ms", [&] { clones.push_back(module->Clone()); }, {}},
  };
  for (int round = 0; round < rounds; ++round) {
    for (Measurement& m : measurements) {
      m.times.push_back(m.work ? MillisecondsOf(m.work) : GzipMilliseconds(file));
      clones.clear();
      parsed.clear();
    }
  }

  const std::string name = bench::ProgramName(file);
  const double gzip_ms = std::max(0.0, Median(measurements[0].times));
  const double xla_gzip_ms = xla.Number(name, "gzip6_ms");
  std::printf("%s: %zu bytes, %zu instructions, %d rounds (%zu bytes printed, check %016llx)\n", file.c_str(),
              (*source)->text().size(), module->instruction_count(), rounds, printed_bytes / rounds,
              static_cast<unsigned long long>(digests));
  std::printf("memory after parsing, the text aside: %zu bytes, %.0f an instruction\n", heap_bytes,
              static_cast<double>(heap_bytes) / static_cast<double>(module->instruction_count()));
  if (gzip_ms == 0) std::printf("gzip could not be run: no ratios\n");
  std::printf("%-14s %10s %10s %10s %10s %13s\n", "what", "ours_ms", "gzip_ms", "ours/gzip", "xla/gzip",
              "times_faster");
  summary->resize(std::size(measurements));
  for (size_t i = 0; i < std::size(measurements); ++i) {
    const Measurement& m = measurements[i];
    Ratios& ratios = (*summary)[i].second;
    (*summary)[i].first = m.what;
    const double ours = Median(m.times);
    std::printf("%-14s %10.3f %10.3f", m.what, ours, gzip_ms);
    if (gzip_ms > 0) {
      std::printf(" %10.4f", ours / gzip_ms);
      ratios.to_gzip.push_back(ours / gzip_ms);
    }
    if (const double xla_ms = xla.Number(name, m.xla_column); xla_ms > 0 && gzip_ms > 0 && xla_gzip_ms > 0) {
      const double theirs = xla_ms / xla_gzip_ms;
      std::printf(" %10.4f %13.2f", theirs, theirs / (ours / gzip_ms));
      ratios.times_faster.push_back(theirs / (ours / gzip_ms));
    }
    std::printf("\n");
  }
  return 0;
}

void PrintSummary(const Summary& summary) {
  const auto least = [](const std::vector<double>& v) { return v.empty() ? 0 : *std::min_element(v.begin(), v.end()); };
  const auto most = [](const std::vector<double>& v) { return v.empty() ? 0 : *std::max_element(v.begin(), v.end()); };
  std::printf("\n%-14s %10s %10s %13s %10s %6s\n", "all files", "ours/gzip", "most", "times_faster", "least", "files");
  for (const auto& [what, ratios] : summary) {
    std::printf("%-14s %10.4f %10.4f %13.2f %10.2f %6zu\n", what.c_str(), Median(ratios.to_gzip), most(ratios.to_gzip),
                Median(ratios.times_faster), least(ratios.times_faster), ratios.times_faster.size());
  }
}

int Run(int argc, char** argv) {
  std::vector<std::string> files;
  std::string table;
  int rounds = 15;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--rounds=")) {
      rounds = std::max(1, std::atoi(argv[i] + 9));
    } else if (argument.ends_with(".tsv")) {
      table = argument;
    } else {
      files.emplace_back(argument);
    }
  }
  if (files.empty()) {
    std::fprintf(stderr, "usage: %s FILE.hlo... [XLA-TIMES.tsv] [--rounds=N]\n", argv[0]);
    return 2;
  }
  // Keep freed memory: otherwise the page faults of one measurement would depend on memory that others released.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const bench::Table xla(table);
  Summary summary;
  for (const std::string& file : files) {
    if (const int status = MeasureFile(file, xla, rounds, &summary); status != 0) return status;
  }
  if (files.size() > 1) PrintSummary(summary);
  return 0;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
