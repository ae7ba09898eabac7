// SPDX-License-Identifier: Apache-2.0
// Shared libraries that are loaded when they are first needed: a program that links libcurl starts milliseconds later.
#ifndef HLOKIT_IO_STORES_SHARED_LIBRARY_H_
#define HLOKIT_IO_STORES_SHARED_LIBRARY_H_

#include <string>

#include "absl/status/status.h"

namespace hlokit {

// Stays loaded until the program ends.
class SharedLibrary {
 public:
  // `name` is the soname; `package` is what installs it, for the message of an error.
  absl::Status Load(const std::string& name, const std::string& package);

  // Sets a function pointer to the function of this name. After an error status() has it.
  template <typename Function>
  void Resolve(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(Find(name));
  }
  const absl::Status& status() const { return status_; }

 private:
  void* Find(const char* name);

  void* handle_ = nullptr;
  std::string name_;
  absl::Status status_;
};

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_SHARED_LIBRARY_H_
