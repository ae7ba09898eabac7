// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/quoted_module.h"

#include <string>
#include <utility>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "parser/hlo/module_parser.h"

namespace hlokit {

absl::StatusOr<std::unique_ptr<Module>> ParseQuotedModule(std::string_view text, ParseOptions options) {
  options.quoted_module = true;
  auto source = std::make_shared<const SourceBuffer>("<text>", std::string(text));
  auto context = std::make_shared<Context>();
  context->Keep(source);
  DiagnosticSink sink;
  std::unique_ptr<Module> module = ModuleParser(source, source->text(), options, &sink, std::move(context)).Run();
  if (module != nullptr) return module;
  const absl::Status status = sink.ToStatus(*source);
  return status.ok() ? absl::InvalidArgumentError("rejected") : status;
}

}  // namespace hlokit
