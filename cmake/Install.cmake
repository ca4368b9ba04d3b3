# `cmake --install`: program, both libraries, headers, pkg-config file, CMake package. All of it may be moved as a whole.
# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/everywire DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS everywire everywire_static EXPORT everywireTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET everywire_bin)
    install(TARGETS everywire_bin RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET rrq_producer)
    install(TARGETS rrq_producer LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(ew_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/everywire)
install(EXPORT everywireTargets NAMESPACE everywire:: DESTINATION ${ew_package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/everywireConfig.cmake.in ${PROJECT_BINARY_DIR}/everywireConfig.cmake
    INSTALL_DESTINATION ${ew_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/everywireConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/everywireConfig.cmake ${PROJECT_BINARY_DIR}/everywireConfigVersion.cmake
    DESTINATION ${ew_package_dir})

# The pkg-config file finds its prefix from its own place, so that `cmake --install --prefix` and a moved tree work.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR} OR IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
    set(ew_pc_prefix ${CMAKE_INSTALL_PREFIX})
    set(ew_pc_libdir ${CMAKE_INSTALL_FULL_LIBDIR})
    set(ew_pc_includedir ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
    file(RELATIVE_PATH ew_pc_up /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
    string(REGEX REPLACE "/$" "" ew_pc_up "${ew_pc_up}")
    set(ew_pc_prefix "\${pcfiledir}/${ew_pc_up}")
    set(ew_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
    set(ew_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/everywire.pc.in ${PROJECT_BINARY_DIR}/everywire.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/everywire.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
