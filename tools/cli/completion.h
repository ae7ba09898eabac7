// SPDX-License-Identifier: Apache-2.0
// Completion of command lines in shells: the tool itself says what may stand where the cursor is, so that what shells
// offer never differs from what it takes. `TOOL --complete WORD...` is called by the scripts in packaging/completions
// with the words up to the cursor, the last of them cut there, and prints a line for each candidate:
//
//   WORD<tab>DESCRIPTION    what the last word may become
//   :files PREFIX           also PREFIX and the path of a file,
//   :folders PREFIX         or of a folder
//   :open                   the word may go on behind the candidate: no space
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

// What a word, or the value in it, may become.
struct Completion {
  enum class Paths { kNone, kFiles, kFolders };

  std::vector<Candidate> candidates;  // whole, with what is typed already; those that do not begin with it are dropped
  bool open = false;
  Paths paths = Paths::kNone;
  size_t path_begin = 0;  // bytes in front of the path
};

// How values are completed whose name in the help is `name`, as FILE in `--args=FILE`.
struct ValueKind {
  std::string_view name;
  std::function<void(std::string_view typed, Completion*)> complete;
};

// FILE, FOLDER, PIPELINE, PASS, DEVICE, MACHINE, OPCODE: what several tools take.
std::vector<ValueKind> CommonValueKinds();

// The names, each with `behind` after it: "=" of what a value must follow.
void CompleteNames(const std::vector<std::string_view>& names, std::string_view behind, Completion* completion);
// Candidates for the last item of a list with commas; those that stand before it are left out.
void CompleteList(std::string_view typed, const std::vector<std::string_view>& names, Completion* completion);

// What may become of the last of `words`, which stand behind the tool's name.
Completion Complete(const CLI::App& app, const std::vector<std::string>& words, const std::vector<ValueKind>& kinds);
// As `TOOL --complete` prints it.
std::string CompletionText(const CLI::App& app, const std::vector<std::string>& words,
                           const std::vector<ValueKind>& kinds);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_COMPLETION_H_
