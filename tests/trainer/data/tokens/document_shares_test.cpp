// Which documents validate, and which are left out.
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/trainer/data/tokens/small_corpus.h"
#include "trainer/base/error.h"

namespace farstep {

TEST_CASE("a corpus too short for a validation part is refused") {
  TemporaryFolder folder;
  make_folder(folder / "text");
  write_file(folder / "text/a.jsonl", Json{{"text", sample_text(9000, 1)}}.dump());
  auto options = options_for(folder);
  CHECK_THROWS_AS(tokenize(options, ignore_progress), DataError);
  options.validation_fraction = 0;
  CHECK(tokenize(options, ignore_progress).validation.shards == 0);
}

TEST_CASE("all text that is none is named at once, or left out") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  write_file(folder / "text/broken.jsonl",
             "{\"text\": \"fine and long\"}\nbroken\n{\"text\": \"good\"}\n");
  write_file(folder / "text/empty.txt", "");
  write_file(folder / "text/photo.txt", "\x81PNG\r\n\x1a\n");
  auto options = options_for(folder);
  CHECK_THROWS_WITH(tokenize(options, ignore_progress),
                    Catch::Contains("broken.jsonl: line 2: not JSON") &&
                        Catch::Contains("photo.txt: byte 0: not UTF-8") &&
                        Catch::Contains("2 of 106 documents (1.89 %) are no text: 1 not JSON, "
                                        "1 not UTF-8") &&
                        Catch::Contains("--bad-text skip") && !Catch::Contains("empty.txt"));
  CHECK_FALSE(std::filesystem::exists(options.output));
  options.bad_text = BadText::kSkip;
  CHECK_THROWS_WITH(tokenize(options, ignore_progress),
                    Catch::Contains("2 of 106") && Catch::Contains("at most 1 %") &&
                        Catch::Contains("--most-left-out 0.02"));
  CHECK_FALSE(std::filesystem::exists(options.output));
  options.most_left_out = 0.02;
  options.validation_fraction = 0.4;
  const auto result = tokenize(options, ignore_progress);
  CHECK(result.skipped == 2);
  CHECK_THAT(decoded(options.output, kTrainSplit), Catch::Contains("fine and long<end>"));
  const auto facts = Json::parse(read_file(std::filesystem::path(options.output) / kDatasetFile));
  CHECK(facts["skipped_documents"] == 2);
}

TEST_CASE("a call that left out too much goes on when that is allowed") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  write_file(folder / "text/broken.jsonl", "broken\nbroken\n{\"text\": null}\n");
  auto options = options_for(folder);
  options.bad_text = BadText::kSkip;
  CHECK_THROWS_WITH(tokenize(options, ignore_progress),
                    Catch::Contains("3 of 105 documents (2.86 %) are no text: 2 not JSON, 1 whose "
                                    "text is no string"));
  options.most_left_out = 0.03;
  LogCapture log;
  const auto result = tokenize(options, ignore_progress);
  CHECK(result.skipped == 3);
  CHECK_THAT(log.text(), Catch::Contains("goes on with"));
  options.output = (folder / "whole").string();
  tokenize(options, ignore_progress);
  CHECK(TokenDataset(folder / "set", kTrainSplit).digest() ==
        TokenDataset(folder / "whole", kTrainSplit).digest());
}

TEST_CASE("five percent of all documents validate, in however many files they are") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  auto options = options_for(folder);
  tokenize(options, ignore_progress);
  options.tokenizer = options.output;
  options.train_vocabulary = 0;
  options.inputs = {(folder / "many").string()};
  options.output = (folder / "shares").string();
  make_folder(folder / "many");
  const auto documents = [&] {
    const auto result = tokenize(options, ignore_progress);
    return std::pair(result.train.documents, result.validation.documents);
  };
  const auto lines = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "{\"text\": \"ka mo ri\"}\n";
    return text;
  };
  for (int i = 0; i < 100; ++i) write_file(folder / fmt::format("many/{:03}.jsonl", i), lines(9));
  CHECK(documents() == std::pair<int64_t, int64_t>(855, 45));
  write_file(folder / "many/large.jsonl", lines(1100));
  CHECK(documents() == std::pair<int64_t, int64_t>(1900, 100));
  std::filesystem::remove_all(folder / "many");
  make_folder(folder / "many");
  for (int i = 0; i < 50; ++i) write_file(folder / fmt::format("many/{}.txt", i), "ka mo ri\n");
  CHECK(documents() == std::pair<int64_t, int64_t>(47, 3));
  CHECK(decoded(options.output, kValidationSplit) ==
        "ka mo ri\n<end>ka mo ri\n<end>ka mo ri\n<end>");
}

TEST_CASE("the text of JSON lines is in the member that is named") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  auto options = options_for(folder);
  options.text_field = "content";
  CHECK_THROWS_WITH(
      tokenize(options, ignore_progress),
      Catch::Contains("and 80 more") && Catch::Contains("line 1: has no member \"content\""));
}

}  // namespace farstep
