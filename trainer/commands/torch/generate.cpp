// farstep generate: text from a checkpoint.
#include "trainer/model/language/generate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "trainer/base/clock.h"
#include "trainer/commands/command_line.h"
#include "trainer/commands/program.h"
#include "trainer/commands/torch/model_options.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/data/documents/file_kind.h"
#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/model/language/streamed_text.h"

namespace farstep {

namespace {

constexpr int64_t kMostContext = 1 << 30;  // beyond all models; its bytes fit into 64 bits

struct GenerateOptions {
  ModelOptions model;
  std::string data;
  std::optional<std::string> prompt, prompt_file;
  int64_t tokens = 100, context = 1024, top_k = 50, seed = 1;
  double temperature = 0.8, top_p = 1;
  std::vector<std::string> stop;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    model.fields(visit);
    visit(
        "data", data,
        "dataset folder, or another one or a file, for its tokenizer; without it the model's own");
    visit("prompt", prompt,
          "text to continue; without it and prompt-file the standard input, a terminal's lines one "
          "by one");
    visit("prompt_file", prompt_file, "file with the text to continue");
    visit("tokens", tokens, "tokens to add at most", at_least(0));
    visit("context", context, "tokens that the model sees at most", in_range(1, kMostContext));
    visit("temperature", temperature, "0 takes the likeliest token always", at_least(0));
    visit("top_k", top_k, "choose among so many likeliest; 0 is all", at_least(0));
    visit("top_p", top_p, "of these, among the fewest likeliest with this chance together",
          Rules{.least = 0, .most = 1, .above_least = true});
    visit("seed", seed, "of the choices", at_least(0));
    visit("stop", stop, "end the text before this; may be given several times");
  }

  void check() const {
    if (prompt && prompt_file) {
      throw ConfigError("farstep generate: --prompt and --prompt-file exclude each other");
    }
    for (const auto& text : stop) {
      if (text.empty()) throw ConfigError("farstep generate: --stop must not be empty");
    }
  }
};

// Continues texts by one model.
class Writer {
 public:
  explicit Writer(const GenerateOptions& options)
      : Writer(options,
               check_language_folder(trained_language_model(options.model.model, "generate"))) {}

  // Prints what follows `prompt` as it comes, then tells on stderr how fast it came.
  void continue_text(const std::string& prompt) {
    auto ids = tokenizer_->encode_opened(prompt);
    // In training every text begins after another's end.
    if (ids.empty()) ids.push_back(tokenizer_->eos());
    StreamedText text([this](std::span<const int32_t> some) { return tokenizer_->decode(some); },
                      ids, options_.stop);
    const auto print = [](const std::string& piece) {
      fmt::print("{}", piece);
      flush_output();
    };
    const double start = clock_.now_seconds();
    double first = start;
    int64_t count = 0;
    generate(decoder_, {ids.begin(), ids.end()}, settings(), [&](int64_t id) {
      if (count++ == 0) first = clock_.now_seconds();
      print(text.add(static_cast<int32_t>(id)));
      return !text.stopped();
    });
    print(text.finish() + "\n");
    tell_speed(std::ssize(ids), first - start, count, clock_.now_seconds() - first);
  }

 private:
  GenerateSettings settings() const {
    return {.tokens = options_.tokens,
            .temperature = options_.temperature,
            .top_k = options_.top_k,
            .top_p = options_.top_p,
            .vocabulary = tokenizer_->vocabulary(),
            .seed = static_cast<uint64_t>(options_.seed),
            .ends = ends_};
  }

  // The first new token comes with the reading of the prompt.
  static void tell_speed(int64_t read, double read_seconds, int64_t count, double seconds) {
    if (count < 2) return;
    fmt::print(stderr, "read {} tokens in {:.2f} s, then {:.1f} tokens/s\n", read, read_seconds,
               static_cast<double>(count - 1) / seconds);
  }

  Writer(const GenerateOptions& options, const LanguageFolder& folder)
      : options_(options),
        model_(options.model.open(
            folder, Decoder::bytes_for(folder.config.shape, options.model.compute_type(),
                                       options.context))),
        decoder_(*model_, options.model.compute_type(), options.context),
        ends_(end_tokens(folder)) {
    const auto path = options.data.empty() ? folder.folder.path.string() : options.data;
    // Who writes a prompt decides where its roles and turns begin.
    tokenizer_ = Tokenizer::load(path, "", SpecialTokens::kTokens);
    if (tokenizer_->vocabulary() > model_->config().vocabulary) {
      throw DataError(
          fmt::format("{}: the tokenizer has {} pieces, the model {}; name the "
                      "tokenizer that the model was trained with by --data",
                      path, tokenizer_->vocabulary(), model_->config().vocabulary));
    }
    if (ends_.empty()) ends_ = {tokenizer_->eos()};
  }

  const GenerateOptions& options_;
  const std::unique_ptr<Llama> model_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  Decoder decoder_;
  std::vector<int64_t> ends_;
  const RealClock clock_;
};

// A line of a terminal is a text of its own.
void converse(Writer& writer) {
  std::string line;
  while (fmt::print("> "), flush_output(), std::getline(std::cin, line)) {
    fmt::print("{}", line);
    writer.continue_text(line);
  }
  fmt::print("\n");
}

std::string prompt_of(const GenerateOptions& options) {
  if (options.prompt) return *options.prompt;
  if (options.prompt_file) return read_text(*options.prompt_file);
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  return std::string(without_byte_order_mark(text));
}

}  // namespace

int generate_command(const Arguments& arguments) {
  const auto options = parse_command_line<GenerateOptions>("generate", arguments);
  if (!options) return 0;
  options->check();
  Writer writer(*options);
  if (!options->prompt && !options->prompt_file && ::isatty(STDIN_FILENO) == 1) {
    converse(writer);
    return 0;
  }
  const auto prompt = prompt_of(*options);
  fmt::print("{}", prompt);
  writer.continue_text(prompt);
  return 0;
}

}  // namespace farstep
