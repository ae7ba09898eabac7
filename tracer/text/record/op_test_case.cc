// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/record/op_test_case.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/text/literal_text.h"
#include "ir/types/shape.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/string_split.h"
#include "tracer/text/literal_line.h"

namespace hlokit::lazy {
namespace {

bool ParseIndices(std::string_view text, std::vector<size_t>* out) {
  while (!text.empty()) {
    size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value > 1000) return false;
    out->push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.empty() && text.front() != ',') return false;
    if (!text.empty()) text.remove_prefix(1);
  }
  return true;
}

}  // namespace

bool ReadOpTestCase(const SourceBuffer& source, Context* context, OpTestCase* c, DiagnosticSink* sink) {
  const std::string_view text = source.text();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = Trim(text.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty() || line.front() == '#') continue;
    const SourceRange range = {static_cast<uint32_t>(line.data() - text.data()), static_cast<uint32_t>(line.size())};
    const size_t colon = line.find(": ");
    const auto error = [&](std::string message) {
      sink->Error(DiagnosticKind::kUnexpectedToken, range, std::move(message));
      return false;
    };
    // A bare literal is an argument.
    std::string_view key = "arg", value = line;
    if (colon != std::string_view::npos && line.substr(0, colon).find_first_of("[ {") == std::string_view::npos) {
      key = line.substr(0, colon);
      value = Trim(line.substr(colon + 2));
    }
    const auto literal = [&] { return ReadLiteralLine(source, value, context, kMaxLiteralLineBytes, sink); };
    if (key == "op") {
      c->op = std::string(value);
    } else if (key == "family") {
      c->family = std::string(value);
    } else if (key == "error") {
      c->error = std::string(value);
    } else if (key == "attr") {
      const size_t eq = value.find('=');
      if (eq == std::string_view::npos) return error("expected NAME=VALUE");
      c->attrs.emplace_back(std::string(value.substr(0, eq)), std::string(value.substr(eq + 1)));
    } else if (key == "arg" || key == "out") {
      std::vector<std::optional<Literal>>& to = key == "arg" ? c->args : c->outs;
      if (value == "none") {
        to.emplace_back();
        continue;
      }
      std::optional<Literal> read = literal();
      if (!read) return false;
      to.push_back(std::move(read));
    } else if (key == "arglist") {
      std::vector<size_t> count;
      if (!ParseIndices(value, &count) || count.size() != 1) return error("expected a number");
      c->lists.emplace_back(c->args.size(), count[0]);
    } else if (key == "requires_grad") {
      if (!ParseIndices(value, &c->requires_grad)) return error("expected numbers");
    } else if (key == "diff_out") {
      if (!ParseIndices(value, &c->diff_out)) return error("expected numbers");
    } else if (key == "mutated") {
      const size_t blank = value.find(' ');
      std::vector<size_t> index;
      if (blank == std::string_view::npos || !ParseIndices(value.substr(0, blank), &index)) {
        return error("expected the number of an argument and its value");
      }
      value = Trim(value.substr(blank));
      std::optional<Literal> read = literal();
      if (!read) return false;
      c->mutated.emplace_back(index[0], *std::move(read));
    } else if (key == "grad_out" || key == "grad") {
      std::optional<Literal> read = literal();
      if (!read) return false;
      (key == "grad" ? c->grads : c->grad_outs).push_back(*std::move(read));
    } else if (key == "tolerance") {
      if (std::sscanf(std::string(value).c_str(), "rel=%lf abs=%lf", &c->rel, &c->abs) != 2) {
        return error("expected rel=NUMBER abs=NUMBER");
      }
    } else if (key != "schema" && key != "note") {
      return error(StrCat("unknown key `", key, "`"));
    }
  }
  return true;
}

