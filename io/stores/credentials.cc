// SPDX-License-Identifier: Apache-2.0
#include "io/stores/credentials.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "io/stores/crypto.h"
#include "io/stores/directory_store.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Reads the INI file of this path, else that below the home directory. Without a file it is empty.
IniFile ReadIni(const EnvironmentReader& environment, std::optional<std::string> path, std::string_view below_home) {
  constexpr uint64_t kMaxBytes = 1 << 20;
  if (!path) {
    const std::optional<std::string> home = environment("HOME");
    if (!home) return {};
    path = StrCat(*home, "/", below_home);
  }
  const absl::StatusOr<std::string> text = ReadRegularFile(*path, kMaxBytes);
  return text.ok() ? ParseIni(*text) : IniFile();
}

std::optional<std::string> ValueIn(const IniFile& file, std::string_view section, const std::string& name) {
  const auto found = file.find(section);
  if (found == file.end()) return std::nullopt;
  const auto value = found->second.find(name);
  if (value == found->second.end() || value->second.empty()) return std::nullopt;
  return value->second;
}

std::optional<std::string> FirstOf(const EnvironmentReader& environment, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (std::optional<std::string> value = environment(name)) return value;
  }
  return std::nullopt;
}

absl::Status SetEndpoint(const std::optional<std::string>& text, std::optional<Endpoint>* endpoint) {
  if (!text) return absl::OkStatus();
  absl::StatusOr<Endpoint> parsed = ParseEndpoint(*text);
  if (!parsed.ok()) return parsed.status();
  *endpoint = *std::move(parsed);
  return absl::OkStatus();
}

// Parses "Name=value;Name=value". Values may contain '='.
std::map<std::string, std::string> ParseConnectionString(std::string_view text) {
  std::map<std::string, std::string> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const size_t eq = part.find('=');
    if (eq != std::string_view::npos) {
      parts[std::string(Trimmed(part.substr(0, eq)))] = Trimmed(part.substr(eq + 1));
    }
  }
  return parts;
}

}  // namespace

EnvironmentReader ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr || value[0] == '\0') return std::nullopt;
    return value;
  };
}

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  Endpoint endpoint;
  const size_t separator = text.find("://");
  endpoint.scheme = separator == std::string_view::npos ? "http" : text.substr(0, separator);
  std::string_view rest = separator == std::string_view::npos ? text : text.substr(separator + 3);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t slash = rest.find('/');
  endpoint.authority = rest.substr(0, slash);
  if (slash != std::string_view::npos) endpoint.path = rest.substr(slash);
  const bool plain = rest.find_first_of("@?# \t\"'\\\r\n") == std::string_view::npos;
  if ((endpoint.scheme != "http" && endpoint.scheme != "https") || endpoint.authority.empty() || !plain) {
    // Not quoted: a misplaced secret may stand there.
    return absl::InvalidArgumentError("the endpoint is not of the form http://HOST:PORT or https://HOST");
  }
  return endpoint;
}

IniFile ParseIni(std::string_view text) {
  IniFile file;
  std::map<std::string, std::string>* section = nullptr;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(' ') || line.starts_with('\t') || line.starts_with('#') || line.starts_with(';')) continue;
    const std::string_view trimmed = Trimmed(line);
    if (trimmed.starts_with('[')) {
      const size_t close = trimmed.find(']');
      section = close == std::string_view::npos ? nullptr : &file[std::string(Trimmed(trimmed.substr(1, close - 1)))];
      continue;
    }
    const size_t eq = trimmed.find('=');
    if (section == nullptr || eq == std::string_view::npos) continue;
    (*section)[std::string(Trimmed(trimmed.substr(0, eq)))] = Trimmed(trimmed.substr(eq + 1));
  }
  return file;
}

