// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/cache_flag.h"

#include <CLI/CLI.hpp>

#include "io/stores/store_url.h"
#include "ir/core/str_cat.h"

namespace hlokit::cli {

CLI::Option* AddCacheFlag(CLI::App* app, std::string* location, const std::string& purpose) {
  return app
      ->add_option("--cache,--compilation-cache-dir", *location,
                   StrCat(purpose,
                          ": a directory, or redis://HOST:PORT, s3://BUCKET/KEY, gs://BUCKET/KEY or "
                          "az://CONTAINER/BLOB (docs/cache.md)"))
      ->type_name("DIR")
      ->check([](const std::string& text) {
        const absl::StatusOr<StoreUrl> url = ParseStoreUrl(text);
        return url.ok() ? std::string() : std::string(url.status().message());
      });
}

}  // namespace hlokit::cli
