// SPDX-License-Identifier: Apache-2.0
// The module libhlokit_onednn.so: primitives of oneDNN for one thread.
//
// oneDNN fixes the number of threads when a primitive is made, and runs it on a team of OpenMP. Both are limited to the
// calling thread here. With its own scratch memory a primitive is not safe to run on several threads at once, so
// callers give each thread some.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "interp/compiled/code/engine_build_id.h"
#include "interp/compiled/code/library_interface.h"
#include "interp/compiled/onednn/weights_packing.h"
#include "interp/processor/instruction_set.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace hlokit::interp::compiled {
namespace {

using dnnl::memory;

// Limits OpenMP to the calling thread while it lives.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }

 private:
  int before_;
};

const dnnl::engine& Cpu() {
  static const dnnl::engine* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Cpu());
  return stream;
}

memory::data_type TypeOf(LibraryType type) {
  switch (type) {
    case LibraryType::kF32:
      return memory::data_type::f32;
    case LibraryType::kBF16:
      return memory::data_type::bf16;
    case LibraryType::kS8:
      return memory::data_type::s8;
    case LibraryType::kU8:
      return memory::data_type::u8;
    case LibraryType::kS32:
      return memory::data_type::s32;
  }
  return memory::data_type::undef;
}

memory::dims DimsOf(const LibraryArray& array) { return memory::dims(array.dims, array.dims + array.rank); }

memory::desc BlockedDesc(const LibraryArray& array) {
  constexpr memory::format_tag kTags[] = {memory::format_tag::nCw16c, memory::format_tag::nChw16c,
                                          memory::format_tag::nCdhw16c};
  return memory::desc(DimsOf(array), TypeOf(array.type), kTags[array.rank - 3]);
}

memory::desc PlainDesc(const LibraryArray& array) {
  if (array.layout == LibraryArray::Layout::kFeatureBlocks) return BlockedDesc(array);
  return memory::desc(DimsOf(array), TypeOf(array.type), memory::dims(array.strides, array.strides + array.rank));
}

memory::desc DescWithLayout(const LibraryArray& array) {
  if (array.layout != LibraryArray::Layout::kAny) return PlainDesc(array);
  return memory::desc(DimsOf(array), TypeOf(array.type), memory::format_tag::any);
}

// Reverses the order of the elements of weights along some spatial dimensions, in place.
class WeightsReversal {
 public:
  // Returns false if the layout divides a reversed dimension into blocks.
  bool Init(const memory::desc& weights, const bool* reversed, int spatial) {
    const dnnl_memory_desc_t& md = weights.data;
    const dnnl_blocking_desc_t& blocking = md.format_desc.blocking;
    if (md.format_kind != dnnl_blocked) return false;
    int64_t blocks[DNNL_MAX_NDIMS];
    std::fill_n(blocks, DNNL_MAX_NDIMS, 1);
    for (int i = 0; i < blocking.inner_nblks; ++i) {
      blocks[blocking.inner_idxs[i]] *= blocking.inner_blks[i];
      run_ *= blocking.inner_blks[i];
    }
    run_ *= static_cast<int64_t>(memory::data_type_size(weights.data_type()));
    const int first = md.ndims - spatial;
    for (int d = 0; d < md.ndims; ++d) {
      Axis axis;
      axis.size = md.padded_dims[d] / blocks[d];
      axis.stride = blocking.strides[d] * static_cast<int64_t>(memory::data_type_size(weights.data_type()));
      axis.reversed = d >= first && reversed[d - first] && axis.size > 1;
      if (axis.reversed && blocks[d] != 1) return false;
      axes_.push_back(axis);
    }
    // Elements next to each other that keep their order move together.
    for (bool joined = true; joined;) {
      joined = false;
      for (size_t d = 0; d < axes_.size(); ++d) {
        if (axes_[d].reversed || (axes_[d].size != 1 && axes_[d].stride != run_)) continue;
        run_ *= axes_[d].size;
        axes_.erase(axes_.begin() + static_cast<std::ptrdiff_t>(d));
        joined = true;
        break;
      }
    }
    return true;
  }

