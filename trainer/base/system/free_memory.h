// How much memory this process can still get.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace farstep {

// Returns the bytes that the system could give to this process: free memory and swap, or less where
// its control group, as of a container or a service, has a limit. nullopt if the system does not
// say. `root` is the folder that has proc/ and sys/.
std::optional<int64_t> free_memory_bytes(const std::filesystem::path& root = "/");

// The same without swap, which is too slow for what every step uses.
std::optional<int64_t> free_ram_bytes(const std::filesystem::path& root = "/");

// Throws ConfigError unless so many bytes of RAM are free, or the system does not say. The message
// begins with `what` needs them, and ends with `remedy`.
void require_free_ram(int64_t bytes, const std::string& what, const std::string& remedy,
                      const std::filesystem::path& root = "/");

}  // namespace farstep
