// Texts as gzip and zstd compress them.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/system/file.h"

namespace farstep {

inline std::string gzipped(const std::string& text) {
  TemporaryFolder folder;
  const auto path = folder / "a.gz";
  const gzFile file = ::gzopen(path.c_str(), "wb");
  REQUIRE(::gzwrite(file, text.data(), static_cast<unsigned>(text.size())) ==
          static_cast<int>(text.size()));
  REQUIRE(::gzclose(file) == Z_OK);
  return read_file(path);
}

// `window`: the logarithm of a long window, as `zstd --long=WINDOW` takes it from a pipe; 0: none.
inline std::string zstd_compressed(const std::string& text, int window = 0) {
  std::string out(::ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx* const context = ::ZSTD_createCCtx();
  if (window > 0) {
    ::ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window);
    ::ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  }
  ZSTD_inBuffer input{text.data(), text.size(), 0};
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  // In two calls, as its size is not known before.
  std::size_t left = ::ZSTD_compressStream2(context, &output, &input, ZSTD_e_flush);
  REQUIRE_FALSE(::ZSTD_isError(left));
  left = ::ZSTD_compressStream2(context, &output, &input, ZSTD_e_end);
  ::ZSTD_freeCCtx(context);
  REQUIRE(left == 0);
  out.resize(output.pos);
  return out;
}

}  // namespace farstep
