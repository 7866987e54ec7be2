// Checkpoints on the disk: trainer/checkpoint/train_state and checkpoint_folder.

#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/log_capture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/checkpoint/small_state.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/train_state.h"

using namespace farstep;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

using Places = std::vector<std::pair<int64_t, int64_t>>;

Places places(const std::vector<CheckpointEntry>& entries) {
  Places found;
  for (const auto& entry : entries) found.emplace_back(entry.round, entry.step);
  return found;
}

void save(const fs::path& root, const Places& wanted) {
  for (const auto& [round, step] : wanted) save_checkpoint(root, SmallState(round, step).state);
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder)) files.push_back(file.path());
  return files;
}

}  // namespace

TEST_CASE("a checkpoint gives back every field and byte") {
  const TemporaryFolder root;
  for (const auto& [round, step] : Places{{0, 0}, {10, 0}, {10, 37}, {123456, 1}}) {
    const SmallState saved(round, step);
    const auto checkpoint = save_checkpoint(root.path(), saved.state);
    CHECK(checkpoint.entry.round == round);
    CHECK(checkpoint.entry.step == step);
    SmallState loaded(round, step, SmallState::kZeros);
    load_checkpoint(checkpoint.entry, loaded.state);
    CHECK(loaded == saved);
  }
  CHECK(places(list_checkpoints(root.path())) == Places{{123456, 1}, {10, 37}, {10, 0}, {0, 0}});
  CHECK(fs::exists(root / "round-00010-step-00037"));
  CHECK(fs::exists(root / "round-00010"));
}

TEST_CASE("a checkpoint's folder is a Hugging Face folder of theta_global") {
  const TemporaryFolder root;
  const SmallState saved(3, 0);
  const auto checkpoint = save_checkpoint(root.path(), saved.state);
  const auto folder = read_hf_folder(checkpoint.entry.folder);
  CHECK(folder.config == Json::parse(saved.state.model_config));
  auto theta = saved.global.zeros();
  load_parameters(folder, theta.buffers());
  CHECK(theta == saved.global);
}

TEST_CASE("a checkpoint keeps the files beside the model and its manifest has them") {
  const TemporaryFolder root;
  const std::vector<NamedText> files{{"tokenizer.json", "{\"a\": 1}"}, {"merges.txt", "a b\n"}};
  SmallState saved(3, 0);
  saved.state.model_files = files;
  const auto folder = save_checkpoint(root.path(), saved.state).entry.folder;
  const auto read = read_hf_files(folder, kHfTokenizerFiles);
  REQUIRE(read.size() == 2);
  CHECK(read[0].content == files[0].content);
  CHECK(read[1].content == files[1].content);
  verify_manifest(folder);
  write_file(folder / "merges.txt", "a c\n");
  CHECK_THROWS_WITH(verify_manifest(folder), Contains("merges.txt"));
}

TEST_CASE("the bytes reported are those of the files but the manifest") {
  const TemporaryFolder root;
  const auto saved = save_checkpoint(root.path(), SmallState(1, 0).state);
  int64_t bytes = 0;
  for (const auto& file : files_below(saved.entry.folder)) {
    if (file.filename() != "manifest.json") bytes += int64_t(fs::file_size(file));
  }
  CHECK(saved.bytes == bytes);
}

TEST_CASE("only folders with a checkpoint's name count") {
  const TemporaryFolder root;
  CHECK(list_checkpoints(root / "none").empty());
  save(root.path(), {{2, 0}});
  for (const char* name : {"round-00003.partial", "round-3", "round-000003", "round-",
                           "round--0001", "round-00003-step-00000", "round-00003-step-7",
                           "round-00003x", "other", "round-99999999999999999999"}) {
    fs::create_directory(root / name);
  }
  write_file(root / "round-00004", "a file");
  CHECK(places(list_checkpoints(root.path())) == Places{{2, 0}});
  CHECK_THROWS_AS(list_checkpoints(root / "round-00004"), DataError);
}

TEST_CASE("all whole checkpoints can be resumed from and the newest come first") {
  const TemporaryFolder root;
  save(root.path(), {{1, 0}, {2, 0}, {2, 5}, {2, 30}, {3, 0}});
  CHECK(places(resumable_checkpoints(root.path())) ==
        Places{{3, 0}, {2, 30}, {2, 5}, {2, 0}, {1, 0}});
}

TEST_CASE("a damaged checkpoint is skipped with a warning that names the file") {
  const TemporaryFolder root;
  save(root.path(), {{1, 0}, {2, 0}, {2, 5}});
  const auto damaged = root / "round-00002-step-00005" / "site.safetensors";
  auto bytes = read_file(damaged);
  bytes.back() = char(bytes.back() ^ 1);
  write_file(damaged, bytes);
  {
    const LogCapture log;
    CHECK(places(resumable_checkpoints(root.path())) == Places{{2, 0}, {1, 0}});
    CHECK_THAT(log.text(),
               Contains("warning") && Contains(damaged.string()) && Contains("has checksum"));
  }
  fs::remove(root / "round-00002" / "manifest.json");
  const LogCapture log;
  CHECK(places(resumable_checkpoints(root.path())) == Places{{1, 0}});
  CHECK_THAT(log.text(), Contains("round-00002/manifest.json"));
}

