// SPDX-License-Identifier: Apache-2.0
#include "io/stores/credentials.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace hlokit {
namespace {

using Variables = std::map<std::string, std::string>;

EnvironmentReader Of(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

class CredentialsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = home.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  Variables With(Variables more) const {
    more["HOME"] = home.path().string();
    return more;
  }
  const TemporaryFolder home;
};

TEST_F(CredentialsTest, IniFilesHaveSections) {
  const IniFile file =
      ParseIni("x = 0\n[a]\nk=v = w\r\n# no\n; no\n  nested = 1\n[ profile b ]\nk\t= v\n[broken\nk = lost\n");
  EXPECT_EQ(file, (IniFile{{"a", {{"k", "v = w"}}}, {"profile b", {{"k", "v"}}}}));
  EXPECT_TRUE(ParseIni("").empty());
}

TEST_F(CredentialsTest, TheEnvironmentGoesBeforeFiles) {
  Write(".aws/credentials", "[default]\naws_access_key_id = F\naws_secret_access_key = FS\n");
  const absl::StatusOr<S3Settings> s3 = FindS3Settings(Of(With({{"AWS_ACCESS_KEY_ID", "E"},
                                                                {"AWS_SECRET_ACCESS_KEY", "ES"},
                                                                {"AWS_SESSION_TOKEN", "T"},
                                                                {"AWS_DEFAULT_REGION", "eu-west-1"},
                                                                {"AWS_ENDPOINT_URL", "http://127.0.0.1:9000/"}})));
  ASSERT_TRUE(s3.ok()) << s3.status();
  EXPECT_EQ(s3->access_key, "E");
  EXPECT_EQ(s3->secret_key, "ES");
  EXPECT_EQ(s3->session_token, "T");
  EXPECT_EQ(s3->region, "eu-west-1");
  EXPECT_EQ(s3->endpoint->authority, "127.0.0.1:9000");
  EXPECT_EQ(s3->endpoint->path, "");
}

TEST_F(CredentialsTest, ProfilesAreInTwoFiles) {
  Write(".aws/credentials",
        "[default]\naws_access_key_id = D\naws_secret_access_key = DS\n[team]\naws_access_key_id = T\n"
        "aws_secret_access_key = TS\naws_session_token = TT\n");
  Write(".aws/config",
        "[default]\nregion = us-west-2\n[profile team]\nregion = ap-south-1\nendpoint_url = https://store.example/s3\n"
        "s3 =\n  region = nested\n[profile own]\naws_access_key_id = O\naws_secret_access_key = OS\n");
  const absl::StatusOr<S3Settings> plain = FindS3Settings(Of(With({})));
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->access_key, "D");
  EXPECT_EQ(plain->region, "us-west-2");
  EXPECT_FALSE(plain->endpoint.has_value());
  const absl::StatusOr<S3Settings> team = FindS3Settings(Of(With({{"AWS_PROFILE", "team"}})));
  ASSERT_TRUE(team.ok());
  EXPECT_EQ(team->secret_key, "TS");
  EXPECT_EQ(team->session_token, "TT");
  EXPECT_EQ(team->region, "ap-south-1");
  EXPECT_EQ(team->endpoint->scheme, "https");
  EXPECT_EQ(team->endpoint->path, "/s3");
  EXPECT_EQ(FindS3Settings(Of(With({{"AWS_PROFILE", "own"}})))->access_key, "O");
  const absl::StatusOr<S3Settings> none = FindS3Settings(Of(With({{"AWS_PROFILE", "other"}})));
  EXPECT_TRUE(absl::IsPermissionDenied(none.status()));
  Write("elsewhere", "[default]\naws_access_key_id = X\naws_secret_access_key = XS\n");
  EXPECT_EQ(
      FindS3Settings(Of(With({{"AWS_SHARED_CREDENTIALS_FILE", (home.path() / "elsewhere").string()}})))->access_key,
      "X");
}

TEST_F(CredentialsTest, GoogleHasHmacKeys) {
  EXPECT_TRUE(absl::IsPermissionDenied(FindGcsSettings(Of(With({}))).status()));
  Write(".boto", "[Credentials]\ngs_access_key_id = GOOG1\ngs_secret_access_key = S\n");
  const absl::StatusOr<S3Settings> boto = FindGcsSettings(Of(With({{"STORAGE_EMULATOR_HOST", "localhost:9023"}})));
  ASSERT_TRUE(boto.ok());
  EXPECT_EQ(boto->access_key, "GOOG1");
  EXPECT_EQ(boto->endpoint->scheme, "http");
  EXPECT_EQ(FindGcsSettings(Of(With({{"GS_ACCESS_KEY_ID", "E"}, {"GS_SECRET_ACCESS_KEY", "F"}})))->access_key, "E");
}

TEST_F(CredentialsTest, AzureHasConnectionStringsKeysAndTokens) {
  const absl::StatusOr<AzureSettings> text = FindAzureSettings(
      Of(With({{"AZURE_STORAGE_CONNECTION_STRING",
                "DefaultEndpointsProtocol=https;AccountName=team;AccountKey=AAEC;EndpointSuffix=core.example"}})));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->account, "team");
  EXPECT_EQ(text->key, std::string("\0\1\2", 3));
  EXPECT_EQ(text->endpoint.authority, "team.blob.core.example");
  const absl::StatusOr<AzureSettings> token =
      FindAzureSettings(Of(With({{"AZURE_STORAGE_ACCOUNT", "team"}, {"AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=2"}})));
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->sas_token, "sv=1&sig=2");
  EXPECT_EQ(token->endpoint.scheme, "https");
  EXPECT_EQ(token->endpoint.authority, "team.blob.core.windows.net");
  const absl::StatusOr<AzureSettings> emulator =
      FindAzureSettings(Of(With({{"AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true"}})));
  ASSERT_TRUE(emulator.ok());
  EXPECT_EQ(emulator->endpoint.path, "/devstoreaccount1");
  Write(".azure/config", "[storage]\naccount = filed\nkey = AAEC\n");
  EXPECT_EQ(FindAzureSettings(Of(With({})))->account, "filed");
}

TEST_F(CredentialsTest, ErrorsDoNotQuoteSecrets) {
  const absl::Status key =
      FindAzureSettings(Of(With({{"AZURE_STORAGE_ACCOUNT", "a"}, {"AZURE_STORAGE_KEY", "secret!"}}))).status();
  EXPECT_TRUE(absl::IsPermissionDenied(key));
  EXPECT_EQ(std::string(key.message()).find("secret"), std::string::npos);
  const absl::Status endpoint = ParseEndpoint("https://user:secret@host").status();
  EXPECT_FALSE(endpoint.ok());
  EXPECT_EQ(std::string(endpoint.message()).find("secret"), std::string::npos);
  for (const char* const bad : {"", "ftp://h", "http://", "h h", "http://h\nx"})
    EXPECT_FALSE(ParseEndpoint(bad).ok()) << bad;
}

}  // namespace
}  // namespace hlokit
