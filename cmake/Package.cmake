# Debian packages by CPack, split as Debian does: libeverywire0, libeverywire-dev, everywire. `./dev package` builds them, with the preset
# "package" (EW_DEBIAN_PACKAGES=ON, prefix /usr). The version is the project's; what each needs, dpkg-shlibdeps and pkg-config tell.
# SPDX-License-Identifier: Apache-2.0
set(EW_DEBIAN_REVISION 1 CACHE STRING "which packaging of this version it is")
set(EW_DEBIAN_MAINTAINER "The everywire authors <everywire@lists.everywire.invalid>" CACHE STRING "name and address for the packages")
set(ew_lib_package libeverywire${EW_SOVERSION})
set(ew_debian ${PROJECT_SOURCE_DIR}/packaging/debian)

# ---- papers that every package has ----
set(ew_papers ${PROJECT_BINARY_DIR}/debian)
execute_process(
    COMMAND ${EW_PYTHON} ${PROJECT_SOURCE_DIR}/tools/debian-papers --out ${ew_papers} --version ${PROJECT_VERSION}-${EW_DEBIAN_REVISION}
            --maintainer ${EW_DEBIAN_MAINTAINER}
    COMMAND_ERROR_IS_FATAL ANY)
foreach(pair "library=${ew_lib_package}" "development=libeverywire-dev" "program=everywire")
    string(REGEX MATCH "^([a-z]+)=(.*)$" _ ${pair})
    install(FILES ${ew_debian}/copyright ${ew_papers}/changelog.Debian.gz ${ew_papers}/changelog.gz
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CMAKE_MATCH_2} COMPONENT ${CMAKE_MATCH_1})
endforeach()
file(GLOB ew_example_files ${PROJECT_SOURCE_DIR}/examples/*.c)
install(FILES ${ew_example_files} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libeverywire-dev/examples COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/everywire.yaml DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/everywire COMPONENT program)

# ---- what libeverywire-dev needs: the packages of the pkg-config files that ours asks for, and of what it names by hand ----
file(STRINGS ${PROJECT_BINARY_DIR}/everywire.pc ew_requires REGEX "^Requires\\.private:")
string(REGEX REPLACE "^Requires\\.private: *" "" ew_requires "${ew_requires}")
string(REGEX MATCHALL "[A-Za-z][^ ,]*" ew_modules "${ew_requires}")
set(ew_dev_files "")
foreach(module IN LISTS ew_modules ITEMS sqlite3)
    pkg_get_variable(ew_pc_dir ${module} pcfiledir)
    list(APPEND ew_dev_files ${ew_pc_dir}/${module}.pc)
endforeach()
if(EW_WSLAY_HEADER_DIR)
    list(APPEND ew_dev_files ${EW_WSLAY_HEADER_DIR}/wslay/wslay.h)
endif()
set(ew_dev_depends "${ew_lib_package} (= ${PROJECT_VERSION}-${EW_DEBIAN_REVISION})")
foreach(file IN LISTS ew_dev_files)
    execute_process(COMMAND dpkg-query -S ${file} OUTPUT_VARIABLE owner COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX REPLACE "[:,].*" "" owner "${owner}")
    list(APPEND ew_dev_depends ${owner})
endforeach()
list(REMOVE_DUPLICATES ew_dev_depends)
list(JOIN ew_dev_depends ", " ew_dev_depends)

# OpenSSL is loaded when it is needed, so dpkg-shlibdeps does not see it: the package of the library behind the headers we were built with.
find_library(EW_OPENSSL_LIBRARY NAMES ssl HINTS ${EW_OPENSSL_LIBRARY_DIRS} ${EW_OPENSSL_LIBDIR})
get_filename_component(ew_openssl_file "${EW_OPENSSL_LIBRARY}" REALPATH)
execute_process(COMMAND dpkg-query -S ${ew_openssl_file} OUTPUT_VARIABLE ew_openssl_package COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[:,].*" "" ew_openssl_package "${ew_openssl_package}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS ${ew_openssl_package})
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS ${ew_openssl_package})

# ---- CPack ----
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME everywire)
set(CPACK_PACKAGE_VENDOR "The everywire authors")
set(CPACK_PACKAGE_CONTACT ${EW_DEBIAN_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${EW_DEBIAN_MAINTAINER})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE ${EW_DEBIAN_REVISION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library development program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "one action, every wire: Genkit, RRQ, Stepflow, JSON-RPC, HTTP")
set(ew_about "everywire lets a function be written once and run, streamed from,
cancelled and traced by every orchestrator: over Genkit's Action HTTP and
Reflection protocols, RRQ's runner protocol, Stepflow's JSON-RPC, and plain
JSON-RPC 2.0 with streams.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${ew_lib_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${ew_papers}/symbols ${ew_papers}/triggers ${ew_papers}/shlibs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "${ew_about}\n\nThis package has the shared library.")
configure_file(${ew_debian}/${ew_lib_package}.symbols ${ew_papers}/symbols COPYONLY)
file(WRITE ${ew_papers}/triggers "activate-noawait ldconfig\n")
file(WRITE ${ew_papers}/shlibs "libeverywire ${EW_SOVERSION} ${ew_lib_package} (>= ${PROJECT_VERSION})\n")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libeverywire-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ${ew_dev_depends})
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
    "${ew_about}\n\nThis package has headers, the static library, pkg-config and CMake files,\nand a man page for every function.")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME everywire)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "redis-server")
file(WRITE ${ew_papers}/conffiles "/etc/everywire/everywire.yaml\n")
foreach(script postinst prerm postrm)
    configure_file(${ew_debian}/everywire.${script} ${ew_papers}/${script} COPYONLY)
endforeach()
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${ew_papers}/conffiles ${ew_papers}/postinst ${ew_papers}/prerm ${ew_papers}/postrm)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
    "${ew_about}\n\nThis package has the program: it serves actions, calls those of others, joins\nany two of these protocols, and runs durable jobs. It has a systemd service.")
include(CPack)
