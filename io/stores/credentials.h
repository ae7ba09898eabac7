// SPDX-License-Identifier: Apache-2.0
// Credentials and endpoints of object stores, where the clouds' own tools look for them: environment variables first,
// then files in the home directory.
//
//   s3  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; else the profile AWS_PROFILE of ~/.aws/credentials
//       and ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE). Region: AWS_REGION, AWS_DEFAULT_REGION, the
//       profile. Endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile.
//   gs  HMAC keys: GS_ACCESS_KEY_ID, GS_SECRET_ACCESS_KEY; else ~/.boto (BOTO_CONFIG). Endpoint: STORAGE_EMULATOR_HOST.
//   az  AZURE_STORAGE_CONNECTION_STRING; else AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN,
//   and
//       AZURE_STORAGE_SERVICE_ENDPOINT; each also from [storage] of ~/.azure/config (AZURE_CONFIG_DIR).
#ifndef HLOKIT_IO_STORES_CREDENTIALS_H_
#define HLOKIT_IO_STORES_CREDENTIALS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hlokit {

// Returns the value of a variable; nullopt if it is not set or empty.
using EnvironmentReader = std::function<std::optional<std::string>(const char* name)>;
EnvironmentReader ProcessEnvironment();

struct Endpoint {
  std::string scheme, authority, path;  // http or https; host and port; "" or begins with '/'
};
// Parses "http://host:port/path"; without a scheme it is http, as for emulators.
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

struct S3Settings {
  std::string access_key, secret_key, session_token;
  std::string region;
  std::optional<Endpoint> endpoint;  // absent: that of the cloud
};
absl::StatusOr<S3Settings> FindS3Settings(const EnvironmentReader& environment);
absl::StatusOr<S3Settings> FindGcsSettings(const EnvironmentReader& environment);

struct AzureSettings {
  std::string account;
  std::string key;        // bytes of the shared key; empty: the token
  std::string sas_token;  // without '?'
  Endpoint endpoint;
};
absl::StatusOr<AzureSettings> FindAzureSettings(const EnvironmentReader& environment);

// Sections of an INI file, each by its name. Indented lines, which continue a value, are skipped.
using IniFile = std::map<std::string, std::map<std::string, std::string>, std::less<>>;
IniFile ParseIni(std::string_view text);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_CREDENTIALS_H_
