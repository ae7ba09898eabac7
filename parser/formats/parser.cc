// SPDX-License-Identifier: Apache-2.0
#include "parser/formats/parser.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "parser/formats/foreign_format.h"
#include "parser/formats/stablehlo_program.h"
#include "parser/hlo/module_parser.h"
#include "parser/hlo/shape_parser.h"
#include "parser/json/json_parser.h"
#include "parser/mlir/parser.h"
#include "parser/proto/proto_file.h"
#include "parser/stablehlo/import/convert.h"
#include "parser/stablehlo/refine/refine.h"
#include "parser/stablehlo/verify/verify.h"
#include "parser/text/text_cursor.h"

namespace hlokit {
namespace {

std::unique_ptr<Module> ParseStablehlo(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                       const ParseOptions& options, DiagnosticSink* sink,
                                       std::shared_ptr<Context> context) {
  mlir::MlirOptions mlir;
  mlir.max_nesting = std::min(mlir.max_nesting, options.max_nesting);
  mlir.max_operations = std::min(mlir.max_operations, options.max_instructions);
  mlir.max_literal_bytes = options.max_literal_bytes;
  mlir.verify = options.verify_stablehlo;
  const std::unique_ptr<mlir::Module> program = ParseStablehloProgram(std::move(source), text, mlir, sink);
  if (program == nullptr) return nullptr;
  if (!options.sizes.empty()) {
    stablehlo::RefineOptions refine;
    refine.entry = options.entry;
    refine.sizes = options.sizes;
    if (!stablehlo::RefineProgram(program.get(), refine, sink)) return nullptr;
    if (options.verify_stablehlo) stablehlo::VerifyProgram(*program, sink);
    if (sink->has_errors()) return nullptr;
  }
  stablehlo::ConvertOptions convert;
  convert.entry = options.entry;
  convert.max_literal_bytes = options.max_literal_bytes;
  std::unique_ptr<Module> module = stablehlo::ConvertToHlo(*program, convert, sink, std::move(context));
  if (module != nullptr || !options.sizes.empty()) return module;
  std::string open;
  for (const std::string& size : stablehlo::OpenSizes(*program, options.entry)) {
    StrAppend(&open, open.empty() ? "" : ", ", size);
  }
  if (!open.empty()) {
    sink->Warning(DiagnosticKind::kUnsupported, {}, StrCat("the program leaves sizes open: ", open),
                  "--shape NAME=SIZE gives them");
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Module> ParseModulePart(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                        const ParseOptions& options, DiagnosticSink* sink,
                                        std::shared_ptr<Context> context) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (!options.entry.empty() && !LooksLikeStablehlo(text)) {
    sink->Warning(
        DiagnosticKind::kUnexpectedToken, {},
        StrCat("no StableHLO program, whose function `", options.entry, "` would be the entry computation (--entry)"));
  }
  if (const std::optional<ProtoForm> form = DetectProto(text)) {
    return ParseProtoModule(*source, text, *form, options, sink, std::move(context));
  }
  if (const std::optional<ForeignFormat> format = DetectForeignFormat(text)) {
    const size_t offset = static_cast<size_t>(text.data() - source->text().data());
    const SourceRange range =
        offset < SourceRange::kNoOffset ? SourceRange{static_cast<uint32_t>(offset), 0} : SourceRange{};
    sink->Error(DiagnosticKind::kUnexpectedToken, range, StrCat("expected a module, found ", format->name),
                std::string(format->hint));
    return nullptr;
  }
  if (LooksLikeJson(text)) {
    return ParseJsonModulePart(std::move(source), text, options, sink, std::move(context));
  }
  if (source->text().size() >= SourceRange::kNoOffset) {
    sink->Error(DiagnosticKind::kTooLarge, {}, "the input is too large: texts of 4 GiB and more are not supported");
    return nullptr;
  }
  if (LooksLikeStablehlo(text)) {
    return ParseStablehlo(std::move(source), text, options, sink, std::move(context));
  }
  const bool own_context = context == nullptr;
  if (own_context) context = std::make_shared<Context>();
  context->Keep(source);
  std::unique_ptr<Module> module = ModuleParser(source, text, options, sink, std::move(context)).Run();
  if (module != nullptr && own_context) module->context().strings.ShrinkToFit();
  return module;
}

std::unique_ptr<Module> ParseModuleAndParts(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                            const ParseOptions& options, DiagnosticSink* sink,
                                            std::unique_ptr<const ForeignParts>* parts) {
  parts->reset();
  const std::optional<ProtoForm> form = DetectProto(text);
  if (!form) return ParseModulePart(std::move(source), text, options, sink);
  std::unique_ptr<const ProtoFileParts> kept;
  std::unique_ptr<Module> module = ParseProtoModule(*source, text, *form, options, sink, nullptr, &kept);
  *parts = std::move(kept);
  return module;
}

std::unique_ptr<Module> ParseModule(std::shared_ptr<const SourceBuffer> source, const ParseOptions& options,
                                    DiagnosticSink* sink, std::shared_ptr<Context> context) {
  const std::string_view text = source->text();
  return ParseModulePart(std::move(source), text, options, sink, std::move(context));
}

absl::StatusOr<std::unique_ptr<Module>> ParseModuleText(std::string_view text, const ParseOptions& options) {
  auto source = std::make_shared<const SourceBuffer>("<text>", std::string(text));
  DiagnosticSink sink;
  std::unique_ptr<Module> module = ParseModule(source, options, &sink);
  if (module == nullptr) {
    const absl::Status status = sink.ToStatus(*source);
    return status.ok() ? absl::InvalidArgumentError("rejected") : status;
  }
  return module;
}

SplitInput SplitInputFile(const SourceBuffer& source) {
  std::string text(source.text());
  std::vector<std::pair<size_t, size_t>> ranges;  // begin, end
  size_t begin = 0;
  for (size_t line = 0; line < text.size();) {
    size_t end = text.find('\n', line);
    if (end == std::string::npos) end = text.size();
    std::string_view content = std::string_view(text).substr(line, end - line);
    while (!content.empty() && char_class::Is(content.back(), char_class::kWhitespace)) content.remove_suffix(1);
    if (content == "// -----") {
      ranges.push_back({begin, line});
      begin = end;
      text[line] = '\0';
    }
    line = end + 1;
  }
  ranges.push_back({begin, text.size()});
  SplitInput split;
  split.source = std::make_shared<const SourceBuffer>(source.name(), std::move(text));
  for (const auto& [from, to] : ranges) split.chunks.push_back(split.source->text().substr(from, to - from));
  return split;
}

absl::StatusOr<Shape> ParseShapeText(std::string_view text, Context* context) {
  const SourceBuffer source("<shape>", std::string(text));
  DiagnosticSink sink;
  TextCursor in(source.text(), &sink);
  ShapeParser shapes(&in, context, 1 << 20);
  Shape shape;
  if (!shapes.Parse(&shape)) return absl::InvalidArgumentError(sink.diagnostics().front().message);
  if (!in.AtEnd())
    return absl::InvalidArgumentError(
        StrCat("<shape>: expected the end of the text after the shape, found ", in.DescribeNext()));
  return shape;
}

}  // namespace hlokit
