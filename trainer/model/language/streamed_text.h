// The text of tokens that come one by one, given out as soon as it is certain.
//
// A character may be spread over several tokens, and a stop string may begin with the newest text.
// Such text is held back. Torch-free. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace farstep {

class StreamedText {
 public:
  // The text of some ids, as Tokenizer::decode() has it.
  using Decode = std::function<std::string(std::span<const int32_t>)>;

  // `before` are the ids that the text continues: the first token's text may depend on them. The
  // text ends before the first place that has one of `stops`, which are not empty.
  StreamedText(Decode decode, std::vector<int32_t> before, std::vector<std::string> stops);

  // Adds a token. Returns the text that is certain since the last call.
  std::string add(int32_t id);
  // Whether a stop string was met. No token may be added then.
  bool stopped() const { return stopped_; }
  // Returns what was held back, at the end of the tokens.
  std::string finish();

 private:
  void decode_new();
  std::string take(std::size_t bytes);

  const Decode decode_;
  const std::vector<std::string> stops_;
  // Ids whose text is certain and that the next one is decoded with, then ids whose text is not.
  std::vector<int32_t> ids_;
  std::size_t certain_;  // of ids_
  std::string held_;     // text that is decoded and not given out
  bool stopped_ = false;
};

}  // namespace farstep
