// SPDX-License-Identifier: Apache-2.0
// The files with modules in folders, at any depth: of XLA's dumps, which have each module at many stages and in several
// forms beside reports of many kinds, one form of each stage.
#ifndef HLOKIT_IO_DUMPS_MODULE_FILES_H_
#define HLOKIT_IO_DUMPS_MODULE_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlokit {

// Stages of dumped modules: all, or those before or after the compiler's optimizations.
enum class DumpedStages : uint8_t { kAll, kBefore, kAfter };

// Replaces the directories among `paths` by the files in them, sorted, whose suffix is that of a format of modules; of
// files of dumps, one form of each module at the selected stages, and what a module was compiled from only if there is
// no dump of it. Other paths stay.
std::vector<std::string> FindModuleFiles(const std::vector<std::string>& paths, DumpedStages stages);

// Returns false for MLIR of other dialects, in which a compiler dumps kernels. The beginning of a text is enough.
bool IsStablehloDump(std::string_view text);

}  // namespace hlokit

#endif  // HLOKIT_IO_DUMPS_MODULE_FILES_H_
