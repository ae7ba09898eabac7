// SPDX-License-Identifier: Apache-2.0
#include "bench/engine/library.h"

#ifdef HLOKIT_BENCH_HAS_ONEDNN
#include <omp.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "oneapi/dnnl/dnnl.hpp"
#endif

namespace hlokit::bench {

#ifdef HLOKIT_BENCH_HAS_ONEDNN
namespace {

using dnnl::memory;

const dnnl::engine& Cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory Filled(const memory::desc& desc) {
  memory made(desc, Cpu());
  float* const values = static_cast<float*>(made.get_data_handle());
  std::fill(values, values + desc.get_size() / sizeof(float), 0.5f);
  return made;
}

struct Primitive {
  dnnl::primitive primitive;
  dnnl::stream stream{Cpu()};
  std::unordered_map<int, memory> arguments;
  int threads = 1;

  void Run() {
    omp_set_num_threads(threads);
    primitive.execute(stream, arguments);
    stream.wait();
    omp_set_num_threads(1);
  }
};

template <typename Make>
std::function<void()> TryMake(int threads, const Make& make) {
  omp_set_num_threads(threads);
  std::function<void()> run;
  try {
    auto primitive = std::make_shared<Primitive>();
    primitive->threads = threads;
    make(primitive.get());
    run = [primitive] { primitive->Run(); };
  } catch (const dnnl::error&) {
  }
  omp_set_num_threads(1);
  return run;
}

memory::desc Any(memory::dims dims) { return {std::move(dims), memory::data_type::f32, memory::format_tag::any}; }

}  // namespace

std::function<void()> LibraryProduct(const ProductSizes& s, int threads) {
  return TryMake(threads, [&](Primitive* p) {
    const memory::desc src({s.batch, s.rows, s.depth}, memory::data_type::f32, memory::format_tag::abc);
    const memory::desc dst({s.batch, s.rows, s.columns}, memory::data_type::f32, memory::format_tag::abc);
    const dnnl::matmul::primitive_desc made({src, Any({s.batch, s.depth, s.columns}), dst}, Cpu());
    p->primitive = dnnl::matmul(made);
    p->arguments = {{DNNL_ARG_SRC, Filled(made.src_desc())},
                    {DNNL_ARG_WEIGHTS, Filled(made.weights_desc())},
                    {DNNL_ARG_DST, Filled(made.dst_desc())}};
  });
}

std::function<void()> LibraryConvolution(const ConvolutionSizes& s, Gradient gradient, int threads) {
  return TryMake(threads, [&](Primitive* p) {
    const memory::desc src = Any({s.batch, s.inputs, s.size, s.size});
    const memory::desc weights = Any({s.outputs, s.inputs, s.kernel, s.kernel});
    const memory::desc dst = Any({s.batch, s.outputs, s.result_size(), s.result_size()});
    const memory::dims strides = {s.stride, s.stride}, low = {s.padding, s.padding};
    // What the last window does not reach.
    const int64_t end = (s.result_size() - 1) * s.stride + s.kernel - s.size - s.padding;
    const memory::dims high = {end, end};
    constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, kAlgorithm, src, weights, dst, strides, low, high}, Cpu());
    if (gradient == Gradient::kNone) {
      p->primitive = dnnl::convolution_forward(forward);
      p->arguments = {{DNNL_ARG_SRC, Filled(forward.src_desc())},
                      {DNNL_ARG_WEIGHTS, Filled(forward.weights_desc())},
                      {DNNL_ARG_DST, Filled(forward.dst_desc())}};
    } else if (gradient == Gradient::kData) {
      const dnnl::convolution_backward_data::primitive_desc made({kAlgorithm, src, weights, dst, strides, low, high},
                                                                 Cpu(), forward);
      p->primitive = dnnl::convolution_backward_data(made);
      p->arguments = {{DNNL_ARG_DIFF_SRC, Filled(made.diff_src_desc())},
                      {DNNL_ARG_WEIGHTS, Filled(made.weights_desc())},
                      {DNNL_ARG_DIFF_DST, Filled(made.diff_dst_desc())}};
    } else {
      const dnnl::convolution_backward_weights::primitive_desc made({kAlgorithm, src, weights, dst, strides, low, high},
                                                                    Cpu(), forward);
      p->primitive = dnnl::convolution_backward_weights(made);
      p->arguments = {{DNNL_ARG_SRC, Filled(made.src_desc())},
                      {DNNL_ARG_DIFF_WEIGHTS, Filled(made.diff_weights_desc())},
                      {DNNL_ARG_DIFF_DST, Filled(made.diff_dst_desc())}};
    }
  });
}
#else
std::function<void()> LibraryProduct(const ProductSizes&, int) { return nullptr; }
std::function<void()> LibraryConvolution(const ConvolutionSizes&, Gradient, int) { return nullptr; }
#endif

}  // namespace hlokit::bench
