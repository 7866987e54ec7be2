#include "trainer/settings/load_config.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/config/config_file.h"

using namespace farstep;
using Catch::Contains;

namespace {

// A folder with a run file and a site's config, of which each test changes what it is about.
class Cluster {
 public:
  Cluster() {
    write("run.json", run);
    write("site.json", site);
  }
  void write(const std::string& name, const Json& json) {
    std::ofstream(folder_ / name) << json.dump();
  }
  LoadedSite load(const std::vector<std::string>& overrides = {}) {
    return load_site(folder_ / "site.json", overrides);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string refusal(const std::string& override_text) {
    try {
      load({override_text});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  Json run = Json::parse(R"({"name":"r","sites":[{"name":"a"},{"name":"b"}]})");
  Json site = Json::parse(R"({"name":"a","run":"run.json",
      "coordinator":{"endpoint":"tcp://127.0.0.1:7000","host":true},
      "network":{"address":"127.0.0.1"},"devices":[{"kind":"cpu"}],
      "data":"../data","output":"/var/out"})");

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a site's paths are relative to its config's folder") {
  Cluster cluster;
  const auto loaded = cluster.load();
  CHECK(loaded.site.output == "/var/out");
  CHECK(loaded.site.folder() == "/var/out/" + loaded.site.name);
  CHECK(loaded.site.data ==
        std::filesystem::path(cluster.path("../data")).lexically_normal().string());
  CHECK(loaded.site.run == cluster.path("run.json"));
  CHECK(loaded.run_file == cluster.path("run.json"));
}

TEST_CASE("a site's run comes with all defaults so that equal runs compare equal") {
  Cluster cluster;
  const auto plain = cluster.load();
  REQUIRE(plain.run.has_value());
  cluster.run["seed"] = 1;
  cluster.write("run.json", cluster.run);
  CHECK_FALSE(first_difference(*plain.run, *cluster.load().run));
  CHECK(first_difference(*plain.run, *cluster.load({"run.seed=2"}).run) == "seed: 1 here, 2 there");
}

TEST_CASE("a site may be limited to instructions that its processor has") {
  Cluster cluster;
  CHECK_FALSE(cluster.load().site.cpu.instructions);
  const auto widest = widest_instruction_set();
  const auto names = enum_names(widest);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto set = static_cast<InstructionSet>(i);
    const auto change = "cpu.instructions=" + std::string(names[i]);
    if (set <= widest) {
      CHECK(cluster.load({change}).site.cpu.instructions == set);
    } else {
      CHECK(cluster.refusal(change) ==
            fmt::format("{}: cpu.instructions: is {}; this processor has no more than {}",
                        cluster.path("site.json"), names[i], name_of(widest)));
    }
  }
  CHECK_THAT(cluster.refusal("cpu.instructions=sse"), Contains("baseline"));
}

TEST_CASE("overrides reach the site and with run. its run file") {
  Cluster cluster;
  const auto loaded = cluster.load(
      {"devices[0].threads=3", "run.outer.rounds=4", "coordinator.endpoint=tcp://10.0.0.1:1"});
  CHECK(loaded.site.devices[0].threads == 3);
  CHECK(loaded.site.coordinator.endpoint == "tcp://10.0.0.1:1");
  CHECK((*loaded.run)["outer"]["rounds"] == 4);
  CHECK(cluster.refusal("run.outer.ruonds=4") ==
        cluster.path("run.json") + ": outer.ruonds: is not a known field; did you mean 'rounds'?");
  CHECK(cluster.refusal("devices[0].thread=4") ==
        cluster.path("site.json") +
            ": devices[0].thread: is not a known field; did you mean 'threads'?");
}

TEST_CASE("a site that does not host the coordinator needs no run file") {
  Cluster cluster;
  cluster.site["coordinator"]["host"] = false;
  cluster.site.erase("run");
  cluster.write("site.json", cluster.site);
  CHECK_FALSE(cluster.load().run.has_value());
  CHECK_THAT(cluster.refusal("run.seed=2"), Contains("names no run file to change"));
  CHECK_THAT(cluster.refusal("coordinator.host=true"), Contains("site.json: run: is missing"));
}

TEST_CASE("a run may have several coordinators, of which a site hosts the one of its name") {
  Cluster cluster;
  CHECK(cluster.load().site.coordinators().size() == 1);
  CHECK(cluster.load().site.hosted_coordinator() == 0);
  cluster.site["coordinator"] = Json::parse(R"({"endpoints": [
      {"endpoint": "tcp://10.0.0.1:7000"}, {"endpoint": "tcp://10.0.0.2:7000", "site": "a"}]})");
  cluster.write("site.json", cluster.site);
  const auto site = cluster.load().site;
  CHECK(site.coordinators().size() == 2);
  CHECK(site.hosted_coordinator() == 1);
  CHECK_FALSE(cluster.load({"coordinator.endpoints[1].site=b"}).site.hosted_coordinator());
  CHECK_THAT(cluster.refusal("run="), Contains("site.json: run: is missing"));
  CHECK_THAT(cluster.refusal("coordinator.endpoint=tcp://10.0.0.3:1"),
             Contains("coordinator: must have either endpoint or endpoints"));
  CHECK_THAT(cluster.refusal("coordinator.endpoints=[]"), Contains("must have either endpoint"));
  CHECK_THAT(cluster.refusal("coordinator.host=true"),
             Contains("coordinator.host: is for endpoint: with endpoints, set the site of each"));
  CHECK_THAT(cluster.refusal("coordinator.endpoints[0].site=a"),
             Contains("coordinator.endpoints[1].site: is a, which stands twice"));
  CHECK_THAT(cluster.refusal("coordinator.endpoints[0].endpoint=tcp://10.0.0.2:7000"),
             Contains("coordinator.endpoints[1].endpoint: is tcp://10.0.0.2:7000, which stands"));
  CHECK_THAT(cluster.refusal("network.keys=keys"),
             Contains("coordinator.endpoints[0].site: is missing; with network.keys"));
}

