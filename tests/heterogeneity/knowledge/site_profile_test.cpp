#include "heterogeneity/knowledge/site_profile.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/system/file.h"

using namespace farstep;
using namespace farstep::heterogeneity;
using Catch::Contains;

namespace {

Json profile_json() {
  return Json::parse(R"({"site": "node2",
    "devices": [{"name": "RTX 2080 Ti", "instructions": null, "products": null, "fp16_tflops": 113.8, "bf16_tflops": null,
                 "memory_bytes": 11811160064, "max_micro_batch": 8,
                 "step_seconds": [{"micro_batch": 4, "seconds": 0.25},
                                  {"micro_batch": 4, "batch": 8, "seconds": 0.5}]}],
    "links": [{"peer": "node1", "rtt_seconds": 0.08, "bandwidth_bits_per_second": 2e8}]})");
}

std::string refusal(const Json& json) {
  try {
    site_profile_from_json(json, "p.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a profile is read and printed without loss") {
  const auto profile = site_profile_from_json(profile_json(), "p.json");
  REQUIRE(profile.site == "node2");
  REQUIRE_FALSE(profile.model);
  REQUIRE(profile.devices.size() == 1);
  REQUIRE_FALSE(profile.devices[0].instructions);
  REQUIRE(profile.devices[0].fp16_tflops == 113.8);
  REQUIRE_FALSE(profile.devices[0].bf16_tflops);
  REQUIRE(profile.devices[0].step_seconds[1].batch == 8);
  REQUIRE(profile.links[0].bandwidth_bits_per_second == 2e8);
  const auto printed = to_json(profile);
  REQUIRE(to_json(site_profile_from_json(printed, "p.json")) == printed);
}

TEST_CASE("a profile names the instructions of a cpu slice") {
  auto json = profile_json();
  json["devices"][0]["instructions"] = "avx2";
  REQUIRE(site_profile_from_json(json, "p.json").devices[0].instructions == InstructionSet::kAvx2);
  json["devices"][0]["instructions"] = "sse";
  REQUIRE_THAT(refusal(json), Contains("devices[0].instructions") && Contains("avx512_bf16"));
}

TEST_CASE("the larger of FP16 and BF16 is a device's speed") {
  DeviceProfile device;
  REQUIRE_FALSE(tflops(device));
  device.tf32_tflops = 500;
  REQUIRE_FALSE(tflops(device));
  device.bf16_tflops = 50;
  REQUIRE(tflops(device) == 50);
  device.fp16_tflops = 60;
  REQUIRE(tflops(device) == 60);
  device.bf16_tflops = 70;
  REQUIRE(tflops(device) == 70);
}

TEST_CASE("numbers that cannot be measured are refused with their path") {
  const std::vector<std::pair<std::string, std::string>> members{
      {"fp16_tflops", "0"},        {"fp16_tflops", "-1"},    {"bf16_tflops", "-0.5"},
      {"tf32_tflops", "\"fast\""}, {"memory_bytes", "0"},    {"max_micro_batch", "-1"},
      {"max_micro_batch", "2.5"},  {"step_seconds", "0.25"}, {"name", "\"\""}};
  for (const auto& [member, value] : members) {
    auto json = profile_json();
    json["devices"][0][member] = Json::parse(value);
    REQUIRE_THAT(refusal(json), Contains("p.json: devices[0]." + member));
  }
  for (const char* seconds : {"0", "-0.25", "null", "[]"}) {
    auto json = profile_json();
    json["devices"][0]["step_seconds"][0]["seconds"] = Json::parse(seconds);
    REQUIRE_THAT(refusal(json), Contains("p.json: devices[0].step_seconds[0].seconds"));
  }
  auto json = profile_json();
  json["devices"][0]["step_seconds"][0].erase("seconds");
  REQUIRE_THAT(refusal(json), Contains("devices[0].step_seconds[0].seconds: is missing"));
  json = profile_json();
  json["devices"][0]["step_seconds"][1]["batch"] = 3;
  REQUIRE_THAT(refusal(json), Contains("devices[0].step_seconds[1].batch: is 3"));
}

TEST_CASE("a profile needs a site with devices and knows no other members") {
  auto json = profile_json();
  json["devices"] = Json::array();
  REQUIRE_THAT(refusal(json), Contains("p.json: devices"));
  json = profile_json();
  json.erase("site");
  REQUIRE_THAT(refusal(json), Contains("p.json: site: is missing"));
  json = profile_json();
  json["devices"][0]["tflops"] = 1;
  REQUIRE_THAT(refusal(json), Contains("p.json: devices[0].tflops: is not a known field"));
  REQUIRE_THAT(refusal(Json::array()), Contains("must be an object"));
}

TEST_CASE("a link leads to another site and stands once") {
  auto json = profile_json();
  json["links"][0]["peer"] = "node2";
  REQUIRE_THAT(refusal(json), Contains("links[0].peer: 'node2' is the site itself"));
  json = profile_json();
  json["links"].push_back(json["links"][0]);
  REQUIRE_THAT(refusal(json), Contains("links[1].peer: 'node1' stands twice"));
}

TEST_CASE("profiles are read from files that are of different sites and of one model") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const Json& json) {
    write_file_durably(folder / name, json.dump());
    return folder / name;
  };
  const auto refusal_of = [](const std::vector<std::filesystem::path>& files) -> std::string {
    try {
      read_site_profiles(files);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  auto json = profile_json();
  const auto node2 = write("2.json", json);
  json["site"] = "node1";
  json["links"] = Json::array();
  json["model"] = {{"parameters", 1000}, {"sequence_length", 128}, {"compute", "bf16"}};
  const auto node1 = write("1.json", json);
  json["site"] = "node3";
  const auto node3 = write("3.json", json);
  json["model"]["sequence_length"] = 256;
  json["site"] = "node4";
  const auto node4 = write("4.json", json);

  const auto profiles = read_site_profiles({node2, node1, node3});
  REQUIRE(profiles.size() == 3);
  REQUIRE(profiles[0].site == "node2");
  REQUIRE(profiles[2].site == "node3");
  REQUIRE(read_site_profiles({}).empty());

  const auto twice = refusal_of({node1, node2, node1});
  REQUIRE_THAT(twice, Contains("site: 'node1' is the site of") && Contains(node1.string()));
  const auto differs = refusal_of({node2, node1, node4});
  REQUIRE_THAT(differs, Contains(node4.string() + ": model") && Contains(node1.string()) &&
                            Contains("sequences of 256") && Contains("sequences of 128"));
  REQUIRE_THAT(refusal_of({folder / "absent.json"}), Contains("absent.json"));
  write_file_durably(folder / "nan.json", R"({"site": "a", "devices": [{"fp16_tflops": NaN}]})");
  REQUIRE_THAT(refusal_of({folder / "nan.json"}), Contains("nan.json"));
  write_file_durably(folder / "huge.json",
                     R"({"site": "a", "devices": [{"name": "x", "fp16_tflops": 1e999}]})");
  REQUIRE_THAT(refusal_of({folder / "huge.json"}), Contains("huge.json"));
}
