# One leaf folder = one library = one layer. Names: farstep_<name>.
#
# farstep_library(NAME SOURCES a.cpp ... [CUDA b.cu c.cpp ...] [DEPS base ...] [LINK outside::target ...]
#                 [TORCH] [COLD] [REPLACED])
#   COLD: has no loop over values, tokens or records, and is compiled with -O1.
#   REPLACED: tests link other builds of some sources first, so each source is an object of its own.
#   DEPS are other layers; TORCH gives the sources LibTorch and its precompiled header. CUDA sources
#   are left out of a build without CUDA; a .cu may not include LibTorch's headers, nor fmt's.
function(farstep_library name)
  cmake_parse_arguments(ARG "TORCH;COLD;REPLACED" "" "SOURCES;CUDA;DEPS;LINK" ${ARGN})
  if(ARG_CUDA AND FARSTEP_HAS_CUDA)
    list(APPEND ARG_SOURCES ${ARG_CUDA})
    list(APPEND ARG_DEPS cuda)
  endif()
  add_library(farstep_${name} STATIC ${ARG_SOURCES})
  if(FARSTEP_SANITIZE STREQUAL "thread")
    set_target_properties(farstep_${name} PROPERTIES EXCLUDE_FROM_ALL ON)  # if no test of threads needs it
  endif()
  target_include_directories(farstep_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  if(ARG_REPLACED AND FARSTEP_TESTS)
    set_target_properties(farstep_${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  set(headers plain)
  if(ARG_COLD)
    set(headers cold)
    # Compiles in two thirds of the time of -O3. The linker may take an inline function that others
    # share from here: docs/results/building.md has what that costs.
    target_compile_options(farstep_${name}
      PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")
  endif()
  farstep_link(farstep_${name} PUBLIC "${ARG_DEPS}" "${ARG_LINK}" "${ARG_TORCH}" ${headers})
endfunction()

# farstep_test(NAME SOURCES a_test.cpp ... DEPS layer ... [LINK ...] [LABELS fast] [TORCH] [THREADS]
#              [GPU] [OPTIMISED] [APART])
#   One Catch2 program; every TEST_CASE becomes a CTest test with the label, one word: Catch2's
#   discovery takes no list. THREADS: it starts threads; only such programs are built for
#   ThreadSanitizer. GPU: it has tests with the tag [gpu], and is bundled. OPTIMISED: optimisation could
#   change its results, or it does less under a sanitizer, so FARSTEP_ALL_TESTS=OFF keeps it. The label of
#   those that it leaves out ends with -thorough. APART: its
#   sources give one name to different helpers, so each is a unit of its own.
function(farstep_test name)
  cmake_parse_arguments(ARG "TORCH;THREADS;GPU;OPTIMISED;APART" "" "SOURCES;DEPS;LINK;LABELS" ${ARGN})
  if(FARSTEP_SANITIZE STREQUAL "thread" AND NOT ARG_THREADS)
    return()
  endif()
  if(NOT (ARG_TORCH OR ARG_GPU OR ARG_OPTIMISED))
    if(NOT FARSTEP_ALL_TESTS)
      return()
    endif()
    string(APPEND ARG_LABELS "-thorough")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  if(ARG_APART)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  # A source that defines a macro before Catch2's header must be a unit of its own.
  foreach(source IN LISTS ARG_SOURCES)
    if(source MATCHES "one_thread.cpp$")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  farstep_link(${name} PRIVATE "test_process;test_support;${ARG_DEPS}" "${ARG_LINK};Catch2::Catch2WithMain"
    "${ARG_TORCH}" test)
  # Catch2's assertions take twice as long to compile with -O3, and what is tested has its own objects.
  target_compile_options(${name} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>")
  if(FARSTEP_SANITIZE)
    # As much again: a sanitizer's checks go into each assertion. With LibTorch its precompiled header has -O1.
    if(NOT ARG_TORCH)
      target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-O0>")
    endif()
    target_compile_definitions(${name} PRIVATE FARSTEP_SANITIZED)
  endif()
  # SKIP_IS_FAILURE: else Catch2 3 sets a code of its own. Version 2 ignores it.
  catch_discover_tests(${name} SKIP_IS_FAILURE TEST_PREFIX "${name}: "
      PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 120 SKIP_RETURN_CODE 77
        PROCESSORS 2)  # they compute, while end-to-end tests mostly wait: more of those run at once
  if(ARG_GPU)
    farstep_bundle(${name} test)
  endif()
endfunction()

# farstep_python_test(NAME FOLDER SCRIPT [ARGUMENT...]): a test that is a program in Python.
function(farstep_python_test name folder)
  add_test(NAME "${name}" COMMAND Python3::Interpreter ${ARGN} WORKING_DIRECTORY "${folder}")
  # Python keeps compiled modules in the build folder, not in the tree, and so compiles those of PyTorch
  # and transformers once, not in each test.
  set_tests_properties("${name}" PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT_MODIFICATION
    "PYTHONPYCACHEPREFIX=set:${CMAKE_BINARY_DIR}/python_cache;PYTHONDONTWRITEBYTECODE=unset:")
endfunction()

# farstep_unittest(NAME FOLDER FILE [METHOD]): a file of unittest, or the test of that name in it.
function(farstep_unittest name folder)
  farstep_python_test("${name}" "${folder}" "${PROJECT_SOURCE_DIR}/tests/support/run_unittest.py" ${ARGN})
endfunction()

# Puts a program into the bundle, and one that is a `test` or a `bench` into scripts/gpu_check.sh's
# list. A bench prints its GPU figures in lines that begin with "result: ", a few words each.
function(farstep_bundle name kind)
  install(TARGETS ${name} RUNTIME DESTINATION bin COMPONENT bundle EXCLUDE_FROM_ALL)
  set_property(GLOBAL APPEND PROPERTY FARSTEP_BUNDLED ${name})
  if(NOT kind STREQUAL "program")
    set_property(GLOBAL APPEND_STRING PROPERTY FARSTEP_GPU_PROGRAMS "${kind} ${name}\n")
  endif()
endfunction()

# The target `bundled`, all programs of the bundle, and the list for gpu_check.sh: called last.
function(farstep_list_bundle)
  get_property(bundled GLOBAL PROPERTY FARSTEP_BUNDLED)
  add_custom_target(bundled DEPENDS ${bundled})
  get_property(programs GLOBAL PROPERTY FARSTEP_GPU_PROGRAMS)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/gpu_programs.txt" CONTENT "${programs}")
  install(FILES "${CMAKE_BINARY_DIR}/gpu_programs.txt" DESTINATION . COMPONENT bundle
    EXCLUDE_FROM_ALL)
  install(PROGRAMS scripts/gpu_check.sh tests/bench/peer_step.py tests/bench/peer_model.py
    DESTINATION . COMPONENT bundle EXCLUDE_FROM_ALL)
  install(FILES scripts/find_libtorch.sh scripts/script_help.sh tests/bench/peer_versions.py
    scripts/python_oracles.txt scripts/python_torch.txt LICENSE DESTINATION . COMPONENT bundle EXCLUDE_FROM_ALL)
endfunction()

# The target `manual`, part of `all`: man pages and shell completion, below share/ of the build folder
# and of an installation.
function(farstep_manual)
  set(share "${CMAKE_BINARY_DIR}/share")
  set(stamp "${CMAKE_BINARY_DIR}/manual.stamp")
  add_custom_command(OUTPUT "${stamp}"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${share}/man"  # a page of a former command would stay
    COMMAND farstep manual --output "${share}"
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS farstep farstep-torch
    COMMENT "Writing the man pages and shell completion")
  add_custom_target(manual ALL DEPENDS "${stamp}")
  foreach(part IN ITEMS man bash-completion zsh fish)
    install(DIRECTORY "${share}/${part}" DESTINATION share COMPONENT manual)
  endforeach()
endfunction()

# Links layers and libraries from outside, and takes a precompiled header: that of `headers` (plain, cold,
# test, torch or torch_cold), or LibTorch's for what asks for `torch`.
function(farstep_link target visibility layers outside torch headers)
  foreach(layer IN LISTS layers)
    target_link_libraries(${target} ${visibility} farstep_${layer})
  endforeach()
  target_link_libraries(${target} ${visibility} ${outside})
  if(torch)
    target_link_libraries(${target} ${visibility} farstep_libtorch)
    if(headers STREQUAL "plain")
      set(headers torch)
    else()
      set(headers torch_cold)
    endif()
  elseif(headers MATCHES "^(plain|cold)$")
    farstep_plain_options(${target})
  endif()
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")  # one optimisation for all
    string(REGEX REPLACE "^cold$" plain headers ${headers})
    string(REGEX REPLACE "_cold$" "" headers ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM farstep_${headers}_pch)
endfunction()

# farstep_precompiled(NAME [OPTIMISE -O...] LINK ... HEADERS ...): the header that targets reuse as
#   farstep_NAME_pch. GCC 14 takes it only for what is compiled with about as much optimisation:
#   OPTIMISE is that of these targets in a release build.
function(farstep_precompiled name)
  cmake_parse_arguments(ARG "" "OPTIMISE" "LINK;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/${name}_pch.cpp" CONTENT "")
  add_library(farstep_${name}_pch STATIC EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/${name}_pch.cpp")
  target_link_libraries(farstep_${name}_pch PRIVATE
      ${ARG_LINK} spdlog::spdlog fmt::fmt nlohmann_json::nlohmann_json)
  if(name MATCHES "^(plain|cold)$")
    farstep_plain_options(farstep_${name}_pch)
  endif()
  if(ARG_OPTIMISE)
    target_compile_options(farstep_${name}_pch PRIVATE $<$<CONFIG:Release>:${ARG_OPTIMISE}>)
  endif()
  target_precompile_headers(farstep_${name}_pch PRIVATE
      ${ARG_HEADERS} <fmt/format.h> <nlohmann/json.hpp> <spdlog/spdlog.h>)
endfunction()

# The options in which the precompiled headers `plain` and `cold` and what reuses them must agree.
function(farstep_plain_options target)
  if(FARSTEP_OUTER_LIBRARY)
    # For a shared library, libfarstep_outer.so, as fast as for a program: nobody replaces its functions.
    target_compile_options(${target} PRIVATE
        "$<$<COMPILE_LANGUAGE:CXX>:-fPIC;-fno-semantic-interposition>"
        "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC>")
  endif()
  if(FARSTEP_FUZZ)
    # Lets libFuzzer count which branches an input takes.
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
