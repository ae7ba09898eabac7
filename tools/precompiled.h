// SPDX-License-Identifier: Apache-2.0
// What the tools include besides what every room does, compiled once.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cmake/precompiled.h"
