#include "trainer/data/tokens/dataset_writer.h"

#include <algorithm>
#include <map>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/tokens/counting.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokens/token_dataset.h"

namespace farstep {

namespace {

SplitWriter writer_in(const std::filesystem::path& folder, int64_t shard_tokens) {
  return SplitWriter(folder, kTrainSplit, 1000, 2, shard_tokens);
}

void write_split(const std::filesystem::path& folder, std::string_view split, int32_t count,
                 int64_t shard_tokens) {
  SplitWriter writer(folder, split, 1000, 2, shard_tokens);
  writer.append(counting(count), 1, count);
  writer.finish();
}

// The content of every file of a folder, by name.
std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename().string()] = read_file(entry.path());
  }
  return files;
}

}  // namespace

TEST_CASE("a split writer counts what it holds") {
  TemporaryFolder folder;
  SplitWriter writer(folder.path(), kTrainSplit, 1000, 2, 30);
  writer.append(counting(50), 2, 170);
  writer.append(counting(10), 1, 30);
  const auto facts = writer.finish();
  CHECK(facts.documents == 3);
  CHECK(facts.bytes == 200);
  CHECK(facts.tokens == 60);
  CHECK(facts.shards == 2);
}

TEST_CASE("a staging folder replaces a dataset as a whole or leaves it") {
  TemporaryFolder folder;
  const auto output = folder / "set";
  {
    StagingFolder staging(output);
    write_split(staging.path(), kTrainSplit, 100, 30);
    CHECK_FALSE(std::filesystem::exists(output));
    staging.commit(Json::object());
  }
  CHECK(TokenDataset(output, kTrainSplit).num_tokens() == 100);
  {
    StagingFolder abandoned(output);
    write_split(abandoned.path(), kTrainSplit, 5, 30);
  }
  CHECK(TokenDataset(output, kTrainSplit).num_tokens() == 100);
  {
    StagingFolder staging(output / "");  // a slash at the end is the same folder
    write_split(staging.path(), kTrainSplit, 20, 30);
    staging.commit(Json::object());
  }
  CHECK(TokenDataset(output, kTrainSplit).num_tokens() == 20);
  const std::filesystem::directory_iterator entries(folder.path());
  CHECK(std::distance(entries, {}) == 1);
}

TEST_CASE("a dataset is told from what may be written without asking") {
  TemporaryFolder folder;
  CHECK_NOTHROW(require_no_dataset(folder / "nothing"));
  CHECK_NOTHROW(require_no_dataset(folder.path()));
  {
    StagingFolder staging(folder / "set");
    write_split(staging.path(), kTrainSplit, 100, 30);
    staging.commit(Json::object());
  }
  CHECK_THROWS_WITH(require_no_dataset(folder / "set"),
                    Catch::Contains("of 100 train tokens") && Catch::Contains("--force"));
  write_file_durably(folder / "set" / "train-00000.bin", "cut");
  CHECK_THROWS_WITH(require_no_dataset(folder / "set"), Catch::Contains("--force"));
}

TEST_CASE("a folder that is no dataset is not replaced") {
  TemporaryFolder folder;
  write_file_durably(folder / "letters.txt", "dear");
  CHECK_THROWS_AS(StagingFolder(folder.path()), ConfigError);
  CHECK(read_file(folder / "letters.txt") == "dear");
}

TEST_CASE("a writer goes on where another one was killed, and the bytes are the same") {
  const auto tokens = counting(100);
  const auto all = std::span(tokens);
  for (const int64_t shard_tokens : {1, 13, 50, 99, 100, 101}) {
    TemporaryFolder whole;
    auto writer = writer_in(whole.path(), shard_tokens);
    writer.append(all, 7, 300);
    const auto facts = writer.finish();
    // The first one goes on after it saved, and is killed anywhere, at its very end too.
    for (const std::size_t saved : {0, 1, 49, 50, 51, 99, 100}) {
      for (const std::size_t written : {saved, (saved + 100) / 2, std::size_t{100}}) {
        TemporaryFolder folder;
        SplitPart part;
        {
          auto killed = writer_in(folder.path(), shard_tokens);
          killed.append(all.first(saved), 3, 200);
          part = killed.save();
          killed.append(all.subspan(saved, written - saved), 4, 100);
          if (written == 100) killed.finish();
        }
        auto next = writer_in(folder.path(), shard_tokens);
        next.go_on(read_json<SplitPart>(to_json(part), "part"));
        next.append(all.subspan(saved), 4, 100);
        CHECK(to_json(next.finish()) == to_json(facts));
        CHECK((files_of(folder.path()) == files_of(whole.path())));
      }
    }
  }
}

TEST_CASE("a writer refuses to go on with files that changed") {
  TemporaryFolder folder;
  SplitPart part;
  {
    auto writer = writer_in(folder.path(), 30);
    writer.append(counting(70), 1, 70);
    part = writer.save();
  }
  const auto open_shard = folder / "train-00002.tokens.partial";
  auto content = read_file(open_shard);
  const auto go_on = [&] { writer_in(folder.path(), 30).go_on(part); };
  SECTION("a token of the open shard") {
    content[50] ^= 1;
    write_file(open_shard, content);
    CHECK_THROWS_WITH(go_on(), Catch::Contains("train-00002.tokens.partial: has not the 10"));
  }
  SECTION("its end is gone") {
    write_file(open_shard, content.substr(0, content.size() - 1));
    CHECK_THROWS_AS(go_on(), DataError);
  }
  SECTION("it is gone") {
    std::filesystem::remove(open_shard);
    CHECK_THROWS_AS(go_on(), DataError);
  }
  SECTION("a full one is gone") {
    std::filesystem::remove(folder / "train-00001.tokens");
    CHECK_THROWS_AS(go_on(), DataError);
  }
}

TEST_CASE("a staging folder is one process's at a time, and can be left to the next") {
  TemporaryFolder folder;
  const auto output = folder / "set";
  {
    StagingFolder staging(output);
    write_file(staging.path() / "left", "x");
    CHECK_THROWS_WITH(StagingFolder(output), Catch::Contains("another process writes"));
    staging.keep();
  }
  {
    StagingFolder staging(output);
    CHECK(read_file(staging.path() / "left") == "x");
    staging.clear();
    CHECK(std::filesystem::is_empty(staging.path()));
    CHECK_THROWS_AS(StagingFolder(output), ConfigError);
  }
  CHECK_FALSE(std::filesystem::exists(StagingFolder::path_for(output)));
}

}  // namespace farstep
