// The report's other drawings: loss curves, and idle time by site and cause. Pure; thread-safe.
#pragma once

#include <string>

#include "trainer/report/report.h"

namespace farstep {

// Loss against rounds as an <svg> element: a thin line a site (class "site-0" to "site-7", averaged
// where there are more steps than pixels), and the validation loss (class "validation").
std::string loss_chart(const RunReport& report);

// A bar a site as an <svg> element: the share of its wall time that each cause took. Classes are
// the names of the causes.
std::string idle_chart(const RunReport& report);

}  // namespace farstep
