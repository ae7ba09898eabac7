// SPDX-License-Identifier: Apache-2.0
// Records the graphs of lazy IR text, of any dialect that ir_reader.h reads, so that they can be lowered, run and
// printed again.
//
// A line of PyTorch/XLA or of this library is one node; of torch's TorchScript backend, one call of an op. Attributes
// that PyTorch/XLA omits since 2.2 are an error unless the shape of the result implies them.
#ifndef HLOKIT_TRACER_TEXT_RECORD_IR_BUILDER_H_
#define HLOKIT_TRACER_TEXT_RECORD_IR_BUILDER_H_

#include <cstdint>
#include <functional>

#include "ir/core/diagnostic.h"
#include "tracer/graph/tensor.h"
#include "tracer/step/tracer.h"
#include "tracer/text/ir_reader.h"

namespace hlokit::lazy {

// Returns the value of a parameter, by number; undefined after an error, which it reports.
using ParameterSource = std::function<Tensor(int64_t number, Shape shape, SourceRange where)>;

// Returns values that depend on the number only: floats in [-1, 1), integers 0, integers of rank 0 and pred 1.
Tensor SyntheticParameter(Tracer& tracer, int64_t number, Shape shape);

// Records the graph on the current device and returns its roots in order; without ROOT= the nodes that none uses.
// Returns false after errors, which are in the sink.
bool BuildGraph(const TextDump& dump, const TextGraph& graph, Tracer& tracer, const ParameterSource& parameters,
                Tensors* roots, DiagnosticSink* sink);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_RECORD_IR_BUILDER_H_
