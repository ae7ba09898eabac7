// SPDX-License-Identifier: Apache-2.0
// Writes the methods of Tensor that rows of aten_ops.def ask for, at build time:
//   write_tensor_methods DECLARATIONS DEFINITIONS
// names the files: part of class Tensor (tracer/graph/tensor.h), and a source of the tracer.

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "tracer/graph/op.h"
#include "tracer/graph/schema.h"

namespace hlokit::lazy {
namespace {

struct Row {
  std::string_view id;
  std::string_view schema;
  uint8_t flags;
};

constexpr Row kRows[] = {
#define ATEN_OP(id, schema, ir, kernel, lower, derivative, flags, ...) {#id, schema, flags},
#include "tracer/graph/aten_ops.def"
};

constexpr size_t kWidth = 120;

std::string ParameterType(const ArgSpec& spec) {
  const auto optional = [&](std::string_view type) {
    return spec.optional ? StrCat("std::optional<", type, ">") : std::string(type);
  };
  switch (spec.type) {
    case ArgType::kTensor:
      return "const Tensor&";
    case ArgType::kTensorList:
      return "const Tensors&";
    case ArgType::kScalar:
      return optional("Scalar");
    case ArgType::kInt:
      return optional("int64_t");
    case ArgType::kFloat:
      return optional("double");
    case ArgType::kBool:
      return optional("bool");
    case ArgType::kIntList:
      return "DimList";
    case ArgType::kFloatList:
      return optional("std::vector<double>");
    case ArgType::kString:
      return optional("std::string_view");
    case ArgType::kDtype:
      return optional("ElementType");
  }
  return "";
}

std::string DefaultToString(const ArgSpec& spec) {
  const IValue& value = spec.default_value;
  if (value.none()) return spec.type == ArgType::kTensor ? "{}" : "std::nullopt";
  if (const IntList* list = value.get<IntList>()) {
    std::string text = "{";
    for (size_t i = 0; i < list->size(); ++i) text += StrCat(i == 0 ? "" : ", ", (*list)[i]);
    // Empty braces would mean None.
    return list->empty() ? "DimList(Dims())" : text + "}";
  }
  if (const Scalar* s = value.get<Scalar>()) {
    if (s->kind() == Scalar::Kind::kBool || spec.type == ArgType::kBool) return s->ToBool() ? "true" : "false";
    if (!s->is_float()) return StrCat(s->ToInt());
    return FormatDouble(s->ToDouble(), 17);
  }
  if (const std::string* text = value.get<std::string>()) return StrCat("\"", *text, "\"");
  return "{}";
}

// A method: the row it calls, and if it writes to `self`.
struct Method {
  size_t row;
  std::shared_ptr<const Schema> schema;
  size_t self;
  bool writes;  // declared by its row
  bool over;    // writes the result to self

