// SPDX-License-Identifier: Apache-2.0
// Declares the classes of module.h, for headers that only refer to them.
#ifndef HLOKIT_IR_GRAPH_MODULE_FWD_H_
#define HLOKIT_IR_GRAPH_MODULE_FWD_H_

namespace hlokit {

class Computation;
class Context;
class Instruction;
class Module;

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_MODULE_FWD_H_
