// The files of a tokenizer, in a folder of a dataset or of a model.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace farstep {

inline constexpr std::string_view kTokenizerFile = "tokenizer.model";     // of SentencePiece
inline constexpr std::string_view kTokenizerJsonFile = "tokenizer.json";  // of Hugging Face
inline constexpr std::string_view kTokenizerConfigFile = "tokenizer_config.json";  // beside it

// Returns the tokenizer's file at `path`: a file itself, or a folder with tokenizer.json or else
// tokenizer.model. Throws DataError if there is none.
std::filesystem::path tokenizer_file(const std::filesystem::path& path);

// Returns whether the folder has a file that tokenizer_file() would find.
bool has_tokenizer(const std::filesystem::path& folder);

// Whether the content of a tokenizer's file is that of a tokenizer.json.
bool is_json(std::string_view content);

// Returns the tokenizer's file at `path`, and the tokenizer_config.json beside it, which says which
// tokens begin and end a document, if there is one. Throws DataError as tokenizer_file() does.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& path);

// Copies the tokenizer at `path` to the folder, where tokenizer_file() finds it. An `end_token`
// that is not empty is noted in the copy's tokenizer_config.json. A SentencePiece model that puts
// bos before each text gets such a file, which says so. Throws DataError.
void copy_tokenizer(const std::filesystem::path& path, const std::filesystem::path& folder,
                    const std::string& end_token = "");

}  // namespace farstep
