// SPDX-License-Identifier: Apache-2.0
// What the extension module of this directory, which is compiled for the PyTorch that is installed, gives to hlokit's
// own, which is linked with none: how a tensor of PyTorch holds a value of the tracer. Passed as a capsule.
#ifndef HLOKIT_PYTHON_HLOKIT_TORCH_DEVICE_API_H_
#define HLOKIT_PYTHON_HLOKIT_TORCH_DEVICE_API_H_

#include <Python.h>

#include <cstddef>
#include <cstdint>

namespace hlokit::python {

struct TorchDeviceApi {
  static constexpr const char* kCapsule = "hlokit.torch.device";

  // Returns the value that a tensor of the device holds, borrowed; null, without an error, for any other object.
  PyObject* (*lazy_of)(PyObject* object);
  // Returns whether `device`, a torch.device or None, is that of a tensor.
  bool (*is_device_of)(PyObject* device, PyObject* tensor);
  // Returns a new tensor that holds `lazy`, of which it takes the reference; null with a Python error. `dtype`: one of
  // torch's; `ordinal`: of the device.
  PyObject* (*wrap)(PyObject* lazy, const int64_t* sizes, size_t rank, PyObject* dtype, int ordinal);
  // Makes such a tensor the result of the op that this thread runs, and returns what stands for it: PyTorch then makes
  // no Python object for a tensor that the program does not keep.
  PyObject* (*hand_over)(PyObject* lazy, const int64_t* sizes, size_t rank, PyObject* dtype, int ordinal);
};

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_HLOKIT_TORCH_DEVICE_API_H_
