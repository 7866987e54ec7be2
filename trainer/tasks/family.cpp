#include "trainer/tasks/family.h"

#include "trainer/base/error.h"
#include "trainer/tasks/image_family.h"
#include "trainer/tasks/language_family.h"

namespace farstep {

const Family& family_of(const RunConfig& run) {
  static const LanguageFamily language;
  static const ImageFamily images;
  switch (run.model.family) {
    case ModelFamily::kLanguage:
      return language;
    case ModelFamily::kImages:
      return images;
  }
  throw InternalError("no such model family");
}

}  // namespace farstep
