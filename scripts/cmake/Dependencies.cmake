# Everything from outside: Debian packages, and LibTorch as unpacked by scripts/setup.sh.

# Where programs look for libraries: LibTorch and NCCL in the build folder, and in a bundle the small
# libraries that it brings. RPATH serves the libraries of libraries too, unlike RUNPATH, so that a
# bundle needs no LD_LIBRARY_PATH for its own, which other programs would follow as well.
add_link_options("LINKER:--disable-new-dtags")
set(CMAKE_BUILD_RPATH "${FARSTEP_LIBTORCH}/torch/lib;${FARSTEP_LIBTORCH}/nvidia/nccl/lib")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Gloo REQUIRED)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
if(FARSTEP_TESTS)
  find_package(Catch2 REQUIRED)
  include(Catch)
endif()

# Parquet, an optional part: Arrow's library as scripts/setup.sh --parquet unpacks it from PyPI's wheel,
# or that of the system. Sets FARSTEP_HAS_PARQUET.
set(FARSTEP_HAS_PARQUET OFF)
file(GLOB arrow_libraries "${FARSTEP_ARROW}/pyarrow/libparquet.so.*" "${FARSTEP_ARROW}/pyarrow/libarrow.so.*")
pkg_check_modules(PARQUET QUIET IMPORTED_TARGET parquet)
if(FARSTEP_PARQUET AND (arrow_libraries OR PARQUET_FOUND))
  set(FARSTEP_HAS_PARQUET ON)
  list(APPEND CMAKE_BUILD_RPATH "${CMAKE_BINARY_DIR}")  # of the module that uses it
  add_library(farstep_arrow INTERFACE)
  if(arrow_libraries)
    target_include_directories(farstep_arrow SYSTEM INTERFACE "${FARSTEP_ARROW}/pyarrow/include")
    target_link_libraries(farstep_arrow INTERFACE ${arrow_libraries})
    list(APPEND CMAKE_BUILD_RPATH "${FARSTEP_ARROW}/pyarrow")
  else()
    target_link_libraries(farstep_arrow INTERFACE PkgConfig::PARQUET)
  endif()
elseif(FARSTEP_PARQUET)
  message(STATUS "Parquet: off, as there is no Arrow library; scripts/setup.sh --parquet fetches it")
endif()

if(FARSTEP_TORCH)
  # find_package(Torch) would demand a CUDA toolkit; a CPU build needs these two libraries only.
  # CUDA devices need nothing at link time: trainer/model/device loads libtorch_cuda.so when a
  # configuration asks for one.
  set(torch_folder "${FARSTEP_LIBTORCH}/torch")
  if(NOT EXISTS "${torch_folder}/lib/libtorch_cpu.so")
    message(FATAL_ERROR "LibTorch is not in ${FARSTEP_LIBTORCH}: run scripts/setup.sh")
  endif()
  add_library(farstep_libtorch INTERFACE)
  target_include_directories(farstep_libtorch SYSTEM INTERFACE
      "${torch_folder}/include" "${torch_folder}/include/torch/csrc/api/include")
  target_link_libraries(farstep_libtorch INTERFACE
      "${torch_folder}/lib/libtorch_cpu.so" "${torch_folder}/lib/libc10.so")
  # at::parallel_for is a plain loop where the including file is compiled without OpenMP, as by clang, whose
  # OpenMP is another library. GCC's is LibTorch's own here, so that there is one pool of threads.
  target_compile_options(farstep_libtorch INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fopenmp>)
  target_link_libraries(farstep_libtorch INTERFACE "${torch_folder}/lib/libgomp.so.1")
  # Both libraries export gloo:: symbols, and the first on the link line wins. As an option, Gloo stands
  # before all libraries, however CMake orders those. tests/trainer/run/gloo_symbols_test checks it.
  target_link_options(farstep_libtorch INTERFACE
      "LINKER:--no-as-needed,$<TARGET_FILE:gloo>,--as-needed")

  farstep_precompiled(torch LINK farstep_libtorch HEADERS <ATen/ATen.h>)
  farstep_precompiled(torch_cold OPTIMISE -O1 LINK farstep_libtorch HEADERS <ATen/ATen.h>)
endif()

farstep_precompiled(plain)
farstep_precompiled(cold OPTIMISE -O1)
if(FARSTEP_TESTS)
  farstep_precompiled(test OPTIMISE -Og LINK Catch2::Catch2
    HEADERS "${PROJECT_SOURCE_DIR}/tests/support/catch.h")
  if(FARSTEP_SANITIZE)
    target_compile_options(farstep_test_pch PRIVATE -O0)  # as the tests
  endif()
endif()
