// The run file and the site's config: round trip, help, and what one field cannot check alone.
#include "trainer/settings/run_config.h"

#include <set>

#include "tests/support/catch.h"
#include "tests/trainer/config/random_fields.h"
#include "trainer/config/config_file.h"
#include "trainer/config/setting_list.h"
#include "trainer/settings/load_config.h"

using namespace farstep;
using Catch::Contains;

namespace {

template <typename Config>
void check_round_trip() {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Config config;
    config.fields(RandomFields(seed, seed % 2 == 0));
    const auto printed = to_json(config);
    const auto text = printed.dump(2);
    const auto read = read_json<Config>(Json::parse(text), "f.json");
    INFO(first_difference(printed, to_json(read)).value_or(""));
    REQUIRE(to_json(read).dump(2) == text);
    // The settings that are listed as chosen are all that a file needs to say.
    auto chosen = Json::object();
    for (const auto& line : list_settings(config).chosen) apply_override(chosen, line);
    INFO(chosen.dump(2));
    REQUIRE(to_json(read_json<Config>(chosen, "f.json")).dump(2) == text);
  }
}

// "a.b", "sites[].name": every path of the document that holds no object.
void leaf_paths(const std::string& path, const Json& json, std::set<std::string>& paths) {
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) {
      leaf_paths(path.empty() ? name : path + "." + name, value, paths);
    }
  } else if (json.is_array() && !json.empty() && json[0].is_object()) {
    for (const auto& element : json) leaf_paths(path + "[]", element, paths);
  } else {
    paths.insert(path);
  }
}

template <typename Config>
void check_help_is_complete() {
  Config config;
  config.fields(RandomFields(1, true));
  std::set<std::string> leaves, listed;
  leaf_paths("", to_json(config), leaves);
  for (const auto& row : list_fields<Config>()) {
    CHECK(listed.insert(row.path).second);
    CHECK_FALSE(row.doc.empty());
  }
  for (const auto& leaf : leaves) {
    INFO(leaf);
    CHECK(listed.erase(leaf) == 1);
  }
  // What is left are the rows of lists and optional parts, which stand above their members.
  for (const auto& part : listed) {
    INFO(part);
    const auto below = leaves.lower_bound(part);
    CHECK((below != leaves.end() && below->starts_with(part)));
  }
}

Json smallest_run() {
  return Json::parse(R"({"name":"r","sites":[{"name":"a"},{"name":"b"}]})");
}

