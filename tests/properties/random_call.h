// SPDX-License-Identifier: Apache-2.0
// Random calls of the tracer's ops, generated from their schemas: usual arguments mixed with odd ones (no elements, no
// dimensions, other types, huge sizes, NaN, empty lists, numbers out of range, None).
#ifndef HLOKIT_TESTS_PROPERTIES_RANDOM_CALL_H_
#define HLOKIT_TESTS_PROPERTIES_RANDOM_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/random/text_builder.h"
#include "tracer/graph/op.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {

class RandomCall {
 public:
  // `oddness`: percentage of odd arguments. The call depends only on the op, the seed and the oddness.
  RandomCall(Tracer* tracer, Op op, uint64_t seed, int oddness);

  Op op() const { return op_; }
  const Args& args() const { return args_; }
  // Returns the call as text: aten::add.Tensor(f32[2,3], s64[], alpha=2).
  std::string text() const;

 private:
  bool Odd() { return random_.In(0, 99) < oddness_; }
  IValue Argument(const ArgSpec& spec);
  Tensor RandomTensor(const ArgSpec& spec);
  Shape TensorShape(const ArgSpec& spec);
  ElementType Type(const ArgSpec& spec);
  std::vector<int64_t> Sizes(const ArgSpec& spec);
  Scalar Number(const ArgSpec& spec);
  IValue Ints(const ArgSpec& spec);

  Tracer& tracer_;
  const Op op_;
  random_test::Random random_;
  const int oddness_;
  std::vector<int64_t> first_dims_;  // of the first tensor
  ElementType first_type_ = ElementType::kF32;
  bool has_first_ = false;
  Args args_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TESTS_PROPERTIES_RANDOM_CALL_H_
