// SPDX-License-Identifier: Apache-2.0
// Parts of stores that need no server; tests/store/store_test.py has those that do.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "io/stores/byte_store.h"
#include "io/stores/guarded_store.h"
#include "io/stores/object.h"
#include "io/stores/retry.h"
#include "io/stores/xml_elements.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit {
namespace {

using Strings = std::vector<std::string>;

TEST(XmlElementsTest, TextsAreUnescaped) {
  const std::string xml =
      "<?xml version='1.0'?><List a='<Key>'><!-- <Key>no</Key> --><Key>a&amp;b</Key><X><Key b='1'>&lt;&#65;&#x20AC;"
      "&unknown;&</Key></X><Key> <![CDATA[c&lt;]]></Key><Key> </Key><Key/><Next></Next></List>";
  EXPECT_EQ(XmlTexts(xml, "Key").value(), (Strings{"a&b", "<A\u20ac&unknown;&", "c&lt;", " ", ""}));
  EXPECT_EQ(XmlText(xml, "Next"), "");
  EXPECT_EQ(XmlText(xml, "Other"), "");
  EXPECT_EQ(XmlText("<Code>A</Code><Code>B</Code>", "Code"), "A");
}

TEST(XmlElementsTest, WhatIsNoXmlHasNoTexts) {
  EXPECT_EQ(XmlTexts("<List><Key>a<!-- - -->b<![CDATA[<c>]]>d</Key></List>", "Key").value(), Strings{"ab<c>d"});
  EXPECT_TRUE(absl::IsDataLoss(XmlTexts("<List><Key>a</Key><Key>cut off", "Key").status()));
  EXPECT_EQ(XmlText("<p><Code>A</Code><br></p>", "Code"), "");
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "<a>";
  EXPECT_FALSE(XmlTexts(deep, "a").ok());
  for (int i = 0; i < 1'000'000; ++i) deep += "</a>";
  EXPECT_EQ(XmlTexts(deep, "a").value().size(), 1'000'000);
  // No entities are expanded but those of characters.
  EXPECT_EQ(XmlText("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "a"), "&x;");
}

TEST(RetryTest, OnlyWhatMayPassIsTriedAgain) {
  const StoreOptions options{.attempts = 3};
  int calls = 0;
  const auto failing = [&](absl::Status status, int good_call) {
    calls = 0;
    return WithRetries(options, Deadline(options.deadline_ms), [&](int64_t left) {
      EXPECT_EQ(left, 0);
      return Attempt{++calls == good_call ? absl::OkStatus() : status};
    });
  };
  EXPECT_TRUE(failing(absl::UnavailableError(""), 2).ok());
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(absl::IsUnavailable(failing(absl::UnavailableError(""), 9)));
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(absl::IsPermissionDenied(failing(absl::PermissionDeniedError(""), 9)));
  EXPECT_EQ(calls, 1);
}

TEST(RetryTest, ADeadlineEndsTheAttempts) {
  const StoreOptions options{.deadline_ms = 200, .attempts = 1000};
  const auto begin = std::chrono::steady_clock::now();
  int calls = 0;
  const absl::Status status = WithRetries(options, Deadline(options.deadline_ms), [&](int64_t left) {
    EXPECT_GE(left, 1);
    EXPECT_LE(left, 200);
    ++calls;
    return Attempt{absl::UnavailableError("")};
  });
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_LE(calls, 5);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  // A server that asks for more time than there is gets no further attempt.
  calls = 0;
  const absl::Status busy = WithRetries(options, Deadline(options.deadline_ms), [&](int64_t) {
    ++calls;
    return Attempt{absl::UnavailableError("busy"), 5000};
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(std::string(busy.message()), "busy; the server asks to be tried again after 5 s, which is not waited for");
}

TEST(RetryTest, AServerThatAsksForTooMuchTimeIsNotWaitedFor) {
  const StoreOptions options{.attempts = 4};  // no deadline: a file
  int calls = 0;
  const absl::Status status = WithRetries(options, Deadline(options.deadline_ms), [&](int64_t) {
    ++calls;
    return Attempt{absl::UnavailableError("HTTP status 503"), int64_t{99999999} * 1000};
  });
  EXPECT_EQ(calls, 1);
  EXPECT_NE(std::string(status.message()).find("after 99999999 s, which is not waited for"), std::string::npos)
      << status;
}

TEST(DeadlineTest, WhatIsLeft) {
  const Deadline none(0), far(3'600'000), over(1);
  EXPECT_EQ(none.left_ms(), 0);
  EXPECT_EQ(none.Within(7), 7);
  EXPECT_FALSE(none.IsOverAfter(1'000'000'000));
  EXPECT_EQ(far.Within(7), 7);
  EXPECT_GT(far.left_ms(), 3'000'000);
  EXPECT_FALSE(far.is_over());
  EXPECT_TRUE(far.IsOverAfter(3'600'000));
  while (!over.is_over()) {
  }
  EXPECT_EQ(over.left_ms(), 1);
  EXPECT_EQ(over.Within(7), 1);
}

TEST(CircuitBreakerTest, OpensForLongerEachTime) {
  using std::chrono::seconds;
  CircuitBreaker breaker;
  const CircuitBreaker::Clock::time_point now{};
  EXPECT_TRUE(breaker.Allows(now));
  breaker.Record(absl::NotFoundError(""), now);
  EXPECT_TRUE(breaker.Allows(now));
  breaker.Record(absl::UnavailableError(""), now);
  EXPECT_FALSE(breaker.Allows(now + seconds(29)));
  EXPECT_TRUE(breaker.Allows(now + seconds(30)));
  breaker.Record(absl::UnavailableError(""), now);
  EXPECT_FALSE(breaker.Allows(now + seconds(59)));
  EXPECT_TRUE(breaker.Allows(now + seconds(60)));
  for (int i = 0; i < 40; ++i) breaker.Record(absl::UnavailableError(""), now);
  EXPECT_TRUE(breaker.Allows(now + seconds(600)));
  breaker.Record(absl::OkStatus(), now);
  EXPECT_TRUE(breaker.Allows(now));
  breaker.Record(absl::PermissionDeniedError(""), now);
  EXPECT_FALSE(breaker.Allows(now + seconds(1000000)));
}

// Counts calls, and fails as told.
class ScriptedStore : public ByteStore {
 public:
  ScriptedStore(int* calls, absl::Status status) : ByteStore(StoreUrl()), calls_(calls), status_(std::move(status)) {}
  absl::StatusOr<std::string> Get(std::string_view, uint64_t, bool) override { return Next(); }
  absl::Status Put(std::string_view, std::string_view) override { return Next(); }
  absl::StatusOr<bool> Exists(std::string_view) override { return Next(); }
  absl::StatusOr<Strings> List(std::string_view, size_t) override { return Next(); }
  absl::Status Remove(std::string_view) override { return Next(); }

 private:
  absl::Status Next() {
    ++*calls_;
    return status_;
  }
  int* const calls_;
  const absl::Status status_;
};

TEST(GuardedStoreTest, AfterAFailureOperationsAreLeftOut) {
  int calls = 0;
  GuardedStore store(std::make_unique<ScriptedStore>(&calls, absl::UnavailableError("down")));
  EXPECT_TRUE(absl::IsUnavailable(store.Get("k", 1).status()));
  EXPECT_TRUE(absl::IsCancelled(store.Get("k", 1).status()));
  EXPECT_TRUE(absl::IsCancelled(store.Put("k", "")));
  EXPECT_TRUE(absl::IsCancelled(store.Exists("k").status()));
  EXPECT_TRUE(absl::IsCancelled(store.List("", 1).status()));
  EXPECT_TRUE(absl::IsCancelled(store.Remove("k")));
  EXPECT_EQ(calls, 1);
  GuardedStore working(std::make_unique<ScriptedStore>(&calls, absl::NotFoundError("")));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(absl::IsNotFound(working.Get("k", 1).status()));
  EXPECT_EQ(calls, 4);
}

TEST(DirectoryStoreTest, ValuesAreFiles) {
  const TemporaryFolder folder;
  StoreUrl url;
  url.container = folder.path().string();
  absl::StatusOr<std::unique_ptr<ByteStore>> opened = ByteStore::Open(url, StoreOptions());
  ASSERT_TRUE(opened.ok());
  ByteStore& store = **opened;
  EXPECT_TRUE(absl::IsNotFound(store.Get("a/one", 10).status()));
  EXPECT_FALSE(*store.Exists("a/one"));
  ASSERT_TRUE(store.Put("a/one", "12345").ok());
  ASSERT_TRUE(store.Put("a/two", "").ok());
  ASSERT_TRUE(store.Put("b/one", "x").ok());
  EXPECT_TRUE(*store.Exists("a/one"));
  EXPECT_EQ(*store.Get("a/one", 5), "12345");
  EXPECT_EQ(*store.Get("a/one", 2, /*first_bytes=*/true), "12");
  EXPECT_TRUE(absl::IsResourceExhausted(store.Get("a/one", 4).status()));
  EXPECT_EQ(*store.List("a/", 9), (Strings{"a/one", "a/two"}));
  EXPECT_EQ(*store.List("a/o", 9), Strings{"a/one"});
  EXPECT_EQ(*store.List("", 1), Strings{"a/one"});
  EXPECT_TRUE(store.Remove("a/one").ok());
  EXPECT_TRUE(store.Remove("a/one").ok());
  EXPECT_EQ(*store.List("", 9), (Strings{"a/two", "b/one"}));
}

TEST(ObjectTest, AddressesWithoutAFileAreErrors) {
  for (const std::string bad : {"s3://bucket", "redis://host/0", "ftp://host/x"}) {
    const absl::Status status = ReadObject(bad, 1).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(std::string(status.message()).find(bad), 0u) << status;
  }
}

}  // namespace
}  // namespace hlokit
