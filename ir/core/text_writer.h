// SPDX-License-Identifier: Apache-2.0
// Buffered text output to a consumer (a string, a file). Appending is a bounds check and a copy.
#ifndef HLOKIT_IR_CORE_TEXT_WRITER_H_
#define HLOKIT_IR_CORE_TEXT_WRITER_H_

#include <charconv>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hlokit {

class TextWriter {
 public:
  using Consumer = std::function<void(std::string_view)>;

  explicit TextWriter(Consumer consumer, size_t buffer_size = size_t{1} << 16)
      : consumer_(std::move(consumer)),
        buffer_(std::make_unique_for_overwrite<char[]>(buffer_size)),
        next_(buffer_.get()),
        end_(buffer_.get() + buffer_size) {}
  // Appends to `out`, which is not owned and must outlive the writer.
  explicit TextWriter(std::string* out)
      : TextWriter([out](std::string_view piece) { out->append(piece); }, size_t{1} << 12) {}
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;
  ~TextWriter() { Flush(); }

  TextWriter& operator<<(std::string_view s) {
    Append(s);
    return *this;
  }
  TextWriter& operator<<(char c) {
    if (next_ == end_) Flush();
    *next_++ = c;
    return *this;
  }
  TextWriter& operator<<(int64_t v) {
    if (end_ - next_ < 24) Flush();
    next_ = std::to_chars(next_, end_, v).ptr;
    return *this;
  }
  TextWriter& operator<<(int v) { return *this << int64_t{v}; }
  TextWriter& operator<<(const char* s) { return *this << std::string_view(s); }
  TextWriter& operator<<(const std::string& s) { return *this << std::string_view(s); }

  void Append(std::string_view s) {
    if (s.size() > static_cast<size_t>(end_ - next_)) {
      AppendSlow(s);
      return;
    }
    if (!s.empty()) std::memcpy(next_, s.data(), s.size());
    next_ += s.size();
  }

  void Flush() {
    if (next_ == buffer_.get()) return;
    consumer_({buffer_.get(), static_cast<size_t>(next_ - buffer_.get())});
    next_ = buffer_.get();
  }

 private:
  void AppendSlow(std::string_view s) {
    Flush();
    if (s.size() > static_cast<size_t>(end_ - next_)) {
      consumer_(s);
      return;
    }
    std::memcpy(next_, s.data(), s.size());
    next_ += s.size();
  }

  Consumer consumer_;
  std::unique_ptr<char[]> buffer_;
  char* next_;
  char* end_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_TEXT_WRITER_H_
