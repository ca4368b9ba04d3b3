# Each examples/*.c is a program of its own, linked to the shared library as a user's program would be; plugin.c is a module.
# SPDX-License-Identifier: Apache-2.0
file(GLOB ew_examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(file IN LISTS ew_examples)
    get_filename_component(name ${file} NAME_WE)
    if(name STREQUAL "plugin")
        add_library(example_plugin MODULE ${file})
        set_target_properties(example_plugin PROPERTIES
            OUTPUT_NAME plugin PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
        target_include_directories(example_plugin PRIVATE ${PROJECT_SOURCE_DIR}/include)
        target_link_libraries(example_plugin PRIVATE ew_strict)
        continue()
    endif()
    add_executable(example_${name} ${file})
    set_target_properties(example_${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    target_link_libraries(example_${name} PRIVATE everywire Threads::Threads ew_strict)
endforeach()
