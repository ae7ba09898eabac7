// SPDX-License-Identifier: Apache-2.0
// One translation unit: reading PyTorch's headers is most of the time of compilation.
#include "autocast.cpp"
#include "device.cpp"
#include "lazy_tensor.cpp"
#include "module.cpp"
#include "record.cpp"
