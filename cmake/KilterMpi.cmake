# Find Open MPI and MPICH by their compiler wrappers. Set KILTER_MPIS, the list of the MPIs found, and for each of them:
#   mpi_NAME               the CMake target of the MPI, with its include folders and libraries
#   KILTER_MPIEXEC_NAME    the launcher of the MPI
#   KILTER_SUFFIX_NAME     the suffix in the names of this MPI's tests and test programs: empty for the first MPI found
#
# The option KILTER_MPI says which MPIs are looked for: ON (both), OFF, or a list of names. An MPI in the list must exist. If the wrappers do not have
# Debian's names, give -DKILTER_MPICC_openmpi=FILE and -DKILTER_MPIEXEC_openmpi=FILE.

# Set `out` to the name of the MPI to which a compiler wrapper belongs.
function(kilter_mpi_of_wrapper wrapper out)
    execute_process(COMMAND ${wrapper} -showme:version OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE status)
    set(name mpich)
    if(status EQUAL 0 AND said MATCHES "Open MPI")
        set(name openmpi)
    endif()
    set(${out} ${name} PARENT_SCOPE)
endfunction()

# Make a CMake target for an MPI: take the folders and libraries from the command that the wrapper would run.
function(kilter_mpi_target name wrapper)
    execute_process(COMMAND ${wrapper} -show OUTPUT_VARIABLE command COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(includes UNIX_COMMAND ${command})
    set(libraries ${includes})
    list(FILTER includes INCLUDE REGEX "^-I")
    list(TRANSFORM includes REPLACE "^-I" "")
    list(FILTER libraries INCLUDE REGEX "^-([Ll]|Wl,)")
    add_library(mpi_${name} INTERFACE)
    add_library(Kilter::mpi_${name} ALIAS mpi_${name}) # the file name of the library after installation
    target_include_directories(mpi_${name} SYSTEM INTERFACE ${includes})
    target_link_libraries(mpi_${name} INTERFACE ${libraries})
    list(TRANSFORM includes PREPEND "-I")
    list(JOIN includes " " includes)
    list(JOIN libraries " " libraries)
    set(KILTER_CFLAGS_${name} "${includes}" PARENT_SCOPE) # compiler flags of this MPI, for the pkg-config file
    set(KILTER_LIBS_${name} "${libraries}" PARENT_SCOPE)
endfunction()

set(KILTER_MPIS "")
foreach(name openmpi mpich)
    if(NOT KILTER_MPI OR NOT (name IN_LIST KILTER_MPI OR KILTER_MPI MATCHES "^(ON|on|TRUE|true|YES|yes|1)$"))
        continue()
    endif()
    find_program(KILTER_MPICC_${name} NAMES mpicc.${name} mpicc)
    find_program(KILTER_MPIEXEC_${name} NAMES mpiexec.${name} mpiexec)
    set(found "")
    if(KILTER_MPICC_${name} AND KILTER_MPIEXEC_${name})
        kilter_mpi_of_wrapper(${KILTER_MPICC_${name}} found)
    endif()
    if(found STREQUAL name)
        kilter_mpi_target(${name} ${KILTER_MPICC_${name}})
        set(KILTER_SUFFIX_${name} "-${name}")
        list(APPEND KILTER_MPIS ${name})
    elseif(name IN_LIST KILTER_MPI)
        message(FATAL_ERROR "KILTER_MPI names ${name}, which is not found: "
                            "-DKILTER_MPICC_${name}=FILE names its compiler wrapper, -DKILTER_MPIEXEC_${name}=FILE its launcher")
    endif()
endforeach()

if(KILTER_MPI AND NOT KILTER_MPIS)
    message(FATAL_ERROR "KILTER_MPI is '${KILTER_MPI}', but neither Open MPI (openmpi) nor MPICH (mpich) was found: "
                        "install one, or configure with -DKILTER_MPI=OFF")
endif()
if(KILTER_MPIS)
    list(GET KILTER_MPIS 0 first)
    set(KILTER_SUFFIX_${first} "")
    set(MPIEXEC_EXECUTABLE ${KILTER_MPIEXEC_${first}} CACHE FILEPATH "the launcher of the first MPI found, for tools/" FORCE)
endif()
message(STATUS "MPI: ${KILTER_MPIS}")
