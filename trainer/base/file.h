// Whole-file reads and durable writes. Every error is a DataError that names the path.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace farstep {

// The file's content. Throws DataError if it cannot be read.
std::string read_file(const std::filesystem::path& path);

// Writes `content` so that after a crash `path` holds either its old content or all of the new:
// temporary file beside it, fsync, rename, fsync of the folder. Throws DataError.
void write_file_durably(const std::filesystem::path& path, std::string_view content);

// Gives a file or folder, itself flushed already, its final name for good: flushes the folder it is
// in as well. Throws DataError.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

// Gives the folder `staged`, flushed already, the name `target` for good, and removes what had it:
// in one step, so that a crash leaves one of the two whole under that name, where the file system
// can swap folders. Throws DataError.
void replace_folder_durably(const std::filesystem::path& staged,
                            const std::filesystem::path& target);

// Removes a folder with all in it, if it is there. Throws DataError.
void remove_folder(const std::filesystem::path& path);

// Flushes a file or folder to the disk. Throws DataError.
void sync_to_disk(const std::filesystem::path& path);

// Makes the folder and its parents. Throws DataError.
void make_folder(const std::filesystem::path& path);

}  // namespace farstep
