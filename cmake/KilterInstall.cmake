# What `cmake --install` puts where: the library with its headers, its CMake package and its pkg-config file.
# Programs are installed by their own folders; component `library` is what another project links.
include(CMakePackageConfigHelpers)

set(KILTER_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Kilter)

install(TARGETS kilter EXPORT KilterTargets COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
if(NOT KILTER_MPI)
    set(but_loops PATTERN loop.h EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kilter ${CMAKE_CURRENT_BINARY_DIR}/include/kilter
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library FILES_MATCHING PATTERN "*.h"
        ${but_loops})

# A static library leaves its own libraries to whoever links it; a shared one names them itself.
if(BUILD_SHARED_LIBS)
    set(KILTER_PC_REQUIRES "")
    set(KILTER_PC_LIBS "")
else()
    set(KILTER_PC_REQUIRES "libzmq >= 4.3, hwloc >= 2.0, sqlite3 >= 3.35")
    set(KILTER_PC_LIBS " ${CMAKE_THREAD_LIBS_INIT} -lm")
    if(KILTER_MPI)
        list(JOIN MPI_C_LIBRARIES " " libraries)
        set(KILTER_PC_LIBS " ${MPI_C_LINK_FLAGS} ${libraries}${KILTER_PC_LIBS}")
    endif()
endif()
file(RELATIVE_PATH KILTER_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" KILTER_PC_PREFIX ${KILTER_PC_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/kilter.pc.in kilter.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kilter.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/KilterConfig.cmake.in KilterConfig.cmake
                              INSTALL_DESTINATION ${KILTER_CMAKE_DIR}
                              NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(KilterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/KilterConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/KilterConfigVersion.cmake
        DESTINATION ${KILTER_CMAKE_DIR} COMPONENT library)
install(EXPORT KilterTargets NAMESPACE Kilter:: DESTINATION ${KILTER_CMAKE_DIR} COMPONENT library)

# Pages for people, in folders as in the repository, so that their links hold; man pages are installed with their programs.
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT documents)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents
        FILES_MATCHING PATTERN "*.md" PATTERN "man" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents
        USE_SOURCE_PERMISSIONS)
