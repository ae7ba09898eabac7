// How long reading, printing, checking, fingerprinting and cloning a module take, against `gzip -6` of the same file
// and against XLA's figures where gzip was measured beside them: ratios that hold from machine to machine.
//
//   hlokit_bench_core FILE.hlo [XLA-TIMES.tsv] [--rounds=N]
//
// The optional table has a header line with the columns name, gzip6_ms, parse_ms, print_short_ms, verify_ms,
// fingerprint_ms and clone_ms, and a row named as the file without ".hlo"; without it, XLA's column is empty. Rounds
// interleave all measurements, so that whatever else the machine does falls on all alike; medians are shown.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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

double MillisecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// `gzip -6 -c path` with the output thrown away, as a program of its own. False if it could not run.
bool RunGzip(const std::string& path) {
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
  return error == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
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
  bool gzip_ran = true;
  const auto print = [&](const PrintOptions& options) { printed_bytes += ToString(*module, options).size(); };
  // What a measurement makes is taken away outside of it, except the module that is parsed: XLA's figures have that
  // too.
  std::vector<Module> clones;
  std::vector<std::unique_ptr<Module>> parsed;
  Measurement measurements[] = {
      {"gzip -6", "gzip6_ms", [&] { gzip_ran = gzip_ran && RunGzip(file); }, {}},
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
      m.times.push_back(MillisecondsOf(m.work));
      clones.clear();
      parsed.clear();
    }
  }

  const std::map<std::string, double> xla = table.empty() ? std::map<std::string, double>{} : XlaTimes(table, file);
  const double gzip_ms = gzip_ran ? Median(measurements[0].times) : 0;
  const double xla_gzip_ms = xla.contains("gzip6_ms") ? xla.at("gzip6_ms") : 0;
  std::printf("%s: %zu bytes, %zu instructions, %d rounds (%zu bytes printed, check %016llx)\n", file.c_str(),
              (*source)->text().size(), module->instruction_count(), rounds, printed_bytes / rounds,
              static_cast<unsigned long long>(digests));
  if (!gzip_ran) std::printf("gzip could not be run: no ratios\n");
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
