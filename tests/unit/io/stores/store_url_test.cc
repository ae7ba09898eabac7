// SPDX-License-Identifier: Apache-2.0
#include "io/stores/store_url.h"

#include <gtest/gtest.h>

#include <string>

namespace hlokit {
namespace {

std::string ErrorOf(std::string_view text) {
  const absl::StatusOr<StoreUrl> url = ParseStoreUrl(text);
  return url.ok() ? "" : std::string(url.status().message());
}

TEST(StoreUrlTest, PathsAreDirectories) {
  for (const std::string path : {"", "cache", "/tmp/a:b", "a/b://c", "x://", "./s3:", "C:\\x"}) {
    const absl::StatusOr<StoreUrl> url = ParseStoreUrl(path);
    ASSERT_TRUE(url.ok()) << path;
    EXPECT_FALSE(IsStoreUrl(path)) << path;
    EXPECT_EQ(url->kind, StoreKind::kDirectory);
    EXPECT_EQ(url->container, path);
  }
}

TEST(StoreUrlTest, ObjectsHaveABucketAndAKey) {
  const absl::StatusOr<StoreUrl> url = ParseStoreUrl("s3://team-a/dumps/step 1#x?.hlo");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->kind, StoreKind::kS3);
  EXPECT_EQ(url->container, "team-a");
  EXPECT_EQ(url->path, "dumps/step 1#x?.hlo");
  EXPECT_EQ(ToString(*url), "s3://team-a/dumps/step 1#x?.hlo");
  EXPECT_EQ(ParseStoreUrl("gs://b/")->path, "");
  EXPECT_EQ(ParseStoreUrl("gs://b")->kind, StoreKind::kGcs);
  EXPECT_EQ(ParseStoreUrl("az://$root/x")->container, "$root");
}

TEST(StoreUrlTest, RedisHasHostLoginDatabaseAndPrefix) {
  const absl::StatusOr<StoreUrl> url = ParseStoreUrl("redis://me:p%40s%3as@cache.example:7000/3?prefix=team%2fa");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->host, "cache.example");
  EXPECT_EQ(url->port, 7000);
  EXPECT_EQ(url->database, 3);
  EXPECT_EQ(url->user, "me");
  EXPECT_EQ(url->password, "p@s:s");
  EXPECT_EQ(url->path, "team/a");
  EXPECT_EQ(ToString(*url), "redis://cache.example:7000/3?prefix=team/a");
  const absl::StatusOr<StoreUrl> plain = ParseStoreUrl("redis://[::1]");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->host, "::1");
  EXPECT_EQ(plain->port, 6379);
  EXPECT_EQ(plain->path, "hlokit");
  EXPECT_EQ(ToString(*plain), "redis://[::1]:6379/0?prefix=hlokit");
  EXPECT_EQ(ParseStoreUrl("redis://h?team")->path, "team");
  EXPECT_EQ(ParseStoreUrl("redis://:secret@h")->password, "secret");
}

TEST(StoreUrlTest, ErrorsSayWhatIsExpected) {
  EXPECT_EQ(ErrorOf("s4://b/k"), "s4://b/k: unknown scheme `s4`; did you mean `s3`?");
  EXPECT_EQ(ErrorOf("https://b/k"), "https://b/k: unknown scheme `https`; there are redis, s3, gs and az");
  EXPECT_EQ(ErrorOf("file:///x"), "file:///x: write a local path without `file://`: /x");
  EXPECT_NE(ErrorOf("s3://").find("expected the name of a bucket"), std::string::npos);
  EXPECT_NE(ErrorOf("az:///x").find("expected the name of a container"), std::string::npos);
  EXPECT_NE(ErrorOf("s3://b/a/../c").find("`..` cannot be part of a key"), std::string::npos);
  EXPECT_NE(ErrorOf("s3://a b/c"), "");
  for (const std::string_view bad :
       {"redis://", "redis://:7", "redis://h:x", "redis://h:0", "redis://h:65536", "redis://h/x", "redis://h/-1",
        "redis://h?ttl=3", "redis://user@h", "redis://:%zz@h", "redis://[::1", "redis://[::1]7", "rediss://h"}) {
    EXPECT_NE(ErrorOf(bad), "") << bad;
  }
}

TEST(StoreUrlTest, NoErrorNamesAPassword) {
  for (const std::string_view bad :
       {"redis://u:secret@h:x", "redis://u:secret@", "rediss://u:secret@h", "redsi://u:secret@h",
        "redis://u:secret%2@h", "redis://secret@h", "redis://u:secret@h/9?x=1", "redis://:secret", "redis://:secret/0",
        "redis://u:secret/0", "redis://u:p@secret:x", "s3://KEY:secret@bucket", "s3://KEY:secret@bucket/x@y",
        "s3://KEY:se/secret@bucket/x", "s3://KEY:secret", "gs://KEY:secret/x@", "az://KEY:secret@c/x",
        "file://u:secret@h/x", "https://u:secret/x"}) {
    const std::string error = ErrorOf(bad);
    EXPECT_NE(error, "") << bad;
    EXPECT_EQ(error.find("secret"), std::string::npos) << error;
  }
  EXPECT_EQ(WithoutPassword("s3://KEY:secret@bucket/x"), "s3://...@bucket/x");
  EXPECT_EQ(WithoutPassword("s3://KEY:12345"), "s3://...");
  EXPECT_EQ(WithoutPassword("redis://:secret"), "redis://...");
  EXPECT_EQ(WithoutPassword("redis://[::1]:7/2"), "redis://[::1]:7/2");
  EXPECT_EQ(WithoutPassword("s3://bucket/x@y:z"), "s3://bucket/x@y:z");
}

}  // namespace
}  // namespace hlokit
