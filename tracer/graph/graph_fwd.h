// SPDX-License-Identifier: Apache-2.0
// Declares classes of the tracer, those that refer back to later rooms included, for headers that only refer to them.
#ifndef HLOKIT_TRACER_GRAPH_GRAPH_FWD_H_
#define HLOKIT_TRACER_GRAPH_GRAPH_FWD_H_

namespace hlokit::lazy {

class BackwardContext;
class DeviceState;
class LoweringContext;
class Node;
class OpKernelContext;
class SharedPrograms;
struct Schema;
class Tensor;
class TensorImpl;
class Tracer;
class XlaEmitter;

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_GRAPH_FWD_H_
