// SPDX-License-Identifier: Apache-2.0
// Programs of all devices of a process, as text: a graph is compiled by the first device that needs it; the others wait
// for the program and prepare their own copy, so that devices run it at the same time.
#ifndef HLOKIT_TRACER_STEP_SHARED_PROGRAMS_H_
#define HLOKIT_TRACER_STEP_SHARED_PROGRAMS_H_

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "ir/graph/module_fwd.h"

namespace hlokit::lazy {

struct SharedProgram {
  std::string text;
  std::shared_ptr<const Module> lowered;  // before compilation, if the client keeps it
};

class SharedPrograms {
 public:
  explicit SharedPrograms(size_t capacity) : capacity_(capacity) {}

  // The right to compile a graph, or its program. Without a call of Publish another device may compile it.
  class Claim {
   public:
    Claim(SharedPrograms* owner, std::string contents) : owner_(owner), contents_(std::move(contents)) {}
    explicit Claim(std::shared_ptr<const SharedProgram> program) : program_(std::move(program)) {}
    Claim(Claim&& o) noexcept
        : owner_(std::exchange(o.owner_, nullptr)),
          contents_(std::move(o.contents_)),
          program_(std::move(o.program_)) {}
    Claim& operator=(Claim&&) = delete;
    ~Claim() {
      if (owner_ != nullptr) owner_->Release(contents_, nullptr);
    }
    // Null if the caller is to compile the graph.
    const std::shared_ptr<const SharedProgram>& program() const { return program_; }
    void Publish(SharedProgram program) {
      std::exchange(owner_, nullptr)->Release(contents_, std::make_shared<const SharedProgram>(std::move(program)));
    }

   private:
    SharedPrograms* owner_ = nullptr;
    std::string contents_;
    std::shared_ptr<const SharedProgram> program_;
  };
  // Waits if another device is compiling the graph.
  Claim FindOrClaim(const std::string& contents);

 private:
  void Release(const std::string& contents, std::shared_ptr<const SharedProgram> program);

  const size_t capacity_;  // programs kept
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, std::shared_ptr<const SharedProgram>> programs_;  // null: being compiled
  std::list<std::string> finished_;                                                 // oldest first
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_SHARED_PROGRAMS_H_
