// SPDX-License-Identifier: Apache-2.0
// The shapes of arguments in files, from which a program with open sizes gets its sizes before it is read.
#ifndef HLOKIT_TOOLS_HLO_RUN_ARGUMENT_SHAPES_H_
#define HLOKIT_TOOLS_HLO_RUN_ARGUMENT_SHAPES_H_

#include <string>
#include <string_view>
#include <vector>

namespace hlokit::run {

// Returns true for a StableHLO program that may have dimensions without a size.
bool MayHaveOpenSizes(std::string_view text);

// Returns "arg0=[8,4]" for each array in the file (--args) or the directory (--args-npy): the name of an array, where
// it is that of an argument, or its place. Files that cannot be read give none; reading the arguments reports them.
std::vector<std::string> ArgumentShapes(const std::string& file, const std::string& directory);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_ARGUMENT_SHAPES_H_
