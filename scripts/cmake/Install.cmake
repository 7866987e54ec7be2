# `cmake --install`, and the Debian package by `cpack -G DEB`. docs/install.md tells how to use both.
#
#   PREFIX/bin/farstep                   a link to the program
#   PREFIX/lib/farstep/bin/farstep       the program, and
#   PREFIX/lib/farstep/bin/farstep-torch that for commands which need LibTorch
#   PREFIX/lib/farstep/libtorch/         the libraries of LibTorch that it was built with
#   PREFIX/lib/libfarstep_outer.so       for programs with a training loop of their own, with
#   PREFIX/include/farstep/              its headers, and
#   PREFIX/lib/cmake/Farstep/            what find_package(Farstep) finds
#   PREFIX/lib/python3/dist-packages/    the Python package `farstep`, which loads the library
#   PREFIX/share/farstep/configs/        examples
#   PREFIX/share/doc/farstep/            documents and licences
#
# Components: program, manual (man pages and shell completion), libtorch, library. The bundle of docs/bundle.md is not part of an installation.
include(CMakePackageConfigHelpers)

set(FARSTEP_HOME lib/farstep)

if(TARGET farstep)
  install(TARGETS farstep RUNTIME DESTINATION ${FARSTEP_HOME}/bin COMPONENT program)
  file(CREATE_LINK ../${FARSTEP_HOME}/bin/farstep "${CMAKE_BINARY_DIR}/farstep_link" SYMBOLIC)
  install(FILES "${CMAKE_BINARY_DIR}/farstep_link" DESTINATION bin RENAME farstep COMPONENT program)
endif()
if(TARGET farstep-torch)
  set(libtorch "$ORIGIN/../libtorch")
  set_target_properties(farstep-torch PROPERTIES
    INSTALL_RPATH "$ORIGIN/../lib;${libtorch}/torch/lib;${libtorch}/nvidia/nccl/lib")
  install(TARGETS farstep-torch RUNTIME DESTINATION ${FARSTEP_HOME}/bin COMPONENT program)
  install(DIRECTORY "${FARSTEP_LIBTORCH}/" DESTINATION ${FARSTEP_HOME}/libtorch COMPONENT libtorch
    FILES_MATCHING PATTERN "*.so" PATTERN "*.so.*" PATTERN "LICENSE*" PATTERN "License.txt"
    PATTERN include EXCLUDE)
  install(CODE "file(GLOB licences \"${FARSTEP_LIBTORCH}/torch-*.dist-info/licenses/*\")
if(NOT licences)
  message(WARNING \"LibTorch's licence is not in ${FARSTEP_LIBTORCH}: remove that folder and run \"
    \"scripts/setup.sh before you hand the installation on\")
endif()" COMPONENT libtorch)
endif()

install(DIRECTORY configs/ DESTINATION share/farstep/configs COMPONENT program)
install(DIRECTORY docs/ DESTINATION share/doc/farstep COMPONENT program)
install(FILES README.md ARCHITECTURE.md DESTINATION share/doc/farstep COMPONENT program)
install(FILES LICENSE DESTINATION share/doc/farstep RENAME copyright COMPONENT program)
install(FILES "scripts/systemd/farstep@.service" DESTINATION lib/systemd/system COMPONENT program
  OPTIONAL)
install(FILES scripts/systemd/farstep.conf DESTINATION lib/sysusers.d COMPONENT program OPTIONAL)

if(FARSTEP_OUTER_LIBRARY)
  install(TARGETS farstep_outer EXPORT FarstepTargets LIBRARY DESTINATION lib COMPONENT library)
  install(DIRECTORY "${CMAKE_BINARY_DIR}/include/farstep" DESTINATION include COMPONENT library)
  # Debian's Python looks there under /usr. The package finds the library by its place.
  install(DIRECTORY outer_optimizer/python/farstep DESTINATION lib/python3/dist-packages
    COMPONENT library FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)
  set(package_folder lib/cmake/Farstep)
  install(EXPORT FarstepTargets NAMESPACE Farstep:: DESTINATION ${package_folder} COMPONENT library)
  configure_package_config_file(scripts/cmake/FarstepConfig.cmake.in
    "${CMAKE_BINARY_DIR}/FarstepConfig.cmake" INSTALL_DESTINATION ${package_folder})
  # Versions below 1 promise nothing to the next one.
  write_basic_package_version_file("${CMAKE_BINARY_DIR}/FarstepConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES "${CMAKE_BINARY_DIR}/FarstepConfig.cmake" "${CMAKE_BINARY_DIR}/FarstepConfigVersion.cmake"
    DESTINATION ${package_folder} COMPONENT library)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME farstep)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Farstep developers <farstep@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trainer for models at several sites over slow networks")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL program manual libtorch library)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/scripts/debian/postinst")
# The Debian packages of what is linked. LibTorch is looked up, and is in the package itself.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
  "${FARSTEP_LIBTORCH}/torch/lib" "${FARSTEP_LIBTORCH}/nvidia/cu13/lib" "${FARSTEP_LIBTORCH}/nvidia/nccl/lib")
include(CPack)
