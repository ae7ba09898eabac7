// SPDX-License-Identifier: Apache-2.0
// Shell completion: computed by the tool itself, so that candidates always match its flags. Scripts in
// packaging/completions call `TOOL --complete WORD...` with the words up to the cursor, the last one truncated there;
// it prints a line for each candidate:
//
//   WORD<tab>DESCRIPTION    a completion of the last word
//   :files PREFIX           also PREFIX and the path of a file,
//   :folders PREFIX         or of a directory
//   :open                   the word may continue after the candidate: no space
#ifndef HLOKIT_TOOLS_CLI_COMPLETION_H_
#define HLOKIT_TOOLS_CLI_COMPLETION_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace hlokit::cli {

struct Candidate {
  std::string text;
  std::string description;
};

// Completions of a word, or of the value in it.
struct Completion {
  enum class Paths { kNone, kFiles, kDirectories };

  std::vector<Candidate> candidates;  // complete words; those without the typed prefix are dropped
  bool open = false;
  Paths paths = Paths::kNone;
  size_t path_begin = 0;  // offset of the path
};

// Completion of values named `name` in the help, such as FILE in `--args=FILE`.
struct ValueKind {
  std::string_view name;
  std::function<void(std::string_view typed, Completion*)> complete;
};

// Returns the kinds of several tools: FILE, DIR, PIPELINE, PASS, DEVICE, TARGET, OPCODE.
std::vector<ValueKind> CommonValueKinds();

// Adds the names, each followed by `suffix`, e.g. "=" before a required value.
void CompleteNames(const std::vector<std::string_view>& names, std::string_view suffix, Completion* completion);
// Adds candidates for the last item of a comma-separated list, without those listed before it.
void CompleteList(std::string_view typed, const std::vector<std::string_view>& names, Completion* completion);

// Returns the completions of the last of `words`, which follow the tool's name.
Completion Complete(const CLI::App& app, const std::vector<std::string>& words, const std::vector<ValueKind>& kinds);
// Returns the output of `TOOL --complete`.
std::string CompletionsToString(const CLI::App& app, const std::vector<std::string>& words,
                                const std::vector<ValueKind>& kinds);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_COMPLETION_H_
