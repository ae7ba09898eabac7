// SPDX-License-Identifier: Apache-2.0
// Calls every op of the tracer with random arguments, odd ones among them. A call has a value or an error: no crash, no
// memory or time without bound, no internal error, no result of another shape than announced.
//
//   op_calls [--count=N] [--seed=N] [--seconds=N] [--op=NAME] [--print]
//
// Each seed is a call of every op (of one with --op). Exit code 1 if a call failed the checks, or if too few of the ops
// had a value in a long run.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/types/literal.h"
#include "tests/properties/random_call.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

constexpr int64_t kMaxBytes = int64_t{64} << 20;  // of an execution
constexpr int64_t kMaxFetched = 1 << 16;          // elements of a result that is fetched
constexpr size_t kMaxResults = 8;                 // of a call that are fetched
constexpr unsigned kMaxSecondsOfCall = 20;
constexpr int kCallsOfTracer = 200;
constexpr uint64_t kCallsForValues = 40;  // of each op, until most of them have had a value
constexpr size_t kMinPercentWithValue = 97;

// The call in progress, for signal handlers.
char current[2048];

void PrintCurrent(const char* what) {
  for (const char* text : {what, static_cast<const char*>(current), "\n"}) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
  }
}
void OnCrash(int number) {
  PrintCurrent("crash in ");
  std::signal(number, SIG_DFL);
  std::raise(number);
}
void OnAlarm(int) {
  PrintCurrent("out of time: ");
  _exit(1);
}

struct Outcome {
  bool value = false;
  std::string failure;  // of a check; empty: none
};

std::string CheckError(const absl::Status& status) {
  // An execution beyond a limit names the option. Kernels of TPUs are traced and simulated, not executed.
  constexpr absl::string_view kKernel = "no function for custom-call target \"tpu_custom_call\"";
  const bool expected = status.code() == absl::StatusCode::kInvalidArgument ||
                        status.code() == absl::StatusCode::kResourceExhausted ||
                        status.code() == absl::StatusCode::kUnimplemented ||
                        status.message().find("(--max-") != absl::string_view::npos ||
                        status.message().find(kKernel) != absl::string_view::npos;
  if (!expected) return StrCat("unexpected error: ", status.ToString());
  return status.message().empty() ? "error without a message" : "";
}

Outcome Call(Tracer& tracer, const RandomCall& call, bool gradients) {
  Outputs outputs = Dispatch(call.op(), Args(call.args()));
  if (absl::Status s = tracer.status(); !s.ok()) return {false, CheckError(s)};
  if (outputs.size() > kMaxResults) outputs.resize(kMaxResults);
  Tensors results(outputs.begin(), outputs.end());
  if (gradients) {
    Tensors roots;
    for (const Tensor& t : results) {
      if (t.defined() && t.requires_grad() && t.numel() <= kMaxFetched) roots.push_back(t);
    }
    if (!roots.empty()) {
      Tensors seeds;
      for (const Tensor& t : roots) seeds.push_back(OnesLike(t));
      if (absl::Status s = RunBackward(roots, seeds, {}).status(); !s.ok()) return {false, CheckError(s)};
      for (const IValue& arg : call.args()) {
        const Tensor* const t = arg.get<Tensor>();
        if (t == nullptr || !t->grad().defined()) continue;
        if (!std::ranges::equal(t->grad().sizes(), t->sizes()) || t->grad().dtype() != t->dtype()) {
          return {false, StrCat("the gradient of a ", ToString(t->shape(), false), " is a ",
                                ToString(t->grad().shape(), false))};
        }
        results.push_back(t->grad());
      }
    }
    if (absl::Status s = tracer.status(); !s.ok()) return {false, CheckError(s)};
  }
  Outcome outcome;
  for (const Tensor& t : results) {
    if (!t.defined() || t.numel() > kMaxFetched) continue;
    absl::StatusOr<Literal> value = t.ToLiteral();
    if (!value.ok()) return {false, CheckError(value.status())};
    if (!SameShape(value->shape(), t.shape(), /*ignore_layout=*/true)) {
      return {false, StrCat("a value of ", ToString(value->shape(), false), " for ", ToString(t.shape(), false))};
    }
    outcome.value = true;
  }
  return outcome;
}

