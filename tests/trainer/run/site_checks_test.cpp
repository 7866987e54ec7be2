#include "trainer/run/site_checks.h"

#include <fstream>
#include <numeric>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"
#include "trainer/data/tokens/dataset_writer.h"
#include "trainer/data/tokens/token_dataset.h"
#include "wan/sockets/tcp.h"

namespace farstep {

namespace {

using Catch::Contains;

void write_split(const std::filesystem::path& folder, std::string_view split) {
  std::vector<int32_t> tokens(1000);
  std::iota(tokens.begin(), tokens.end(), 0);
  SplitWriter writer(folder, split, 1000, 2, 1000);
  writer.append(tokens, 1, 1000);
  writer.finish();
}

// The folder of a site that is in order: config, run file and data.
class Folder {
 public:
  explicit Folder(bool with_validation = true) {
    const auto write = [this](const char* name, const char* text) {
      std::ofstream(folder_ / name) << text;
    };
    write("run.json", R"({"name": "r", "sites": [{"name": "a"}, {"name": "b"}],
        "data": {"sequence_length": 16}})");
    write("a.json", R"({"name": "a", "run": "run.json",
        "coordinator": {"endpoint": "tcp://127.0.0.1:*", "host": true},
        "network": {"address": "127.0.0.1"}, "devices": [{"kind": "cpu"}],
        "data": "data", "output": "out"})");
    std::filesystem::create_directory(folder_ / "data");
    write_split(folder_ / "data", kTrainSplit);
    if (with_validation) write_split(folder_ / "data", kValidationSplit);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  LoadedSite load(const std::vector<std::string>& overrides = {}) const {
    return load_site(folder_ / "a.json", overrides);
  }
  // "NAME: EXIT CODE: MESSAGE" of the first check that fails; empty if none does.
  std::string failure(const std::vector<std::string>& overrides) const {
    const auto loaded = load(overrides);
    CheckedSite site(loaded);
    for (const auto& check : site_checks()) {
      if (check.needs_run && !site.run) continue;
      try {
        check.look(site);
      } catch (const Error& error) {
        return fmt::format("{}: {}: {}", check.name, error.exit_code(), error.what());
      }
    }
    return "";
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a site that is in order passes every check and nothing of it changes") {
  const Folder folder;
  const auto loaded = folder.load();
  CheckedSite site(loaded);
  for (const auto& check : site_checks()) CHECK(check.look(site));
  CHECK_NOTHROW(require_site(site));
  CHECK_FALSE(std::filesystem::exists(folder.path("out")));
}

TEST_CASE("each mistake of a site is told by one check with file and remedy") {
  const Folder folder;
  const auto taken = wan::listen_tcp(wan::SocketAddress("127.0.0.1", 0));
  const int port = wan::SocketAddress::local_of(taken.fd())->port();
  struct Row {
    std::vector<std::string> overrides;
    std::string begin, remedy;
  };
  const std::vector<Row> table = {
      {{"name=c"}, "run: 2: " + folder.path("run.json") + ": site 'c'", "its sites are a, b"},
      {{"run.sync.exchange=ring", "network.emulate.delay_seconds=0.1"},
       "run: 2: " + folder.path("a.json") + ": network.emulate",
       "remove it"},
      {{"run.model.heads=3"},
       "model: 2: " + folder.path("run.json") + ": model.heads",
       "must divide hidden"},
      {{"run.model.from=nowhere"},
       "model: 3: " + folder.path("nowhere") + ": there is no such folder",
       ""},
      {{"run.model.layers=1000", "run.model.hidden=65536"},
       "memory: 2: " + folder.path("run.json") + ": with micro-batches of 4",
       "a smaller model"},
      {{"run.plan.base_batch=100000000"},
       "memory: 2: " + folder.path("run.json") + ": with micro-batches of 100000000",
       "set plan.micro_batch"},
      {{"run.plan.micro_batch=5"},
       "work: 2: " + folder.path("run.json") + ": plan.micro_batch: is 5",
       "at most the batch"},
      {{"run.plan.base_batch=100", "run.plan.micro_batch=4"},
       "data of run: 2: " + folder.path("run.json") + ": plan.base_batch",
       "62 windows of 16 tokens"},
      {{"devices[0].kind=cuda", "devices[0].index=63"},
       "devices: 2: " + folder.path("a.json") + ": devices[0]: device cuda:63",
       ""},
      {{"devices[0].cores=[100000]"}, "devices: 2: " + folder.path("a.json") + ": devices[0]", ""},
      {{"profile=none.json"}, "profile: 2: " + folder.path("none.json"), ""},
      {{fmt::format("coordinator.endpoint=tcp://127.0.0.1:{}", port)},
       "coordinator: 4: " + folder.path("a.json") + ": coordinator endpoint",
       "choose another port"},
      {{"network.address=192.0.2.7"},
       "network: 4: " + folder.path("a.json") + ": network.address: cannot listen on 192.0.2.7",
       "this machine has 127.0.0.1"},
      {{"coordinator.host=false", "coordinator.endpoint=tcp://192.0.2.9:7400"},
       "network: 2: " + folder.path("a.json") + ": network.address: 127.0.0.1 is reached from this",
       "that the other sites can reach"},
      {{fmt::format("network.port={}", port - 2)},  // two connections with site b
       "network: 4: " + folder.path("a.json") + ": network.port: cannot listen on 127.0.0.1",
       "choose another port"},
      {{"output=/proc/out"},
       "output: 2: " + folder.path("a.json") + ": output: cannot write",
       "name another folder"},
      {{"data=nowhere"}, "data: 3: " + folder.path("nowhere"), "farstep tokenize"},
      {{"run.model.vocabulary=999"},
       "data of run: 2: " + folder.path("run.json") + ": model.vocabulary: is 999",
       "need at least 1000"},
      {{"run.data.sequence_length=1000"}, "data of run: 3: " + folder.path("data"), "too few"},
  };
  for (const auto& row : table) {
    INFO(row.overrides.front());
    CHECK_THAT(folder.failure(row.overrides), Catch::StartsWith(row.begin) && Contains(row.remedy));
  }
}

TEST_CASE("validation shards are needed by a run that validates and by no other") {
  const Folder folder(false);
  CHECK_THAT(folder.failure({}), Catch::StartsWith("data of run: 3: " + folder.path("data")) &&
                                     Contains("--validation-fraction"));
  CHECK_THAT(folder.failure({"run.evaluate.every_rounds=2"}), Contains("no validation shards"));
  CHECK(folder.failure({"run.evaluate.every_rounds=0"}).empty());
}

TEST_CASE("with a master that scatters, the master alone needs data") {
  const Folder folder;
  const std::vector<std::string> scatter{"run.strategy.kind=data_parallel_master",
                                         "run.strategy.scatter=true"};
  const auto failure = [&](std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), scatter.begin(), scatter.end());
    return folder.failure(overrides);
  };
  CHECK(failure({}).empty());
  CHECK(failure({"data=", "run.sync.servers=[\"b\"]"}).empty());
  CHECK_THAT(failure({"data="}), Catch::StartsWith("run: 2: " + folder.path("a.json") +
                                                   ": data: is empty, and a is the "
                                                   "master"));
  // The shape of a net is told by the master, when the site has joined.
  const std::vector<std::string> images{"data=", "run.sync.servers=[\"b\"]",
                                        "run.model.family=images", "run.data.sequence_length=1024"};
  CHECK(failure(images).empty());
  CHECK_THAT(folder.failure({"data="}), Contains("data: is empty, and a trains"));
}

TEST_CASE("a site without a run file is checked against the run once it is there") {
  const Folder folder;
  const auto own = folder.load();
  auto loaded = own;
  loaded.run.reset();
  CheckedSite site(loaded);
  CHECK_NOTHROW(require_site(site));
  const auto run = run_config_from_json(*own.run, "the run");
  CHECK_NOTHROW(require_run_fits(site, run, "the run"));
  auto small = run;
  small.model.vocabulary = 999;
  CHECK_THROWS_WITH(require_run_fits(site, small, "the run"),
                    Catch::StartsWith("the run: model.vocabulary: is 999"));
}

}  // namespace farstep
