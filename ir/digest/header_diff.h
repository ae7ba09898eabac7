// SPDX-License-Identifier: Apache-2.0
// Differences of the headers of two modules, as text.
#ifndef HLOKIT_IR_DIGEST_HEADER_DIFF_H_
#define HLOKIT_IR_DIGEST_HEADER_DIFF_H_

#include <string>
#include <vector>

#include "ir/digest/fingerprint.h"
#include "ir/graph/module_fwd.h"

namespace hlokit {

// Returns the differences that `options` include, such as "replica_count: 1 vs 2".
std::vector<std::string> HeaderDifferences(const Module& a, const Module& b, const FingerprintOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_IR_DIGEST_HEADER_DIFF_H_