TEST_CASE("a manifest that names a file beyond its folder makes a checkpoint damaged") {
  const TemporaryFolder root;
  const auto entry = save_checkpoint(root.path(), SmallState(1, 0).state).entry;
  auto manifest = Json::parse(read_file(entry.folder / "manifest.json"));
  const auto name = manifest["files"][0]["name"].get<std::string>();
  fs::rename(entry.folder / name, root / "outside");
  const LogCapture log;
  for (const auto& path : {std::string("../outside"), (root / "outside").string()}) {
    manifest["files"][0]["name"] = path;
    write_file(entry.folder / "manifest.json", manifest.dump());
    CHECK(resumable_checkpoints(root.path()).empty());
    CHECK_THAT(log.text(), Contains(path + "' is not the name of a file in the folder"));
  }
}

TEST_CASE("a file cut short or gone makes a checkpoint damaged") {
  const TemporaryFolder root;
  const auto entry = save_checkpoint(root.path(), SmallState(4, 0).state).entry;
  const LogCapture quiet;
  for (const auto& file : files_below(entry.folder)) {
    const auto whole = read_file(file);
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() / 2}) {
      write_file(file, whole.substr(0, size));
      REQUIRE(resumable_checkpoints(root.path()).empty());
    }
    fs::remove(file);
    REQUIRE(resumable_checkpoints(root.path()).empty());
    fs::create_directory(file);
    REQUIRE(resumable_checkpoints(root.path()).empty());
    fs::remove(file);
    write_file(file, whole);
  }
  CHECK(resumable_checkpoints(root.path()).size() == 1);
}

TEST_CASE("a checkpoint of another model or place is refused") {
  const TemporaryFolder root;
  const auto entry = save_checkpoint(root.path(), SmallState(4, 0).state).entry;
  SmallState other(4, 0, SmallState::kZeros);
  other.state.global[0].shape = {5, 1};
  CHECK_THROWS_WITH(load_checkpoint(entry, other.state), Contains("model.safetensors: tensor"));
  SmallState fewer(4, 0, SmallState::kZeros);
  fewer.state.site.pop_back();
  CHECK_THROWS_WITH(load_checkpoint(entry, fewer.state), Contains("site.safetensors"));
  SmallState same(4, 0, SmallState::kZeros);
  CHECK_THROWS_WITH(load_checkpoint({entry.folder, 5, 0}, same.state),
                    Contains("state.json: is of round 4 and step 0"));
}

TEST_CASE("a checkpoint of another layout is refused with its version") {
  const TemporaryFolder root;
  const auto entry = save_checkpoint(root.path(), SmallState(4, 0).state).entry;
  auto state = Json::parse(read_file(entry.folder / "state.json"));
  for (const int format : {1, 3}) {
    state["format"] = format;
    if (format == 1) state["progress"].erase("syncs");  // as it was
    write_file(entry.folder / "state.json", state.dump());
    SmallState loaded(4, 0, SmallState::kZeros);
    CHECK_THROWS_AS(load_checkpoint(entry, loaded.state), DataError);
    CHECK_THROWS_WITH(load_progress(entry),
                      Contains(fmt::format("state.json: format: is {}", format)));
  }
}

TEST_CASE("progress that does not fit the run is refused with its file and what to do") {
  const TemporaryFolder root;
  const auto entry = save_checkpoint(root.path(), SmallState(4, 0).state).entry;
  bool called = false;
  restore_progress(entry, [&] { called = true; });
  CHECK(called);
  const auto refuse = [] { throw DataError("the plan's state: no site has work"); };
  CHECK_THROWS_AS(restore_progress(entry, refuse), DataError);
  CHECK_THROWS_WITH(
      restore_progress(entry, refuse),
      Catch::StartsWith((entry.folder / "state.json").string() + ": the plan's state: ") &&
          Contains("move the folder " + entry.folder.string() + " away"));
}

TEST_CASE("an existing checkpoint is replaced and leftovers are cleaned up") {
  const TemporaryFolder root;
  save(root.path(), {{1, 0}});
  fs::create_directory(root / "round-00007.partial");
  write_file(root / "round-00007.partial" / "model.safetensors", "half");
  SmallState other(1, 0);
  other.state.progress.site_sequences = 4711;
  const auto saved = save_checkpoint(root.path(), other.state);
  SmallState loaded(1, 0, SmallState::kZeros);
  load_checkpoint(saved.entry, loaded.state);
  CHECK(loaded.state.progress.site_sequences == 4711);
  CHECK(files_below(root.path()).size() == 1);
}

