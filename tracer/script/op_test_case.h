// SPDX-License-Identifier: Apache-2.0
// One call of one op as a text: what it is called with, what it should give. A line is `key: value`:
//   op: aten::softmax            attr: NAME=VALUE (any argument that is no tensor)
//   arg: f32[2] {1, 2}           tensor arguments in the order of the schema; `none` for one that is absent
//   arglist: N                   the next N args are one list
//   requires_grad: 0,2           args (counted from 0) to differentiate by
//   out: LITERAL                 expected results; `none` for one that is not compared
//   mutated: K LITERAL           arg K after the call
//   diff_out: 0                  results that get a cotangent, grad_out: their cotangents, grad: expected gradients
//   tolerance: rel=R abs=A       |got - want| <= A + R |want|
// schema:, family: and note: are read and not used; # starts a comment.
#ifndef HLOKIT_TRACER_SCRIPT_OP_TEST_CASE_H_
#define HLOKIT_TRACER_SCRIPT_OP_TEST_CASE_H_

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
  double rel = 2e-5;
  double abs = 1e-6;
};

// Adds the lines of `source` to `c`. False after an error, which is in the sink. Literals are of `context`.
bool ReadOpTestCase(const SourceBuffer& source, Context* context, OpTestCase* c, DiagnosticSink* sink);

// The call made, nothing computed yet.
struct OpCall {
  Op op;
  Tensors args;  // by arg line; undefined for none
  Tensors outputs;
  Tensors gradients;  // by requires_grad
};
// Makes the call on the current device. With `gradients`, differentiates it: by the cotangents, or ones.
absl::StatusOr<OpCall> CallOp(Tracer& tracer, const OpTestCase& c, bool gradients);

// Compares results, mutated arguments and gradients with what is expected. OK, or what differs first.
absl::Status CheckOpCall(const OpTestCase& c, const OpCall& call);

// OK, or the first element where `got` is not within the tolerance of `want`: integers and pred must be equal, and so
// must what is not finite.
absl::Status CompareLiterals(const Literal& got, const Literal& want, double rel, double abs);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_SCRIPT_OP_TEST_CASE_H_
