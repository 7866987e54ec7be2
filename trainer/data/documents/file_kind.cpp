#include "trainer/data/documents/file_kind.h"

#include <algorithm>
#include <fstream>
#include <span>

#include "trainer/base/error.h"
#include "trainer/data/documents/byte_reader.h"
#include "trainer/data/documents/json_line.h"
#include "trainer/data/documents/text_source.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

constexpr std::string_view kLines[] = {"jsonl", "ndjson", "jsonlines", "jsonlist", "ldjson"};
constexpr std::string_view kParquet[] = {"parquet", "parq", "pq"};
// Prose, then the sources of programs. WikiText's files end in raw and tokens.
constexpr std::string_view kTexts[] = {
    "txt",   "text", "md",    "markdown", "mdown", "rst",    "adoc", "org", "tex",  "ltx",  "raw",
    "log",   "srt",  "utf8",  "utf-8",    "asc",   "tokens", "c",    "h",   "cc",   "cpp",  "cxx",
    "hh",    "hpp",  "hxx",   "cu",       "cuh",   "m",      "py",   "pyi", "java", "js",   "mjs",
    "ts",    "tsx",  "jsx",   "go",       "rs",    "rb",     "php",  "pl",  "pm",   "sh",   "bash",
    "scala", "kt",   "kts",   "cs",       "swift", "r",      "jl",   "lua", "hs",   "lhs",  "ml",
    "mli",   "f",    "f90",   "f95",      "for",   "asm",    "s",    "sql", "el",   "lisp", "clj",
    "ex",    "exs",  "erl",   "v",        "vhd",   "zig",    "dart", "nim", "d",    "pas",  "ada",
    "adb",   "ads",  "proto", "cmake",    "mk"};

// What bytes are at which place of files that hold no text that is read, and what mends it.
struct Signature {
  std::size_t place;
  std::string_view bytes, what, remedy;
};
constexpr std::string_view kUnpack = "unpack it", kDecompress = "decompress it";
constexpr std::string_view kTable = "write it as Parquet or JSON lines";
constexpr std::string_view kLeaveOut = "leave it out";
constexpr Signature kSignatures[] = {
    {0, "version https://git-lfs.github.com/spec/",
     "a pointer of Git LFS to the file, not the file", "`git lfs pull` fetches it"},
    {0, "FSTOKENS\x01", "a shard of a dataset that is made already", "name its folder as `data`"},
    {0, "PK\x03\x04", "a zip archive", kUnpack},
    {257, "ustar", "a tar archive", kUnpack},
    {0, "7z\xbc\xaf\x27\x1c", "a 7z archive", kUnpack},
    {0, "Rar!\x1a", "a rar archive", kUnpack},
    {4, "1AY&SY", "compressed by bzip2", kDecompress},
    {0,
     "\xfd"
     "7zXZ",
     "compressed by xz", kDecompress},
    {0, "\x04\x22\x4d\x18", "compressed by lz4", kDecompress},
    {0, "\x1f\x8b", "compressed twice", kDecompress},
    {0, "\x28\xb5\x2f\xfd", "compressed twice", kDecompress},
    {0, std::string_view("ARROW1\0\0", 8), "a file of Arrow", kTable},
    {0, "\xff\xff\xff\xff", "a stream of Arrow", kTable},
    {0, "Obj\x01", "a file of Avro", kTable},
    {0, "\x89HDF", "a file of HDF5", kTable},
    {0, "SQLite format 3", "a database of SQLite", kTable},
    {0, "\x93NUMPY", "an array of NumPy", "write its ids as a .bin file of nanoGPT"},
    {0, "\x80\x04", "a pickle of Python", kLeaveOut},
    {0, "%PDF-", "a PDF", "take the text out of it"},
    {0, "{\\rtf", "a text of RTF", "save it as plain text"},
    {0, "\xff\xfe", "UTF-16 text, not UTF-8", "`iconv -f UTF-16 -t UTF-8` converts it"},
    {0, "\xfe\xff", "UTF-16 text, not UTF-8", "`iconv -f UTF-16 -t UTF-8` converts it"},
    {0, std::string_view("\0\0\xfe\xff", 4), "UTF-32 text, not UTF-8",
     "`iconv -f UTF-32 -t UTF-8` converts it"},
    {0, "\x89PNG", "a picture", kLeaveOut},
    {0, "\xff\xd8\xff", "a picture", kLeaveOut},
    {0, "GIF89a", "a picture", kLeaveOut},
    {0,
     "\x7f"
     "ELF",
     "a program", kLeaveOut},
    {0, "GGUF\x03", "a model", kLeaveOut}};

bool is_one_of(std::string_view suffix, std::span<const std::string_view> suffixes) {
  return std::ranges::find(suffixes, suffix) != suffixes.end();
}

FileForm unknown(std::string_view what, std::string_view remedy, bool may_be_text) {
  return {FileKind::kUnknown, fmt::format("{}; {}", what, remedy), may_be_text};
}