absl::StatusOr<OpCall> CallOp(Tracer& tracer, const OpTestCase& c, bool gradients) {
  const std::optional<Op> op = FindOp(c.op);
  if (!op) {
    return absl::NotFoundError(StrCat("unknown op `", c.op, "`", DidYouMeanOp(c.op)));
  }
  const Schema& schema = SchemaOf(*op);
  OpCall call;
  call.op = *op;
  for (size_t i = 0; i < c.args.size(); ++i) {
    call.args.push_back(c.args[i] ? tracer.FromLiteral(*c.args[i]) : Tensor());
  }
  if (gradients) {
    for (size_t i : c.requires_grad) {
      if (i >= call.args.size() || !call.args[i].defined()) {
        return absl::InvalidArgumentError(StrCat("requires_grad: argument ", i, " is not a tensor"));
      }
      call.args[i].set_requires_grad(true);
    }
  }
  // In-place ops may not write to leaves: use a copy.
  const Tensors leaves = call.args;
  Tensors used = leaves;
  Args args;
  size_t next = 0, list = 0;
  for (const ArgSpec& spec : schema.args) {
    if (spec.type == ArgType::kTensor) {
      if (next >= used.size()) {
        if (!spec.optional) return absl::InvalidArgumentError(StrCat("missing argument `", spec.name, "`"));
        args.emplace_back();
        continue;
      }
      if (spec.written && gradients && used[next].requires_grad()) used[next] = InvokeOp(Op::clone, used[next]);
      args.emplace_back(used[next++]);
      continue;
    }
    if (spec.type == ArgType::kTensorList) {
      // Without an `arglist` line: all remaining arguments.
      size_t count = used.size() - next;
      if (list < c.lists.size()) count = std::min(count, c.lists[list++].second);
      args.emplace_back(Tensors(used.begin() + static_cast<std::ptrdiff_t>(next),
                                used.begin() + static_cast<std::ptrdiff_t>(next + count)));
      next += count;
      continue;
    }
    const auto given =
        std::find_if(c.attrs.begin(), c.attrs.end(), [&](const auto& a) { return a.first == spec.name; });
    if (given == c.attrs.end()) {
      if (!spec.has_default && !spec.optional) {
        return absl::InvalidArgumentError(
            StrCat("missing argument `", spec.name, "`: specify --attr ", spec.name, "=VALUE"));
      }
      args.push_back(spec.default_value);
      continue;
    }
    absl::StatusOr<IValue> value = ParseArgument(spec, given->second);
    if (!value.ok()) return value.status();
    args.push_back(*std::move(value));
  }
  for (const auto& [name, value] : c.attrs) {
    if (schema.Find(name) < 0)
      return absl::InvalidArgumentError(StrCat("unknown argument `", name, "` of ", schema.full_name()));
  }
  if (next < used.size()) return absl::InvalidArgumentError(StrCat("too many tensors for ", schema.full_name()));
  Outputs outputs = Dispatch(*op, std::move(args));
  if (absl::Status s = tracer.status(); !s.ok()) return s;
  call.outputs.assign(outputs.begin(), outputs.end());
  call.args = used;
  if (!gradients || c.requires_grad.empty()) return call;

  std::vector<size_t> roots = c.diff_out;
  if (roots.empty()) roots.push_back(0);
  Tensors root_tensors, cotangents;
  for (size_t i = 0; i < roots.size(); ++i) {
    if (roots[i] >= call.outputs.size()) return absl::InvalidArgumentError("diff_out names a result that is not there");
    const Tensor& root = call.outputs[roots[i]];
    if (!root.requires_grad()) continue;
    root_tensors.push_back(root);
    cotangents.push_back(i < c.grad_outs.size() ? tracer.FromLiteral(c.grad_outs[i]) : OnesLike(root));
  }
  if (!root_tensors.empty()) {
    absl::StatusOr<Tensors> done = RunBackward(root_tensors, cotangents, {});
    if (!done.ok()) return done.status();
  }
  // An argument that no result depends on has a gradient of zeros.
  for (size_t i : c.requires_grad) {
    const Tensor gradient = leaves[i].grad();
    call.gradients.push_back(gradient.defined() ? gradient : ZerosLike(leaves[i]));
  }
  if (absl::Status s = tracer.status(); !s.ok()) return s;
  return call;
}

