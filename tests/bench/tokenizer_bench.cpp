// How fast a tokenizer encodes one text, as one document on one thread: in the pieces in which
// `farstep tokenize` encodes it, and whole.
//
//   tokenizer_bench TOKENIZER TEXT [--ids FILE]     FILE gets the ids, 4 bytes each
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "tests/support/write_file.h"
#include "trainer/base/clock.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokenizer/tokenizer.h"

using namespace farstep;

int main(int count, char** arguments) {
  std::string path, text_path, ids_path;
  CLI::App app("speed of a tokenizer");
  app.add_option("tokenizer", path)->required();
  app.add_option("text", text_path)->required();
  app.add_option("--ids", ids_path);
  CLI11_PARSE(app, count, arguments);
  const RealClock clock;
  const double start = clock.now_seconds();
  const auto tokenizer = Tokenizer::load(path);
  const auto text = read_file(text_path);
  fmt::print("load: {:.2f} s\n", clock.now_seconds() - start);
  const auto report = [&](const char* what, double seconds, std::size_t tokens) {
    fmt::print("{}: {:.2f} MB/s, {:.2f}M tokens/s\n", what,
               static_cast<double>(text.size()) / seconds / 1e6,
               static_cast<double>(tokens) / seconds / 1e6);
  };
  constexpr std::size_t kPieceBytes = 1 << 16;
  std::vector<int32_t> pieces;
  double begin = clock.now_seconds();
  for (std::size_t from = 0; from < text.size();) {
    auto end = from + kPieceBytes;
    while (end < text.size() && ((text[end] & 0xc0) == 0x80 || !tokenizer->may_cut(text, end))) ++end;
    end = std::min(end, text.size());
    tokenizer->encode_part(std::string_view(text).substr(from, end - from), from == 0, pieces);
    from = end;
  }
  report("in pieces", clock.now_seconds() - begin, pieces.size());
  begin = clock.now_seconds();
  const auto whole = tokenizer->encode(text);
  report("whole", clock.now_seconds() - begin, whole.size());
  fmt::print("pieces {} the whole\n", pieces == whole ? "equal" : "DIFFER FROM");
  if (!ids_path.empty()) {
    write_file(ids_path, std::string_view(reinterpret_cast<const char*>(whole.data()),
                                          whole.size() * sizeof(whole[0])));
  }
  return 0;
}
