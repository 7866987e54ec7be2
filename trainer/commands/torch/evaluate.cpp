// farstep evaluate: validation loss of a model, and accuracy of an image classifier.
#include "trainer/model/evaluate.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "trainer/base/clock.h"
#include "trainer/base/system/free_memory.h"
#include "trainer/commands/command_line.h"
#include "trainer/commands/torch/model_options.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/data/documents/file_kind.h"
#include "trainer/data/images/image_data.h"
#include "trainer/data/images/image_examples.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"
#include "trainer/data/tokens/token_batch.h"
#include "trainer/model/convnet/convnet_folder.h"
#include "trainer/model/language/questions.h"
#include "trainer/model/language/text_score.h"
#include "trainer/telemetry/figure_text.h"
#include "trainer/telemetry/progress.h"

namespace farstep {

namespace {

struct EvaluateOptions {
  ModelOptions model;
  std::string data;
  std::optional<std::string> text, questions;
  int64_t sequence_length = 0, windows = 0, batch = 8;
  bool json = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    model.fields(visit);
    visit("data", data,
          "dataset folder with the validation split; with text or questions its tokenizer counts "
          "instead of the model's own",
          a_folder());
    visit("text", text, "file whose text is read instead of a validation split");
    visit("questions", questions,
          "file of multiple-choice questions to answer instead, as HellaSwag's: a JSON object a "
          "line, with ctx, endings and label");
    visit("sequence_length", sequence_length,
          "tokens that the model sees at most; 0 is what it was trained with, at most 1024",
          at_least(0));
    visit("windows", windows,
          "validation windows, images or questions, spread over the set; 0 is all", at_least(0));
    visit("batch", batch, "sequences or images of one forward", at_least(1));
    visit("json", json, "print one JSON object");
  }

  ValidationPart part() const { return {.examples = windows, .batch = batch}; }
};

void require_data(const EvaluateOptions& options) {
  if (!options.data.empty()) return;
  throw ConfigError(
      "farstep evaluate: --data is missing: name the dataset whose validation split is read, or a "
      "file with --text or --questions");
}

constexpr int64_t kMostByDefault = 1024;  // tokens; attention's time grows with the square

// On a terminal, a bar with the time left and the loss so far.
class ReadingBar {
 public:
  void tell(double share, const std::string& words) {
    if (!is_terminal_) return;
    const double seconds = clock_.now_seconds() - begin_;
    bar_.show(share,
              fmt::format("{}, {} left", words, time_left_text(seconds / share * (1 - share))));
  }
  ~ReadingBar() {
    if (!is_terminal_) return;
    bar_.finish("done in " + duration_text(clock_.now_seconds() - begin_));
  }

 private:
  const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  const RealClock clock_;
  const double begin_ = clock_.now_seconds();
  ProgressBar bar_{stderr, is_terminal_, clock_, "evaluate"};
};

// Returns what `read` returns, which tells the bar; the bar ends before the result is printed.
template <typename Read>
auto with_bar(const Read& read) {
  ReadingBar bar;
  return read(TellShare([&](double share, double loss) {
    bar.tell(share, fmt::format("loss {:.4f} so far", loss));
  }));
}

// A language model with what it is asked about.
class LanguageEvaluation {
 public:
  LanguageEvaluation(const LanguageFolder& folder, const EvaluateOptions& options)
      : options_(options),
        own_(folder.folder.path.string()),
        model_(options.model.open(folder, 0)),
        length_(sequence_length(folder, options)) {}

  void run() const {
    if (options_.text && options_.questions) {
      throw ConfigError("farstep evaluate: --text and --questions exclude each other");
    }
    if (options_.questions) return answer_questions(*options_.questions);
    if (options_.text) return score_file(*options_.text);
    require_data(options_);
    read_shards();
  }

 private:
  // Beyond what it was trained with a model does worse, which a reader may take for its loss.
  static int64_t sequence_length(const LanguageFolder& folder, const EvaluateOptions& options) {
    const int64_t trained = folder.config.facts.positions;
    if (options.sequence_length == 0) return std::min(kMostByDefault, trained);
    if (options.sequence_length > trained) {
      spdlog::warn("--sequence-length {}: the model was trained with {} tokens at most",
                   options.sequence_length, trained);
    }
    return options.sequence_length;
  }

