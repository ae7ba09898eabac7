// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_TOOLS_CLI_KEPT_MESSAGES_H_
#define HLOKIT_TOOLS_CLI_KEPT_MESSAGES_H_

#include <string>

namespace hlokit::cli {

// While one exists, errors and warnings that would be printed as text are appended to `text` instead. One at a time, in
// a process that prints from one thread.
class KeptMessages {
 public:
  explicit KeptMessages(std::string* text);
  ~KeptMessages();
  KeptMessages(const KeptMessages&) = delete;
  KeptMessages& operator=(const KeptMessages&) = delete;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_KEPT_MESSAGES_H_
