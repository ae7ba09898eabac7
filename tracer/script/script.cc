// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>

#include "ir/core/str_cat.h"
#include "tracer/graph/string_split.h"
#include "tracer/script/script_runner.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy {
namespace {

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

const std::vector<std::string_view> kBlockWords = {"no_grad", "autocast", "scope", "repeat", "compile", "capture"};

bool OpensBlock(std::string_view line) {
  const std::string_view word = TakeWord(&line);
  return std::find(kBlockWords.begin(), kBlockWords.end(), word) != kBlockWords.end();
}

}  // namespace

std::string_view TakeWord(std::string_view* s) {
  *s = Trim(*s);
  const size_t end = std::min(s->find_first_of(" \t"), s->size());
  const std::string_view word = s->substr(0, end);
  *s = Trim(s->substr(end));
  return word;
}

bool ScriptRunner::Close(std::string_view at, size_t* next) {
  if (blocks_.empty()) return Error(at, "`end` without a block");
  Block& block = blocks_.back();
  if (block.kind == Block::kCompile) {
    const absl::Status s = block.region->End();
    blocks_.pop_back();
    return s.ok() || Error(at, std::string(s.message()));
  }
  if (block.kind == Block::kRepeat && block.left > 0) {
    --block.left;
    *next = block.line + 1;
    return true;
  }
  blocks_.pop_back();
  return true;
}

bool ScriptRunner::Open(std::string_view line, std::string_view word, std::string_view rest, size_t at) {
  if (blocks_.size() >= 1000) return Error(line, "blocks are nested too deeply");
  Block block;
  block.line = at;
  if (word == "no_grad") {
    block.kind = Block::kNoGrad;
    block.grad_mode = std::make_unique<AutoGradMode>(false);
  } else if (word == "autocast") {
    block.kind = Block::kAutocast;
    if (rest != "bf16" && rest != "f16") return Error(line, "expected bf16 or f16");
    block.autocast = std::make_unique<AutocastGuard>(rest == "bf16" ? ElementType::kBF16 : ElementType::kF16);
  } else if (word == "scope") {
    block.kind = Block::kScope;
    if (rest.empty()) return Error(line, "expected the name of a scope");
    block.scope = std::make_unique<ScopedTrace>(rest);
  } else if (word == "repeat") {
    block.kind = Block::kRepeat;
    int64_t n = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
    if (error != std::errc() || end != rest.data() + rest.size() || n < 1) return Error(line, "expected repeat N");
    block.left = n - 1;
  } else {
    block.kind = Block::kCompile;
    RegionOptions region;
    region.name = TakeWord(&rest);
    if (region.name.empty()) return Error(line, "expected the name of a compiled region");
    DynamicShapeDetector* detector = nullptr;
    while (!rest.empty()) {
      const std::string_view option = TakeWord(&rest);
      int64_t n = 0;
      if (option == "full_graph") {
        region.full_graph = true;
      } else if (option.starts_with("max_different_graphs=") &&
                 std::from_chars(option.data() + std::string_view("max_different_graphs=").size(),
                                 option.data() + option.size(), n)
                         .ptr == option.data() + option.size() &&
                 n > 0) {
        std::unique_ptr<DynamicShapeDetector>& known = detectors_[region.name];
        if (known == nullptr) known = std::make_unique<DynamicShapeDetector>(n);
        detector = known.get();
      } else {
        return Error(option, "expected `full_graph` or `max_different_graphs=N`");
      }
    }
    block.region = std::make_unique<CompileRegion>(&tracer_, std::move(region), detector);
  }
  blocks_.push_back(std::move(block));
  return true;
}

std::vector<std::string_view> ScriptRunner::ReadBeforeWritten(size_t begin, size_t end) const {
  std::vector<std::string_view> read, written;
  const auto visit = [](std::string_view text, const auto& fn) {
    for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
      size_t stop = at + 1;
      while (stop < text.size() && IsNameChar(text[stop])) ++stop;
      fn(text.substr(at, stop - at));
    }
  };
  for (size_t i = begin; i < end; ++i) {
    std::string_view line = lines_[i];
    if (line.empty() || line.front() == '#') continue;
    const size_t eq = line.front() == '%' ? line.substr(0, line.find('(')).find('=') : std::string_view::npos;
    const std::string_view targets = eq == std::string_view::npos ? "" : line.substr(0, eq);
    visit(line.substr(targets.size()), [&](std::string_view name) {
      if (std::find(written.begin(), written.end(), name) != written.end()) return;
      if (std::find(read.begin(), read.end(), name) == read.end()) read.push_back(name);
    });
    visit(targets, [&](std::string_view name) { written.push_back(name); });
  }
  return read;
}

std::vector<size_t> ScriptRunner::GraphBreaks(size_t begin, size_t end) const {
  std::vector<size_t> breaks;
  size_t depth = 0;
  for (size_t i = begin; i < end; ++i) {
    std::string_view rest = lines_[i];
    const std::string_view word = TakeWord(&rest);
    if (OpensBlock(lines_[i])) ++depth;
    if (word == "end") --depth;
    // Parts give detached results, so what is differentiated stays in one.
    if (word == "backward") breaks.clear();
    if (depth == 0 && (word == "item" || word == "print" || word == "mark_step" || word == "wait")) breaks.push_back(i);
  }
  return breaks;
}

