// SPDX-License-Identifier: Apache-2.0
// Includes of the extension module, precompiled once. Each file includes what it uses, all the same.
#ifndef HLOKIT_PYTHON_PRECOMPILED_H_
#define HLOKIT_PYTHON_PRECOMPILED_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "cmake/precompiled.h"
#include "python/binding/values.h"

#endif  // HLOKIT_PYTHON_PRECOMPILED_H_
