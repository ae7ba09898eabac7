// SPDX-License-Identifier: Apache-2.0
// Interface to the library of products and convolutions (oneDNN), which a module wraps that is loaded at run time. The
// module is compiled with the same compiler as the engine, and both include this header.
//
// A primitive runs on the calling thread alone. Any number of threads may run one primitive at the same time, each with
// its own scratch memory.
#ifndef HLOKIT_INTERP_COMPILED_CODE_LIBRARY_INTERFACE_H_
#define HLOKIT_INTERP_COMPILED_CODE_LIBRARY_INTERFACE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "interp/processor/instruction_set.h"

namespace hlokit::interp::compiled {

enum class LibraryType : uint8_t { kF32, kBF16, kS8, kU8, kS32 };

// An array in memory.
struct LibraryArray {
  static constexpr int kMaxRank = 6;
  enum class Layout : uint8_t {
    kStrided,        // as `strides` say
    kAny,            // the primitive chooses; Pack and Unpack convert
    kFeatureBlocks,  // dense images of which 16 features are the minor dimension: [n, c / 16, spatial.., 16]
  };

  LibraryType type = LibraryType::kF32;
  Layout layout = Layout::kStrided;
  int rank = 0;
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};  // in elements, at least 0; not of kFeatureBlocks

  void Add(int64_t size, int64_t stride) {
    dims[rank] = size;
    strides[rank++] = stride;
  }
};

enum class LibraryOp : uint8_t {
  kProduct,                     // dst[b.., m, n] = src[b.., m, k] * weights[b.., k, n]
  kConvolution,                 // src[n, c, spatial..], weights[(g,) o, i, spatial..], dst[n, c, spatial..]
  kConvolutionBackwardData,     // src is computed from dst and weights
  kConvolutionBackwardWeights,  // weights are computed from src and dst
};

struct LibrarySpec {
  LibraryOp op = LibraryOp::kProduct;
  LibraryArray src;
  LibraryArray weights;
  LibraryArray dst;
  // Of convolutions, by spatial dimension. Dilation 1: none.
  static constexpr int kMaxSpatial = 3;
  int64_t strides[kMaxSpatial] = {1, 1, 1};
  int64_t dilations[kMaxSpatial] = {1, 1, 1};
  int64_t padding_low[kMaxSpatial] = {};
  int64_t padding_high[kMaxSpatial] = {};
  // The weights are stored in reverse order along this dimension. Not of gradients of weights; needs Layout::kAny.
  bool reversed[kMaxSpatial] = {};
};

enum class LibraryRole : uint8_t { kSrc, kWeights, kDst };

class LibraryPrimitive {
 public:
  virtual ~LibraryPrimitive() = default;
  // Bytes of scratch memory of one thread, aligned to 64, for each of the functions below.
  virtual int64_t scratch_bytes() const = 0;
  // Bytes of an array in the layout of the primitive; 0: it has the layout of the specification.
  virtual int64_t packed_bytes(LibraryRole role) const = 0;
  // Identifies the layout of the packed weights: equal for primitives that can run on the same ones.
  virtual std::string weights_layout() const = 0;
  // Converts an operand to the layout of the primitive, the result back from it.
  virtual bool Pack(LibraryRole role, const void* plain, void* packed, void* scratch) const = 0;
  virtual bool Unpack(LibraryRole role, const void* packed, void* plain, void* scratch) const = 0;
  // Packs weights in parts that are independent of each other.
  virtual int64_t weights_parts() const = 0;
  virtual bool PackWeights(int64_t part, const void* plain, void* packed, void* scratch) const = 0;
  // Computes the result from the other two arrays, all in the layout of the primitive. Returns false after an error of
  // the library.
  virtual bool Run(void* src, void* weights, void* dst, void* scratch) const = 0;
};

class Library {
 public:
  virtual ~Library() = default;
  // Returns null if the library has no such primitive. `like`: with its layout of weights, so that both can run on the
  // same packed weights; may be null. Thread-safe.
  virtual LibraryPrimitive* Create(const LibrarySpec& spec, const LibraryPrimitive* like) = 0;
  // Returns true if the processor multiplies arrays of this type faster than converted ones, and exactly if they are
  // integers.
  virtual bool IsFast(LibraryType type) const = 0;
};

// Returns the library of the process, which uses no instructions beyond those of the first call.
using OpenLibraryFunction = Library* (*)(InstructionSet max);
inline constexpr char kOpenLibraryName[] = "HlokitOpenLibrary";

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CODE_LIBRARY_INTERFACE_H_
