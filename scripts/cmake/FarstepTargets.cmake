# One leaf folder = one library = one layer. Names: farstep_<name>.
#
# farstep_library(NAME SOURCES a.cpp ... [DEPS base ...] [LINK outside::target ...] [TORCH])
#   DEPS are other layers; TORCH gives the sources LibTorch and its precompiled header.
function(farstep_library name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPS;LINK" ${ARGN})
  add_library(farstep_${name} STATIC ${ARG_SOURCES})
  target_include_directories(farstep_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  farstep_link(farstep_${name} PUBLIC "${ARG_DEPS}" "${ARG_LINK}" "${ARG_TORCH}")
endfunction()

# farstep_test(NAME SOURCES a_test.cpp ... DEPS layer ... [LINK ...] [LABELS fast] [TORCH])
#   One Catch2 program; every TEST_CASE becomes a CTest test with the labels.
function(farstep_test name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPS;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_definitions(${name} PRIVATE
      FARSTEP_GOLDEN_FOLDER="${PROJECT_SOURCE_DIR}/tests/golden")
  farstep_link(${name} PRIVATE "test_support;${ARG_DEPS}" "${ARG_LINK}" "${ARG_TORCH}")
  catch_discover_tests(${name} TEST_PREFIX "${name}: "
      PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 120 SKIP_REGULAR_EXPRESSION "SKIPPED:")
endfunction()

function(farstep_link target visibility layers outside torch)
  foreach(layer IN LISTS layers)
    target_link_libraries(${target} ${visibility} farstep_${layer})
  endforeach()
  target_link_libraries(${target} ${visibility} ${outside})
  if(torch)
    target_link_libraries(${target} ${visibility} farstep_libtorch)
    target_precompile_headers(${target} REUSE_FROM farstep_torch_pch)
  endif()
endfunction()
