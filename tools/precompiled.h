// SPDX-License-Identifier: Apache-2.0
// Precompiled header of the tools, in addition to that of the libraries.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cmake/precompiled.h"