TEST_CASE("a run with stand-by coordinators needs more than half of its sites") {
  Cluster cluster;
  cluster.run["sites"] = Json::parse(R"([{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}])");
  cluster.write("run.json", cluster.run);
  CHECK(cluster.refusal("run.min_sites=2").empty());
  cluster.write("coordinator.json",
                Json{{"run", "run.json"}, {"endpoint", "tcp://127.0.0.1:7000"}});
  const auto load = [&](const std::vector<std::string>& settings) {
    return load_coordinator(cluster.path("coordinator.json"), settings).coordinator.place;
  };
  CHECK_FALSE(load({"run.min_sites=1"}));
  CHECK(load({"place=1"}) == 1);
  CHECK(load({"place=15", "run.min_sites=3"}) == 15);
  CHECK_THROWS_WITH(load({"place=1", "run.min_sites=2"}),
                    Contains("run.json: min_sites: is 2; with stand-by coordinators it must be at "
                             "least 3, more than half of the sites"));
  CHECK_THROWS_WITH(load({"place=16"}), Contains("place: is 16"));
  cluster.site["coordinator"] = Json::parse(R"({"endpoints": [
      {"endpoint": "tcp://10.0.0.1:7000", "site": "a"}, {"endpoint": "tcp://10.0.0.2:7000"}]})");
  cluster.write("site.json", cluster.site);
  CHECK_THAT(cluster.refusal("run.min_sites=2"), Contains("at least 3, more than half"));
  CHECK(cluster.refusal("run.min_sites=3").empty());
}

TEST_CASE("members that exclude each other are refused with their path") {
  Cluster cluster;
  CHECK_THAT(cluster.refusal("network.interface=eth0"),
             Contains("site.json: network: must have either"));
  CHECK_THAT(cluster.refusal("network.address="), Contains("site.json: network: must have either"));
  CHECK_THAT(cluster.refusal(R"(devices[0].emulate={})"),
             Contains("site.json: devices[0].emulate: must have one of"));
  CHECK_THAT(cluster.refusal(R"(devices[0].emulate={"times":2,"step_seconds":1})"),
             Contains("site.json: devices[0].emulate: must have one of"));
  CHECK(cluster.refusal("devices[0].emulate.times=2").empty());
  CHECK_THAT(cluster.refusal(R"(devices[0].emulate={"times":2,"changes":[{"step":5,"times":2},)"
                             R"({"step":5,"times":1}]})"),
             Contains("site.json: devices[0].emulate.changes[1].step: is 5; must be above"));
}

TEST_CASE("cores are one a thread and of one cpu slice each") {
  Cluster cluster;
  CHECK(cluster.refusal("devices[0].cores=[5]").empty());
  CHECK_THAT(cluster.refusal("devices[0].cores=[0,1]"),
             Contains("site.json: devices[0].cores: has 2 cores for 1 threads"));
  CHECK_THAT(cluster.refusal("devices[0].cores=[-1]"),
             Contains("site.json: devices[0].cores[0]: is -1; must be at least 0"));
  CHECK_THAT(cluster.refusal(R"(devices=[{"cores":[3]},{"cores":[1,3],"threads":2}])"),
             Contains("site.json: devices[1].cores[1]: is 3, which stands twice"));
  CHECK_THAT(cluster.refusal(R"(devices=[{"kind":"cuda","cores":[3]}])"),
             Contains("site.json: devices[0].cores: only a cpu slice has cores"));
}