  void Run(std::byte* data) const {
    int64_t count = 1;
    for (const Axis& axis : axes_) count *= axis.size;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, other = 0, offset = 0, mirrored = 0, scale = 1;
      for (size_t d = axes_.size(); d-- > 0;) {
        const Axis& axis = axes_[d];
        const int64_t index = rest % axis.size;
        const int64_t mirror = axis.reversed ? axis.size - 1 - index : index;
        rest /= axis.size;
        offset += index * axis.stride;
        mirrored += mirror * axis.stride;
        other += mirror * scale;
        scale *= axis.size;
      }
      if (i < other) std::swap_ranges(data + offset, data + offset + run_, data + mirrored);
    }
  }

 private:
  struct Axis {
    int64_t size;
    int64_t stride;  // in bytes
    bool reversed;
  };
  std::vector<Axis> axes_;
  int64_t run_ = 1;  // bytes next to each other
};

// A primitive whose code is generated when it first runs, most of the time that a program takes to prepare otherwise.
// Its description says before whether there is one. Thread-safe.
class LazyPrimitive {
 public:
  template <typename Primitive, typename Description>
  void Describe(const Description& description) {
    make_ = [description] { return dnnl::primitive(Primitive(description)); };
  }
  // Throws dnnl::error.
  const dnnl::primitive& Get() const {
    std::call_once(*once_, [this] {
      const OneThread one;
      primitive_ = make_();
    });
    return primitive_;
  }

 private:
  std::function<dnnl::primitive()> make_;
  std::unique_ptr<std::once_flag> once_ = std::make_unique<std::once_flag>();
  mutable dnnl::primitive primitive_;
};

// One array of a primitive: as given, and as the primitive wants it.
struct Role {
  memory::desc plain;
  memory::desc packed;
  bool same = true;
  LazyPrimitive pack;
  LazyPrimitive unpack;
};