absl::StatusOr<S3Settings> FindS3Settings(const EnvironmentReader& environment) {
  S3Settings settings;
  const std::optional<std::string> named = FirstOf(environment, {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  const std::string profile = named.value_or("default");
  const IniFile config = ReadIni(environment, environment("AWS_CONFIG_FILE"), ".aws/config");
  const std::string section = profile == "default" ? profile : StrCat("profile ", profile);
  const std::optional<std::string> key = environment("AWS_ACCESS_KEY_ID"),
                                   secret = environment("AWS_SECRET_ACCESS_KEY");
  if (key && secret) {
    settings.access_key = *key;
    settings.secret_key = *secret;
    settings.session_token = environment("AWS_SESSION_TOKEN").value_or("");
  } else {
    const IniFile credentials = ReadIni(environment, environment("AWS_SHARED_CREDENTIALS_FILE"), ".aws/credentials");
    for (const auto& [file, name] : {std::pair(&credentials, &profile), std::pair(&config, &section)}) {
      const std::optional<std::string> file_key = ValueIn(*file, *name, "aws_access_key_id");
      const std::optional<std::string> file_secret = ValueIn(*file, *name, "aws_secret_access_key");
      if (!file_key || !file_secret) continue;
      settings.access_key = *file_key;
      settings.secret_key = *file_secret;
      settings.session_token = ValueIn(*file, *name, "aws_session_token").value_or("");
      break;
    }
  }
  if (settings.access_key.empty()) {
    return absl::PermissionDeniedError(
        StrCat("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them to ~/.aws/credentials",
               named ? StrCat(" for the profile ", profile) : ""));
  }
  settings.region = FirstOf(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"})
                        .value_or(ValueIn(config, section, "region").value_or("us-east-1"));
  std::optional<std::string> endpoint = FirstOf(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (!endpoint) endpoint = ValueIn(config, section, "endpoint_url");
  if (environment("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").value_or("false") == "true") endpoint.reset();
  if (absl::Status s = SetEndpoint(endpoint, &settings.endpoint); !s.ok()) return s;
  return settings;
}

absl::StatusOr<S3Settings> FindGcsSettings(const EnvironmentReader& environment) {
  S3Settings settings;
  settings.region = "auto";
  const std::optional<std::string> key = environment("GS_ACCESS_KEY_ID"), secret = environment("GS_SECRET_ACCESS_KEY");
  if (key && secret) {
    settings.access_key = *key;
    settings.secret_key = *secret;
  } else {
    const IniFile boto = ReadIni(environment, environment("BOTO_CONFIG"), ".boto");
    settings.access_key = ValueIn(boto, "Credentials", "gs_access_key_id").value_or("");
    settings.secret_key = ValueIn(boto, "Credentials", "gs_secret_access_key").value_or("");
  }
  if (settings.access_key.empty() || settings.secret_key.empty()) {
    return absl::PermissionDeniedError(
        "no credentials: set GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY to an HMAC key, or write "
        "gs_access_key_id and gs_secret_access_key to ~/.boto");
  }
  if (absl::Status s = SetEndpoint(environment("STORAGE_EMULATOR_HOST"), &settings.endpoint); !s.ok()) return s;
  return settings;
}

absl::StatusOr<AzureSettings> FindAzureSettings(const EnvironmentReader& environment) {
  std::optional<std::string> path = environment("AZURE_CONFIG_DIR");
  if (path) path->append("/config");
  const IniFile config = ReadIni(environment, std::move(path), ".azure/config");
  const auto find = [&](const char* variable, const std::string& name) {
    std::optional<std::string> value = environment(variable);
    return value ? *value : ValueIn(config, "storage", name).value_or("");
  };
  AzureSettings settings;
  settings.account = find("AZURE_STORAGE_ACCOUNT", "account");
  std::string key = find("AZURE_STORAGE_KEY", "key");
  settings.sas_token = find("AZURE_STORAGE_SAS_TOKEN", "sas_token");
  std::string endpoint = find("AZURE_STORAGE_SERVICE_ENDPOINT", "service_endpoint");
  std::string protocol = "https", suffix = "core.windows.net";
  if (const std::string text = find("AZURE_STORAGE_CONNECTION_STRING", "connection_string"); !text.empty()) {
    std::map<std::string, std::string> parts = ParseConnectionString(text);
    if (parts["UseDevelopmentStorage"] == "true") {
      // Account and key that emulators have, as Microsoft publishes them.
      parts = {
          {"AccountName", "devstoreaccount1"},
          {"AccountKey", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="},
          {"BlobEndpoint", "http://127.0.0.1:10000/devstoreaccount1"}};
    }
    settings.account = parts["AccountName"];
    key = parts["AccountKey"];
    settings.sas_token = parts["SharedAccessSignature"];
    endpoint = parts["BlobEndpoint"];
    if (!parts["DefaultEndpointsProtocol"].empty()) protocol = parts["DefaultEndpointsProtocol"];
    if (!parts["EndpointSuffix"].empty()) suffix = parts["EndpointSuffix"];
  }
  if (settings.sas_token.starts_with('?')) settings.sas_token.erase(0, 1);
  if (key.empty() && settings.sas_token.empty()) {
    return absl::PermissionDeniedError(
        "no credentials: set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY or "
        "AZURE_STORAGE_SAS_TOKEN");
  }
  if (settings.account.empty() && (endpoint.empty() || !key.empty())) {
    return absl::PermissionDeniedError("no storage account: set AZURE_STORAGE_ACCOUNT");
  }
  if (!key.empty()) {
    const std::optional<std::string> bytes = FromBase64(key);
    if (!bytes || bytes->empty()) return absl::PermissionDeniedError("the key of the storage account is not base64");
    settings.key = *bytes;
  }
  if (endpoint.empty()) endpoint = StrCat(protocol, "://", settings.account, ".blob.", suffix);
  absl::StatusOr<Endpoint> parsed = ParseEndpoint(endpoint);
  if (!parsed.ok()) return parsed.status();
  settings.endpoint = *std::move(parsed);
  return settings;
}

}  // namespace hlokit
