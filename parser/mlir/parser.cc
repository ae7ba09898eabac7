// SPDX-License-Identifier: Apache-2.0
// Idea: one pass over the text. Operations and regions that are open are on stacks: after each token the innermost one
// says how it goes on. The custom form of an operation is a row of operations.def, whose directives are run in order.
// Invariant: what is closed is in the Module, whole: operands have values, which may be defined later, and a name that
// never is defined is an error at its first use. After an error the text goes on at the next operation.
// Cost: linear in the text. Types and attributes are interned nodes, each resolved once; tails of lines that repeat are
// read once.
#include "parser/mlir/parser.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "parser/mlir/operation_parser.h"

namespace hlokit::mlir {

std::string NestingMessage(int64_t max_nesting, bool has_flag) {
  return StrCat("nested deeper than the limit of ", max_nesting,
                has_flag && max_nesting < kMaxNesting ? " (--max-nesting)" : "");
}

std::string LimitMessage(size_t depth, const MlirOptions& options) {
  if (static_cast<int64_t>(depth) >= options.max_nesting) {
    return StrCat("operations are ", NestingMessage(options.max_nesting, /*has_flag=*/true));
  }
  return StrCat("the program has more operations than the limit of ", options.max_operations, " (--max-instructions)");
}

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
      if (!top && !in_.sink()->has_errors()) in_.ErrorHere("expected '}' before the end of the text");
      break;
    }
    const char* const start = in_.at();
    if (c == '}' && !top) {
      in_.TryConsume('}');
      CloseRegion();
      flow = Resume();
    } else if (c == '}' && in_.sink()->has_errors()) {
      in_.TryConsume('}');  // of a module whose beginning has an error
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
    if (in_.sink()->limit_reached()) break;
    if (flow == Flow::kError) Recover(start);
  }
  if (!in_.sink()->has_errors() && nodes_.has_undefined_aliases()) ResolveLocations();
  return !in_.sink()->has_errors();
}

// ---- the file ----

void OperationParser::ResolveLocations() {
  NodeTable& nodes = m_.nodes;
  absl::flat_hash_map<uint32_t, NodeId> resolved;
  absl::flat_hash_set<uint32_t> open;
  // Replaces the aliases in `root`; errors are reported at `range`, each alias once.
  const auto resolve = [&](NodeId root, SourceRange range) {
    if (!root.valid()) return root;
    std::vector<std::pair<NodeId, bool>> pending = {{root, false}};
    while (!pending.empty()) {
      const auto [at, leaving] = pending.back();
      pending.pop_back();
      if (resolved.contains(at.value)) continue;
      const bool alias = nodes.kind(at) == NodeKind::kAlias;
      std::vector<NodeId> parts = nodes.children(at);
      if (alias) {
        const NodeId value = nodes_.FindAttributeAlias(nodes.text(at));
        const bool location = value.valid() && (nodes.IsLocation(value) || nodes.kind(value) == NodeKind::kAlias);
        const bool cycle = !leaving && open.contains(at.value);
        if (!location || cycle) {
          in_.Error(DiagnosticKind::kUnexpectedToken, range,
                    StrCat("location alias '#", nodes.text(at), "' ",
                           cycle            ? "is defined by itself"
                           : !value.valid() ? "is never defined"
                                            : "is no location"));
          resolved[at.value] = nodes.Make(NodeKind::kUnknownLocation);
          continue;
        }
        parts = {value};
      }
      if (!leaving) {
        if (alias) open.insert(at.value);
        pending.push_back({at, true});
        for (NodeId part : parts) pending.push_back({part, false});
        continue;
      }
      bool changed = false;
      for (NodeId& part : parts) {
        const NodeId known = resolved.at(part.value);
        changed = changed || known != part;
        part = known;
      }
      const Node node = nodes[at];
      if (changed && std::any_of(parts.begin(), parts.end(), [&](NodeId n) { return !nodes.IsPrintable(n); })) {
        in_.Error(DiagnosticKind::kTooLarge, range, "a location of too many parts");
        changed = false;
      }
      resolved[at.value] = alias     ? parts[0]
                           : changed ? nodes.Make(node.kind, nodes.text(at), nodes.ints(at), parts)
                                     : at;
    }
    return resolved.at(root.value);
  };
  for (Operation& op : m_.operations) {
    if (in_.sink()->limit_reached()) return;
    const SourceRange range = m_.range(op);
    op.location = resolve(op.location, range);
    for (uint32_t i = 0; i < op.attribute_count; ++i) {
      NodeId& value = m_.attributes[op.attribute_begin + i].value;
      value = resolve(value, range);
    }
  }
  for (Value& value : m_.values) {
    if (!value.location.valid()) continue;
    const OperationId parent = m_.regions[m_.blocks[value.block.value].region.value].parent;
    value.location = resolve(value.location, parent.valid() ? m_.range(m_.op(parent)) : SourceRange{});
  }
}

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

}  // namespace hlokit::mlir
