// SPDX-License-Identifier: Apache-2.0
// Runs the commands of one tool, HLOKIT_TOOL, on arbitrary bytes: its main function, in this process. The input chooses
// which command of tool_commands.def is tried; HLOKIT_EVERY_COMMAND=1 in the environment tries them all. A command may
// accept or reject the input; an internal error is a failure, as is a crash.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "passes/core/registry.h"
#include "tests/hostile/mutation.h"

// The tool's main function, renamed by the build.
int ToolMain(int argc, char** argv);

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using hlokit::PassRegistry;

constexpr int kInternalError = 3;

struct Command {
  std::string_view text;
  int64_t executions = 0;
  int64_t accepted = 0;
};

std::vector<Command>& Commands() {
  static std::vector<Command>* const commands = [] {
    auto* list = new std::vector<Command>();
    const auto add = [list](std::string_view tool, std::string_view text) {
      if (tool == HLOKIT_TOOL) list->push_back({text});
    };
#define X(tool, text) add(tool, text);
#include "tests/fuzz/tool_commands.def"
#undef X
    return list;
  }();
  return *commands;
}

// Standard error, which libFuzzer may close.
int report_file = STDERR_FILENO;

void ReportCounts() {
  for (const Command& command : Commands()) {
    dprintf(report_file, "executions %lld accepted %lld: %s %.*s\n", static_cast<long long>(command.executions),
            static_cast<long long>(command.accepted), HLOKIT_TOOL, static_cast<int>(command.text.size()),
            command.text.data());
  }
}

uint64_t Hash(std::string_view text, uint64_t hash = 0xcbf29ce484222325) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash ^ (hash >> 32);
}

// Returns the item with the greatest hash together with `choice`: with another list, a saved input mostly chooses the
// same.
template <typename List, typename Name>
auto& Chosen(List& list, uint64_t choice, Name name) {
  return *std::max_element(list.begin(), list.end(),
                           [&](const auto& a, const auto& b) { return Hash(name(a), choice) < Hash(name(b), choice); });
}

void Try(Command* command, const std::string& path, uint64_t choice) {
  std::vector<std::string> words = {HLOKIT_TOOL};
  for (size_t at = 0; at < command->text.size();) {
    const size_t end = std::min(command->text.find(' ', at), command->text.size());
    std::string word(command->text.substr(at, end - at));
    if (const size_t input = word.find('@'); input != std::string::npos) word.replace(input, 1, path);
    if (const size_t pass = word.find('?'); pass != std::string::npos) {
      const auto& passes = PassRegistry::Get().passes();
      word.replace(pass, 1, Chosen(passes, choice, [](const auto& info) { return info->name; })->name);
    }
    words.push_back(std::move(word));
    at = end + 1;
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ++command->executions;
  const int exit_code = ToolMain(static_cast<int>(words.size()), arguments.data());
  std::fflush(stdout);
  if (exit_code == 0) ++command->accepted;
  if (exit_code < 0 || exit_code >= kInternalError) {
    dprintf(report_file, "exit code %d: %s %.*s\n", exit_code, HLOKIT_TOOL, static_cast<int>(command->text.size()),
            command->text.data());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  report_file = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
  std::atexit(ReportCounts);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1 << 16) return 0;
  static const int file = memfd_create("input", MFD_CLOEXEC);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const uint64_t choice = Hash(std::string_view(reinterpret_cast<const char*>(data), size));
  std::vector<Command>& commands = Commands();
  if (std::getenv("HLOKIT_EVERY_COMMAND") == nullptr) {
    Try(&Chosen(commands, choice, [](const Command& command) { return command.text; }), path, choice);
    return 0;
  }
  for (Command& command : commands) Try(&command, path, choice);
  return 0;
}

#ifdef HLOKIT_LIBFUZZER
// Half of the mutations are libFuzzer's; the others replace words of the text, and are often accepted.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937_64 random(seed);
  if (size == 0 || random() % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string text = hlokit::hostile::MutateWords(std::string(reinterpret_cast<const char*>(data), size), random);
  text.resize(std::min(text.size(), max_size));
  std::copy(text.begin(), text.end(), data);
  return text.size();
}
#endif
