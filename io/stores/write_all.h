// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_IO_STORES_WRITE_ALL_H_
#define HLOKIT_IO_STORES_WRITE_ALL_H_

#include <errno.h>
#include <unistd.h>

#include <string_view>

namespace hlokit {

// Writes all of `bytes` to a descriptor. Returns 0, or errno.
inline int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_WRITE_ALL_H_