absl::Status CompareLiterals(const Literal& got, const Literal& want, double rel, double abs) {
  if (!SameShape(got.shape(), want.shape(), /*ignore_layout=*/true)) {
    return absl::InternalError(
        StrCat("shape ", ToString(got.shape(), false), ", expected ", ToString(want.shape(), false)));
  }
  ElementType type = got.shape().element_type();
  int64_t count = got.element_count();
  if (IsComplex(type)) {  // pairs of floats
    type = type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
    count *= 2;
  }
  const size_t width = static_cast<size_t>(BytesOf(type));
  for (int64_t i = 0; i < count; ++i) {
    const Scalar a = LoadScalar(type, got.data() + static_cast<size_t>(i) * width);
    const Scalar b = LoadScalar(type, want.data() + static_cast<size_t>(i) * width);
    bool same;
    if (!a.is_float()) {
      same = a.ToInt() == b.ToInt();
    } else {
      const double x = a.ToDouble(), y = b.ToDouble();
      same = x == y || (std::isnan(x) && std::isnan(y)) ||
             (std::isfinite(x) && std::isfinite(y) && std::abs(x - y) <= abs + rel * std::abs(y));
    }
    if (!same) {
      return absl::InternalError(
          StrCat("element ", i, " is ", FormatDouble(a.ToDouble(), 9), ", expected ", FormatDouble(b.ToDouble(), 9)));
    }
  }
  return absl::OkStatus();
}

namespace {

absl::Status CheckOne(const Tensor& t, const Literal& want, const OpTestCase& c, std::string_view what, size_t i) {
  if (!t.defined()) return absl::InternalError(StrCat(what, " ", i, " is undefined"));
  absl::StatusOr<Literal> got = t.ToLiteral();
  if (!got.ok()) return got.status();
  if (absl::Status s = CompareLiterals(*got, want, c.rel, c.abs); !s.ok()) {
    return absl::InternalError(StrCat(what, " ", i, ": ", std::string(s.message())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckError(const OpTestCase& c, const absl::Status& result) {
  if (result.ok()) return absl::InternalError(StrCat("succeeds, expected the error: ", c.error));
  if (result.message().find(c.error) != absl::string_view::npos) return absl::OkStatus();
  return absl::InternalError(StrCat("fails with: ", std::string(result.message()), ", expected: ", c.error));
}

absl::Status CheckOpCall(const OpTestCase& c, const OpCall& call) {
  const ScopedSyncReason reason(SyncReason::kTool);
  if (std::none_of(c.outs.begin(), c.outs.end(), [](const auto& out) { return out.has_value(); }) &&
      c.mutated.empty() && c.grads.empty()) {
    return absl::InvalidArgumentError("nothing to compare: expected a line with out:, mutated:, grad: or error:");
  }
  if (call.outputs.size() < c.outs.size()) {
    return absl::InternalError(StrCat(call.outputs.size(), " results, expected ", c.outs.size()));
  }
  for (size_t i = 0; i < c.outs.size(); ++i) {
    if (!c.outs[i]) continue;
    if (absl::Status s = CheckOne(call.outputs[i], *c.outs[i], c, "out", i); !s.ok()) return s;
  }
  for (const auto& [i, want] : c.mutated) {
    if (i >= call.args.size()) return absl::InvalidArgumentError("mutated names an argument that is not there");
    if (absl::Status s = CheckOne(call.args[i], want, c, "mutated", i); !s.ok()) return s;
  }
  for (size_t i = 0; i < c.grads.size(); ++i) {
    if (i >= call.gradients.size()) return absl::InternalError("gradients are missing");
    if (absl::Status s = CheckOne(call.gradients[i], c.grads[i], c, "grad", i); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace hlokit::lazy
