// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/op.h"

#include <algorithm>
#include <array>

#include "absl/container/flat_hash_map.h"
#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "tracer/autograd/backward_context.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/schema.h"
#include "tracer/lowering/lowering_context.h"

namespace hlokit::lazy {
namespace {

// Table entries for absent functions.
constexpr Lower kNoLowering = &lower::None;
constexpr Derivative kNoDerivative = &derivative::None;

constexpr OpInfo MakeInfo(std::string_view schema, std::string_view ir, Kernel k, Lower l, Derivative d, int flags,
                          std::string_view constraints = {}) {
  return {
      schema,     ir, k, l == kNoLowering ? nullptr : l, d == kNoDerivative ? nullptr : d, static_cast<uint8_t>(flags),
      constraints};
}

const OpInfo kOps[] = {
#define ATEN_OP(id, schema, ir, kernel_name, lower_name, derivative_name, ...) \
  MakeInfo(schema, ir, &kernel::kernel_name, &lower::lower_name, &derivative::derivative_name, __VA_ARGS__),
#include "tracer/graph/aten_ops.def"
};

bool IsOperand(const OpInfo& info, ArgType type) {
  return type == ArgType::kTensor || (type == ArgType::kScalar && (info.flags & kScalarAttrs) == 0);
}

struct Tables {
  std::array<Schema, kOpCount> schemas;
  std::array<Op, kOpCount> node_ops;
  std::array<std::string, kOpCount> symbols;
  std::array<std::vector<std::string>, kOpCount> attr_names;
  absl::flat_hash_map<std::string, Op> by_full_name;
  absl::flat_hash_map<std::string, std::vector<Op>> by_name;

  Tables() {
    for (size_t i = 0; i < kOpCount; ++i) {
      const OpInfo& info = kOps[i];
      absl::StatusOr<Schema> schema = ParseSchema(info.schema_text);
      if (schema.ok() && ParseConstraints(info.constraints, &*schema).ok()) schemas[i] = *std::move(schema);
      const Schema& s = schemas[i];
      if ((info.flags & kInternal) == 0) {
        by_full_name.emplace(s.full_name(), static_cast<Op>(i));
        by_name[s.name].push_back(static_cast<Op>(i));
      }
      // The symbol, then attribute names; those of the schema if none is given.
      std::vector<std::string> words;
      for (size_t begin = 0; begin < info.ir.size();) {
        const size_t end = std::min(info.ir.find(' ', begin), info.ir.size());
        words.emplace_back(info.ir.substr(begin, end - begin));
        begin = end + 1;
      }
      symbols[i] = words.empty() ? s.name : words[0];
      size_t next = 1;
      for (const ArgSpec& arg : s.args) {
        const bool attribute = arg.type != ArgType::kTensorList && !IsOperand(info, arg.type);
        std::string name = arg.name;
        if (attribute && words.size() > 1) name = next < words.size() ? words[next++] : "-";
        attr_names[i].push_back(name);
      }
    }
    for (size_t i = 0; i < kOpCount; ++i) {
      size_t first = 0;
      while (!RecordSameNodes(first, i)) ++first;
      node_ops[i] = static_cast<Op>(first);
    }
  }

  bool RecordSameNodes(size_t a, size_t b) const {
    const std::vector<ArgSpec>&x = schemas[a].args, &y = schemas[b].args;
    if (a == b) return true;
    if (symbols[a] != symbols[b] || kOps[a].lower != kOps[b].lower || x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      const bool operand = IsOperand(kOps[a], x[i].type);
      if (operand != IsOperand(kOps[b], y[i].type) || x[i].constraint != y[i].constraint) return false;
      if (operand) continue;
      if (x[i].type != y[i].type || x[i].list_size != y[i].list_size || attr_names[a][i] != attr_names[b][i]) {
        return false;
      }
    }
    return true;
  }
};

const Tables& TheTables() {
  static const Tables* const tables = new Tables();
  return *tables;
}

}  // namespace

const OpInfo& InfoOf(Op op) { return kOps[static_cast<size_t>(op)]; }
const Schema& SchemaOf(Op op) { return TheTables().schemas[static_cast<size_t>(op)]; }
std::string_view SymbolOf(Op op) { return TheTables().symbols[static_cast<size_t>(op)]; }
Op NodeOpOf(Op op) { return TheTables().node_ops[static_cast<size_t>(op)]; }
Scalar AttributeNumber(Op op, ArgType type, Scalar number) {
  const bool exact = type == ArgType::kScalar && (InfoOf(op).flags & kInternal) != 0;
  if (type == ArgType::kInt || (exact && !number.is_float())) return number.ToInt();
  if (type == ArgType::kBool) return number.ToBool();
  return exact ? number : number.AsFloatIfExact();
}
const std::vector<std::string>& AttrNames(Op op) { return TheTables().attr_names[static_cast<size_t>(op)]; }

std::optional<Op> FindOp(std::string_view name) {
  const Tables& tables = TheTables();
  if (const auto it = tables.by_full_name.find(std::string(name)); it != tables.by_full_name.end()) return it->second;
  if (const auto it = tables.by_name.find(std::string(name)); it != tables.by_name.end()) return it->second.front();
  return std::nullopt;
}

std::vector<Op> Overloads(std::string_view name) {
  const auto it = TheTables().by_name.find(std::string(name));
  return it == TheTables().by_name.end() ? std::vector<Op>() : it->second;
}

std::string DidYouMeanOp(std::string_view name) {
  std::string full(name);
  if (name.find("::") == std::string_view::npos) {
    full = StrCat("aten::", name);
    if (FindOp(full)) return StrCat("; did you mean `", full, "`?");
  }
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kOpCount; ++i) {
    if ((kOps[i].flags & kInternal) == 0) names.push_back(SchemaOf(static_cast<Op>(i)).name);
  }
  return DidYouMeanSuffix(full, names);
}

}  // namespace hlokit::lazy
