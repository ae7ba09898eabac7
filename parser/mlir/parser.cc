// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/parser.h"

#include <algorithm>
#include <cstring>

#include "parser/mlir/operation_parser.h"

namespace hlokit::mlir {

std::unique_ptr<Module> ParseMlir(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                  const MlirOptions& options, DiagnosticSink* sink) {
  if (source->text().size() >= SourceRange::kNoOffset) {
    sink->Error(DiagnosticKind::kTooLarge, {}, "the input is too large: texts of 4 GiB and more are not supported");
    return nullptr;
  }
  auto module = std::make_unique<Module>();
  const auto base = static_cast<uint32_t>(text.data() - source->text().data());
  module->source = std::move(source);
  if (!OperationParser(text, base, options, module.get(), sink).Run()) return nullptr;
  return module;
}

bool OperationParser::Run() {
  m_.top = RegionId(0);
  m_.regions.push_back({});
  regions_.push_back({m_.top, BlockId(), 0});
  for (;;) {
    const bool top = regions_.size() == 1;
    const char c = in_.Peek();
    Flow flow = Flow::kDone;
    bool good = true;
    if (in_.AtEnd()) {
      if (!top) in_.ErrorHere("expected '}' before the end of the text");
      break;
    }
    if (c == '}' && !top) {
      in_.TryConsume('}');
      CloseRegion();
      flow = Resume();
    } else if (top && (c == '#' || c == '!')) {
      good = ParseAlias();
    } else if (top && c == '{') {
      good = ParseResources();
    } else if (c == '^' && !top) {
      good = ParseBlockLabel();
    } else {
      flow = StartOperation();
    }
    if (!good) flow = Flow::kError;
    if (flow == Flow::kError) {
      if (in_.sink()->limit_reached()) break;
      Recover();
    }
  }
  // Aliases of locations may be defined after their uses.
  for (Operation& made : m_.operations) {
    if (made.location.valid()) made.location = nodes_.Resolved(made.location);
  }
  for (Value& value : m_.values) {
    if (value.location.valid()) value.location = nodes_.Resolved(value.location);
  }
  return !in_.sink()->has_errors();
}

// ---- the file ----

bool OperationParser::ParseAlias() {
  const bool type = in_.Peek() == '!';
  in_.TryConsume(type ? '!' : '#');
  const std::string name(in_.SuffixName());
  if (name.empty() || name.find('.') != std::string::npos) {
    return in_.ErrorHere("expected the name of an alias, without a dot");
  }
  if (!in_.Expect('=', "after the name of an alias")) return false;
  if (type) {
    const NodeId value = nodes_.ParseType();
    return value.valid() &&
           (nodes_.DefineTypeAlias(name, value) || in_.ErrorHere(StrCat("redefinition of type alias id '", name, "'")));
  }
  const NodeId value = nodes_.ParseAttribute();
  return value.valid() && (nodes_.DefineAttributeAlias(name, value) ||
                           in_.ErrorHere(StrCat("redefinition of attribute alias id '", name, "'")));
}

bool OperationParser::ParseResources() {
  if (!in_.TryConsume("{-#")) return in_.ErrorHere("expected an operation, found '{'");
  // name: { name: { key: "bytes", ... } }, ...
  std::vector<std::string> path;
  for (;;) {
    if (path.empty() ? in_.TryConsume("#-}") : in_.TryConsume('}')) {
      if (path.empty()) return true;
      path.pop_back();
      in_.TryConsume(',');
      continue;
    }
    std::string key;
    if (!in_.AttributeName(&key) || !in_.Expect(':', "after a key")) return false;
    if (in_.TryConsume('{')) {
      path.push_back(std::move(key));
      if (path.size() > 8) return in_.ErrorHere("the resource section is nested too deeply");
      continue;
    }
    if (in_.Peek() == '"') {
      std::string value;
      if (!in_.String(&value)) return false;
      if (path.size() == 2 && path[0] == "dialect_resources") {
        if (!value.starts_with("0x") || value.size() % 2 != 0) {
          return in_.ErrorHere("expected a string of hex digits that begins with `0x`");
        }
        std::string bytes;
        for (size_t i = 2; i + 1 < value.size(); i += 2) {
          const auto digit = [&](char d) { return d <= '9' ? d - '0' : (d | 0x20) - 'a' + 10; };
          bytes.push_back(static_cast<char>(digit(value[i]) * 16 + digit(value[i + 1])));
        }
        m_.resources.emplace(std::move(key), std::move(bytes));
      }
    } else {
      const std::string_view word = in_.Word();
      int64_t ignored = 0;
      if (word.empty() && !in_.Integer(&ignored)) return false;
    }
    in_.TryConsume(',');
  }
}

void OperationParser::Recover() {
  // The innermost module, or the file, goes on at its next function.
  size_t keep = regions_.size();
  while (keep > 1) {
    const OpenOperation& owner = ops_[std::min(keep - 2, ops_.size() - 1)];
    if (m_.nodes.str(owner.name) == "builtin.module") break;
    --keep;
  }
  Unwind(keep < regions_.size() ? regions_[keep].scope : shadowed_.size());
  regions_.resize(keep);
  const size_t open = keep - 1;
  if (ops_.size() > open) {
    const OpenOperation& first = ops_[open];
    results_.resize(first.results);
    operands_.resize(first.operands);
    attributes_.resize(first.attributes);
    region_list_.resize(first.regions);
    operand_types_.resize(first.operand_types);
    result_types_.resize(first.result_types);
    ops_.resize(open);
  } else if (ops_.empty()) {
    results_.clear();
  }
  arguments_.clear();
  has_arguments_ = false;
  for (const char* p = in_.at();;) {
    const auto* newline = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(in_.end() - p)));
    if (newline == nullptr) break;
    p = newline + 1;
    std::string_view line(p, static_cast<size_t>(in_.end() - p));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    for (std::string_view start : {"func.func", "\"func.func\"", "module", "builtin.module", "#", "!"}) {
      if (line.starts_with(start)) {
        in_.set_at(line.data());
        return;
      }
    }
  }
  in_.set_at(in_.end());
  regions_.resize(1);
  ops_.clear();
}

}  // namespace hlokit::mlir
