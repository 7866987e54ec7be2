// Chosen by the CPU codec's name and block, because its bytes are the contract: whatever a GPU
// encodes, a CPU must decode.
#include "outer_optimizer/codec/device_codec.h"

#include "outer_optimizer/codec/device_kernels.h"

namespace farstep::outer_optimizer {

namespace {

template <typename Format>
class FormatCodec : public DeviceCodec {
 public:
  using Kernels = DeviceKernels<Format>;
  explicit FormatCodec(int64_t block) : block_(block) {}

  void encode(const float* values, int64_t n, std::byte* bytes,
              cudaStream_t stream) const override {
    FARSTEP_CUDA_CHECK(Kernels::encode(values, n, block_, bytes, nullptr, stream));
  }
  void encode_with_feedback(const float* values, int64_t n, std::byte* bytes, float* residual_out,
                            cudaStream_t stream) const override {
    FARSTEP_CUDA_CHECK(Kernels::encode(values, n, block_, bytes, residual_out, stream));
  }
  void decode(const std::byte* bytes, int64_t n, float* values,
              cudaStream_t stream) const override {
    FARSTEP_CUDA_CHECK(Kernels::decode(bytes, n, block_, values, stream));
  }
  void add_decoded(const std::byte* bytes, int64_t n, float coefficient, float* sum,
                   cudaStream_t stream) const override {
    FARSTEP_CUDA_CHECK(Kernels::add_decoded(bytes, n, block_, coefficient, sum, stream));
  }

 private:
  int64_t block_;
};

}  // namespace

std::unique_ptr<DeviceCodec> make_device_codec(const Codec& codec) {
  const auto name = codec.name();
  const int64_t block = codec.block_values();
  if (name == Fp16Format::kName) return std::make_unique<FormatCodec<Fp16Format>>(block);
  if (name == Bf16Format::kName) return std::make_unique<FormatCodec<Bf16Format>>(block);
  if (name == Int8Format::kName) return std::make_unique<FormatCodec<Int8Format>>(block);
  if (name == Int4Format::kName) return std::make_unique<FormatCodec<Int4Format>>(block);
  if (name == Int2Format::kName) return std::make_unique<FormatCodec<Int2Format>>(block);
  throw ConfigError(fmt::format(
      "sync.codec.kind: {} cannot be encoded on a GPU; fp16, bf16, int8, int4 and int2 can", name));
}

}  // namespace farstep::outer_optimizer
