// SPDX-License-Identifier: Apache-2.0
// One call of one op as text, with its arguments and expected results. A line is `key: value`:
//   op: aten::softmax            attr: NAME=VALUE (any argument that is not a tensor)
//   arg: f32[2] {1, 2}           tensor arguments in the order of the schema; `none` for an absent one
//   arglist: N                   the next N args are one list
//   requires_grad: 0,2           args (counted from 0) to differentiate by
//   out: LITERAL                 expected results; `none` for one that is not compared
//   mutated: K LITERAL           arg K after the call
//   diff_out: 0                  results that get a cotangent, grad_out: their cotangents, grad: expected gradients
//   tolerance: rel=R abs=A       |got - want| <= A + R |want|
//   error: TEXT                  instead of results: the call fails with an error that contains TEXT
// schema:, family: and note: are ignored; # begins a comment.
#ifndef HLOKIT_TRACER_TEXT_RECORD_OP_TEST_CASE_H_
#define HLOKIT_TRACER_TEXT_RECORD_OP_TEST_CASE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"
#include "tracer/graph/value.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

struct OpTestCase {
  std::string op;
  std::string family;
  std::vector<std::pair<std::string, std::string>> attrs;
  std::vector<std::optional<Literal>> args;
  std::vector<std::pair<size_t, size_t>> lists;  // first arg, number
  std::vector<size_t> requires_grad;
  std::vector<std::optional<Literal>> outs;
  std::vector<std::pair<size_t, Literal>> mutated;
  std::vector<size_t> diff_out;
  std::vector<Literal> grad_outs;
  std::vector<Literal> grads;
  std::string error;
  double rel = 2e-5;
  double abs = 1e-6;
};

// Adds the lines of `source` to `c`. Returns false after an error, which is in the sink. Literals are of `context`.
bool ReadOpTestCase(const SourceBuffer& source, Context* context, OpTestCase* c, DiagnosticSink* sink);

// The recorded call, not yet computed.
struct OpCall {
  Op op;
  Tensors args;  // by arg line; undefined for none
  Tensors outputs;
  Tensors gradients;  // by requires_grad
};
// Records the call on the current device. With `gradients`, also differentiates it with the given cotangents, or ones.
absl::StatusOr<OpCall> CallOp(Tracer& tracer, const OpTestCase& c, bool gradients);

// Compares results, mutated arguments and gradients with the expected ones. Returns an error with the first difference.
absl::Status CheckOpCall(const OpTestCase& c, const OpCall& call);
// Returns an error unless `result`, the status of the call, is the expected error.
absl::Status CheckError(const OpTestCase& c, const absl::Status& result);

// Returns an error with the first element at which `got` is not within the tolerance of `want`. Integers, pred and
// nonfinite values must be equal.
absl::Status CompareLiterals(const Literal& got, const Literal& want, double rel, double abs);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_RECORD_OP_TEST_CASE_H_
