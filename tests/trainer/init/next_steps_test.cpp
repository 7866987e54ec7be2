#include "trainer/init/next_steps.h"

#include "tests/support/catch.h"

namespace farstep {

using Catch::Contains;

TEST_CASE("the next steps are commands for every site, that copy no other site's key") {
  InitPlan plan;
  plan.run = "mine";
  plan.sites = {{"seoul", "203.0.113.10", std::nullopt}, {"home", "", std::nullopt}};
  plan.host = "seoul";
  plan.data = "data/mine";
  const Here here{.folder = "/home/kim", .has_data = false};
  const auto text = next_steps(plan, "mine", here);
  CHECK_THAT(text, Contains("  tar -cf - mine/run.json mine/seoul.json mine/keys/sites/seoul | ssh "
                            "USER@203.0.113.10 'tar -xf -'\n"));
  // Nobody gets to a site behind NAT, so it fetches its files.
  CHECK_THAT(text, Contains("at home: ssh USER@203.0.113.10 'tar -C /home/kim -cf - mine/run.json "
                            "mine/home.json mine/keys/sites/home' | tar -xf -"));
  CHECK_THAT(text, Contains("its files and its own keys, and nothing else of keys/:\n"));
  CHECK_THAT(text, Contains("Bring the data to every site too, as data/mine"));
  CHECK_THAT(text, Contains("home: farstep doctor mine/home.json --peers"));
  CHECK_THAT(text, Contains("seoul: farstep train mine/seoul.json --resume=auto"));
  CHECK_THAT(text, Contains("mine/keys/authority.key"));
  CHECK_THAT(text, Contains("min_sites 1. Only seoul"));
  // Data that is here travels with the files: one command a site.
  const Here with_data{.folder = "/home/kim", .has_data = true};
  CHECK_THAT(next_steps(plan, "mine", with_data),
             Contains("mine/keys/sites/seoul data/mine | ssh") && !Contains("Bring the data"));
  // Not if it is elsewhere at this machine, or the folder is.
  plan.data = "/data/mine";
  CHECK_THAT(next_steps(plan, "mine", with_data),
             Contains("Bring the data to every site too, as /data/mine"));
  CHECK_THAT(next_steps(plan, "/srv/mine", with_data),
             Contains("tar -C /srv/mine -cf - run.json seoul.json keys/sites/seoul | ssh "
                      "USER@203.0.113.10 'mkdir -p /srv/mine && tar -C /srv/mine -xf -'"));
  plan.has_keys = false;
  CHECK_THAT(next_steps(plan, "mine", here), !Contains("keys"));
  // A folder with a space is one word at both ends.
  CHECK_THAT(next_steps(plan, "my run", here),
             Contains("tar -cf - 'my run/run.json' 'my run/seoul.json' | ssh") &&
                 Contains("-cf - '\\''my run/run.json'\\''"));
  plan.sites.push_back({"lyon", "198.51.100.7", std::nullopt});
  CHECK_THAT(next_steps(plan, "mine", here), Contains("while 2 of the 3 are there"));
  plan.sites = {{"seoul", "203.0.113.10", std::nullopt}};
  CHECK_THAT(next_steps(plan, "mine", here), !Contains("min_sites"));
}

}  // namespace farstep
