# transport_mpi_test, started by the mpirun of the MPI the build uses. Included where BUILD_TESTING and
# KILTER_MPI hold, after kilter_objects is made.
add_executable(transport_mpi_test ${CMAKE_CURRENT_LIST_DIR}/transport_mpi_test.c)
target_compile_definitions(transport_mpi_test PRIVATE _GNU_SOURCE)
target_link_libraries(transport_mpi_test PRIVATE kilter_objects)

# Open MPI has to be told that more ranks than cores, and root (as in containers), are meant.
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpiexec_version ERROR_QUIET)
set(transport_mpi_flags)
if(mpiexec_version MATCHES "Open MPI|OpenRTE|PRRTE")
    set(transport_mpi_flags --oversubscribe)
endif()
set(transport_mpi_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)

function(transport_mpi_test_case name ranks)
    add_test(NAME transport/${name}
             COMMAND ${MPIEXEC_EXECUTABLE} ${transport_mpi_flags} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                     $<TARGET_FILE:transport_mpi_test> ${ARGN})
    set_tests_properties(transport/${name} PROPERTIES TIMEOUT 120 PROCESSORS 2
                                                      ENVIRONMENT "${transport_mpi_environment}")
endfunction()

foreach(ranks 1 2 4)
    transport_mpi_test_case(transport_mpi_test_${ranks} ${ranks} --threads)
    transport_mpi_test_case(transport_mpi_test_own_${ranks} ${ranks} --own-mpi)
endforeach()
transport_mpi_test_case(transport_mpi_test_single 3 --single)

# A launcher that says "several" to a program whose MPI sees one rank: an error that names the remedy.
add_test(NAME transport/transport_mpi_test_wrong_launcher COMMAND transport_mpi_test --expect-mismatch)
set_tests_properties(transport/transport_mpi_test_wrong_launcher
                     PROPERTIES TIMEOUT 120 ENVIRONMENT "MV2_COMM_WORLD_SIZE=3;${transport_mpi_environment}")