  // Of a model with a large vocabulary the logits are larger than all else of a forward.
  void require_room_for_logits(int64_t batch) const {
    if (options_.model.device != DeviceKind::kCpu) return;
    require_free_ram(
        static_cast<int64_t>(sizeof(float)) * batch * length_ * model_->config().vocabulary,
        fmt::format("a batch of {} sequences of {} tokens", batch, length_),
        "give a smaller --batch or --sequence-length");
  }

  // A token beyond the embedding would read other memory.
  void require_vocabulary(const std::string& where, int64_t vocabulary) const {
    if (vocabulary <= model_->config().vocabulary) return;
    throw DataError(
        fmt::format("{}: has tokens below {}, the model only below {}: give a dataset that "
                    "was made with the model's tokenizer",
                    where, vocabulary, model_->config().vocabulary));
  }

  // Without a dataset the model's own, which a checkpoint has beside its weights.
  std::unique_ptr<const Tokenizer> tokenizer() const {
    const auto& path = options_.data.empty() ? own_ : options_.data;
    if (options_.data.empty() && !has_tokenizer(own_)) {
      throw DataError(own_ + ": has no tokenizer; name a folder that has one with --data");
    }
    auto found = Tokenizer::load(path);
    require_vocabulary(path, found->vocabulary());
    return found;
  }

  // `bytes` of text, if they are known.
  void print(double loss_sum, int64_t tokens, std::optional<int64_t> bytes) const {
    const double loss = loss_sum / static_cast<double>(tokens);
    Json json{{"loss", loss}, {"tokens", tokens}, {"sequence_length", length_}};
    std::string more;
    if (bytes && *bytes > 0) {
      const double bits = loss_sum / std::numbers::ln2 / static_cast<double>(*bytes);
      json["bits_per_byte"] = bits;
      more = fmt::format(", {:.4f} bits per byte", bits);
    }
    if (options_.json) {
      fmt::print("{}\n", json.dump());
    } else {
      fmt::print("loss {:.4f}, perplexity {:.2f}{}, over {} tokens in sequences of {}\n", loss,
                 std::exp(loss), more, tokens, length_);
    }
  }

  void read_shards() const {
    const TokenDataset dataset(options_.data, kValidationSplit);
    require_vocabulary(options_.data, dataset.vocabulary());
    const TokenWindows windows(dataset, length_);
    require_room_for_logits(
        std::min(options_.batch, examples_taken(options_.windows, windows.size())));
    const auto result = with_bar([&](const TellShare& tell) {
      return evaluate(*model_, windows, options_.part(), {}, tell);
    });
    print(result.loss_sum, result.targets, text_bytes(windows));
  }

  // The text of the windows' targets, but for characters that a window's end cuts; nullopt without
  // a tokenizer.
  std::optional<int64_t> text_bytes(const TokenWindows& windows) const {
    if (!has_tokenizer(options_.data)) return std::nullopt;
    const auto tokens = tokenizer();
    const int64_t available = windows.size();
    const int64_t taken = examples_taken(options_.windows, available);
    int64_t bytes = 0;
    for (int64_t k = 0; k < taken; ++k) {
      const int64_t number = k * available / taken;  // as evaluate() chooses them
      const auto batch = windows.read({&number, 1});
      const auto ids = std::static_pointer_cast<const TokenBatch>(batch.memory);
      const std::vector<int32_t> targets(ids->tokens.begin() + 1, ids->tokens.end());
      bytes += std::ssize(tokens->decode(targets));
    }
    return bytes;
  }

  void score_file(const std::string& file) const {
    const auto text = read_text(file);
    if (text.empty()) throw DataError(file + ": is empty");
    const auto tokens = tokenizer();
    const auto ids = ids_of_text(*tokens, text);
    const auto score = with_bar([&](const TellShare& tell) {
      return score_text(*model_, ids, length_, options_.batch, tell);
    });
    print(score.loss_sum, score.tokens, std::ssize(text));
  }

