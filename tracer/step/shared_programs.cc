// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/shared_programs.h"

#include <utility>

namespace hlokit::lazy {

SharedPrograms::Claim SharedPrograms::FindOrClaim(const std::string& contents) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    const auto [it, fresh] = programs_.emplace(contents, nullptr);
    if (fresh) return Claim(this, contents);
    if (it->second != nullptr) return Claim(it->second);
    changed_.wait(lock);
  }
}

void SharedPrograms::Release(const std::string& contents, std::shared_ptr<const SharedProgram> program) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (program == nullptr) {
    programs_.erase(contents);
  } else {
    programs_[contents] = std::move(program);
    finished_.push_back(contents);
    if (finished_.size() > capacity_) {
      programs_.erase(finished_.front());
      finished_.pop_front();
    }
  }
  changed_.notify_all();
}

}  // namespace hlokit::lazy
