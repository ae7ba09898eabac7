// SPDX-License-Identifier: Apache-2.0
// PyTorch in a process of its own (torch_peer.py), which runs one case at a time on request.
#ifndef HLOKIT_BENCH_ENGINE_TORCH_H_
#define HLOKIT_BENCH_ENGINE_TORCH_H_

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace hlokit::bench {

class Torch {
 public:
  // Starts `python`, with the directory `blas`, if not empty, before others in which it looks for shared libraries.
  // Returns null, with a message on standard error, if it has no PyTorch.
  static std::unique_ptr<Torch> Start(const std::string& python, const std::string& blas, int threads);
  ~Torch();
  Torch(const Torch&) = delete;
  Torch& operator=(const Torch&) = delete;

  // Version and linear algebra library.
  const std::string& description() const { return description_; }
  // Returns the time of one run in milliseconds, of processor for one thread, elapsed for several; nullopt without such
  // a case.
  std::optional<double> Run(const std::string& name);

 private:
  Torch() = default;
  std::string ReadLine();

  int threads_ = 1;
  pid_t child_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
  std::string description_;
};

}  // namespace hlokit::bench

#endif  // HLOKIT_BENCH_ENGINE_TORCH_H_
