// SPDX-License-Identifier: Apache-2.0
// Precompiled header of the tests: their includes beyond those of every library.
#include <gtest/gtest.h>

#include "cmake/precompiled.h"
