# `cmake --install`: program, both libraries, headers, pkg-config file, CMake package, man pages, systemd units. All of it may be moved
# as a whole. Three components, which become three packages (cmake/Package.cmake): library, development, program.
# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/everywire DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
    FILES_MATCHING PATTERN "*.h")
install(TARGETS everywire everywire_static EXPORT everywireTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET everywire_bin)
    install(TARGETS everywire_bin RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
    # The scripts for shells are the program's own words: it is asked for them, unless it runs on another machine only.
    if(NOT CMAKE_CROSSCOMPILING)
        foreach(script bash:share/bash-completion/completions:everywire zsh:share/zsh/site-functions:_everywire
                       fish:share/fish/vendor_completions.d:everywire.fish)
            string(REPLACE ":" ";" script ${script})
            list(GET script 0 shell)
            list(GET script 1 folder)
            list(GET script 2 name)
            set(file ${PROJECT_BINARY_DIR}/completions/${shell}/${name})
            add_custom_command(OUTPUT ${file} DEPENDS everywire_bin
                COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/completions/${shell}
                COMMAND everywire_bin completion ${shell} > ${file} VERBATIM)
            list(APPEND ew_completions ${file})
            install(FILES ${file} DESTINATION ${folder} COMPONENT program)
        endforeach()
        add_custom_target(completions ALL DEPENDS ${ew_completions})
    endif()
endif()
if(TARGET rrq_producer)
    # No library to link with: RRQ's clients are told its path, and open it. So it has a folder of its own, and no soname that would count.
    install(TARGETS rrq_producer LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/everywire COMPONENT program)
endif()
if(NOT EW_DEBIAN_PACKAGES) # these have a copyright file of their own
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/docs/everywire.yaml DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT program)

if(EW_MAN_DIR)
    install(DIRECTORY ${EW_MAN_DIR}/man1 ${EW_MAN_DIR}/man5 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
    install(DIRECTORY ${EW_MAN_DIR}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT development)
endif()

# systemd looks in lib, whatever the folder for libraries is.
set(ew_bindir ${CMAKE_INSTALL_FULL_BINDIR})
set(ew_sysconfdir ${CMAKE_INSTALL_FULL_SYSCONFDIR})
configure_file(${PROJECT_SOURCE_DIR}/packaging/systemd/everywire.service.in ${PROJECT_BINARY_DIR}/systemd/everywire.service @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/systemd/everywire.service ${PROJECT_SOURCE_DIR}/packaging/systemd/everywire.socket
    DESTINATION lib/systemd/system COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/systemd/everywire.sysusers DESTINATION lib/sysusers.d RENAME everywire.conf COMPONENT program)

set(ew_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/everywire)
install(EXPORT everywireTargets NAMESPACE everywire:: DESTINATION ${ew_package_dir} COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/everywireConfig.cmake.in ${PROJECT_BINARY_DIR}/everywireConfig.cmake
    INSTALL_DESTINATION ${ew_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/everywireConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/everywireConfig.cmake ${PROJECT_BINARY_DIR}/everywireConfigVersion.cmake
    DESTINATION ${ew_package_dir} COMPONENT development)

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
install(FILES ${PROJECT_BINARY_DIR}/everywire.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
