#include "outer_optimizer/codec/device_codec.h"

#include "outer_optimizer/codec/feedback.h"
#include "tests/outer_optimizer/codec/every_codec.h"
#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "trainer/base/error.h"
#include "trainer/cuda/device_array.h"

namespace farstep::outer_optimizer {
namespace {

// The codecs that GPUs have, with blocks of many sizes.
Codecs device_codecs() {
  Codecs codecs;
  codecs.push_back(std::make_unique<Fp16Codec>());
  codecs.push_back(std::make_unique<Bf16Codec>());
  for (const int64_t block : {256, 1, 7}) codecs.push_back(std::make_unique<Int8Codec>(block));
  for (const int64_t block : {160, 2, 34}) codecs.push_back(std::make_unique<Int4Codec>(block));
  for (const int64_t block : {512, 4, 36}) codecs.push_back(std::make_unique<Int2Codec>(block));
  codecs.push_back(std::make_unique<Int4Codec>(kLargestBlock));
  return codecs;
}

TEST_CASE("codecs that a GPU lacks are config errors that name those it has") {
  for (const auto& codec : every_codec()) {
    if (codec->name() == "fp32" || codec->name() == "top_k") {
      CHECK_THROWS_AS(make_device_codec(*codec), ConfigError);
      CHECK_THROWS_WITH(make_device_codec(*codec), Catch::Contains("int8, int4 and int2"));
    } else {
      CHECK(make_device_codec(*codec) != nullptr);
    }
  }
}

TEST_CASE("nothing is encoded without a GPU too") {
  for (const auto& codec : device_codecs()) {
    const auto device = make_device_codec(*codec);
    CHECK_NOTHROW(device->encode(nullptr, 0, nullptr, nullptr));
    CHECK_NOTHROW(device->encode_with_feedback(nullptr, 0, nullptr, nullptr, nullptr));
    CHECK_NOTHROW(device->decode(nullptr, 0, nullptr, nullptr));
    CHECK_NOTHROW(device->add_decoded(nullptr, 0, 1, nullptr, nullptr));
  }
}

TEST_CASE("a GPU gives the bytes and residuals of the CPU", "[gpu]") {
  if (lacks_gpu()) return;
  for (const auto& codec : device_codecs()) {
    const auto device = make_device_codec(*codec);
    for (const int64_t size : sizes_for(*codec)) {
      for (const auto& values : value_sets(size)) {
        INFO(describe(*codec) << ", " << size << " values");
        std::vector<std::byte> expected(static_cast<std::size_t>(codec->encoded_bytes(size)));
        std::vector<float> expected_residual(values.size());
        encode_with_feedback(*codec, values, expected, expected_residual);

        DeviceArray<float> on_gpu{std::span<const float>(values)};
        DeviceArray<std::byte> bytes(expected.size());
        device->encode(on_gpu.data(), size, bytes.data(), nullptr);
        REQUIRE(bytes.download() == expected);
        REQUIRE(same_values(on_gpu.download(), values));

        DeviceArray<std::byte> fed_back(expected.size());
        device->encode_with_feedback(on_gpu.data(), size, fed_back.data(), on_gpu.data(), nullptr);
        REQUIRE(fed_back.download() == expected);
        REQUIRE(same_values(on_gpu.download(), expected_residual));
      }
    }
  }
}

TEST_CASE("a GPU decodes and adds as the CPU does", "[gpu]") {
  if (lacks_gpu()) return;
  for (const auto& codec : device_codecs()) {
    const auto device = make_device_codec(*codec);
    for (const int64_t size : sizes_for(*codec)) {
      for (const auto& values : value_sets(size)) {
        INFO(describe(*codec) << ", " << size << " values");
        const auto encoding = encoded(*codec, values);
        DeviceArray<std::byte> bytes{std::span<const std::byte>(encoding)};
        DeviceArray<float> got(values.size());
        device->decode(bytes.data(), size, got.data(), nullptr);
        REQUIRE(same_values(got.download(), decoded(*codec, encoding, values.size())));

        auto sum = gaussian(size, 2);
        got.upload(sum);
        device->add_decoded(bytes.data(), size, 1.0F / 3, got.data(), nullptr);
        codec->add_decoded(encoding, 1.0F / 3, sum);
        REQUIRE(same_values(got.download(), sum));
      }
    }
  }
}

TEST_CASE("a GPU takes bytes from an odd address and ten million values", "[gpu]") {
  if (lacks_gpu()) return;
  const auto values = gaussian(10'000'001);
  const DeviceArray<float> on_gpu{std::span<const float>(values)};
  for (const auto& codec : device_codecs()) {
    INFO(describe(*codec));
    const auto expected = encoded(*codec, values);
    DeviceArray<std::byte> bytes(expected.size() + 1);
    make_device_codec(*codec)->encode(on_gpu.data(), std::ssize(values), bytes.data() + 1, nullptr);
    const auto got = bytes.download();
    REQUIRE(std::equal(got.begin() + 1, got.end(), expected.begin(), expected.end()));
  }
}

}  // namespace
}  // namespace farstep::outer_optimizer