class OnednnPrimitive : public LibraryPrimitive {
 public:
  // Throws dnnl::error and std::bad_alloc.
  OnednnPrimitive(const LibrarySpec& spec, const OnednnPrimitive* like) : op_(spec.op) {
    const LibraryArray* const arrays[] = {&spec.src, &spec.weights, &spec.dst};
    memory::desc asked[3];
    for (int i = 0; i < 3; ++i) {
      roles_[i].plain = PlainDesc(*arrays[i]);
      asked[i] = DescWithLayout(*arrays[i]);
    }
    if (like != nullptr) asked[1] = like->roles_[1].packed;
    const int rank = spec.src.rank - 2;
    const bool reversed = rank > 0 && std::any_of(spec.reversed, spec.reversed + rank, [](bool r) { return r; });
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const int spatial = spec.src.rank - 2;
    const memory::dims strides(spec.strides, spec.strides + std::max(spatial, 0));
    memory::dims dilations(spec.dilations, spec.dilations + std::max(spatial, 0));
    for (memory::dim& d : dilations) --d;
    const memory::dims low(spec.padding_low, spec.padding_low + std::max(spatial, 0));
    const memory::dims high(spec.padding_high, spec.padding_high + std::max(spatial, 0));
    constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
    switch (spec.op) {
      case LibraryOp::kProduct: {
        const dnnl::matmul::primitive_desc made({asked[0], asked[1], asked[2]}, attr, Cpu());
        Take<dnnl::matmul>(made, made.src_desc(), made.weights_desc(), made.dst_desc());
        break;
      }
      case LibraryOp::kConvolution: {
        const dnnl::convolution_forward::primitive_desc made({dnnl::prop_kind::forward_training, kAlgorithm, asked[0],
                                                              asked[1], asked[2], strides, dilations, low, high},
                                                             attr, Cpu());
        Take<dnnl::convolution_forward>(made, made.src_desc(), made.weights_desc(), made.dst_desc());
        break;
      }
      case LibraryOp::kConvolutionBackwardData:
      case LibraryOp::kConvolutionBackwardWeights: {
        const dnnl::convolution_forward::primitive_desc hint({dnnl::prop_kind::forward_training, kAlgorithm, asked[0],
                                                              asked[1], asked[2], strides, dilations, low, high},
                                                             attr, Cpu());
        if (spec.op == LibraryOp::kConvolutionBackwardData) {
          const dnnl::convolution_backward_data::primitive_desc made(
              {kAlgorithm, asked[0], asked[1], asked[2], strides, dilations, low, high}, attr, Cpu(), hint);
          Take<dnnl::convolution_backward_data>(made, made.diff_src_desc(), made.weights_desc(), made.diff_dst_desc());
        } else {
          const dnnl::convolution_backward_weights::primitive_desc made(
              {kAlgorithm, asked[0], asked[1], asked[2], strides, dilations, low, high}, attr, Cpu(), hint);
          Take<dnnl::convolution_backward_weights>(made, made.src_desc(), made.diff_weights_desc(),
                                                   made.diff_dst_desc());
        }
        break;
      }
    }
    if (reversed) {
      for (int d = 0; d < rank; ++d) reversed_ += spec.reversed[d] ? 'r' : 'f';
    }
    if (!roles_[1].same) {
      bool of_dims[LibraryArray::kMaxRank] = {};
      for (int d = 0; reversed && d < rank; ++d) of_dims[spec.weights.rank - rank + d] = spec.reversed[d];
      auto packing = std::make_unique<WeightsPacking>();
      if (packing->Init(roles_[1].plain, roles_[1].packed, of_dims) && PacksFaster(spec, *packing)) {
        packing_ = std::move(packing);
      }
    }
    if (!reversed || packing_ != nullptr) return;
    reversal_ = std::make_unique<WeightsReversal>();
    if (roles_[1].same || !reversal_->Init(roles_[1].packed, spec.reversed, rank)) {
      throw dnnl::error(dnnl_unimplemented, "no layout of weights in reverse order");
    }
  }

  int64_t scratch_bytes() const override { return scratch_; }
  int64_t packed_bytes(LibraryRole role) const override {
    const Role& r = roles_[static_cast<size_t>(role)];
    return r.same ? 0 : static_cast<int64_t>(r.packed.get_size());
  }
  std::string weights_layout() const override {
    const dnnl_memory_desc_t& md = roles_[1].packed.data;
    const dnnl_blocking_desc_t& blocking = md.format_desc.blocking;
    std::string text = std::to_string(md.data_type) + ':' + std::to_string(md.extra.flags);
    const auto append = [&](char before, const auto* values, int count) {
      for (int i = 0; i < count; ++i) text += before + std::to_string(values[i]);
    };
    append(',', md.padded_dims, md.ndims);
    append('s', blocking.strides, md.ndims);
    append('b', blocking.inner_blks, blocking.inner_nblks);
    append('i', blocking.inner_idxs, blocking.inner_nblks);
    append('p', roles_[1].plain.data.format_desc.blocking.strides, md.ndims);
    return text + reversed_;
  }

