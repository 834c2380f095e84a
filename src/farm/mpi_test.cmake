# The farm over ranks; included where BUILD_TESTING and KILTER_MPI hold.
add_executable(farm_mpi_test ${CMAKE_CURRENT_LIST_DIR}/farm_mpi_test.c)
target_compile_definitions(farm_mpi_test PRIVATE _GNU_SOURCE)
target_link_libraries(farm_mpi_test PRIVATE kilter_objects)
foreach(ranks 2 4)
    kilter_mpi_test(farm/mpi_${ranks} ${ranks} farm_mpi_test)
    kilter_mpi_test(farm/mpi_single_${ranks} ${ranks} farm_mpi_test --single)
endforeach()
