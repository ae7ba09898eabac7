// SPDX-License-Identifier: Apache-2.0
#include "runtime/client/program_signature.h"

#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit::runtime {
namespace {

// Of two contexts.
bool HaveSameArray(Shape a, Shape b) { return a.element_type() == b.element_type() && a.dims() == b.dims(); }

}  // namespace

absl::Status CheckSignature(const Module& module, absl::Span<const Shape> parameters, absl::Span<const Shape> results) {
  const Computation entry = module.entry();
  std::vector<Shape> given;
  for (int64_t i = 0; i < entry.parameter_count(); ++i) given.push_back(entry.parameter(i).shape());
  if (given.size() == 1 && given[0].IsTuple()) given = {given[0].elements().begin(), given[0].elements().end()};
  const Shape root = entry.root().shape();
  if (!root.IsTuple()) return absl::InvalidArgumentError(StrCat("its result is no tuple but ", ToString(root)));
  const auto check = [](std::string_view what, absl::Span<const Shape> found, absl::Span<const Shape> wanted) {
    if (found.size() != wanted.size()) {
      return absl::InvalidArgumentError(StrCat("it has ", found.size(), " ", what, "s, not ", wanted.size()));
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i].IsTuple() || !HaveSameArray(found[i], wanted[i])) {
        return absl::InvalidArgumentError(
            StrCat(what, " ", i, " is ", ToString(found[i]), ", not ", ToString(wanted[i])));
      }
    }
    return absl::OkStatus();
  };
  if (absl::Status status = check("parameter", given, parameters); !status.ok()) return status;
  const std::vector<Shape> roots = {root.elements().begin(), root.elements().end()};
  return check("result", roots, results);
}

}  // namespace hlokit::runtime
