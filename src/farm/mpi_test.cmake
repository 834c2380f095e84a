# Tests of farms over MPI ranks. If BUILD_TESTING is on, this file is included once for each MPI.
kilter_mpi_test_program(farm_mpi_test ${CMAKE_CURRENT_LIST_DIR}/farm_mpi_test.c)
foreach(ranks 2 4)
    kilter_mpi_test(farm/mpi_${ranks} ${ranks} farm_mpi_test)
    kilter_mpi_test(farm/mpi_single_${ranks} ${ranks} farm_mpi_test --single)
endforeach()
kilter_mpi_survivors_test(farm/mpi_absent "rank 0 is right.*rank 1 is right|rank 1 is right.*rank 0 is right" 3 farm_mpi_test --absent)

# Tests in which ranks are killed. mpi_death_test.sh tells the launcher of each MPI to let the other ranks live.
kilter_mpi_test_program(farm_death_mpi_test ${CMAKE_CURRENT_LIST_DIR}/farm_death_mpi_test.c)
foreach(when opening running sending master)
    kilter_mpi_script_test(farm/mpi_death_${when} 3 ${CMAKE_CURRENT_LIST_DIR}/mpi_death_test.sh ${KILTER_MPIEXEC_${mpi}}
                           $<TARGET_FILE:farm_death_mpi_test${suffix}> ${when})
    set_tests_properties(farm/mpi_death_${when}${suffix} PROPERTIES TIMEOUT 240 SKIP_RETURN_CODE 77)
endforeach()

# Tests in which ranks are killed while the workers organise the run among themselves.
foreach(when running sending master)
    kilter_mpi_script_test(farm/mpi_peers_${when} 3 ${CMAKE_CURRENT_LIST_DIR}/mpi_death_test.sh ${KILTER_MPIEXEC_${mpi}}
                           $<TARGET_FILE:farm_death_mpi_test${suffix}> ${when})
    set_tests_properties(farm/mpi_peers_${when}${suffix} PROPERTIES TIMEOUT 240 ENVIRONMENT_MODIFICATION KILTER_ORGANISE=set:peers)
endforeach()