  std::string name() const { return schema->name.substr(schema->name.find("::") + 2) + (over ? "_" : ""); }
  std::string type() const {
    if (writes) return "const Tensor&";
    if (schema->list_output) return "Tensors";
    if (schema->outputs == 1) return "Tensor";
    std::string text = "std::tuple<";
    for (int k = 0; k < schema->outputs; ++k) text += k == 0 ? "Tensor" : ", Tensor";
    return text + ">";
  }
  std::string parameters(bool defaults) const {
    // A default requires defaults for all following arguments.
    size_t first = schema->args.size();
    while (first > 0 && (first - 1 == self || schema->args[first - 1].has_default)) --first;
    std::string text;
    for (size_t i = 0; i < schema->args.size(); ++i) {
      if (i == self) continue;
      const ArgSpec& spec = schema->args[i];
      text += StrCat(text.empty() ? "" : ", ", ParameterType(spec), " ", spec.name);
      if (defaults && i >= first) text += StrCat(" = ", DefaultToString(spec));
    }
    return StrCat(text, text.empty() ? "" : ", ", "const std::source_location& location",
                  defaults ? " = std::source_location::current()" : "");
  }
  std::string call() const {
    std::string text = StrCat("({Op::", kRows[row].id, ", location}");
    for (size_t i = 0; i < schema->args.size(); ++i) {
      text += StrCat(", ", i == self ? "*this" : std::string_view(schema->args[i].name));
    }
    return text + ")";
  }
};

absl::StatusOr<std::vector<Method>> Methods() {
  std::vector<Method> methods;
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if ((kRows[i].flags & kMethod) == 0) continue;
    absl::StatusOr<Schema> parsed = ParseSchema(kRows[i].schema);
    if (!parsed.ok()) return parsed.status();
    const auto schema = std::make_shared<const Schema>(*std::move(parsed));
    const int self = schema->Find("self");
    if (self < 0) continue;
    methods.push_back({i, schema, static_cast<size_t>(self), schema->args[self].written, false});
    if ((kRows[i].flags & kInPlace) != 0) methods.push_back({i, schema, static_cast<size_t>(self), true, true});
  }
  return methods;
}

// Returns `head(parameters)tail`, broken after commas to fit the line length.
std::string Broken(std::string_view indent, std::string_view head, std::string_view parameters, std::string_view tail) {
  const std::string line = StrCat(indent, head, "(", parameters, ")", tail, "\n");
  if (line.size() <= kWidth + 1) return line;
  const std::string next(indent.size() + head.size() + 1, ' ');
  std::string text = StrCat(indent, head, "(");
  size_t column = text.size();
  while (!parameters.empty()) {
    size_t end = parameters.find(", ");
    while (end != std::string_view::npos && parameters.substr(0, end).find('<') != std::string_view::npos &&
           parameters.substr(0, end).find('>') == std::string_view::npos) {
      end = parameters.find(", ", end + 1);
    }
    const bool last = end == std::string_view::npos;
    const std::string_view piece = parameters.substr(0, last ? end : end + 1);
    if (column != next.size() && column + piece.size() + (last ? tail.size() + 2 : 1) > kWidth) {
      text += StrCat("\n", next);
      column = next.size();
    } else if (column != next.size()) {
      text += " ";
      ++column;
    }
    text += piece;
    column += piece.size();
    parameters.remove_prefix(last ? parameters.size() : end + 2);
  }
  return StrCat(text, ")", tail, "\n");
}

std::string Declarations(const std::vector<Method>& methods) {
  std::string text =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// Written from the rows of aten_ops.def. Part of class Tensor.\n"
      "// clang-format off\n";
  for (const Method& m : methods) {
    text += Broken("  ", StrCat(m.type(), " ", m.name()), m.parameters(true), " const;");
  }
  return text + "// clang-format on\n";
}

std::string Definitions(const std::vector<Method>& methods) {
  std::string text =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// Written from the rows of aten_ops.def.\n"
      "#include \"tracer/dispatch/dispatch.h\"\n"
      "#include \"tracer/graph/tensor.h\"\n"
      "\n"
      "// clang-format off\n"
      "namespace hlokit::lazy {\n"
      "\n";
  for (const Method& m : methods) {
    text += Broken("", StrCat(m.type(), " Tensor::", m.name()), m.parameters(false), " const {");
    if (m.over) {
      text += StrCat("  WriteInPlace({*this, location}, InvokeOp", m.call(), ");\n  return *this;\n");
    } else if (m.writes) {
      text += StrCat("  InvokeOp", m.call(), ";\n  return *this;\n");
    } else if (m.schema->list_output) {
      text += StrCat("  return ListOf(InvokeOpMultiOutput", m.call(), ");\n");
    } else if (m.schema->outputs > 1) {
      text += StrCat("  return TupleOf<", m.schema->outputs, ">(InvokeOpMultiOutput", m.call(), ");\n");
    } else {
      text += StrCat("  return InvokeOp", m.call(), ";\n");
    }
    text += "}\n";
  }
  return text + "\n}  // namespace hlokit::lazy\n";
}

// Leaves a file alone that has this text, so that nothing compiles again.
bool WriteFile(const char* path, const std::string& text) {
  std::ifstream existing(path, std::ios::binary);
  if (existing && std::string(std::istreambuf_iterator<char>(existing), {}) == text) return true;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "write_tensor_methods: cannot write %s\n", path);
  return !file.fail();
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: write_tensor_methods DECLARATIONS DEFINITIONS\n", stderr);
    return 2;
  }
  const absl::StatusOr<std::vector<Method>> methods = Methods();
  if (!methods.ok()) {
    std::fprintf(stderr, "write_tensor_methods: aten_ops.def: %s\n", methods.status().ToString().c_str());
    return 1;
  }
  return WriteFile(argv[1], Declarations(*methods)) && WriteFile(argv[2], Definitions(*methods)) ? 0 : 1;
}

}  // namespace
}  // namespace hlokit::lazy

int main(int argc, char** argv) { return hlokit::lazy::Main(argc, argv); }
