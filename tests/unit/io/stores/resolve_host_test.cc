// SPDX-License-Identifier: Apache-2.0
#include "io/stores/resolve_host.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hlokit {
namespace {

TEST(ResolveHostTest, NumericAddressesAreThemselves) {
  for (const std::string address : {"127.0.0.1", "::1", "192.0.2.7"}) {
    const absl::StatusOr<std::vector<std::string>> found = ResolveHost(address, 1000);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, std::vector<std::string>{address});
  }
}

TEST(ResolveHostTest, AddressesOfIpv4AreFirst) {
  const absl::StatusOr<std::vector<std::string>> found = ResolveHost("localhost", 0);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->front(), "127.0.0.1");
}

TEST(ResolveHostTest, NoHost) {
  const absl::StatusOr<std::vector<std::string>> found = ResolveHost("not a host", 1000);
  EXPECT_TRUE(absl::IsUnavailable(found.status()));
  EXPECT_NE(found.status().message().find("cannot resolve `not a host`"), std::string::npos) << found.status();
}

}  // namespace
}  // namespace hlokit
