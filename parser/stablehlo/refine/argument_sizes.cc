// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/refine/argument_sizes.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "ir/core/str_cat.h"
#include "parser/mlir/bounds.h"
#include "parser/stablehlo/refine/infer_types.h"
#include "parser/stablehlo/refine/size_expression.h"

namespace hlokit::stablehlo {
namespace {

using mlir::kDynamicSize;
using mlir::NodeId;
using mlir::NodeKind;
using mlir::NodeTable;
using mlir::OperationId;
using mlir::OpKind;

absl::Status Wrong(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

// Without the empty parts.
std::vector<std::string> SplitNames(std::string_view text) {
  std::vector<std::string> parts;
  for (const std::string_view part : SplitList(text)) {
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

std::optional<int64_t> SizeOf(std::string_view text) {
  int64_t size = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), size);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || size < 0) return std::nullopt;
  return size;
}

// "8x4", "[8,4]", "f32[8,4]".
std::optional<std::vector<int64_t>> ShapeOf(std::string_view text) {
  char separator = 'x';
  if (const size_t open = text.find('['); open != std::string_view::npos) {
    if (!text.ends_with(']')) return std::nullopt;
    text = text.substr(open + 1, text.size() - open - 2);
    separator = ',';
  }
  std::vector<int64_t> sizes;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    const std::optional<int64_t> size = SizeOf(text.substr(begin, end - begin));
    if (!size) return std::nullopt;
    sizes.push_back(*size);
    begin = end + 1;
  }
  return sizes;
}

// A specification in the message of an assertion, "args[0].shape = (b, 4)".
struct Specification {
  std::string path;
  std::vector<std::string> sizes;
};

std::vector<Specification> SpecificationsOf(std::string_view message) {
  constexpr std::string_view kBegin = "polymorphic shapes specifications: ", kShape = ".shape = (";
  std::vector<Specification> found;
  const size_t begin = message.find(kBegin);
  if (begin == std::string_view::npos) return found;
  message.remove_prefix(begin + kBegin.size());
  while (true) {
    const size_t shape = message.find(kShape);
    if (shape == std::string_view::npos) return found;
    std::string_view path = message.substr(0, shape);
    while (path.starts_with(' ') || path.starts_with(',')) path.remove_prefix(1);
    size_t end = shape + kShape.size();
    for (int depth = 1; end < message.size(); ++end) {
      if (message[end] == '(') ++depth;
      if (message[end] == ')' && --depth == 0) break;
    }
    const std::string_view list = message.substr(shape + kShape.size(), end - shape - kShape.size());
    found.push_back({std::string(path), SplitNames(list)});
    message.remove_prefix(std::min(end + 1, message.size()));
    if (!message.starts_with(',')) return found;
  }
}

// Those of the first assertion that has any.
std::vector<Specification> SpecificationsOf(const mlir::Module& program) {
  const NodeTable& n = program.nodes;
  for (const mlir::Operation& op : program.operations) {
    if (op.kind() != OpKind::kStablehloCustomCall) continue;
    const NodeId target = program.attribute(op, "call_target_name"), message = program.attribute(op, "error_message");
    if (!target.valid() || n.text(target) != "shape_assertion" || !message.valid()) continue;
    if (n.kind(message) != NodeKind::kString) continue;
    std::vector<Specification> found = SpecificationsOf(n.text(message));
    if (!found.empty()) return found;
  }
  return {};
}

bool IsOpenAt(const NodeTable& n, NodeId type, size_t dimension) {
  const std::vector<int64_t> bounds = mlir::BoundsOf(n, type);
  return n.ints(type)[dimension] == kDynamicSize && (bounds.empty() || bounds[dimension] == kDynamicSize);
}

// Returns true if a specification can be that of a type.
bool Fits(const NodeTable& n, NodeId type, const Specification& specification) {
  if (n.kind(type) != NodeKind::kTensorType || n.ints(type).size() != specification.sizes.size()) return false;
  for (size_t d = 0; d < specification.sizes.size(); ++d) {
    const std::optional<int64_t> size = SizeOf(specification.sizes[d]);
    if (size.has_value() == IsOpenAt(n, type, d) || (size && *size != n.ints(type)[d])) return false;
  }
  return true;
}

// A dimension whose size is given by the shape of its argument.
struct GivenSize {
  const SizedArgument* argument;
  std::string_view expression;
  int64_t size = 0;
  bool solved = false;
};

// What is given for one argument: a shape.
absl::Status SetShape(const SizedArgument& argument, const std::vector<int64_t>& shape, std::string_view text,
                      NodeTable* nodes, NodeId* type, std::vector<GivenSize>* given) {
  const auto differs = [&] {
    return Wrong(StrCat("the argument ", argument.names[0], " is of the type ", mlir::ToText(*nodes, argument.type),
                        ", not of the shape ", text));
  };
  if (nodes->kind(argument.type) != NodeKind::kTensorType || nodes->ints(argument.type).size() != shape.size()) {
    return differs();
  }
  const std::vector<int64_t> bounds = mlir::BoundsOf(*nodes, argument.type);
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t declared = nodes->ints(argument.type)[d], earlier = nodes->ints(*type)[d];
    if (declared != kDynamicSize && declared != shape[d]) return differs();
    if (!bounds.empty() && bounds[d] != kDynamicSize && shape[d] > bounds[d]) return differs();
    if (earlier != kDynamicSize && earlier != shape[d]) {
      return Wrong(StrCat("dimension ", d, " of ", argument.names[0], " is both ", earlier, " and ", shape[d]));
    }
    if (!argument.sizes[d].empty()) given->push_back({&argument, argument.sizes[d], shape[d]});
  }
  *type = WithSizes(nodes, *type, shape);
  return absl::OkStatus();
}

