// What kind of file it is that holds text, by its name without regard to case, and by its first
// bytes. All commands that read text ask here.
//
// Pure functions of a name and a file; thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace farstep {

enum class FileKind { kText, kJsonLines, kParquet, kTokens, kUnknown };

// Returns the kind in words: "JSON lines".
std::string_view name_of(FileKind kind);

struct FileForm {
  FileKind kind = FileKind::kUnknown;
  std::string why;           // it is unknown, with a remedy
  bool may_be_text = false;  // though unknown: nothing but its name, or the form of its JSON, is
                             // against it
};

// Returns the form of a file, in which it may also be compressed. A name without a suffix says
// nothing, and the bytes decide. Throws DataError for one that cannot be read.
FileForm form_of(const std::filesystem::path& path);

// Returns the kinds that are read, for a message.
std::string_view known_kinds();

// Returns the text of a file that the user names as one text, without a byte-order mark. Throws
// DataError for one that cannot be read, is of another kind, or is not UTF-8.
std::string read_text(const std::filesystem::path& path);

}  // namespace farstep
