#include "outer_optimizer/codec/device_kernels.h"

namespace farstep::outer_optimizer {

namespace {

// Eight warps. With the 46 registers that encode_blocks takes at most, five such blocks fit a
// multiprocessor.
constexpr int kThreads = 256;

// Half a warp, with one thread for each lane. The two halves of a warp work on different blocks. A
// CPU adds up a block in as many lanes, so both round alike and write the same bytes.
class HalfWarp {
 public:
  __device__ HalfWarp()
      : lane_(static_cast<int>(threadIdx.x) % kLanes),
        mask_(threadIdx.x % warpSize < kLanes ? 0x0000ffffU : 0xffff0000U) {}

  template <typename Action>
  __device__ void for_each(int64_t n, const Action& action) const {
    for_each_of_lane(lane_, n, action);
  }
  template <typename Term>
  __device__ int32_t largest(int64_t n, const Term& term) const {
    int32_t largest = largest_of_lane(lane_, n, term);
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      largest = max(largest, __shfl_xor_sync(mask_, largest, distance, kLanes));
    }
    return largest;
  }
  template <typename Term>
  __device__ float sum(int64_t n, const Term& term) const {
    const float own = sum_of_lane(lane_, n, term);
    // In the order of lanes, not in a tree of shuffles: the CPU adds in this order.
    float sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += __shfl_sync(mask_, own, lane, kLanes);
    return sum;
  }
  __device__ void sync() const { __syncwarp(mask_); }

 private:
  int lane_;
  unsigned mask_;
};

__device__ int64_t thread_index() {
  return int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

// The codec's block of this half warp.
template <typename Format>
struct OwnBlock {
  int64_t begin;       // its first value
  int64_t first_byte;  // of its encoding
  int64_t size;        // 0 or less if there is no block

  __device__ OwnBlock(int64_t n, int64_t block) {
    const int64_t index = thread_index() / kLanes;
    begin = index * block;
    // Without a remainder: the CPU's codecs take only blocks whose codes fill whole bytes.
    first_byte = index * (Format::kScaleBytes + code_bytes<Format>(block));
    size = min(block, n - begin);
  }
};

// With a bound of one block a multiprocessor ptxas may use enough registers; by default it aims at
// 40 and spills.
template <typename Format>
__global__ void __launch_bounds__(kThreads, 1)
    encode_blocks(const float* values, int64_t n, int64_t block, std::byte* bytes,
                  float* residual_out) {
  const OwnBlock<Format> own(n, block);
  if (own.size <= 0) return;
  const HalfWarp lanes;
  values += own.begin;
  const auto format = encode_block<Format>(lanes, values, bytes + own.first_byte, own.size);
  if (residual_out == nullptr) return;
  residual_out += own.begin;
  lanes.sync();  // residual_out may be `values`, which all lanes read above
  lanes.for_each(own.size,
                 [=](int64_t k) { residual_out[k] = values[k] - sent_value(format, values[k]); });
}

// Calls sink(k, value) for all values of blocks.
template <typename Format, typename Sink>
__global__ void __launch_bounds__(kThreads)
    decode_blocks(const std::byte* bytes, int64_t n, int64_t block, Sink sink) {
  const OwnBlock<Format> own(n, block);
  if (own.size <= 0) return;
  decode_block<Format>(HalfWarp(), bytes + own.first_byte, own.size,
                       [=](int64_t k, float value) { sink(own.begin + k, value); });
}

// One thread for each value. It writes single bytes, because they may not be aligned.
template <typename Format>
__global__ void __launch_bounds__(kThreads)
    shorten_values(const float* values, int64_t n, std::byte* bytes, float* residual_out) {
  const int64_t k = thread_index();
  if (k >= n) return;
  const uint16_t half = Format::shorten(values[k]);
  bytes[2 * k] = static_cast<std::byte>(half & 0xff);
  bytes[2 * k + 1] = static_cast<std::byte>(half >> 8);
  if (residual_out != nullptr) residual_out[k] = values[k] - Format::lengthen(half);
}

template <typename Format, typename Sink>
__global__ void __launch_bounds__(kThreads)
    lengthen_values(const std::byte* bytes, int64_t n, Sink sink) {
  const int64_t k = thread_index();
  if (k >= n) return;
  const auto low = static_cast<unsigned>(bytes[2 * k]);
  const auto high = static_cast<unsigned>(bytes[2 * k + 1]);
  sink(k, Format::lengthen(static_cast<uint16_t>(low | high << 8)));
}

struct Store {
  float* values;
  __device__ void operator()(int64_t k, float value) const { values[k] = value; }
};

struct AddTo {
  float* sum;
  float coefficient;
  __device__ void operator()(int64_t k, float value) const { sum[k] += coefficient * value; }
};

template <typename Format>
constexpr bool kHasBlocks = requires {
  Format::kBits;
};

unsigned blocks_of_threads(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

// Returns the blocks of threads for the codec's blocks of n values: half a warp for each.
unsigned grid_for(int64_t n, int64_t block) {
  return blocks_of_threads((n + block - 1) / block * kLanes);
}

template <typename Format, typename Sink>
cudaError_t launch_decode(const std::byte* bytes, int64_t n, int64_t block, const Sink& sink,
                          cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  if constexpr (kHasBlocks<Format>) {
    decode_blocks<Format><<<grid_for(n, block), kThreads, 0, stream>>>(bytes, n, block, sink);
  } else {
    lengthen_values<Format><<<blocks_of_threads(n), kThreads, 0, stream>>>(bytes, n, sink);
  }
  return cudaGetLastError();
}

}  // namespace

template <typename Format>
cudaError_t DeviceKernels<Format>::encode(const float* values, int64_t n, int64_t block,
                                          std::byte* bytes, float* residual_out,
                                          cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  if constexpr (kHasBlocks<Format>) {
    encode_blocks<Format>
        <<<grid_for(n, block), kThreads, 0, stream>>>(values, n, block, bytes, residual_out);
  } else {
    shorten_values<Format>
        <<<blocks_of_threads(n), kThreads, 0, stream>>>(values, n, bytes, residual_out);
  }
  return cudaGetLastError();
}

template <typename Format>
cudaError_t DeviceKernels<Format>::decode(const std::byte* bytes, int64_t n, int64_t block,
                                          float* values, cudaStream_t stream) {
  return launch_decode<Format>(bytes, n, block, Store{values}, stream);
}

template <typename Format>
cudaError_t DeviceKernels<Format>::add_decoded(const std::byte* bytes, int64_t n, int64_t block,
                                               float coefficient, float* sum, cudaStream_t stream) {
  return launch_decode<Format>(bytes, n, block, AddTo{sum, coefficient}, stream);
}

template struct DeviceKernels<Fp16Format>;
template struct DeviceKernels<Bf16Format>;
template struct DeviceKernels<Int8Format>;
template struct DeviceKernels<Int4Format>;
template struct DeviceKernels<Int2Format>;

}  // namespace farstep::outer_optimizer
