// SPDX-License-Identifier: Apache-2.0
// Parses files truncated at every byte and mutated at random; accepted ones go through the verifier, the printer and
// the fingerprint. Anything but a diagnostic or success is a crash of this program; memory beyond ten times that of the
// whole file, and a rejection without a diagnostic, are failures too.
//
//   mutate [--mutations=N] [--every=N] [--seed=N] FILE...
//
// N mutations in total, evenly over the files; truncations at every byte, or at every Nth.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/read_file.h"
#include "ir/digest/fingerprint.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "tests/hostile/mutation.h"

// Counts allocations. Sanitizers have separate allocators and are left alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HLOKIT_COUNT_MEMORY 0
#else
#define HLOKIT_COUNT_MEMORY 1
#endif

namespace {
size_t live = 0, peak = 0;
}  // namespace

#if HLOKIT_COUNT_MEMORY
void* operator new(size_t size) {
  void* p = std::malloc(size);
  if (p == nullptr) std::abort();
  live += malloc_usable_size(p);
  peak = std::max(peak, live);
  return p;
}
void operator delete(void* p) noexcept {
  if (p != nullptr) live -= malloc_usable_size(p);
  std::free(p);
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }
#endif

namespace hlokit {
namespace {

enum class Verdict { kAccepted, kRejected, kSilent };

Verdict Try(std::string text) {
  auto source = std::make_shared<const SourceBuffer>("mutated", std::move(text));
  DiagnosticSink sink;
  ParseOptions options;
  options.max_literal_bytes = 1 << 24;
  const std::unique_ptr<Module> module = ParseModule(source, options, &sink);
  if (module == nullptr) {
    return sink.has_errors() && !RenderText(sink, *source).empty() ? Verdict::kRejected : Verdict::kSilent;
  }
  DiagnosticSink verdict;
  VerifyModule(*module, VerifierOptions(), &verdict);
  RenderText(verdict, *source);
  ToString(*module);
  Fingerprint(*module);
  return Verdict::kAccepted;
}

// Returns the peak memory of processing the text.
size_t PeakOf(const std::string& text, Verdict* verdict) {
  const size_t before = live;
  peak = live;
  *verdict = Try(text);
  return peak - before;
}

int Run(int argc, char** argv) {
  const std::optional<hostile::MutationFlags> flags = hostile::ParseMutationFlags(argc, argv);
  if (!flags) return 2;
  std::mt19937_64 random(flags->seed);
  int64_t counts[3] = {};
  int64_t failed = 0;
  double worst = 0;
  const auto check = [&](const std::string& file, const std::string& text, size_t allowed) {
    Verdict verdict;
    const size_t bytes = PeakOf(text, &verdict);
    ++counts[static_cast<int>(verdict)];
    worst = std::max(worst, static_cast<double>(bytes) / static_cast<double>(allowed));
    if (verdict != Verdict::kSilent && bytes <= allowed) return;
    ++failed;
    std::printf("%s: %s\n----\n%s\n----\n", file.c_str(),
                verdict == Verdict::kSilent ? "rejected without a word" : "takes more than ten times the memory",
                text.c_str());
  };
  for (const std::string& file : flags->files) {
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(file);
    if (!source.ok()) {
      std::fprintf(stderr, "%s\n", std::string(source.status().message()).c_str());
      return 2;
    }
    const std::string text((*source)->text());
    Verdict verdict;
    PeakOf(text, &verdict);  // tables that are built once
    const size_t allowed = 10 * std::max<size_t>(PeakOf(text, &verdict), 1 << 16);
    for (size_t length = 0; length < text.size(); length += flags->every) check(file, text.substr(0, length), allowed);
    for (int64_t n = 0; n < flags->mutations / static_cast<int64_t>(flags->files.size()); ++n) {
      check(file, hostile::MutateBytes(text, random), allowed);
    }
  }
  std::printf(
      "%zu files: %lld accepted, %lld rejected, %lld failed; memory at most %.1f times that of the whole file\n",
      flags->files.size(), static_cast<long long>(counts[0]), static_cast<long long>(counts[1]),
      static_cast<long long>(failed), worst * 10);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
