// SPDX-License-Identifier: Apache-2.0
// Generates the methods of Tensor for ops from the rows of aten_ops.def:
//   ir-dump --list-ops=methods > tracer/graph/tensor_methods.def
//   ir-dump --list-ops=method-bodies > tracer/ops/tensor_methods.cc
#ifndef HLOKIT_TRACER_TEXT_TENSOR_METHODS_TEXT_H_
#define HLOKIT_TRACER_TEXT_TENSOR_METHODS_TEXT_H_

#include <string>

namespace hlokit::lazy {

std::string TensorMethodDeclarations();
std::string TensorMethodDefinitions();
// Returns the schemas of the ops that programs may call, one a line.
std::string OpList();

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_TENSOR_METHODS_TEXT_H_
