// SPDX-License-Identifier: Apache-2.0
// What the tests include besides what every room does, compiled once.
#include <gtest/gtest.h>

#include "cmake/precompiled.h"