  bool Pack(LibraryRole role, const void* plain, void* packed, void* scratch) const override {
    if (role == LibraryRole::kWeights) {
      for (int64_t part = 0; part < weights_parts(); ++part) {
        if (!PackWeights(part, plain, packed, scratch)) return false;
      }
      return true;
    }
    const Role& r = roles_[static_cast<size_t>(role)];
    return Reorder(r.pack, r.plain, const_cast<void*>(plain), r.packed, packed, scratch);
  }
  bool Unpack(LibraryRole role, const void* packed, void* plain, void* scratch) const override {
    if (role == LibraryRole::kWeights && packing_ != nullptr) {
      for (int64_t part = 0; part < packing_->pieces(); ++part) {
        packing_->Unpack(static_cast<const float*>(packed), static_cast<float*>(plain), part);
      }
      return true;
    }
    const Role& r = roles_[static_cast<size_t>(role)];
    return Reorder(r.unpack, r.packed, const_cast<void*>(packed), r.plain, plain, scratch);
  }
  int64_t weights_parts() const override { return packing_ != nullptr ? packing_->pieces() : 1; }
  bool PackWeights(int64_t part, const void* plain, void* packed, void* scratch) const override {
    if (packing_ != nullptr) {
      packing_->Pack(static_cast<const float*>(plain), static_cast<float*>(packed), part);
      return true;
    }
    const Role& r = roles_[1];
    if (!Reorder(r.pack, r.plain, const_cast<void*>(plain), r.packed, packed, scratch)) return false;
    if (reversal_ != nullptr) reversal_->Run(static_cast<std::byte*>(packed));
    return true;
  }

  bool Run(void* src, void* weights, void* dst, void* scratch) const override {
    const OneThread one;
    try {
      // Pieces of one primitive follow each other, so each thread keeps the arguments of the last one.
      thread_local Arguments arguments;
      if (arguments.primitive != id_) SetArguments(&arguments);
      void* const data[] = {src, weights, dst, scratch};
      for (int i = 0; i < kArguments; ++i) {
        if (dnnl_memory_set_data_handle(arguments.memories[i].get(), data[i]) != dnnl_success) return false;
      }
      return dnnl_primitive_execute(primitive_.Get().get(), Stream().get(), kArguments, arguments.list) == dnnl_success;
    } catch (const std::exception&) {
      return false;
    }
  }

 private:
  // Measured: the library converts weights with a window faster, but not gradients back, nor in reverse order.
  static bool PacksFaster(const LibrarySpec& spec, const WeightsPacking& packing) {
    constexpr int64_t kManyColumns = 64;
    if (packing.columns() != 0 && packing.columns() < kManyColumns) return false;
    if (spec.op == LibraryOp::kProduct || spec.op == LibraryOp::kConvolutionBackwardWeights) return true;
    const int rank = spec.weights.rank;
    if (std::any_of(spec.reversed, spec.reversed + spec.src.rank - 2, [](bool r) { return r; })) return true;
    return std::all_of(spec.weights.dims + rank - (spec.src.rank - 2), spec.weights.dims + rank,
                       [](int64_t size) { return size == 1; });
  }

  static constexpr int kArguments = 4;
  struct Arguments {
    uint64_t primitive = 0;
    memory memories[kArguments];
    dnnl_exec_arg_t list[kArguments];
  };

