// SPDX-License-Identifier: Apache-2.0
// The flag of the persistent compilation cache.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_CACHE_FLAG_H_
#define HLOKIT_TOOLS_CLI_FLAGS_CACHE_FLAG_H_

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hlokit::cli {

// Adds --cache=DIR|URL. An address with an unknown scheme or of another form is a usage error.
CLI::Option* AddCacheFlag(CLI::App* app, std::string* location, const std::string& purpose);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_CACHE_FLAG_H_
