// SPDX-License-Identifier: Apache-2.0
// Shared code of the benchmarks: processor time, medians, gzip as a yardstick, tables of reference times.
#ifndef HLOKIT_BENCH_MEASURE_H_
#define HLOKIT_BENCH_MEASURE_H_

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern char** environ;

namespace hlokit::bench {

// Returns the processor time of this process, all threads.
inline double ProcessMilliseconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

template <typename Work>
double MillisecondsOf(const Work& work) {
  const double start = ProcessMilliseconds();
  work();
  return ProcessMilliseconds() - start;
}

inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Returns the processor time of `gzip -6 -c path`, run as a child with its output discarded. Negative if it could not
// run.
inline double GzipMilliseconds(const std::string& path) {
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

// Returns "name" for "dir/name.hlo".
inline std::string ProgramName(std::string_view path) {
  const size_t slash = path.rfind('/');
  std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (name.ends_with(".hlo")) name.remove_suffix(4);
  return std::string(name);
}

// A flag of a benchmark, --name or --name=VALUE, and what sets it.
struct Flag {
  std::string_view name;  // with the dashes
  std::function<void(const char* value)> set;
};

// Sets the flags among the arguments; the others are files. Returns false if there is a flag that the table lacks.
inline bool ReadFlags(int argc, char** argv, const std::vector<Flag>& flags, std::vector<std::string>* files) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with("--")) {
      files->emplace_back(argument);
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const auto flag = std::find_if(flags.begin(), flags.end(), [&](const Flag& f) { return f.name == name; });
    if (flag == flags.end()) return false;
    flag->set(equals == std::string_view::npos ? "" : argv[i] + equals + 1);
  }
  return true;
}

// A table of tab-separated text whose first line names the columns and whose first column names the rows.
class Table {
 public:
  Table() = default;
  // Reads the table. Empty if the file cannot be read.
  explicit Table(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    while (std::getline(in, line)) {
      std::vector<std::string> fields;
      std::istringstream stream(line);
      for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
      if (columns_.empty()) {
        columns_ = std::move(fields);
      } else if (!fields.empty()) {
        rows_[fields[0]] = std::move(fields);
      }
    }
  }

  bool empty() const { return rows_.empty(); }
  bool HasRow(const std::string& row) const { return rows_.contains(row); }

  // Returns the text of a cell; empty if there is no such cell.
  std::string Text(const std::string& row, std::string_view column) const {
    const auto found = rows_.find(row);
    if (found == rows_.end()) return "";
    for (size_t i = 1; i < columns_.size() && i < found->second.size(); ++i) {
      if (columns_[i] == column) return found->second[i];
    }
    return "";
  }

  // Returns the number in a cell; zero if there is no such cell or its text is not a number.
  double Number(const std::string& row, std::string_view column) const {
    const std::string text = Text(row, column);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return end != text.c_str() && *end == '\0' ? value : 0;
  }

 private:
  std::vector<std::string> columns_;
  std::map<std::string, std::vector<std::string>> rows_;
};

}  // namespace hlokit::bench

#endif  // HLOKIT_BENCH_MEASURE_H_