  // The ids of a question. An ending is what the whole text has beyond the context's tokens.
  static ChoiceIds ids_of(const Question& question, const Tokenizer& tokens) {
    ChoiceIds ids{.context = ids_of_text(tokens, question.context), .endings = {}};
    for (const auto& ending : question.endings) {
      const auto all = ids_of_text(tokens, question.context + " " + ending);
      const auto shared = std::min(ids.context.size(), all.size() - 1);
      ids.endings.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(shared), all.end());
    }
    return ids;
  }

  void answer_questions(const std::string& file) const {
    const auto questions = read_questions(file);
    const auto tokens = tokenizer();
    const int64_t taken = examples_taken(options_.windows, std::ssize(questions));
    int64_t right = 0, right_by_length = 0;
    std::optional<ReadingBar> bar(std::in_place);
    for (int64_t k = 0; k < taken; ++k) {
      const auto& question = questions[static_cast<std::size_t>(k * std::ssize(questions) / taken)];
      const auto scores = score_endings(*model_, ids_of(question, *tokens), length_);
      auto by_length = scores;
      for (std::size_t e = 0; e < scores.size(); ++e) {
        by_length[e] /= static_cast<double>(characters(question.endings[e]));
      }
      right += best(scores) == question.right ? 1 : 0;
      right_by_length += best(by_length) == question.right ? 1 : 0;
      bar->tell(static_cast<double>(k + 1) / static_cast<double>(taken),
                fmt::format("{} of {} right", right, k + 1));
    }
    bar.reset();  // before the result
    const double accuracy = static_cast<double>(right) / static_cast<double>(taken);
    const double by_length = static_cast<double>(right_by_length) / static_cast<double>(taken);
    if (options_.json) {
      fmt::print(
          "{}\n",
          Json{{"accuracy", accuracy}, {"accuracy_by_length", by_length}, {"questions", taken}}
              .dump());
    } else {
      fmt::print(
          "accuracy {:.2f} % by likelihood, {:.2f} % by likelihood of a character, over {} "
          "questions\n",
          100 * accuracy, 100 * by_length, taken);
    }
  }

  static std::size_t best(const std::vector<double>& scores) {
    return static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
  }

  // Of UTF-8: bytes that do not go on with a character.
  static int64_t characters(const std::string& text) {
    return std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; });
  }

  const EvaluateOptions& options_;
  const std::string own_;  // the model's folder
  const std::unique_ptr<Llama> model_;
  const int64_t length_;
};

void evaluate_images(const HfFolder& folder, const EvaluateOptions& options) {
  if (options.text || options.questions) {
    throw ConfigError("farstep evaluate: an image classifier reads no text");
  }
  if (options.model.device != DeviceKind::kCpu || options.model.compute != ComputeType::kAuto) {
    throw ConfigError("farstep evaluate: images are classified by the processor, in fp32");
  }
  require_data(options);
  const ImageData data(options.data);
  const auto [config, net] = open_convnet(folder, options.model.device_config().threads);
  if (data.training.shape != config.images() || data.classes > config.classes) {
    throw DataError(fmt::format("{}: has images of {} in {} classes, the net is for {} in {}",
                                options.data, data.training.shape.text(), data.classes,
                                config.images().text(), config.classes));
  }
  const ImageExamples images(data.validation, config.statistics(), std::nullopt);
  auto& model = *net;  // a lambda cannot have a part of a binding
  const auto result = with_bar(
      [&](const TellShare& tell) { return evaluate(model, images, options.part(), {}, tell); });
  const double accuracy = result.accuracy().value();
  if (options.json) {
    fmt::print(
        "{}\n",
        Json{{"loss", result.loss()}, {"accuracy", accuracy}, {"images", result.targets}}.dump());
  } else {
    fmt::print("loss {:.4f}, accuracy {:.2f} %, over {} images\n", result.loss(), 100 * accuracy,
               result.targets);
  }
}

}  // namespace

int evaluate_command(const Arguments& arguments) {
  const auto options = parse_command_line<EvaluateOptions>("evaluate", arguments);
  if (!options) return 0;
  const auto folder = trained_model(options->model.model);
  if (is_convnet(folder.config)) {
    evaluate_images(folder, *options);
  } else {
    LanguageEvaluation(check_language_folder(folder), *options).run();
  }
  return 0;
}

}  // namespace farstep
