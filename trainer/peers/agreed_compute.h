// Chooses the type of a run's matrix products where its config has auto.
#pragma once

#include "trainer/base/view.h"
#include "trainer/model/shape/model_config.h"
#include "trainer/settings/site_config.h"
#include "wan/transport/store.h"

namespace farstep {

// Returns the type for a site alone: `asked`. For auto, bf16 if one of its devices is a GPU, else
// fp32.
ComputeType own_compute(ComputeType asked, const SiteConfig& site);

// Returns the type for all members of a view: `asked`. For auto, bf16 if any member has a GPU, else
// fp32. All members must call it; they exchange their own types through `store`. Throws PeerError
// as `store` does.
ComputeType agreed_compute(ComputeType asked, const SiteConfig& own, const View& view,
                           wan::Store& store);

// Returns the type on which `sites` agreed when the run began, for a site that joins later.
ComputeType known_compute(ComputeType asked, const std::vector<std::string>& sites,
                          wan::Store& store);

// Returns whether the site has a GPU and computes in fp32, which leaves most of its speed unused.
// kSlowComputeText is the warning for this case.
bool is_slow_compute(ComputeType compute, const SiteConfig& site);
inline constexpr const char* kSlowComputeText =
    "inner.compute: fp32 leaves a GPU's tensor cores idle and has no fused step: bf16 is many "
    "times "
    "faster there; set it to bf16, or to auto, unless products in fp32 are what is asked for";

}  // namespace farstep
