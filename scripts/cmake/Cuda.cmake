# CUDA: sets FARSTEP_HAS_CUDA and FARSTEP_CUDA_TEXT (what `farstep --version` says of it), and where
# it is on makes nvcc a compiler of the project and farstep_cudart the CUDA runtime library. What is
# built so starts on machines without a GPU or a driver all the same.
function(find_cuda)
  set(FARSTEP_HAS_CUDA OFF PARENT_SCOPE)
  set(FARSTEP_CUDA_TEXT "none" PARENT_SCOPE)
  if(FARSTEP_CUDA STREQUAL "AUTO" AND FARSTEP_SANITIZE)
    message(STATUS "CUDA: off, as sanitizers watch host code alone")
    return()
  elseif(FARSTEP_CUDA STREQUAL "AUTO" OR FARSTEP_CUDA)
    find_package(CUDAToolkit 13 QUIET)
  else()
    message(STATUS "CUDA: off, as FARSTEP_CUDA has it")
    return()
  endif()
  if(CUDAToolkit_FOUND)
    find_path(FARSTEP_CUBLAS_INCLUDE cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  if(CUDAToolkit_FOUND AND NOT FARSTEP_CUBLAS_INCLUDE)
    set(obstacle "the CUDA toolkit lacks cublasLt.h (package libcublas-dev-13-0)")
  elseif(CUDAToolkit_FOUND AND CUDAToolkit_VERSION VERSION_LESS 14)
    set(ENV{CUDACXX} "${CUDAToolkit_NVCC_EXECUTABLE}")
    set(ENV{CUDAHOSTCXX} "${CMAKE_CXX_COMPILER}")
    check_language(CUDA)
    set(obstacle "nvcc ${CUDAToolkit_VERSION} does not work with this C++ compiler")
  else()
    set(obstacle "there is no CUDA 13 toolkit")
  endif()
  if(CMAKE_CUDA_COMPILER)
    set(FARSTEP_HAS_CUDA ON PARENT_SCOPE)
  elseif(FARSTEP_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA: off, as ${obstacle}; Farstep will train on GPUs through LibTorch alone")
  else()
    message(FATAL_ERROR "FARSTEP_CUDA is ${FARSTEP_CUDA}, but ${obstacle}")
  endif()
endfunction()

include(CheckLanguage)
find_cuda()
if(NOT FARSTEP_HAS_CUDA)
  return()
endif()

# Machine code for A100, RTX 30, RTX 40, H100 and H200, B200 and B300, RTX 50; PTX for what comes
# after. One of them alone (-DCMAKE_CUDA_ARCHITECTURES=90-real) builds faster.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90-real 100-real 120)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # farstep_cudart instead
enable_language(CUDA)
find_package(CUDAToolkit 13 REQUIRED)  # again, as targets live in the folder that looks
string(REGEX REPLACE "-(real|virtual)" "" architectures "sm_${CMAKE_CUDA_ARCHITECTURES}")
string(REPLACE ";" ", sm_" architectures "${architectures}")
set(FARSTEP_CUDA_TEXT
    "CUDA ${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR} for ${architectures}")
if(NOT CMAKE_CUDA_ARCHITECTURES MATCHES "-real$")
  string(APPEND FARSTEP_CUDA_TEXT ", PTX")
endif()
message(STATUS "CUDA: on, ${FARSTEP_CUDA_TEXT}")

if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # which CMake 3.25 does not know
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
endif()
# What nvcc hands to the C++ compiler is not pedantic. Kernels may call constexpr functions such as
# std::bit_cast. With FARSTEP_WERROR a kernel that spills registers does not compile:
# scripts/kernel_resources.py shows what each takes.
set(cuda_options --expt-relaxed-constexpr -Xptxas=-warn-spills,-warn-lmem-usage -Xcompiler=-Wall,-Wextra)
if(FARSTEP_WERROR)
  list(APPEND cuda_options -Werror=all-warnings -Xptxas=-Werror -Xcompiler=-Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${cuda_options}>")

# The runtime that LibTorch loads, not a second copy with its own state; the toolkit's without LibTorch.
add_library(farstep_cudart INTERFACE)
target_include_directories(farstep_cudart SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
# Lets a source that runs on GPUs and elsewhere call what is only in builds with CUDA.
target_compile_definitions(farstep_cudart INTERFACE FARSTEP_HAS_CUDA)
set(FARSTEP_CUDART "${FARSTEP_LIBTORCH}/nvidia/cu13/lib/libcudart.so.13")
if(NOT EXISTS "${FARSTEP_CUDART}")
  get_target_property(FARSTEP_CUDART CUDA::cudart IMPORTED_LOCATION)
endif()
# Only programs with kernels in them need it.
target_link_libraries(farstep_cudart INTERFACE
    "-Wl,--push-state,--as-needed" "${FARSTEP_CUDART}" "-Wl,--pop-state")
