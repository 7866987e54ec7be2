// A run's figures in the text format that Prometheus reads. A pure function; thread-safe.
#pragma once

#include <span>
#include <string>

#include "trainer/watch/alarms.h"

namespace farstep {

inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

// Returns the figures, each with its help and type. A figure that is not known yet is left out.
std::string prometheus_text(const RunReport& report, std::span<const Alarm> alarms);

}  // namespace farstep
