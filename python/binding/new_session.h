// SPDX-License-Identifier: Apache-2.0
// Sessions of the lazy tracer: their options, and the processes that run programs together.
#ifndef HLOKIT_PYTHON_BINDING_NEW_SESSION_H_
#define HLOKIT_PYTHON_BINDING_NEW_SESSION_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "interp/processes/network_world.h"
#include "interp/processes/process_network.h"
#include "python/binding/handles.h"
#include "python/binding/torch_tensor.h"

namespace hlokit::python {

// The processes of one machine, each with one device, whose programs with collectives run together.
class Processes {
 public:
  // Waits for connections from now on.
  Processes();

  const std::string& address() const { return network_->address(); }
  // Connects with all others, which call it too. Throws RunError.
  void Connect(int self, const std::vector<std::string>& addresses, double timeout_seconds);
  // Returns null before Connect.
  interp::World* world() const { return world_.get(); }

 private:
  std::unique_ptr<interp::ProcessNetwork> network_;
  std::shared_ptr<interp::NetworkWorld> world_;
};

// Returns a session with these options. `processes`: with which it runs programs; may be null.
TracerPtr NewSession(int devices, const std::string& pipeline, bool debug, bool fake, int64_t replicas,
                     const std::string& engine, int num_threads, bool spmd,
                     const std::shared_ptr<Processes>& processes);

void BindProcesses(pybind11::module_& m);

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_NEW_SESSION_H_
