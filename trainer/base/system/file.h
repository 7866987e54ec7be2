// Reads whole files and writes durably. Every error is a DataError that names the path.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace farstep {

// Returns the content of a file. Throws DataError if it cannot be read.
std::string read_file(const std::filesystem::path& path);

// Writes `content` so that after a crash `path` has either its old content or all of the new. It
// writes a temporary file in the same folder, flushes, renames it, and flushes the folder. Throws
// DataError.
void write_file_durably(const std::filesystem::path& path, std::string_view content);

// Renames a file or folder that has been flushed, and flushes the folder that contains it, so that
// the new name survives a crash. Throws DataError.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

// Moves the flushed folder `staged` to `target` and removes the folder that was there. Where the
// file system can exchange folders this is one step, and a crash leaves one of the two whole under
// that name. Throws DataError.
void replace_folder_durably(const std::filesystem::path& staged,
                            const std::filesystem::path& target);

// Renames a file that is damaged to PATH.damaged, in place of an older one of that name, so that
// its owner can go on without it. Throws DataError.
void set_aside(const std::filesystem::path& path);

// Removes a file, if it exists, and flushes its folder, so that a crash does not bring it back.
// Throws DataError.
void remove_file_durably(const std::filesystem::path& path);

// Removes a folder and its content, if it exists. Throws DataError.
void remove_folder(const std::filesystem::path& path);

// Flushes a file or folder to the disk. Throws DataError.
void sync_to_disk(const std::filesystem::path& path);

// Creates the folder and its parents. Throws DataError.
void make_folder(const std::filesystem::path& path);

}  // namespace farstep
