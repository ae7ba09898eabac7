// SPDX-License-Identifier: Apache-2.0
#include "io/files/gzip_input.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "google/protobuf/io/gzip_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

constexpr size_t kHeader = 10, kTrailer = 8;
constexpr std::string_view kMember = "\x1f\x8b\x08";

// The deflated bytes by blocks, and what is known of those that were read.
class DeflatedBlocks : public google::protobuf::io::ZeroCopyInputStream {
 public:
  DeflatedBlocks(std::string_view first, ReadBytes read, uint64_t max_bytes)
      : first_(first), read_(read), max_bytes_(max_bytes), block_(kBlock) {}

  bool Next(const void** data, int* size) override {
    std::string_view next;
    if (backed_up_ > 0) {
      next = last_.substr(last_.size() - backed_up_);
      backed_up_ = 0;
    } else {
      if (!status_.ok()) return false;
      next = NextBlock();
      if (next.empty()) return false;
      last_ = next;
      Record(next);
    }
    *data = next.data();
    *size = static_cast<int>(next.size());
    return true;
  }
  void BackUp(int count) override { backed_up_ += static_cast<size_t>(count); }
  bool Skip(int count) override {
    const void* data;
    int size;
    while (count > 0 && Next(&data, &size)) {
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return count == 0;
  }
  int64_t ByteCount() const override { return static_cast<int64_t>(bytes_ - backed_up_); }

  const absl::Status& status() const { return status_; }
  uint64_t bytes() const { return bytes_; }
  // Whole data end with the size of the last member, mostly the only one.
  bool EndsWithSizeOf(uint64_t inflated) const {
    if (bytes_ < kHeader + kTrailer) return false;
    uint32_t size_of_last;
    std::memcpy(&size_of_last, tail_.data() + tail_.size() - sizeof(size_of_last), sizeof(size_of_last));
    return size_of_last == static_cast<uint32_t>(inflated) || (several_ && size_of_last < inflated);
  }

 private:
  static constexpr size_t kBlock = 65536;

  std::string_view NextBlock() {
    if (!first_.empty()) {
      // The stream counts in 32 bits.
      const std::string_view next = first_.substr(0, kBlock);
      first_.remove_prefix(next.size());
      return next;
    }
    const absl::StatusOr<size_t> size = read_(block_.data(), block_.size());
    if (!size.ok()) status_ = size.status();
    return size.ok() ? std::string_view(block_.data(), *size) : std::string_view();
  }

  void Record(std::string_view block) {
    if (bytes_ + block.size() > max_bytes_) {
      status_ = absl::ResourceExhaustedError(StrCat("more than ", max_bytes_, " bytes"));
    }
    // Another member may begin anywhere after the first one's header, also across blocks.
    const uint64_t begin = bytes_ - tail_.size();
    tail_.append(block);
    const size_t skipped = begin < kHeader ? kHeader - begin : 0;
    several_ = several_ || tail_.find(kMember, skipped) != std::string::npos;
    bytes_ += block.size();
    tail_.erase(0, tail_.size() - std::min(tail_.size(), kTrailer));
  }

  std::string_view first_, last_;
  const ReadBytes read_;
  const uint64_t max_bytes_;
  std::vector<char> block_;
  size_t backed_up_ = 0;
  uint64_t bytes_ = 0;
  std::string tail_;  // the last bytes
  bool several_ = false;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::string> InflateGzip(std::string_view first, ReadBytes read, uint64_t max_bytes) {
  DeflatedBlocks blocks(first, read, max_bytes);
  google::protobuf::io::GzipInputStream in(&blocks, google::protobuf::io::GzipInputStream::GZIP);
  std::string out;
  const void* data;
  int size;
  while (in.Next(&data, &size)) {
    const size_t piece = static_cast<size_t>(size);
    if (piece > max_bytes || out.size() > max_bytes - piece) {
      return absl::ResourceExhaustedError(StrCat("more than ", max_bytes, " bytes"));
    }
    if (out.size() > kUnlimitedInflateBytes && out.size() / kMaxInflateRatio > blocks.bytes()) {
      return absl::OutOfRangeError(StrCat("gzip data that inflate to more than ", kUnlimitedInflateBytes, " bytes and ",
                                          kMaxInflateRatio,
                                          " times their size: to read the file nonetheless, decompress it first"));
    }
    // Not beyond the limit, where growth by doubling would end.
    if (out.capacity() - out.size() < piece) out.reserve(std::min<uint64_t>(2 * out.size() + piece, max_bytes));
    out.append(static_cast<const char*>(data), piece);
  }
  if (!blocks.status().ok()) return blocks.status();
  constexpr int kStreamEnd = 1, kOk = 0, kBufError = -5;  // of zlib
  const int code = in.ZlibErrorCode();
  if (code != kStreamEnd && code != kOk && code != kBufError) {
    return absl::DataLossError(StrCat("damaged gzip data", in.ZlibErrorMessage() == nullptr ? "" : ": ",
                                      in.ZlibErrorMessage() == nullptr ? "" : in.ZlibErrorMessage()));
  }
  // The stream ends with the data, whole or not.
  if (!blocks.EndsWithSizeOf(out.size())) return absl::DataLossError("gzip data that are cut off");
  return out;
}

}  // namespace hlokit