std::string refusal_of_all(const std::vector<std::string>& overrides) {
  auto json = smallest_run();
  for (const auto& text : overrides) apply_override(json, text);
  try {
    run_config_from_json(json, "run.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const std::string& override_text) {
  return refusal_of_all({override_text});
}

}  // namespace

TEST_CASE("config printed and parsed is the config") {
  check_round_trip<RunConfig>();
  check_round_trip<SiteConfig>();
  check_round_trip<CoordinatorConfig>();
}

TEST_CASE("help lists every field that is parsed and no other") {
  check_help_is_complete<RunConfig>();
  check_help_is_complete<SiteConfig>();
  check_help_is_complete<CoordinatorConfig>();
}

TEST_CASE("a run file has no secrets, as the records and the pages have all of it") {
  const std::set<std::string> secrets = {"token", "tokens",   "token_file", "key",
                                         "keys",  "key_file", "secret",     "password"};
  for (const auto& row : list_fields<RunConfig>()) {
    INFO(row.path);
    CHECK_FALSE(secrets.contains(row.path.substr(row.path.rfind('.') + 1)));
  }
}

TEST_CASE("a run file needs a name and sites and nothing else") {
  const auto run = run_config_from_json(smallest_run(), "run.json");
  CHECK(run.outer.momentum == 0.9);
  CHECK(run.outer.learning_rate == 0.7);
  CHECK(run.site_id("b") == 1);
  CHECK_THROWS_WITH(run.site_id("c"), Contains("'c' does not take part in run 'r'") &&
                                          Contains("its sites are a, b"));
  CHECK_THROWS_WITH(run_config_from_json(Json::object(), "run.json"), "run.json: name: is missing");
}

TEST_CASE("products are of one of three types or of what the devices are") {
  auto json = smallest_run();
  CHECK(run_config_from_json(json, "run.json").inner.compute == ComputeType::kAuto);
  apply_override(json, "inner.compute=fp8");
  CHECK(run_config_from_json(json, "run.json").inner.compute == ComputeType::kFP8);
  CHECK_THAT(refusal("inner.compute=fp4"),
             Contains("run.json: inner.compute: ") && Contains("auto, fp32, bf16, fp8"));
}

TEST_CASE("who still sets sync.eager reads what has come for it") {
  CHECK(refusal("sync.eager=true") ==
        "run.json: sync.eager: is not a known field; did you mean 'strategy.kind: eager_updates'?");
}

TEST_CASE("strategy.kind alone decides how replicas stay together") {
  for (const auto& [kind, exchange] :
       std::vector<std::pair<std::string, outer_optimizer::ExchangeKind>>{
           {"low_communication", outer_optimizer::ExchangeKind::kDirect},
           {"local_sgd", outer_optimizer::ExchangeKind::kDirect},
           {"ring_all_reduce", outer_optimizer::ExchangeKind::kRing},
           {"parameter_server", outer_optimizer::ExchangeKind::kParameterServer},
           {"data_parallel_master", outer_optimizer::ExchangeKind::kParameterServer}}) {
    CAPTURE(kind);
    auto json = smallest_run();
    apply_override(json, "strategy.kind=" + kind);
    const auto run = run_config_from_json(json, "run.json");
    const bool together = exchange != outer_optimizer::ExchangeKind::kDirect;
    CHECK(run.sync.exchange == exchange);
    CHECK(run.plan.equal_steps == together);
    CHECK((run.deadlines.pause_seconds == 0) == together);
    // The coordinator hands the run out as it prints it.
    const auto again = run_config_from_json(to_json(run), "run.json");
    CHECK(to_json(again) == to_json(run));
    CHECK(again.plan.equal_steps == together);
  }
  auto json = smallest_run();
  apply_override(json, "strategy.kind=ring_all_reduce");
  apply_override(json, "sync.exchange=direct");
  CHECK(run_config_from_json(json, "run.json").sync.exchange ==
        outer_optimizer::ExchangeKind::kDirect);
  CHECK_THAT(refusal_of_all({"strategy.kind=parameter_server", "sync.exchange=ring"}),
             Contains("run.json: strategy.kind: parameter_server needs sync.exchange "
                      "parameter_server"));
}

TEST_CASE("sites that step together take equal steps, all of them") {
  for (const auto& [change, field] : std::vector<std::pair<std::string, std::string>>{
           {"min_sites=1", "min_sites: is 1 of 2 sites"},
           {"max_sites=3", "max_sites: "},
           {"plan.policy=steps_by_tflops", "plan.policy: "},
           {"plan.round_end=deadline", "plan.round_end: "},
           {"deadlines.pause_seconds=1", "deadlines.pause_seconds: "},
           {"sites[1].local_steps=7", "sites[1].local_steps: is 7, and plan.base_steps is 100"}}) {
    CAPTURE(change);
    CHECK_THAT(refusal_of_all({"strategy.kind=parameter_server", change}),
               Contains("run.json: " + field) && Contains("take every step together"));
  }
  for (const auto& [change, need] : std::vector<std::pair<std::string, std::string>>{
           {"sync.fragments=2", "sync.fragments of 1"},
           {"sync.delay_steps=1", "sync.delay_steps of 0"},
           {"sync.alpha=0.5", "sync.alpha of 0"},
           {"sync.codec.kind=int8", "sync.codec of fp32, fp16 or bf16"},
           {"sync.fine_rounds=1", "no sync.fine_rounds"}}) {
    CAPTURE(change);
    CHECK_THAT(refusal_of_all({"strategy.kind=parameter_server", change}),
               Contains("run.json: strategy.kind: sums whole gradients") && Contains(need));
  }
}

TEST_CASE("only a master scatters, and draws in the order that it knows of all") {
  auto json = smallest_run();
  apply_override(json, "strategy.kind=data_parallel_master");
  auto run = run_config_from_json(json, "run.json");
  CHECK(run.master() == "a");
  CHECK((run.reads_data("a") && run.reads_data("b")));
  apply_override(json, "strategy.scatter=true");
  run = run_config_from_json(json, "run.json");
  CHECK((run.reads_data("a") && !run.reads_data("b")));
  apply_override(json, "sync.servers=[\"b\", \"a\"]");
  run = run_config_from_json(json, "run.json");
  CHECK(run.master() == "b");
  CHECK((run.reads_data("b") && !run.reads_data("a")));
  for (const std::string kind : {"low_communication", "ring_all_reduce", "parameter_server"}) {
    CHECK_THAT(refusal_of_all({"strategy.kind=" + kind, "strategy.scatter=true"}),
               Contains("run.json: strategy.scatter: is true, and strategy.kind is " + kind));
  }
  CHECK_THAT(refusal_of_all({"strategy.kind=data_parallel_master", "strategy.scatter=true",
                             "data.order=sequential"}),
             Contains("run.json: data.order: is sequential"));
}

TEST_CASE("an optimizer's settings stand under its name") {
  auto json = smallest_run();
  apply_override(json, "inner.adamw.beta2=0.99");
  CHECK(run_config_from_json(json, "run.json").inner.adamw.beta2 == 0.99);
  for (const std::string name : {"beta1", "beta2", "epsilon", "weight_decay"}) {
    CHECK(refusal("inner." + name + "=0.5") ==
          "run.json: inner." + name + ": is not a known field; did you mean 'adamw." + name + "'?");
  }
}

TEST_CASE("sites have names of their own that can be folders") {
  CHECK(refusal("sites[1].name=a") == "run.json: sites[1].name: 'a' stands twice");
  for (const char* name : {"a/b", "..", "a b", "\xC3\xA9"}) {
    CHECK_THAT(refusal(std::string("sites[0].name=") + name),
               Contains("run.json: sites[0].name: ") && Contains("characters other than"));
  }
  CHECK_THAT(refusal("sites[0].name="), Contains("must not be empty"));
  CHECK(refusal("sites[0].name=Node_1-x").empty());
}

TEST_CASE("an open run says how many sites it may have, and plans without profiles") {
  CHECK_THAT(refusal("max_sites=1"), Contains("max_sites: is 1; `sites` has 2"));
  CHECK_THAT(refusal("sites=[]"), Contains("sites: is empty"));
  CHECK_THAT(refusal("min_sites=3"), Contains("the run has 2 sites"));
  const auto open = [](std::vector<std::string> changes) {
    changes.insert(changes.begin(), {"max_sites=4", "min_sites=3"});
    return refusal_of_all(changes);
  };
  auto json = smallest_run();
  json["sites"] = Json::array();
  json["max_sites"] = 4;
  json["min_sites"] = 3;
  const auto run = run_config_from_json(json, "run.json");
  CHECK(run.is_open());
  CHECK(run.most_sites() == 4);
  CHECK(run.site("anyone").name == "anyone");
  CHECK_THROWS_AS(run.site("../x"), ConfigError);
  CHECK(open({"plan.policy=hybrid"}).empty());
  for (const auto* policy : {"batch_by_tflops", "steps_by_tflops", "batch_by_memory"}) {
    CHECK_THAT(open({std::string("plan.policy=") + policy}), Contains("run.json: max_sites: "));
  }
  CHECK_THAT(open({"plan.policy=hybrid", "plan.replan=false"}), Contains("plan.policy hybrid"));
  // With stand-bys a majority needs a number.
  CHECK_THROWS_WITH(require_majority(run, "run.json"), Contains("must be named"));
}

TEST_CASE("a sync that cannot be done is refused") {
  CHECK_THAT(refusal("sync.fragments=101"), Contains("run.json: sync.fragments: 101 fragments"));
  CHECK(refusal("strategy.kind=eager_updates").empty());
  CHECK(refusal("sync.exchange=ring").empty());
  CHECK(refusal("plan.wan_target=0.05").empty());
  CHECK_THAT(refusal_of_all({"strategy.kind=eager_updates", "sync.fragments=2"}),
             Contains("run.json: strategy.kind: ") && Contains("sync.fragments must be 1"));
  CHECK_THAT(refusal_of_all({"strategy.kind=eager_updates", "sync.alpha=0.5"}),
             Contains("run.json: strategy.kind: "));
  CHECK_THAT(refusal_of_all({"sync.exchange=ring", "sync.codec.kind=int8"}),
             Contains("run.json: sync.codec.kind: the exchange ring adds up fp32 only"));
  CHECK_THAT(refusal_of_all({"sync.exchange=ring", "sync.fine_rounds=1"}),
             Contains("run.json: sync.fine_codec: the exchange ring adds up fp32 only"));
  CHECK(
      refusal_of_all({"sync.exchange=ring", "sync.fine_rounds=1", "sync.fine_codec=fp32"}).empty());
  CHECK_THAT(refusal_of_all({"sync.exchange=ring", "sync.servers=[\"a\"]"}),
             Contains("run.json: sync.servers: "));
  CHECK_THAT(refusal_of_all({"sync.exchange=parameter_server", "sync.shares=bandwidth"}),
             Contains("run.json: sync.shares: "));
}

TEST_CASE("a delay is counted in steps that a site takes") {
  const std::string a20 = "sites[0].local_steps=20", b20 = "sites[1].local_steps=20";
  CHECK_THAT(refusal_of_all({a20, b20, "sync.delay_steps=3"}),
             Contains("run.json: plan.base_steps: is 100, which is local_steps of no site") &&
                 Contains("such as 20"));
  CHECK(refusal_of_all({a20, b20, "sync.delay_steps=3", "plan.base_steps=20"}).empty());
  CHECK(refusal_of_all({a20, "sync.delay_steps=3"}).empty());  // site b takes 100
  CHECK(refusal_of_all({a20, b20}).empty());
}

TEST_CASE("fragments fit into the local steps of each site") {
  CHECK_THAT(refusal_of_all({"sites[1].local_steps=3", "sync.fragments=4"}),
             Contains("run.json: sites[1].local_steps: is 3; must be at least 4"));
  CHECK(refusal_of_all({"sites[1].local_steps=4", "sync.fragments=4"}).empty());
  CHECK_THAT(refusal_of_all({"sites[1].local_steps=50", "sync.fragments=4", "sync.delay_steps=25"}),
             Contains("sites[1].local_steps: is 50; must be at least 52, for 4 fragments that are "
                      "under way for 13 steps each"));
  CHECK(refusal_of_all({"sites[1].local_steps=50", "sync.fragments=4", "sync.delay_steps=24"})
            .empty());
}

TEST_CASE("only a direct exchange that is not eager is chosen by a target") {
  for (const char* other :
       {"strategy.kind=eager_updates", "sync.exchange=ring", "sync.exchange=parameter_server"}) {
    CHECK_THAT(refusal_of_all({"plan.wan_target=0.05", other}),
               Contains("run.json: plan.wan_target: "));
  }
}

TEST_CASE("deadlines that contradict each other are refused") {
  CHECK_THAT(refusal("deadlines.lost_after_seconds=2.9"),
             Contains("run.json: deadlines.lost_after_seconds: is 2.9; must be at least 3") &&
                 Contains("set at least 3, or lower heartbeat_seconds"));
  CHECK_THAT(refusal("deadlines.transfer_stall_seconds=45"),
             Contains("run.json: deadlines.transfer_stall_seconds: is 45; must be above"));
  CHECK_THAT(refusal("deadlines.lost_after_seconds=60"),
             Contains("deadlines.transfer_stall_seconds: is 60; must be above") &&
                 Contains("set it too, for example to 120"));
  CHECK_THAT(refusal("deadlines.connect_seconds=301"),
             Contains("run.json: deadlines.connect_seconds: is 301; must be at most"));
  CHECK_THAT(refusal("deadlines.coordinator_lost_after_seconds=44.9"),
             Contains("run.json: deadlines.coordinator_lost_after_seconds: is 44.9; must be at") &&
                 Contains("set it too, for example to 450"));
  CHECK(refusal("deadlines.coordinator_lost_after_seconds=45").empty());
  CHECK(refusal("deadlines.lost_after_seconds=3").empty());
}

TEST_CASE("a deadline that no clock can count to is refused and the longest is none") {
  for (const char* name : {"join", "connect", "heartbeat", "lost_after", "coordinator_lost_after",
                           "pause", "laggard", "transfer_stall", "leave", "checkpoint"}) {
    for (const char* value : {"1e10", "1.1e8", "1e300", "-1"}) {
      INFO(name);
      CHECK_THAT(
          refusal(fmt::format("deadlines.{}_seconds={}", name, value)),
          Contains(fmt::format("run.json: deadlines.{}_seconds: ", name)) && Contains("100000000"));
    }
  }
  CHECK(refusal("deadlines.join_seconds=1e8").empty());
  CHECK(refusal("deadlines.heartbeat_seconds=0.001").empty());
}
