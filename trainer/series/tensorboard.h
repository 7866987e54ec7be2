// Series as event files of TensorBoard: records framed as TFRecord, each an Event message of
// protocol buffers. Pure functions, but for the one that writes; thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "trainer/series/series.h"

namespace farstep {

// Writes FOLDER/OWNER/events.out.tfevents.farstep for each owner; files of before are replaced.
// `tensorboard --logdir FOLDER` shows them. Throws DataError.
void write_tensorboard(std::span<const Series> series, const std::filesystem::path& folder);

// Returns the file of these series: a record of the format's version, then a record for each point.
std::string tensorboard_events(std::span<const Series> series);

// CRC-32C (Castagnoli), as iSCSI has it.
uint32_t crc32c(std::string_view bytes);

}  // namespace farstep
