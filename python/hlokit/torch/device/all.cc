// SPDX-License-Identifier: Apache-2.0
// One translation unit: reading PyTorch's headers is most of the time of compilation.
#include "autocast.cc"
#include "device.cc"
#include "lazy_tensor.cc"
#include "module.cc"
#include "record.cc"
