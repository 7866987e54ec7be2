#include "trainer/init/config_files.h"

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/config/config_file.h"
#include "trainer/settings/load_config.h"
#include "wan/link/lanes.h"
#include "wan/secure/credentials.h"
#include "wan/secure/key_folder.h"

namespace farstep {

namespace {

using Catch::Contains;
namespace fs = std::filesystem;

InitPlan plan_of_three() {
  InitPlan plan;
  plan.run = "mine";
  plan.sites = {{"seoul", "203.0.113.10", std::nullopt},
                {"lyon", "198.51.100.4", 7500},
                {"home", "", std::nullopt}};
  plan.host = "seoul";
  plan.data = "data/mine";
  plan.preset = ModelPreset::k150M;
  plan.device = DeviceKind::kCuda;
  plan.rounds = 200;
  plan.base_steps = 500;
  plan.base_batch = 64;
  plan.micro_batch = 8;
  plan.sequence_length = 1024;
  return plan;
}

}  // namespace

TEST_CASE("the files of a run with keys say where each site is reached, and no more") {
  const auto files = config_files(plan_of_three(), "mine");
  REQUIRE(files.size() == 4);
  CHECK(files[0].path == "mine/run.json");
  CHECK(files[0].content ==
        Json::parse(R"({"name": "mine", "sites": [{"name": "seoul"}, {"name": "lyon"},
          {"name": "home"}], "min_sites": 2, "model": {"preset": "150m"}, "data": {"sequence_length": 1024},
          "outer": {"rounds": 200, "learning_rate": 1.0, "momentum": 0.7},
          "plan": {"policy": "hybrid", "base_steps": 500, "base_batch": 64, "micro_batch": 8}})"));
  CHECK(files[1].content == Json::parse(R"({"name": "seoul", "run": "run.json",
          "coordinator": {"endpoint": "tcp://203.0.113.10:7400", "host": true},
          "network": {"address": "203.0.113.10", "keys": "keys/sites/seoul"},
          "devices": [{"kind": "cuda"}], "data": "../data/mine", "output": "runs"})"));
  CHECK(files[2].content == Json::parse(R"({"name": "lyon", "run": "run.json",
          "coordinator": {"endpoint": "tcp://203.0.113.10:7400", "site": "seoul"},
          "network": {"address": "198.51.100.4", "port": 7500, "keys": "keys/sites/lyon"},
          "devices": [{"kind": "cuda"}], "data": "../data/mine", "output": "runs"})"));
  CHECK(files[3].content["network"] == Json::parse(R"({"keys": "keys/sites/home"})"));
}

TEST_CASE("without keys the data ports follow the coordinator's, apart at one address") {
  auto plan = plan_of_three();
  plan.has_keys = false;
  plan.sites = {{"a", "fd00::1", std::nullopt}, {"b", "fd00::2", std::nullopt}};
  plan.host = "a";
  auto files = config_files(plan, "mine");
  CHECK(files[1].content["coordinator"]["endpoint"] == "tcp://[fd00::1]:7400");
  CHECK(files[1].content["network"] == Json::parse(R"({"address": "fd00::1", "port": 7401})"));
  CHECK(files[2].content["network"] == Json::parse(R"({"address": "fd00::2", "port": 7401})"));
  CHECK_FALSE(files[2].content["coordinator"].contains("site"));

  plan.sites.back().address = "10.0.0.2";
  CHECK_THROWS_WITH(config_files(plan, "mine"), Contains("without keys sites of both kinds"));

  // By default two lanes join two sites, which take four ports of each.
  plan.sites = {{"a", "127.0.0.1", 9000}, {"b", "127.0.0.1", std::nullopt}};
  files = config_files(plan, "mine");
  CHECK(files[1].content["coordinator"]["endpoint"] == "tcp://127.0.0.1:9000");
  CHECK(files[1].content["network"]["port"] == 9001);
  CHECK(files[2].content["network"]["port"] == 9005);
}

TEST_CASE("sites of one machine have ports apart, however many sites are left") {
  auto plan = plan_of_three();
  plan.has_keys = false;
  plan.host = "a";
  for (std::size_t sites = 2; sites <= 12; ++sites) {
    CAPTURE(sites);
    plan.sites.clear();
    for (std::size_t i = 0; i < sites; ++i) {
      plan.sites.push_back({std::string(1, static_cast<char>('a' + i)), "127.0.0.1", std::nullopt});
    }
    const auto files = config_files(plan, "mine");
    for (std::size_t i = 1; i < sites; ++i) {
      const auto port = [&](std::size_t file) {
        return files[file].content["network"]["port"].get<int64_t>();
      };
      const int64_t room = port(i + 1) - port(i);
      for (int64_t left = 1; left <= static_cast<int64_t>(sites); ++left) {
        CHECK(room >= left * wan::lanes_for(left));
      }
    }
  }
}

TEST_CASE("sites that would share ports are refused") {
  auto plan = plan_of_three();
  plan.host = "a";
  const auto files_with = [&](bool keys, int64_t second) {
    plan.has_keys = keys;
    plan.sites = {{"a", "127.0.0.1", 9000}, {"b", "127.0.0.1", second}};
    return config_files(plan, "mine");
  };
  // The coordinator and four ports for two lanes.
  const std::string message =
      "farstep init: --sites: a and b share ports of 127.0.0.1: they need 9000 to 9004 and 9001 to "
      "9004; give b a port from 9005 on, or leave it out";
  CHECK_THROWS_WITH(files_with(false, 9001), message);
  for (const int64_t taken : {8997, 9000, 9004}) {
    CHECK_THROWS_AS(files_with(false, taken), ConfigError);
  }
  for (const int64_t free : {8996, 9005}) CHECK_NOTHROW(files_with(false, free));
  CHECK_THROWS_AS(files_with(true, 9000), ConfigError);
  CHECK_NOTHROW(files_with(true, 9001));
}

