// What keeps sites from each other, as all of them found it, and what a site does about that.
//
// A check finds out, and all sites hear the same. What follows depends on where a site stands in
// the run: require_links().
#pragma once

#include <string>
#include <vector>

#include "wan/transport/mesh.h"
#include "wan/transport/store.h"

namespace farstep::wan {

// A link that could not be made. Of a site that cannot take part at all, `peer` is the site itself.
struct LinkFault {
  int site = 0, peer = 0;     // ranks: the site that tried, and whom it did not reach
  std::string text;           // names both, and the remedy
  bool is_temporary = false;  // another try may succeed, with nothing changed in a config
};

struct NetworkFindings {
  std::vector<PeerLink> links;    // by rank, with an empty one for this site; empty after a fault
  std::vector<LinkFault> faults;  // the same ones, in the same order, at all sites
};

// Publishes the faults that this site found, under keys that begin with `prefix`. Waits for all
// other sites, and returns the faults of all by rank. Throws PeerError if one does not come, or
// sends something else.
std::vector<LinkFault> share_faults(Store& store, const std::string& prefix,
                                    const MeshOptions& mesh, const std::vector<LinkFault>& own);

// Returns the faults that one site found as text for read_link_faults().
std::string text_of(const std::vector<LinkFault>& faults);
// Reads the faults that `site` found in a mesh of `size` sites. Throws DataError if they are
// malformed.
std::vector<LinkFault> read_link_faults(const std::string& text, int site, int size);

// Where a site stands in its run when its links are made.
enum class LinkStage {
  kStart,   // all sites begin
  kJoin,    // this site comes into a run that goes on, and had no links in it before
  kRejoin,  // the same, but it took part before, and its links worked
  kRun,     // it takes part
};

// Returns if there are no faults. At the start all sites throw the same error. A site that joins
// throws one if a fault is its own: the others go on without it. These are ConfigErrors with the
// pairs and remedies; PeerErrors that name a site that cannot take part if a later try may succeed.
// A site that joins again gets a LeftBehindError: its line has failed, and may come back.
// Otherwise throws a PeerError that names the peer to whom this site has no link: of several, the
// one that lacks most links. It names nobody if all links of this site are whole.
void require_links(const std::vector<LinkFault>& faults, const MeshOptions& mesh, LinkStage stage);

}  // namespace farstep::wan
