// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/convolution_numbers.h"

#include <algorithm>
#include <charconv>

#include "ir/core/str_cat.h"

namespace hlokit::mlir {
namespace {

std::string_view Strip(std::string_view text) {
  const size_t first = text.find_first_not_of(" \n\t\r");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \n\t\r") - first + 1);
}

// One list, `[b, 0, 1, f]`, with the names of its dimensions that are not spatial.
std::string ReadPart(std::string_view list, std::string_view first, std::string_view second,
                     ConvolutionNumbers::Part* part) {
  int64_t at = 0;
  bool seen[2] = {};
  std::vector<std::pair<int64_t, int64_t>> spatial;
  for (bool more = !Strip(list).empty(); more; ++at) {
    const size_t comma = list.find(',');
    const std::string_view word = Strip(list.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word == "?") continue;  // a dimension without a meaning
    if (error == std::errc() && stop == word.data() + word.size()) {
      if (number < 0) return StrCat("Unexpected dimension ", number);
      for (const auto& entry : spatial) {
        if (entry.first == number) return StrCat("Duplicate entries for spatial dimension ", number);
      }
      spatial.push_back({number, at});
    } else if (seen[0] && seen[1]) {
      return StrCat("Unexpected keyword ", word);
    } else if (word == first && !seen[0]) {
      seen[0] = true;
      part->first = at;
    } else if (word == second && !seen[1]) {
      seen[1] = true;
      part->second = at;
    } else {
      return StrCat("Unexpected dimension ", word, ", expecting ", seen[0] ? "" : first, seen[0] || seen[1] ? "" : ", ",
                    seen[1] ? "" : second);
    }
  }
  if (!seen[0] || !seen[1]) {
    return StrCat("Expected dimensions ", seen[0] ? "" : first, seen[0] || seen[1] ? "" : ", ", seen[1] ? "" : second,
                  " not specified");
  }
  std::sort(spatial.begin(), spatial.end());
  for (size_t i = 0; i < spatial.size(); ++i) {
    if (spatial[i].first != static_cast<int64_t>(i)) return StrCat("Expected spatial dimensions ", i, " not specified");
    part->spatial.push_back(spatial[i].second);
  }
  return "";
}

}  // namespace

std::string ReadConvolutionNumbers(std::string_view text, ConvolutionNumbers* numbers) {
  constexpr std::string_view kNames[3][2] = {{"b", "f"}, {"i", "o"}, {"b", "f"}};
  constexpr std::string_view kBetween[3] = {"x", "->", ""};
  for (size_t p = 0; p < 3; ++p) {
    text = Strip(text);
    if (!text.starts_with('[')) return "expected '['";
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return "expected ']'";
    if (std::string message = ReadPart(text.substr(1, close - 1), kNames[p][0], kNames[p][1], &numbers->parts[p]);
        !message.empty()) {
      return message;
    }
    text = Strip(text.substr(close + 1));
    if (!text.starts_with(kBetween[p])) return StrCat("expected '", kBetween[p], "'");
    text.remove_prefix(kBetween[p].size());
  }
  return text.empty() ? "" : "expected '>'";
}

std::string ReadConvolutionNumbers(const NodeTable& nodes, NodeId attribute, ConvolutionNumbers* numbers) {
  if (!attribute.valid()) return "expected dimension numbers of a convolution";
  if (nodes.kind(attribute) == NodeKind::kVerbatim) {
    std::string_view text = nodes.text(attribute);
    const size_t open = text.find('<');
    if (open == std::string_view::npos || !text.ends_with('>')) return "expected '<'";
    return ReadConvolutionNumbers(text.substr(open + 1, text.size() - open - 2), numbers);
  }
  if (nodes.kind(attribute) != NodeKind::kFields) return "expected dimension numbers of a convolution";
  constexpr std::string_view kNames[3][3] = {
      {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"},
      {"kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"},
      {"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}};
  for (size_t p = 0; p < 3; ++p) {
    ConvolutionNumbers::Part& part = numbers->parts[p];
    part.first = nodes.IntegerValue(nodes.Entry(attribute, kNames[p][0])).value_or(0);
    part.second = nodes.IntegerValue(nodes.Entry(attribute, kNames[p][1])).value_or(0);
    part.spatial = nodes.Integers(nodes.Entry(attribute, kNames[p][2])).value_or(std::vector<int64_t>());
  }
  return "";
}

}  // namespace hlokit::mlir
