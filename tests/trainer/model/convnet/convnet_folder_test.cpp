#include "trainer/model/convnet/convnet_folder.h"

#include "tests/support/catch.h"
#include "tests/trainer/model/convnet/small_images.h"
#include "trainer/base/error.h"
#include "trainer/model/convnet/image_task.h"

namespace farstep {

TEST_CASE("a net from a folder classifies images as the one that was saved") {
  const auto config = convnet_of_run(small_image_run(), "run.json", *SmallImages().data());
  ConvNet net(config, at::kCPU, ComputeType::kFP32);
  auto& parameters = net.parameters();
  parameters.initialise(3);
  const TemporaryFolder folder;
  const auto named = named_parameters(parameters.layout(), parameters.host_values().pull());
  write_hf_folder(folder.path(), convnet_to_json(config), named);
  const auto opened = open_convnet(read_hf_folder(folder.path()), 1);
  CHECK(opened.config == config);
  CHECK(at::equal(opened.net->parameters().values(), parameters.values()));
  const auto images = at::sin(at::arange(2 * 64, at::kFloat)).view({2, 1, 8, 8});
  CHECK(at::equal(opened.net->logits(images), net.logits(images)));

  auto wider = config;
  wider.first_channels = 8;
  write_hf_folder(folder.path(), convnet_to_json(wider), named);
  CHECK_THROWS_AS(open_convnet(read_hf_folder(folder.path()), 1), DataError);
}

}  // namespace farstep
