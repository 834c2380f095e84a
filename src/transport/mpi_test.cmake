# transport_mpi_test, started by the mpirun of the MPI the build uses. Included where BUILD_TESTING and
# KILTER_MPI hold, after kilter_objects is made.
add_executable(transport_mpi_test ${CMAKE_CURRENT_LIST_DIR}/transport_mpi_test.c)
target_compile_definitions(transport_mpi_test PRIVATE _GNU_SOURCE)
target_link_libraries(transport_mpi_test PRIVATE kilter_objects)

foreach(ranks 1 2 4)
    kilter_mpi_test(transport/mpi_${ranks} ${ranks} transport_mpi_test --threads)
    kilter_mpi_test(transport/mpi_own_${ranks} ${ranks} transport_mpi_test --own-mpi)
endforeach()
kilter_mpi_test(transport/mpi_single 3 transport_mpi_test --single)

# A launcher that says "several" to a program whose MPI sees one rank: an error that names the remedy.
add_test(NAME transport/mpi_wrong_launcher COMMAND transport_mpi_test --expect-mismatch)
set_tests_properties(transport/mpi_wrong_launcher
                     PROPERTIES LABELS mpi TIMEOUT 120 ENVIRONMENT "MV2_COMM_WORLD_SIZE=3;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")

# Ranks that are killed: the master says that all was well, or, when it is the one, each worker.
kilter_mpi_survivors_test(transport/mpi_deaths "as promised" 4 transport_mpi_test --deaths)
kilter_mpi_survivors_test(transport/mpi_death_of_master "as promised.*as promised.*as promised" 4 transport_mpi_test
                          --death-of-master)

# Lifelines are plain sockets, and tested without mpirun.
add_executable(lifeline_mpi_test ${CMAKE_CURRENT_LIST_DIR}/lifeline_mpi_test.c)
target_compile_definitions(lifeline_mpi_test PRIVATE _GNU_SOURCE)
target_link_libraries(lifeline_mpi_test PRIVATE kilter_objects)
add_dependencies(mpi_tests lifeline_mpi_test)
add_test(NAME transport/lifeline_mpi_test COMMAND lifeline_mpi_test)
set_tests_properties(transport/lifeline_mpi_test PROPERTIES LABELS mpi TIMEOUT 120)
