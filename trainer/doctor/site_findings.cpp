#include "trainer/doctor/site_findings.h"

namespace farstep {

Finding site_finding(const SiteCheck& check, CheckedSite& site) {
  const std::string subject(check.name);
  if (check.needs_run && !site.run) {
    return {subject, Grade::kLater, "needs the run, which the coordinator hands out", 0};
  }
  return finding_of(subject, [&] {
    const auto found = check.look(site);
    if (!found) return Finding{subject, Grade::kLater, "needs what is not known here", 0};
    auto finding = (found->is_warning ? warning : ok)(subject, found->text);
    finding.figures = found->figures;
    return finding;
  });
}

void tell_site_findings(CheckedSite& site, const Tell& tell) {
  for (const auto& check : site_checks()) tell(site_finding(check, site));
}

}  // namespace farstep
