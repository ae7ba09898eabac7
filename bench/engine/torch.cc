// SPDX-License-Identifier: Apache-2.0
#include "bench/engine/torch.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "bench/measure.h"

namespace hlokit::bench {

std::unique_ptr<Torch> Torch::Start(const std::string& python, const std::string& blas, int threads) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return nullptr;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  std::vector<std::string> variables = {"OMP_NUM_THREADS=" + std::to_string(threads),
                                        "OPENBLAS_NUM_THREADS=" + std::to_string(threads)};
  if (!blas.empty()) {
    const char* const before = std::getenv("LD_LIBRARY_PATH");
    variables.push_back("LD_LIBRARY_PATH=" + blas + (before != nullptr ? ":" + std::string(before) : ""));
  }
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** e = environ; *e != nullptr; ++e) {
    if (blas.empty() || std::string_view(*e).find("LD_LIBRARY_PATH=") != 0) environment.push_back(*e);
  }
  environment.push_back(nullptr);
  std::string arguments[] = {python, std::string(HLOKIT_SOURCE_DIR) + "/bench/engine/torch_peer.py"};
  char* argv[] = {arguments[0].data(), arguments[1].data(), nullptr};
  std::unique_ptr<Torch> torch(new Torch());
  torch->threads_ = threads;
  const int error = posix_spawnp(&torch->child_, python.c_str(), &actions, nullptr, argv, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  torch->to_ = fdopen(to[1], "w");
  torch->from_ = fdopen(from[0], "r");
  if (error != 0) torch->child_ = -1;
  if (error == 0) torch->description_ = torch->ReadLine();
  if (torch->description_.empty()) {
    std::fprintf(stderr, "%s does not run PyTorch\n", python.c_str());
    return nullptr;
  }
  return torch;
}

Torch::~Torch() {
  if (to_ != nullptr) std::fclose(to_);
  if (from_ != nullptr) std::fclose(from_);
  int status = 0;
  if (child_ > 0) waitpid(child_, &status, 0);
}

std::string Torch::ReadLine() {
  std::string line;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) line += static_cast<char>(c);
  return line;
}

std::optional<double> Torch::Run(const std::string& name) {
  std::fprintf(to_, "%s\t%d\n", name.c_str(), threads_);
  std::fflush(to_);
  double processor = 0, elapsed = 0;
  if (std::sscanf(ReadLine().c_str(), "%lf %lf", &processor, &elapsed) != 2) return std::nullopt;
  return threads_ == 1 ? processor : elapsed;
}

}  // namespace hlokit::bench