std::unique_ptr<Tracer> NewTracer() {
  TracerOptions options;
  options.client.evaluator.num_threads = 1;
  options.client.evaluator.limits.max_bytes = kMaxBytes;
  options.client.evaluator.limits.max_seconds = 5;
  return std::make_unique<Tracer>(options);
}

bool Flag(std::string_view argument, std::string_view name, uint64_t* value) {
  if (!argument.starts_with(name)) return false;
  *value = std::strtoull(std::string(argument.substr(name.size())).c_str(), nullptr, 10);
  return true;
}

int Run(int argc, char** argv) {
  uint64_t count = 1, seed = 0, seconds = 0;
  std::string op_name;
  bool print = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--print") {
      print = true;
    } else if (argument.starts_with("--op=")) {
      op_name = argument.substr(5);
    } else if (!Flag(argument, "--count=", &count) && !Flag(argument, "--seed=", &seed) &&
               !Flag(argument, "--seconds=", &seconds)) {
      std::fprintf(stderr, "usage: op_calls [--count=N] [--seed=N] [--seconds=N] [--op=NAME] [--print]\n");
      return 2;
    }
  }
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, OnCrash);
  std::signal(SIGALRM, OnAlarm);
#ifndef __SANITIZE_ADDRESS__
  // An allocation beyond all limits of the tracer ends the program.
  const rlimit memory = {rlim_t{4} << 30, rlim_t{4} << 30};
  setrlimit(RLIMIT_AS, &memory);
#endif
  std::vector<Op> ops;
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (op == Op::device_data || op == Op::constant) continue;  // have no kernel
    if (op_name.empty() || SchemaOf(op).full_name() == op_name) ops.push_back(op);
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::vector<bool> had_value(kOpCount, false);
  uint64_t calls = 0, values = 0, failed = 0;
  std::unique_ptr<Tracer> tracer;
  const auto out_of_time = [&] { return seconds != 0 && Clock::now() - begin > std::chrono::seconds(seconds); };
  uint64_t next = seed;
  for (; next < seed + count && !out_of_time(); ++next) {
    for (const Op op : ops) {
      if (out_of_time()) break;
      if (calls++ % kCallsOfTracer == 0) tracer = NewTracer();
      const DeviceGuard guard(tracer->device());
      static constexpr int kOddness[] = {0, 3, 10, 30};
      std::snprintf(current, sizeof(current), "--seed=%llu --op=%s: arguments", static_cast<unsigned long long>(next),
                    SchemaOf(op).full_name().c_str());
      alarm(kMaxSecondsOfCall);
      const RandomCall call(tracer.get(), op, next, kOddness[next % 4]);
      std::snprintf(current, sizeof(current), "--seed=%llu --op=%s: %s", static_cast<unsigned long long>(next),
                    SchemaOf(op).full_name().c_str(), call.text().c_str());
      if (print) std::printf("%s\n", current);
      const Outcome outcome = tracer->status().ok() ? Call(*tracer, call, next % 3 != 0) : Outcome();
      if (print) std::printf("  %s\n", tracer->status().ToString().c_str());
      alarm(0);
      tracer->ClearStatus();
      (void)tracer->Wait();
      values += outcome.value ? 1 : 0;
      had_value[static_cast<size_t>(op)] = had_value[static_cast<size_t>(op)] || outcome.value;
      if (outcome.failure.empty()) continue;
      if (++failed <= 20) std::printf("%s: %s\n", current, outcome.failure.c_str());
    }
  }
  std::string without;
  size_t valued = 0;
  for (const Op op : ops) {
    valued += had_value[static_cast<size_t>(op)];
    if (!had_value[static_cast<size_t>(op)]) StrAppend(&without, " ", SchemaOf(op).full_name());
  }
  if (op_name.empty() && next >= seed + kCallsForValues) {
    if (!without.empty()) std::printf("without a value:%s\n", without.c_str());
    if (valued * 100 < ops.size() * kMinPercentWithValue) ++failed;
  }
  std::printf("%llu calls of %zu ops, %llu with a value, %llu failed\n", static_cast<unsigned long long>(calls),
              ops.size(), static_cast<unsigned long long>(values), static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlokit::lazy

int main(int argc, char** argv) { return hlokit::lazy::Run(argc, argv); }
