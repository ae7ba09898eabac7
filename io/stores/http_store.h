// SPDX-License-Identifier: Apache-2.0
// What the object stores of the clouds have in common: requests, retries, statuses and checksums.
//
// A value is uploaded by one request, which such stores apply whole or not at all. Its XXH3-128 digest is kept in its
// metadata and compared by whoever reads all of it; values that other programs wrote have none.
#ifndef HLOKIT_IO_STORES_HTTP_STORE_H_
#define HLOKIT_IO_STORES_HTTP_STORE_H_

#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "io/stores/byte_store.h"
#include "io/stores/credentials.h"
#include "io/stores/http_client.h"
#include "io/stores/retry.h"

namespace hlokit {

class HttpStore : public ByteStore {
 public:
  absl::StatusOr<std::string> Get(std::string_view key, uint64_t max_bytes, bool first_bytes = false) override;
  absl::Status Put(std::string_view key, std::string_view bytes) override;
  absl::StatusOr<bool> Exists(std::string_view key) override;
  absl::StatusOr<std::vector<std::string>> List(std::string_view prefix, size_t max_keys) override;
  absl::Status Remove(std::string_view key) override;

 protected:
  struct Operation {
    std::string method = {};
    std::string key = {};                             // full; empty: the bucket or container
    std::map<std::string, std::string> query = {};    // not encoded
    std::map<std::string, std::string> headers = {};  // names in lower case
    std::string_view body = {};
  };
  // Names of elements of a page of keys.
  struct PageElements {
    const char* key;   // full ones
    const char* next;  // where the next page begins; empty or absent: this is the last
  };

  HttpStore(StoreUrl url, StoreOptions options, std::unique_ptr<HttpClient> client)
      : ByteStore(std::move(url)), options_(options), client_(std::move(client)) {}

  // Returns URL and headers of the request, signed.
  virtual HttpRequest Sign(const Operation& operation, std::time_t now) const = 0;
  // Returns the name of the header of the value's digest in requests.
  virtual std::string digest_header() const = 0;
  // Returns further headers of an upload.
  virtual std::map<std::string, std::string> UploadHeaders(std::string_view bytes) const = 0;
  // Returns the query for a page of keys that begin with `prefix`, from where the previous page ended.
  virtual std::map<std::string, std::string> ListQuery(const std::string& prefix, const std::string& from) const = 0;
  virtual PageElements page_elements() const = 0;
  // Strings that must not be in messages.
  virtual std::vector<std::string> Secrets() const = 0;

 private:
  absl::StatusOr<HttpResponse> Send(const Operation& operation, std::string_view key, uint64_t max_body_bytes,
                                    const Deadline& deadline, bool truncate = false);
  absl::Status StatusOf(const HttpResponse& response, std::string_view key) const;
  absl::Status Error(absl::StatusCode code, std::string_view key, std::string_view message) const;

  const StoreOptions options_;
  std::mutex mutex_;
  std::unique_ptr<HttpClient> client_;
};

// Returns "20130524T000000Z", and "Fri, 24 May 2013 00:00:00 GMT".
std::string AwsTime(std::time_t now);
std::string HttpTime(std::time_t now);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_HTTP_STORE_H_
