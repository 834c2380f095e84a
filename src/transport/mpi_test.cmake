# Run transport_mpi_test with the launcher of the MPI that the variable `mpi` names. If BUILD_TESTING is set, this file is
# included once for each MPI.
kilter_mpi_test_program(transport_mpi_test ${CMAKE_CURRENT_LIST_DIR}/transport_mpi_test.c)

foreach(ranks 1 2 4)
    kilter_mpi_test(transport/mpi_${ranks} ${ranks} transport_mpi_test --threads)
    kilter_mpi_test(transport/mpi_own_${ranks} ${ranks} transport_mpi_test --own-mpi)
endforeach()
kilter_mpi_test(transport/mpi_single 3 transport_mpi_test --single)

# The launcher says that there are 3 ranks, but the program's MPI sees only one. The error message must say what to do.
kilter_mpi_script_test(transport/mpi_wrong_launcher 1 transport_mpi_test${suffix} --expect-mismatch)
set_property(TEST transport/mpi_wrong_launcher${suffix} APPEND PROPERTY ENVIRONMENT MV2_COMM_WORLD_SIZE=3)

# The first test kills workers, and the master must print "as promised". The second test kills the master, and each worker must
# print "as promised".
kilter_mpi_survivors_test(transport/mpi_deaths "as promised" 4 transport_mpi_test --deaths)
kilter_mpi_survivors_test(transport/mpi_death_of_master "as promised.*as promised.*as promised" 4 transport_mpi_test
                          --death-of-master)

# The failure detector uses plain sockets, so it is tested without mpirun.
kilter_mpi_test_program(liveness_mpi_test ${CMAKE_CURRENT_LIST_DIR}/liveness_mpi_test.c)
kilter_mpi_script_test(transport/liveness_mpi_test 1 liveness_mpi_test${suffix})
