// How long reading, printing, checking, fingerprinting and cloning a module take, against `gzip -6` of the same file
// and against XLA's figures where gzip was measured beside them: ratios that hold from machine to machine.
//
//   hlokit_bench_core FILE.hlo [XLA-TIMES.tsv] [--rounds=N]
//
// The optional table has a header line with the columns name, gzip6_ms, parse_ms, print_short_ms, verify_ms,
// fingerprint_ms and clone_ms, and a row named as the file without ".hlo"; without it, XLA's column is empty. Rounds
// interleave all measurements, so that whatever else the machine does falls on all alike. Times are processor times, of
// the child for gzip, and medians are shown.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/fingerprint.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "parser/parser.h"

extern char** environ;

namespace hlokit {
namespace {

// Processor time of this process.
double MillisecondsOf(const std::function<void()>& work) {
  const auto now = [] {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
  };
  const double start = now();
  work();
  return now() - start;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Processor time of `gzip -6 -c path` with the output thrown away, a program of its own. Negative if it could not run.
double GzipMilliseconds(const std::string& path) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  std::string arguments[] = {"gzip", "-6", "-c", "--", path};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                  arguments[3].data(), arguments[4].data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, "gzip", &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage usage;
  if (error != 0 || wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return -1;
  }
  const auto milliseconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) * 1e-3;
  };
  return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
}

// The row of the table that is about `file`: column name -> value.
std::map<std::string, double> XlaTimes(const std::string& table, std::string_view file) {
  std::string_view name = file.substr(file.rfind('/') == std::string_view::npos ? 0 : file.rfind('/') + 1);
  if (name.ends_with(".hlo")) name.remove_suffix(4);
  std::map<std::string, double> times;
  std::ifstream in(table);
  std::string line;
  std::vector<std::string> columns;
  while (std::getline(in, line)) {
    std::vector<std::string> fields;
    std::istringstream stream(line);
    for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
    if (columns.empty()) {
      columns = fields;
    } else if (!fields.empty() && fields[0] == name) {
      for (size_t i = 1; i < fields.size() && i < columns.size(); ++i) {
        times[columns[i]] = std::strtod(fields[i].c_str(), nullptr);
      }
    }
  }
  return times;
}

int Run(int argc, char** argv) {
  std::string file, table;
  int rounds = 15;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--rounds=")) {
      rounds = std::max(1, std::atoi(argv[i] + 9));
    } else if (file.empty()) {
      file = argument;
    } else {
      table = argument;
    }
  }
  if (file.empty()) {
    std::fprintf(stderr, "usage: %s FILE.hlo [XLA-TIMES.tsv] [--rounds=N]\n", argv[0]);
    return 2;
  }
  const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = SourceBuffer::FromFile(file);
  if (!source.ok()) {
    std::fprintf(stderr, "%s\n", std::string(source.status().message()).c_str());
    return 2;
  }
  DiagnosticSink sink;
  std::unique_ptr<Module> module = ParseModule(*source, {}, &sink);
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
  // What a measurement makes is taken away outside of it, except the module that is parsed: XLA's figures have that
  // too.
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

  const std::map<std::string, double> xla = table.empty() ? std::map<std::string, double>{} : XlaTimes(table, file);
  const double gzip_ms = std::max(0.0, Median(measurements[0].times));
  const double xla_gzip_ms = xla.contains("gzip6_ms") ? xla.at("gzip6_ms") : 0;
  std::printf("%s: %zu bytes, %zu instructions, %d rounds (%zu bytes printed, check %016llx)\n", file.c_str(),
              (*source)->text().size(), module->instruction_count(), rounds, printed_bytes / rounds,
              static_cast<unsigned long long>(digests));
  if (gzip_ms == 0) std::printf("gzip could not be run: no ratios\n");
  std::printf("%-14s %10s %10s %10s %10s %13s\n", "what", "ours_ms", "gzip_ms", "ours/gzip", "xla/gzip",
              "times_faster");
  for (const Measurement& m : measurements) {
    const double ours = Median(m.times);
    std::printf("%-14s %10.3f %10.3f", m.what, ours, gzip_ms);
    if (gzip_ms > 0) std::printf(" %10.4f", ours / gzip_ms);
    if (const auto found = xla.find(m.xla_column); found != xla.end() && gzip_ms > 0 && xla_gzip_ms > 0) {
      const double theirs = found->second / xla_gzip_ms;
      std::printf(" %10.4f %13.2f", theirs, theirs / (ours / gzip_ms));
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