TEST_CASE("an emulated link is off unless it is given and then has to change something") {
  Cluster cluster;
  CHECK_FALSE(cluster.load().site.network.emulate.has_value());
  CHECK_FALSE(cluster.load({"network.emulate=null"}).site.network.emulate.has_value());
  const auto link =
      cluster.load({R"(network.emulate={"rate_bits_per_second":4e7,"delay_seconds":0.05})"})
          .site.network.emulate;
  REQUIRE(link.has_value());
  CHECK(link->rate_bits_per_second == 4e7);
  CHECK(link->delay_seconds == 0.05);
  CHECK(link->loss == 0);
  CHECK(cluster.refusal(R"(network.emulate={"delay_seconds":0.05,"loss":0.001})").empty());
  CHECK_THAT(cluster.refusal("network.emulate={}"),
             Contains("site.json: network.emulate: must have rate_bits_per_second or"));
  CHECK_THAT(cluster.refusal(R"(network.emulate={"rate_bits_per_second":1e6,"loss":0.1})"),
             Contains("site.json: network.emulate.loss: needs delay_seconds"));
  CHECK_THAT(cluster.refusal("network.emulate.rate_bits_per_second=0"),
             Contains("network.emulate.rate_bits_per_second: is 0; must be above 0"));
  CHECK_THAT(cluster.refusal(R"(network.emulate={"delay_seconds":1,"loss":2})"),
             Contains("network.emulate.loss: is 2; must be from 0 to 1"));
}

TEST_CASE("a run file that is missing or wrong is named") {
  Cluster cluster;
  CHECK_THAT(cluster.refusal("run=none.json"), Contains(cluster.path("none.json")));
  cluster.run["sites"][1]["name"] = "a";
  cluster.write("run.json", cluster.run);
  CHECK_THROWS_WITH(cluster.load(), Contains("run.json: sites[1].name: 'a' stands twice"));
}

TEST_CASE("the coordinator's config is loaded with its run file") {
  Cluster cluster;
  cluster.write("coordinator.json",
                Json{{"run", "run.json"}, {"endpoint", "tcp://127.0.0.1:7000"}});
  const auto loaded = load_coordinator(cluster.path("coordinator.json"), {"run.seed=9"});
  CHECK(loaded.coordinator.run == cluster.path("run.json"));
  CHECK(loaded.coordinator.output.empty());
  CHECK(loaded.coordinator.journal.empty());
  const auto journal_with = [&](const std::string& setting) {
    return load_coordinator(cluster.path("coordinator.json"), {"output=out", setting})
        .coordinator.journal;
  };
  CHECK(journal_with("journal=") == cluster.path("out/coordinator.journal"));
  CHECK(journal_with("journal=safe/file") == cluster.path("safe/file"));
  CHECK(loaded.run["seed"] == 9);
  CHECK_THROWS_WITH(load_coordinator(cluster.path("coordinator.json"), {"endpoint=3"}),
                    Contains("coordinator.json: endpoint: is 3; must be a string"));
}

TEST_CASE("a site names one folder of data or a mixture") {
  Cluster cluster;
  const auto load = [&](const Json& members) {
    auto site = cluster.site;
    site.erase("data");
    for (const auto& [name, value] : members.items()) site[name] = value;
    cluster.write("site.json", site);
    return cluster.load().site.data_folders();
  };
  const auto refusal = [&](const Json& members) {
    try {
      load(members);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(load(Json::object()).empty());
  const auto one = load(Json{{"data", "d"}});
  REQUIRE(one.size() == 1);
  CHECK(one[0].folder == cluster.path("d"));
  const auto mixture =
      load(Json::parse(R"({"mixture": [{"folder": "c", "weight": 0.3}, {"folder": "/w"}]})"));
  REQUIRE(mixture.size() == 2);
  CHECK((mixture[0].folder == cluster.path("c") && mixture[0].weight == 0.3));
  CHECK((mixture[1].folder == "/w" && mixture[1].weight == 1));
  CHECK_THAT(refusal(Json::parse(R"({"data": "d", "mixture": [{"folder": "c"}]})")),
             Contains("mixture: stands beside data"));
  CHECK_THAT(refusal(Json::parse(R"({"mixture": [{"folder": "c", "weight": 0}]})")),
             Contains("mixture[0].weight"));
}