TEST_CASE("a model to start from is named for every site") {
  auto plan = plan_of_three();
  plan.model_from = "models/SmolLM2-135M";
  const auto files = config_files(plan, "mine");
  CHECK(files[0].content["model"] == Json::parse(R"({"from": "SmolLM2-135M"})"));
  CHECK(files[1].content["models"] == "../models");
  plan.model_from = "/srv/llama";
  plan.data = "/srv/data";
  const auto absolute = config_files(plan, "mine");
  CHECK(absolute[1].content["models"] == "/srv");
  CHECK(absolute[1].content["data"] == "/srv/data");
}

TEST_CASE("written files load as the sites will load them, and the keys are the sites'") {
  const TemporaryFolder temporary;
  const auto folder = temporary / "mine";
  const auto plan = plan_of_three();
  write_run_folder(plan, folder, false);
  for (const auto& site : plan.sites) {
    const auto loaded = load_site(folder / (site.name + ".json"), {});
    REQUIRE(loaded.run);
    CHECK(run_config_from_json(*loaded.run, loaded.run_file).sites.size() == 3);
    const auto identity = wan::Credentials::from_folder(loaded.site.network.keys).identity();
    CHECK(identity == wan::Identity{"mine", site.name});
  }
}

TEST_CASE("nothing that exists is replaced without force, and keys never are") {
  const TemporaryFolder temporary;
  const auto folder = temporary / "mine";
  auto plan = plan_of_three();
  fs::create_directories(folder);
  write_file(folder / "lyon.json", "mine");
  CHECK_THROWS_WITH(write_run_folder(plan, folder, false),
                    Contains("lyon.json") && Contains("--force"));
  CHECK_FALSE(fs::exists(folder / "run.json"));
  CHECK_FALSE(fs::exists(folder / "keys"));
  write_run_folder(plan, folder, true);
  CHECK(load_json(folder / "lyon.json")["name"] == "lyon");

  const auto key = folder / "keys" / "sites" / "lyon" / "site.key";
  const auto before = read_file(key);
  plan.sites.push_back({"oslo", "192.0.2.9", std::nullopt});
  CHECK_THROWS_AS(write_run_folder(plan, folder, false), ConfigError);
  write_run_folder(plan, folder, true);
  CHECK(read_file(key) == before);
  CHECK(fs::exists(folder / "keys" / "sites" / "oslo" / "site.key"));
  plan.run = "other";
  plan.sites.push_back({"bergen", "192.0.2.10", std::nullopt});
  CHECK_THROWS_WITH(write_run_folder(plan, folder, true), Contains("keys of run 'mine'"));
  CHECK_FALSE(fs::exists(folder / "keys" / "sites" / "bergen"));
}

TEST_CASE(
    "keys of another run are refused by their authority, whatever lies in the sites' folder") {
  const TemporaryFolder temporary;
  const auto folder = temporary / "mine";
  auto plan = plan_of_three();
  make_folder(folder);
  wan::make_key_folder(folder / "keys", "other");
  CHECK_THROWS_WITH(write_run_folder(plan, folder, true), Contains("keys of run 'other'"));
  CHECK(fs::is_empty(folder / "keys" / "sites"));
  // What a call that was killed leaves, and what a file manager does.
  write_file(folder / "keys" / "sites" / ".DS_Store", "");
  make_folder(folder / "keys" / "sites" / ".part");
  CHECK_THROWS_WITH(write_run_folder(plan, folder, true), Contains("keys of run 'other'"));
  plan.run = "other";
  write_run_folder(plan, folder, true);
  CHECK(fs::exists(folder / "keys" / "sites" / "lyon" / "site.key"));
}

TEST_CASE("sites of another authority are refused, and no authority is made beside them") {
  const TemporaryFolder temporary;
  const auto folder = temporary / "mine", keys = folder / "keys";
  auto plan = plan_of_three();
  write_run_folder(plan, folder, false);
  const auto site = wan::site_key_folder(keys, plan.sites.front().name);
  fs::remove(keys / "authority.key");
  fs::remove(keys / "authority.crt");
  write_run_folder(plan, folder, true);  // no site needs it
  plan.sites.push_back({"oslo", "192.0.2.9", std::nullopt});
  CHECK_THROWS_WITH(write_run_folder(plan, folder, true), Contains("not the authority.key"));
  CHECK_FALSE(fs::exists(keys / "authority.key"));

  plan.run = "other";
  write_run_folder(plan, temporary / "other", false);
  const auto copied = wan::site_key_folder(temporary / "other" / "keys", plan.sites.front().name);
  fs::remove_all(copied);
  fs::copy(site, copied, fs::copy_options::recursive);
  CHECK_THROWS_WITH(write_run_folder(plan, temporary / "other", true),
                    Contains("keys of run 'mine'"));
}

TEST_CASE("what a strict reader refuses is refused before anything is written") {
  const TemporaryFolder temporary;
  const auto folder = temporary / "mine";
  auto plan = plan_of_three();
  plan.sites[1].name = "not a name";
  CHECK_THROWS_AS(write_run_folder(plan, folder, false), ConfigError);
  CHECK_FALSE(fs::exists(folder));
}

}  // namespace farstep