bool ScriptRunner::Capture(std::string_view line, std::string_view rest, size_t at, size_t* next) {
  if (assigned_ != nullptr) return Error(line, "a capture inside of a capture");
  GraphCaptureOptions options;
  options.name = TakeWord(&rest);
  if (options.name.empty()) return Error(line, "expected the name of a capture");
  if (!rest.empty() && rest != "full_graph") return Error(rest, "expected `full_graph` or nothing");
  options.full_graph = !rest.empty();
  size_t end = at + 1;
  for (size_t depth = 1; end < lines_.size(); ++end) {
    if (OpensBlock(lines_[end])) ++depth;
    if (lines_[end] == "end" && --depth == 0) break;
  }
  if (end == lines_.size()) return Error(line, "missing `end` of the block");
  *next = end + 1;
  const std::vector<size_t> breaks = options.full_graph ? std::vector<size_t>() : GraphBreaks(at + 1, end);
  size_t begin = at + 1;
  const auto has_statements = [&](size_t from, size_t to) {
    return std::any_of(lines_.begin() + static_cast<std::ptrdiff_t>(from),
                       lines_.begin() + static_cast<std::ptrdiff_t>(to),
                       [](std::string_view text) { return !text.empty() && text.front() != '#'; });
  };
  for (size_t k = 0; k <= breaks.size(); ++k) {
    const size_t stop = k < breaks.size() ? breaks[k] : end;
    if (has_statements(begin, stop)) {
      GraphCaptureOptions part = options;
      if (!breaks.empty()) part.name = StrCat(options.name, ".", static_cast<int64_t>(k + 1));
      if (!CapturePart(line, begin, stop, std::move(part))) return false;
    }
    if (stop == end) break;
    const ScopedFrame frame("<program>", source_.name(), static_cast<int>(stop + 1));
    if (++statements_ > options_.max_statements) return Error(line, "the program runs too many statements");
    if (!Statement(lines_[stop])) return false;
    begin = stop + 1;
  }
  return true;
}

bool ScriptRunner::CapturePart(std::string_view line, size_t begin, size_t end, GraphCaptureOptions options) {
  CaptureBlock& block = captures_[begin];
  if (block.function == nullptr) {
    block.arguments = ReadBeforeWritten(begin, end);
    block.function = std::make_unique<CapturedFunction>(
        &tracer_,
        [this, &block, begin, end](const Tensors&) {
          std::vector<Block> outer;
          outer.swap(blocks_);
          block.results.clear();
          assigned_ = &block.results;
          Tensors results;
          if (RunLines(begin, end)) {
            for (const std::string& name : block.results) results.push_back(variables_[index_[name]].second);
          }
          assigned_ = nullptr;
          blocks_.swap(outer);
          return results;
        },
        std::move(options));
  }
  Tensors arguments;
  for (std::string_view name : block.arguments) {
    Tensor t;
    if (!Variable(name, &t)) return false;
    arguments.push_back(std::move(t));
  }
  // Erases variables that the last run of the block assigned and that it does not read: the call recreates them.
  for (const std::string& name : block.results) {
    const bool read = std::find(block.arguments.begin(), block.arguments.end(), name) != block.arguments.end();
    if (!read) variables_[index_[name]].second = Tensor();
  }
  const size_t errors = sink_.error_count();
  absl::StatusOr<Tensors> results = (*block.function)(arguments);
  if (sink_.error_count() > errors) return false;
  if (!results.ok()) return Error(line, std::string(results.status().message()));
  for (size_t i = 0; i < results->size(); ++i) Assign(block.results[i], (*results)[i]);
  return CheckStatus(line);
}

std::string ScriptRunner::CaptureReport() const {
  std::string out;
  for (const auto& [line, block] : captures_) out += block.function->Report();
  return out;
}

bool ScriptRunner::RunLines(size_t begin, size_t end) {
  for (size_t i = begin; i < end;) {
    const std::string_view line = lines_[i];
    size_t next = i + 1;
    if (line.empty() || line.front() == '#') {
      i = next;
      continue;
    }
    if (++statements_ > options_.max_statements) return Error(line, "the program runs too many statements");
    std::string_view rest = line;
    const std::string_view word = TakeWord(&rest);
    const ScopedFrame frame("<program>", source_.name(), static_cast<int>(i + 1));
    if (word == "capture") {
      if (!Capture(line, rest, i, &next)) return false;
    } else if (OpensBlock(line)) {
      if (!Open(line, word, rest, i)) return false;
    } else if (word == "end") {
      if (!Close(line, &next)) return false;
    } else if (!Statement(line)) {
      return false;
    }
    i = next;
  }
  if (!blocks_.empty()) return Error(lines_[blocks_.back().line], "missing `end` of the block");
  return true;
}

bool ScriptRunner::Run(ProgramResult* result) {
  const std::string_view text = source_.text();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines_.push_back(Trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  const bool ok = RunLines(0, lines_.size());
  result->captures = CaptureReport();
  if (ok) result->variables = std::move(variables_);
  return ok;
}

bool RunScript(const SourceBuffer& source, Tracer& tracer, const ProgramOptions& options, TextWriter& out,
               ProgramResult* result, DiagnosticSink* sink) {
  ScriptRunner runner(source, tracer, options, out, sink);
  return runner.Run(result);
}

}  // namespace hlokit::lazy