// Returns the suffix of a name in lower case. Numbers are none: part.00001, news.2008.
std::string suffix_of(const std::string& name) {
  const auto suffix = std::filesystem::path(name).extension().string();
  const bool is_number =
      suffix.size() < 2 || suffix.find_first_not_of("0123456789", 1) == suffix.npos;
  return is_number ? "" : suffix.substr(1);
}

// The bytes at the end are of Parquet too, so a text that begins so is not taken for one.
bool is_parquet(const std::filesystem::path& path, std::string_view first) {
  constexpr std::string_view kMark = "PAR1";
  if (!first.starts_with(kMark)) return false;
  std::ifstream in(path, std::ios::binary);
  std::string last(kMark.size(), '\0');
  in.seekg(-static_cast<std::streamoff>(last.size()), std::ios::end);
  in.read(last.data(), static_cast<std::streamsize>(last.size()));
  return last == kMark;
}

// What the first line is, if it is whole.
enum class FirstLine { kOther, kObject, kBeginsObject, kBeginsList };

FirstLine first_line_of(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return FirstLine::kOther;
  text.remove_prefix(begin);
  if (text[0] == '[') return FirstLine::kBeginsList;
  if (text[0] != '{') return FirstLine::kOther;
  const auto end = text.find('\n');
  // A longer line than is looked at is one of JSON lines: an object over several lines has none.
  if (end == text.npos && text.size() >= kBufferBytes / 2) return FirstLine::kObject;
  const JsonLine line(text.substr(0, end));
  return line.fault() ? FirstLine::kBeginsObject : FirstLine::kObject;
}

// A file of lines and one whole value both end in .json.
FileForm form_of_json(FirstLine first) {
  if (first == FirstLine::kObject) return {.kind = FileKind::kJsonLines, .why = {}};
  if (first == FirstLine::kBeginsList) {
    return unknown("one JSON list, not an object a line", "`jq -c '.[]'` makes lines of it", true);
  }
  return unknown("JSON, but not an object a line", "`jq -c .` makes one line of an object", true);
}

}  // namespace

std::string_view name_of(FileKind kind) {
  switch (kind) {
    case FileKind::kText:
      return "text";
    case FileKind::kJsonLines:
      return "JSON lines";
    case FileKind::kParquet:
      return "Parquet";
    case FileKind::kTokens:
      return "token ids";
    case FileKind::kUnknown:
      return "unknown";
  }
  throw InternalError("unknown kind of file");
}

FileForm form_of(const std::filesystem::path& path) {
  const auto suffix = suffix_of(name_without_compression(path));
  if (suffix == "bin") {  // any bytes are ids
    if (suffix_of(lower_name(path)) == suffix) return {.kind = FileKind::kTokens, .why = {}};
    return unknown("ids of tokens, compressed", kDecompress, false);
  }
  const TextBuffer text(path);
  const auto first = text.first_bytes();
  for (const auto& known : kSignatures) {
    if (first.size() >= known.place && first.substr(known.place).starts_with(known.bytes)) {
      return unknown(known.what, known.remedy, false);
    }
  }
  if (is_one_of(suffix, kParquet) || is_parquet(path, first)) {
    return {.kind = FileKind::kParquet, .why = {}};
  }
  if (is_one_of(suffix, kLines)) return {.kind = FileKind::kJsonLines, .why = {}};
  const auto first_line = first_line_of(without_byte_order_mark(first));
  if (suffix == "json" && !first.empty()) return form_of_json(first_line);
  if (suffix.empty() && first_line == FirstLine::kObject) {
    return {.kind = FileKind::kJsonLines, .why = {}};
  }
  if (first_line == FirstLine::kObject) {
    return unknown("JSON lines, by a name of another kind", "give it a name that ends in .jsonl",
                   true);
  }
  if (suffix.empty() || first.empty() || is_one_of(suffix, kTexts)) {
    return {.kind = FileKind::kText, .why = {}};
  }
  return unknown(fmt::format("\".{}\" is no kind that is read", suffix),
                 "if it is text, give it a name that ends in .txt", true);
}

std::string_view known_kinds() {
  return "text (.txt, .md, .rst, .tex, sources of programs such as .c and .py, and names without a "
         "suffix), JSON lines (.jsonl, .ndjson, .jsonlines, .json), Parquet (.parquet, .pq), and "
         "with --token-files ids (.bin); all but Parquet and .bin also with .gz or .zst behind";
}

std::string read_text(const std::filesystem::path& path) {
  const auto form = form_of(path);
  if (form.kind == FileKind::kUnknown && !form.may_be_text) {
    throw DataError(fmt::format("{}: {}", path.string(), form.why));
  }
  if (form.kind != FileKind::kText && form.kind != FileKind::kUnknown) {
    throw DataError(fmt::format(
        "{}: is a file of {}, and one text is asked for; take the text out of it, or make a "
        "dataset of it by `farstep tokenize`",
        path.string(), name_of(form.kind)));
  }
  auto document = TextSource(path, FileKind::kText).next();
  if (!document) return "";
  if (document->fault != TextFault::kNone) {
    throw DataError(fmt::format("{}: {}", path.string(), document->what));
  }
  return std::move(document->text);
}

}  // namespace farstep