TEST_CASE("pruning keeps the newest rounds with what was saved inside them") {
  const TemporaryFolder root;
  prune_checkpoints(root.path(), 1);
  save(root.path(), {{9, 0}, {10, 0}, {100000, 0}, {10, 2}, {2, 50}});
  prune_checkpoints(root.path(), 9);
  CHECK(list_checkpoints(root.path()).size() == 5);
  prune_checkpoints(root.path(), 2);
  CHECK(places(list_checkpoints(root.path())) == Places{{100000, 0}, {10, 2}, {10, 0}});
  CHECK(files_below(root.path()).size() == 3);
  CHECK_THROWS_AS(prune_checkpoints(root.path(), 0), InternalError);
}

TEST_CASE("pruning spares pinned rounds however old they are, and not what was saved inside them") {
  const TemporaryFolder root;
  save(root.path(), {{2, 0}, {3, 0}, {3, 5}, {9, 0}, {10, 0}});
  prune_checkpoints(root.path(), 2, std::array<int64_t, 2>{3, 4});
  CHECK(places(list_checkpoints(root.path())) == Places{{10, 0}, {9, 0}, {3, 0}});
  prune_checkpoints(root.path(), 2, std::array<int64_t, 1>{7});  // of which there is none
  CHECK(places(list_checkpoints(root.path())) == Places{{10, 0}, {9, 0}});
}

TEST_CASE("a run that went back drops what is newer") {
  const TemporaryFolder root;
  save(root.path(), {{1, 0}, {2, 0}, {2, 7}, {2, 9}, {3, 0}});
  for (const auto& entry : resumable_checkpoints(root.path())) {
    if (entry.round == 1) drop_newer_checkpoints(root.path(), entry);
  }
  CHECK(places(list_checkpoints(root.path())) == Places{{1, 0}});
}

TEST_CASE("a run that went back twice keeps what it left each time") {
  const TemporaryFolder root;
  const auto shape_file = fs::path("state.json");
  std::vector<std::string> left;
  for (int turn = 0; turn < 3; ++turn) {
    save(root.path(), {{1, 0}, {2, 0}, {2, 5}});
    write_file(root / "round-00002" / shape_file, std::to_string(turn));
    set_aside_checkpoints_after(root.path(), 1);
    CHECK(places(list_checkpoints(root.path())) == Places{{1, 0}});
  }
  for (const auto* name : {"round-00002.left", "round-00002.left-2", "round-00002.left-3"}) {
    left.push_back(read_file(root / name / shape_file));
    CHECK(fs::is_directory(root / "round-00002-step-00005.left"));
  }
  CHECK(left == std::vector<std::string>{"0", "1", "2"});
}

TEST_CASE("a disk that is full at any byte leaves the older checkpoints whole") {
  const TemporaryFolder root;
  const SmallState older(1, 0);
  save_checkpoint(root.path(), older.state);
  rlim_t largest = 0;
  for (const auto& file : files_below(root / "round-00001")) {
    largest = std::max<rlim_t>(largest, fs::file_size(file));
  }
  for (rlim_t limit = 0; limit < largest; limit += 61) {
    {
      const FileSizeLimit full(limit);
      CHECK_THROWS_AS(save_checkpoint(root.path(), SmallState(2, 0).state), DataError);
    }
    const auto left = resumable_checkpoints(root.path());
    REQUIRE(places(left) == Places{{1, 0}});
    SmallState loaded(1, 0, SmallState::kZeros);
    load_checkpoint(left[0], loaded.state);
    REQUIRE(loaded == older);
  }
  const FileSizeLimit enough(largest);
  save(root.path(), {{2, 0}});
  CHECK(resumable_checkpoints(root.path()).size() == 2);
}

TEST_CASE("a root that cannot be a folder is a DataError") {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  CHECK_THROWS_AS(save_checkpoint(folder / "file", SmallState(1, 0).state), DataError);
  CHECK_THROWS_AS(save_checkpoint(folder / "file" / "below", SmallState(1, 0).state), DataError);
}

TEST_CASE("a state from before windows came back has all of them from run_sequences on") {
  auto json = to_json(SmallState(1, 2).state.progress);
  CHECK(json.erase("returned_sequences") + json.erase("reserved_sequences") == 2);
  const auto progress = read_json<TrainProgress>(json, "state.json");
  CHECK(RunWindows(progress.windows).pool() == WindowPool(50));
}

TEST_CASE("a state from before products and step times were kept is read without them") {
  auto json = to_json(SmallState(1, 2).state.progress);
  CHECK(json.erase("products") + json.erase("step_seconds") == 2);
  const auto progress = read_json<TrainProgress>(json, "state.json");
  CHECK(progress.products.is_null());
  CHECK(progress.step_seconds.empty());
  CHECK(progress.planner == json["planner"]);
}