// "b = 3, c = 4", those of an expression.
std::string ValuesText(std::string_view expression, const SizeVariables& variables) {
  std::string text;
  for (const std::string& name : VariablesOf(expression)) {
    const auto found = variables.find(name);
    if (found != variables.end()) StrAppend(&text, text.empty() ? "" : ", ", name, " = ", found->second);
  }
  return text;
}

// Returns an error if a size that a shape gives is not that of its expression, of variables that all have values.
absl::Status CheckSize(const GivenSize& given, const SizeVariables& variables) {
  const std::optional<int64_t> size = EvaluateSize(given.expression, variables);
  const std::string& argument = given.argument->names[0];
  if (!size) return Wrong(StrCat("the size ", given.expression, " of ", argument, " cannot be computed"));
  if (*size == given.size) return absl::OkStatus();
  // A variable alone has no other value than the size.
  const std::string values = variables.contains(given.expression) ? "" : ValuesText(given.expression, variables);
  return Wrong(StrCat("the size ", given.expression, " of ", argument, " is ", *size,
                      values.empty() ? "" : StrCat(" with ", values), ", but the shape of ", argument, " has ",
                      given.size));
}

// Finds the variables that follow from the sizes of shapes, and checks that these agree.
absl::Status SolveSizes(std::vector<GivenSize>* given, SizeVariables* variables) {
  // Variables alone, which are most.
  for (GivenSize& size : *given) {
    const std::vector<std::string> names = VariablesOf(size.expression);
    if (names.size() == 1 && names[0] == size.expression) variables->emplace(names[0], size.size);
  }
  int64_t budget = int64_t{1} << 26;  // characters that are evaluated
  for (bool changed = true; changed;) {
    changed = false;
    for (GivenSize& size : *given) {
      if (size.solved) continue;
      std::vector<std::string> open = VariablesOf(size.expression);
      open.erase(std::remove_if(open.begin(), open.end(), [&](const std::string& v) { return variables->contains(v); }),
                 open.end());
      if (open.empty()) {
        size.solved = true;
        if (absl::Status s = CheckSize(size, *variables); !s.ok()) return s;
      }
      budget -= static_cast<int64_t>(size.expression.size());
      if (open.size() != 1 || budget <= 0) continue;
      const SizeSolution solution = SolveSize(size.expression, open[0], size.size, *variables, &budget);
      if (solution.kind == SizeSolution::Kind::kNone) {
        return Wrong(StrCat("no size ", open[0], " makes the size ", size.expression, " of ", size.argument->names[0],
                            " ", size.size));
      }
      if (solution.kind == SizeSolution::Kind::kSeveral) continue;
      size.solved = changed = true;
      variables->emplace(open[0], solution.value);
    }
  }
  const auto left = std::find_if(given->begin(), given->end(), [](const GivenSize& g) { return !g.solved; });
  if (left == given->end()) return absl::OkStatus();
  std::string names;
  for (const std::string& name : VariablesOf(left->expression)) {
    if (!variables->contains(name)) StrAppend(&names, names.empty() ? "" : ", ", name);
  }
  return Wrong(StrCat("the size ", left->expression, " of ", left->argument->names[0], ", ", left->size,
                      ", does not say what ", names, " is; give it too"));
}

