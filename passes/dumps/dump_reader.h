// SPDX-License-Identifier: Apache-2.0
// How files of a dump are read, and where their errors go: a tool prints these as it does for other inputs.
#ifndef HLOKIT_PASSES_DUMPS_DUMP_READER_H_
#define HLOKIT_PASSES_DUMPS_DUMP_READER_H_

#include <memory>
#include <string>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"

namespace hlokit::dump {

class DumpReader {
 public:
  virtual ~DumpReader() = default;

  // Returns a file, decompressed; null after an error, which has been reported.
  virtual std::shared_ptr<const SourceBuffer> Read(const std::string& path) = 0;
  // Returns its module; null after errors, which have been reported. `context` may be null.
  virtual std::unique_ptr<Module> Parse(std::shared_ptr<const SourceBuffer> source,
                                        std::shared_ptr<Context> context) = 0;
  // Reports what is wrong with a file: at places of its text, or as a whole.
  virtual void Report(const DiagnosticSink& sink, const SourceBuffer& source) = 0;
  virtual void ReportError(std::string_view where, std::string_view message) = 0;
};

}  // namespace hlokit::dump

#endif  // HLOKIT_PASSES_DUMPS_DUMP_READER_H_
