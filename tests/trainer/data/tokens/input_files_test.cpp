#include "trainer/data/tokens/input_files.h"

#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

std::vector<std::string> kinds_in(const std::filesystem::path& folder, UnknownFiles unknown,
                                  bool token_files = false) {
  auto files = list_input_files({folder.string()});
  find_kinds(files, unknown, token_files);
  std::vector<std::string> kinds;
  for (const auto& file : files) {
    kinds.push_back(fmt::format("{}: {}", file.path.filename().string(), name_of(file.kind)));
  }
  return kinds;
}

using Kinds = std::vector<std::string>;

}  // namespace

TEST_CASE("folders are read in the order of their paths without hidden files") {
  TemporaryFolder folder;
  make_folder(folder.path() / "sub" / ".git");
  for (const auto* name : {"b.txt", "a.txt", ".hidden", "sub/c.jsonl", "sub/.git/d.txt"}) {
    write_file(folder.path() / name, "text");
  }
  std::vector<std::string> names;
  for (const auto& file : list_input_files({(folder / "b.txt").string(), folder.path().string()})) {
    names.push_back(file.path.filename());
    CHECK(file.bytes == 4);
  }
  CHECK(names == std::vector<std::string>{"b.txt", "a.txt", "b.txt", "c.jsonl"});
  CHECK(list_input_files({(folder / "*.txt").string()}).size() == 2);
  CHECK(list_input_files({(folder / "su?").string()}).size() == 1);
  CHECK_THROWS_WITH(list_input_files({(folder / "*.none").string()}),
                    Catch::Contains("no file fits this pattern"));
  CHECK_THROWS_AS(list_input_files({(folder / "missing").string()}), DataError);
  make_folder(folder / "nothing");
  CHECK_THROWS_AS(list_input_files({(folder / "nothing").string()}), DataError);
}

TEST_CASE("files of unknown kind are refused at once, left out, or read as the user says") {
  TemporaryFolder folder;
  write_file(folder / "a.txt", "text");
  write_file(folder / "b.csv", "text,url");
  write_file(folder / "c.png", "\x89PNG");
  write_file(folder / "d.bin", "ab");
  using Catch::Contains;
  CHECK_THROWS_WITH(kinds_in(folder.path(), UnknownFiles::kRefuse),
                    Contains("b.csv: \".csv\" is no kind") && Contains("c.png: a picture") &&
                        Contains("d.bin: ids of tokens") && Contains("--token-files") &&
                        Contains(".jsonl, .ndjson") && Contains("--unknown-files leave_out"));
  CHECK(kinds_in(folder.path(), UnknownFiles::kLeaveOut) == Kinds{"a.txt: text"});
  CHECK(kinds_in(folder.path(), UnknownFiles::kLeaveOut, true) ==
        Kinds{"a.txt: text", "d.bin: token ids"});
  CHECK_THROWS_WITH(kinds_in(folder.path(), UnknownFiles::kText),
                    !Contains("b.csv") && Contains("c.png: a picture"));
  std::filesystem::remove(folder / "c.png");
  std::filesystem::remove(folder / "d.bin");
  CHECK(kinds_in(folder.path(), UnknownFiles::kText) == Kinds{"a.txt: text", "b.csv: text"});
  CHECK(kinds_in(folder.path(), UnknownFiles::kJsonLines) ==
        Kinds{"a.txt: text", "b.csv: JSON lines"});
}

TEST_CASE("what describes a cloned dataset is left out with a word, and a README of texts is one") {
  TemporaryFolder folder;
  write_file(folder / "README.md", "about it");
  write_file(folder / "a.txt", "text");
  CHECK(kinds_in(folder.path(), UnknownFiles::kRefuse) == Kinds{"README.md: text", "a.txt: text"});
  write_file(folder / "a.jsonl", "{}");
  write_file(folder / "dataset_infos.json", "{\"default\": {}}\n");
  LogCapture log;
  CHECK(kinds_in(folder.path(), UnknownFiles::kRefuse) ==
        Kinds{"a.jsonl: JSON lines", "a.txt: text"});
  CHECK_THAT(log.text(), Catch::Contains("README.md: says what the folder has") &&
                             Catch::Contains("dataset_infos.json"));
  CHECK(kinds_in(folder / "README.md", UnknownFiles::kRefuse) == Kinds{"README.md: text"});
}

}  // namespace farstep
