#include "trainer/doctor/finding.h"

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("the worst fault decides the exit code, and a warning does not") {
  const auto exit_code = [](std::vector<Finding> findings) { return exit_code_of(findings); };
  const auto of = [](ErrorKind kind) { return fault("x", kind, "text"); };
  CHECK(exit_code({}) == 0);
  CHECK(exit_code({ok("x", ""), warning("x", ""), {"x", Grade::kLater, "", 0}}) == 0);
  CHECK(exit_code({of(ErrorKind::kPeer)}) == 4);
  CHECK(exit_code({of(ErrorKind::kPeer), warning("x", ""), of(ErrorKind::kData)}) == 3);
  CHECK(exit_code({of(ErrorKind::kData), of(ErrorKind::kConfig), of(ErrorKind::kPeer)}) == 2);
  CHECK(exit_code({of(ErrorKind::kConfig), of(ErrorKind::kInternal)}) == 1);
}

TEST_CASE("a look that throws is a fault of the error's kind") {
  const auto found = finding_of("disk", []() -> Finding { throw DataError("full: make room"); });
  CHECK(found.grade == Grade::kFault);
  CHECK(found.exit_code == 3);
  CHECK(line_of(found) == "fault    disk         full: make room");
  const auto json = to_json(found);
  CHECK(
      json.dump() ==
      R"({"subject":"disk","grade":"fault","text":"full: make room","exit_code":3,"figures":null})");
  CHECK(line_of(finding_of("disk", [] { return ok("disk", "fine"); })) ==
        "ok       disk         fine");
}

}  // namespace farstep
