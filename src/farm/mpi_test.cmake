# The farm over ranks; included where BUILD_TESTING and KILTER_MPI hold.
add_executable(farm_mpi_test ${CMAKE_CURRENT_LIST_DIR}/farm_mpi_test.c)
target_compile_definitions(farm_mpi_test PRIVATE _GNU_SOURCE)
target_link_libraries(farm_mpi_test PRIVATE kilter_objects)
foreach(ranks 2 4)
    kilter_mpi_test(farm/mpi_${ranks} ${ranks} farm_mpi_test)
    kilter_mpi_test(farm/mpi_single_${ranks} ${ranks} farm_mpi_test --single)
endforeach()

# Ranks that are killed; the launcher must be told to let the others live, and each MPI in its own way.
add_executable(farm_death_mpi_test ${CMAKE_CURRENT_LIST_DIR}/farm_death_mpi_test.c)
target_compile_definitions(farm_death_mpi_test PRIVATE _GNU_SOURCE)
target_link_libraries(farm_death_mpi_test PRIVATE kilter_objects)
add_dependencies(mpi_tests farm_death_mpi_test)
foreach(when opening running sending master)
    add_test(NAME farm/mpi_death_${when} COMMAND ${CMAKE_CURRENT_LIST_DIR}/mpi_death_test.sh ${MPIEXEC_EXECUTABLE}
                                                 $<TARGET_FILE:farm_death_mpi_test> ${when})
    set_tests_properties(farm/mpi_death_${when} PROPERTIES LABELS mpi TIMEOUT 240 PROCESSORS 3 SKIP_RETURN_CODE 77)
endforeach()