  void SetArguments(Arguments* arguments) const {
    const bool data = op_ == LibraryOp::kConvolutionBackwardData;
    const bool to_weights = op_ == LibraryOp::kConvolutionBackwardWeights;
    const int names[] = {data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, to_weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS,
                         data || to_weights ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    arguments->primitive = 0;
    for (int i = 0; i < kArguments; ++i) {
      arguments->memories[i] = memory(i < 3 ? roles_[i].packed : scratch_desc_, Cpu(), DNNL_MEMORY_NONE);
      arguments->list[i] = {names[i], arguments->memories[i].get()};
    }
    arguments->primitive = id_;
  }

  static uint64_t NextId() {
    static std::atomic<uint64_t> next = 1;
    return next++;
  }

  // The library's reference implementations are slower than the exact engine's kernels.
  template <typename Primitive, typename Made>
  void Take(const Made& made, memory::desc src, memory::desc weights, memory::desc dst) {
    if (std::string_view(made.impl_info_str()).find("ref") != std::string_view::npos) {
      throw dnnl::error(dnnl_unimplemented, "no fast implementation");
    }
    primitive_.Describe<Primitive>(made);
    scratch_desc_ = made.scratchpad_desc();
    scratch_ = static_cast<int64_t>(scratch_desc_.get_size());
    const memory::desc packed[] = {std::move(src), std::move(weights), std::move(dst)};
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    for (int i = 0; i < 3; ++i) {
      Role& r = roles_[i];
      r.packed = packed[i];
      r.same = r.packed == r.plain;
      if (r.same) continue;
      const dnnl::reorder::primitive_desc pack(Cpu(), r.plain, Cpu(), r.packed, attr);
      const dnnl::reorder::primitive_desc unpack(Cpu(), r.packed, Cpu(), r.plain, attr);
      r.pack.Describe<dnnl::reorder>(pack);
      r.unpack.Describe<dnnl::reorder>(unpack);
      for (const memory::desc& scratch : {pack.scratchpad_desc(), unpack.scratchpad_desc()}) {
        if (scratch.get_size() > reorder_scratch_.get_size()) reorder_scratch_ = scratch;
      }
      scratch_ = std::max(scratch_, static_cast<int64_t>(reorder_scratch_.get_size()));
    }
  }

  bool Reorder(const LazyPrimitive& reorder, const memory::desc& from, void* from_data, const memory::desc& to,
               void* to_data, void* scratch) const {
    const OneThread one;
    try {
      reorder.Get().execute(Stream(), {{DNNL_ARG_FROM, memory(from, Cpu(), from_data)},
                                       {DNNL_ARG_TO, memory(to, Cpu(), to_data)},
                                       {DNNL_ARG_SCRATCHPAD, memory(reorder_scratch_, Cpu(), scratch)}});
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  const LibraryOp op_;
  const uint64_t id_ = NextId();
  Role roles_[3];
  LazyPrimitive primitive_;
  std::unique_ptr<WeightsPacking> packing_;
  std::unique_ptr<WeightsReversal> reversal_;  // after the library's own reorder
  std::string reversed_;
  memory::desc scratch_desc_;
  memory::desc reorder_scratch_;
  int64_t scratch_ = 0;
};

class OnednnLibrary : public Library {
 public:
  // Requires that the library was not used before.
  explicit OnednnLibrary(InstructionSet max) {
    switch (max) {
      case InstructionSet::kSse4:
        dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
        break;
      case InstructionSet::kAvx2:
        dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
        break;
      case InstructionSet::kAvx512:
        break;
    }
  }
  LibraryPrimitive* Create(const LibrarySpec& spec, const LibraryPrimitive* like) override {
    const OneThread one;
    try {
      return new OnednnPrimitive(spec, static_cast<const OnednnPrimitive*>(like));
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  bool IsFast(LibraryType type) const override {
    const auto has = [](dnnl::cpu_isa isa) {
      const auto bits = [](dnnl::cpu_isa i) { return static_cast<unsigned>(i); };
      return (bits(dnnl::get_effective_cpu_isa()) & bits(isa)) == bits(isa);
    };
    switch (type) {
      case LibraryType::kF32:
        return true;
      case LibraryType::kBF16:
        return has(dnnl::cpu_isa::avx512_core_bf16);
      case LibraryType::kS8:
      case LibraryType::kU8:
      case LibraryType::kS32:
        // Without these instructions the library adds products in 16 bits, which may saturate.
        return has(dnnl::cpu_isa::avx512_core_vnni);
    }
    return false;
  }
};

}  // namespace
}  // namespace hlokit::interp::compiled

extern "C" __attribute__((visibility("default"))) hlokit::interp::compiled::Library* HlokitOpenLibrary(
    hlokit::interp::InstructionSet max) {
  static auto* const library = new hlokit::interp::compiled::OnednnLibrary(max);
  return library;
}

extern "C" __attribute__((visibility("default"))) const char* HlokitEngineBuildId() {
  return hlokit::interp::compiled::kEngineBuildId;
}
