// How fast a tokenizer encodes one text, as one document on one thread, by the thread's processor
// time: in the pieces in which `farstep tokenize` encodes it, and whole.
//
//   tokenizer_bench TOKENIZER TEXT [--ids FILE]     FILE gets the ids, 4 bytes each
#include <time.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "tests/support/write_file.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokenizer/tokenizer.h"

using namespace farstep;

namespace {

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace

int main(int count, char** arguments) {
  std::string path, text_path, ids_path;
  CLI::App app("speed of a tokenizer");
  app.add_option("tokenizer", path)->required();
  app.add_option("text", text_path)->required();
  app.add_option("--ids", ids_path);
  CLI11_PARSE(app, count, arguments);
  const double start = processor_seconds();
  const auto tokenizer = Tokenizer::load(path);
  const auto text = read_file(text_path);
  fmt::print("load: {:.2f} s\n", processor_seconds() - start);
  const auto report = [&](const char* what, double seconds, std::size_t tokens) {
    fmt::print("{}: {:.2f} MB/s, {:.2f}M tokens/s\n", what,
               static_cast<double>(text.size()) / seconds / 1e6,
               static_cast<double>(tokens) / seconds / 1e6);
  };
  constexpr std::size_t kPieceBytes = 1 << 16;
  std::vector<int32_t> pieces;
  double begin = processor_seconds();
  for (std::size_t from = 0; from < text.size();) {
    auto end = from + kPieceBytes;
    while (end < text.size() && ((text[end] & 0xc0) == 0x80 || !tokenizer->may_cut(text, end)))
      ++end;
    end = std::min(end, text.size());
    tokenizer->encode_part(std::string_view(text).substr(from, end - from), from == 0, pieces);
    from = end;
  }
  report("in pieces", processor_seconds() - begin, pieces.size());
  begin = processor_seconds();
  const auto whole = tokenizer->encode(text);
  report("whole", processor_seconds() - begin, whole.size());
  fmt::print("pieces {} the whole\n", pieces == whole ? "equal" : "DIFFER FROM");
  if (!ids_path.empty()) {
    write_file(ids_path, std::string_view(reinterpret_cast<const char*>(whole.data()),
                                          whole.size() * sizeof(whole[0])));
  }
  return 0;
}
