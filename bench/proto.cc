// SPDX-License-Identifier: Apache-2.0
// Speed of reading modules as XLA's protocol buffers, beside that of the same modules as HLO text. The peer is
// protobuf's own parser of the message, which comes first in reading.
//
//   hlokit_bench_proto FILE.hlo... [--rounds=N]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "io/files/read_file.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "parser/proto/proto_file.h"

namespace hlokit {
namespace {

using bench::Median;
using bench::MillisecondsOf;

int Run(int argc, char** argv) {
  int rounds = 5;
  std::vector<std::string> files;
  for (int a = 1; a < argc; ++a) {
    const std::string_view argument = argv[a];
    if (argument.starts_with("--rounds=")) {
      rounds = std::max(1, std::atoi(argument.substr(9).data()));
    } else {
      files.emplace_back(argument);
    }
  }
  if (files.empty()) {
    std::fputs("usage: hlokit_bench_proto FILE.hlo... [--rounds=N]\n", stderr);
    return 2;
  }
  double all_bytes = 0, all_read = 0, all_message = 0, all_text = 0, all_kept = 0;
  std::printf("%10s %10s %10s %10s %10s %10s  file\n", "MB", "MB/s", "message", "kept MB/s", "text ms", "proto ms");
  for (const std::string& file : files) {
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> text = ReadFile(file);
    if (!text.ok()) continue;
    DiagnosticSink sink;
    std::unique_ptr<Module> module = ParseModule(*text, {}, &sink);
    if (module == nullptr) continue;
    const ProtoForm form = {ProtoMessage::kHlo, ProtoEncoding::kBinary};
    const absl::StatusOr<std::string> bytes = WriteModuleAs(*module, form);
    module.reset();
    if (!bytes.ok()) {
      std::fprintf(stderr, "%s: %s\n", file.c_str(), std::string(bytes.status().message()).c_str());
      continue;
    }
    const auto source = std::make_shared<const SourceBuffer>("proto", *bytes);
    std::vector<double> message_ms, read_ms, text_ms, kept_ms;
    for (int round = 0; round < rounds; ++round) {
      DiagnosticSink ignored;
      message_ms.push_back(MillisecondsOf([&] { ProtoFile::Read(*source, source->text(), form, &ignored); }));
      read_ms.push_back(MillisecondsOf([&] { ParseModule(source, {}, &ignored); }));
      text_ms.push_back(MillisecondsOf([&] { ParseModule(*text, {}, &ignored); }));
      std::unique_ptr<const ForeignParts> parts;
      kept_ms.push_back(MillisecondsOf([&] { ParseModuleAndParts(source, source->text(), {}, &ignored, &parts); }));
    }
    const double megabytes = static_cast<double>(bytes->size()) / 1e6;
    const auto rate = [](double mb, double ms) { return ms == 0 ? 0 : mb / ms * 1e3; };
    std::printf("%10.2f %10.0f %10.0f %10.0f %10.2f %10.2f  %s\n", megabytes, rate(megabytes, Median(read_ms)),
                rate(megabytes, Median(message_ms)), rate(megabytes, Median(kept_ms)), Median(text_ms), Median(read_ms),
                file.substr(file.rfind('/') + 1).c_str());
    all_bytes += megabytes;
    all_read += Median(read_ms);
    all_message += Median(message_ms);
    all_text += Median(text_ms);
    all_kept += Median(kept_ms);
  }
  std::printf(
      "all: %.1f MB read at %.0f MB/s, the message alone at %.0f MB/s, with all parts at %.0f MB/s; %.2f times as "
      "fast as the text\n",
      all_bytes, all_bytes / all_read * 1e3, all_bytes / all_message * 1e3, all_bytes / all_kept * 1e3,
      all_text / all_read);
  return 0;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
