# Define what `cmake --install` installs: the libraries with their headers, their CMake package and their pkg-config files.
# Programs are installed by the CMakeLists.txt in their own folders. The component `library` has all files that another project needs for linking.
include(CMakePackageConfigHelpers)

set(KILTER_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Kilter)

set(libraries kilter)
foreach(mpi IN LISTS KILTER_MPIS)
    list(APPEND libraries kilter-${mpi} mpi_${mpi})
endforeach()
if(TARGET kilter-ckpt)
    install(TARGETS kilter-ckpt COMPONENT library)
endif()
install(TARGETS ${libraries} EXPORT KilterTargets COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
if(NOT KILTER_MPIS)
    set(but_loops PATTERN loop.h EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kilter ${CMAKE_CURRENT_BINARY_DIR}/include/kilter
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library FILES_MATCHING PATTERN "*.h"
        ${but_loops})

# Write the pkg-config file of a library. The file names its folders relative to its own folder.
function(kilter_pc PC_NAME PC_DESCRIPTION PC_REQUIRES PC_CFLAGS PC_LIBS)
    file(RELATIVE_PATH KILTER_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
    string(REGEX REPLACE "/$" "" KILTER_PC_PREFIX ${KILTER_PC_PREFIX})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/kilter.pc.in ${PC_NAME}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${PC_NAME}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endfunction()

# A program that links a static library must also link the libraries that this static library uses. A shared library itself names the libraries that
# it uses.
set(about "Keeps parallel programs in balance on unequal, shared, changing machines")
if(BUILD_SHARED_LIBS)
    kilter_pc(kilter "${about}" "" "" "")
else()
    kilter_pc(kilter "${about}" "libzmq >= 4.3, hwloc >= 2.0, sqlite3 >= 3.35" "" " ${CMAKE_THREAD_LIBS_INIT} -ldl -lm")
    set(take_transport " -Wl,--undefined=kl_mpi_library_linked")
endif()
foreach(mpi IN LISTS KILTER_MPIS)
    kilter_pc(kilter-${mpi} "${about}: loops, and farms over ranks, for ${mpi}" "kilter = ${PROJECT_VERSION}"
              " ${KILTER_CFLAGS_${mpi}}" "${take_transport} ${KILTER_LIBS_${mpi}}")
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/KilterConfig.cmake.in KilterConfig.cmake
                              INSTALL_DESTINATION ${KILTER_CMAKE_DIR}
                              NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(KilterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/KilterConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/KilterConfigVersion.cmake
        DESTINATION ${KILTER_CMAKE_DIR} COMPONENT library)
install(EXPORT KilterTargets NAMESPACE Kilter:: DESTINATION ${KILTER_CMAKE_DIR} COMPONENT library)

# Install the pages of documentation in the same folders as in the repository, so that their links work. Man pages are installed with their programs.
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT documents)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents
        FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "man" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents
        USE_SOURCE_PERMISSIONS)
