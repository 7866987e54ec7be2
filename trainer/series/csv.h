// Series as a CSV file (RFC 4180, with line feeds). A pure function; thread-safe.
#pragma once

#include <span>
#include <string>

#include "trainer/series/series.h"

namespace farstep {

// Returns a line for each point: owner,series,place,time,value. Numbers have all their digits, with
// a point.
std::string csv_text(std::span<const Series> series);

}  // namespace farstep