std::string NamesText(const std::vector<SizedArgument>& arguments) {
  std::vector<std::string> names;
  for (const SizedArgument& argument : arguments) {
    for (const std::string& size : argument.sizes) {
      for (std::string& name : VariablesOf(size)) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
      }
    }
  }
  std::string text;
  for (const std::string& name : names) StrAppend(&text, text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

std::vector<std::string_view> SplitList(std::string_view text) {
  constexpr std::string_view kOpen = "([{<", kClose = ")]}>";
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && kOpen.find(text[i]) != std::string_view::npos) ++depth;
    if (i < text.size() && kClose.find(text[i]) != std::string_view::npos && depth > 0) --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    std::string_view part = text.substr(begin, i - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

bool IsOpen(const NodeTable& n, NodeId type) {
  if (n.kind(type) != NodeKind::kTensorType) return false;
  for (size_t d = 0; d < n.ints(type).size(); ++d) {
    if (IsOpenAt(n, type, d)) return true;
  }
  return false;
}

OperationId FindEntry(const mlir::Module& program, std::string_view entry) {
  if (entry.starts_with('@')) entry.remove_prefix(1);
  if (entry.empty()) entry = "main";
  for (uint32_t i = 0; i < program.operations.size(); ++i) {
    const mlir::Operation& op = program.operations[i];
    if (op.kind() != OpKind::kFuncFunc || op.region_count == 0) continue;
    const NodeId name = program.attribute(op, "sym_name");
    const bool body = program.block(program.regions_of(op)[0]).valid();
    if (body && name.valid() && program.nodes.text(name) == entry) return OperationId(i);
  }
  return {};
}

std::vector<SizedArgument> ArgumentsOf(const mlir::Module& program, OperationId function) {
  const NodeTable& n = program.nodes;
  const mlir::BlockId block = program.block(program.regions_of(program.op(function))[0]);
  std::vector<SizedArgument> arguments;
  std::vector<Specification> specifications;
  const mlir::Block& entry = program.blocks[block.value];
  for (uint32_t i = 0; i < entry.argument_count; ++i) {
    const mlir::Value& value = program.values[program.argument(entry, i).value];
    SizedArgument argument{value.type, {StrCat("arg", i)}, {}};
    if (value.location.valid() && n.kind(value.location) == NodeKind::kNameLocation) {
      argument.names.emplace_back(n.text(value.location));
    }
    const size_t rank = n.kind(value.type) == NodeKind::kTensorType ? n.ints(value.type).size() : 0;
    for (size_t d = 0; d < rank; ++d) {
      argument.sizes.push_back(IsOpenAt(n, value.type, d) ? StrCat("arg", i, "_", d) : "");
    }
    if (IsOpen(n, value.type) && specifications.empty()) specifications = SpecificationsOf(program);
    arguments.push_back(std::move(argument));
  }
  // Arguments with open sizes have specifications, in their order.
  size_t next = 0;
  for (SizedArgument& argument : arguments) {
    if (!IsOpen(n, argument.type) || next == specifications.size() || !Fits(n, argument.type, specifications[next])) {
      continue;
    }
    argument.names.push_back(specifications[next].path);
    for (size_t d = 0; d < argument.sizes.size(); ++d) {
      if (!argument.sizes[d].empty()) argument.sizes[d] = specifications[next].sizes[d];
    }
    ++next;
  }
  return arguments;
}

absl::StatusOr<std::vector<NodeId>> TypesWithSizes(const std::vector<SizedArgument>& arguments,
                                                   const std::vector<std::string>& given, NodeTable* nodes) {
  std::vector<NodeId> types;
  for (const SizedArgument& argument : arguments) types.push_back(argument.type);
  const std::vector<std::string> known = [&] {
    std::vector<std::string> names;
    for (const SizedArgument& argument : arguments) {
      for (const std::string& size : argument.sizes) {
        for (std::string& name : VariablesOf(size)) names.push_back(std::move(name));
      }
    }
    return names;
  }();
  SizeVariables variables;
  std::vector<GivenSize> sizes_of_shapes;
  for (const std::string& list : given) {
    for (const std::string& item : SplitNames(list)) {
      const size_t equals = item.rfind('=');
      const std::string name = item.substr(0, equals);
      if (equals == std::string::npos || name.empty()) {
        return Wrong(StrCat("expected NAME=SIZE, found `", item, "`"));
      }
      const std::string text = item.substr(equals + 1);
      if (std::find(known.begin(), known.end(), name) != known.end()) {
        const std::optional<int64_t> size = SizeOf(text);
        if (!size) return Wrong(StrCat("expected the size of ", name, ", found `", text, "`"));
        const auto [found, added] = variables.emplace(name, *size);
        if (!added && found->second != *size) {
          return Wrong(StrCat(name, " is both ", found->second, " and ", *size));
        }
        continue;
      }
      const auto argument = std::find_if(arguments.begin(), arguments.end(), [&](const SizedArgument& a) {
        return std::find(a.names.begin(), a.names.end(), name) != a.names.end();
      });
      if (argument == arguments.end()) {
        const std::string names = NamesText(arguments);
        return Wrong(StrCat("there is no size or argument `", name, "`; ",
                            names.empty() ? "the program leaves no size open" : StrCat("the sizes are ", names)));
      }
      const std::optional<std::vector<int64_t>> shape = ShapeOf(text);
      if (!shape) return Wrong(StrCat("expected a shape like 8x4 for ", name, ", found `", text, "`"));
      NodeId* const type = &types[static_cast<size_t>(argument - arguments.begin())];
      if (absl::Status s = SetShape(*argument, *shape, text, nodes, type, &sizes_of_shapes); !s.ok()) {
        return s;
      }
    }
  }
  if (absl::Status s = SolveSizes(&sizes_of_shapes, &variables); !s.ok()) return s;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::vector<int64_t> sizes;
    for (const std::string& size : arguments[i].sizes) {
      sizes.push_back(size.empty() ? kDynamicSize : EvaluateSize(size, variables).value_or(kDynamicSize));
      if (sizes.back() < 0 && sizes.back() != kDynamicSize) {
        return Wrong(StrCat("the size ", size, " of ", arguments[i].names[0], " is negative: ", sizes.back()));
      }
    }
    types[i] = WithSizes(nodes, types[i], sizes);
  }
  return types;
}

}  // namespace hlokit::stablehlo
